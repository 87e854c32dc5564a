"""End states against expectations: subsets, null and nothing, tolerance, any order, whole worlds."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench_lab.cases import Expect
from agentbench_lab.expect import BadForm, form_of
from agentbench_lab.expect_work import ExpectedFile
from agentbench_lab.grading.state import against, state_checks
from agentbench_lab.grading.work import work_checks
from agentbench_lab.paths import ABSENT, Change, difference, join, look, put, split
from agentbench_lab.running.mutants import replaced
from agentbench_lab.running.trial import collect
from agentbench_lab.transcripts import Transcript
from agentbench_lab.values import canonical
from agentbench_lab.worlds.seen import LOST, Seen, StateSeen
from agentbench_lab.worlds.statestore import StateWorld
from agentbench_lab.worlds.toolbox import Toolbox

from ..states import STATE, TOOLS, call, case, failed, judge, line, problems_of, world

CANCEL = call("cancel", id="W77")


def test_b03_a_wrong_world_is_not_saved_by_a_number_in_the_answer() -> None:
    """The answer must not stand in for the state, and "10" is no word of "10:45"."""
    of = case(state={"orders.W77.status": "cancelled"}, answer={"tokens": "10"})
    said = "I looked at this at 10:45 and will come back to you."
    nothing_done = judge(of, answer=said)
    assert (nothing_done.outcome, nothing_done.solved) == ("unsolved", False)
    assert failed(nothing_done) == {
        "state": 'orders.W77.status: expected "cancelled", got "pending"',
        "answer": f"tokens: '10' is no word of '{said}', though it occurs within longer words",
    }
    done = judge(of, CANCEL, answer=said)
    assert (done.outcome, set(failed(done))) == ("unsolved", {"answer"})
    assert judge(of, CANCEL, answer="It cost 10.").outcome == "solved"
    # only where a case asks for it is a part of a text enough
    assert judge(case(state={"count": 1}, answer={"contains": "10"}), CANCEL, answer=said).outcome == "solved"
    # every check that is shown gates here, and says so
    assert all(check.gates for check in done.checks)


@pytest.mark.parametrize(
    ("expected", "got", "says"),
    [
        ("a", "a", []),
        (1, 1.0, []),
        (1, True, ["p: expected 1, got true (true or false, not a number)"]),
        (True, 1, ["p: expected true, got 1 (a number, not true or false)"]),
        (0, False, ["p: expected 0, got false (true or false, not a number)"]),
        (None, None, []),
        (None, ABSENT, ["p: expected null, got nothing"]),
        (None, 0, ["p: expected null, got 0 (a number, not null)"]),
        ("1", 1, ['p: expected "1", got 1 (a number, not text)']),
        ({}, {"a": 1}, []),
        ({}, ABSENT, ["p: expected {}, got nothing"]),
        ({"a": 1}, {"a": 1, "b": 2}, []),
        ({"a": {"b": None}}, {"a": {}}, ["p.a.b: expected null, got nothing"]),
        ({"a": 1, "b.c": 2}, {"a": 2}, ["p.a: expected 1, got 2", r"p.b\.c: expected 2, got nothing"]),
        ([], [], []),
        ([1, {"a": 1}], [1, {"a": 1, "z": 0}], []),
        ([1, 2], [2, 1], ["p.0: expected 1, got 2", "p.1: expected 2, got 1"]),
        ([1], [1, 1], ["p: expected 1 entry, got 2: [1,1]"]),
        ([], {}, ["p: expected [], got {} (an object, not a list)"]),
        ({"value": 27.99, "tol": 0.01}, 28.0, []),
        ({"value": 27.99, "tol": 0.01}, 28.001, ["p: expected 27.99 within 0.01, got 28.001"]),
        (
            {"value": 1, "tol": 0.5},
            True,
            ["p: expected 1 within 0.5, got true (true or false, not a number)"],
        ),
        ({"value": 1, "tol": 0.5}, "1", ['p: expected 1 within 0.5, got "1" (text, not a number)']),
        ({"value": [1, {"x": 2.0}], "tol": 1}, [0, {"x": 3, "y": 9}], []),
        ({"value": ["a", "b", "a"], "unordered": True}, ["a", "a", "b"], []),
        ({"value": ["a", "b"], "unordered": True}, ["a", "a"], ['p: "b" is missing', 'p: "a" is too much']),
        ({"value": [{"a": 1}, {}], "unordered": True}, [{"b": 2}, {"a": 1}], []),
        ({"value": ["a"], "unordered": True}, "a", ['p: expected ["a"] in any order, got "a"']),
        ({"any_of": [1, "one"]}, "one", []),
        ({"any_of": [1, "one"]}, True, ['p: expected one of 1, "one", got true']),
        ({"any_of": ["john"]}, "j", ['p: expected "john", got "j"']),
        ({"value": {"any_of": [1]}}, {"any_of": [1]}, []),
        ({"value": 1, "unit": "kg"}, {"value": 1, "unit": "kg", "x": 1}, []),
    ],
)
def test_what_is_expected_at_a_path(expected: Any, got: Any, says: list[str]) -> None:
    assert against(form_of(expected), got, "p") == says


@pytest.mark.parametrize(
    ("form", "says"),
    [
        ({"any_of": "john"}, "any_of must be a list of alternatives"),
        ({"any_of": []}, "any_of must be a list of alternatives"),
        ({"value": 1, "tol": -1}, "tol must be a number from 0"),
        ({"value": 1, "tol": True}, "tol must be a number from 0"),
        ({"value": "a", "tol": 1}, "tol needs a number in value"),
        ({"value": 1, "unordered": True}, "unordered needs a list in value"),
        ({"value": [1], "unordered": 1}, "unordered must be true or false"),
    ],
)
def test_a_form_that_means_nothing_is_found_when_the_case_is_read(form: Any, says: str) -> None:
    with pytest.raises(BadForm, match=says):
        form_of(form)
    assert problems_of(line(expect={"state": {"count": form}})) == [
        f"desk.jsonl:1: c: expect.state.count: {says}"
    ]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "x", "1"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)


@given(VALUES)
def test_a_value_fits_itself_and_with_any_leaf_changed_it_does_not(value: Any) -> None:
    literal = {"value": value}
    assert against(form_of(literal), value, "p") == []
    for where, changed in replaced(value, "p"):
        assert against(form_of(literal), next(changed), "p"), where


@given(st.data(), st.lists(VALUES, max_size=5))
def test_where_order_is_free_it_does_not_matter(data: st.DataObject, items: list[Any]) -> None:
    shuffled = data.draw(st.permutations(items))
    form = form_of({"value": items, "unordered": True})
    assert against(form, shuffled, "p") == []
    other = data.draw(st.lists(VALUES, max_size=5))
    again = data.draw(st.permutations(other))
    reordered = form_of({"value": shuffled, "unordered": True})
    assert bool(against(form, other, "p")) == bool(against(reordered, again, "p"))


@given(VALUES, st.data())
def test_keys_beside_the_expected_ones_are_free(value: Any, data: st.DataObject) -> None:
    def more(of: Any) -> Any:
        if isinstance(of, dict):
            return {**{key: more(item) for key, item in of.items()}, "free": data.draw(VALUES)}
        return [more(item) for item in of] if isinstance(of, list) else of

    assert against(form_of({"value": value}), more(value), "p") == []


# -- a whole world


def test_only_what_is_expected_may_change() -> None:
    of = case(state_equals={"orders.W77.status": "cancelled", "count": 1})
    assert judge(of, CANCEL).outcome == "solved"
    beside = judge(of, CANCEL, call("refund", id="W78", amount=1))
    assert failed(beside) == {
        "state_equals": 'orders.W78.tags.0: expected as it was (nothing there), got "refunded"; '
        'refunds.0: expected as it was (nothing there), got {"amount":1,"order":"W78"}'
    }
    assert failed(judge(of, CANCEL, call("note", id="W78")))["state_equals"] == (
        'orders.W78.note: expected as it was ("ring twice"), got "-"'
    )
    # what is undone has not changed
    undone = judge(of, CANCEL, call("note", id="W78"), call("note", id="W78", text="ring twice"))
    assert undone.outcome == "solved"


def test_what_other_keys_look_at_may_differ_too() -> None:
    of = case(
        state={"orders.W77.status": {"any_of": ["cancelled", "both"]}},
        state_absent=["orders.W78"],
        state_equals={"count": 1},
    )
    assert judge(of, CANCEL, call("drop", id="W78")).outcome == "solved"
    assert failed(judge(of, CANCEL)) == {
        "state_absent": 'orders.W78: expected nothing, got {"note":"ring twice","status":"shipped","tags":[],"total":10}'
    }


def test_null_is_not_absent() -> None:
    assert failed(judge(case(state_absent=["orders.W77.note"]), CANCEL)) == {
        "state_absent": "orders.W77.note: expected nothing, got null"
    }
    assert judge(case(state={"orders.W77.note": None}), CANCEL).outcome == "solved"
    assert failed(judge(case(state={"orders.W77.notes": None}), CANCEL)) == {
        "state": "orders.W77.notes: expected null, got nothing"
    }


CALLS = st.lists(
    st.tuples(
        st.sampled_from(["cancel", "drop", "both", "untag", "refund", "note"]),
        st.sampled_from(["W77", "W78"]),
    ),
    max_size=6,
)


def _played(calls: list[tuple[str, str]]) -> StateWorld:
    of = StateWorld("desk", STATE, TOOLS).fork()
    for name, id in calls:
        of.run(name, {"id": id})
    return of


@given(CALLS, CALLS)
def test_state_equals_is_equality_of_whole_worlds(gold: Any, made: Any) -> None:
    """As canonical JSON says it: the changes of the reference are expected, and judged are those of another trial."""
    wanted, got = _played(gold), _played(made)
    equals = {change.path: change.new for change in wanted.changes() if change.new is not ABSENT}
    absent = tuple(change.path for change in wanted.changes() if change.new is ABSENT)
    expect = Expect(state_equals=equals, state_absent=absent)
    same = all(check.passed for check in state_checks(expect, got.seen(expect)))
    assert same == (canonical(wanted.state) == canonical(got.state))


def _leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from _leaves(item, (*path, key))
    elif isinstance(value, list) and value:
        for at, item in enumerate(value):
            yield from _leaves(item, (*path, str(at)))
    else:
        yield path


def test_every_leaf_of_a_world_counts() -> None:
    """Each leaf of the whole state expected, and each changed in turn behind the grader's back."""
    expect = Expect(state={join(path): look(STATE, path) for path in _leaves(STATE)})
    for path in _leaves(STATE):
        value = look(STATE, path)
        for _, changed in replaced(value, "leaf"):
            odd = StateWorld("w", put(copy.deepcopy(STATE), path, next(changed)), TOOLS[:1])
            (check,) = state_checks(expect, odd.seen(expect))
            assert not check.passed and join(path) in check.detail
    (check,) = state_checks(expect, StateWorld("w", STATE, TOOLS[:1]).seen(expect))
    assert check.passed


