"""JSON values: equality, private copies, canonical bytes."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench_lab.values import MAX_DEPTH, NotJson, canonical, digest, plain, same

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
JSON = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4), max_leaves=12)  # fmt: skip


@pytest.mark.parametrize(
    ("a", "b", "equal"),
    [
        (1, 1.0, True),
        (0, -0.0, True),
        (2**53, float(2**53), True),
        (2**53 + 1, float(2**53), False),
        (True, 1, False),
        (1, True, False),
        (False, 0, False),
        (0, False, False),
        (True, True, True),
        ("1", 1, False),
        (1, "1", False),
        ("", None, False),
        (None, False, False),
        (None, 0, False),
        (None, None, True),
        ([1, [2.0]], [1.0, [2]], True),
        ([1], [True], False),
        ([True], [1], False),
        ([1, 2], [2, 1], False),
        ([1], [1, 1], False),
        ([], {}, False),
        ([], None, False),
        ({}, None, False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ({"a": None}, {}, False),
        ({"a": 1}, {"a": True}, False),
        ({"a": {"b": [0]}}, {"a": {"b": [False]}}, False),
        ("é", "e\u0301", False),
        (0, "", False),
        (0, [], False),
    ],
)
def test_two_values_are_the_same_as_json_values(a: Any, b: Any, equal: bool) -> None:
    assert same(a, b) is equal
    assert same(b, a) is equal


@given(JSON)
def test_a_value_is_the_same_as_itself_its_copy_and_what_json_gives_back(value: Any) -> None:
    copy = plain(value)
    assert same(value, value)
    assert same(copy, value)
    assert same(json.loads(canonical(copy)), value)


@given(JSON, JSON, JSON)
def test_being_the_same_is_an_equivalence(a: Any, b: Any, c: Any) -> None:
    assert same(a, b) == same(b, a)
    if same(a, b) and same(b, c):
        assert same(a, c)


@given(st.dictionaries(st.text(), JSON, max_size=5), st.randoms())
def test_the_order_of_keys_changes_neither_sameness_nor_bytes_nor_digest(
    value: dict[str, Any], random: Any
) -> None:
    keys = list(value)
    random.shuffle(keys)
    shuffled = {key: value[key] for key in keys}
    assert same(value, shuffled)
    assert canonical(value) == canonical(shuffled)
    assert digest(value) == digest(shuffled)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": 1, "a": [True, None, 1.5, "é"]}, '{"a":[true,null,1.5,"é"],"b":1}'),
        ([], "[]"),
        ({"": {}}, '{"":{}}'),
    ],
)
def test_the_canonical_form_is_sorted_compact_utf8(value: Any, text: str) -> None:
    assert canonical(value) == text.encode()


def test_a_copy_shares_nothing_and_tuples_become_lists() -> None:
    inner: dict[str, Any] = {"b": [1]}
    value = {"a": (inner, "x")}
    copy = plain(value)
    inner["b"].append(2)
    assert copy == {"a": [{"b": [1]}, "x"]}
    assert plain((1, (2,))) == [1, [2]]


def _deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (math.nan, r"\$: nan is no JSON number"),
        ({"a": [0, math.inf]}, r"\$\.a\[1\]: inf is no JSON number"),
        (2**64, r"\$: the integer does not fit into 64 bits"),
        ({"a": -(2**63) - 1}, r"\$\.a: the integer does not fit into 64 bits"),
        ([10**5000], r"\[0\]: the integer does not fit into 64 bits"),
        ({"a": {1: 2}}, r"\$\.a: a key is an int, not text"),
        ({"a": "\ud800"}, r"\$\.a: text with a lone surrogate at 0"),
        ({"\ud800": 1}, r"\$: text with a lone surrogate at 0"),
        ({"a": {1, 2}}, r"\$\.a: a set is no JSON value"),
        (b"x", "a bytes is no JSON value"),
        (_deep(MAX_DEPTH + 1), "nested deeper than 100 levels"),
    ],
)
def test_what_json_cannot_hold_is_refused_with_its_place(value: Any, says: str) -> None:
    with pytest.raises(NotJson, match=says) as error:
        plain(value)
    str(error.value).encode()


def test_a_value_that_contains_itself_is_refused_and_a_deep_one_is_not() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(NotJson, match="nested deeper"):
        plain(loop)
    assert same(plain(_deep(MAX_DEPTH)), _deep(MAX_DEPTH))
    assert plain([2**64 - 1, -(2**63)]) == [2**64 - 1, -(2**63)]
