"""The sandbox world: a work folder with `bash`, `read_file`, `write_file` and `list_files`, at one of three levels.

The folder is made from the bytes that the case gives. Commands run at the level (`sandbox_levels`), and end with the
call that started them; the file tools reach the folder through a descriptor and never leave it (`sandbox_folder`).
What a trial leaves behind is read when it is over: the expected files, and the check command, which runs in a copy in
which the protected files are the case's again. The expectation itself is never in the folder.
"""

from __future__ import annotations

import hashlib
import stat
import threading
import weakref
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import msgspec

from agentbench_lab.cases import Expect, Goal
from agentbench_lab.expect_work import (
    ExpectedCommand,
    ExpectedFile,
)
from agentbench_lab.values import digest
from agentbench_lab.worlds.capabilities import Registry
from agentbench_lab.worlds.process import Finished
from agentbench_lab.worlds.sandbox_folder import Folder, Full, PathRefused
from agentbench_lab.worlds.sandbox_levels import Level, Place, default_level, open_place
from agentbench_lab.worlds.sandbox_pack import pack, unpack
from agentbench_lab.worlds.sandbox_spec import (
    LIST_LIMIT,
    READ_LIMIT,
    TOOLS,
    BadSandbox,
    Renamed,
    Spec,
    stored,
)
from agentbench_lab.worlds.seen import Seen
from agentbench_lab.worlds.seen_work import KEPT, CommandSeen, FileSeen, WorkSeen, blob
from agentbench_lab.worlds.toolbox import Ran

STREAM_LIMIT = 3_500
"""Characters of each stream of a command that an agent is shown: the first and the last of them."""
KEPT_TEXT = 8_000
"""Characters of a file's text that the ledger keeps as a value; of a longer one it has the beginning."""
_DIFF_LIMIT = 200
_HASHED = 64 << 20
"""Bytes of a file that is read whole for its digest."""


