"""Proofs: derived, sound when given, and every way to be unsound."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentbench_lab.cases import Case
from agentbench_lab.grading.proof import receipt
from agentbench_lab.worlds.toolbox import Toolbox

from ..helpers import Garden, call, case, checks, expected, judge

OAK, NEAR = call("look", what="oak"), call("near", what="elm")
ONE = case(expect=expected(OAK, proof=True))
TWO = case(expect=expected(NEAR, OAK, proof=True))
WALK = [{"name": "near", "input": {"what": "elm"}}, {"name": "look", "input": {"what": "ash"}}]
GOAL = case(
    tools=["near", "look"],
    trace=WALK,
    expect={"terminates": True, "inferredGoal": "goal:walk", "proof": True},
)
Step = dict[str, Any]


def loaded(**more: Any) -> Step:
    return {"step": "precondition", "pred": "cap:graph-loaded", "ok": True, **more}


def resolves(value: str, **more: Any) -> Step:
    return {
        "step": "precondition",
        "pred": "cap:resolves",
        "param": "what",
        "value": value,
        "ok": True,
        **more,
    }


def effect(topic: str, **more: Any) -> Step:
    return {"step": "effect", "pred": "cap:knows", "topic": topic, "of": "?what", **more}


def link(producer: Any, consumer: Any, **more: Any) -> Step:
    return {"step": "causal-link", "producer": producer, "consumer": consumer, "ok": True, **more}


SOUND = [loaded(), resolves("oak"), effect("view")]
CHAIN = [
    link("graph", "step-1:near"),
    loaded(ofStep=1),
    resolves("elm", ofStep=1),
    effect("beside", ofStep=1),
    link("step-1", "step-2:look"),
    loaded(ofStep=2),
    resolves("oak", ofStep=2),
    effect("view", ofStep=2),
]
FIT = {"step": "goal-fit", "goal": "goal:walk", "plan": ["near", "look"], "ok": True}


def swapped(steps: list[Step], at: int, *other: Step) -> list[Step]:
    return [*steps[:at], *other, *steps[at + 1 :]]


def proof_of(of: Case, proof: list[Any]) -> tuple[str | None, str | None]:
    """The outcome, and what the check of the proof says; the calls themselves are made as expected."""
    made = [call(one.name, **one.input) for one in of.expect.expected_calls]
    verdict = judge(of, made, calls=made, proof=proof, inferred_goal=of.expect.inferred_goal)
    assert verdict.completed
    return verdict.outcome, checks(verdict)["proof"]


@pytest.mark.parametrize(
    ("of", "proof"),
    [
        (ONE, SOUND),
        (ONE, SOUND[::-1]),
        (ONE, SOUND[:2]),  # what was achieved need not be said
        (ONE, [{key: value for key, value in step.items() if key != "ok"} for step in SOUND]),
        (ONE, [loaded(ofStep=1), resolves("oak", ofStep=1)]),
        (ONE, [link("graph", "step-1:look"), *SOUND]),
        (ONE, [{"step": "goal-rule", "rule": "r", "achieves": "g", "ok": True}, *SOUND]),
        (TWO, CHAIN),
        (TWO, [step for step in CHAIN if step["step"] != "causal-link"]),
        (TWO, swapped(CHAIN, 4, link("graph", "step-2:look"))),
        (TWO, swapped(CHAIN, 4, link("graph", "view:look"))),  # steps with no order of their own
        (GOAL, [FIT]),
        (GOAL, [FIT, link("graph", "step-1:near"), link("step-1", "step-2:look")]),
        (ONE, []),
        (TWO, []),
        (GOAL, []),
    ],
)
def test_a_sound_proof_is_accepted_and_one_that_is_not_given_is_derived(of: Case, proof: list[Step]) -> None:
    outcome, wrong = proof_of(of, proof)
    assert outcome in ("correct_calls", "correct_goal")
    assert wrong is None


def test_a_derived_proof_is_marked_so() -> None:
    details = [
        next(
            check.detail
            for check in judge(ONE, [OAK], calls=[OAK], proof=proof).checks
            if check.name == "proof"
        )
        for proof in ([], SOUND)
    ]
    assert details == ["derived from the ledger", ""]


NO_TARGET = "is no step of the plan"
UNSOUND: list[tuple[Case, list[Any], str]] = [
    # dangling steps
    (
        TWO,
        swapped(CHAIN, 4, link("step-99", "step-2:look")),
        "step 5: step-99 does not come before step-2:look",
    ),
    (TWO, swapped(CHAIN, 4, link("step-0", "step-2:look")), "step 5: step-0 does not come before"),
    (TWO, swapped(CHAIN, 4, link("step-1", "step-3:look")), f"step 5: 'step-3:look' {NO_TARGET}"),
    (TWO, swapped(CHAIN, 4, link("step-1", "step-0:look")), NO_TARGET),
    (TWO, swapped(CHAIN, 4, link("step-1", "step-2:paint")), f"'step-2:paint' {NO_TARGET}"),
    (TWO, swapped(CHAIN, 4, link("step-1", "step-2:near")), f"'step-2:near' {NO_TARGET}"),
    (TWO, swapped(CHAIN, 4, link("step-1", "look")), f"'look' {NO_TARGET}"),
    (TWO, [*CHAIN, loaded(ofStep=3)], "the proof speaks of call 3, which is not claimed"),
    (TWO, [*CHAIN, effect("view", ofStep=0)], "the proof speaks of call 0, which is not claimed"),
    # a producer that does not come before its consumer
    (
        TWO,
        swapped(CHAIN, 0, link("step-2", "step-1:near")),
        "step 1: step-2 does not come before step-1:near",
    ),
    (
        TWO,
        swapped(CHAIN, 4, link("step-2", "step-2:look")),
        "step 5: step-2 does not come before step-2:look",
    ),
    (TWO, swapped(CHAIN, 4, link("memory", "step-2:look")), "step 5: unknown producer 'memory'"),
    (TWO, swapped(CHAIN, 4, link("step-x", "step-2:look")), "unknown producer 'step-x'"),
    (TWO, swapped(CHAIN, 4, link("step-\u0661", "step-2:look")), "unknown producer"),
    (TWO, swapped(CHAIN, 4, link("step-" + "9" * 5000, "step-2:look")), "unknown producer"),
    # nothing is rooted in the graph
    (TWO, swapped(CHAIN, 0), "no causal link starts at the graph"),
    # preconditions
    (ONE, [resolves("oak")], "call 1: the proof leaves out cap:graph-loaded"),
    (ONE, [loaded()], "call 1: the proof leaves out cap:resolves"),
    (ONE, [effect("view")], "call 1: the proof leaves out cap:graph-loaded"),
    (TWO, CHAIN[:5], "call 2: the proof leaves out cap:graph-loaded"),
    (TWO, [loaded(), resolves("elm"), loaded(), resolves("oak")], "call 1: the ledger knows no precondition"),
    (ONE, [*SOUND, loaded(pred="cap:memory-facts")], "the ledger knows no precondition 'cap:memory-facts'"),
    (ONE, swapped(SOUND, 1, resolves("elm")), "the ledger knows no precondition 'cap:resolves' of that kind"),
    (ONE, swapped(SOUND, 1, resolves("oak", param="how")), "the ledger knows no precondition 'cap:resolves'"),
    (ONE, swapped(SOUND, 0, loaded(ok=False)), "proof step 1 says of itself that it failed"),
    (ONE, swapped(SOUND, 0, loaded(ok=None)), "proof step 1 says of itself that it failed"),
    (ONE, swapped(SOUND, 0, loaded(ok="yes")), "proof step 1 says of itself that it failed"),
    # effects
    (ONE, swapped(SOUND, 2, effect("beside")), "call 1: look does not achieve 'beside'"),
    (ONE, swapped(SOUND, 2, effect("view", of=None)), "call 1: look does not achieve 'view'"),
    (ONE, swapped(SOUND, 2, effect("view", pred="cap:changes")), "call 1: look does not achieve 'view'"),
    (TWO, swapped(CHAIN, 7, effect("beside", ofStep=2)), "call 2: look does not achieve 'beside'"),
    # kinds of steps
    (ONE, [{"step": "because I say so"}, *SOUND], "proof step 1: 'because I say so' is no kind of step here"),
    (ONE, [FIT, *SOUND], "proof step 1: 'goal-fit' is no kind of step here"),
    (GOAL, [*SOUND], "proof step 1: 'precondition' is no kind of step here"),
    (ONE, [{}], "proof step 1: None is no kind of step here"),
    # goals
    (GOAL, [{**FIT, "goal": "cap:near"}], "the proof fits 'cap:near'"),
    (GOAL, [{**FIT, "plan": ["look", "near"]}], "the proof's plan is not the goal's"),
    (GOAL, [{**FIT, "plan": ["near"]}], "the proof's plan is not the goal's"),
    (GOAL, [link("graph", "step-1:near")], "the proof does not say which plan the trace fits"),
    (GOAL, [FIT, link("graph", "step-1:look")], f"'step-1:look' {NO_TARGET}"),
    (GOAL, [FIT, link("step-1", "step-2:look")], "no causal link starts at the graph"),
    (GOAL, [FIT, link("graph", "step-3:look")], NO_TARGET),
    # forms that are no forms
    (TWO, [*CHAIN, loaded(ofStep="2")], "the proof speaks of call '2'"),
    (TWO, [*CHAIN, loaded(ofStep=True)], "the proof speaks of call True"),
    (TWO, [*CHAIN, loaded(ofStep=1.5)], "the proof speaks of call 1.5"),
    (TWO, [*CHAIN, loaded(ofStep=None)], "the proof speaks of call None"),
    (TWO, [*CHAIN, loaded(ofStep=[1])], r"the proof speaks of call [1]"),
    (ONE, [{"step": ["effect"]}, *SOUND], "proof step 1: ['effect'] is no kind of step here"),
    (ONE, [{"step": {}}, *SOUND], "proof step 1: {} is no kind of step here"),
    (ONE, swapped(SOUND, 2, effect("view", of=["?what"])), "does not achieve"),
    (ONE, swapped(SOUND, 2, effect({})), "does not achieve {}"),
    (ONE, [link(None, "step-1:look"), *SOUND], "unknown producer None"),
    (ONE, [link(["graph"], "step-1:look"), *SOUND], "unknown producer ['graph']"),
    (ONE, [link("graph", None), *SOUND], f"None {NO_TARGET}"),
    (ONE, [link("graph", ["step-1:look"]), *SOUND], NO_TARGET),
    (ONE, [link("graph", "step-1"), *SOUND], NO_TARGET),
    (ONE, [link("graph", ""), *SOUND], NO_TARGET),
    (GOAL, [{**FIT, "plan": "near look"}], "the proof's plan is not the goal's"),
    (GOAL, [{**FIT, "plan": 7}], "the proof's plan is not the goal's"),
    (GOAL, [{**FIT, "plan": None}], "the proof's plan is not the goal's"),
    (GOAL, [{**FIT, "plan": [["near"], "look"]}], "the proof's plan is not the goal's"),
    (GOAL, [{**FIT, "goal": ["goal:walk"]}], "the proof fits ['goal:walk']"),
]


@pytest.mark.parametrize(("of", "proof", "says"), UNSOUND, ids=[row[2][:60] for row in UNSOUND])
def test_each_way_to_be_unsound_leaves_the_case_unproven(of: Case, proof: list[Any], says: str) -> None:
    """The right outcome, produced and completed, and still not solved."""
    outcome, wrong = proof_of(of, proof)
    assert outcome == "unproven"
    assert wrong is not None
    assert says in wrong


def test_a_precondition_that_did_not_hold_cannot_be_proven_away() -> None:
    """The world says that it was false; neither a derived proof nor one that says otherwise helps."""
    world = Garden(["cap:resolves"])
    for proof in ([], SOUND):
        verdict = judge(ONE, [OAK], calls=[OAK], proof=proof, world=world)
        assert verdict.outcome == "unproven"
        assert checks(verdict)["proof"] == "call 1: cap:resolves did not hold"


def test_a_proof_is_only_looked_at_where_one_is_asked_for() -> None:
    verdict = judge(case(), [OAK], calls=[OAK], proof=[{"step": "nonsense"}])
    assert verdict.outcome == "correct_calls"
    assert "proof" not in checks(verdict)


def test_a_call_that_was_not_made_is_not_proven_and_a_case_without_calls_neither() -> None:
    verdict = judge(ONE, [], calls=[OAK], proof=SOUND)
    assert (verdict.outcome, checks(verdict)["proof"]) == ("false_success", "call 1 is not in the ledger")
    assert checks(judge(ONE, [], proof=SOUND))["proof"] == "there is no call to prove"


def test_a_goal_that_others_fit_too_is_unproven() -> None:
    """The trace near fits cap:near and goal:walk: naming one of them as if it were the only one is no proof."""
    of = case(trace=WALK[:1], expect={"terminates": True, "inferredGoal": "goal:walk", "proof": True})
    verdict = judge(of, inferred_goal="goal:walk")
    assert (verdict.outcome, checks(verdict)["proof"]) == ("unproven", "the trace fits cap:near, goal:walk")
    off = case(trace=WALK[::-1], expect={"terminates": True, "inferredGoal": "goal:walk", "proof": True})
    assert checks(judge(off, inferred_goal="goal:walk"))["proof"] == "the trace fits no declared goal"


def test_a_step_that_failed_and_was_recovered_from_needs_no_proof() -> None:
    fir = call("near", what="fir")
    of = case(expect=expected(fir, OAK, recover={"after": "near", "fallback": "look"}, proof=True))
    proof = [loaded(ofStep=2), resolves("oak", ofStep=2)]
    for told in ([], proof, [*proof, loaded(ofStep=1)]):
        assert judge(of, [fir, OAK], calls=[fir, OAK], proof=told).outcome == "correct_calls"
    assert judge(of, [fir, OAK], calls=[fir, OAK], proof=[loaded(ofStep=1)]).outcome == "unproven"


@given(st.lists(st.sampled_from([OAK, NEAR, call("all"), call("find", query="a"), call("near", what="fir")]), min_size=1, max_size=4))  # fmt: skip
@settings(deadline=None)
def test_the_receipt_of_calls_that_were_made_is_a_sound_proof_of_them(made: list[Any]) -> None:
    """Failed calls among them are left out of what is claimed."""
    toolbox = Toolbox(Garden(), ONE.task.tools)
    for one in made:
        toolbox.call(one.name, one.input)
    rows = [row for row in toolbox.close() if row.status == "ok"]
    claimed = [call(row.name, **row.input) for row in rows]
    if claimed:
        of = case(expect=expected(*claimed, proof=True))
        verdict = judge(of, made, calls=claimed, proof=list(receipt(rows)))
        assert verdict.outcome == "correct_calls", verdict.reasons
