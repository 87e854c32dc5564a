"""The life of one trial: a fresh world, the driver under its limits, the evidence, the grade."""

from __future__ import annotations

import asyncio
import inspect
import time
import traceback
from collections.abc import Awaitable
from typing import Any

import msgspec
from msgspec import Struct

from agentbench_lab.cases import Call, Case, Limits, Task
from agentbench_lab.drivers.base import Context, Loaded, Nonsense, as_transcript
from agentbench_lab.grading import Evidence, Grade, grade
from agentbench_lab.grading.grade import excluded
from agentbench_lab.results.product import Arm, ProductRow, product_row
from agentbench_lab.running.plan import Spec
from agentbench_lab.transcripts import Transcript
from agentbench_lab.values import plain
from agentbench_lab.worlds.toolbox import BudgetSpent, LedgerRow, Toolbox, World

NOTE_LIMIT = 500
TRACEBACK_LIMIT = 8_000
MESSAGES_LIMIT = 200_000


class Record(Struct, frozen=True, gc=False):
    """All that is kept of one trial: the product row, and what has no place in it (texts, clocks, dialogue)."""

    place: tuple[int, int, int]
    row: ProductRow
    seed: str
    transcript: Transcript
    ledger: tuple[LedgerRow, ...]
    wall_s: float
    traceback: str = ""


class Job:
    """One trial while it runs. `toolbox` can be closed from outside when the trial is out of time."""

    def __init__(
        self,
        spec: Spec,
        driver: Loaded,
        arm: Arm,
        world: World,
        *,
        limits: Limits,
        stamp: str,
        strictness: str,
    ) -> None:
        case = spec.case
        own = case.task.limits
        self.spec = spec
        self.driver = driver
        self.arm = arm
        self.stamp = stamp
        self.strictness = strictness
        self.wall_s = limits.wall_s if own.wall_s is None else own.wall_s
        calls = limits.tool_calls if own.tool_calls is None else own.tool_calls
        self.toolbox = Toolbox(world.fork(), case.task.tools, tool_calls=calls)
        # a trace holds arguments that a driver could change: it gets copies, and the grade reads the originals
        self.kept = (
            msgspec.structs.replace(case.task, goals=world.goals(case.task.tools))
            if case.task.trace
            else case.task
        )
        self.task = _private(self.kept) if case.task.trace else self.kept
        self.started = 0.0

    def run(self) -> Record:
        """Run the driver and judge what came of it; never raises for what the driver did."""
        self.started = time.perf_counter()
        trace = ""
        try:
            transcript = self._drive()
        except BudgetSpent as spent:
            transcript = Transcript(terminated=False, stop="budget", notes=(str(spent),))
        except _OutOfTime:
            transcript = self._out_of_time()
        except Nonsense as error:
            transcript = Transcript(terminated=False, stop="driver_error", notes=(_kept(str(error)),))
        except BaseException as error:
            transcript, trace = _crashed(error)
        wall_s = time.perf_counter() - self.started
        ledger = self.toolbox.close()
        if self.toolbox.spent and transcript.stop != "budget":
            transcript = msgspec.structs.replace(transcript, terminated=False, stop="budget")
        return self._record(transcript, ledger, wall_s, trace)

    def abandon(self) -> Record:
        """The record of a trial that is left behind at its limit: what it did so far, judged as `timeout`."""
        ledger = self.toolbox.close()
        return self._record(self._out_of_time(), ledger, time.perf_counter() - self.started, "")

    def _drive(self) -> Transcript:
        context = Context(self.toolbox, self.task, seed=self.spec.seed, trial=self.spec.trial)
        returned = self.driver.start(self.task, self.toolbox, context)
        if inspect.isawaitable(returned):
            returned = asyncio.run(_within(returned, self.wall_s))
        return _ended(as_transcript(returned), self.toolbox)

    def _out_of_time(self) -> Transcript:
        note = f"out of time after {self.wall_s:g} s" if self.wall_s is not None else "out of time"
        return Transcript(terminated=False, stop="timeout", notes=(note,))

    def _record(
        self, transcript: Transcript, ledger: tuple[LedgerRow, ...], wall_s: float, trace: str
    ) -> Record:
        spec, case = self.spec, self.spec.case
        evidence = collect(case, self.kept, transcript, ledger, self.toolbox)
        verdict = _judge(case, transcript, evidence, self.strictness)
        row = product_row(
            case, self.kept, self.arm, spec.trial, self.stamp, self.strictness, transcript, evidence, verdict
        )
        return Record(spec.place, row, spec.seed, transcript, ledger, wall_s, trace)


