"""Calls in any order, as a subset, as a superset: matching that no order of writing can change."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench_lab.cases import Call, ExpectedCall, Order
from agentbench_lab.grading.calls import mismatch, pairing, unmatched
from agentbench_lab.running.mutants import replaced

from ..states import case, failed, judge

A, B = {"a": 1}, {"a": 2}


def want(*inputs: dict[str, Any], **keys: Any) -> list[ExpectedCall]:
    return [ExpectedCall("t", one, **keys) for one in inputs]


def made(*inputs: dict[str, Any]) -> list[Call]:
    return [Call("t", one) for one in inputs]


@pytest.mark.parametrize(
    ("order", "expected", "calls", "says"),
    [
        ("any_order", want(A, B), made(B, A), None),
        ("any_order", want(A, A), made(A), "t(a=1) was not called"),
        ("any_order", want(A), made(A, A), "t(a=1) is not expected"),
        ("any_order", want(A, B), made(A, {"a": 3}), "call 2: t: value: a: expected 2, got 3"),
        ("any_order", want(A), made({"a": "1"}), 'call 1: t: type: a: expected 1, got "1" (stringified_arg)'),
        ("any_order", want(A), [Call("u", A)], "t(a=1) was not called"),
        # the free one must not take the only partner of the other, whichever is written first
        ("any_order", want({}, A), made(A, B), None),
        ("any_order", want(A, {}), made(A, B), None),
        ("any_order", [ExpectedCall("t"), ExpectedCall("t", accept={"a": [1, 2]}), *want(A)], made(A, B, {"a": 3}), None),
        ("subset", want(A, B), made(B), None),
        ("subset", want(A, B), [], None),
        ("subset", want(A, B), made(B, B), "t(a=2) is not expected"),
        ("superset", want(A), made(B, A, B), None),
        ("superset", want(A, A), made(B, A, B), "call 1: t: value: a: expected 1, got 2"),
        ("positional", want(A, B), made(B, A), "call 1: t: value: a: expected 1, got 2"),
    ],
)  # fmt: skip
def test_each_order_and_what_it_says(order: Order, expected: Any, calls: Any, says: str | None) -> None:
    assert unmatched(expected, calls, order) == says


SMALL = st.dictionaries(st.sampled_from("ab"), st.integers(0, 2), max_size=2)
LISTS = st.lists(SMALL, max_size=5)


@given(st.data(), LISTS, LISTS)
def test_no_verdict_depends_on_the_order_of_writing(data: st.DataObject, inputs: Any, given_: Any) -> None:
    for order in ("any_order", "subset", "superset"):
        verdict = unmatched(want(*inputs), made(*given_), order) is None
        again = want(*data.draw(st.permutations(inputs))), made(*data.draw(st.permutations(given_)))
        assert (unmatched(*again, order) is None) == verdict


LEAVES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "x", "1", 0.5]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(LEAVES, min_size=1, max_size=3), st.data())
def test_every_single_wrong_leaf_of_a_call_flips_the_verdict(values: list[Any], data: st.DataObject) -> None:
    """In each order that asks for all calls; the other calls are right."""
    inputs = [{"n": n, "value": value} for n, value in enumerate(values)]
    at = data.draw(st.integers(0, len(values) - 1))
    for order in ("positional", "any_order", "superset"):
        assert unmatched(want(*inputs), made(*inputs), order) is None
        for where, changed in replaced(values[at], "value"):
            wrong = [*inputs[:at], {"n": at, "value": next(changed)}, *inputs[at + 1 :]]
            assert unmatched(want(*inputs), made(*wrong), order) is not None, where


def _best(left: int, right: int, edges: set[tuple[int, int]], taken: frozenset[int] = frozenset()) -> int:
    """The largest matching, by trying everything."""
    if not left:
        return 0
    a = left - 1
    rest = [_best(a, right, edges, taken)]
    rest += [
        1 + _best(a, right, edges, taken | {b}) for b in range(right) if (a, b) in edges and b not in taken
    ]
    return max(rest)


@given(st.integers(0, 5), st.integers(0, 5), st.data())
def test_the_pairing_is_as_large_as_any(left: int, right: int, data: st.DataObject) -> None:
    every = [(a, b) for a in range(left) for b in range(right)]
    edges = set(data.draw(st.lists(st.sampled_from(every), max_size=20))) if every else set()
    found = pairing(left, right, lambda a, b: (a, b) in edges)
    pairs = [(a, b) for a, b in enumerate(found) if b is not None]
    assert set(pairs) <= edges and len({b for _, b in pairs}) == len(pairs)
    assert len(pairs) == _best(left, right, edges)


def test_a_long_list_of_calls_is_matched_without_a_deep_stack() -> None:
    many = 400
    expected = [ExpectedCall("t", accept={"n": [n, n + 1]}) for n in range(many)]
    calls = [Call("t", {"n": n + 1}) for n in range(many)]
    assert unmatched(expected, calls, "any_order") is None
    assert unmatched(expected, calls[::-1], "any_order") is None


@given(LISTS)
def test_in_any_order_is_in_order_for_some_permutation(inputs: Any) -> None:
    calls = made(*inputs)
    assert mismatch(want(*inputs), calls) is None
    assert unmatched(want(*inputs), calls[::-1], "any_order") is None


# -- B02, with the arguments checked by a world of state

SCHEMA = {
    "type": "object",
    "properties": {
        "values": {"type": "array", "items": {"type": "number"}},
        "rate": {"type": "number"},
        "count": {"type": "integer"},
        "loop": {"type": "boolean"},
        "label": {"type": "string", "default": "raw"},
    },
    "required": ["values", "rate", "count", "loop"],
}
RIGHT: dict[str, Any] = {"values": [1.0, 2.5, 4.0], "rate": 0.5, "count": 1, "loop": True}


def without(key: str) -> dict[str, Any]:
    return {k: v for k, v in RIGHT.items() if k != key}


@pytest.mark.parametrize(
    ("arguments", "outcome", "says"),
    [
        ({**RIGHT, "values": [1, 2.5, 4]}, "solved", ""),
        ({**RIGHT, "count": 1.0}, "solved", ""),
        ({**RIGHT, "count": "1"}, "unsolved", "resample failed: type: type: count must be integer, not string (stringified_arg)"),
        ({**RIGHT, "count": True}, "unsolved", "resample failed: type: type: count must be integer, not boolean"),
        ({**RIGHT, "loop": 1}, "unsolved", "resample failed: type: type: loop must be boolean, not integer"),
        ({**RIGHT, "values": "[1,2.5,4]"}, "unsolved", "resample failed: type: type: values must be array, not string (stringified_arg)"),
        ({**RIGHT, "rate": 9.9}, "unsolved", "call 1: resample: value: rate: expected 0.5, got 9.9"),
        ({**RIGHT, "label": "raw"}, "solved", ""),
        ({**RIGHT, "speed": 2}, "hallucinated_call", "no call; expected resample(values=[1.0, 2.5, 4.0], rate=0.5, count=1, loop=True)"),
        (without("loop"), "hallucinated_call", "no call; expected resample(values=[1.0, 2.5, 4.0], rate=0.5, count=1, loop=True)"),
    ],
    ids="abcdefghij",
)  # fmt: skip
@pytest.mark.parametrize("order", ["positional", "any_order"])
def test_b02_types_and_values(arguments: Any, outcome: str, says: str, order: str) -> None:
    import msgspec

    from agentbench_lab.worlds.statestore import StateWorld

    on = StateWorld("w", {}, [{"name": "resample", "input_schema": SCHEMA}])
    of = case(calls=[{"name": "get", "input": RIGHT}], order=order)
    task = msgspec.structs.replace(of.task, tools=("resample",))
    expect = msgspec.structs.replace(of.expect, calls=(ExpectedCall("resample", RIGHT),))
    of = msgspec.structs.replace(of, task=task, expect=expect)
    verdict = judge(of, Call("resample", arguments), on=on)
    assert verdict.outcome == outcome
    assert failed(verdict).get("calls", "") == says


@pytest.mark.parametrize(("label", "passes"), [("john", True), ("jon", True), ("j", False)])
def test_b02_alternatives_are_whole_values(label: str, passes: bool) -> None:
    wanted = [ExpectedCall("resample", RIGHT, {"label": ["john", "jon"]})]
    for order in get_args(Order):
        assert (unmatched(wanted, [Call("resample", {**RIGHT, "label": label})], order) is None) is passes
