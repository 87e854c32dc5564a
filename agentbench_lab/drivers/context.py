"""What a driver is given beside its task and tools: the context of its trial, and the workers that a trial has."""

from __future__ import annotations

import hashlib
import math
import random
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

import msgspec
from msgspec import Struct

from agentbench_lab.cases import Call, Goal, Limits, Task
from agentbench_lab.drivers.faults import InfrastructureError, Nonsense, OutOfTime
from agentbench_lab.drivers.returned import checked_usage, read_usage
from agentbench_lab.transcripts import Observation, Stop, Transcript, Usage, Worker, together
from agentbench_lab.worlds.capabilities import Capability
from agentbench_lab.worlds.toolbox import BudgetSpent, Toolbox

_UNKNOWN = Usage()


def known_figures(usage: Usage) -> tuple[int, int, int]:
    """Steps, tokens and micros that are known to be used: a lower bound, to which the unknown adds nothing."""
    tokens = (usage.fresh_input, usage.cache_read, usage.cache_write, usage.output)
    return usage.model_calls or 0, sum(part or 0 for part in tokens), usage.cost_micros or 0


class Crew:
    """The workers that an attempt had, and those at work: what the attempt has used is what they have used."""

    def __init__(self) -> None:
        self.ended: list[Worker] = []
        self.at_work: dict[int, tuple[str, int, Context]] = {}
        self.waited: dict[int, float] = {}
        self.spoke: set[int] = set()
        self.count = self.waves = 0

    def workers(self, stop: Stop) -> tuple[Worker, ...]:
        """All of them by number; those at work with what they are known to have used, and with this end."""
        busy = [
            Worker(number, name, stop, context.spent, wave)
            for number, (name, wave, context) in list(self.at_work.items())
        ]
        return tuple(sorted([*self.ended, *busy], key=lambda worker: worker.number))


class Seat(NamedTuple):
    """A worker's place: its number in declared order, and the wave in which it is at work."""

    number: int
    wave: int


class Step(Struct, frozen=True):
    """A finished step of a scaffold: what came of it, and how many workers and waves there had been by then."""

    came: tuple[Transcript, ...]
    single: bool
    workers: int
    waves: int


class Keeper(Protocol):
    """Who keeps finished steps: those of earlier attempts by their keys, and which keys this attempt has come to."""

    steps: dict[str, Step]
    seen: dict[str, int]

    def keep(self, key: str, step: Step) -> None: ...


