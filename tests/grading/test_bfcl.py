"""Mode `bfcl` by hand: types, spellings, what may be left out, pairing, and other languages' texts."""

from __future__ import annotations

from typing import Any

import pytest

from agentbench_lab.cases import Call, Case, Expect, Suite, Task
from agentbench_lab.expect import BfclTruth
from agentbench_lab.grading.bfcl import Checker, standard
from agentbench_lab.running.runner import evaluate
from agentbench_lab.transcripts import Transcript

from ..states import line, problems_of

RESAMPLE = {
    "name": "audio.resample",
    "parameters": {
        "type": "dict",
        "properties": {
            "values": {"type": "array", "items": {"type": "float"}},
            "rate": {"type": "float"},
            "count": {"type": "integer"},
            "loop": {"type": "boolean"},
            "label": {"type": "string"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "size": {"type": "dict", "properties": {}},
            "points": {"type": "array", "items": {"type": "dict"}},
        },
        "required": ["values", "rate"],
    },
}
ANSWERS = {
    "values": [[1.0, 2.5, 4.0]],
    "rate": [0.5, 2.0],
    "count": [1, ""],
    "loop": [True, ""],
    "label": ["St. John's", "st_john", ""],
    "tags": ["", ["First One", "b"]],
    "size": [{"w": [1, 2], "unit": ["cm", ""]}, ""],
    "points": ["", [{"x": [1]}, {"x": [2]}]],
}
RIGHT: dict[str, Any] = {"values": [1.0, 2.5, 4.0], "rate": 0.5}


def truth(category: str = "simple_python", *more: dict[str, Any], **answers: Any) -> BfclTruth:
    known = {"audio.resample": {**ANSWERS, **answers}}
    return BfclTruth(category, (RESAMPLE,), (known, *more))


def wrong(**input: Any) -> str:
    given = {key: value for key, value in {**RIGHT, **input}.items() if value is not ...}
    return (Checker(truth()).wrong([Call("audio.resample", given)]) or "").split(" of ")[0]


@pytest.mark.parametrize(
    ("input", "said"),
    [
        ({}, ""),
        ({"rate": 2}, ""),
        ({"values": [1, 2.5, 4]}, "type (of an entry)"),
        ({"values": "[1, 2.5, 4]"}, "type"),
        ({"rate": 9.9}, "value"),
        ({"rate": True}, "type"),
        ({"rate": ...}, "missing: audio.resample: rate"),
        ({"count": 1}, ""),
        ({"count": 1.0}, "type"),
        ({"count": "1"}, "type"),
        ({"count": True}, "type"),
        ({"loop": 1}, "type"),
        ({"label": "ST JOHN"}, ""),
        ({"label": 'st-johns"'}, "value"),
        ({"label": 'stjohn"s'}, ""),
        ({"tags": ["first-one", "B"]}, ""),
        ({"tags": ["B", "first-one"]}, "value"),
        ({"tags": []}, ""),
        ({"size": {"w": 2}}, ""),
        ({"size": {"w": 2, "unit": "CM"}}, ""),
        ({"size": {"unit": "cm"}}, "value"),
        ({"size": {"w": 1, "h": 1}}, "value"),
        ({"points": [{"x": 1}, {"x": 2}]}, ""),
        ({"points": [{"x": 2}, {"x": 1}]}, "value"),
        ({"points": [{"x": 1}]}, "value"),
        ({"speed": 2}, "unexpected: audio.resample: speed"),
    ],
)
def test_one_argument(input: dict[str, Any], said: str) -> None:
    assert wrong(**input) == said


def test_a_sign_and_a_decimal_point_are_lost() -> None:
    """Two of its gaps, kept."""
    assert standard("-3.5 km") == standard("35km")
    assert standard("O'Neil_Co.") == 'o"neilco'


def test_a_value_written_as_text_passes_where_the_truth_has_text() -> None:
    checker = Checker(truth(count=["n_items"]))
    assert checker.wrong([Call("audio.resample", {**RIGHT, "count": "n_items"})]) is None
    # and is then compared as it stands
    assert checker.wrong([Call("audio.resample", {**RIGHT, "count": "N_items"})]) is not None


def test_names_and_counts() -> None:
    checker = Checker(truth())
    assert checker.wrong([]) == "count: 0 calls where 1 is expected"
    assert checker.wrong([Call("audio_resample", RIGHT)]) == "name: audio_resample instead of audio.resample"
    assert Checker(truth(), underscores=True).wrong([Call("audio_resample", RIGHT)]) is None


def test_parallel_calls_are_paired_greedily() -> None:
    """The first expected call takes the first output that passes, and the second goes without: a matching would do."""
    second = {"audio.resample": {**ANSWERS, "rate": [0.5]}}
    checker = Checker(truth("parallel", second))
    low, high = Call("audio.resample", RIGHT), Call("audio.resample", {**RIGHT, "rate": 2.0})
    assert checker.wrong([high, low]) is None
    assert (checker.wrong([low, high]) or "").startswith("parallel: no unused call passes as audio.resample")


@pytest.mark.parametrize(
    ("category", "kind", "answer", "text"),
    [
        ("simple_java", "long", 5, "5L"),
        ("simple_java", "float", 0.5, "0.5f"),
        ("simple_java", "boolean", True, "true"),
        ("simple_java", "HashMap", {"a": [1]}, 'new HashMap<String, Integer>() {{ put("a", 1); }}'),
        ("simple_java", "String", "x", "x"),
        ("simple_javascript", "Bigint", 5, "5n"),
        ("simple_javascript", "String", "x", "'x'"),
        ("simple_javascript", "dict", {"a": [1], "b": ["t"]}, "{a: 1, 'b': \"t\"}"),
    ],
)
def test_other_languages_are_text(category: str, kind: str, answer: Any, text: str) -> None:
    function = {"name": "f", "parameters": {"properties": {"x": {"type": kind}}, "required": ["x"]}}
    checker = Checker(BfclTruth(category, (function,), ({"f": {"x": [answer]}},)))
    assert checker.wrong([Call("f", {"x": text})]) is None
    other = text.replace("5", "6").replace("x", "y").replace("1", "2").replace("true", "false")
    assert checker.wrong([Call("f", {"x": other})]) is not None
    if not isinstance(answer, str):
        assert "text is needed" in (checker.wrong([Call("f", {"x": answer})]) or "")


def test_alternatives_must_be_a_list() -> None:
    bare = {
        "category": "simple",
        "functions": [RESAMPLE],
        "ground_truth": [{"audio.resample": {"label": "john"}}],
    }
    told = problems_of(line(expect={"bfcl": bare}, gold=None), line(id="other"))
    assert told == [
        "desk.jsonl:1: c: expect.bfcl: ground_truth[0].audio.resample.label: alternatives must be a list"
    ]
    beside = {**bare, "ground_truth": [{"audio.resample": {"label": ["john"]}}]}
    told = problems_of(line(expect={"bfcl": beside, "state": {"a": 1}}), line(id="other"))
    assert told == [
        "desk.jsonl:1: c: expect.bfcl stands alone: nothing else is judged under a published rule"
    ]


def calls_once(task: Task, tools: Any, ctx: Any) -> Transcript:
    """A driver that makes the one right call, in words the strict rule would not take."""
    tools.call("audio.resample", {**RIGHT, "label": "ST JOHN"})
    return Transcript()


def test_the_mode_is_named_in_the_verdict_and_on_the_card() -> None:
    schema = {
        "type": "object",
        "properties": {"values": {}, "rate": {}, "label": {}},
        "required": ["values", "rate"],
    }
    world = {"kind": "state", "state": {}, "tools": [{"name": "audio.resample", "input_schema": schema}]}
    case = Case(
        "c", "g", Task("r", ("audio.resample",)), Expect(bfcl=truth()), world, "s", taxonomy="outcome-graded"
    )
    run = evaluate(Suite("s", (case,), "d"), calls_once, save_run=False)
    verdict = run.product[0].verdict
    assert (verdict.outcome, [check.name for check in verdict.checks]) == (
        "solved",
        ["bfcl.calls", "hallucination"],
    )
    assert run.card.options["mode"] == "bfcl"
    idle = evaluate(Suite("s", (case,), "d"), "refuse_all", save_run=False).product[0].verdict
    assert (idle.outcome, idle.checks[0].detail) == ("over_refusal", "count: 0 calls where 1 is expected")
