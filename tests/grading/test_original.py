"""The TOOL ladder's own literal rule, corner by corner, and how the strict one decides the same story."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentbench_lab.cases import Case, parse_cases
from agentbench_lab.drivers.returned import as_transcript
from agentbench_lab.grading import Evidence, Grade, grade
from agentbench_lab.grading.original import _number, _text
from agentbench_lab.transcripts import Transcript
from agentbench_lab.worlds.codetools import REGISTRY

TOOLS = ["tmct_describe", "tmct_search", "tmct_impact", "tmct_untested"]
W = {"name": "tmct_describe", "input": {"symbol": "Widget"}}


def a_case(expect: dict[str, Any], **keys: Any) -> Case:
    line = {
        "id": "c",
        "rung": "TOOL-1",
        "request": "r",
        "tools": TOOLS,
        "expect": {"terminates": True, **expect},
        **keys,
    }
    cases, problems = parse_cases(json.dumps(line).encode(), name="s", file="s")
    assert problems == []
    return cases[0]


def judged(of: Case, loop: dict[str, Any] | Transcript, strictness: str = "original") -> Grade:
    """The verdict on a loop result in the ladder's own shape. There is no ledger: none is looked at."""
    transcript = as_transcript({"terminated": True, **loop}) if isinstance(loop, dict) else loop
    problems = tuple(REGISTRY.problems(call.name, call.input, of.task.tools) for call in transcript.calls)
    others = tuple(
        REGISTRY.problems(call.name, call.input, of.task.tools) for call in transcript.candidate_results or ()
    )
    return grade(
        of, transcript, Evidence(problems=problems, candidate_problems=others), strictness=strictness
    )


def described(**input: Any) -> dict[str, Any]:
    return {"name": "tmct_describe", "input": input}


def searched(**input: Any) -> dict[str, Any]:
    return {"name": "tmct_search", "input": input}


WIDGET = {"calls": [W]}
REFUSE = {"refuse": True}
TRACE = {"trace": [{"name": "tmct_untested"}]}
GOAL = {"inferredGoal": "g"}
PROOF = {**WIDGET, "proof": True}
RESULT = {**WIDGET, "result": ["a", "b"]}
TIED = {**REFUSE, "candidateResults": [W, described(symbol="Base")]}


def link(producer: Any, **more: Any) -> dict[str, Any]:
    return {"step": "causal-link", "producer": producer, "consumer": "step-1:tmct_describe", **more}


