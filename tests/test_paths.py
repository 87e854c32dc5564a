"""Dotted paths: their text, looking along them, changing without touching, and differences."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench_lab.paths import ABSENT, BadPath, Change, difference, join, look, push, put, remove, split
from agentbench_lab.values import canonical

TEXTS = st.text(st.sampled_from("ab0.\\é"), min_size=1, max_size=4)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "x"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
STATES = st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3)
VALUE = {"a": {"b.c": [10, {"d": None}]}, "n": 1}


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("a", ("a",)),
        ("orders.W77.status", ("orders", "W77", "status")),
        (r"a.b\.c.1", ("a", "b.c", "1")),
        (r"a\\.b", ("a\\", "b")),
    ],
)
def test_a_path_is_segments_between_dots(text: str, path: tuple[str, ...]) -> None:
    assert split(text) == path
    assert join(path) == text


@given(st.lists(TEXTS, min_size=1, max_size=4).map(tuple))
def test_any_keys_make_a_path_that_reads_back(path: tuple[str, ...]) -> None:
    assert split(join(path)) == path


@pytest.mark.parametrize("text", ["", ".", "a.", ".a", "a..b", "a\\", r"a\b"])
def test_what_is_no_path_is_refused(text: str) -> None:
    with pytest.raises(BadPath):
        split(text)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (r"a.b\.c.0", 10),
        (r"a.b\.c.1.d", None),
        (r"a.b\.c.2", ABSENT),
        (r"a.b\.c.00", ABSENT),
        (r"a.b\.c.-1", ABSENT),
        ("n.x", ABSENT),
        ("z", ABSENT),
    ],
)
def test_null_is_something_and_nothing_is_absent(text: str, found: Any) -> None:
    assert look(VALUE, split(text)) is found or look(VALUE, split(text)) == found


@pytest.mark.parametrize(
    ("act", "says"),
    [
        (lambda: put(VALUE, ("z", "y"), 1), "z is not there"),
        (lambda: put(VALUE, ("n", "y"), 1), "n is a number, and holds nothing"),
        (lambda: put(VALUE, ("a", "b.c", "first"), 1), r"a.b\.c is a list: 'first' is no index in it"),
        (lambda: put(VALUE, ("a", "b.c", "2"), 1), r"a.b\.c has 2 entries: there is no index 2"),
        (lambda: remove(VALUE, ("a", "x")), "a.x is not there"),
        (lambda: push(VALUE, ("n",), 1), "n is a number, and no list"),
        (lambda: push(VALUE, ("z",), 1), "z is not there, and no list"),
    ],
)
def test_a_path_that_leads_nowhere_says_where_it_ends(act: Any, says: str) -> None:
    with pytest.raises(BadPath) as caught:
        act()
    assert str(caught.value) == says


def test_a_change_copies_the_way_and_shares_the_rest() -> None:
    before = {"a": {"x": {"deep": 1}, "y": {"far": 2}}, "b": [1, [2], 3]}
    kept = copy.deepcopy(before)
    after = put(before, ("a", "x", "deep"), 9)
    after = remove(after, ("b", "0"))
    assert before == kept
    assert after == {"a": {"x": {"deep": 9}, "y": {"far": 2}}, "b": [[2], 3]}
    assert after["a"]["y"] is before["a"]["y"] and after["b"][0] is before["b"][1]  # type: ignore[index]


def test_a_difference_names_the_smallest_parts_sorted() -> None:
    old = {"a": {"x": 1, "y": None}, "l": [1, 2, 3], "same": 1, "kind": {}}
    new = {"a": {"x": 2, "z": None}, "l": [1, 5], "same": 1.0, "kind": []}
    assert difference(old, new) == [
        Change("a.x", 1, 2),
        Change("a.y", old=None),
        Change("a.z", new=None),
        Change("kind", {}, []),
        Change("l.1", 2, 5),
        Change("l.2", old=3),
    ]


def _applied(state: Any, changes: list[Change]) -> Any:
    """The state with the changes made: removals last, the last entry of a list first."""
    for change in changes:
        if change.new is not ABSENT:
            path = split(change.path)
            holder = look(state, path[:-1])
            grows = isinstance(holder, list) and path[-1] == str(len(holder))
            state = push(state, path[:-1], change.new) if grows else put(state, path, change.new)
    for change in reversed(changes):
        if change.new is ABSENT:
            state = remove(state, split(change.path))
    return state


@given(STATES, STATES)
def test_a_difference_leads_from_one_state_to_the_other(old: Any, new: Any) -> None:
    kept = copy.deepcopy(old)
    assert canonical(_applied(old, difference(old, new))) == canonical(new)
    assert old == kept


@given(STATES, STATES, STATES)
def test_equal_differences_are_equal_worlds(first: Any, one: Any, other: Any) -> None:
    same = difference(first, one) == difference(first, other)
    assert same == (canonical(one) == canonical(other))


@given(STATES, st.lists(st.tuples(st.sampled_from(["put", "remove", "push"]), st.lists(st.sampled_from("abc01"), min_size=1, max_size=3).map(tuple), VALUES), max_size=6))  # fmt: skip
def test_looking_at_the_touched_paths_finds_all_there_is(first: Any, acts: list[Any]) -> None:
    """The law on which the quick comparison of worlds stands."""
    state, touched = first, []
    for act, path, value in acts:
        try:
            if act == "put":
                state, place = put(state, path, value), path
            elif act == "push":
                state, place = push(state, path, value), path
            else:
                holder = look(state, path[:-1])
                state, place = remove(state, path), path[:-1] if isinstance(holder, list) else path
        except BadPath:
            continue
        touched.append(place)
    assert difference(first, state, touched) == difference(first, copy.deepcopy(state))
