"""The life of one trial: a fresh world, the driver under its limits, the evidence, the grade."""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
import time
import traceback
from collections.abc import Awaitable, Callable, Sequence
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import Struct

from agentbench_lab.cases import Call, Case, Limits, Task
from agentbench_lab.conversation import Conversation, Talk
from agentbench_lab.drivers.context import Context
from agentbench_lab.drivers.faults import (
    LONGEST_WAIT_S,
    InfrastructureError,
    Misconfigured,
    Nonsense,
    OutOfTime,
)
from agentbench_lab.drivers.loading import Loaded
from agentbench_lab.drivers.returned import as_transcript, ended, only_in
from agentbench_lab.errors import LabError
from agentbench_lab.grading import Evidence, Grade, grade
from agentbench_lab.grading.grade import excluded
from agentbench_lab.grading.heard import claimed
from agentbench_lab.results.dialogues import kept_dialogue
from agentbench_lab.results.product import Arm, ProductRow, product_row
from agentbench_lab.results.redaction import redact
from agentbench_lab.running.checkpoint import MOST_ATTEMPTS, Attempt, Keeper
from agentbench_lab.running.output import Said, spoken_by
from agentbench_lab.running.plan import Spec
from agentbench_lab.scaffolds import came_of, outcome_of
from agentbench_lab.transcripts import Transcript, Usage, Worker
from agentbench_lab.values import plain
from agentbench_lab.worlds.seen import Seen
from agentbench_lab.worlds.toolbox import BudgetSpent, LedgerRow, Toolbox, World

NOTE_LIMIT = 500
TRACEBACK_LIMIT = 8_000
NO_LIMIT = float("inf")
_UNKNOWN = Usage()
_LATE_S = 0.05
"""How much later than asked an event loop wakes a trial before something must have blocked it."""


class Record(Struct, frozen=True, gc=False):
    """All that is kept of one trial: the product row, and what has no place in it (texts, clocks, dialogue).

    The usage of `transcript` is that of all attempts together; `working_s` leaves out what was waited for.
    """

    place: tuple[int, int, int]
    row: ProductRow
    seed: str
    transcript: Transcript
    ledger: tuple[LedgerRow, ...]
    wall_s: float
    working_s: float
    attempts: tuple[Attempt, ...]
    traceback: str = ""
    stdout: str = ""
    stderr: str = ""
    width: int = 1
    talk: Talk | None = None


class Retries(Struct, frozen=True):
    """How often and how patiently an infrastructure error is tried again: exponential backoff with jitter, seconds."""

    times: int = 3
    wait_initial_s: float = 0.5
    wait_max_s: float = 60.0
    wait_jitter_s: float = 1.0


class _Tried(Struct):
    """What one attempt came to. `again` is the error that may be tried again; `crashed` that the driver broke, where
    a durable trial goes on; `lost` as of an `Attempt`."""

    transcript: Transcript
    usage: Usage
    ledger: tuple[LedgerRow, ...]
    wall_s: float
    waited_s: float
    trace: str
    again: InfrastructureError | None
    workers: tuple[Worker, ...] = ()
    crashed: bool = False
    lost: bool | None = False


