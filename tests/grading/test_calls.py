"""Calls against expected calls: types, alternatives, optional and undeclared arguments."""

from __future__ import annotations

from typing import Any

import pytest

from agentbench_lab.cases import Call, ExpectedCall, parse_cases
from agentbench_lab.grading.calls import mismatch
from agentbench_lab.worlds.toolbox import Toolbox

from ..helpers import Garden, call, case, checks, expected, judge, line, to_bytes

RIGHT: dict[str, Any] = {"values": [1.0, 2.5, 4.0], "rate": 0.5, "count": 1, "loop": True}
RESAMPLE = case(expect=expected(call("resample", **RIGHT)))
GONE = object()

# the reported rows (B02): what is changed, the ledger's status, what the grade says, whether text spelled the value
ROWS: dict[str, tuple[dict[str, Any], str, str | None, bool]] = {
    "a": ({"values": [1, 2.5, 4]}, "ok", None, False),
    "b": ({"count": 1.0}, "ok", None, False),
    "c": ({"count": "1"}, "schema_error", 'type: count: expected 1, got "1" (stringified_arg)', True),
    "d": ({"count": True}, "schema_error", "type: count: expected 1, got true", False),
    "e": ({"loop": 1}, "schema_error", "type: loop: expected true, got 1", False),
    "f": ({"values": "[1,2.5,4]"}, "schema_error", 'type: values: expected [1.0,2.5,4.0], got "[1,2.5,4]" (stringified_arg)', True),
    "g": ({"rate": 9.9}, "ok", "value: rate: expected 0.5, got 9.9", False),
    "h": ({"label": "raw"}, "ok", None, False),
    "i": ({"speed": 2}, "malformed", "hallucinated resample[unknown-arg]", False),
    "j": ({"loop": GONE}, "malformed", "hallucinated resample[missing-arg]", False),
    # the same faults one level deeper
    "c, nested": ({"values": [1, "2.5", 4]}, "schema_error", 'type: values[1]: expected 2.5, got "2.5" (stringified_arg)', True),
    "d, nested": ({"values": [True, 2.5, 4]}, "schema_error", "type: values[0]: expected 1.0, got true", False),
    "g, nested": ({"values": [1, 2.5, 5]}, "ok", "value: values[2]: expected 4.0, got 5", False),
    "g, longer": ({"values": [1, 2.5, 4, 4]}, "ok", "value: values has 4 entries, expected 3", False),
    "null": ({"count": None}, "malformed", "hallucinated resample[missing-arg]", False),
    "not whole": ({"count": 1.5}, "schema_error", "value: count: expected 1, got 1.5", False),
}  # fmt: skip


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_b02_arguments_are_judged_as_typed_json_values(
    row: tuple[dict[str, Any], str, str | None, bool],
) -> None:
    """Through the toolbox and the grade; nothing is coerced, nothing is decoded behind the user's back (B02)."""
    changed, status, says, spelled = row
    made = Call("resample", {key: value for key, value in {**RIGHT, **changed}.items() if value is not GONE})
    toolbox = Toolbox(Garden(), ["resample"])
    assert toolbox.call(made.name, made.input).status == status
    [ledger] = toolbox.close()
    assert any(misfit.stringified for misfit in ledger.misfits) is spelled
    if status == "schema_error":
        assert [misfit.reason for misfit in ledger.misfits] == ["type"]

    verdict = judge(RESAMPLE, [made], calls=[made])
    assert verdict.solved is (says is None)
    assert verdict.hallucinated is (status == "malformed")
    if says is not None and verdict.hallucinated:
        assert verdict.reasons[0] == says
    elif says is not None:
        assert checks(verdict)["calls"] == f"call 1: resample: {says}"


@pytest.mark.parametrize(
    ("alternatives", "problem", "passes"),
    [("john", "expect.calls[0].accept.label: expected a list, got text", []), (["john", "jon"], None, ["john", "jon"])],
)  # fmt: skip
def test_b02_alternatives_are_a_list_and_never_letters(
    alternatives: Any, problem: str | None, passes: list[str]
) -> None:
    """Rows k and l: a bare string is a fault of the case; with a list each of its values passes, and no letter does."""
    wanted = {"name": "resample", "input": RIGHT, "accept": {"label": alternatives}}
    data = to_bytes(line(expect=expected(calls=[wanted])))
    cases, problems = parse_cases(data, name="s", file="s")
    assert [found.message for found in problems] == ([problem] if problem else [])
    for label in ("john", "jon", "j", "o", "", "johnn"):
        made = call("resample", **RIGHT, label=label)
        solved = [judge(one, [made], calls=[made]).solved for one in cases]
        assert solved == ([label in passes] if cases else [])