class Sandbox:
    """A sandbox world. `fork` gives a trial a folder of its own, made when it is first needed.

    `level` None is the default level, looked for when the first folder is made.
    """

    kind = "sandbox"
    labels: frozenset[str] = frozenset()

    def __init__(self, spec: Spec, *, name: str = "sandbox", level: Level | None = None) -> None:
        self.name = name
        self.spec = spec
        self._level = level
        self._place: Place | None = None
        self._closed = self._stopped = False
        self._lock = threading.Lock()
        self._renamed = {tool.name: tool for tool in spec.tools if isinstance(tool, Renamed)}
        self.registry = Registry(
            tuple(TOOLS[tool] if isinstance(tool, str) else tool.capability() for tool in spec.tools)
        )

    @classmethod
    def of(cls, declared: Mapping[str, Any], *, name: str, level: Level | None = None) -> Sandbox:
        """The sandbox that a case declares. Raises BadSandbox with every fault."""
        try:
            spec = msgspec.convert({k: v for k, v in declared.items() if k != "kind"}, Spec)
        except msgspec.ValidationError as error:
            raise BadSandbox([_said(str(error))]) from None
        faults = spec.faults()
        if faults:
            raise BadSandbox(faults)
        return cls(spec, name=name, level=level)

    @property
    def declared(self) -> Spec:
        """What it was made of."""
        return self.spec

    @property
    def level(self) -> Level:
        """The level at which commands run. Raises LabError where none was named and bubblewrap does not work."""
        if self._level is None:
            self._level = default_level()
        return self._level

    @cached_property
    def digest(self) -> str:
        """Of the files and bounds, and of the level: another level is another experiment."""
        spec = self.spec
        files = {
            path: [hashlib.sha256(file.data).hexdigest(), file.mode]
            for path, file in stored(spec.files).items()
        }
        bounds = msgspec.structs.asdict(spec.limits)
        tools = msgspec.to_builtins(spec.tools)
        return digest([files, spec.protected, tools, bounds, str(self.level)])

    def fork(self) -> Sandbox:
        return Sandbox(self.spec, name=self.name, level=self._level)

    def at(self, level: Level) -> Sandbox:
        """The same sandbox at another level."""
        return Sandbox(self.spec, name=self.name, level=level)

    def __reduce__(self) -> tuple[Any, ...]:
        """What a worker is sent: never the folder of a trial."""
        return _rebuilt, (self.spec, self.name, self._level)

    def goals(self, declared: Sequence[str]) -> tuple[Goal, ...]:
        return ()

    # ---- the trial

    def run(self, name: str, input: dict[str, Any]) -> Ran:
        """Run one tool. Raises OSError when the machine cannot, which is no fault of the agent's."""
        renamed = self._renamed.get(name)
        try:
            if renamed is not None:
                name = renamed.builtin
                if renamed.input_schema is not None:
                    input = _texts(name, input)
            if name == "bash":
                return self._bash(input["command"], input.get("timeout_s"))
            if name == "read_file":
                return self._read_file(input["path"], input.get("line"), input.get("lines"))
            if name == "write_file":
                return self._write_file(input["path"], input.get("content") or "")
            return self._list_files(input.get("path") or ".")
        except PathRefused as error:
            return Ran(None, "", error=str(error))

    def _bash(self, command: str, timeout_s: float | None) -> Ran:
        if "\0" in command:
            return Ran(None, "", error="a command cannot have a NUL in it")
        place = self._opened()
        most = self.spec.limits.wall_s
        before = _state(place.folder)
        done = place.run(command, timeout_s=most if timeout_s is None else min(timeout_s, most))
        value: dict[str, Any] = {
            "exit": done.exit,
            "stdout": _middle_out(done.stdout, done.stdout_end),
            "stderr": _middle_out(done.stderr, done.stderr_end),
        }
        if done.timed_out or done.ended:
            value["ended"] = "timed out" if done.timed_out else done.ended
        return Ran(value, _told(value, done), diff=_changed(before, _state(place.folder)), empty=False)

    def _read_file(self, path: str, line: int | None, lines: int | None) -> Ran:
        data, size = self._opened().folder.read(path, KEPT)
        if line is None and lines is None and size > READ_LIMIT:
            return Ran(
                None, "", error=f"{path}: has {size} bytes, and {READ_LIMIT} are given at once; ask for lines"
            )
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            if size <= len(data) or error.start < len(data) - 4:
                return Ran(
                    None, "", error=f"{path}: is no text ({size} bytes that are no UTF-8 at {error.start})"
                )
            text = data[: error.start].decode()
        if line is not None or lines is not None:
            if size > KEPT:
                return Ran(None, "", error=f"{path}: has {size} bytes; use bash to read a part of it")
            first = (line or 1) - 1
            text = "".join(text.splitlines(keepends=True)[first : None if lines is None else first + lines])
        return Ran(text, text or "(empty)", empty=False, kept=len(text) <= KEPT_TEXT)

    def _write_file(self, path: str, text: str) -> Ran:
        data = text.encode()
        if len(data) > self.spec.limits.file_mb << 20:
            return Ran(None, "", error=f"{path}: more than {self.spec.limits.file_mb} MiB")
        word = self._opened().folder.write(path, data)
        diff = {} if word == "unchanged" else {word: [path]}
        return Ran({"bytes": len(data)}, f"{word}: {path}, {len(data)} bytes", diff=diff, empty=False)

    def _list_files(self, path: str) -> Ran:
        entries, whole = self._opened().folder.entries(path, most=LIST_LIMIT)
        rows = [
            f"{entry.path}{'/' if entry.kind == 'folder' else ''}"
            + (
                f"  {entry.size}"
                if entry.kind == "file"
                else ""
                if entry.kind == "folder"
                else f"  ({entry.kind})"
            )
            for entry in entries
        ]
        if not whole:
            rows.append(
                f"... and more than {LIST_LIMIT} entries, or folders nested too deeply or closed to you"
            )
        value = [{"path": e.path, "kind": e.kind, "size": e.size} for e in entries]
        return Ran(value, "\n".join(rows) or "(empty)")

    # ---- putting it by

    def snapshot(self) -> bytes:
        """The work folder as it stands; empty when nobody has been in it. What is kept outside of it (/tmp) is not.

        Raises Full when it holds more than its bounds let it.
        """
        if self._place is None:
            return b""
        bounds = self.spec.limits
        return pack(self._place.folder, most_bytes=bounds.disk_mb << 20, most_entries=bounds.entries)

    def restore(self, snapshot: bytes) -> None:
        """Put a fork's folder where this snapshot was taken."""
        if snapshot:
            unpack(self._opened().folder, snapshot)

    # ---- the end

    def stop(self) -> None:
        """End a command that is running, from any thread. None runs afterwards; the folder can still be read."""
        # a folder that is just being made is not waited for: its maker looks at this once it is there
        self._stopped = True
        if (place := self._place) is not None:
            place.stop()

    def seen(self, expect: Expect) -> Seen:
        """What a grade by this expectation reads off the folder, as it now stands."""
        asked = expect if expect.agentd is None else expect.agentd
        return Seen(work=self.look(asked.files, asked.command))

    def look(
        self, files: Mapping[str, ExpectedFile] | None = None, command: ExpectedCommand | None = None
    ) -> WorkSeen:
        """What a grade reads off the folder: these files, and how this command ends in a restored copy of it.

        Raises OSError when the machine cannot do it, which is no fault of the agent's.
        """
        place = self._opened()
        return WorkSeen(
            str(self.level),
            {path: _file_seen(place.folder, path) for path in files or ()},
            None if command is None else self._checked(place, command),
        )

    def _checked(self, place: Place, command: ExpectedCommand) -> CommandSeen:
        limits = self.spec.limits
        copy = open_place(self.level, limits)
        try:
            try:
                place.folder.copy_to(
                    copy.folder, most_bytes=limits.disk_mb << 20, most_entries=limits.entries
                )
            except Full as error:
                return CommandSeen(not_run=f"the work folder cannot be copied: {error}")
            ours = {path: self.spec.files[path] for path in self.spec.protected} | command.files
            try:
                copy.folder.seed(stored(ours))
            except (PathRefused, OSError) as error:
                return CommandSeen(not_run=f"the case's own files find no room: {error}")
            done = copy.run(command.run, timeout_s=command.timeout_s)
        finally:
            copy.close()
        out, err = (
            blob(begins, len(begins) + lost + len(end), end)
            for begins, lost, end in (
                (done.stdout, done.stdout_lost, done.stdout_end),
                (done.stderr, done.lost - done.stdout_lost, done.stderr_end),
            )
        )
        return CommandSeen(done.exit, out, err, done.timed_out, done.ended)

    def close(self) -> None:
        """Take the folder and its processes away."""
        with self._lock:
            self._closed = True
            place, self._place = self._place, None
        if place is not None:
            self._finalizer.detach()
            place.close()

    def _opened(self) -> Place:
        with self._lock:
            if self._closed:
                raise OSError("the sandbox is closed")
            if self._place is None:
                place = open_place(self.level, self.spec.limits)
                try:
                    place.folder.seed(stored(self.spec.files))
                except BaseException:
                    place.close()
                    raise
                self._place = place
                self._finalizer = weakref.finalize(self, place.close)
                if self._stopped:
                    place.stop()
            return self._place