class Job:
    """One trial while it runs, attempt by attempt.

    `deadline` is when the attempt under way is out of time (by time.monotonic; infinite between attempts).
    `watch`, when set, is told the limit of each attempt as it begins, and None while the trial waits. `turn`, when set,
    is taken to judge: of many trials that end at once each is judged and its successor begun, before the next is.
    `lost` says that the world is gone with the process that ran the trial. `keeper` keeps the steps of a durable one,
    which may have begun in a process that is no more.
    """

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
        retries: Retries = Retries(),  # noqa: B008 - frozen
        user: Loaded | None = None,
        keeper: Keeper | None = None,
    ) -> None:
        case = spec.case
        self.spec = spec
        self.driver = driver
        self.arm = arm
        self.stamp = stamp
        self.strictness = strictness
        self.limits = _limits_of(case.task.limits, limits)
        self.deadline = NO_LIMIT
        self.watch: Callable[[float | None], None] | None = None
        self.turn: asyncio.Lock | None = None
        self._retries = retries
        self._user = user
        self._conversation: Conversation | None = None
        self._left_s = 0.0
        self._world = world
        # a trace holds arguments that a driver could change: it gets copies, and the grade reads the originals
        self._kept = (
            msgspec.structs.replace(case.task, goals=world.goals(case.task.tools))
            if case.task.trace
            else case.task
        )
        self.lost = False
        self._over = False
        self._keeper = keeper
        self._earlier = [_before(attempt) for attempt in keeper.attempts] if keeper is not None else []
        self._before_s = sum(tried.wall_s for tried in self._earlier)
        self._said = Said()
        self._started = self._began = time.perf_counter()
        self._fresh()

    # ---- running

    def run(self) -> Record:
        """Run the driver and judge what came of it; never raises for what the driver did."""
        if len(self._earlier) >= MOST_ATTEMPTS:
            why = f"it was begun {len(self._earlier)} times and never ended"
            never = Transcript(terminated=False, stop="driver_error", notes=(why,))
            return self._record(self._tried(never, "", usage=Usage.zero()))
        while True:
            tried = self._attempt()
            if tried.again is not None and self._retries.times:
                tried = self._until_it_works(tried)
            if not self._goes_on(tried):
                return self._record(tried)
            self._earlier.append(tried)

    async def run_async(self) -> Record:
        """The same for an async driver, on the running event loop."""
        tried = await self._attempt_async()
        if tried.again is not None and self._retries.times:
            tried = await self._until_it_works_async(tried)
        if self.turn is None:
            return self._record(tried)
        async with self.turn:
            # the others that have ended line up, and the trial that was begun last starts to wait
            await asyncio.sleep(0)
            return self._record(tried)

    def abandon(self) -> Record:
        """The record of a trial that is left behind at its limit: what it did so far, judged as `timeout`."""
        self._over = True
        if self._keeper is not None:
            self._keeper.over = True
        return self._record(self._tried(self._out_of_time(), ""))

    def died(self, why: str) -> Record:
        """The record of a trial whose process ended under it."""
        return self._record(
            self._tried(Transcript(terminated=False, stop="driver_error", notes=(kept_note(why),)), "")
        )

    def lose(self) -> None:
        """The world is gone with the process that ran the trial; its last attempt is still to be recorded."""
        self.lost = True
        if self._keeper is not None and self._keeper.under_way and self._earlier:
            self._earlier.pop()

    # ---- attempts

    def _start(self) -> Any:
        """What the driver gives back for the task, or the conversation in which it takes its turns."""
        case = self.spec.case
        if case.user is None or self._user is None:
            return self.driver.start(self._task, self._toolbox, self._context)
        self._conversation = Conversation(
            self.driver,
            self._user,
            case,
            self._task,
            self._toolbox,
            self._context,
            speaks=self._user_speaks,
        )
        return self._conversation.start()

    def _user_speaks(self, begins: bool) -> None:
        """A turn of the simulated user begins or ends: the agent's time stands still, and the user has its own."""
        wall_s = self.limits.wall_s
        if wall_s is None:
            return
        now = time.monotonic()
        if begins:
            self._left_s, left = max(0.0, self.deadline - now), wall_s
        else:
            left = self._left_s
        self.deadline = self._context.deadline = now + left
        if self.watch is not None:
            self.watch(left)

    def _fresh(self) -> None:
        case = self.spec.case
        self._toolbox = Toolbox(self._world.fork(), case.task.tools, tool_calls=self.limits.tool_calls)
        self._task = _private(self._kept) if case.task.trace else self._kept
        self._context = Context(
            self._toolbox, self._task, seed=self.spec.seed, trial=self.spec.trial, limits=self.limits
        )

    def _goes_on(self, tried: _Tried) -> bool:
        """Whether a trial whose driver crashed is begun again behind its last finished step."""
        if self._keeper is None or self._over or not tried.crashed or self._toolbox.fault:
            return False
        return len(self._earlier) + 1 < MOST_ATTEMPTS

    def _begin(self) -> None:
        if self._earlier:
            self._toolbox.release()
            self._fresh()
        self._began = time.perf_counter()
        wall_s = self.limits.wall_s
        self.deadline = NO_LIMIT if wall_s is None else time.monotonic() + wall_s
        self._context.deadline, self._context.attempt = self.deadline, len(self._earlier) + 1
        if self.watch is not None:
            self.watch(wall_s)

    def _attempt(self) -> _Tried:
        self._begin()
        process = os.getpid()
        with spoken_by(self._said):
            try:
                if self._keeper is not None:
                    self._keeper.begin(_attempts(self._earlier), self._toolbox, self._context)
                returned = self._start()
                only_in(process)
                if type(returned) is not Transcript and inspect.isawaitable(returned):
                    returned = asyncio.run(self._within(returned))
                return self._tried(as_transcript(returned), "")
            except BaseException as error:
                only_in(process)
                return self._failed(error)

    async def _attempt_async(self) -> _Tried:
        self._begin()
        process = os.getpid()
        with spoken_by(self._said):
            try:
                returned = self._start()
                only_in(process)
                if inspect.isawaitable(returned):
                    returned = await self._within(returned)
                return self._tried(as_transcript(returned), "")
            except asyncio.CancelledError:
                raise
            except BaseException as error:
                only_in(process)
                return self._failed(error)

    async def _within(self, returned: Awaitable[Any]) -> Any:
        """What the driver's awaitable gives, within the limit."""
        wall_s = self.limits.wall_s
        task = asyncio.ensure_future(outcome_of(returned))
        done, _ = await asyncio.wait({task}, timeout=wall_s)
        while not done and (left_s := self.deadline - time.monotonic()) > 0:
            # the time of a simulated user has come on top
            done, _ = await asyncio.wait({task}, timeout=left_s)
        late = 0.0 if wall_s is None else time.monotonic() - self.deadline
        if not done and late > _LATE_S:
            # the loop stood still under a neighbour; that time was not this trial's own
            self.deadline += late
            done, _ = await asyncio.wait({task}, timeout=late)
        return came_of(task, done)

    def _until_it_works(self, tried: _Tried) -> _Tried:
        stamina = _stamina()

        pending: _Tried | None = tried
        try:
            for attempt in stamina.retry_context(on=_pause, **self._patience()):
                with attempt:
                    tried = pending or self._attempt()
                    pending = None
                    self._wait_if_failed(tried)
        except InfrastructureError:
            # tried often enough, or told to wait longer than anybody should
            self._earlier.pop()
        return tried

    async def _until_it_works_async(self, tried: _Tried) -> _Tried:
        stamina = _stamina()

        pending: _Tried | None = tried
        try:
            async for attempt in stamina.retry_context(on=_pause, **self._patience()):
                with attempt:
                    tried = pending or await self._attempt_async()
                    pending = None
                    self._wait_if_failed(tried)
        except InfrastructureError:
            # tried often enough, or told to wait longer than anybody should
            self._earlier.pop()
        return tried

    def _patience(self) -> dict[str, Any]:
        return {
            "attempts": self._retries.times + 1,
            "timeout": None,
            "wait_initial": self._retries.wait_initial_s,
            "wait_max": self._retries.wait_max_s,
            "wait_jitter": self._retries.wait_jitter_s,
        }

    def _wait_if_failed(self, tried: _Tried) -> None:
        """Hand the error to the retrying loop; while it waits the trial has no limit."""
        if tried.again is None:
            return
        self._earlier.append(tried)
        self.deadline = NO_LIMIT
        if self.watch is not None:
            self.watch(None)
        raise tried.again

    def _tried(
        self,
        transcript: Transcript,
        trace: str,
        *,
        usage: Usage | None = None,
        again: InfrastructureError | None = None,
    ) -> _Tried:
        wall_s = time.perf_counter() - self._began
        ledger = self._toolbox.close()
        if self._conversation is not None and not transcript.messages:
            # it ended in the middle: what was said until then is kept
            transcript = msgspec.structs.replace(
                transcript, messages=tuple(plain(self._conversation.messages))
            )
        # what the control tools were told was delivered, however the attempt ended
        transcript = ended(transcript, self._toolbox)
        context = self._context
        crew = context.crew
        if crew is not None:
            # a scaffold cannot forget a worker: its own account of the usage is not asked for
            usage = context.spent
        elif usage is None:
            usage = transcript.usage if transcript.usage != _UNKNOWN else context.spent
        over = self._context.over(usage)
        if (self._toolbox.spent or over) and transcript.stop not in ("budget", "timeout", "driver_error"):
            notes = (*transcript.notes, over) if over else transcript.notes
            transcript = msgspec.structs.replace(transcript, terminated=False, stop="budget", notes=notes)
            again = None
        self.deadline = NO_LIMIT
        workers = () if crew is None else crew.workers(transcript.stop)
        waited_s = context.waited_s + (0.0 if crew is None else sum(crew.waited.values()))
        return _Tried(transcript, usage, ledger, wall_s, waited_s, trace, again, workers)

    def _failed(self, error: BaseException) -> _Tried:
        """What an attempt came to that ended with an error; one that stops the run is raised again."""
        if isinstance(error, Misconfigured):
            raise error
        self._context.tell_of(error)
        if isinstance(error, BudgetSpent):
            stopped = Transcript(terminated=False, stop="budget", notes=(kept_note(_said(error)),))
            return self._tried(stopped, "")
        if isinstance(error, OutOfTime):
            stopped = self._out_of_time(*error.notes[-1:])
            notes = (*(kept_note(str(note)) for note in error.notes[:-1]), *stopped.notes)
            return self._tried(msgspec.structs.replace(stopped, notes=notes), "")
        if isinstance(error, Nonsense):
            stopped = Transcript(terminated=False, stop="driver_error", notes=(kept_note(_said(error)),))
            return self._tried(stopped, "")
        if isinstance(error, InfrastructureError):
            note = kept_note(f"infrastructure: {_said(error)}")
            stopped = Transcript(terminated=False, stop="infrastructure_error", notes=(note,))
            # what a model has said is a sample; to draw it again would change what is measured
            again = error if self._silent() and not error.final else None
            return self._tried(stopped, "", again=again)
        transcript, trace = _crashed(error)
        tried = self._tried(transcript, trace)
        tried.crashed = isinstance(error, Exception) and not isinstance(error, LabError)
        return tried

    def _silent(self) -> bool:
        """Whether no model has said anything and no tool was called, in what would be done again."""
        rows, workers = (0, 0) if self._keeper is None else self._keeper.mark
        context = self._context
        if self._toolbox.called > rows or context.spoke:
            return False
        if context.crew is None:
            return True
        spoke, fresh = context.crew.spoke, context.crew.ended[workers:]
        return all(one.stop == "infrastructure_error" and one.number not in spoke for one in fresh)

    def _out_of_time(self, said: object = "") -> Transcript:
        """`said` is what the driver knows of it."""
        wall_s = self.limits.wall_s
        if self._conversation is not None and self._conversation.user_speaks:
            why = f"the simulated user failed: it said nothing for {wall_s:g} s"
            return Transcript(
                terminated=False, stop="infrastructure_error", notes=(f"infrastructure: {why}",)
            )
        note = f"out of time after {wall_s:g} s" if wall_s is not None else "out of time"
        if said:
            # a recording says all of it
            note = str(said) if str(said).startswith("out of time") else f"{note}; {said}"
        return Transcript(terminated=False, stop="timeout", notes=(kept_note(note),))

    # ---- the record

    def _record(self, last: _Tried) -> Record:
        spec, case = self.spec, self.spec.case
        tries = [*self._earlier, last]
        usage = tries[0].usage
        for tried in tries[1:]:
            usage = usage + tried.usage
        transcript = _without_secrets(last.transcript)
        if usage is not transcript.usage:
            transcript = msgspec.structs.replace(transcript, usage=usage)
        if self.watch is not None and case.expect.of_work:
            # to judge may be to run a command, which has a limit of its own
            self.watch(None)
        transcript = claimed(case, transcript, last.ledger)
        try:
            evidence = collect(case, self._kept, transcript, last.ledger, self._toolbox, lost=self.lost)
        finally:
            self._toolbox.release()
        verdict = judge(case, transcript, evidence, self.strictness)
        row = product_row(
            case, self._kept, self.arm, spec.trial, self.stamp, self.strictness, transcript, evidence, verdict
        )
        wall_s = self._before_s + time.perf_counter() - self._started if self._earlier else last.wall_s
        return Record(
            spec.place,
            row,
            spec.seed,
            transcript,
            last.ledger,
            wall_s,
            max(0.0, sum(tried.wall_s - tried.waited_s for tried in tries)),
            _attempts(tries),
            last.trace,
            redact(self._said.text("stdout")),
            redact(self._said.text("stderr")),
            case.task.width,
            talk=None if self._conversation is None else self._conversation.talk,
        )


