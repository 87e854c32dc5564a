"""Any program as a driver: `command:ARGV`, split as a shell would split it and run without one.

`command:./agent --fast` is a persistent worker that speaks lines of JSON (`command_jsonl`), `command[spawn]:...` the same
with a process for each trial, `command[agentd]:...` a program that takes its task as arguments and its tools over MCP
(`command_agentd`). Options stand in the brackets, with commas between them:

- `jsonl`, `spawn`, `agentd`: the dialect;
- `env=NAME`: the program also gets this variable of our environment;
- `model=NAME`: the model that the rows name (`agentd` is given it as `--model`);
- `here`: it runs in the working folder, and not in an empty one of its own.

A program gets a small allow-list of the environment. It runs in a session of its own, which is ended with the trial at
its limit, with the run, and with the process that started it. `{native}` in ARGV stands for one of its own modes, which a
scaffold `native:NAME` fills in.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import math
import os
import shlex
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from msgspec import Struct

from agentbench_lab.cases import Task
from agentbench_lab.drivers import command_agentd, command_jsonl
from agentbench_lab.drivers.base import Context
from agentbench_lab.drivers.child import LEAVE_S, Child, make_folder, remove_folder
from agentbench_lab.drivers.command_said import Said
from agentbench_lab.errors import LabError, did_you_mean
from agentbench_lab.transcripts import Transcript
from agentbench_lab.worlds.mcp_client import needs_sdk
from agentbench_lab.worlds.mcp_server import HttpBridge
from agentbench_lab.worlds.toolbox import Toolbox

DIALECTS = ("jsonl", "spawn", "agentd")
WORDS = (*DIALECTS, "here")
KEYS = ("env", "model")
NATIVE = "{native}"
ENVIRONMENT = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR")
"""What a program gets of our environment, where it is set there."""
_FOR_A_SHELL = ("|", "||", "&", "&&", ";", "<", ">", ">>", "2>", "2>&1", ">&2")
_INTERPRETERS = ("python", "python3", "node", "sh", "bash", "zsh", "ruby", "perl", "bun", "php", "lua")


class Program(Struct, frozen=True):
    """What was asked for: the arguments with the program's path in full, the dialect, and the options."""

    text: str
    argv: tuple[str, ...]
    dialect: str = "jsonl"
    env: tuple[str, ...] = ()
    model: str | None = None
    here: bool = False


def make(text: str) -> Command:
    """The driver of `command:TEXT`, or of `command[OPTIONS]:TEXT` (then TEXT begins at the bracket). Raises LabError."""
    return Command(parse(text))


def parse(text: str) -> Program:
    """The program that a text names. Raises LabError for options that are none and for a program that is not there."""
    options, line = "", text
    if text.startswith("[") and "]:" in text:
        options, _, line = text[1:].partition("]:")
    dialect, env, model, here = "", [], None, False
    for option in filter(None, (part.strip() for part in options.split(","))):
        key, equals, value = option.partition("=")
        if equals and key == "env":
            if value not in os.environ:
                raise LabError(f"command: env={value}: there is no such variable")
            env.append(value)
        elif equals and key == "model":
            model = value
        elif option == "here":
            here = True
        elif option in DIALECTS:
            if dialect not in ("", option):
                raise LabError(f"command: {dialect} and {option} exclude each other")
            dialect = option
        else:
            hint = did_you_mean(key, [*WORDS, *(f"{known}=" for known in KEYS)])
            raise LabError(f"command: no option {option!r}{hint}")
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise LabError(f"command: {line!r}: {str(error).lower()}") from None
    if NATIVE in line:
        raise LabError(f"command: {NATIVE} is filled in by a scaffold native:NAME, and none is given")
    if not words:
        raise LabError(
            "command: which program? For example command:./agent, or command[spawn]:python3 agent.py"
        )
    _check_shell(line)
    if dialect == "agentd":
        needs_sdk("command[agentd]")
    argv = (_found(words[0]), *map(_in_full, words[1:]))
    _check_script(words)
    return Program(text, argv, dialect or "jsonl", tuple(env), model or _model_of(words), here)


def _check_shell(line: str) -> None:
    """Whether it asks for what only a shell does."""
    try:
        words = shlex.split(line, posix=False)  # quotes stay, so that '|' is told from |
    except ValueError:
        return  # a quote within quotes
    for number, word in enumerate(words):
        if word in _FOR_A_SHELL or (number == 0 and word.startswith(("~", "$"))):
            raise LabError(f"command: no shell runs it, and {word!r} is for one; a shell does in sh -c '...'")


