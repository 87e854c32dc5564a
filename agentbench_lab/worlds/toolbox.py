"""A world's tools as one trial sees them: the declared set, the check of arguments, dispatch, and the ledger.

The ledger is what really happened. A driver's own account of its calls is compared with it afterwards.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal, Protocol

import msgspec
from msgspec import Struct

from agentbench_lab.cases import Expect
from agentbench_lab.errors import LabError, counted
from agentbench_lab.transcripts import Observation, Status
from agentbench_lab.values import NotJson, a_kind, canonical, plain
from agentbench_lab.worlds.arguments import Misfit, compile_schema
from agentbench_lab.worlds.capabilities import BindingProblem, Capability, Effect, Goal, Registry
from agentbench_lab.worlds.rounds import BudgetSpent, Rounds
from agentbench_lab.worlds.seen import Seen

INPUT_LIMIT = 100_000
"""Bytes of JSON that the arguments of a call may have."""
TEXT_LIMIT = 8_000
"""Characters of an observation's text that an agent is shown and the ledger keeps."""
TOO_LATE = "the task has ended"
"""What is said to a call that comes after a control tool."""
CLOSING_S = 1.0
"""Seconds for which the end of a trial waits for a call that is under way."""


class Fact(Struct, frozen=True, gc=False, omit_defaults=True):
    """One precondition of a call, as the world found it at that moment."""

    pred: str
    ok: bool
    param: str | None = None
    value: Any = None


class Ran(Struct, frozen=True, gc=False):
    """What a world gives back for one call: the value, a text about it, and the preconditions it checked.

    `error` is the text of a tool that failed, `failed` whether it was the tool or what carries the call
    (`protocol_error`); a failed call has changed nothing that is known of. `diff` is what a call changed, empty
    when that was nothing after all.
    `empty` says whether there was nothing to find, where the value does not (None: an empty value is nothing).
    With `kept` false the value is too large for the ledger, which then has the text alone.
    """

    value: Any
    text: str
    facts: tuple[Fact, ...] = ()
    error: str | None = None
    diff: Any = None
    empty: bool | None = None
    kept: bool = True
    failed: Literal["tool_error", "protocol_error"] = "tool_error"


class World(Protocol):
    """What tools act on. `fork` gives a trial a world of its own; a world that only reads may give itself.

    A world that can be put back as it was has `snapshot() -> bytes` and `restore(bytes)`, which a fork of the same world
    takes. A world that holds something outside this process has two methods more: `stop()` ends a call that is under way,
    from any thread, and `close()` gives back what it holds.
    """

    name: str
    kind: str

    @property
    def digest(self) -> str: ...
    @property
    def registry(self) -> Registry: ...

    @property
    def labels(self) -> frozenset[str]:
        """The names of which a composed result may consist."""
        ...

    def fork(self) -> World: ...
    def run(self, name: str, input: dict[str, Any]) -> Ran: ...
    def goals(self, declared: Sequence[str]) -> tuple[Goal, ...]: ...
    def seen(self, expect: Expect) -> Seen | None:
        """What a grade by this expectation reads off the world, as it now stands; None where nothing can change."""
        ...


class LedgerRow(Struct, frozen=True, gc=False, omit_defaults=True):
    """One call that reached the toolbox: what was asked, what came of it, and which preconditions held.

    `worker` is the number of the worker that called, 0 where there is only one agent."""

    name: str
    input: Any
    status: Status
    value: Any = None
    text: str = ""
    problems: tuple[BindingProblem, ...] = ()
    misfits: tuple[Misfit, ...] = ()
    facts: tuple[Fact, ...] = ()
    effects: tuple[Effect, ...] = ()
    changes: bool = False
    diff: Any = None
    empty: bool | None = None
    worker: int = 0

    @property
    def found_nothing(self) -> bool:
        """Whether the call failed, or came back with nothing."""
        return self.status != "ok" or (self.empty if self.empty is not None else not self.value)

    @property
    def late(self) -> bool:
        """Whether it came after what had ended the task, and was not run."""
        return self.status == "protocol_error" and self.text == TOO_LATE


