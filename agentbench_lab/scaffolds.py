"""Scaffolds: ways to put an agent to work on a task. A scaffold turns an agent into a driver.

An *agent* is `agent(task, tools, ctx) -> Transcript`: one call of the driver under test, as a worker of its own. The
worker has random numbers of its own, a desk on the trial's toolbox (same world, same ledger, an ending of its own), and
the trial's limits. What it uses is metered on the trial, whatever the scaffold makes of its transcript. Your own
scaffold is a plain function:

    def twice(agent):
        def run(task, tools, ctx):
            first = agent(task, tools, ctx)
            return first if first.refused else agent(task, tools, ctx)
        return run

`once` is the driver untouched. `linear` does the parts of a request one after the other, `fan_out(n)` n at a time on
the same world; both say in their docstrings what becomes of refusals and failures. docs/scaffolds.md has the rules.
"""

from __future__ import annotations

import asyncio
import contextvars
import ctypes
import functools
import inspect
import json
import os
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import msgspec

from agentbench_lab.cases import Call, Task
from agentbench_lab.drivers.base import (
    Context,
    InfrastructureError,
    Loaded,
    Nonsense,
    OutOfTime,
    Seat,
    as_transcript,
    checked_usage,
    ended,
    import_function,
    source_digest,
)
from agentbench_lab.errors import LabError, did_you_mean
from agentbench_lab.transcripts import Stop, Transcript, Usage
from agentbench_lab.worlds.rounds import Rounds
from agentbench_lab.worlds.toolbox import BudgetSpent, LedgerRow, Toolbox

MOST_PARTS = 64
"""Parts into which a request is taken at most."""
TOLD_LIMIT = 600
"""Characters of what came of a part that others are told."""
_UNKNOWN = Usage()
_LOOK_S = 0.2
"""Seconds after which a trial that waits for its workers looks at the clock."""


class Ask(Protocol):
    """What a scaffold is given: a call of the driver under test, as a worker.

    `name` stands with the worker's figures; `role` and `part` are what the driver may read of its place (see Context).
    `seat` and `rounds` are for workers side by side.
    """

    def __call__(
        self,
        task: Task,
        tools: Toolbox,
        ctx: Context,
        *,
        name: str = "",
        role: str = "",
        part: int | None = None,
        seat: Seat | None = None,
        rounds: Rounds | None = None,
    ) -> Transcript: ...


Run = Callable[[Task, Toolbox, Context], Transcript]
Scaffold = Callable[[Ask], Run]
Decompose = Callable[[Ask, Task, Toolbox, Context], Sequence[str]]


class Agent:
    """The driver under test, called as a worker: always a checked transcript, whatever the driver's shape."""

    def __init__(self, driver: Loaded) -> None:
        self._driver = driver

    def __call__(
        self,
        task: Task,
        tools: Toolbox,
        ctx: Context,
        *,
        name: str = "",
        role: str = "",
        part: int | None = None,
        seat: Seat | None = None,
        rounds: Rounds | None = None,
    ) -> Transcript:
        """Raises what the driver raises; what it has used until then counts all the same."""
        seat = seat or ctx.seats(1)[0]
        desk = tools.desk(seat.number, task.tools, rounds=rounds)
        child = ctx.child(seat, desk, task, name=name, role=role, part=part)
        process, began = os.getpid(), time.perf_counter()
        try:
            returned = self._driver.start(task, desk, child)
            if os.getpid() != process:
                # a driver may fork; the child that comes back from it is no second worker
                os._exit(0)
            if type(returned) is not Transcript and inspect.isawaitable(returned):
                returned = asyncio.run(_within(returned, child.deadline))
            transcript = ended(as_transcript(returned), desk)
        except BaseException as error:
            usage = child.spent
            if isinstance(error, InfrastructureError) and error.usage is not None:
                more, error.usage = checked_usage(error.usage), None
                usage = more if usage == _UNKNOWN else usage + more
            ctx.settle(seat, _timed(usage, began), _stop_of(error))
            raise
        finally:
            desk.close()
        usage = transcript.usage if transcript.usage != _UNKNOWN else child.spent
        ctx.settle(seat, _timed(usage, began), transcript.stop)
        return transcript


