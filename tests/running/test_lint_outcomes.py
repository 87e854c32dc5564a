"""Lint of cases that are judged by their outcome: the reference is carried out, passes, and nothing near it does."""

from __future__ import annotations

import functools
from typing import Any

import msgspec
import pytest

from agentbench_lab.cases import Suite, parse_cases
from agentbench_lab.grading import grade, outcome
from agentbench_lab.grading.grade import Check
from agentbench_lab.running import lint_outcomes
from agentbench_lab.running.lint import lint_cases
from agentbench_lab.worlds.codegraph import CodeGraph

from ..doing import tiny_world
from ..helpers import to_bytes
from ..states import line, world

CANCEL = {"name": "cancel", "input": {"id": "W77"}}


def linted(on: Any = None, **keys: Any) -> list[str]:
    cases, problems = parse_cases(to_bytes(line(**keys), line(id="other")), name="desk", file="desk.jsonl")
    assert problems == []
    found = lint_cases(Suite("desk", tuple(cases[:1]), ""), world=on or world())
    return [str(problem).removeprefix("desk.jsonl:1: c: ") for problem in found]


def gold(*calls: dict[str, Any], **keys: Any) -> dict[str, Any]:
    return {"calls": list(calls), **keys}


SOUND: list[dict[str, Any]] = [
    {},
    {"expect": {"state": {"orders.W77.status": "cancelled", "count": {"value": 1, "tol": 0.1}, "orders.W77.tags": {"value": ["gift"], "unordered": True}}}},
    {"expect": {"state": {"orders.W77.status": {"any_of": ["cancelled", "both"]}}}},
    {"expect": {"state_equals": {"orders.W77.status": "cancelled", "count": 1}}},
    {"expect": {"state_absent": ["orders.W78"]}, "gold": gold({"name": "drop", "input": {"id": "W78"}})},
    {"expect": {"refuse": True, "state_equals": {}}, "gold": None},
    {"expect": {"refuse": True}, "gold": gold({"name": "get", "input": {"id": "W78"}})},
    {"expect": {"calls": []}, "gold": None},
    {"expect": {"calls": [CANCEL], "state": {"count": 1}}, "gold": None},
    {"expect": {"calls": [CANCEL, {"name": "get", "input": {"id": "W78"}}], "order": "any_order"}, "gold": None},
    {"expect": {"calls": [{"name": "get", "accept": {"id": ["W77", "W78"]}}], "order": "superset"}, "gold": None},
    {"expect": {"calls": [{"name": "get", "input": {"id": "W78"}}], "order": "subset"}, "gold": None},
    {"expect": {"answer": {"number": 27.99, "tol": 0.01}}, "gold": None},
    {"expect": {"answer": {"gaia": "27.99"}}, "gold": None},
    {"expect": {"answer": {"exact": {"a": [1]}}, "state_equals": {}}, "gold": gold({"name": "get", "input": {"id": "W77"}})},
    {"expect": {"answer": {"tokens": ["27.99"], "contains": "W77"}}, "gold": None},
    {"expect": {"answer": {"regex": "^W[0-9]+$"}}, "gold": gold(answer="W77")},
]  # fmt: skip


@pytest.mark.parametrize("keys", SOUND)
def test_a_sound_case_has_no_problem(keys: dict[str, Any]) -> None:
    assert linted(**keys) == []


PROBLEMS: list[tuple[dict[str, Any], list[str]]] = [
    ({"gold": None}, ["needs gold, a reference solution: {\"calls\": [...]} that lead to the expected state"]),
    ({"gold": gold({"name": "cancel", "input": {"id": "W78"}})}, ["gold 1: cancel does not work here: W78 has left"]),
    ({"gold": gold({"name": "cancel", "input": {"order": "W77"}})}, ["gold 1 cannot bind: unknown-arg cancel.order", "gold 1 cannot bind: missing-arg cancel.id"]),
    ({"gold": gold({"name": "both", "input": {"id": "W77"}})}, ['gold self-test: the reference solution does not pass: orders.W77.status: expected "cancelled", got "both"']),
    ({"expect": {"state": {"ordrs.W77.status": "cancelled"}}}, ['gold self-test: the reference solution does not pass: ordrs.W77.status: expected "cancelled", got nothing (did you mean \'orders\'?)']),
    ({"expect": {"state": {"orders.W78.status": "shipped"}}}, ["gold self-test: doing nothing still passes", "gold self-test: call 1 (cancel) left out still passes"]),
    ({"gold": gold(CANCEL, {"name": "note", "input": {"id": "W78"}})}, ["gold self-test: call 2 (note) left out still passes"]),
    ({"expect": {"state_equals": {"orders.W77.status": "cancelled"}}}, ["gold self-test: the reference solution does not pass: count: expected as it was (0), got 1"]),
    ({"expect": {"state_equals": {"carts.W77": 1}}}, ["expect.state_equals: 'carts.W77': there is no 'carts' to begin with; expect that as a whole", "gold self-test: the reference solution does not pass: carts.W77: expected 1, got nothing; count: expected as it was (0), got 1; orders.W77.status: expected as it was (\"pending\"), got \"cancelled\""]),
    ({"expect": {"state": {"orders.W77": {"status": {"any_of": ["cancelled"]}}}}}, ["gold self-test: the reference solution does not pass: orders.W77.status: expected {\"any_of\":[\"cancelled\"]}, got \"cancelled\" (text, not an object) (state.orders.W77: what stands at orders.W77.status is compared as it is; tol, unordered and any_of count only for a path of `state`: name 'orders.W77.status' there)"]),
    ({"expect": {"state_equals": {"orders.W77.status": "cancelled", "count": {"value": 1, "tol": 0.1}}}}, ["gold self-test: the reference solution does not pass: count: expected {\"tol\":0.1,\"value\":1}, got 1 (a number, not an object) (state_equals.count: what stands at count is compared as it is; tol, unordered and any_of count only for a path of `state`: name 'count' there)"]),
    ({"expect": {"refuse": True}}, ["gold self-test: the reference solution does not pass: cancel(id='W77') changed something where a refusal is right"]),
    ({"expect": {"answer": {"regex": "^W"}}, "gold": None}, ["expect.answer: no text follows from it; give gold.answer, an answer that is right"]),
    ({"expect": {"answer": {"regex": "."}}, "gold": gold(answer="W77")}, ["gold self-test: the answer '~ something else ~' still passes"]),
    ({"expect": {"answer": {"gaia": "inf"}}, "gold": None}, ["gold self-test: doing nothing still passes", *(f"gold self-test: the answer {a!r} still passes" for a in (None, "~ something else ~", "", "infx"))]),
    ({"expect": {"answer": {"gaia": "nan"}}, "gold": None}, ["gold self-test: the reference solution does not pass: gaia: 'nan' is not 'nan' by the quasi-exact rule"]),
    ({"expect": {"calls": [{"name": "get", "accept": {"id": ["W77", "W7"]}}], "order": "any_order"}, "gold": None}, ["call 1: accept.id: does not work here: orders.W7 is not there"]),
    ({"expect": {"calls": [{"name": "get", "input": {"id": 77}}], "order": "any_order"}, "gold": None}, ["call 1: id must be string, not integer"]),
]  # fmt: skip


