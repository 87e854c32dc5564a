"""What a recording holds: a JSON line for each call of a driver, and a line for each run that recorded.

A driver call is known by what the driver was given (`key_of`), the trial, the scaffold, the worker of that scaffold, and
a number: the n-th call of that kind in its trial. Of two lines for the same call the later one holds, so that a run that
was killed and went on, or was recorded once more into the same file, leaves one story.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from agentbench_lab.cases import Task
from agentbench_lab.drivers.context import Context
from agentbench_lab.errors import LabError, did_you_mean, shown
from agentbench_lab.transcripts import Observation, Status, Transcript, Usage
from agentbench_lab.values import canonical, digest

FORMAT = "agentbench-lab/recording/v1"
WHOLE_TRIAL = "*"
"""The worker of a line that says how a trial ended which its driver did not end: out of time, or with its process."""


class RecordedArm(Struct, frozen=True, omit_defaults=True):
    """Which driver was recorded: the arm's names, and what its rows are stamped with."""

    driver: str
    model: str | None = None
    scaffold: str = "once"
    evidence: str = "live"
    version: str = ""
    banner: str = ""


class Begun(Struct, frozen=True, omit_defaults=True, tag_field="line", tag="run"):
    """A run began to record: when (UTC), which suite and which arms."""

    format: str
    started_at: str
    stamp: str
    suite: str
    suite_digest: str
    commit: str
    arms: tuple[RecordedArm, ...]


class RecordedCall(Struct, frozen=True, omit_defaults=True):
    """One tool call, and what the agent saw: the status and a digest of the observation (empty: not compared).

    `odd` describes arguments that JSON cannot hold, which only a driver in Python can give.
    """

    name: str
    input: Any = None
    odd: str = ""
    status: Status = "ok"
    seen: str = ""


class Failure(Struct, frozen=True, omit_defaults=True):
    """A driver call that gave back no transcript. `type` is the name of the exception that a driver raised; `final` says
    of an infrastructure error that it was not tried again."""

    kind: Literal["raised", "nonsense", "budget", "timeout", "infrastructure"]
    said: str = ""
    type: str = ""
    retry_after: float | None = None
    usage: Usage | None = None
    final: bool = False


class Recorded(Struct, frozen=True, omit_defaults=True, tag_field="line", tag="call"):
    """One driver call: its identity, the tool calls it made in order, and what came of it.

    `spent` is what it told by `ctx.spend`. `cut`: the calls were too large to be kept, so that it cannot be replayed.
    """

    case: str
    key: str
    trial: int
    driver: str
    model: str | None = None
    scaffold: str = "once"
    worker: str = ""
    n: int = 1
    calls: tuple[RecordedCall, ...] = ()
    transcript: Transcript | None = None
    failure: Failure | None = None
    spent: Usage | None = None
    cut: bool = False

    @property
    def place(self) -> tuple[str, str, int, str, int]:
        """What tells it from the other calls of its arm."""
        return self.case, self.key, self.trial, self.worker, self.n


class Recording(Struct, frozen=True):
    """A file that was read: the runs that recorded into it, the calls that hold, and how many lines were damaged."""

    path: Path
    digest: str
    runs: tuple[Begun, ...]
    calls: tuple[Recorded, ...]
    damaged: int

    @property
    def drivers(self) -> tuple[str, ...]:
        """The names of the drivers that were recorded, in their order."""
        return tuple(dict.fromkeys(arm.driver for run in self.runs for arm in run.arms))


def key_of(task: Task) -> str:
    """Sixteen hex digits of the SHA-256 of what a driver reads in a task; limits and parts are not in it."""
    return digest(
        {
            "request": task.request,
            "tools": task.tools,
            "policy": task.policy,
            "history": task.history,
            "trace": task.trace,
        }
    )[:16]


def worker_of(ctx: Context) -> str:
    """The number of a scaffold's worker as text; empty for a driver that is alone."""
    return str(ctx.worker or "")


def digest_of(seen: Observation) -> str:
    """Sixteen hex digits of the SHA-256 of an observation: status, text and value."""
    return hashlib.sha256(canonical([seen.status, seen.text, seen.value])).hexdigest()[:16]


_decode = msgspec.json.Decoder(Begun | Recorded).decode


def read_recording(path: str | Path) -> Recording:
    """A recording file. A line that was cut off or damaged is left out and counted.

    Raises LabError for a file that is not there, or that is no recording.
    """
    file = Path(path)
    try:
        data = file.read_bytes()
    except FileNotFoundError:
        names = [p.name for p in file.parent.glob("*.jsonl")] if file.parent.is_dir() else []
        raise LabError(f"{path}: no such recording{did_you_mean(file.name, names, most=0)}") from None
    except OSError as error:
        raise LabError(f"{path}: cannot read the recording: {error.strerror}") from None
    lines = [line for line in data.split(b"\n") if line]
    runs: list[Begun] = []
    calls: dict[Any, Recorded] = {}
    # the run in which a trial's driver last came to an end, by arm, case and trial
    last: dict[Any, int] = {}
    ended: dict[Any, list[Any]] = {}
    damaged = 0
    for line in lines:
        try:
            found = _decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            damaged += 1
            continue
        if isinstance(found, Begun):
            if found.format != FORMAT:
                raise LabError(f"{shown(path)}: format {found.format!r} is not {FORMAT!r}")
            runs.append(found)
        else:
            arm = found.driver, found.model, found.scaffold
            trial = arm, found.case, found.trial
            if found.worker == WHOLE_TRIAL and found.scaffold == "once" and last.get(trial, 0) < len(runs):
                # in this run the driver did not come to its end; what it did in an earlier one is another story
                for place in ended.pop(trial, ()):
                    calls.pop(place, None)
            elif found.worker != WHOLE_TRIAL:
                last[trial] = len(runs)
                ended.setdefault(trial, []).append((arm, found.place))
            calls[arm, found.place] = found
    if not runs:
        raise LabError(f"{shown(path)}: is no recording; `run --record FILE` makes one")
    return Recording(file, hashlib.sha256(data).hexdigest(), tuple(runs), tuple(calls.values()), damaged)


def numbers(trials: Iterable[int]) -> str:
    """Trials in words: `1 to 4, 7`."""
    runs: list[list[int]] = []
    for trial in sorted(set(trials)):
        if runs and trial == runs[-1][1] + 1:
            runs[-1][1] = trial
        else:
            runs.append([trial, trial])
    return ", ".join(f"{a}" if a == b else f"{a} to {b}" for a, b in runs)
