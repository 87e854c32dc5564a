"""Recording: each call of a driver becomes a line of a file, from which the driver `replay` plays it back.

The file is only added to, a whole line at a time, so that a run that is killed keeps what was recorded, and several
processes can write side by side.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import os
import threading
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from agentbench_lab.cases import Case, Task
from agentbench_lab.drivers import keys
from agentbench_lab.drivers.context import Context
from agentbench_lab.drivers.faults import InfrastructureError, Nonsense, OutOfTime
from agentbench_lab.drivers.loading import Loaded
from agentbench_lab.drivers.recording import (
    WHOLE_TRIAL,
    Begun,
    Failure,
    Recorded,
    RecordedCall,
    digest_of,
    key_of,
    read_recording,
    worker_of,
)
from agentbench_lab.drivers.returned import as_transcript
from agentbench_lab.errors import LabError, shown
from agentbench_lab.results.dialogues import kept_dialogue
from agentbench_lab.results.product import Arm
from agentbench_lab.results.redaction import shapes
from agentbench_lab.running.trial import Record, kept_note
from agentbench_lab.transcripts import Observation, Transcript, Usage
from agentbench_lab.values import NotJson, plain
from agentbench_lab.worlds.toolbox import TEXT_LIMIT, BudgetSpent, Toolbox, described

CALLS_LIMIT = 2_000_000
"""Bytes of JSON that the arguments of one driver call's tool calls may have together."""
_encode = msgspec.json.Encoder().encode
_UNKNOWN = Usage()


class RecordFile:
    """A recording that is written to: opened when the first line comes, in whichever process that is."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._handle: int | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return RecordFile, (self.path,)

    def add(self, line: Begun | Recorded) -> None:
        """Hand one line to the system. Raises OSError when it did not get there whole."""
        text = _encode(keys.without_in(line)).decode()
        data = shapes(text).encode() + b"\n"
        with self._lock:
            if self._handle is None:
                self._handle = _opened(self.path)
            written = os.write(self._handle, data)
            if written < len(data):
                # what follows begins a line of its own
                os.write(self._handle, b"\n")
                raise OSError(28, "only a part of the line was taken")

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            if self._handle is not None:
                os.close(self._handle)
                self._handle = None


def _opened(path: Path) -> int:
    """The file, to be added to; what a killed writer left of a line is ended."""
    handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
    size = os.fstat(handle).st_size
    if size and os.pread(handle, 1, size - 1) != b"\n":
        os.write(handle, b"\n")
    return handle


def record_asked(record: str | Path, executor: Any) -> RecordFile | None:
    """The file to record into, or None. LabError when it holds something else, or lies where no worker can write."""
    if not record:
        return None
    path = Path(record).absolute()
    if isinstance(executor, str) and executor.startswith("dask:"):
        raise LabError(
            "--record writes where the trials run: not on a cluster that is elsewhere (dask:ADDRESS)"
        )
    if path.is_dir() or not path.parent.is_dir():
        raise LabError(
            f"{shown(path)}: cannot record there: {'a folder' if path.is_dir() else 'no such folder'}"
        )
    if path.exists() and path.stat().st_size:
        read_recording(path)
    return RecordFile(path)


class Tape:
    """Where one arm is recorded, and how the calls of its trials are counted. `cases` is the case id by trial seed."""

    def __init__(self, file: RecordFile, driver: Loaded, arm: Arm, cases: Mapping[str, str]) -> None:
        self.file, self.driver, self.arm, self.cases = file, driver, arm, cases
        self._lock = threading.Lock()
        self._counted: Counter[tuple[str, str, str]] = Counter()

    def __reduce__(self) -> tuple[Any, ...]:
        return Tape, (self.file, self.driver, self.arm, self.cases)

    def begin(self, task: Task, tools: Toolbox, ctx: Context) -> _Take:
        """A driver call begins: the toolbox is listened to from now on."""
        seed, worker, key = ctx.trial_seed, worker_of(ctx), key_of(task)
        with self._lock:
            self._counted[seed, worker, key] += 1
            n = self._counted[seed, worker, key]
        identity = Recorded(
            self.cases.get(seed, ""),
            key,
            ctx.trial,
            self.arm.driver,
            self.arm.model,
            self.arm.scaffold,
            worker,
            n,
        )
        return _Take(self.file, identity, tools, ctx)


class _Take:
    """One driver call while it is recorded."""

    def __init__(self, file: RecordFile, identity: Recorded, tools: Toolbox, ctx: Context) -> None:
        self._file, self._identity, self._tools, self._ctx = file, identity, tools, ctx
        self._before = ctx.spent
        self._heard: list[RecordedCall] = []
        tools.listener = self._hear

    def _hear(self, name: str, input: Any, seen: Observation) -> None:
        self._heard.append(_heard(name, input, seen))

    def done(self, returned: Any) -> Transcript:
        """What the driver gave back, checked and written. Raises Nonsense for what is no transcript."""
        try:
            transcript = as_transcript(returned)
        except Nonsense as error:
            self.failed(error)
            raise
        self._write(transcript, None)
        return transcript

    def failed(self, error: BaseException) -> None:
        """The driver raised an error. One from outside (a limit, Ctrl-C) is not its own and leaves no line, and neither does
        a mistake of the user's, which may stop the whole run."""
        if isinstance(error, Exception | SystemExit) and not isinstance(error, LabError):
            self._write(None, _failure(error))
        else:
            self._tools.listener = None

    def _write(self, transcript: Transcript | None, failure: Failure | None) -> None:
        self._tools.listener = None
        if self._tools.over:
            # left behind at its limit: the trial has ended without it
            return
        calls = tuple(self._heard)
        cut = len(_encode(calls)) > CALLS_LIMIT
        line = msgspec.structs.replace(
            self._identity,
            calls=() if cut else calls,
            transcript=None
            if transcript is None
            else msgspec.structs.replace(transcript, messages=kept_dialogue(transcript.messages)),
            failure=failure,
            spent=_since(self._before, self._ctx.spent),
            cut=cut,
        )
        try:
            self._file.add(line)
        except OSError as error:
            raise InfrastructureError(f"the recording cannot be written: {error.strerror}") from None