_write_row = msgspec.json.Encoder().encode
_read_row = msgspec.json.Decoder(LedgerRow).decode


class Tool(Struct, frozen=True):
    """A declared tool as an agent is shown it."""

    name: str
    description: str
    input_schema: dict[str, Any]


class Ending(Struct):
    """What the control tools were told: how the agent says the task ends."""

    used: bool = False
    refused: str | None = None
    answered: bool = False
    answer: Any = None
    status: str | None = None
    goal: str | None = None
    reject: bool = False
    ambiguous: tuple[str, ...] | None = None


CONTROL_TOOLS = (
    Tool(
        "refuse",
        "End the task without acting: no declared tool fits, or what is asked for cannot be found.",
        {
            "type": "object",
            "properties": {"reason": {"type": "string"}},
            "additionalProperties": False,
        },
    ),
    Tool(
        "answer",
        "End the task with an answer. status says what you claim: success, or failure.",
        {
            "type": "object",
            "properties": {"value": {}, "status": {"enum": ["success", "failure"]}},
            "required": ["value"],
            "additionalProperties": False,
        },
    ),
    Tool(
        "goal",
        "End a goal-recognition task: the id of the one goal that fits, reject true when none fits, "
        "or the ids of all that fit when there are several.",
        {
            "type": "object",
            "properties": {
                "id": {"type": "string"},
                "reject": {"const": True},
                "ambiguous": {"type": "array", "items": {"type": "string"}},
            },
            "additionalProperties": False,
        },
    ),
)
_CONTROL = {tool.name: compile_schema(tool.input_schema) for tool in CONTROL_TOOLS}