@pytest.mark.parametrize(("keys", "says"), PROBLEMS)
def test_what_does_not_hold_is_said(keys: dict[str, Any], says: list[str]) -> None:
    assert linted(**keys) == says


def test_a_state_needs_a_world_that_has_one() -> None:
    graph: CodeGraph = tiny_world()
    assert linted(graph, tools=["tmct_describe"], gold=None) == [
        "expects a state, and world 'tiny' is a codegraph"
    ]


def test_a_world_that_two_cases_share_is_at_fault_once() -> None:
    bad = {"kind": "state", "state": {}, "tools": [{"name": "t", "efects": []}]}
    cases, _ = parse_cases(to_bytes(line(world=bad), line(id="d", world=bad)), name="desk", file="desk.jsonl")
    found = [str(problem) for problem in lint_cases(Suite("desk", tuple(cases), ""))]
    assert found == [
        "desk.jsonl:1: c: world: tools.t: unknown key 'efects' (did you mean 'effects'?)",
        "desk.jsonl:2: d: world: tools.t: unknown key 'efects' (did you mean 'effects'?)",
    ]


# -- the self-test finds a grader that does not look


@pytest.mark.parametrize(
    ("blind", "keys", "finds"),
    [
        ("state", {}, ["orders.W77.status replaced by another value", "orders.W77.status taken away"]),
        ("state_absent", {"expect": {"state_absent": ["orders.W78"], "state": {"count": 1}}, "gold": gold(CANCEL, {"name": "drop", "input": {"id": "W78"}})}, ["orders.W78 there as null"]),
        ("state_equals", {"expect": {"state_equals": {"orders.W77.status": "cancelled", "count": 1}}}, ["another change beside", "count replaced by another value"]),
    ],
)  # fmt: skip
def test_a_check_that_always_passes_is_found(
    blind: str, keys: dict[str, Any], finds: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = outcome.state_checks
    monkeypatch.setattr(
        outcome,
        "state_checks",
        lambda *a: [Check(c.name, c.passed or c.name == blind, c.detail) for c in real(*a)],
    )
    found = linted(**keys)
    for what in finds:
        assert f"gold self-test: {what} still passes" in found


@pytest.mark.parametrize(
    ("expect", "finds"),
    [
        ({"state_equals": {"orders.W77.status": "cancelled", "count": 1}}, ["orders.W77.~"]),
        ({"state_equals": {"count": 1}, "state": {"orders.W77": {"status": "cancelled"}}}, ["orders.~", "orders.W77.~"]),
    ],
)  # fmt: skip
def test_a_check_that_looks_at_whole_holders_only_is_found(
    expect: dict[str, Any], finds: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One for which anything may have changed in an object of which one key is expected to."""
    real = outcome.state_checks

    def lax(expect: Any, seen: Any) -> list[Check]:
        kept = tuple(change for change in seen.state.changes if "." not in change.path)
        state = msgspec.structs.replace(seen.state, changes=kept)
        return real(expect, msgspec.structs.replace(seen, state=state))

    monkeypatch.setattr(outcome, "state_checks", lax)
    assert linted(expect=expect) == [f"gold self-test: {path} there too still passes" for path in finds]


def test_calls_that_are_not_compared_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outcome, "unmatched", lambda *_: None)
    keys = {"expect": {"calls": [CANCEL], "order": "any_order"}, "gold": None}
    found = linted(**keys)
    assert "gold self-test: calls[0].input.id replaced by another value still passes" in found
    assert "gold self-test: doing nothing still passes" in found


def test_a_grader_that_does_not_judge_a_refusal_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgiving(case: Any, transcript: Any, evidence: Any) -> Any:
        import msgspec

        return grade(case, msgspec.structs.replace(transcript, refused=True), evidence)

    monkeypatch.setattr(lint_outcomes, "grade", functools.partial(forgiving))
    assert linted(expect={"refuse": True}, gold=None) == ["gold self-test: not refusing still passes"]