def _attempts(tries: Sequence[_Tried]) -> tuple[Attempt, ...]:
    return tuple(
        [Attempt(each.transcript.stop, each.usage, each.wall_s, each.workers, each.lost) for each in tries]
    )


def _before(attempt: Attempt) -> _Tried:
    """An attempt of a process that is no more."""
    said = Transcript(terminated=False, stop=attempt.end)
    return _Tried(said, attempt.usage, (), attempt.wall_s, 0.0, "", None, attempt.workers, lost=attempt.lost)


def collect(
    case: Case,
    task: Task,
    transcript: Transcript,
    ledger: tuple[LedgerRow, ...],
    toolbox: Toolbox,
    *,
    lost: bool = False,
) -> Evidence:
    """The evidence for the grade: the ledger, of each claim whether it can bind at all, and what is seen of the world.

    `lost`: the world ended with the process that had it, and nothing can be said of it then.
    """
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
        seen=Seen(lost=True)
        if lost and (case.expect.of_work or case.expect.of_state or case.expect.agentd is not None)
        else toolbox.seen(case.expect),
        fault=toolbox.fault,
    )


def judge(case: Case, transcript: Transcript, evidence: Evidence, strictness: str) -> Grade:
    """The grade of a trial; a grader that fails excludes it."""
    try:
        return grade(case, transcript, evidence, strictness=strictness)
    except Exception as error:
        # a fault of ours must not count against the driver, nor end the run
        return excluded(f"the grader failed: {type(error).__name__}: {error}", "grader")