# the corner: what is expected, what the loop gave back, and then
# solved, completed, result-completed, and why it failed (a part of the first reason)
Corner = tuple[dict[str, Any], dict[str, Any] | Transcript, bool, bool, bool, str]
CORNERS: dict[str, Corner] = {
    # calls
    "blanks at the ends are trimmed": (WIDGET, {"calls": [described(symbol="  Widget\t\u00a0\ufeff\n")]}, True, True, True, ""),
    "but only what the original trims": (WIDGET, {"calls": [described(symbol="Widget\u0085")]}, False, False, False, "got tmct_describe"),
    "the case of letters matters": (WIDGET, {"calls": [described(symbol="widget")]}, False, False, False, "got tmct_describe"),
    "a call with an unknown argument is completed and still fails": (WIDGET, {"calls": [described(symbol="Widget", bogus=1)]}, False, True, True, "hallucinated tmct_describe[unknown-arg]"),
    "without an end the case fails and is completed": (WIDGET, {"calls": [W], "terminated": False}, False, True, True, "the loop did not terminate"),
    "an end that is not asked for is not missed": ({**WIDGET, "terminates": False}, {"calls": [W], "terminated": False}, True, True, True, ""),
    "a refusal beside the right call passes": (WIDGET, {"calls": [W], "refused": True}, True, True, True, ""),
    "no result at all is neither ended nor completed": (WIDGET, Transcript(terminated=False), False, False, False, "the loop did not terminate"),
    "more calls than expected": (WIDGET, {"calls": [W, W]}, False, False, False, "got tmct_describe"),
    "fewer calls than expected": ({"calls": [W, W]}, {"calls": [W]}, False, False, False, "got tmct_describe"),
    "another declared argument is free": ({"calls": [searched(query="x")]}, {"calls": [searched(query="x", kind="Class")]}, True, True, True, ""),
    # how the original compares values: as text
    "a list of one is its entry": (WIDGET, {"calls": [described(symbol=["Widget"])]}, True, True, True, ""),
    "a list is its entries with commas": ({"calls": [described(symbol="1,2")]}, {"calls": [described(symbol=[1, 2])]}, True, True, True, ""),
    "null in a list is nothing": ({"calls": [described(symbol="a,,b")]}, {"calls": [described(symbol=["a", None, "b"])]}, True, True, True, ""),
    "a number is its digits": ({"calls": [described(symbol="1")]}, {"calls": [described(symbol=1)]}, True, True, True, ""),
    "a whole float has no point": ({"calls": [described(symbol="1.0")]}, {"calls": [described(symbol=1.0)]}, False, False, False, "got"),
    "true is its word": ({"calls": [described(symbol="true")]}, {"calls": [described(symbol=True)]}, True, True, True, ""),
    "true is not one": ({"calls": [described(symbol="1")]}, {"calls": [described(symbol=True)]}, False, False, False, "got"),
    "null is the same as not there": ({"calls": [searched(query="x", name=None)]}, {"calls": [searched(query="x")]}, True, True, True, ""),
    "so is empty text": ({"calls": [searched(query="x", name="")]}, {"calls": [searched(query="x")]}, True, True, True, ""),
    "any object is any object": ({"calls": [described(symbol={"a": 1})]}, {"calls": [described(symbol={"b": [2]})]}, True, True, True, ""),
    # refusals
    "what a refusal says beside is harmless": (REFUSE, {"refused": True, "reject": True, "ambiguousGoals": ["a", "b"], "candidateResults": [W], "inferredGoal": "g"}, True, True, True, ""),
    "no call without the flag is no refusal": (REFUSE, {}, False, False, False, "expected a refusal, got no call"),
    "a refusal beside a call is none": (REFUSE, {"refused": True, "calls": [W]}, False, False, False, "expected a refusal, got tmct_describe"),
    "candidates in any order and number": (TIED, {"refused": True, "candidateResults": [described(symbol="Base"), W, W]}, True, True, True, ""),
    "candidates are not trimmed": (TIED, {"refused": True, "candidateResults": [described(symbol="Base "), W]}, False, False, False, "the candidates differ"),
    "candidates with another argument": (TIED, {"refused": True, "candidateResults": [described(symbol="Base", x=1), W]}, False, False, False, "the candidates differ"),
    "one of two candidates": (TIED, {"refused": True, "candidateResults": [W]}, False, False, False, "the candidates differ"),
    "no candidates": (TIED, {"refused": True}, False, False, False, "the candidates differ"),
    "candidates are compared as text": ({**REFUSE, "candidateResults": [described(symbol="1")]}, {"refused": True, "candidateResults": [described(symbol=1)]}, True, True, True, ""),
    "candidates escape the hallucination check": ({**REFUSE, "candidateResults": [W]}, {"refused": True, "candidateResults": [W], "calls": []}, True, True, True, ""),
    # goals
    "a goal beside a refusal passes": (GOAL, {"inferredGoal": "g", "refused": True}, True, True, True, ""),
    "a goal that is rejected does not": (GOAL, {"inferredGoal": "g", "reject": True}, False, False, False, "not 'g'"),
    "another goal": (GOAL, {"inferredGoal": "h"}, False, False, False, "named 'h', not 'g'"),
    "no goal": (GOAL, {}, False, False, False, "no goal was named"),
    "a goal beside a call": (GOAL, {"inferredGoal": "g", "calls": [W]}, False, False, False, "not 'g'"),
    "a refusal that has to reject": ({**REFUSE, "reject": True}, {"refused": True}, False, False, False, "refused without rejecting"),
    "a refusal that has to name ties": ({**REFUSE, "ambiguousGoals": ["a", "b"]}, {"refused": True, "ambiguousGoals": ["b", "a", "a"]}, True, True, True, ""),
    "a refusal that names one tie": ({**REFUSE, "ambiguousGoals": ["a", "b"]}, {"refused": True, "ambiguousGoals": ["a"]}, False, False, False, "the tied goals differ"),
    # recovery is believed
    "a recovery that is signalled": ({**WIDGET, "calls": [W, W], "recover": {"after": "tmct_describe", "fallback": "tmct_describe"}}, {"calls": [W, W], "recovered": True}, True, True, True, ""),
    "a recovery that is not": ({**WIDGET, "calls": [W, W], "recover": {"after": "tmct_describe", "fallback": "tmct_describe"}}, {"calls": [W, W]}, False, False, False, "no recovery was signalled"),
    # proofs are not tied to anything
    "an empty step is a proof": (PROOF, {"calls": [W], "proof": [{}]}, True, True, True, ""),
    "no step is none": (PROOF, {"calls": [W]}, False, True, True, "expected a valid proof chain"),
    "a step that failed": (PROOF, {"calls": [W], "proof": [{"ok": True}, {"ok": False}]}, False, True, True, "expected a valid proof chain"),
    "a dangling step beside the graph": (PROOF, {"calls": [W], "proof": [link("graph"), link("step-99")]}, True, True, True, ""),
    "links without the graph": (PROOF, {"calls": [W], "proof": [link("step-1")]}, False, True, True, "expected a valid proof chain"),
    "a producer that is none": (PROOF, {"calls": [W], "proof": [link("graph"), link("memory")]}, False, True, True, "expected a valid proof chain"),
    "a producer that is missing": (PROOF, {"calls": [W], "proof": [link("graph"), link(None)]}, False, True, True, "expected a valid proof chain"),
    "a link that does not say ok": (PROOF, {"calls": [W], "proof": [link("graph")]}, True, True, True, ""),
    "a link that failed": (PROOF, {"calls": [W], "proof": [link("graph", ok=False)]}, False, True, True, "expected a valid proof chain"),
    # results
    "the result without the plan": (RESULT, {"composed": ["b", "a", "b"]}, False, False, True, "no call"),
    "the plan without the result": (RESULT, {"calls": [W]}, True, True, False, ""),
    "a result beside a hallucination": (RESULT, {"calls": [{"name": "zzz"}], "composed": ["a", "b"]}, False, False, False, "hallucinated zzz[unknown-tool]"),
    "a result without an end": (RESULT, {"calls": [W], "composed": ["a", "b"], "terminated": False}, False, True, False, "the loop did not terminate"),
    "a result without an end that is not asked for": ({**RESULT, "terminates": False}, {"calls": [W], "composed": ["a", "b"], "terminated": False}, True, True, True, ""),
    "results are compared as text": ({**WIDGET, "result": ["1"]}, Transcript(calls=as_transcript({"calls": [W]}).calls, result=(1,)), True, True, True, ""),  # type: ignore[arg-type]
}  # fmt: skip


