"""The scaffolds that ship: one part after the other, and side by side; and what several workers come to as one."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from agentbench_lab.cases import Call, Task
from agentbench_lab.drivers.context import Context
from agentbench_lab.drivers.identity import name_of, untold, version_of
from agentbench_lab.errors import LabError
from agentbench_lab.scaffolds.agent import Agent, Run, Scaffold, side_by_side
from agentbench_lab.transcripts import Stop, Transcript
from agentbench_lab.worlds.toolbox import LedgerRow, Toolbox

MOST_PARTS = 64
"""Parts into which a request is taken at most."""
TOLD_LIMIT = 600
"""Characters of what came of a part that others are told."""

Decompose = Callable[[Agent, Task, Toolbox, Context], Sequence[str]]


def once(agent: Agent) -> Run:
    """The agent alone with the whole task. A run does not even wrap the driver."""
    return agent


def given_parts(agent: Agent, task: Task, tools: Toolbox, ctx: Context) -> Sequence[str]:
    """The parts that the case has; none where nobody has taken its request apart."""
    return task.parts


def plan_parts(agent: Agent, task: Task, tools: Toolbox, ctx: Context) -> Sequence[str]:
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


def linear(agent: Agent, *, decompose: Decompose = given_parts) -> Run:
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


linear.name = "linear"  # type: ignore[attr-defined]


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
    if what := untold(decompose):
        raise LabError(
            f"the decompose of fan_out is {what}, which cannot be told from another of its kind: give decompose a name "
            "(decompose.name = 'mine')"
        )
    made: Any = functools.partial(_fan_out, at_once=at_once, decompose=decompose)
    made.version = version_of(made)
    made.name = f"fan_out_{at_once}{_parts_from(decompose)}"
    found: Scaffold = made
    return found


def _parts_from(decompose: Decompose) -> str:
    """Where parts come from, as the end of a scaffold's name."""
    if decompose is given_parts:
        return ""
    return ":plan" if decompose is plan_parts else f":{name_of(decompose)}"


def _fan_out(agent: Agent, *, at_once: int, decompose: Decompose) -> Run:
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


def whole(agent: Agent) -> Run:
    """The agent alone with the whole task, as one step."""

    def run(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
        return _single(agent, task, tools, ctx)

    return run


_SYNTHESIS = (
    "{request}\n\nThe parts of this request have been seen to, side by side. What came of each:\n{came}\n"
    "There is nothing left to be done. Say how the whole ended: answer it, or refuse it if it could not be done."
)


def _several(came: Transcript | Sequence[Transcript]) -> Sequence[Transcript]:
    return [came] if isinstance(came, Transcript) else came


def _single(agent: Agent, task: Task, tools: Toolbox, ctx: Context) -> Transcript:
    return _several(ctx.step("whole", lambda: agent(task, tools, ctx, name="whole")))[0]


def _parts(
    decompose: Decompose, agent: Agent, task: Task, tools: Toolbox, ctx: Context
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
        heard=all(said.heard for said in came),
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