def _found(word: str) -> str:
    """The program's path in full."""
    path = Path(word)
    if os.sep not in word:
        on_path = shutil.which(word)
        if on_path is not None:
            return str(Path(on_path).absolute())
        near = f" (did you mean './{word}'?)" if path.is_file() else did_you_mean(word, _on_path(), most=0)
        raise LabError(f"command: no program {word!r} on PATH{near}")
    if not path.is_file():
        siblings = [str(path.parent / file) for file in _names(path.parent)]
        raise LabError(f"command: there is no program {word!r}{did_you_mean(word, siblings, most=0)}")
    if not os.access(path, os.X_OK):
        raise LabError(
            f"command: {word!r} is not executable; make it so (chmod +x), or name what runs it first"
        )
    _check_start(path, word)
    return str(path.absolute())


def _check_start(path: Path, word: str) -> None:
    """Whether the system can start a script: it names what runs it, and that is there."""
    try:
        with open(path, "rb") as opened:
            head = opened.read(256)
    except OSError:
        return  # it may be run and not read
    if head.startswith(b"#!"):
        runs = head[2:].split(b"\n")[0].split()
        named = os.fsdecode(runs[0]) if runs else ""
        if not Path(named).is_file():
            raise LabError(
                f"command: {word!r} is run by {named!r}, by its first line, and there is no such program"
            )
    elif head and b"\0" not in head:
        raise LabError(
            f"command: {word!r} is a text whose first line names no program (#!); name what runs it first"
        )


def _in_full(word: str) -> str:
    """An argument; one that names a file here names it from everywhere."""
    with contextlib.suppress(OSError, ValueError):
        if not word.startswith("-") and Path(word).is_file():
            return str(Path(word).absolute())
    return word


def _check_script(words: Sequence[str]) -> None:
    """Whether the script is there that an interpreter is given first."""
    if Path(words[0]).name not in _INTERPRETERS or len(words) < 2:
        return
    script = words[1]
    if not script.startswith("-") and not Path(script).is_file():
        near = did_you_mean(
            script, (str(Path(script).parent / name) for name in _names(Path(script).parent)), most=0
        )
        raise LabError(f"command: there is no file {script!r} for {words[0]} to run{near}")


