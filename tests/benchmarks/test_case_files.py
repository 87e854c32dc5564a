"""Case files of other projects, damaged in any field: a suite whose every trial can be judged, or one clear line."""

from __future__ import annotations

import copy
import json
import re
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentbench_lab.benchmarks import agentd, bfcl_cases
from agentbench_lab.cases import Case, Suite, load_suite
from agentbench_lab.errors import LabError
from agentbench_lab.grading import Evidence, grade
from agentbench_lab.transcripts import Transcript
from agentbench_lab.worlds.find import Worlds
from agentbench_lab.worlds.sandbox_levels import Level
from agentbench_lab.worlds.seen import Seen
from agentbench_lab.worlds.seen_work import CommandSeen, FileSeen, WorkSeen, blob
from agentbench_lab.worlds.toolbox import Toolbox

from .damage import ODD, damaged

SCHEMA = {
    "type": "object",
    "properties": {
        "id": {"type": "string", "enum": ["A1", "A2"], "description": "which"},
        "n": {"type": ["integer", "null"], "minimum": 0, "maximum": 9},
        "tags": {"type": "array", "items": {"type": "object", "properties": {"x": {"type": "number"}}}},
        "one": {"anyOf": [{"type": "string"}, {"const": 1}]},
    },
    "required": ["id"],
    "additionalProperties": False,
}
ID = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}
AGENTD: list[dict[str, Any]] = [
    {
        "id": "state",
        "instruction": "Cancel A1",
        "mock_llm": "mcp-call",
        "intelligence": "http://127.0.0.1:1",
        "model": "m",
        "max_steps": "7",
        "max_tokens": 900,
        "deadline": "30s",
        "tool_server": {
            "name": "env",
            "state": {"orders": {"A1": {"status": "new"}}, "log": [], "a": {"b": None}},
            "tools": [
                {"name": "get", "description": "d", "inputSchema": SCHEMA, "effect": {"return": "orders.A1"}},
                {"name": "set", "inputSchema": ID, "effect": {"set": "a.b", "value_arg": "id"}},
                {
                    "name": "note",
                    "inputSchema": ID,
                    "effect": {"append": "log"},
                    "result": {"noted": ["{x}"]},
                },
                {"name": "may", "inputSchema": SCHEMA, "effect": {"set": "a.c", "value_arg": "n"}},
            ],
        },
        "grade": {"state": {"a": {"b": "A1"}, "log": [{"id": "A1"}]}, "state_absent": ["gone", "a.c"]},
        "expect": {"completed": True, "tool_call": "set"},
    },
    {
        "id": "folder",
        "instruction": "Mend it. Do NOT edit check.py.",
        "tool_server": {
            "files": {"a/m.py": "x = 1\n", "check.py": "import m\n"},
            "tools": [
                {"name": "sh", "builtin": "bash", "description": "d", "inputSchema": ID},
                {"name": "read_file", "builtin": "read_file", "inputSchema": SCHEMA},
                {"name": "put", "builtin": "write_file"},
            ],
        },
        "grade": {
            "files": {"a/m.py": {"contains": "2", "exact": "x = 2"}, "out.txt": {}},
            "command": {"run": "python3 check.py", "expect_exit": 0},
        },
    },
    {
        "id": "calls",
        "instruction": "Call it",
        "mock_mcp": {"uri": "file:///in.json", "emit": False, "name": "mock"},
        "grade": {
            "contains": "done",
            "exact": "done",
            "regex": "^d(o)ne$",
            "tool_calls": {
                "all": [{"name": "f", "args": {"a": [1, ""], "b": {"c": ["", 2]}}}, {"name": "g"}]
            },
        },
    },
    {
        "id": "one",
        "instruction": "Call it",
        "tool_server": {"tools": [{"name": "f", "inputSchema": ID}]},
        "grade": {"tool_calls": [{"name": "f", "args": {"id": "x"}}, {"name": "g", "args": None}]},
    },
    {
        "id": "talk",
        "instruction": "Hello",
        "policy": "p",
        "max_turns": 2,
        "tool_server": {"state": {"a": 1}, "tools": [{"name": "f", "effect": {"set": "a"}}]},
        "user_simulator": {"mock_llm": "final", "scenario": "s", "model": "m", "intelligence": "i"},
        "grade": {"state": {"a": {}}, "state_absent": ["b"]},
    },
    {
        "id": "flow",
        "workflow": {"start": "a", "nodes": {"a": {"kind": "agent"}}},
        "mode": "workflow",
        "grade": {"contains": "x"},
    },
]