@pytest.mark.parametrize("corner", CORNERS.values(), ids=CORNERS)
def test_each_corner_is_decided_as_the_original_decides_it(corner: Corner) -> None:
    expect, loop, solved, completed, result_completed, why = corner
    recognises = {"inferredGoal", "reject", "ambiguousGoals"} & set(expect)
    verdict = judged(a_case(expect, **(TRACE if recognises else {})), loop)
    assert (verdict.solved, verdict.completed, verdict.result_completed) == (
        solved,
        completed,
        result_completed,
    )
    assert verdict.hallucinated is why.startswith("hallucinated")
    assert bool(verdict.reasons) is not solved
    if why:
        assert why in verdict.reasons[0]


OUTCOMES: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    (WIDGET, {"calls": [W]}, "correct_calls"),
    (WIDGET, {"calls": [described(symbol="x")]}, "wrong_calls"),
    (WIDGET, {"refused": True}, "over_refusal"),
    (WIDGET, {}, "no_answer"),
    (REFUSE, {"refused": True}, "correct_refusal"),
    (REFUSE, {}, "no_answer"),
    (REFUSE, {"calls": [W]}, "wrong_calls"),
    (TIED, {"refused": True}, "wrong_calls"),
    (GOAL, {"inferredGoal": "g"}, "correct_goal"),
    (GOAL, {"inferredGoal": "h"}, "wrong_calls"),
    (GOAL, {"refused": True}, "over_refusal"),
    (GOAL, {}, "no_answer"),
    (PROOF, {"calls": [W]}, "unproven"),
    (WIDGET, {"calls": [W], "terminated": False}, "budget"),
    (WIDGET, {"calls": [{"name": "zzz"}], "terminated": False}, "hallucinated_call"),
    ({**WIDGET, "terminates": False}, {"terminated": False, "stop": "budget"}, "budget"),
    ({**WIDGET, "terminates": False}, {"terminated": False, "stop": "driver_error"}, "driver_error"),
    ({**WIDGET, "terminates": False}, {"calls": [W], "terminated": False, "stop": "budget"}, "correct_calls"),
]


@pytest.mark.parametrize(("expect", "loop", "outcome"), OUTCOMES)
def test_the_literal_rule_lands_in_the_same_outcomes(
    expect: dict[str, Any], loop: dict[str, Any], outcome: str
) -> None:
    verdict = judged(a_case(expect, **(TRACE if "inferredGoal" in expect else {})), loop)
    assert verdict.outcome == outcome