def _names(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _on_path() -> list[str]:
    return [
        name
        for folder in os.environ.get("PATH", "").split(os.pathsep)
        if folder
        for name in _names(Path(folder))
    ]


def _model_of(words: Sequence[str]) -> str | None:
    """The model that the program itself is told, where it is told in the usual way."""
    for at, word in enumerate(words):
        if word == "--model" and at + 1 < len(words):
            return words[at + 1]
        if word.startswith("--model="):
            return word.removeprefix("--model=")
    return None


@lru_cache(maxsize=64)
def _digest_of(file: str, size: int, changed: int) -> bytes:
    with open(file, "rb") as opened:
        return hashlib.file_digest(opened, "sha256").digest()


def version_of(program: Program) -> str:
    """The digest of the text, of the program's bytes, and of the files among its arguments."""
    whole = hashlib.sha256(program.text.encode())
    for word in program.argv:
        with contextlib.suppress(OSError, ValueError):
            status = os.stat(word)
            if Path(word).is_absolute() and Path(word).is_file():
                whole.update(_digest_of(word, status.st_size, status.st_mtime_ns))
    return whole.hexdigest()[:16]


class Command:
    """A program as a driver. It is started when the first trial needs it; `close()` ends what there is of it.

    Copies in other processes share nothing: each starts programs of its own.
    """

    evidence = "live"

    def __init__(self, program: Program) -> None:
        self.program = program
        self.model = program.model
        self.version = version_of(program)
        self._begin()

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._owner = 0
        self._folder: Path | None = None
        self._idle: list[Child] = []
        self._live: set[Child] = set()
        self._bridge: HttpBridge | None = None
        self._count = 0

    def __getstate__(self) -> dict[str, Any]:
        return {"program": self.program, "model": self.model, "version": self.version}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(state)
        self._begin()

    def __call__(self, task: Task, tools: Toolbox, ctx: Context) -> Transcript:
        program = self.program
        said = Said([os.environ.get(name, "") for name in program.env])
        deadline = _deadline(ctx)
        try:
            if program.dialect == "agentd":
                return self._agentd(task, tools, ctx, said, deadline)
            if program.dialect == "spawn":
                return self._spawned(task, tools, ctx, said, deadline)
            return self._persistent(task, tools, ctx, said, deadline)
        finally:
            # to the trial, where one is under way
            for text, stream in ((said.stdout(), sys.stdout), (said.stderr(), sys.stderr)):
                if text:
                    stream.write(text)

    def close(self) -> None:
        """End every program, and the server that its tools were on. A trial after that starts them again."""
        if self._owner != os.getpid():
            return
        with self._lock:
            idle, folder, bridge = self._idle, self._folder, self._bridge
            busy = self._live.difference(idle)
            self._idle, self._live, self._folder, self._bridge = [], set(), None, None
        for child in busy:
            # a thread that was left behind still waits for it
            child.kill()
        for child in idle:
            child.hang_up()
        until = time.monotonic() + LEAVE_S
        for child in idle:
            child.end(until)
        if bridge is not None:
            bridge.close()
        if folder is not None:
            remove_folder(folder)

    # ---- one process for many trials

    def _persistent(
        self, task: Task, tools: Toolbox, ctx: Context, said: Said, deadline: float
    ) -> Transcript:
        child = self._waiting(said)
        fresh = child is None
        while True:
            if child is None:
                child = self._start(said)
            kept = False
            try:
                talk = command_jsonl.Talk(child, said, strict=not fresh)
                done = talk.run(task, tools, ctx, deadline)
                kept = talk.reusable
                return done
            except command_jsonl.LeftBefore as why:
                # as one that takes a single task and goes; a fresh one is judged by what it does
                fresh = True
                said.again(str(why))
            finally:
                if kept and child in self._live:
                    self._idle.append(child)
                else:
                    self._end(child)
            child = None

    def _waiting(self, said: Said) -> Child | None:
        """A program that waits for its next task, with nothing in its folder."""
        while True:
            try:
                child = self._idle.pop()
            except IndexError:
                return None
            # what it said after its last trial is nobody's
            child.said = _nobodys
            if child.discard() and not child.gone and _emptied(child.folder, self.program.here):
                child.said = said.hear
                return child
            self._end(child)

    # ---- a process for each trial

    def _spawned(self, task: Task, tools: Toolbox, ctx: Context, said: Said, deadline: float) -> Transcript:
        child = self._start(said)
        try:
            done = command_jsonl.Talk(child, said, strict=False).run(task, tools, ctx, deadline)
            if done.stop != "driver_error":
                # it may have something to put in order
                child.leave(min(deadline, time.monotonic() + LEAVE_S))
            return done
        finally:
            self._end(child)

    def _agentd(self, task: Task, tools: Toolbox, ctx: Context, said: Said, deadline: float) -> Transcript:
        seen = command_agentd.Recorded(tools)
        with self._served(seen, said) as url:
            more = command_agentd.arguments(task, ctx, url, self._given_model())
            child: Child | None = None
            try:
                heard = command_agentd.Heard(ctx, said)
                child = self._start(said, more, hear=heard.hear, stdin=False)
                return command_agentd.run(child, heard, seen, said, deadline)
            finally:
                if child is not None:
                    self._end(child)

    def _given_model(self) -> str:
        """The model of the options; one among the program's own arguments it has already."""
        return self.program.model or "" if _model_of(self.program.argv) is None else ""

    @contextlib.contextmanager
    def _served(self, tools: Any, said: Said) -> Iterator[str]:
        with self._lock:
            self._own()
            if self._bridge is None:
                bridge = HttpBridge()
                bridge.start()
                self._bridge = bridge
            bridge = self._bridge
        address = bridge.open(tools, in_url=True)
        said.secrets.append(address.token)
        try:
            yield address.url_with_token
        finally:
            bridge.shut(address)

    # ---- starting and ending

    def _own(self) -> None:
        """What this process has of the program; what was inherited by a fork is not ours."""
        if self._owner != os.getpid():
            self._idle, self._live, self._folder, self._bridge = [], set(), None, None
            self._owner = os.getpid()
            atexit.register(self.close)

    def _start(
        self,
        said: Said,
        more: Sequence[str] = (),
        *,
        hear: Callable[[bytes], None] | None = None,
        stdin: bool = True,
    ) -> Child:
        with self._lock:
            self._own()
            if self._folder is None:
                self._folder = make_folder()
            self._count += 1
            folder = self._folder / str(self._count)
        folder.mkdir()
        env = {name: os.environ[name] for name in (*ENVIRONMENT, *self.program.env) if name in os.environ}
        try:
            child = Child(
                [*self.program.argv, *more],
                folder=folder,
                cwd=Path.cwd() if self.program.here else folder,
                env=env,
                said=hear or said.hear,
                stdin=stdin,
            )
        except OSError as error:
            folder.rmdir()
            raise LabError(f"command: {self.program.argv[0]} cannot be started: {error.strerror}") from None
        self._live.add(child)
        return child

    def _end(self, child: Child) -> None:
        child.end()
        self._live.discard(child)
        shutil.rmtree(child.folder, ignore_errors=True)


def _nobodys(chunk: bytes) -> None:
    """Takes what no trial has said."""


def _deadline(ctx: Context) -> float:
    """When the trial is out of time, as time.monotonic tells it."""
    known = getattr(ctx, "deadline", math.inf)
    wall_s = getattr(getattr(ctx, "limits", None), "wall_s", None)
    return min(known, math.inf if wall_s is None else time.monotonic() + wall_s)


def _emptied(folder: Path, here: bool) -> bool:
    """Whether a worker's folder is as empty as a trial shall find it."""
    if here:
        return True
    try:
        with os.scandir(folder) as found:
            for entry in found:
                if entry.is_dir(follow_symlinks=False):
                    shutil.rmtree(entry.path)
                else:
                    os.unlink(entry.path)
    except OSError:
        return False
    return True


__all__ = ["Command", "Program", "make", "parse", "version_of"]