def function(name: str, **properties: Any) -> dict[str, Any]:
    parameters = {"type": "dict", "properties": properties, "required": list(properties)[:1]}
    return {"name": name, "description": "d", "parameters": parameters}


TYPED = function(
    "f",
    a={"type": "integer", "description": "d"},
    b={"type": "array", "items": {"type": "dict", "properties": {"x": {"type": "float"}}}},
    c={"type": "dict", "properties": {"k": {"type": "string"}}},
    d={"type": "tuple", "items": {"type": "boolean"}},
)
ANSWER = {"f": {"a": [1, 2], "b": ["", [{"x": [1.0]}]], "c": [{"k": ["v", ""]}, ""], "d": [[True, False]]}}
JAVA = function(
    "g",
    a={"type": "long", "description": "d"},
    b={"type": "ArrayList", "items": {"type": "String"}},
    c={"type": "HashMap"},
)
JAVASCRIPT = function(
    "g", a={"type": "Bigint"}, b={"type": "array", "items": {"type": "String"}}, c={"type": "dict"}
)
SPOKEN = {"g": {"a": [5], "b": [["x"]], "c": ["", {"k": ["v"]}]}}


def asked(*functions: dict[str, Any]) -> list[dict[str, Any]]:
    question = [[{"role": "system", "content": "p"}, {"role": "user", "content": "q"}]]
    return [{"id": "q_0", "question": question, "function": list(functions)}]


BFCL: dict[str, dict[str, Any]] = {
    name: {"questions": asked(*functions), "answers": [{"id": "q_0", "ground_truth": list(truths)}]}
    for name, functions, truths in (
        ("simple_python", [TYPED], [ANSWER]),
        ("parallel_multiple", [function("h", x={"type": "any"}), TYPED], [{"h": {"x": ["y"]}}, ANSWER]),
        ("simple_java", [JAVA], [SPOKEN]),
        ("simple_javascript", [JAVASCRIPT], [SPOKEN]),
        ("irrelevance", [TYPED], []),
    )
}


def lines(file: Path, rows: Any) -> Path:
    file.parent.mkdir(exist_ok=True)
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return file


def load_agentd(folder: Path, document: Any) -> Suite:
    file = lines(folder / "tasks.jsonl", document)
    read = agentd.read_tasks(file)
    assert all(str(problem) for problem in agentd.naive_spots(read, "f"))
    return agentd.load_cases(file, users=True)


def load_bfcl(category: str) -> Callable[[Path, Any], Suite]:
    def load(folder: Path, document: Any) -> Suite:
        name = f"BFCL_v4_{category}.json"
        if "answers" in document:
            lines(folder / "possible_answer" / name, as_rows(document["answers"]))
        return bfcl_cases.load_cases(lines(folder / name, as_rows(document.get("questions"))))

    return load


def ours(expect: dict[str, Any]) -> list[dict[str, Any]]:
    """A line of our own format that asks for the rule of another."""
    tools = [{"name": "f", "input_schema": SCHEMA, "result": "ok"}]
    world = {"kind": "state", "state": {"a": {"b": 1}}, "tools": tools}
    return [{"id": "o", "group": "g", "request": "r", "tools": ["f"], "world": world, "expect": expect}]


def load_ours(folder: Path, document: Any) -> Suite:
    suite = load_suite(lines(folder / "ours.jsonl", as_rows(document)))
    for case in suite.cases:
        Worlds(suite).of(case)
    return suite


