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
import errno
import math
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from agentbench_lab.cases import Task
from agentbench_lab.drivers import command_agentd, command_jsonl, keys
from agentbench_lab.drivers.child import LEAVE_S, Child, make_folder, remove_folder
from agentbench_lab.drivers.command_asked import Program, environment_of, model_of, parse, version_of
from agentbench_lab.drivers.command_said import Said
from agentbench_lab.drivers.context import Context
from agentbench_lab.drivers.faults import InfrastructureError, Misconfigured
from agentbench_lab.errors import LabError
from agentbench_lab.transcripts import Transcript
from agentbench_lab.worlds.mcp_server import HttpBridge
from agentbench_lab.worlds.toolbox import Toolbox

_NAMED_WRONG = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EACCES, errno.EPERM, errno.ENOEXEC)


def make(text: str) -> Command:
    """The driver of `command:TEXT`, or of `command[OPTIONS]:TEXT` (then TEXT begins at the bracket). Raises LabError."""
    return Command(parse(text))


_begun: set[Command] = set()
"""Drivers of which there is something to be closed."""


@lru_cache(maxsize=1)
def _close_at_exit() -> None:
    """Close what was begun when this process ends; asked for once, whatever the number of drivers and of their runs."""
    atexit.register(_close_all)


def _close_all() -> None:
    for each in tuple(_begun):
        each.close()


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

    @property
    def name(self) -> str:
        text = self.program.text
        return f"command{text if text.startswith('[') else f':{text}'}"

    @property
    def handed_on(self) -> tuple[str, ...]:
        """The variables that it is handed on in secret."""
        return self.program.env

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._secrets: keys.Secrets = ()
        # wherever it is: this may be another process
        self._know()
        self._owner = 0
        self._folder: Path | None = None
        self._idle: list[Child] = []
        self._live: set[Child] = set()
        self._bridge: HttpBridge | None = None
        self._count = 0

    def _know(self) -> keys.Secrets:
        """All that its programs were handed on since it was closed; the variables may have other values by now."""
        keys.remember(*self.program.env)
        now = keys.of_variables(*self.program.env)
        with self._lock:
            self._secrets = keys.together(self._secrets, now)
            return self._secrets

    def __getstate__(self) -> dict[str, Any]:
        return {"program": self.program, "model": self.model, "version": self.version}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(state)
        self._begin()

    def __call__(self, task: Task, tools: Toolbox, ctx: Context) -> Transcript:
        program = self.program
        said = Said(self._know())
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
            self._owner = 0
            self._secrets = ()
            _begun.discard(self)
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
                if not (kept and self._put_by(child)):
                    self._end(child)
            child = None

    def _waiting(self, said: Said) -> Child | None:
        """A program that waits for its next task, with nothing in its folder."""
        while True:
            with self._lock:
                self._own()
                if not self._idle:
                    return None
                child = self._idle.pop()
            # what it said after its last trial is nobody's
            child.said = _nobodys
            if child.discard() and not child.gone and _emptied(child.folder, self.program.here):
                child.said = said.hear
                return child
            self._end(child)

    def _put_by(self, child: Child) -> bool:
        """Keep a program for its next task, unless it was closed meanwhile."""
        with self._lock:
            if child in self._live:
                self._idle.append(child)
            return child in self._live

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
        seen = command_agentd.Recorded(tools, said)
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
        return self.program.model or "" if model_of(self.program.argv) is None else ""

    @contextlib.contextmanager
    def _served(self, tools: Any, said: Said) -> Iterator[str]:
        with self._lock:
            self._own()
            if self._bridge is None:
                bridge = HttpBridge()
                try:
                    bridge.start()
                except (OSError, RuntimeError, LabError) as error:
                    raise InfrastructureError(f"command: its tools cannot be served: {error}") from None
                self._bridge = bridge
            bridge = self._bridge
        address = bridge.open(tools, in_url=True)
        said.token = address.token
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
            _begun.add(self)
            _close_at_exit()

    def _start(
        self,
        said: Said,
        more: Sequence[str] = (),
        *,
        hear: Callable[[bytes], None] | None = None,
        stdin: bool = True,
    ) -> Child:
        try:
            with self._lock:
                self._own()
                if self._folder is None:
                    self._folder = make_folder()
                self._count += 1
                folder, live = self._folder / str(self._count), self._live
            folder.mkdir()
            cwd = Path.cwd() if self.program.here else folder
        except OSError as error:
            raise InfrastructureError(f"command: no folder to run in: {error.strerror}") from None
        try:
            child = Child(
                [*self.program.argv, *more],
                folder=folder,
                cwd=cwd,
                env=environment_of(self.program),
                said=hear or said.hear,
                stdin=stdin,
            )
        except OSError as error:
            shutil.rmtree(folder, ignore_errors=True)
            raise _not_started(self.program, error) from None
        with self._lock:
            if self._live is live:
                live.add(child)
                return child
        child.end()
        raise InfrastructureError("command: it was closed while the program began")

    def _end(self, child: Child) -> None:
        child.end()
        with self._lock:
            self._live.discard(child)
        shutil.rmtree(child.folder, ignore_errors=True)


def _not_started(program: Program, error: OSError) -> Exception:
    """Whose fault it is that a program cannot be started: the user's who named it, its own that takes its task as an
    argument, or else this machine's, which is short of processes, of files, of memory."""
    why = f"command: {program.argv[0]} cannot be started: {error.strerror}"
    if error.errno == errno.E2BIG:
        return LabError(why)
    if error.filename == program.argv[0] and error.errno in _NAMED_WRONG:
        return Misconfigured(why)
    return InfrastructureError(why)


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


__all__ = ["Command", "make"]
