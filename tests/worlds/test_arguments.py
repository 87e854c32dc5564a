"""The check of arguments against their schema, with jsonschema as the oracle, and the mistakes that it must not make."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentbench_lab.worlds.arguments import UnsupportedSchema, compile_schema

TYPES = ["string", "boolean", "null", "object", "array", "integer", "number"]
KEYS = ["a", "b", "c"]

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([0.0, 1.0, 1.5, -2.0, 1e300])
    | st.sampled_from(["", "a", "1", "true", "[1]", "null"])
)
json_values = st.recursive(
    scalars,
    lambda v: st.lists(v, max_size=3) | st.dictionaries(st.sampled_from(KEYS), v, max_size=3),
    max_leaves=6,
)
numbers = st.integers(-2, 2) | st.sampled_from([0.5, 1.0])


def _schemas(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(TYPES)
            | st.lists(st.sampled_from(TYPES), min_size=1, max_size=3, unique=True),
            "properties": st.dictionaries(st.sampled_from(KEYS), inner, max_size=3),
            "required": st.lists(st.sampled_from(KEYS), max_size=2, unique=True),
            "additionalProperties": st.booleans(),
            "items": inner,
            "anyOf": st.lists(inner, min_size=1, max_size=3),
            "enum": st.lists(json_values, min_size=1, max_size=3),
            "const": json_values,
            "minimum": numbers,
            "maximum": numbers,
            "description": st.just("what it is"),
        },
    )


plain_schemas = st.fixed_dictionaries({}, optional={"type": st.sampled_from(TYPES), "minimum": numbers})
schemas = st.recursive(plain_schemas, _schemas, max_leaves=5)


@given(schemas, json_values)
@settings(max_examples=500, deadline=None)
def test_fits_exactly_what_jsonschema_accepts(schema: dict[str, Any], value: Any) -> None:
    """On every supported keyword, at every depth."""
    accepted = jsonschema.Draft202012Validator(schema).is_valid(value)
    assert (compile_schema(schema)(value, "") == []) is accepted


RESAMPLE = {
    "type": "object",
    "properties": {
        "values": {"type": "array", "items": {"type": "number"}},
        "rate": {"type": "number"},
        "count": {"type": "integer"},
        "loop": {"type": "boolean"},
        "label": {"type": "string"},
    },
    "required": ["values", "rate", "count", "loop"],
    "additionalProperties": False,
}
GOOD = {"values": [1.0, 2.5, 4.0], "rate": 0.5, "count": 1, "loop": True}


@pytest.mark.parametrize(
    ("change", "misfits"),
    [
        ({}, []),
        ({"values": [1, 2.5, 4]}, []),
        ({"count": 1.0}, []),
        ({"label": "raw"}, []),
        ({"rate": 9}, []),
        ({"count": 1.5}, [("type", "count", False)]),
        ({"count": "1"}, [("type", "count", True)]),
        ({"count": "one"}, [("type", "count", False)]),
        ({"count": True}, [("type", "count", False)]),
        ({"loop": 1}, [("type", "loop", False)]),
        ({"loop": "true"}, [("type", "loop", True)]),
        ({"values": "[1,2.5,4]"}, [("type", "values", True)]),
        ({"values": '["x"]'}, [("type", "values", False)]),
        ({"values": [1, "2"]}, [("type", "values[1]", True)]),
        ({"values": [True]}, [("type", "values[0]", False)]),
        ({"speed": 2}, [("unknown", "", False)]),
    ],
)
def test_types_are_json_types_and_text_is_never_decoded(
    change: dict[str, Any], misfits: list[tuple[str, str, bool]]
) -> None:
    """An integer is a number at every depth, 1.0 is an integer, true is neither; text that holds JSON is flagged."""
    found = compile_schema(RESAMPLE)({**GOOD, **change}, "")
    assert [(m.reason, m.path, m.stringified) for m in found] == misfits


def test_every_misfit_is_reported() -> None:
    found = compile_schema(RESAMPLE)({"values": 1, "rate": "x", "speed": 2, "pitch": 3}, "")
    reasons = sorted(m.reason for m in found)
    assert reasons == ["missing", "missing", "type", "type", "unknown", "unknown"]
    assert {"count is required", "loop is required"} <= {m.detail for m in found}


def test_a_number_outside_its_range_and_a_word_outside_its_list() -> None:
    check = compile_schema(
        {"properties": {"k": {"type": "integer", "minimum": 1, "maximum": 5}, "w": {"enum": ["a", 1]}}}
    )
    found = check({"k": 6, "w": True}, "")
    assert [(m.reason, m.path, m.detail) for m in found] == [
        ("range", "k", "k must be at most 5"),
        ("enum", "w", "w must be one of a, 1"),
    ]


@pytest.mark.parametrize(
    "schema",
    [
        {"pattern": "a+"},
        {"type": "text"},
        {"properties": {"a": {"minLength": 1}}},
        {"items": {"anyOf": [{"oneOf": []}]}},
        {"additionalProperties": {"type": "string"}},
    ],
)
def test_a_keyword_that_would_restrict_is_refused_and_never_ignored(schema: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedSchema):
        compile_schema(schema)


def test_an_open_range_is_said_in_words() -> None:
    """A bound that is not declared is not printed as None."""
    low = compile_schema({"minimum": 1})(0, "k")
    high = compile_schema({"maximum": 5})(9, "k")
    assert [m.detail for m in low + high] == ["k must be at least 1", "k must be at most 5"]