def recorded(file: RecordFile, driver: Loaded, arm: Arm, cases: Mapping[str, str]) -> Loaded:
    """The driver, each of whose calls is recorded; nothing else of it changes."""
    tape = Tape(file, driver, arm, cases)
    native = inspect.iscoroutinefunction(driver.function)
    function: Any = functools.partial(_play_async if native else _play, tape)
    function.behind = (driver.function,)
    return dataclasses.replace(driver, function=function, ladder_shaped=False)


def _play(tape: Tape, task: Task, tools: Toolbox, ctx: Context) -> Any:
    take = tape.begin(task, tools, ctx)
    try:
        returned = tape.driver.start(task, tools, ctx)
    except BaseException as error:
        take.failed(error)
        raise
    if type(returned) is not Transcript and inspect.isawaitable(returned):
        return _awaited(take, returned)
    return take.done(returned)


async def _play_async(tape: Tape, task: Task, tools: Toolbox, ctx: Context) -> Transcript:
    return await _awaited(tape.begin(task, tools, ctx), tape.driver.start(task, tools, ctx))


async def _awaited(take: _Take, returned: Any) -> Transcript:
    try:
        given = await returned
    except BaseException as error:
        take.failed(error)
        raise
    return take.done(given)


def ended_without(file: RecordFile, case: Case, record: Record) -> None:
    """Note how a trial ended that its driver may not have ended itself: no line of the driver's says so."""
    last = record.transcript
    if last.stop not in ("timeout", "driver_error"):
        return
    said = last.notes[-1] if last.notes else ""
    arm = record.row.arm
    alone = arm.scaffold == "once"
    calls = (
        tuple(RecordedCall(row.name, row.input, status=row.status) for row in record.ledger) if alone else ()
    )
    cut = len(_encode(calls)) > CALLS_LIMIT
    failure = Failure("timeout" if last.stop == "timeout" else "nonsense", said)
    spent = record.attempts[-1].usage
    line = Recorded(
        case.id,
        key_of(case.task),
        record.row.trial,
        arm.driver,
        arm.model,
        arm.scaffold,
        WHOLE_TRIAL,
        1,
        () if cut else calls,
        None,
        failure,
        None if spent == _UNKNOWN else spent,
        cut,
    )
    file.add(line)


def _heard(name: str, input: Any, seen: Observation) -> RecordedCall:
    try:
        given = plain(input)
    except NotJson:
        return RecordedCall(name, odd=described(input, TEXT_LIMIT), status=seen.status)
    return RecordedCall(name, given, status=seen.status, seen=digest_of(seen))


def _failure(error: BaseException) -> Failure:
    try:
        said = kept_note(str(error))
    except Exception:
        said = "(an error that cannot be printed)"
    if isinstance(error, InfrastructureError):
        after = error.retry_after
        sound = isinstance(after, int | float) and 0 <= after < float("inf")
        usage = error.usage if isinstance(error.usage, Usage) else None
        final = bool(getattr(error, "final", False))
        return Failure(
            "infrastructure",
            said,
            retry_after=float(after) if sound and after is not None else None,
            usage=usage,
            final=final,
        )
    if isinstance(error, BudgetSpent):
        return Failure("budget", said)
    if isinstance(error, Nonsense):
        return Failure("nonsense", said)
    if isinstance(error, OutOfTime):
        return Failure("timeout", kept_note(str(error.notes[-1])) if error.notes else "")
    return Failure("raised", said, type(error).__name__)


def _since(before: Usage, after: Usage) -> Usage | None:
    """What was spent between; None where nothing is known of it."""
    if after is before or after == before:
        return None
    if before == _UNKNOWN:
        return after
    figures: dict[str, Any] = {}
    for name in Usage.__struct_fields__:
        a, b = getattr(before, name), getattr(after, name)
        figures[name] = b if name == "estimated" else None if a is None or b is None else b - a
    return Usage(**figures)
