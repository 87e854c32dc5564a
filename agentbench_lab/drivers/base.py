"""The driver seam: what a driver is, how one is found by name, and how what it gives back becomes a transcript.

A driver is a function, sync or async, in one of two shapes:

- `driver(task, tools, ctx) -> Transcript`, where `tools` is the Toolbox and `tools.call(name, input)` runs a tool;
- `driver(request, tools, ctx) -> dict`, the TOOL ladder's own: `tools` is the list of declared names and
  `ctx.dispatch(name, input)` runs one. The first parameter's name, `request`, tells this shape.

A driver may carry attributes: `evidence` ("simulated", "replayed" or "live", which is what is assumed), `version`
(else the digest of its source file), `model` (the model it asks, where it asks one), and `banner` (a line that reports
print above its numbers). A method `close()` is called once when a run ends, in every process that loaded the driver.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import importlib.metadata
import inspect
import math
import os
import random
import re
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec
from msgspec import Struct

from agentbench_lab.cases import Call, Goal, Limits, Task
from agentbench_lab.drivers import keys
from agentbench_lab.errors import LabError, did_you_mean
from agentbench_lab.transcripts import (
    Observation,
    Stop,
    Transcript,
    Usage,
    Worker,
    together,
)
from agentbench_lab.values import NotJson, plain
from agentbench_lab.worlds.capabilities import Capability
from agentbench_lab.worlds.toolbox import BudgetSpent, Toolbox

Driver = Callable[[Task, Toolbox, "Context"], "Transcript | Mapping[str, Any] | Awaitable[Any]"]

BUILT_IN = {
    "stub": "agentbench_lab.drivers.stub:stub",
    "refuse_all": "agentbench_lab.drivers.floors:refuse_all",
    "reckless": "agentbench_lab.drivers.floors:reckless",
    "scripted": "agentbench_lab.drivers.scripted:scripted",
}
MAKERS: dict[str, str] = {
    "faulty": "agentbench_lab.drivers.faulty:make",
    "replay": "agentbench_lab.drivers.replay:make",
    "simulated": "agentbench_lab.drivers.simulated:make",
    "chat": "agentbench_lab.drivers.chat:make",
    "command": "agentbench_lab.drivers.command:make",
}
"""Drivers that are made from the text behind their name and a colon (`name:text`); each maker takes that text. Of
`name[options]:text` it takes all from the bracket on."""
ENTRY_POINTS = "agentbench_lab.drivers"
LONGEST_WAIT_S = 600.0
"""A Retry-After beyond this is not waited for: the trial is excluded, and can be run again another day."""
EVIDENCES = ("simulated", "replayed", "live")


class InfrastructureError(Exception):
    """What a driver raises when the other side failed it: a refused connection, a rate limit, a server's error.

    It is no fault of the agent's. Before any output of a model and any tool call the trial is tried again, after
    `retry_after` seconds where the other side named them; else, and when no try is left, the trial is excluded.
    `usage` is what the failed try has cost all the same. A `final` error would be the same again: it is not tried again.
    """

    def __init__(
        self,
        message: str,
        *,
        retry_after: float | None = None,
        usage: Usage | None = None,
        final: bool = False,
    ) -> None:
        super().__init__(message)
        self.retry_after, self.usage, self.final = retry_after, usage, final


class Misconfigured(LabError):
    """What a driver raises when no trial can go on as it was set up: a wrong key, a model that is not there.

    It is nobody's sample: it stops the whole run with its one line, and what was finished stays in the journal.
    """


class OutOfTime(TimeoutError):
    """The trial's own limit of time, told apart from a TimeoutError that a driver raised; it ends as `timeout`.

    A driver that keeps the limit itself raises it, as one does that ends a program of its own by then.
    `notes` say what became of the agent; `usage` is what it has used beyond what `ctx.spend` was told.
    """

    def __init__(self, *notes: str, usage: Usage | None = None) -> None:
        super().__init__(*notes)
        self.notes, self.usage = notes, usage


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
        self.crew: Crew | None = None
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
        """Add what a step has used to `spent`; raises BudgetSpent when a limit of the trial is used up."""
        with self._lock:
            self._own = self._own + usage if self._told else usage
            self._told = True
        self._root._charge(known_figures(usage))

    def carry(self, usage: Usage) -> None:
        """What earlier attempts have used counts against the limits, and is no part of what this one has."""
        self._known = tuple(a + b for a, b in zip(self._known, known_figures(usage), strict=True))

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

        What it spends counts at once; `settle` says what it used in all.
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

    def settle(self, seat: Seat, usage: Usage, stop: Stop) -> None:
        """A worker has ended, and used this in all. Raises BudgetSpent when a limit of the trial is used up by it."""
        root = self._root
        with root._lock:
            assert root.crew is not None
            name, wave, child = root.crew.at_work.pop(seat.number)
            root.crew.ended.append(Worker(seat.number, name, stop, usage, wave))
            # those of a wave wait side by side
            root.crew.waited[wave] = max(root.crew.waited.get(wave, 0.0), child.waited_s)
            told = known_figures(child._own)
        figures = [max(0, a - b) for a, b in zip(known_figures(usage), told, strict=True)]
        if any(figures):
            root._charge(figures)

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


@dataclass(frozen=True)
class Loaded:
    """A driver that was found: its arm name, the function, and what its rows are stamped with."""

    name: str
    function: Callable[..., Any]
    ladder_shaped: bool
    evidence: str
    version: str
    banner: str = ""
    model: str | None = None
    durable: bool = False

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        keys.remember()  # this may be another process, with an environment of its own

    def start(self, task: Task, toolbox: Toolbox, context: Context) -> Any:
        """What the function gives back: a result, or an awaitable of one."""
        if self.ladder_shaped:
            return self.function(task.request, list(task.tools), context)
        return self.function(task, toolbox, context)


def known_drivers() -> dict[str, str]:
    """Names that load_driver knows without a module: the built-in ones and installed entry points."""
    found = {point.name: point.value for point in importlib.metadata.entry_points(group=ENTRY_POINTS)}
    return {**found, **BUILT_IN}


def load_driver(driver: str | Callable[..., Any]) -> Loaded:
    """A driver by name (`stub`, an entry point, or `package.module:name`), or a function given as it is.

    Modules are found on PYTHONPATH and in the working folder. Raises LabError with the near match.
    """
    keys.remember()
    if callable(driver):
        module = getattr(driver, "__module__", "") or "?"
        name = getattr(driver, "__qualname__", type(driver).__name__)
        return _loaded(f"{module}:{name}", driver)
    if not isinstance(driver, str):
        raise LabError(f"a driver is a name or a function, not a {type(driver).__name__}")
    kind = re.split(r"[:\[]", driver, maxsplit=1)[0]
    if kind in MAKERS:
        module_name, _, attribute = MAKERS[kind].partition(":")
        made = import_function(kind, module_name, attribute)(driver[len(kind) :].removeprefix(":"))
        return _loaded(driver, made)
    where = known_drivers().get(driver, driver)
    module_name, colon, attribute = where.partition(":")
    if not colon:
        hint = did_you_mean(driver, [*known_drivers(), *MAKERS])
        raise LabError(f"unknown driver {driver!r}{hint}; your own is given as package.module:name")
    return _loaded(driver, import_function(driver, module_name, attribute))


def import_function(
    spec: str, module_name: str, attribute: str, *, kind: str = "driver"
) -> Callable[..., Any]:
    """The function of that name in a module on PYTHONPATH or in the working folder; LabError for whatever is wrong."""
    here = str(Path.cwd())
    if here not in sys.path and spec not in BUILT_IN and spec not in MAKERS:
        sys.path.append(here)  # last, so that no file there takes the place of an installed library
    importlib.invalidate_caches()
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        near = ""
        if error.name == module_name:
            near = did_you_mean(module_name, (p.stem for p in Path.cwd().glob("*.py")), most=0)
        missing = f"no module {error.name!r} on PYTHONPATH or in the working folder{near}"
        raise LabError(f"{kind} {spec!r}: {missing}") from None
    except (Exception, SystemExit) as error:
        said = " ".join(str(error).split())
        raise LabError(f"{kind} {spec!r}: importing it failed: {type(error).__name__}: {said}") from error
    for part in attribute.split("."):
        if not hasattr(found, part):
            inside = getattr(found, "__dict__", {}).items()
            names = [name for name, value in inside if callable(value) and not name.startswith("_")]
            raise LabError(f"{kind} {spec!r}: {module_name} has no {part!r}{did_you_mean(part, names)}")
        found = getattr(found, part)
    if not callable(found):
        raise LabError(f"{kind} {spec!r} is no function but a {type(found).__name__}")
    function: Callable[..., Any] = found
    return function


def _loaded(name: str, function: Callable[..., Any]) -> Loaded:
    evidence = getattr(function, "evidence", "live")
    if evidence not in EVIDENCES:
        raise LabError(f"driver {name!r}: evidence {evidence!r}{did_you_mean(str(evidence), EVIDENCES)}")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        names: list[str] = []
    else:
        names = list(signature.parameters)
        try:
            signature.bind(None, None, None)
        except TypeError:
            bare = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
            shape = inspect.Signature(bare)
            raise LabError(f"driver {name!r} takes {shape}; a driver takes (task, tools, ctx)") from None
    return Loaded(
        name=name,
        function=function,
        ladder_shaped=names[:1] == ["request"],
        evidence=evidence,
        version=str(getattr(function, "version", "") or source_digest(function)),
        banner=str(getattr(function, "banner", "")),
        model=getattr(function, "model", None),
    )


def source_digest(function: Callable[..., Any]) -> str:
    """The start of the digest of the source file (of the source text for a function of a notebook)."""
    while isinstance(function, functools.partial):
        function = function.func
    source: Any = inspect.unwrap(function)
    if not inspect.isroutine(source) and not inspect.isclass(source):
        source = type(source)
    try:
        file = inspect.getsourcefile(source)
        if file is not None and Path(file).is_file():
            text = Path(file).read_bytes()
        else:
            text = inspect.getsource(source).encode()
    except (OSError, TypeError):
        return "unknown"
    return hashlib.sha256(text).hexdigest()[:16]


class Nonsense(ValueError):
    """What a driver gave back is no transcript; the message says why."""


def only_in(process: int) -> None:
    """A driver may fork; the child that comes back from it is no second runner, and ends here."""
    if os.getpid() != process:
        os._exit(0)


def ended(transcript: Transcript, toolbox: Toolbox) -> Transcript:
    """What the control tools were told counts like what the transcript says."""
    ending = toolbox.ending
    if not ending.used:
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
    if changes.get("refused") and transcript.stop == "done":
        changes["stop"] = "refused"
    return msgspec.structs.replace(transcript, **changes) if changes else transcript


_KEYS = {
    "calls": "calls",
    "answer": "answer",
    "text": "text",
    "status": "status",
    "refused": "refused",
    "terminated": "terminated",
    "proof": "proof",
    "usage": "usage",
    "driver": "driver",
    "result": "result",
    "composed": "result",
    "candidate_results": "candidate_results",
    "candidateResults": "candidate_results",
    "recovered": "recovered",
    "inferred_goal": "inferred_goal",
    "inferredGoal": "inferred_goal",
    "reject": "reject",
    "ambiguous_goals": "ambiguous_goals",
    "ambiguousGoals": "ambiguous_goals",
    "messages": "messages",
    "notes": "notes",
    "why": "notes",
    "cached": "cached",
    "heard": "heard",
    "observed": "observed",
    "stop": "stop",
}


def as_transcript(returned: Any) -> Transcript:
    """What a driver gave back, as a transcript of private copies. Raises Nonsense with the reason, and nothing else."""
    try:
        if type(returned) is Transcript:
            copy = _copied(returned)
            if copy is not None:
                return _settled(copy)
            fields: Mapping[str, Any] = {
                name: getattr(returned, name) for name in Transcript.__struct_fields__
            }
        elif isinstance(returned, Mapping):
            fields = _by_field(returned)
        else:
            raise Nonsense(f"gave back {_a(returned)}, not a transcript or an object with calls, refused, …")
        return _settled(_bounded(_checked(fields)))
    except Nonsense:
        raise
    except NotJson as error:
        raise Nonsense(f"gave back what JSON cannot hold: {error}") from None
    except Exception as error:
        # a driver's own objects can fail wherever they are touched
        raise Nonsense(f"gave back what cannot be read: {type(error).__name__} while reading it") from None


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Transcript).decode
SIZE_LIMIT = 500_000
"""Bytes of JSON that a transcript may have, its messages left aside."""
_DRIVERS_STOPS = ("done", "refused", "budget", "driver_error")
# digits all alike, and brackets of both kinds: enough to see long numbers, and to bound the depth
_SHAPE = bytes.maketrans(b"123456789{", b"000000000[")
_LONG = b"0" * 19
_UNUSED, _UNKNOWN = Usage.zero(), Usage()


def _copied(transcript: Transcript) -> Transcript | None:
    """A checked private copy through JSON, which is quick; None where only the slow way can say what is wrong. Raises
    Nonsense for figures that are none."""
    try:
        data = _encode(transcript)
        shape = data.translate(_SHAPE)
        if _LONG in shape or shape.count(b"[") > 64 or len(data) > SIZE_LIMIT:
            # an integer may be too long, a value too deep, the whole too large
            return None
        copy = _decode(data)
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError):
        return None
    # what JSON only resembles (a set, bytes, NaN, a key that is a number) comes back as another value
    if copy != transcript or copy.stop not in _DRIVERS_STOPS:
        return None
    if copy.usage != _UNUSED and copy.usage != _UNKNOWN:
        _check_figures(copy.usage)
    return copy


def _bounded(transcript: Transcript) -> Transcript:
    """The transcript, when it is not larger than what is kept; its messages are bounded elsewhere."""
    size = len(_encode(msgspec.structs.replace(transcript, messages=())))
    if size > SIZE_LIMIT:
        raise Nonsense(f"gave back {size} bytes beside its messages; at most {SIZE_LIMIT} are kept")
    return transcript


def _settled(transcript: Transcript) -> Transcript:
    """The transcript with one story: `stop` says what `refused` and `terminated` say."""
    if transcript.refused:
        if transcript.stop == "done":
            return msgspec.structs.replace(transcript, stop="refused")
    elif transcript.stop == "refused":
        raise Nonsense("stop is 'refused', but refused is false")
    if transcript.stop in ("budget", "driver_error") and transcript.terminated:
        return msgspec.structs.replace(transcript, terminated=False)
    return transcript


def _by_field(returned: Mapping[Any, Any]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for key, value in returned.items():
        if key not in _KEYS:
            raise Nonsense(f"gave back an unknown key {key!r}{did_you_mean(str(key), _KEYS, most=0)}")
        if value is not None and _KEYS[key] != "observed":
            fields[_KEYS[key]] = value
    return fields


def _checked(fields: Mapping[str, Any]) -> Transcript:
    stop = fields.get("stop", "done")
    if stop not in _DRIVERS_STOPS:
        raise Nonsense(f"stop {stop!r} is not a driver's to give")
    return Transcript(
        calls=_calls(fields.get("calls"), "calls"),
        answer=plain(fields.get("answer")),
        text=_text(fields.get("text"), "text") or "",
        status=_text(fields.get("status"), "status"),
        refused=_flag(fields, "refused", False),
        terminated=_flag(fields, "terminated", True),
        stop=stop,
        proof=_proof(fields.get("proof")),
        usage=_usage(fields.get("usage")),
        driver=_text(fields.get("driver"), "driver") or "",
        result=_labels(fields.get("result"), "result"),
        candidate_results=(
            None
            if fields.get("candidate_results") is None
            else _calls(fields["candidate_results"], "candidate_results")
        ),
        recovered=_flag(fields, "recovered", False),
        inferred_goal=_text(fields.get("inferred_goal"), "inferred_goal"),
        reject=_flag(fields, "reject", False),
        ambiguous_goals=_labels(fields.get("ambiguous_goals"), "ambiguous_goals"),
        messages=tuple(plain(list(_sequence(fields.get("messages", ()), "messages")))),
        notes=_notes(fields.get("notes")),
        cached=_flag(fields, "cached", False),
        heard=_flag(fields, "heard", False),
    )


def _usage(given: Any) -> Usage:
    if given is None:
        return Usage()
    if isinstance(given, Usage):
        given = msgspec.structs.asdict(given)
    if not isinstance(given, Mapping):
        raise Nonsense(f"usage is {_a(given)}, not an object")
    for key in given:
        if key not in Usage.__struct_fields__:
            near = did_you_mean(str(key), Usage.__struct_fields__, most=0)
            raise Nonsense(f"usage holds an unknown key {key!r}{near}")
    try:
        usage = msgspec.convert(dict(given), Usage)
    except msgspec.ValidationError as error:
        raise Nonsense(f"usage: {error}") from None
    _check_figures(usage)
    return usage


def with_that_of(error: InfrastructureError, spent: Usage) -> Usage:
    """What was spent and what the error says was used beside it, which is then told and stands in the error no more."""
    if error.usage is None:
        return spent
    more, error.usage = checked_usage(error.usage), None
    return more if spent == _UNKNOWN else spent + more


def checked_usage(given: Any) -> Usage:
    """Usage that an error carries; unknown where it is nonsense, for an error must not fail once more."""
    try:
        return _usage(given)
    except Exception:
        return Usage()


def _check_figures(usage: Usage) -> None:
    for name in Usage.__struct_fields__:
        figure = getattr(usage, name)
        if figure is not None and not (math.isfinite(figure) and figure >= 0):
            raise Nonsense(f"usage: {name} is {figure}; a figure is a number from 0, or null when unknown")
        if type(figure) is int and figure >= 2**63:
            raise Nonsense(f"usage: {name} does not fit into 63 bits")


def _a(value: Any) -> str:
    return "nothing" if value is None else f"a {type(value).__name__}"


def _sequence(value: Any, what: str) -> Sequence[Any]:
    if not isinstance(value, list | tuple):
        raise Nonsense(f"{what} is {_a(value)}, not a list")
    return value


def _calls(value: Any, what: str) -> tuple[Call, ...]:
    if value is None:
        return ()
    return tuple(_call(item, what) for item in _sequence(value, what))


def _call(item: Any, what: str) -> Call:
    name: Any
    given: Any
    if type(item) is Call:
        name, given = item.name, item.input
    elif isinstance(item, Mapping):
        for key in item:
            if key not in ("name", "input"):
                raise Nonsense(
                    f"{what}: a call has an unknown key {key!r}{_meant(key)}; it is {{name, input}}"
                )
        name, given = item.get("name"), item.get("input")
    else:
        raise Nonsense(f"{what} holds {_a(item)}, not calls of the form {{name, input}}")
    if isinstance(given, list | tuple):
        # a list of arguments binds no key: each position becomes an unknown argument, as the grader expects
        given = {str(position): value for position, value in enumerate(given)}
    return Call(
        plain(name) if isinstance(name, str) else "", plain(dict(given)) if isinstance(given, Mapping) else {}
    )


def _meant(key: Any) -> str:
    if key in ("arguments", "args", "parameters", "kwargs"):
        return " (did you mean 'input'?)"
    return did_you_mean(str(key), ("name", "input"), most=0)


def _proof(value: Any) -> tuple[dict[str, Any], ...]:
    if value is None:
        return ()
    steps = tuple(plain(list(_sequence(value, "proof"))))
    if not all(isinstance(step, dict) for step in steps):
        raise Nonsense("proof holds something that is no step object")
    return steps


def _flag(fields: Mapping[str, Any], name: str, default: bool) -> bool:
    value = fields.get(name, default)
    if type(value) is not bool:
        raise Nonsense(f"{name} is {_a(value)}, not true or false")
    return value


def _text(value: Any, what: str) -> str | None:
    if value is not None and type(value) is not str:
        raise Nonsense(f"{what} is {_a(value)}, not text")
    return plain(value) if value is not None else None


def _labels(value: Any, what: str) -> tuple[str, ...] | None:
    if value is None:
        return None
    if isinstance(value, set | frozenset):
        value = sorted(value, key=str)
    if not all(type(item) is str for item in _sequence(value, what)):
        raise Nonsense(f"{what} holds something that is no text")
    return tuple(plain(list(value)))


def _notes(value: Any) -> tuple[str, ...]:
    return _labels([value] if isinstance(value, str) else value, "notes") or ()