def as_rows(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


KINDS: dict[str, tuple[Any, Callable[[Path, Any], Suite]]] = {
    **{f"agentd, {task['id']}": ([task], load_agentd) for task in AGENTD},
    "agentd, a file": (AGENTD, load_agentd),
    **{
        f"ours, agentd {task['id']}": (
            ours({"agentd": {"grade": task["grade"], "expect": task.get("expect", {})}}),
            load_ours,
        )
        for task in AGENTD
    },
    "ours, bfcl": (
        ours({"bfcl": {"category": "parallel", "functions": [TYPED], "ground_truth": [ANSWER]}}),
        load_ours,
    ),
    **{f"bfcl, {name}": (document, load_bfcl(name)) for name, document in BFCL.items()},
}
EVERY = pytest.mark.parametrize("kind", KINDS)


def evidences(case: Case, suite: Suite, given_input: Any) -> list[Evidence]:
    """What may be seen at the end: nothing at all, and a world after a call of each tool, however odd."""
    world = Worlds(suite, sandbox=Level("local")).of(case)
    if world.kind == "sandbox":
        # commands are not run here: what they leave behind is made up
        asked = case.expect.agentd.files if case.expect.agentd is not None else None
        there = {path: FileSeen("file", blob(b"x = 2\r\n")) for path in asked or ()}
        return [
            Evidence(),
            Evidence(seen=Seen(work=WorkSeen("local", there, CommandSeen(exit=0)))),
            Evidence(seen=Seen(work=WorkSeen("local", {}, None))),
        ]
    box = Toolbox(world.fork(), case.task.tools)
    for name in case.task.tools:
        for arguments in (None, {"id": "A1"}, {"id": given_input, "n": given_input}):
            box.call(name, copy.deepcopy(arguments))
    ledger = box.close()
    assert box.fault == ""
    return [Evidence(), Evidence(ledger, seen=box.seen(case.expect))]


def judged_or_refused(kind: str, document: Any, given_input: Any) -> None:
    """Every case of it can be judged, or a LabError names the file and the line; anything else fails."""
    folder = Path(tempfile.mkdtemp())
    try:
        try:
            suite = KINDS[kind][1](folder, document)
        except LabError as error:
            said = str(error)
            assert said.startswith(str(folder))
            whole = ("no tasks", "no cases", "answer for", "answers for", "no such file", "No such file")
            assert re.match(r"[^:]+\.jsonl?:\d+: ", said) or any(words in said for words in whole), said
            return
        for case in suite.cases:
            for evidence in evidences(case, suite, given_input):
                for answer in (None, "done", given_input):
                    verdict = grade(case, Transcript(answer=answer), evidence)
                    assert verdict.owner != "grader"
    finally:
        shutil.rmtree(folder)


@EVERY
def test_undamaged_it_loads(kind: str) -> None:
    document, load = KINDS[kind]
    folder = Path(tempfile.mkdtemp())
    try:
        suite = load(folder, document)
        for case in suite.cases:
            evidences(case, suite, "x")
    finally:
        shutil.rmtree(folder)


@EVERY
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_damage_is_judged_or_one_clear_line(kind: str, data: st.DataObject) -> None:
    document = data.draw(damaged(KINDS[kind][0]))
    judged_or_refused(kind, document, data.draw(st.sampled_from(ODD)))


@pytest.mark.long
@EVERY
@settings(max_examples=1_000, deadline=None)
@given(data=st.data())
def test_much_damage_is_judged_or_one_clear_line(kind: str, data: st.DataObject) -> None:
    document = data.draw(damaged(KINDS[kind][0]))
    judged_or_refused(kind, document, data.draw(st.sampled_from(ODD)))


@pytest.mark.parametrize("load", [agentd.load_cases, bfcl_cases.load_cases])
def test_a_file_that_is_not_there_is_said_to_be_missing(
    tmp_path: Path, load: Callable[[Path], Suite]
) -> None:
    """And not to be of a category that nobody judges; the file beside it that was meant is named."""
    (tmp_path / "BFCL_v4_multiple.json").write_text("", encoding="utf-8")
    for name, hint in (
        ("BFCL_v4_multipel.json", " (did you mean 'BFCL_v4_multiple.json'?)"),
        ("zz.jsonl", ""),
    ):
        with pytest.raises(LabError) as caught:
            load(tmp_path / name)
        assert str(caught.value) == f"{tmp_path / name}: cannot be read: No such file or directory{hint}"


@pytest.mark.parametrize("name", ["q.json", "questions.json"])
def test_a_question_file_of_any_name_says_how_it_has_to_be_named(tmp_path: Path, name: str) -> None:
    """The category stands nowhere else."""
    from agentbench_lab.benchmarks.bfcl_cases import load_cases

    (tmp_path / name).write_text("{}\n", encoding="utf-8")
    with pytest.raises(LabError, match=r"the file has to be named BFCL_v4_<category>\.json"):
        load_cases(tmp_path / name)
    (tmp_path / "BFCL_v4_simple.json").write_text("{}\n", encoding="utf-8")
    with pytest.raises(LabError, match="category 'simple' is not judged by its calls"):
        load_cases(tmp_path / "BFCL_v4_simple.json")