def test_a_timeout_is_one_under_both_rules() -> None:
    late = Transcript(terminated=False, stop="timeout")
    assert [judged(a_case(WIDGET), late, s).outcome for s in ("original", "strict")] == ["timeout", "timeout"]


def test_a_drivers_name_can_change_what_is_expected_and_only_under_the_original_rule() -> None:
    """floorExpect: a driver that calls itself resolver-… is expected to refuse, and has no proof to give."""
    of = a_case({**PROOF, "result": ["a"]}, floorExpect={"refuse": True})
    loop = {"refused": True, "driver": "resolver-0.8.0"}
    assert judged(of, loop).outcome == "correct_refusal"
    assert judged(of, {**loop, "driver": "resolver"}).outcome == "over_refusal"
    assert judged(of, {"calls": [W], "driver": "resolver-x"}).outcome == "wrong_calls"
    assert judged(of, {**loop, "terminated": False}).outcome == "budget"
    assert judged(of, loop, "strict").outcome == "over_refusal"
    assert judged(a_case(WIDGET), loop).outcome == "over_refusal"


# -- the hallucination check, with the ladder's own registry

HALLUCINATIONS: list[tuple[Any, Any, list[str], list[str]]] = [
    ("tmct_describe", {"symbol": "Widget"}, TOOLS, []),
    ("tmct_untested", "not an object", TOOLS, []),
    ("tmct_untested", None, TOOLS, []),
    ("tmct_describe", {"zz": None}, [], ["undeclared tmct_describe", "unknown-arg tmct_describe.zz", "missing-arg tmct_describe.symbol"]),
    ("tmct_search", {"decorator": "x"}, TOOLS, ["missing-arg tmct_search needs one of query|kind"]),
    ("tmct_search", {"kind": "Class"}, TOOLS, []),
    ("tmct_describe", {"symbol": " \t\n"}, TOOLS, ["missing-arg tmct_describe.symbol"]),
    ("tmct_describe", {"symbol": None}, TOOLS, ["missing-arg tmct_describe.symbol"]),
    ("tmct_describe", {"symbol": []}, TOOLS, ["missing-arg tmct_describe.symbol"]),
    ("tmct_describe", {}, TOOLS, ["missing-arg tmct_describe.symbol"]),
    ("", {"symbol": "x"}, TOOLS, ["unknown-tool no tool name"]),
    (None, None, TOOLS, ["unknown-tool no tool name"]),
    (7, None, TOOLS, ["unknown-tool no tool name"]),
    ("tmct_describe", ["Widget"], TOOLS, ["unknown-arg tmct_describe.0", "missing-arg tmct_describe.symbol"]),
    ("tmct_describe", {"symbol": 0}, TOOLS, []),
    ("tmct_describe", {"symbol": False}, TOOLS, []),
    ("tmct_describe", {"symbol": {}}, TOOLS, []),
    ("tmct_snippet", {"symbol": "Widget"}, [*TOOLS, "tmct_snippet"], ["unknown-tool tmct_snippet"]),
    ("TMCT_DESCRIBE", {"symbol": "Widget"}, TOOLS, ["unknown-tool TMCT_DESCRIBE"]),
    ("tmct_members", {"class": "Widget"}, TOOLS, ["undeclared tmct_members"]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "input", "declared", "problems"), HALLUCINATIONS)
def test_what_cannot_bind_and_why(name: Any, input: Any, declared: list[str], problems: list[str]) -> None:
    found = REGISTRY.problems(name, input, declared)
    assert [f"{problem.reason} {problem.detail}" for problem in found] == problems


# -- numbers as text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (-0.0, "0"),
        (1.0, "1"),
        (-1.5, "-1.5"),
        (0.1, "0.1"),
        (100, "100"),
        (1e20, "100000000000000000000"),
        (123456789012345680000.0, "123456789012345680000"),
        (1e21, "1e+21"),
        (1.25e21, "1.25e+21"),
        (-1e21, "-1e+21"),
        (0.000001, "0.000001"),
        (1e-7, "1e-7"),
        (1.5e-9, "1.5e-9"),
        (2**53 + 1, "9007199254740992"),
        (2**64 - 1, "18446744073709552000"),
        (1.7976931348623157e308, "1.7976931348623157e+308"),
        (5e-324, "5e-324"),
    ],
)
def test_numbers_are_written_as_the_originals_language_writes_them(value: float, text: str) -> None:
    """ECMAScript's Number::toString, worked out by its definition."""
    assert _number(value) == text
    assert _text([value, None, True]) == f"{text},,true"
