"""The driver `replay:FILE`: plays back what a run recorded, on the world as it is today.

It makes the calls that were recorded, so that the ledger is fresh and today's grader judges what they come to, and gives
back the transcript and the usage of that day. Where an observation is not the recorded one, a note says that the world
has changed since. What was never recorded is never made up: such a trial is refused before the run where that can be
known, else excluded.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from agentbench_lab.cases import Case, Task, project_root
from agentbench_lab.drivers.context import Context
from agentbench_lab.drivers.faults import LONGEST_WAIT_S, InfrastructureError, Nonsense, OutOfTime
from agentbench_lab.drivers.recording import (
    WHOLE_TRIAL,
    Begun,
    Failure,
    Recorded,
    RecordedArm,
    Recording,
    digest_of,
    key_of,
    numbers,
    read_recording,
    worker_of,
)
from agentbench_lab.errors import LabError, counted, did_you_mean, shown
from agentbench_lab.transcripts import Transcript
from agentbench_lab.worlds.toolbox import BudgetSpent, Toolbox


def make(text: str) -> Replay:
    """The driver of `replay:FILE`, or of `replay:FILE#DRIVER` where several drivers were recorded into one file.

    FILE is a path, or the bare name of a recording under data/recordings.
    """
    if not text:
        raise LabError("replay needs its recording: replay:FILE, where FILE was made by `run --record FILE`")
    path, name = (text, "") if Path(text).exists() else _divided(text)
    if not Path(path).exists() and len(Path(path).parts) == 1:
        # a bare name is one of the recordings that are kept
        own = project_root() / "data" / "recordings" / f"{path.removesuffix('.jsonl')}.jsonl"
        path = str(own) if own.is_file() else path
    recording = read_recording(path)
    if not name:
        if len(recording.drivers) > 1:
            several = ", ".join(recording.drivers)
            raise LabError(
                f"{shown(path)} holds several drivers: replay:{path}#NAME, with NAME one of {several}"
            )
        name = recording.drivers[0]
    elif name not in recording.drivers:
        raise LabError(
            f"{shown(path)}: no recording of driver {name!r}{did_you_mean(name, recording.drivers)}"
        )
    return Replay(recording, name)


def _divided(text: str) -> tuple[str, str]:
    path, _, name = text.partition("#")
    return path, name


class Replay:
    """The recorded calls of one driver (`replay` for an arm: of one scaffold, with the case of each trial's seed)."""

    evidence = "replayed"

    def __init__(
        self, recording: Recording, name: str, scaffold: str = "", cases: Mapping[str, str] | None = None
    ) -> None:
        self._recording, self._name, self._scaffold = recording, name, scaffold
        self._cases = dict(cases or {})
        arms = [arm for run in recording.runs for arm in run.arms if arm.driver == name]
        self.model = arms[-1].model
        self.version = recording.digest[:16]
        self.banner = _banner(recording, arms[-1])
        self._lock = threading.Lock()
        self._counted: Counter[tuple[str, str, str]] = Counter()
        # a model that the same driver was given later is another arm
        self._calls = {
            (call.key, call.trial, call.scaffold, call.worker, call.n, call.case): call
            for call in recording.calls
            if call.driver == name and call.model == self.model
        }
        self._nameless = {key[:-1]: call for key, call in self._calls.items()}

    @property
    def name(self) -> str:
        return f"replay:{self._recording.path}#{self._name}"

    def __reduce__(self) -> tuple[Any, ...]:
        # the file is read again where it is needed: a worker is not sent all of it
        recording = self._recording
        return _again, (
            str(recording.path.absolute()),
            recording.digest,
            self._name,
            self._scaffold,
            self._cases,
        )

    def for_arm(self, scaffold: str, trials: Sequence[tuple[Case, int]], cases: Mapping[str, str]) -> Replay:
        """The driver for one arm of a run, counting from the start. `cases` is the case id by trial seed.

        Raises LabError when a trial was never recorded, as far as that can be known before it is run.
        """
        self._check(scaffold, trials)
        return Replay(self._recording, self._name, scaffold, cases)

    def __call__(self, task: Task, tools: Toolbox, ctx: Context) -> Transcript:
        seed = ctx.trial_seed
        worker, key = worker_of(ctx), key_of(task)
        with self._lock:
            self._counted[seed, worker, key] += 1
            n = self._counted[seed, worker, key]
        case = self._cases.get(seed, "")
        found = self._find(key, ctx.trial, worker, n, case)
        if found is None:
            who = f"{case or key}, trial {ctx.trial}" + (f", worker {worker}" if worker else "")
            again = f", call {n} of its kind" if n > 1 else ""
            raise InfrastructureError(f"no recording of {who}{again}", final=True)
        return _played(found, tools, ctx)

    def _find(self, key: str, trial: int, worker: str, n: int, case: str) -> Recorded | None:
        scaffold = self._scaffold or "once"
        for who, number in ((worker, n), (WHOLE_TRIAL, 1)):
            place = (key, trial, scaffold, who, number)
            found = self._calls.get((*place, case)) or self._nameless.get(place)
            if found is not None:
                return found
        # how a trial under a scaffold ended is known of the trial alone
        return next(
            (
                call
                for call in self._calls.values()
                if case
                and call.worker == WHOLE_TRIAL
                and (call.case, call.trial, call.scaffold) == (case, trial, scaffold)
            ),
            None,
        )

    def _check(self, scaffold: str, trials: Sequence[tuple[Case, int]]) -> None:
        where = shown(self._recording.path)
        scaffolds = list(dict.fromkeys(call.scaffold for call in self._calls.values()))
        if scaffold not in scaffolds:
            raise LabError(
                f"{where}: nothing recorded under scaffold {scaffold!r}{did_you_mean(scaffold, scaffolds)}"
            )
        calls = [call for call in self._calls.values() if call.scaffold == scaffold]
        by_key: dict[str, set[int]] = {}
        by_case: dict[str, set[int]] = {}
        for call in calls:
            by_key.setdefault(call.key, set()).add(call.trial)
            by_case.setdefault(call.case, set()).add(call.trial)
        for case, trial in trials:
            known = (
                by_key.get(key_of(case.task), set()) if scaffold == "once" else by_case.get(case.id, set())
            )
            if trial in known:
                continue
            if known:
                raise LabError(
                    f"{where}: no recording of trial {trial} of {case.id!r}; there is trial {numbers(known)}"
                )
            if case.id in by_case:
                raise LabError(
                    f"{where}: {case.id!r} is another case now than the one that was recorded (request, tools, "
                    "policy or trace have changed)"
                )
            raise LabError(f"{where}: no recording of {case.id!r}{did_you_mean(case.id, by_case, most=6)}")


def _again(path: str, digest: str, name: str, scaffold: str, cases: Mapping[str, str]) -> Replay:
    recording = read_recording(path)
    if recording.digest != digest:
        raise LabError(f"{path}: the recording has changed while it was replayed")
    return Replay(recording, name, scaffold, cases)


def _played(found: Recorded, tools: Toolbox, ctx: Context) -> Transcript:
    if found.cut:
        raise InfrastructureError(
            f"no recording of {found.case}, trial {found.trial}: its calls were too large to be kept",
            final=True,
        )
    changed = []
    for number, call in enumerate(found.calls, start=1):
        seen = tools.call(call.name, _Odd(call.odd) if call.odd else call.input)
        if call.seen and digest_of(seen) != call.seen:
            changed.append(f"call {number} ({call.name})")
    if found.spent is not None:
        ctx.spend(found.spent)
    if found.failure is not None:
        raise _raised(found.failure)
    transcript = found.transcript or Transcript()
    if not changed:
        return transcript
    more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
    note = f"the world has changed since this was recorded: {changed[0]}{more} gave another observation"
    return msgspec.structs.replace(transcript, notes=(*transcript.notes, note))


class _Odd:
    """Arguments that JSON cannot hold: they look like those of that day, and are refused like them."""

    def __init__(self, looks: str) -> None:
        self._looks = looks

    def __repr__(self) -> str:
        return self._looks


def _raised(failure: Failure) -> Exception:
    """The error that ended the recorded call, as one that ends this call in the same way."""
    if failure.kind == "infrastructure":
        # what was waited for then is not waited for again
        never = failure.final or (failure.retry_after is not None and failure.retry_after > LONGEST_WAIT_S)
        return InfrastructureError(failure.said, retry_after=0.0, usage=failure.usage, final=never)
    if failure.kind == "budget":
        return BudgetSpent(failure.said)
    if failure.kind == "timeout":
        return OutOfTime(failure.said)
    if failure.kind == "nonsense":
        return Nonsense(failure.said)
    error: Exception = type(failure.type or "Exception", (Exception,), {})(failure.said)
    return error


def _banner(recording: Recording, arm: RecordedArm) -> str:
    runs: list[Begun] = [run for run in recording.runs if arm in run.arms]
    days = sorted({run.started_at[:10] for run in runs})
    when = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    suites = ", ".join(dict.fromkeys(run.suite for run in runs))
    who = arm.driver + (f" (model {arm.model})" if arm.model and arm.model not in arm.driver else "")
    text = f"replayed: {who} on {suites}, recorded {when}"
    if arm.evidence != "live":
        text += f", {arm.evidence} there"
    if recording.damaged:
        text += f"; left out: {counted(recording.damaged, 'damaged line')} of the recording"
    return text + (f"; {arm.banner}" if arm.banner else "")