class Toolbox:
    """The declared tools of one trial over one world, with their ledger.

    `call` never raises for what an agent did wrong: the mistake comes back as an observation and stands in the
    ledger. It raises BudgetSpent when the limit of calls is used up, and once the trial is over. `spent` says that the
    limit was reached, `fault` what went wrong in the world itself, which is no fault of the driver's. `listener`, when
    set, is told each call that was answered, control tools too, in the order in which they were run.
    """

    listener: Callable[[str, Any, Observation], None] | None = None

    def __init__(self, world: World, declared: Sequence[str], *, tool_calls: int | None = None) -> None:
        self._world = world
        self._registry = world.registry
        self._declared = frozenset(declared)
        self._limit = tool_calls
        self._lock = threading.Lock()
        self._looking = threading.Lock()
        self._looked: tuple[Expect, Seen | None] | None = None
        self._rows: list[LedgerRow] = []
        self._open = True
        self.names = tuple(declared)
        self.spent = False
        self.fault = ""
        self.ending = Ending()

    @property
    def over(self) -> bool:
        """Whether the trial has ended: what is called from now on is not run."""
        return not self._open

    @property
    def ledger(self) -> tuple[LedgerRow, ...]:
        """What has happened so far, in copies."""
        return tuple(_read_row(_write_row(row)) for row in self._rows)

    @property
    def called(self) -> int:
        """How many rows the ledger has."""
        return len(self._rows)

    @property
    def registry(self) -> Registry:
        return self._registry

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The declared tools and the control tools, as an agent is shown them."""
        known = self._registry.by_name
        declared = tuple(
            Tool(name, known[name].question, known[name].input_schema())
            for name in self.names
            if name in known
        )
        return declared + tuple(
            Tool(tool.name, tool.description, plain(tool.input_schema))
            for tool in CONTROL_TOOLS
            if tool.name not in self._declared
        )

    def close(self) -> tuple[LedgerRow, ...]:
        """End the trial: what a driver left behind calls from now on is not run. Returns the ledger."""
        self._open = False
        stop = getattr(self._world, "stop", None)
        if stop is not None:
            stop()
        # a call that is under way is waited for, but not for ever: it may be what hangs
        waited = self._lock.acquire(timeout=CLOSING_S)
        try:
            return tuple(self._rows)
        finally:
            if waited:
                self._lock.release()

    def release(self) -> None:
        """Give back what the world holds outside this process. Nothing can be seen of it afterwards."""
        close = getattr(self._world, "close", None)
        if close is not None:
            try:
                close()
            except Exception as error:
                self._at_fault("the world failed to close", error)

    def seen(self, expect: Expect) -> Seen | None:
        """What the grade reads off the world; a world that fails here is at fault like one that fails at a call.

        Once the trial is over it is read once: to read may be to run a command, and a trial that is left behind at its
        limit is ended by two threads.
        """
        with self._looking:
            if not self._open and self._looked is not None and self._looked[0] is expect:
                return self._looked[1]
            try:
                found = self._world.seen(expect)
            except Exception as error:
                self._at_fault("the world failed to be read", error)
                found = None
            self._looked = expect, found
            return found

    def call(self, name: str, input: Any = None) -> Observation:
        """Run one tool: `name` with the arguments `input` (a JSON object; None is no arguments)."""
        with self._lock:
            seen = self._answered(name, input)
            if self.listener is not None:
                self.listener(_named(name), input, seen)
            return seen

    def _answered(self, name: str, input: Any) -> Observation:
        if not self._open:
            raise BudgetSpent("the trial is over")
        name = _named(name)
        if self.ending.used:
            return self._too_late(name, input)
        if self._is_control(name):
            return self._control(name, input)
        if self._limit is not None and len(self._rows) >= self._limit:
            self.spent = True
            raise BudgetSpent(f"the limit of {counted(self._limit, 'tool call')} is used up")
        arguments = {} if input is None else input
        try:
            row, value = self._run(name, arguments)
        except BaseException:
            # the trial is ended from outside while a tool runs: what it did so far has happened
            self._keep(LedgerRow(name, _noted(arguments), "protocol_error", text="the call was cut short"))
            raise
        self._keep(row)
        return Observation(row.status, row.text, plain(value))

    def _is_control(self, name: str) -> bool:
        return name in _CONTROL and name not in self._declared

    def snapshot(self) -> tuple[bytes, tuple[LedgerRow, ...]]:
        """The world as it stands, and what has happened in it. A world that fails here is at fault."""
        with self._lock:
            world: Any = self._world
            try:
                return world.snapshot(), tuple(self._rows)
            except Exception as error:
                self._at_fault("the world failed to be put by", error)
                raise

    def restore(self, snapshot: bytes, ledger: Sequence[LedgerRow]) -> None:
        """Put a fresh toolbox where another one stood when it gave this snapshot."""
        world: Any = self._world
        try:
            world.restore(snapshot)
        except Exception as error:
            self._at_fault("the world failed to be put back", error)
            raise
        self._rows.extend(ledger)

    def _keep(self, row: LedgerRow) -> None:
        self._rows.append(row)

    def turn(self) -> AbstractContextManager[None]:
        """The turn of whoever has this toolbox, among workers side by side; nobody else's is waited for here."""
        return nullcontext()

    def _at_fault(self, what: str, error: Exception) -> None:
        """Note what the world did wrong; what comes after it follows from the first. An error of ours says all."""
        named = "" if isinstance(error, LabError) else f"{type(error).__name__}: "
        self.fault = self.fault or f"{what}: {named}{error}"[:TEXT_LIMIT]

    def desk(self, worker: int, names: Sequence[str] | None = None, *, rounds: Rounds | None = None) -> Desk:
        """A view on this toolbox for one of several workers: see Desk. `names` are the tools it is given (None: all)."""
        return Desk(self, worker, self.names if names is None else names, rounds)

    def _run(self, name: str, input: Any) -> tuple[LedgerRow, Any]:
        """The row of a call, and the value that it gives back."""
        asked = self._asked(name, input)
        if isinstance(asked, LedgerRow):
            return asked, None
        capability, arguments = asked
        try:
            ran = self._world.run(name, arguments)
        except Exception as error:
            self._at_fault(f"the world failed at {name}", error)
            return LedgerRow(name, arguments, "protocol_error", text="the tool could not be run"), None
        changes = not capability.read_only and (ran.diff is None or bool(ran.diff))
        if ran.error is not None:
            text = ran.error[:TEXT_LIMIT]
            return LedgerRow(name, arguments, ran.failed, text=text, facts=ran.facts, changes=changes), None
        row = LedgerRow(
            name,
            arguments,
            "ok",
            value=ran.value if ran.kept else None,
            text=ran.text[:TEXT_LIMIT],
            facts=ran.facts,
            effects=capability.effects,
            changes=changes,
            diff=ran.diff,
            empty=ran.empty,
        )
        return row, ran.value

    def _asked(self, name: str, input: Any) -> LedgerRow | tuple[Capability, dict[str, Any]]:
        """The tool and the arguments of a call that may run, else the row of one that may not."""
        try:
            arguments = plain(input)
        except NotJson as error:
            return LedgerRow(name, described(input, TEXT_LIMIT), "malformed", text=f"arguments: {error}")
        if _size(arguments) > INPUT_LIMIT:
            text = f"arguments: more than {INPUT_LIMIT} bytes"
            return LedgerRow(name, _noted(arguments), "malformed", text=text)
        problems = self._registry.problems(name, arguments, self._declared)
        if problems:
            outside = any(problem.reason in ("unknown-tool", "undeclared") for problem in problems)
            text = "; ".join(f"{problem.reason}: {problem.detail}" for problem in problems)
            status: Status = "undeclared" if outside else "malformed"
            return LedgerRow(name, arguments, status, text=text[:TEXT_LIMIT], problems=problems)
        if type(arguments) is not dict:
            return LedgerRow(name, arguments, "malformed", text="the arguments must be a JSON object")
        capability = self._registry.by_name[name]
        misfits = capability.misfits(arguments)
        if misfits:
            text = "; ".join(f"{misfit.reason}: {misfit.detail}" for misfit in misfits)
            return LedgerRow(name, arguments, "schema_error", text=text[:TEXT_LIMIT], misfits=tuple(misfits))
        return capability, arguments

    def _too_late(self, name: str, input: Any) -> Observation:
        """The first control tool has ended the task: what comes after it is not run, and stands in the ledger."""
        if not self._is_control(name):
            arguments = _noted({} if input is None else input)
            self._keep(LedgerRow(name, arguments, "protocol_error", text=TOO_LATE))
        return Observation("protocol_error", TOO_LATE)

    def _control(self, name: str, input: Any) -> Observation:
        try:
            arguments = {} if input is None else plain(input)
        except NotJson as error:
            return Observation("malformed", f"arguments: {error}")
        misfits = _CONTROL[name](arguments, "")
        if misfits:
            text = "; ".join(misfit.detail for misfit in misfits)
            return Observation("schema_error", f"{name}: {text}"[:TEXT_LIMIT])
        ending = self.ending
        if name == "refuse":
            ending.refused = arguments.get("reason", "")
        elif name == "answer":
            ending.answered, ending.answer = True, arguments["value"]
            ending.status = arguments.get("status")
        elif len(arguments) != 1:
            return Observation("schema_error", "goal: takes exactly one of id, reject, ambiguous")
        elif "id" in arguments:
            ending.goal = arguments["id"]
        elif "reject" in arguments:
            ending.reject = True
        else:
            ending.ambiguous = tuple(arguments["ambiguous"])
        ending.used = True
        return Observation("ok", "noted")