def _rebuilt(spec: Spec, name: str, level: Level | None) -> Sandbox:
    return Sandbox(spec, name=name, level=level)


def _texts(name: str, input: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a tool under a schema of the case's own, which may lack what the built-in one takes."""
    if name == "bash":
        found = {"command": input.get("command") or input.get("cmd") or ""}
    elif name == "write_file":
        found = {"path": input.get("path", ""), "content": input.get("content", "")}
    else:
        found = {"path": input.get("path", "")}
    for key, value in found.items():
        if type(value) is not str:
            raise PathRefused(f"{key} must be text")
    return found


def _file_seen(folder: Folder, path: str) -> FileSeen:
    try:
        kind = folder.kind(path)
    except PathRefused as error:
        return FileSeen(f"a path that cannot be looked at ({error})")
    if kind not in ("file", "link"):
        return FileSeen(kind or "nothing")
    try:
        # a link that stays within the folder is the file that it leads to
        first, last, size = folder.ends(path, KEPT, KEPT)
        if len(first) < size <= _HASHED:
            (first, size), last = folder.read(path, size), b""
    except PathRefused as error:
        return FileSeen("link" if kind == "link" else f"a file that cannot be read ({error})")
    return FileSeen("file", blob(first, size, last))


def _state(folder: Folder) -> dict[str, tuple[int, int, int]]:
    """What tells that something in the folder has changed: per path the mode, the bytes and the time of change."""
    return {
        path: (
            s.st_mode,
            0 if stat.S_ISDIR(s.st_mode) else s.st_size,
            0 if stat.S_ISDIR(s.st_mode) else s.st_ctime_ns,
        )
        for path, s in folder.states()
    }


def _changed(
    before: Mapping[str, tuple[int, int, int]], after: Mapping[str, tuple[int, int, int]]
) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for word, paths in (
        ("created", after.keys() - before.keys()),
        ("changed", {path for path in before.keys() & after.keys() if before[path] != after[path]}),
        ("removed", before.keys() - after.keys()),
    ):
        if paths:
            found[word] = sorted(paths)[:_DIFF_LIMIT]
    return found


def _middle_out(data: bytes, end: bytes) -> str:
    text = (data + end).decode(errors="replace")
    if len(text) <= STREAM_LIMIT:
        return text
    half = STREAM_LIMIT // 2
    return f"{text[:half]}\n... {len(text) - 2 * half} characters left out ...\n{text[-half:]}"


def _told(value: Mapping[str, Any], done: Finished) -> str:
    parts = [value["stdout"]] if value["stdout"] else []
    if value["stderr"]:
        parts.append(f"[stderr]\n{value['stderr']}")
    if done.lost:
        parts.append(f"[{done.lost} bytes more were printed and not kept]")
    if "ended" in value:
        parts.append(f"[{value['ended']} after {done.wall_s:.1f} s]")
    elif done.exit != 0 or not parts:
        parts.append(f"[exit {done.exit}]")
    return "\n".join(part.rstrip("\n") for part in parts)


def _said(message: str) -> str:
    """msgspec's message with the path in front."""
    text, _, path = message.partition(" - at `$.")
    where = path.rstrip("`").replace("[...]", "")
    text = text[:1].lower() + text[1:]
    text = text.replace("object contains unknown field", "unknown key").replace("`", "'")
    return f"{where}: {text}" if where else text


__all__ = ["TOOLS", "BadSandbox", "Sandbox", "Spec", "stored"]
