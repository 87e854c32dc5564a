"""The generated pages are what the code would write now."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from agentbench_lab.cases import parse_cases, write_case_schema
from agentbench_lab.results.schema import data_dictionary, write_data_dictionary

from .doing import CASES, lab, some, write_suite
from .test_readme import blocks, python

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


WITHOUT = object()
SHAPES: dict[str, tuple[tuple[str | int, ...], object]] = {
    "an unknown key": (("requst",), "x"),
    "no id": (("id",), WITHOUT),
    "a number for an id": (("id",), 7),
    "a blank id": (("id",), " "),
    "no request": (("request",), WITHOUT),
    "a blank request": (("request",), "\n"),
    "no tools": (("tools",), WITHOUT),
    "empty tools": (("tools",), []),
    "a tool twice": (("tools",), ["tmct_describe", "tmct_describe"]),
    "one tool as text": (("tools",), "tmct_describe"),
    "an unknown rung": (("rung",), "TOOL-10"),
    "neither rung nor group": (("rung",), WITHOUT),
    "rung and group": (("group",), "mine"),
    "a blank group": (("group",), ""),
    "a world in the line": (("world",), {"modules": []}),
    "a world by number": (("world",), 1),
    "no expectation": (("expect",), WITHOUT),
    "a misspelt expectation": (("expect", "call"), []),
    "no word on termination": (("expect", "terminates"), WITHOUT),
    "termination as text": (("expect", "terminates"), "yes"),
    "termination as null": (("expect", "terminates"), None),
    "calls that are none": (("expect", "calls"), "tmct_describe"),
    "a call without a name": (("expect", "calls", 0, "name"), WITHOUT),
    "a misspelt key of a call": (("expect", "calls", 0, "inputs"), {}),
    "an input that is a list": (("expect", "calls", 0, "input"), ["Cart"]),
    "an order that is none": (("expect", "order"), "any"),
    "a proof by number": (("expect", "proof"), 1),
    "a limit as text": (("limits",), {"steps": "3"}),
    "an unknown limit": (("limits",), {"step": 3}),
    "a trace of text": (("trace",), ["tmct_describe"]),
}
"""Faults of shape, each made in a sound case: where, and what stands there instead."""


@pytest.mark.parametrize("name", SHAPES)
def test_schema_and_reader_refuse_the_same_shapes(name: str) -> None:
    """What an editor underlines is what the lab refuses, as far as JSON Schema can say it."""
    way, value = SHAPES[name]
    one = copy.deepcopy(CASES[0])
    inner: Any = one
    for key in way[:-1]:
        inner = inner[key]
    if value is WITHOUT:
        del inner[way[-1]]
    else:
        inner[way[-1]] = value
    schema = json.loads((DOCS / "case.schema.json").read_text(encoding="utf-8"))
    assert not jsonschema.Draft202012Validator(schema).is_valid(one)
    _, problems = parse_cases(json.dumps(one).encode(), name="small", file="small.jsonl")
    assert [problem.line for problem in problems] == [1] * len(problems)
    assert problems


def test_schema_and_reader_take_the_same_cases() -> None:
    """Every case of the shipped ladder, one with a group for its rung, one without a world."""
    schema = json.loads((DOCS / "case.schema.json").read_text(encoding="utf-8"))
    check = jsonschema.Draft202012Validator(schema)
    lines = (DOCS.parent / "data" / "cases" / "ladder.jsonl").read_bytes().splitlines()
    sound = [json.loads(line) for line in lines]
    grouped = {key: value for key, value in sound[0].items() if key not in ("rung", "world")}
    for one in (*sound, {**grouped, "group": "mine"}, {**sound[0], "world": None}):
        assert [error.message for error in check.iter_errors(one)] == [], one["id"]
        assert parse_cases(json.dumps(one).encode(), name="s", file="s.jsonl")[1] == []


@pytest.mark.parametrize("name", ["data-dictionary.md", "case.schema.json"])
def test_generated_pages_end_lines_alike(name: str) -> None:
    data = (DOCS / name).read_bytes()
    assert b"\r" not in data
    assert data.endswith(b"\n")


def test_an_agentd_suite_runs_as_its_page_says(tmp_path: Path) -> None:
    """The task and the lines of Python, as they stand on the page."""
    page = (DOCS / "formats.md").read_text(encoding="utf-8").split("### Published rules")[1].split("\n###")[0]
    (task,), (lines,) = blocks(page, "json"), blocks(page, "python")
    (tmp_path / "tasks.jsonl").write_text(task, encoding="utf-8")
    (tmp_path / "page.py").write_text(lines, encoding="utf-8")
    done = python("page.py", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "[{'case_id': 'log', 'outcome': 'solved'}]\n"), done.stderr


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            {"id": "a", "instruction": "Do it.", "grade": {"exact": "x"}},
            "holds cases of agentd's harness; run them from Python: "
            "evaluate(agentbench_lab.benchmarks.agentd.load_cases(FILE), DRIVER); see docs/formats.md, Published rules",
        ),
        (
            {"id": "a", "question": [[]], "function": []},
            "holds cases of the Berkeley Function Calling Leaderboard; run them from Python: "
            "evaluate(agentbench_lab.benchmarks.bfcl_cases.load_cases(FILE), DRIVER); see docs/formats.md, Published rules",
        ),
    ],
)
def test_a_file_of_another_benchmark_says_how_it_is_run(
    tmp_path: Path, line: dict[str, Any], said: str
) -> None:
    (tmp_path / "tasks.jsonl").write_text(f"// theirs\n{json.dumps(line)}\n", encoding="utf-8")
    done = lab("run", "tasks.jsonl", "--driver", "stub", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (2, f"error: tasks.jsonl: {said}\n")
    checked = lab("lint", "tasks.jsonl", cwd=tmp_path)
    assert checked.stdout == f"tasks.jsonl: {said}\n"


def test_a_saved_run_is_read_back_as_the_page_says(tmp_path: Path) -> None:
    """A run that is in this checkout, by its bare name."""
    page = (DOCS / "formats.md").read_text(encoding="utf-8")
    (lines,) = blocks(page, "py")
    (tmp_path / "page.py").write_text(lines, encoding="utf-8")
    done = python("page.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Run('ladder-floors" in done.stdout
    assert "disqualified: 208 unsafe of 208 judged (208 hallucinated_call)" in done.stdout


def test_the_page_of_prices_prices_a_run(tmp_path: Path) -> None:
    """Its file of prices and its lines, with a run in the folder that they name."""
    page = (DOCS / "prices.md").read_text(encoding="utf-8")
    (lines,), (prices,) = blocks(page, "python"), blocks(page, "csv")
    (tmp_path / "page.py").write_text(lines, encoding="utf-8")
    (tmp_path / "prices.csv").write_text(prices, encoding="utf-8")
    write_suite(tmp_path, some(0))
    done = lab("run", "small.jsonl", "--driver", "stub", "--out", "data/results/mine", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    done = python("page.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("What it costs")