def _timed(usage: Usage, began: float) -> Usage:
    if usage.wall_s is not None:
        return usage
    return msgspec.structs.replace(usage, wall_s=time.perf_counter() - began)


def _stop_of(error: BaseException) -> Stop:
    if isinstance(error, BudgetSpent):
        return "budget"
    if isinstance(error, InfrastructureError):
        return "infrastructure_error"
    return "timeout" if isinstance(error, OutOfTime | SystemExit) else "driver_error"


async def outcome_of(returned: Awaitable[Any]) -> tuple[Any, BaseException | None]:
    """What an awaitable came to; an error as a value, since SystemExit in a task would end the whole loop."""
    try:
        return await returned, None
    except asyncio.CancelledError:
        raise
    except BaseException as error:
        return None, error


async def _within(returned: Awaitable[Any], deadline: float) -> Any:
    """What an async driver gives, before the trial is out of time."""
    task = asyncio.ensure_future(outcome_of(returned))
    left = None if deadline == float("inf") else max(0.0, deadline - time.monotonic())
    done, _ = await asyncio.wait({task}, timeout=left)
    if not done:
        task.cancel()
        raise OutOfTime
    value, error = task.result()
    if error is not None:
        raise error
    return value


# ---- workers side by side


def side_by_side(
    agent: Ask,
    tasks: Sequence[Task],
    tools: Toolbox,
    ctx: Context,
    *,
    names: Sequence[str] = (),
    role: str = "",
    parts: Sequence[int | None] = (),
) -> list[Transcript]:
    """One worker for each task, all at once on the same world; their transcripts in the order of the tasks.

    Their tool calls are carried out in rounds (see worlds.rounds), so that neither the ledger nor the world depends on
    which of them is the quicker. All are waited for, also when one fails; then the error of the first that failed is
    raised.
    """
    names, parts = names or [""] * len(tasks), parts or [None] * len(tasks)
    seats = ctx.seats(len(tasks))
    if len(tasks) == 1:
        return [agent(tasks[0], tools, ctx, name=names[0], role=role, part=parts[0], seat=seats[0])]
    rounds = Rounds(seat.number for seat in seats)
    came: list[Transcript | BaseException] = [Lost()] * len(tasks)

    def work(at: int) -> None:
        try:
            came[at] = agent(
                tasks[at],
                tools,
                ctx,
                name=names[at],
                role=role,
                part=parts[at],
                seat=seats[at],
                rounds=rounds,
            )
        except BaseException as error:
            came[at] = error
        finally:
            rounds.left(seats[at].number)

    # in the trial's context, so that what they print is the trial's
    threads = [
        threading.Thread(
            target=contextvars.copy_context().run, args=(work, at), daemon=True, name="agentbench-lab worker"
        )
        for at in range(len(tasks))
    ]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            _join(thread, ctx.deadline)
    except BaseException:
        rounds.end()
        for thread in threads:
            _end(thread)
        raise
    for outcome in came:
        if isinstance(outcome, BaseException):
            raise outcome
    return [outcome for outcome in came if isinstance(outcome, Transcript)]


class Lost(Exception):
    """A worker's thread has ended without a word."""


def _join(thread: threading.Thread, deadline: float) -> None:
    while thread.is_alive():
        left = deadline - time.monotonic()
        if left <= 0:
            raise OutOfTime
        thread.join(min(left, _LOOK_S))


def _end(thread: threading.Thread) -> None:
    """Python code in the thread is ended; a call that waits outside Python is not reached."""
    if thread.ident is not None and thread.is_alive():
        end = ctypes.py_object(SystemExit)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), end)


# ---- the scaffolds that ship


def once(agent: Ask) -> Run:
    """The agent alone with the whole task. A run does not even wrap the driver."""
    return agent


def given_parts(agent: Ask, task: Task, tools: Toolbox, ctx: Context) -> Sequence[str]:
    """The parts that the case has; none where nobody has taken its request apart."""
    return task.parts


def plan_parts(agent: Ask, task: Task, tools: Toolbox, ctx: Context) -> Sequence[str]:
    """Ask the agent itself for the parts: a worker with the role "plan" and no tools, whose cost counts.

    It is asked for a JSON list of texts, as its answer or in its words. What is no such list is one part.
    """
    asked = msgspec.structs.replace(task, request=_PLAN.format(request=task.request), tools=())
    said = ctx.step("plan", lambda: agent(asked, tools, ctx, name="plan", role="plan"))
    assert isinstance(said, Transcript)
    return parts_of(said)