class Desk(Toolbox):
    """The toolbox as one of several workers sees it: the same world, limit and ledger, an ending of its own.

    Its rows carry the worker's number; `ledger` is what this worker has called. It has the tools that it is given, and
    no other is declared for it. With `rounds` its calls wait for their turn among the workers side by side.
    """

    def __init__(self, whole: Toolbox, worker: int, names: Sequence[str], rounds: Rounds | None) -> None:
        odd = [name for name in names if name not in whole.names]
        if odd:
            raise ValueError(f"a worker was given {odd[0]!r}, which the task does not declare")
        self._whole: Toolbox = whole
        self._world, self._registry, self._limit = whole._world, whole._registry, whole._limit
        self._lock, self._rows = whole._lock, whole._rows
        self._declared = frozenset(names)
        self._worker, self._rounds, self._left = worker, rounds, False
        self.names = tuple(names)
        self.ending = Ending()

    @property
    def ledger(self) -> tuple[LedgerRow, ...]:
        """What this worker has called so far, in copies."""
        return tuple(_read_row(_write_row(row)) for row in self._rows if row.worker == self._worker)

    def desk(self, worker: int, names: Sequence[str] | None = None, *, rounds: Rounds | None = None) -> Desk:
        return self._whole.desk(worker, self.names if names is None else names, rounds=rounds)

    def call(self, name: str, input: Any = None) -> Observation:
        if self._is_control(_named(name)):
            return super().call(name, input)
        with self.turn():
            return super().call(name, input)

    def turn(self) -> AbstractContextManager[None]:
        return nullcontext() if self._rounds is None else self._rounds.turn(self._worker)

    def close(self) -> tuple[LedgerRow, ...]:
        """The worker is through: what it left behind calls nothing from now on. The world and the others go on."""
        self._left = True
        return tuple(row for row in self._rows if row.worker == self._worker)

    def release(self) -> None:
        """The world is the trial's to give back."""

    def seen(self, expect: Expect) -> Seen | None:
        return self._whole.seen(expect)

    def _keep(self, row: LedgerRow) -> None:
        self._rows.append(msgspec.structs.replace(row, worker=self._worker))

    # what the trial as a whole knows

    @property
    def _open(self) -> bool:  # type: ignore[override]
        return self._whole._open and not self._left

    @property
    def spent(self) -> bool:
        return self._whole.spent

    @spent.setter
    def spent(self, value: bool) -> None:
        self._whole.spent = value

    @property
    def fault(self) -> str:
        return self._whole.fault

    @fault.setter
    def fault(self, value: str) -> None:
        self._whole.fault = value


