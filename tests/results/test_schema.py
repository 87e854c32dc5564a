"""The schemas: every field told, and nothing swallowed that Arrow would swallow."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pytest

from agentbench_lab.results.schema import SCHEMAS, check, data_dictionary, table

ROW: tuple[Any, ...] = (
    "small",
    "c1",
    "stub",
    None,
    "once",
    1,
    1,
    "done",
    None,
    None,
    None,
    None,
    None,
    False,
    None,
    None,
    0.1,
    None,
)


def test_every_field_is_described_and_well_named() -> None:
    """Column names of lower case, a description on each, the same column the same everywhere."""
    kinds: dict[str, tuple[pa.DataType, bool]] = {}
    for grain, schema in SCHEMAS.items():
        assert len(set(schema.names)) == len(schema.names), grain
        for field in schema:
            assert re.fullmatch(r"[a-z][a-z0-9_]*", field.name)
            assert len((field.metadata or {})[b"description"]) > 8, (grain, field.name)
            assert kinds.setdefault(field.name, (field.type, field.nullable)) == (field.type, field.nullable)


def test_identity_and_arm_are_never_null() -> None:
    for grain, schema in SCHEMAS.items():
        names = (
            ("suite", "case_id") if grain == "cases" else ("suite", "case_id", "driver", "scaffold", "trial")
        )
        assert [name for name in names if schema.field(name).nullable] == [], grain
    assert SCHEMAS["trials"].field("model").nullable


def test_a_sound_row_becomes_a_table() -> None:
    made = table("attempts", [ROW, ROW])
    assert made.schema.equals(SCHEMAS["attempts"], check_metadata=True)
    assert made.num_rows == 2
    check("attempts", made)


@pytest.mark.parametrize("grain", SCHEMAS)
def test_no_rows_make_an_empty_table(grain: str) -> None:
    made = table(grain, [])
    check(grain, made)
    assert (made.num_rows, made.num_columns) == (0, len(SCHEMAS[grain]))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([ROW, ROW[:-1]], "attempts, row 2: 17 values for 18 columns"),
        ([(*ROW, 1)], "attempts, row 1: 19 values for 18 columns"),
        ([ROW, ROW, ("small", None, *ROW[2:])], "attempts, row 3: case_id must not be null"),
    ],
)
def test_rows_of_another_shape_are_refused(rows: list[tuple[Any, ...]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        table("attempts", rows)


@pytest.mark.parametrize(
    ("at", "value", "message"),
    [
        (5, "1", "trial is a str, not int32"),
        (5, 1.5, "trial is a float, not int32"),
        (5, True, "trial is a bool, not int32"),
        (8, 1.0, "model_calls is a float, not int64"),
        (1, 5, "case_id is an int, not string"),
        (7, b"done", "end is a bytes, not string"),
        (13, 1, "tokens_estimated is an int, not bool"),
        (14, 0, "usage_lost is an int, not bool"),
        (16, "soon", "wall_s is a str, not double"),
        (8, 2**63, ""),
        (5, 2**31, ""),
    ],
)
def test_values_of_another_type_are_refused(at: int, value: Any, message: str) -> None:
    """Never cut to size and never turned into another type, as Arrow would: 1.5 into 1, bytes into text."""
    with pytest.raises((ValueError, OverflowError, pa.ArrowException)) as caught:
        table("attempts", [ROW, (*ROW[:at], value, *ROW[at + 1 :])])
    if message:
        assert str(caught.value) == f"attempts, row 2: {message}"


def test_what_is_no_text_inside_a_list_is_refused() -> None:
    """Arrow takes a null silently, though the schema says that there is none."""
    sound = ("small", "c1", "stub", None, "once", 1, 1, None, None, None, ["a"], None, None, None)
    check("transcripts", table("transcripts", [sound]))
    for wrong in (["a", None], ["a", 5], ("a", b"b")):
        with pytest.raises(ValueError, match="transcripts, row 2: notes holds what is no text"):
            table("transcripts", [sound, (*sound[:10], wrong, *sound[11:])])


def test_check_names_what_differs() -> None:
    made = table("attempts", [ROW])
    with pytest.raises(ValueError, match="other columns than the schema's: end"):
        check("attempts", made.drop_columns(["end"]))
    with pytest.raises(ValueError, match="other columns than the schema's: more"):
        check("attempts", made.append_column("more", pa.array([1])))
    with pytest.raises(ValueError, match="their order"):
        check("attempts", made.select(list(reversed(made.column_names))))
    wider = made.set_column(5, "trial", pa.array([1], pa.int64()))
    with pytest.raises(ValueError, match="trial is int64, not int32"):
        check("attempts", wider)
    holed = made.set_column(1, "case_id", pa.array([None], pa.string()))
    with pytest.raises(ValueError, match="case_id has nulls"):
        check("attempts", holed)


def test_the_dictionary_has_every_table_and_column() -> None:
    text = data_dictionary()
    for grain, schema in SCHEMAS.items():
        part = text.split(f"\n## {grain}\n")[1].split("\n## ")[0]
        assert [line.split("`")[1] for line in part.splitlines() if line.startswith("| `")] == schema.names
    assert not re.search(r"\|\s*\|\n", text), "a column without a description"
