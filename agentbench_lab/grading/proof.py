"""Proofs: the receipt that each call's preconditions held, and what the call achieved.

A proof that the driver gives must be sound: every precondition the ledger recorded for a call is in it and true,
every effect is one the call really has, and a link's producer comes before its consumer. Where the driver gives none,
the proof is derived from the ledger's own precondition checks. Both are about the calls of the ledger that bear out
the claims; a proof of goal recognition is about the declared plan that the trace fits.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from agentbench_lab.cases import Call, Goal
from agentbench_lab.transcripts import Transcript
from agentbench_lab.values import same
from agentbench_lab.worlds.toolbox import LedgerRow

_STEPS = {"precondition", "effect", "causal-link", "goal-rule", "goal-fit"}


def unsound(transcript: Transcript, rows: Sequence[LedgerRow | None]) -> str | None:
    """Why the proof of the claimed calls does not hold, or None. `rows` are the ledger rows that bear them out."""
    for number, row in enumerate(rows, start=1):
        if row is None:
            return f"call {number} is not in the ledger"
        for fact in row.facts:
            if not fact.ok:
                return f"call {number}: {fact.pred} did not hold"
    if not rows:
        return "there is no call to prove"
    if not transcript.proof:
        return None
    return _forms(transcript.proof) or _links(transcript.proof, rows) or _steps(transcript.proof, rows)


def unsound_goal(transcript: Transcript, trace: Sequence[Call], goals: Sequence[Goal]) -> str | None:
    """Why the proof of a recognised goal does not hold, or None: the trace must fit that goal's plan and no other's."""
    names = [call.name for call in trace]
    fitting = [goal for goal in goals if goal.fits(names)]
    if [goal.id for goal in fitting] != [transcript.inferred_goal]:
        return f"the trace fits {', '.join(goal.id for goal in fitting) or 'no declared goal'}"
    if not transcript.proof:
        return None
    wrong = _forms(transcript.proof)
    if wrong:
        return wrong
    for step in transcript.proof:
        if step.get("step") == "goal-fit" and step.get("goal") != transcript.inferred_goal:
            return f"the proof fits {step.get('goal')!r}"
        if step.get("step") == "goal-fit" and tuple(step.get("plan") or ()) != fitting[0].plan:
            return "the proof's plan is not the goal's"
    return _order(transcript.proof, len(trace))


def _forms(proof: Sequence[dict[str, Any]]) -> str | None:
    for number, step in enumerate(proof, start=1):
        if step.get("step") not in _STEPS:
            return f"proof step {number}: unknown kind {step.get('step')!r}"
        if step.get("ok") is False:
            return f"proof step {number} says of itself that it failed"
    return None


def _order(proof: Sequence[dict[str, Any]], calls: int) -> str | None:
    """Causal links: producers are the graph or an earlier step, consumers exist, one link starts at the graph."""
    producers = []
    for number, step in enumerate(proof, start=1):
        if step.get("step") != "causal-link":
            continue
        producer, consumer = str(step.get("producer")), str(step.get("consumer"))
        producers.append(producer)
        by, of = re.fullmatch(r"step-(\d+)", producer), re.match(r"step-(\d+):", consumer)
        if producer != "graph" and by is None:
            return f"proof step {number}: unknown producer {producer!r}"
        if of is not None and not 1 <= int(of[1]) <= calls:
            return f"proof step {number}: there is no call {of[1]}"
        if by is not None and not 1 <= int(by[1]) < (int(of[1]) if of else calls + 1):
            return f"proof step {number}: {producer} does not come before {consumer}"
    if producers and "graph" not in producers:
        return "no causal link starts at the graph"
    return None


def _links(proof: Sequence[dict[str, Any]], rows: Sequence[LedgerRow | None]) -> str | None:
    wrong = _order(proof, len(rows))
    if wrong:
        return wrong
    names = [row.name for row in rows if row is not None]
    for number, step in enumerate(proof, start=1):
        if step.get("step") != "causal-link":
            continue
        place, _, tool = str(step.get("consumer")).rpartition(":")
        at = re.fullmatch(r"step-(\d+)", place)
        if tool not in names or (at is not None and names[int(at[1]) - 1] != tool):
            return f"proof step {number}: {step.get('consumer')!r} is not a claimed call"
    return None


def _steps(proof: Sequence[dict[str, Any]], rows: Sequence[LedgerRow | None]) -> str | None:
    """Preconditions and effects, call by call; a proof that says nothing of a call leaves it unproven."""
    for number, row in enumerate(rows, start=1):
        assert row is not None
        own = [
            step
            for step in proof
            if step.get("ofStep", 1) == number and step.get("step") in ("precondition", "effect")
        ]
        for step in own:
            if step["step"] == "precondition":
                if not any(_states(step, fact.pred, fact.param, fact.value) for fact in row.facts):
                    return f"call {number}: the ledger knows no precondition {step.get('pred')!r} of that kind"
            elif not any(
                effect.topic == step.get("topic") and effect.of == step.get("of") for effect in row.effects
            ):
                return f"call {number}: {row.name} does not achieve {step.get('topic')!r}"
        for fact in row.facts:
            if not any(
                step["step"] == "precondition" and _states(step, fact.pred, fact.param, fact.value)
                for step in own
            ):
                return f"call {number}: the proof leaves out {fact.pred}"
    beyond = [step for step in proof if not 1 <= int(step.get("ofStep", 1)) <= len(rows)]
    return f"the proof speaks of call {beyond[0].get('ofStep')}, which is not claimed" if beyond else None


def _states(step: dict[str, Any], pred: str, param: str | None, value: Any) -> bool:
    return (
        step.get("pred") == pred
        and step.get("param") == param
        and (param is None or same(step.get("value"), value))
    )


def receipt(rows: Sequence[LedgerRow]) -> tuple[dict[str, Any], ...]:
    """The proof steps that the ledger itself supports for these rows, in the ladder's own shape.

    One row gives its preconditions and effects; several give a causal link before each and number the steps.
    """
    steps: list[dict[str, Any]] = []
    for number, row in enumerate(rows, start=1):
        place: dict[str, Any] = {"ofStep": number} if len(rows) > 1 else {}
        if place:
            consumer = f"step-{number}:{row.name}"
            steps.append({"step": "causal-link", "producer": "graph", "consumer": consumer, "ok": True})
        for fact in row.facts:
            bound = {} if fact.param is None else {"param": fact.param, "value": fact.value}
            steps.append({"step": "precondition", "pred": fact.pred, **bound, "ok": fact.ok, **place})
        for effect in row.effects:
            steps.append(
                {"step": "effect", "pred": effect.pred, "topic": effect.topic, "of": effect.of, **place}
            )
    return tuple(steps)