def collect(
    case: Case, task: Task, transcript: Transcript, ledger: tuple[LedgerRow, ...], toolbox: Toolbox
) -> Evidence:
    """The evidence for the grade: the ledger, and of each claim whether it can bind at all."""
    registry, declared = toolbox.registry, task.tools
    return Evidence(
        ledger,
        tuple([registry.problems(call.name, call.input, declared) for call in transcript.calls]),
        tuple(
            [
                registry.problems(call.name, call.input, declared)
                for call in transcript.candidate_results or ()
            ]
        ),
        task.goals,
    )


def _judge(case: Case, transcript: Transcript, evidence: Evidence, strictness: str) -> Grade:
    try:
        return grade(case, transcript, evidence, strictness=strictness)
    except Exception as error:
        # a fault of ours must not count against the driver, nor end the run
        return excluded(f"the grader failed: {type(error).__name__}: {error}", "grader")


def _private(task: Task) -> Task:
    trace = tuple(Call(call.name, plain(call.input)) for call in task.trace)
    return msgspec.structs.replace(task, trace=trace)


class _OutOfTime(TimeoutError):
    """Our own limit, told apart from a TimeoutError that the driver raised."""


async def _within(returned: Awaitable[Any], wall_s: float | None) -> Any:
    task = asyncio.ensure_future(returned)
    done, _ = await asyncio.wait({task}, timeout=wall_s)
    if not done:
        task.cancel()
        raise _OutOfTime
    return task.result()


def _ended(transcript: Transcript, toolbox: Toolbox) -> Transcript:
    """What the control tools were told counts like what the transcript says."""
    ending = toolbox.ending
    if not ending.used and not transcript.messages:
        return transcript
    changes: dict[str, Any] = {}
    if ending.refused is not None:
        changes["refused"] = True
        if not transcript.notes and ending.refused:
            changes["notes"] = (ending.refused,)
    if ending.answered and transcript.answer is None:
        changes["answer"] = ending.answer
        changes["status"] = transcript.status or ending.status
    if ending.goal is not None and transcript.inferred_goal is None:
        changes["inferred_goal"] = ending.goal
    if ending.reject:
        changes["refused"] = changes["reject"] = True
    if ending.ambiguous is not None and transcript.ambiguous_goals is None:
        changes["refused"], changes["ambiguous_goals"] = True, ending.ambiguous
    if transcript.messages and len(msgspec.json.encode(transcript.messages)) > MESSAGES_LIMIT:
        changes["messages"] = ("the dialogue is longer than what is kept",)
    return msgspec.structs.replace(transcript, **changes) if changes else transcript


def _crashed(error: BaseException) -> tuple[Transcript, str]:
    try:
        said = str(error)
    except Exception:
        said = "(an error that cannot be printed)"
    try:
        trace = "".join(traceback.format_exception(error))
    except Exception:
        trace = ""
    note = _kept(f"raised {type(error).__name__}: {said}")
    trace = trace[-TRACEBACK_LIMIT:].encode(errors="replace").decode()
    return Transcript(terminated=False, stop="driver_error", notes=(note,)), trace


def _kept(note: str) -> str:
    """As much of a note as is kept, with nothing in it that no file can hold."""
    return note[:NOTE_LIMIT].encode(errors="replace").decode()