class Context:
    """What a driver may use beside its task and tools.

    `spend(usage)` tells what a step has used, as soon as it is known: it ends a trial at its limits, and counts when a
    trial is cut off. `with ctx.waiting():` marks time that is waited for a rate limit and not worked.

    `limits` are the trial's own, the case's and the run's together.

    `random` is a generator of the trial's own (the same seed, suite, case, arm and trial give the same numbers);
    `seed` is what it grew from. `dispatch` and `capability_by_name` are the TOOL ladder's own seam; its names in
    camelCase and access by key (`ctx["dispatch"]`) work too.

    Under a scaffold a driver may read what it is there for: `role` is "part", "synthesis" (say how it all ended; no
    tools) or "plan" (take the request apart; no tools), else empty; `part` is the place of its part in the request,
    from 0. `deadline` is when the attempt is out of time, by time.monotonic.
    """

    role = ""
    part: int | None = None
    worker = 0
    deadline = math.inf
    attempt = 1

    def __init__(
        self,
        toolbox: Toolbox,
        task: Task,
        *,
        seed: str,
        trial: int,
        limits: Limits = Limits(),  # noqa: B008 - frozen
    ) -> None:
        self._toolbox = toolbox
        self._limits = self.limits = limits
        self._limited = (limits.steps, limits.tokens, limits.cost_micros) != (None, None, None)
        # no reference to itself, which would leave every context to the collector of cycles
        self._above: Context | None = None
        self._lock = threading.RLock()
        self._own = Usage()
        self._told = False
        self._began = time.perf_counter()
        self.spoke = False
        self.crew: Crew | None = None
        self._settled: list[weakref.ref[BaseException]] = []
        self.keeper: Keeper | None = None
        self._known: tuple[int, ...] = (0, 0, 0)
        self.waited_s = 0.0
        self._random: random.Random | None = None
        self.seed = seed
        self.trial = trial
        self.trace: tuple[Call, ...] = task.trace
        self.policy = task.policy
        self.goals: tuple[Goal, ...] = task.goals
        self.config: dict[str, Any] = {}

    @property
    def random(self) -> random.Random:
        if self._random is None:
            self._random = random.Random(self.seed)
        return self._random

    @property
    def _root(self) -> Context:
        return self._above or self

    @property
    def trial_seed(self) -> str:
        """The seed of the whole trial; a worker's own is `seed`."""
        return self._root.seed

    @property
    def spent(self) -> Usage:
        """What is known to be used so far, by this agent and by the workers that it had."""
        if self.crew is None:
            return self._own
        with self._lock:
            used = together(self.crew.workers("done"))
            return used + self._own if self._told else used

    def spend(self, usage: Usage) -> None:
        """Add what a step has used to `spent`. Raises BudgetSpent when a limit of the trial is used up, and Nonsense for what is
        no usage, which is then not known."""
        try:
            usage = read_usage(usage)
        except Nonsense:
            self._tell(Usage())
            raise
        self._tell(usage)
        self._charged(known_figures(usage))

    def _tell(self, usage: Usage) -> None:
        with self._lock:
            self._own = self._own + usage if self._told else usage
            self._told = True
            # kept beside the sum, which is unknown as soon as a part of it is
            self.spoke = self.spoke or bool(usage.output)

    def tell_of(self, error: BaseException) -> None:
        """Add what an error says was used beside what was told, unless it comes from a worker of this one's, who has it."""
        told = any(known() is error for known in self._settled)
        if isinstance(error, InfrastructureError | OutOfTime) and error.usage is not None and not told:
            self._tell(checked_usage(error.usage))

    def carry(self, usage: Usage) -> None:
        """What earlier attempts have used counts against the limits, and is no part of what this one has."""
        self._known = tuple(a + b for a, b in zip(self._known, known_figures(usage), strict=True))

    def _charged(self, figures: Sequence[int]) -> None:
        """Charge the trial; of workers side by side in their order, so that no clock says who meets its limits."""
        if self._limited:
            with self._toolbox.turn():
                self._root._charge(figures)
        else:
            self._root._charge(figures)

    def _charge(self, figures: Sequence[int]) -> None:
        """Count known figures against the limits, which all workers of the trial share."""
        with self._lock:
            self._known = tuple(a + b for a, b in zip(self._known, figures, strict=True))
            over = self._over(self._known)
        if over:
            self._toolbox.spent = True
            raise BudgetSpent(over)

    # ---- steps and workers

    def step(
        self, key: str, function: Callable[[], Transcript | Sequence[Transcript]]
    ) -> Transcript | Sequence[Transcript]:
        """What the function gives: a transcript, or several. Under `durable` a step that is finished is on disk with
        the world as it then was, and a trial that is begun again goes on behind it. Keys are the scaffold's own; one
        that comes again is another step."""
        keeper = self.keeper
        if keeper is None:
            return function()
        number = keeper.seen[key] = keeper.seen.get(key, 0) + 1
        key = f"{key} #{number}" if number > 1 else key
        done = keeper.steps.get(key)
        if done is not None:
            crew = self.crew = self.crew or Crew()
            crew.count, crew.waves = max(crew.count, done.workers), max(crew.waves, done.waves)
            return done.came[0] if done.single else done.came
        came = function()
        single = isinstance(came, Transcript)
        several = (came,) if isinstance(came, Transcript) else tuple(came)
        if not all(isinstance(each, Transcript) for each in several):
            raise Nonsense(f"step {key!r} gave something that is no transcript")
        crew = self.crew or Crew()
        keeper.keep(key, Step(several, single, crew.count, crew.waves))
        return came

    @property
    def workers(self) -> int:
        """How many workers the trial has had so far; the next one's number is one more."""
        crew = self._root.crew
        return 0 if crew is None else crew.count

    def seats(self, count: int) -> list[Seat]:
        """Places for workers that are at work side by side: a number for each, in declared order."""
        root = self._root
        with root._lock:
            crew = root.crew = root.crew or Crew()
            first, crew.count, crew.waves = crew.count + 1, crew.count + count, crew.waves + 1
            return [Seat(number, crew.waves) for number in range(first, first + count)]

    def child(
        self,
        seat: Seat,
        toolbox: Toolbox,
        task: Task,
        *,
        name: str = "",
        role: str = "",
        part: int | None = None,
    ) -> Context:
        """The context of a worker: random numbers of its own, which its number decides, and the trial's limits.

        What it spends counts at once; `settle` meters what it used in all.
        """
        root = self._root
        seed = hashlib.sha256(f"{root.seed}\0{seat.number}".encode()).hexdigest()[:16]
        child = Context(toolbox, task, seed=seed, trial=root.trial, limits=root._limits)
        child._above, child._lock = root, root._lock
        child.role, child.part, child.worker = role, part, seat.number
        child.deadline, child.attempt = root.deadline, root.attempt
        child.config = root.config
        with root._lock:
            assert root.crew is not None
            root.crew.at_work[seat.number] = name, seat.wave, child
        return child

    def settle(self, seat: Seat, came: Transcript | BaseException) -> None:
        """A worker has ended, with a transcript or an error: all that it used is metered, and the time it took. Raises
        BudgetSpent when a limit of the trial is used up by it."""
        root = self._root
        with root._lock:
            crew = root.crew
            assert crew is not None
            name, wave, child = crew.at_work.pop(seat.number)
            told = known_figures(child._own)
            if isinstance(came, Transcript):
                stop, usage = came.stop, came.usage if came.usage != _UNKNOWN else child.spent
            else:
                child.tell_of(came)
                if isinstance(came, InfrastructureError | OutOfTime):
                    # on its way up it is the same one; raised anew, by another worker, it costs again
                    self._settled.append(weakref.ref(came))
                stop, usage = _stop_of(came, root.deadline), child.spent
            if usage.wall_s is None:
                usage = msgspec.structs.replace(usage, wall_s=time.perf_counter() - child._began)
            crew.ended.append(Worker(seat.number, name, stop, usage, wave))
            if child.spoke or usage.output:
                crew.spoke.add(seat.number)
            # those of a wave wait side by side
            crew.waited[wave] = max(crew.waited.get(wave, 0.0), child.waited_s)
        figures = [max(0, a - b) for a, b in zip(known_figures(usage), told, strict=True)]
        if any(figures):
            child._charged(figures)

    def over(self, usage: Usage) -> str:
        """Which limit the usage is over, in words; empty when all that is known of it is within."""
        return self._over(known_figures(usage)) if self._limited else ""

    def _over(self, known: tuple[int, ...]) -> str:
        limits = self._limits
        for what, used, most in zip(
            ("steps", "tokens", "micros"),
            known,
            (limits.steps, limits.tokens, limits.cost_micros),
            strict=True,
        ):
            if most is not None and used > most:
                return f"the limit of {most} {what} is used up ({used} used)"
        return ""

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Time that is waited for others and does not count as worked."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.waited_s += time.perf_counter() - began

    def dispatch(self, name: str, input: Any = None) -> dict[str, Any]:
        """Run a tool: {"ok": True, "text", "result"} or {"ok": False, "error"}."""
        seen: Observation = self._toolbox.call(name, input)
        if seen.ok:
            return {"ok": True, "text": seen.text, "result": seen.value}
        return {"ok": False, "error": seen.text}

    def capability_by_name(self, name: str) -> Capability | None:
        """The registered capability of that name, or None."""
        return self._toolbox.registry.by_name.get(name)

    capabilityByName = capability_by_name

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, str) or key.startswith("_") or not hasattr(self, key):
            raise KeyError(key)
        return getattr(self, key)


def _stop_of(error: BaseException, deadline: float) -> Stop:
    """How a worker stopped that an error ended; what comes from outside past the deadline is the limit of time."""
    if isinstance(error, BudgetSpent):
        return "budget"
    if isinstance(error, InfrastructureError):
        return "infrastructure_error"
    late = not isinstance(error, Exception) and time.monotonic() >= deadline
    return "timeout" if late or isinstance(error, OutOfTime) else "driver_error"
