"""Proofs: the receipt that each call's preconditions held, and what the call achieved.

A proof that the driver gives must be sound: every precondition the ledger recorded for a call is in it and true,
every effect is one the call really has, and a link's producer comes before its consumer. Where the driver gives none,
the proof is derived from the ledger's own precondition checks. Both are about the calls of the ledger that bear out
the claims; a proof of goal recognition is about the declared plan that the trace fits. A step of recovery that failed
achieved nothing, so it needs no proof.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from agentbench_lab.cases import Call, Goal
from agentbench_lab.grading.grade import cut
from agentbench_lab.transcripts import Transcript
from agentbench_lab.values import same
from agentbench_lab.worlds.toolbox import LedgerRow

_OF_CALLS = ("precondition", "effect", "causal-link", "goal-rule")
_OF_GOALS = ("goal-fit", "causal-link")
_PLACE = r"step-([0-9]{1,6})"

Proof = Sequence[dict[str, Any]]


def unsound(transcript: Transcript, rows: Sequence[LedgerRow | None]) -> str | None:
    """Why the proof of the claimed calls does not hold, or None. `rows` are the ledger rows that bear them out."""
    borne = []
    for number, row in enumerate(rows, start=1):
        if row is None:
            return f"call {number} is not in the ledger"
        for fact in row.facts if row.status == "ok" else ():
            if not fact.ok:
                return f"call {number}: {fact.pred} did not hold"
        borne.append(row)
    if not borne:
        return "there is no call to prove"
    proof = transcript.proof
    if not proof:
        return None
    return _forms(proof, _OF_CALLS) or _links(proof, [row.name for row in borne]) or _steps(proof, borne)


def unsound_goal(transcript: Transcript, trace: Sequence[Call], goals: Sequence[Goal]) -> str | None:
    """Why the proof of a recognised goal does not hold, or None: the trace must fit that goal's plan and no other's."""
    names = [call.name for call in trace]
    fitting = [goal for goal in goals if goal.fits(names)]
    if [goal.id for goal in fitting] != [transcript.inferred_goal]:
        return f"the trace fits {', '.join(goal.id for goal in fitting) or 'no declared goal'}"
    proof = transcript.proof
    if not proof:
        return None
    wrong = _forms(proof, _OF_GOALS)
    if wrong:
        return wrong
    fits = [step for step in proof if step["step"] == "goal-fit"]
    for step in fits:
        if step.get("goal") != transcript.inferred_goal:
            return f"the proof fits {_brief(step.get('goal'))}"
        if not same(step.get("plan"), list(fitting[0].plan)):
            return "the proof's plan is not the goal's"
    if not fits:
        return "the proof does not say which plan the trace fits"
    return _links(proof, fitting[0].plan)


def _forms(proof: Proof, kinds: Sequence[str]) -> str | None:
    for number, step in enumerate(proof, start=1):
        if step.get("step") not in kinds:
            return f"proof step {number}: {_brief(step.get('step'))} is no kind of step here"
        if step.get("ok", True) is not True:
            return f"proof step {number} says of itself that it failed"
    return None


def _links(proof: Proof, names: Sequence[str]) -> str | None:
    """Causal links lead from the graph or an earlier step to a step that is there; one at least from the graph.

    A consumer is `step-2:tool`, or `topic:tool` where the steps have no order of their own.
    """
    rooted, linked = False, False
    for number, step in enumerate(proof, start=1):
        if step["step"] != "causal-link":
            continue
        linked = True
        consumer = step.get("consumer")
        place, _, tool = consumer.rpartition(":") if isinstance(consumer, str) else ("", "", "")
        of = re.fullmatch(_PLACE, place)
        here = int(of[1]) if of else None
        if (
            not place
            or tool not in names
            or (here is not None and not (1 <= here <= len(names) and names[here - 1] == tool))
        ):
            return f"proof step {number}: {_brief(consumer)} is no step of the plan"
        producer = step.get("producer")
        if producer == "graph":
            rooted = True
            continue
        by = re.fullmatch(_PLACE, producer) if isinstance(producer, str) else None
        if by is None:
            return f"proof step {number}: unknown producer {_brief(producer)}"
        last = len(names) if here is None else here - 1
        if not 1 <= int(by[1]) <= last:
            return f"proof step {number}: {producer} does not come before {cut(str(consumer))}"
    return "no causal link starts at the graph" if linked and not rooted else None


def _steps(proof: Proof, rows: Sequence[LedgerRow]) -> str | None:
    """Preconditions and effects, call by call; a proof that says nothing of a call leaves it unproven."""
    own: list[list[dict[str, Any]]] = [[] for _ in rows]
    for step in proof:
        if step["step"] not in ("precondition", "effect"):
            continue
        of = step.get("ofStep", 1)
        if type(of) is not int or not 1 <= of <= len(rows):
            return f"the proof speaks of call {_brief(of)}, which is not claimed"
        own[of - 1].append(step)
    for number, (row, steps) in enumerate(zip(rows, own, strict=True), start=1):
        stated = [step for step in steps if step["step"] == "precondition"]
        for step in stated:
            if not any(_states(step, fact.pred, fact.param, fact.value) for fact in row.facts):
                return (
                    f"call {number}: the ledger knows no precondition {_brief(step.get('pred'))} of that kind"
                )
        for step in steps:
            if step["step"] == "effect" and not any(
                (effect.pred, effect.topic, effect.of)
                == (step.get("pred"), step.get("topic"), step.get("of"))
                for effect in row.effects
            ):
                return f"call {number}: {row.name} does not achieve {_brief(step.get('topic'))}"
        for fact in row.facts if row.status == "ok" else ():
            if not any(_states(step, fact.pred, fact.param, fact.value) for step in stated):
                return f"call {number}: the proof leaves out {fact.pred}"
    return None


def _states(step: dict[str, Any], pred: str, param: str | None, value: Any) -> bool:
    return (
        step.get("pred") == pred
        and step.get("param") == param
        and (param is None or same(step.get("value"), value))
    )


def _brief(value: Any) -> str:
    return cut(repr(value))


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
        for fact in (fact for fact in row.facts if fact.ok):
            bound = {} if fact.param is None else {"param": fact.param, "value": fact.value}
            steps.append({"step": "precondition", "pred": fact.pred, **bound, "ok": True, **place})
        for effect in row.effects:
            steps.append(
                {"step": "effect", "pred": effect.pred, "topic": effect.topic, "of": effect.of, **place}
            )
    return tuple(steps)