def test_a_reason_names_some_of_many_differences() -> None:
    expect = Expect(state={f"k{n}": 1 for n in range(20)})
    (check,) = state_checks(expect, StateWorld("w", {}, [{"name": "t"}]).seen(expect))
    assert check.detail.startswith("k0: expected 1, got nothing; k1: ") and check.detail.endswith("; 12 more")


def test_a_world_without_a_state_has_no_right_one() -> None:
    (check,) = state_checks(Expect(state={"a": 1}), None)
    assert (check.passed, check.detail) == (False, "the world has no state")


def test_the_row_keeps_of_a_large_object_only_what_is_expected() -> None:
    expect = Expect(state={"orders": {"W77": {"status": "x"}}, "refunds": []})
    seen = StateWorld("w", STATE, TOOLS).seen(expect)
    assert seen.state is not None
    assert json.loads(json.dumps(seen.state.values)) == {
        "orders": {"W77": {"status": "pending"}},
        "refunds": [],
    }
    assert difference(STATE, STATE) == [] == list(seen.state.changes)
    assert look(STATE, split("orders.W77.status")) == "pending"


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ([Change("orders.W1.status", "open", "x")], ""),
        (
            [Change("orders.W1.status", "open", "x"), Change("orders.W1.total", 10, 999)],
            "orders.W1.total: expected as it was (10), got 999",
        ),
        ([Change("orders.W1", ABSENT, {"status": "x"})], ""),
        (
            [Change("orders.W1", ABSENT, {"status": "x", "total": 999})],
            'orders.W1: expected as it was (nothing there), got {"status":"x","total":999}',
        ),
    ],
)
def test_what_lies_beside_an_expected_key_may_not_change_either(changes: list[Change], wrong: str) -> None:
    """`state` looks at a key of an order, `state_equals` at the whole world: the order's other keys are part of that."""
    expect = Expect(state={"orders.W1": {"status": "x"}}, state_equals={})
    seen = Seen(state=StateSeen({"orders.W1": {"status": "x", "total": 999}}, tuple(changes)))
    (equals,) = [check for check in state_checks(expect, seen) if check.name == "state_equals"]
    assert (equals.passed, equals.detail) == (not wrong, wrong)


def test_a_world_that_was_lost_is_told_as_such_and_proves_nothing() -> None:
    """Not even that something is absent, or that nothing has changed."""
    for expect in (Expect(state={"a": 1}), Expect(state_absent=("a",)), Expect(state_equals={})):
        (check,) = state_checks(expect, Seen(lost=True))
        assert (check.passed, check.detail) == (False, LOST)
    (work,) = work_checks(Expect(files={"a": ExpectedFile(absent=True)}), Seen(lost=True))
    assert (work.passed, work.detail) == (False, LOST)


@pytest.mark.parametrize(
    ("keys", "lost"), [({"state_equals": {}}, True), ({"answer": {"exact": "x"}}, False)]
)
def test_what_nobody_saw_is_not_read_off_another_world(keys: dict[str, Any], lost: bool) -> None:
    """The world here is as it was given; the one that was acted on ended elsewhere."""
    of = case(**keys)
    toolbox = Toolbox(world().fork(), of.task.tools)
    evidence = collect(of, of.task, Transcript(), (), toolbox, lost=True)
    assert evidence.seen is not None
    assert evidence.seen.lost is lost