WANT: list[tuple[dict[str, Any], dict[str, Any], str | None]] = [
    ({"input": {"a": 1}}, {"a": 1, "b": 2}, None),
    ({"input": {"a": 1}}, {}, "value: a is missing (expected 1)"),
    ({"input": {"a": None}}, {}, "value: a is missing (expected null)"),
    ({"input": {"a": None}}, {"a": None}, None),
    ({"input": {"a": ""}}, {"a": None}, 'type: a: expected "", got null'),
    ({"input": {"a": "x"}}, {"a": " x"}, 'value: a: expected "x", got " x"'),
    ({"input": {"a": "x"}}, {"a": "X"}, 'value: a: expected "x", got "X"'),
    ({"input": {"a": {"b": 1}}}, {"a": {"b": 1, "c": 2}}, "value: a.c is not expected"),
    ({"input": {"a": {"b": 1, "c": 2}}}, {"a": {"b": 1}}, "value: a.c is missing (expected 2)"),
    ({"input": {"a": {"b": [1, {"c": 0}]}}}, {"a": {"b": [1, {"c": False}]}}, "type: a.b[1].c: expected 0, got false"),
    ({"input": {"a": [1, 2]}}, {"a": [2, 1]}, "value: a[0]: expected 1, got 2"),
    ({"input": {"a": []}}, {"a": {}}, "type: a: expected [], got {}"),
    ({"input": {"a": {"b": 1}}}, {"a": '{"b": 1}'}, 'type: a: expected {"b":1}, got "{\\"b\\": 1}" (stringified_arg)'),
    ({"input": {"a": True}}, {"a": "true"}, 'type: a: expected true, got "true" (stringified_arg)'),
    ({"input": {"a": "1"}}, {"a": 1}, 'type: a: expected "1", got 1'),
    ({"input": {"a": 1}, "optional": ["a"]}, {}, None),
    ({"input": {"a": 1}, "optional": ["a"]}, {"a": 2}, "value: a: expected 1, got 2"),
    ({"input": {"a": 1}, "optional": ["a"]}, {"a": None}, "type: a: expected 1, got null"),
    ({"accept": {"a": [1, "one"]}}, {"a": 1.0}, None),
    ({"accept": {"a": [1, "one"]}}, {"a": True}, 'value: a: true is none of 1, "one"'),
    ({"accept": {"a": [1, "one"]}}, {}, "value: a is missing (expected 1)"),
    ({"accept": {"a": [1]}, "optional": ["a"]}, {}, None),
    ({"input": {"a": 1}, "accept": {"a": [2]}}, {"a": 1}, None),
    ({"input": {"a": 1}, "accept": {"a": [2]}}, {"a": 2}, None),
    ({"input": {"a": 1}, "accept": {"a": [2]}}, {"a": 3}, "value: a: 3 is none of 1, 2"),
    ({"input": {"a": 1, "b": 2}, "accept": {"a": [3]}}, {"a": 3, "b": 1}, "value: b: expected 2, got 1"),
    ({"input": {"a": "x" * 500}}, {"a": "y" * 500}, f'value: a: expected "{"x" * 58}…, got "{"y" * 58}…'),
]  # fmt: skip


@pytest.mark.parametrize(("want", "given", "says"), WANT)
def test_pinned_values_alternatives_and_optional_ones(
    want: dict[str, Any], given: dict[str, Any], says: str | None
) -> None:
    found = mismatch([ExpectedCall("t", **want)], [Call("t", given)])
    assert found == (None if says is None else f"call 1: t: {says}")


def test_calls_are_compared_position_by_position() -> None:
    one, two = ExpectedCall("a", {"x": 1}), ExpectedCall("b")
    assert mismatch([one, two], [call("a", x=1), call("b")]) is None
    assert mismatch([], []) is None
    assert mismatch([one, two], [call("b"), call("a", x=1)]) == "call 1: b instead of a"
    assert mismatch([one, two], [call("a", x=1), call("c")]) == "call 2: c instead of b"
    assert (
        mismatch([one], [call("a", x=1), call("b")]) == "2 calls where 1 is expected: a(x=1) → b() for a(x=1)"
    )
    assert mismatch([one], []) == "0 calls where 1 is expected: no call for a(x=1)"