def _size(arguments: Any) -> int:
    """About the bytes of the arguments; short ones are not measured."""
    few = type(arguments) is dict and len(arguments) < 32
    if few and all(type(value) is str and len(value) < 1_000 for value in arguments.values()):
        return 0
    return len(canonical(arguments))


def _named(name: Any) -> str:
    """The name as the ledger can hold it; whatever is no name keeps its look, and is never one by chance."""
    if type(name) is not str:
        return f"«{described(name, 200)}»"
    return name if name.isascii() and len(name) <= 200 else name.encode(errors="replace").decode()[:200]


def _noted(arguments: Any) -> Any:
    """The arguments of a call that was not run, for the ledger: as they are, the beginning of their JSON where they are
    too long, and how they look where they are no JSON value."""
    try:
        kept = plain(arguments)
    except NotJson:
        return described(arguments, TEXT_LIMIT)
    return kept if _size(kept) <= INPUT_LIMIT else canonical(kept)[:200].decode(errors="ignore")


def described(value: Any, most: int) -> str:
    """How a value looks, which may be any object."""
    try:
        return ascii(value)[:most]
    except Exception:  # a driver's own object may fail here in any way
        return a_kind(type(value).__name__)


__all__ = [
    "CONTROL_TOOLS",
    "BudgetSpent",
    "Desk",
    "Ending",
    "Fact",
    "LedgerRow",
    "Ran",
    "Tool",
    "Toolbox",
    "World",
]
