"""The generated pages are what the code would write now."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from agentbench_lab.cases import write_case_schema
from agentbench_lab.results.schema import data_dictionary, write_data_dictionary

from .doing import CASES

DOCS = Path(__file__).resolve().parent.parent / "docs"


def test_the_data_dictionary_is_current(tmp_path: Path) -> None:
    """`make docs` would change nothing."""
    assert (DOCS / "data-dictionary.md").read_text(encoding="utf-8") == data_dictionary()
    write_data_dictionary(tmp_path / "page.md")
    assert (tmp_path / "page.md").read_bytes() == (DOCS / "data-dictionary.md").read_bytes()


def test_the_case_schema_is_current(tmp_path: Path) -> None:
    write_case_schema(tmp_path / "schema.json")
    assert (tmp_path / "schema.json").read_bytes() == (DOCS / "case.schema.json").read_bytes()


def test_the_case_schema_takes_sound_cases_and_no_others() -> None:
    """As an editor reads it: every kind of case passes; a key misspelt, missing or of another type does not."""
    schema = json.loads((DOCS / "case.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    check = jsonschema.Draft202012Validator(schema)
    for one in CASES:
        assert [error.message for error in check.iter_errors(one)] == [], one["id"]
    for wrong in (
        {**CASES[0], "rung": "TOOL-10"},
        {**CASES[0], "requst": "x"},
        {key: value for key, value in CASES[0].items() if key != "tools"},
        {**CASES[0], "expect": {**CASES[0]["expect"], "call": []}},
        {**CASES[0], "expect": {"calls": [{"name": "a", "inputs": {}}]}},
        {**CASES[0], "tools": "tmct_describe"},
    ):
        assert not check.is_valid(wrong)


@pytest.mark.parametrize("name", ["data-dictionary.md", "case.schema.json"])
def test_generated_pages_end_lines_alike(name: str) -> None:
    data = (DOCS / name).read_bytes()
    assert b"\r" not in data
    assert data.endswith(b"\n")