_NO_LIMITS = Limits()


def _limits_of(own: Limits, run: Limits) -> Limits:
    """A case's own limits, and the run's where it has none."""
    if own == _NO_LIMITS:
        return run
    return Limits(
        *(
            getattr(run, name) if getattr(own, name) is None else getattr(own, name)
            for name in Limits.__struct_fields__
        )
    )


def _private(task: Task) -> Task:
    trace = tuple(Call(call.name, plain(call.input)) for call in task.trace)
    return msgspec.structs.replace(task, trace=trace)


@lru_cache(maxsize=1)
def _stamina() -> Any:
    """The module, whose bare line a retry does not go to the terminal: each try has its row in `attempts`."""
    import stamina

    # logging that is set up still gets it
    logging.getLogger("stamina").addHandler(logging.NullHandler())
    return stamina


def _pause(error: BaseException) -> bool | float:
    """Whether to try again, and after how many seconds where the other side said so (Retry-After)."""
    if not isinstance(error, InfrastructureError):
        return False
    seconds: Any = error.retry_after
    sound = isinstance(seconds, int | float) and 0 <= seconds < NO_LIMIT
    if sound and seconds > LONGEST_WAIT_S:
        return False
    return float(seconds) if sound else True


def _without_secrets(transcript: Transcript) -> Transcript:
    """What is written down of a dialogue, which is bounded, and of a driver's reasons: what looks like a key stays in
    neither."""
    changes: dict[str, Any] = {}
    if transcript.messages:
        changes["messages"] = kept_dialogue(transcript.messages)
    if transcript.notes:
        changes["notes"] = tuple([redact(note) for note in transcript.notes])
    return msgspec.structs.replace(transcript, **changes) if changes else transcript


def _said(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return "(an error that cannot be printed)"


def _crashed(error: BaseException) -> tuple[Transcript, str]:
    said = _said(error)
    try:
        trace = "".join(traceback.format_exception(error))
    except Exception:
        trace = ""
    note = kept_note(f"raised {type(error).__name__}: {said}")
    # a secret that is cut through would not be known
    trace = redact(trace)[-TRACEBACK_LIMIT:].encode(errors="replace").decode()
    return Transcript(terminated=False, stop="driver_error", notes=(note,)), trace


def kept_note(note: str) -> str:
    """As much of a note as is kept, with nothing in it that no file can hold."""
    return redact(note)[:NOTE_LIMIT].encode(errors="replace").decode()