_PLAN = (
    "Take the following request apart into parts that can be done one by one without knowing of each other. Do none "
    "of them. Answer with nothing but a JSON list of texts, each of them a request that says all it needs; a request "
    "that cannot be taken apart is a list of one.\n\n{request}"
)


def parts_of(said: Transcript) -> tuple[str, ...]:
    """The list of parts in a plan; empty where there is none."""
    for given in (said.answer, said.text):
        if isinstance(given, str):
            given = _list_in(given)
        if not isinstance(given, list) or not 0 < len(given) <= MOST_PARTS:
            continue
        if all(isinstance(part, str) and part.strip() for part in given):
            return tuple(part.strip() for part in given)
    return ()


def _list_in(text: str) -> Any:
    """The first JSON list that stands in a text, whatever is said around it."""
    for at, sign in enumerate(text):
        if sign == "[":
            try:
                return json.JSONDecoder().raw_decode(text[at:])[0]
            except (ValueError, RecursionError):
                continue
    return None


def linear(agent: Ask, *, decompose: Decompose = given_parts) -> Run:
    """The parts one after the other, each told what was asked before it and what came of it.

    A request of one part is done as it stands. All parts are asked, also after one that refused or gave up. The whole
    is refused when a part was, and ends like the first part that gave up (budget, driver_error); answer, status and
    words are those of the last part that has some, and a failure of one part is a failure. An error that a part raises
    ends the trial, as it does for the bare driver.
    """

    def run(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
        parts, notes = _parts(decompose, agent, task, tools, ctx)
        if len(parts) < 2:
            return _noted(_single(agent, task, tools, ctx), notes)
        came: list[Transcript] = []
        for at, part in enumerate(parts):
            request = f"{_before(parts, came)}{part}"
            asked = msgspec.structs.replace(task, request=request, parts=(part,))
            name = f"part {at + 1}"
            ask = functools.partial(agent, asked, tools, ctx, name=name, role="part", part=at)
            came += _several(ctx.step(name, ask))
        return _noted(_in_order(parts, came), notes)

    return run


def fan_out(at_once: int, *, decompose: Decompose = given_parts) -> Scaffold:
    """The parts side by side on the same world, `at_once` of them at a time, and then a synthesis.

    A request of one part is done as it stands. Within a wave each part is a worker that knows of no other; their calls
    are carried out in rounds, in the order of the parts, whoever is the quicker. The synthesis is a worker with the
    role "synthesis", the whole request, what came of each part, and no tools but those that end a task: what it
    answers or refuses is the trial's. The calls of the whole are those of the parts. An error that a part raises ends
    the trial once the others of its wave have ended.
    """
    if type(at_once) is not int or not 1 <= at_once <= MOST_PARTS:
        raise LabError(f"fan_out takes a whole number from 1 to {MOST_PARTS}, not {at_once!r}")
    made: Any = functools.partial(_fan_out, at_once=at_once, decompose=decompose)
    made.name = f"fan_out_{at_once}{':plan' if decompose is plan_parts else ''}"
    found: Scaffold = made
    return found


def _fan_out(agent: Ask, *, at_once: int, decompose: Decompose) -> Run:
    def run(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
        parts, notes = _parts(decompose, agent, task, tools, ctx)
        if len(parts) < 2:
            return _noted(_single(agent, task, tools, ctx), notes)
        came: list[Transcript] = []
        numbers: list[int] = []
        for first in range(0, len(parts), at_once):
            wave = range(first, min(first + at_once, len(parts)))
            tasks = [msgspec.structs.replace(task, request=parts[at], parts=(parts[at],)) for at in wave]
            ask = functools.partial(
                side_by_side,
                agent,
                tasks,
                tools,
                ctx,
                names=[f"part {at + 1}" for at in wave],
                role="part",
                parts=list(wave),
            )
            before = ctx.workers
            came += _several(ctx.step(f"parts {wave[0] + 1} to {wave[-1] + 1}", ask))
            numbers += range(before + 1, before + 1 + len(wave))
        asked = msgspec.structs.replace(
            task, request=_SYNTHESIS.format(request=task.request, came=_told(parts, came)), tools=()
        )
        before = ctx.workers
        said = ctx.step("synthesis", lambda: agent(asked, tools, ctx, name="synthesis", role="synthesis"))
        numbers.append(before + 1)
        return _noted(_synthesis(parts, came, _several(said)[0], numbers, tools), notes)

    return run


def durable(scaffold: Scaffold) -> Scaffold:
    """The same scaffold, gone on with after a crash: see docs/scaffolds.md. Each `ctx.step` that it has finished is on
    disk with the world as it then was, and is neither repeated nor paid for again."""
    name = load_scaffold(scaffold).name
    return _Durable(scaffold if scaffold is not once else whole, f"durable:{name}")


def whole(agent: Ask) -> Run:
    """The agent alone with the whole task, as one step."""

    def run(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
        return _single(agent, task, tools, ctx)

    return run


class _Durable:
    durable = True

    def __init__(self, scaffold: Scaffold, name: str) -> None:
        self.scaffold, self.name = scaffold, name

    def __call__(self, agent: Ask) -> Run:
        return self.scaffold(agent)


_SYNTHESIS = (
    "{request}\n\nThe parts of this request have been seen to, side by side. What came of each:\n{came}\n"
    "There is nothing left to be done. Say how the whole ended: answer it, or refuse it if it could not be done."
)


def _several(came: Transcript | Sequence[Transcript]) -> Sequence[Transcript]:
    return [came] if isinstance(came, Transcript) else came


def _single(agent: Ask, task: Task, tools: Toolbox, ctx: Context) -> Transcript:
    return _several(ctx.step("whole", lambda: agent(task, tools, ctx, name="whole")))[0]


def _parts(
    decompose: Decompose, agent: Ask, task: Task, tools: Toolbox, ctx: Context
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The parts of a request, and a note where a plan was asked for and gave none."""
    parts = tuple(decompose(agent, task, tools, ctx))
    if not parts and decompose is not given_parts:
        return (), ("the plan gave no list of parts; the request was done as it stands",)
    return parts, ()


def _before(parts: Sequence[str], came: Sequence[Transcript]) -> str:
    return f"Done before, as parts of one request:\n{_told(parts, came)}\nNow: " if came else ""


def _told(parts: Sequence[str], came: Sequence[Transcript]) -> str:
    """In plain words what was asked and what came of it, a paragraph each."""
    return "\n".join(
        f"{number}. Asked: {part}\n   What came of it: {outcome(said)}"
        for number, (part, said) in enumerate(zip(parts, came, strict=False), start=1)
    )


def outcome(said: Transcript) -> str:
    """What came of a call of the agent, in plain words."""
    if said.refused:
        words = f"it was refused{f' ({said.notes[-1]})' if said.notes else ''}"
    elif said.stop != "done":
        words = "it was not finished"
    elif said.answer is not None:
        words = said.answer if isinstance(said.answer, str) else json.dumps(said.answer, ensure_ascii=False)
    elif said.text:
        words = said.text
    elif said.calls:
        words = f"done with {', '.join(call.name for call in said.calls)}"
    else:
        words = "nothing was said"
    return words if len(words) <= TOLD_LIMIT else f"{words[:TOLD_LIMIT]} ..."


def _noted(said: Transcript, notes: tuple[str, ...]) -> Transcript:
    return msgspec.structs.replace(said, notes=(*notes, *said.notes)) if notes else said


# ---- what several workers came to, as one


def _in_order(parts: Sequence[str], came: Sequence[Transcript]) -> Transcript:
    """The transcript of parts that were done one after the other."""
    last = next((said for said in reversed(came) if said.answer is not None), came[-1])
    statuses = [said.status for said in came if said.status is not None]
    proofs = [said.proof for said in came if said.calls]
    return _together(
        parts,
        came,
        calls=tuple(call for said in came for call in said.calls),
        proof=tuple(step for proof in proofs for step in proof) if all(proofs) else (),
        answer=last.answer,
        status="failure" if "failure" in statuses else statuses[-1] if statuses else None,
        text=next((said.text for said in reversed(came) if said.text), ""),
        refused=any(said.refused for said in came),
        reject=any(said.reject for said in came),
        inferred_goal=next((s.inferred_goal for s in reversed(came) if s.inferred_goal is not None), None),
        ambiguous_goals=next(
            (s.ambiguous_goals for s in reversed(came) if s.ambiguous_goals is not None), None
        ),
    )


def _synthesis(
    parts: Sequence[str],
    came: Sequence[Transcript],
    last: Transcript,
    numbers: Sequence[int],
    tools: Toolbox,
) -> Transcript:
    """The transcript of parts that were done side by side, of which `last` says how they ended."""
    said = _together(
        [*parts, "(synthesis)"],
        [*came, last],
        calls=in_ledger_order(list(zip(numbers, [*came, last], strict=True)), tools.ledger),
        answer=last.answer,
        status=last.status,
        text=last.text,
        refused=last.refused,
        reject=last.reject,
        inferred_goal=last.inferred_goal,
        ambiguous_goals=last.ambiguous_goals,
    )
    return msgspec.structs.replace(said, notes=(*said.notes, *last.notes[-1:])) if last.notes else said


def _together(parts: Sequence[str], came: Sequence[Transcript], **decided: Any) -> Transcript:
    """What is the same however the parts were done; `decided` is what is not."""
    given_up: list[Stop] = [said.stop for said in came if said.stop not in ("done", "refused")]
    stop: Stop = given_up[0] if given_up else "refused" if decided["refused"] else "done"
    results = [said.result for said in came if said.result is not None]
    candidates = [said.candidate_results for said in came if said.candidate_results is not None]
    messages: list[Any] = []
    for number, (part, said) in enumerate(zip(parts, came, strict=True), start=1):
        if said.messages:
            messages += [{"role": "scaffold", "content": f"worker {number}: {part}"}, *said.messages]
    notes = [
        f"part {number}: {said.notes[-1]}"
        for number, said in enumerate(came, start=1)
        if said.notes and parts[number - 1] != "(synthesis)"
    ]
    return Transcript(
        terminated=not given_up and all(said.terminated for said in came),
        stop=stop,
        driver=came[0].driver,
        result=tuple(dict.fromkeys(label for result in results for label in result)) if results else None,
        candidate_results=tuple(call for some in candidates for call in some) if candidates else None,
        recovered=any(said.recovered for said in came),
        messages=tuple(messages),
        notes=tuple(notes),
        **decided,
    )


def in_ledger_order(came: Sequence[tuple[int, Transcript]], ledger: Sequence[LedgerRow]) -> tuple[Call, ...]:
    """The claims of workers side by side, given with their numbers, in the order in which the ledger bears them out.

    Each worker's claims are looked for among its own rows, one after the other; a claim that no row bears out comes
    right after the one before it.
    """
    placed: list[tuple[int, int, Call]] = []
    for number, said in came:
        rows = [(at, row) for at, row in enumerate(ledger) if row.worker == number and row.status == "ok"]
        last = -1
        for call in said.calls:
            found = (
                at for at, row in rows if at > last and row.name == call.name and row.input == call.input
            )
            last = next(found, last)
            placed.append((last, number, call))
    return tuple(call for _, _, call in sorted(placed, key=lambda each: each[:2]))


# ---- scaffolds by name


@dataclass(frozen=True)
class LoadedScaffold:
    """A scaffold that was found: the name of its arms, the function, and what its rows are stamped with.

    `native` is the mode of a harness of its own, which no scaffold of ours wraps. A `durable` one is begun again from
    its last finished step when its driver crashes.
    """

    name: str
    function: Scaffold = once
    version: str = ""
    native: str = ""
    durable: bool = False

    @property
    def wraps(self) -> bool:
        return self.function is not once


NAMES = ("once", "linear", "fan_out_N", "linear:plan", "fan_out_N:plan", "durable:NAME", "native:NAME")
"""The names that `load_scaffold` knows; your own is package.module:name."""


def load_scaffold(scaffold: str | Scaffold) -> LoadedScaffold:
    """A scaffold by name (`NAMES`, or `package.module:name`), or a function given as it is.

    Raises LabError with the near match.
    """
    if callable(scaffold):
        bare: Any = scaffold.func if isinstance(scaffold, functools.partial) else scaffold
        module, word = getattr(bare, "__module__", ""), getattr(bare, "__qualname__", type(bare).__name__)
        name = getattr(scaffold, "name", "") or f"{module or '?'}:{word}"
        return _checked("once" if scaffold is once else name, scaffold)
    if not isinstance(scaffold, str):
        raise LabError(f"a scaffold is a name or a function, not a {type(scaffold).__name__}")
    head, _, rest = scaffold.partition(":")
    if head == "native":
        if not rest:
            raise LabError("scaffold 'native:' needs the mode of the driver's own, as in native:workflow")
        return LoadedScaffold(scaffold, native=rest)
    if head == "durable":
        inner = load_scaffold(rest or "once")
        if inner.native or inner.durable:
            raise LabError(f"scaffold {scaffold!r}: durable takes a scaffold of ours or yours, not {rest!r}")
        return replace(
            _checked(scaffold, durable(inner.function)), version=inner.version or source_digest(once)
        )
    found = _shipped(scaffold)
    if found is not None:
        return _checked(scaffold, found)
    if not rest or head in ("once", "linear") or head.startswith("fan_out"):
        raise LabError(
            f"unknown scaffold {scaffold!r}{_near(scaffold)}; your own is given as package.module:name"
        )
    return _checked(scaffold, import_function(scaffold, head, rest, kind="scaffold"))


def _near(name: str) -> str:
    return did_you_mean(name, [known.replace("_N", "_4") for known in NAMES])


def _shipped(name: str) -> Scaffold | None:
    head, _, plan = name.partition(":")
    if plan not in ("", "plan") or (head == "once" and plan):
        return None
    decompose = plan_parts if plan else given_parts
    if head == "once":
        return once
    if head == "linear":
        return functools.partial(linear, decompose=decompose) if plan else linear
    digits = head.removeprefix("fan_out_")
    if head.startswith("fan_out_") and digits.isascii() and digits.isdigit():
        return fan_out(int(digits), decompose=decompose)
    return None


def _checked(name: str, function: Any) -> LoadedScaffold:
    bare = function
    while isinstance(bare, functools.partial):
        bare = bare.func
    try:
        inspect.signature(function).bind(None)
    except TypeError:
        raise LabError(
            f"scaffold {name!r} takes {inspect.signature(function)}; a scaffold takes (agent)"
        ) from None
    except ValueError:
        pass
    if inspect.iscoroutinefunction(bare):
        raise LabError(
            f"scaffold {name!r} is an async function; a scaffold is a plain one (its drivers may be async)"
        )
    version = "" if function is once else source_digest(function)
    return LoadedScaffold(name, function, version, durable=bool(getattr(function, "durable", False)))


class Scaffolded:
    """A driver under a scaffold: what a trial calls."""

    def __init__(self, scaffold: Scaffold, driver: Loaded) -> None:
        self.scaffold, self.driver = scaffold, driver

    def __call__(self, task: Task, tools: Toolbox, ctx: Context) -> Transcript:
        run = self.scaffold(Agent(self.driver))
        if inspect.iscoroutinefunction(run):
            raise Nonsense("the scaffold gave an async function; a scaffold's is a plain one")
        return run(task, tools, ctx)

    def close(self) -> None:
        """What the driver holds is given back when the run ends."""
        close = getattr(self.driver.function, "close", None)
        if close is not None:
            close()


def scaffolded(scaffold: LoadedScaffold, driver: Loaded) -> Loaded:
    """The driver under the scaffold, with the marks of both; under `once` and a native mode the driver itself."""
    if not scaffold.wraps:
        return driver
    return replace(
        driver,
        function=Scaffolded(scaffold.function, driver),
        ladder_shaped=False,
        version=f"{driver.version}+{scaffold.version}",
        durable=scaffold.durable,
    )


def functions_of(driver: Loaded) -> list[Callable[..., Any]]:
    """The functions behind a loaded driver: the user's own, out of whatever was wrapped around them."""
    function: Any = driver.function
    if not isinstance(function, Scaffolded):
        return [function]
    scaffold: Any = function.scaffold
    while isinstance(scaffold, functools.partial | _Durable):
        scaffold = scaffold.func if isinstance(scaffold, functools.partial) else scaffold.scaffold
    return [function.driver.function, scaffold]
