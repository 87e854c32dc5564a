"""Mode `agentd` by hand: the corners that its own graders were seen to have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentbench_lab.benchmarks.agentd import load_cases, naive_spots, read_tasks
from agentbench_lab.cases import Call, Task
from agentbench_lab.errors import ProblemsError
from agentbench_lab.expect import AgentdGrade
from agentbench_lab.grading import Evidence
from agentbench_lab.grading.agentd import alike, matches, unmatched, within, wrongs
from agentbench_lab.results.product import regrade
from agentbench_lab.running.runner import evaluate
from agentbench_lab.transcripts import Transcript
from agentbench_lab.worlds.find import Worlds
from agentbench_lab.worlds.sandbox_levels import Level
from agentbench_lab.worlds.seen import Seen
from agentbench_lab.worlds.seen_work import KEPT, CommandSeen, FileSeen, WorkSeen, blob
from agentbench_lab.worlds.statestore import StateWorld
from agentbench_lab.worlds.toolbox import Toolbox

from ..states import STATE, TOOLS

DESK = {"kind": "state", "state": STATE, "tools": TOOLS}


@pytest.mark.parametrize(
    ("expected", "got", "equal"),
    [
        (5, 5.0, True),
        (True, 1, False),
        (1, True, False),
        (None, None, True),
        (None, 0, False),
        ("1", 1, False),
        ("-5", "5", True),
        ("3*4", "34", True),
        ("a.b", "AB", True),
        ("it's", 'it"s', True),
        ("lambda x: x^2", "x**2", True),
        ("X^2", "x^2", True),
        ("X+1", "x+1", True),
        ("a;b", "a ;b", True),
        ("a", "b", False),
        ([1, "a"], [1.0, "A"], True),
        ([1, 2], [2, 1], False),
        ([1], [1, 1], False),
        ({"x": 1}, {"x": 1, "y": 2}, False),
        ({"x": [1, 2]}, {"x": 2}, True),
        ({"x": [1, 2]}, {"x": [1, 2]}, False),
        ({"x": [[1, 2]]}, {"x": [1, 2]}, False),
        ({"x": ["", 1]}, {}, True),
        ({"x": ""}, {}, True),
        ({"x": 1}, {}, False),
        ({"x": ["", 1]}, {"x": ""}, False),
        ([{"x": [1]}], [{"x": 1}], True),
    ],
)
def test_values(expected: Any, got: Any, equal: bool) -> None:
    assert alike(expected, got) is equal


@pytest.mark.parametrize(
    ("args", "input", "fits"),
    [
        (None, {"a": 1}, True),
        ({}, {}, True),
        ({"a": 1}, {"a": 1, "b": 2}, True),
        ({"a": [1, 2]}, {"a": 2}, True),
        ({"a": []}, {"a": 1}, False),
        ({"a": [1, 2]}, {"a": [1, 2]}, False),
        ({"a": [[1, 2]]}, {"a": [1, 2]}, True),
        ({"a": [1, ""]}, {}, False),
    ],
)
def test_arguments(args: Any, input: dict[str, Any], fits: bool) -> None:
    assert matches({"name": "f", "args": args}, Call("f", input)) is fits
    assert not matches({"name": "g", "args": args}, Call("f", input))


def test_forms_of_calls() -> None:
    f, g = {"name": "f", "args": {"x": 1}}, {"name": "g"}
    one = [Call("f", {"x": 1})]
    assert unmatched(f, one) is None
    assert unmatched([g, f], one) is None
    assert unmatched([], one) == "no call matched ; got f"
    assert unmatched(g, []) == "no call matched g; got none"
    assert unmatched({"all": [f, {"name": "f"}, f]}, one) is None
    assert unmatched({"all": [f, g]}, one) == "required call not seen: g"
    assert unmatched({"all": []}, []) is None


@pytest.mark.parametrize(
    ("expected", "got", "said"),
    [
        ({"a": 1}, {"a": True, "b": 2}, None),
        ({"a": {"b": "x"}}, {"a": {"b": "X"}}, 's.a.b: expected "x", got "X"'),
        ([{"a": 1}], [{"a": 1, "b": 2}], None),
        ([1], [1, 2], "s: expected [1], got [1,2]"),
        (None, None, None),
        ({"a": None}, {}, "s.a: expected null, got nothing"),
        ({}, {"a": 1}, None),
        ({}, 1, "s: expected {}, got 1"),
    ],
)
def test_states(expected: Any, got: Any, said: str | None) -> None:
    assert within(expected, got, "s") == said


def said(grade: dict[str, Any], answer: Any, **expect: Any) -> dict[str, bool]:
    found = wrongs(AgentdGrade(grade, expect), Transcript(answer=answer), Evidence())
    return {name: wrong is None for name, wrong in found}


def test_answers() -> None:
    assert said({"contains": "Done", "exact": "Done.", "regex": "^Done"}, " Done.\n") == {
        "contains": True,
        "exact": True,
        "regex": False,
    }
    assert said({"contains": "x"}, None) == {"contains": False}
    assert said({}, "x", completed=True) == {"completed": True}
    assert said({}, "x", completed=False) == {}
    assert said({}, "x", tool_call="f") == {"tool_call": False}


def seen(**files: bytes) -> Evidence:
    found = {path: FileSeen("file", blob(data)) for path, data in files.items()}
    return Evidence(seen=Seen(work=WorkSeen("local", found, CommandSeen(exit=1))))


@pytest.mark.parametrize(
    ("spec", "data", "fits"),
    [
        ({}, b"", True),
        ({}, None, False),
        ({"contains": ""}, None, False),
        ({"contains": "a\nb"}, b"a\r\nb", True),
        ({"contains": "A"}, b"a", False),
        ({"exact": "a"}, b"\n a \n", True),
        # what is expected is not stripped
        ({"exact": "a\n"}, b"a\n", False),
        ({"contains": "a", "exact": "a"}, b"ab", False),
        ({"contains": "z"}, b"a" * KEPT + b"z", False),
        ({"exact": "a" * KEPT}, b"a" * KEPT + b"\n" * 2, False),
    ],
)
def test_files(spec: dict[str, str], data: bytes | None, fits: bool) -> None:
    evidence = seen() if data is None else seen(f=data)
    ((name, wrong),) = wrongs(AgentdGrade({"files": {"f": spec}}), Transcript(), evidence)
    assert (name, wrong is None) == ("files", fits)


def test_commands() -> None:
    asked = [AgentdGrade({"command": {"run": "x", **more}}) for more in ({}, {"expect_exit": 1})]
    assert [grade.command.timeout_s for grade in asked if grade.command is not None] == [120, 120]
    said = [list(wrongs(grade, Transcript(), seen())) for grade in asked]
    assert said == [[("command", "x: exit 1; expected exit 0")], [("command", None)]]
    assert list(wrongs(asked[0], Transcript(), Evidence())) == [
        ("command", "nothing could be seen of a work folder")
    ]


TOOL = {"type": "object", "properties": {"order_id": {"type": "string"}}, "required": ["order_id"]}
TASK: dict[str, Any] = {
    "id": "t",
    "instruction": "Cancel A1",
    "tool_server": {
        "state": {"done": {"by": "{me}"}, "log": [], "a.b": 1},
        "tools": [
            {"name": "cancel", "inputSchema": TOOL, "effect": {"set": "done.id", "value_arg": "order_id"}},
            {"name": "note", "inputSchema": TOOL, "effect": {"append": "log"}, "result": "noted {x}"},
            {"name": "who", "effect": {"return": "done.by"}},
        ],
    },
    "grade": {
        "state": {"done": {"id": "A1"}, "log": [{"order_id": "A1"}]},
        "state_absent": ["gone", "log.0"],
    },
}


def written(folder: Path, *tasks: dict[str, Any]) -> Path:
    lines = ["// a comment", "", *(json.dumps(task) for task in tasks)]
    file = folder / "tasks.jsonl"
    file.write_text("\n".join(lines), encoding="utf-8")
    return file


def acts(task: Task, tools: Any, ctx: Any) -> Transcript:
    """Cancels, notes, asks."""
    assert tools.call("cancel", {"order_id": "A1"}).value == {
        "ok": True,
        "tool": "cancel",
        "arguments": {"order_id": "A1"},
    }
    assert tools.call("note", {"order_id": "A1"}).value == "noted {x}"
    assert tools.call("who").value == "{me}"
    return Transcript()


def test_a_tool_server_becomes_a_world(tmp_path: Path) -> None:
    run = evaluate(load_cases(written(tmp_path, TASK)), acts, save_run=False)
    (row,) = run.product
    assert row.verdict.outcome == "solved"
    names = ["agentd.state", "agentd.state_absent", "hallucination"]
    assert [check.name for check in row.verdict.checks] == names
    assert [check.passed for check in regrade(row).checks] == [True, True, True]
    idle = evaluate(load_cases(written(tmp_path, TASK)), "refuse_all", save_run=False).product[0].verdict
    assert idle.checks[0].detail == 'done.id: expected "A1", got nothing'


@pytest.mark.parametrize(
    ("effect", "said"),
    [
        ({"set": "far.away"}, "set 'far.away': the way there is not in the state at first"),
        ({"append": "done"}, "append 'done': there is no list in the state at first"),
        ({"return": "far"}, "returns 'far', which is not in the state at first"),
    ],
)
def test_what_does_not_translate_is_said(tmp_path: Path, effect: dict[str, Any], said: str) -> None:
    server = {"state": TASK["tool_server"]["state"], "tools": [{"name": "f", "effect": effect}]}
    with pytest.raises(ProblemsError) as raised:
        load_cases(written(tmp_path, {**TASK, "tool_server": server}))
    assert str(raised.value.problems[0]).endswith(f"tasks.jsonl:3: t: f: {said}")


def test_naive_spots_are_faults(tmp_path: Path) -> None:
    tasks = [
        {"id": "a", "instruction": "x"},
        {"id": "a", "instruction": "x", "grade": {"tool_calls": {"all": []}}},
        {"id": "b", "instruction": "x", "grade": {"contain": "x", "state": {"a": 1}}, "mock_llms": "final"},
        {"id": "c", "instruction": "x", "grade": {"contains": "x"}, "user_simulator": {}},
    ]
    lines = read_tasks(written(tmp_path, *tasks))
    assert [str(problem) for problem in naive_spots(lines, "f")] == [
        "f:3: a: grade: nothing is judged, so everything passes",
        "f:4: a: id 'a' is already on line 3",
        "f:4: a: grade.tool_calls: all of no call passes whatever is called",
        "f:5: b: unknown key 'mock_llms' (did you mean 'mock_llm'?)",
        "f:5: b: grade: unknown key 'contain'",
        "f:6: c: grade: nothing is judged, so everything passes",
        "f:6: c: grade: contains is not looked at in a conversation",
    ]


def test_a_line_that_is_no_task_is_told(tmp_path: Path) -> None:
    with pytest.raises(ProblemsError, match=r"tasks\.jsonl:3: .*id"):
        read_tasks(written(tmp_path, {"instruction": "x"}))


SHELL: dict[str, Any] = {"name": "run", "builtin": "bash"}
FOLDER: dict[str, Any] = {
    "id": "w",
    "instruction": "Mend m.py. Don't change the check script `check.py`, and do not edit more than m.py.",
    "tool_server": {
        "files": {"m.py": "x = 1\n", "check.py": "import m; assert m.x == 2\n"},
        "tools": [SHELL],
    },
    "grade": {"command": {"run": "python3 check.py"}},
}


def folder_of(path: Path, **keys: Any) -> dict[str, Any]:
    world = load_cases(path, **keys).cases[0].world
    assert isinstance(world, dict)
    return world


def test_what_an_instruction_forbids_to_edit_is_protected(tmp_path: Path) -> None:
    assert folder_of(written(tmp_path, FOLDER))["protected"] == ["check.py"]
    silent = written(tmp_path, {**FOLDER, "instruction": "Mend m.py, edit check.py."})
    assert folder_of(silent)["protected"] == []
    assert folder_of(silent, protected=["check.py", "other.py"])["protected"] == ["check.py"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"grade": {"state": {}}}, "grade.state: its tools act on a work folder, which has no state"),
        ({"mock_mcp": {}}, "has a resource server beside a work folder, and a case has one world"),
        (
            {"tool_server": {"tools": [SHELL, {"name": "f"}]}},
            "f: is no built-in tool, and those beside it act on a work folder",
        ),
        ({"tool_server": {"tools": [{"name": "f"}]}}, "grade.command needs a work folder: give files, or a built-in tool"),
        ({"user_simulator": {}}, "run: a built-in tool has no work folder in a conversation"),
        ({"tool_server": {"tools": [{**SHELL, "builtin": "bsh"}]}}, "run: no built-in tool 'bsh' (did you mean 'bash'?)"),
        ({"tool_server": {"files": {"../m.py": ""}, "tools": []}}, "files: '../m.py' leads out with '..'"),
        ({"grade": {"files": {"/etc/passwd": {}}}}, "grade.files: '/etc/passwd' must be relative to the work folder"),
        ({"grade": {"files": {"m.py": []}}}, "grade.files: m.py: must be an object"),
        ({"grade": {"command": {"run": "x", "expect_exit": "0"}}}, "grade.command: expect_exit: must be a whole number"),
        ({"grade": {"regex": "("}}, "grade.regex: missing ), unterminated subpattern at position 0"),
        ({"grade": {"tool_calls": [{"args": {}}]}}, "grade.tool_calls: [0]: must be an object with a name"),
        ({"tool_server": {"tools": [{"name": "f", "effect": 7}]}}, "f: effect must be an object"),
        ({"tool_server": {"tools": [{"name": "f", "inputSchema": 7}]}}, "f: inputSchema must be an object"),
    ],
)  # fmt: skip
def test_what_has_no_folder_or_no_shape_is_said(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    with pytest.raises(ProblemsError) as raised:
        load_cases(written(tmp_path, {**FOLDER, **change}), users=True)
    assert [str(problem) for problem in raised.value.problems] == [f"{tmp_path}/tasks.jsonl:3: w: {said}"]


def test_an_id_that_is_given_twice_is_said(tmp_path: Path) -> None:
    with pytest.raises(ProblemsError, match=r"tasks\.jsonl:4: t: is on line 3 already"):
        load_cases(written(tmp_path, TASK, TASK))


def test_tools_of_a_folder_keep_the_names_and_arguments_of_the_task(tmp_path: Path) -> None:
    """At the level that needs nothing: the commands are ours."""

    def tool(name: str, builtin: str, *keys: str) -> dict[str, Any]:
        schema = {"type": "object", "properties": {key: {} for key in keys}, "required": []}
        return {"name": name, "builtin": builtin, "description": f"the {name}", "inputSchema": schema}

    tools = [
        tool("sh", "bash", "cmd"),
        tool("put", "write_file", "path", "content"),
        tool("see", "read_file", "path"),
    ]
    suite = load_cases(written(tmp_path, {**FOLDER, "tool_server": {"files": {}, "tools": [*tools, SHELL]}}))
    box = Toolbox(Worlds(suite, sandbox=Level("local")).of(suite.cases[0]).fork(), suite.cases[0].task.tools)
    try:
        shown = {one.name: (one.description, list(one.input_schema["properties"])) for one in box.tools}
        assert shown["sh"] == ("the sh", ["cmd"])
        assert shown["run"][1] == ["command", "timeout_s"]
        assert box.call("put", {"path": "a.txt", "content": "hello"}).ok
        assert box.call("put", {"path": "empty.txt"}).ok
        assert box.call("sh", {"cmd": "cat a.txt empty.txt"}).text == "hello"
        assert box.call("run", {"command": "ls"}).text == "a.txt\nempty.txt"
        assert box.call("see", {"path": "a.txt"}).value == "hello"
        assert box.call("see", {"path": 7}).text == "path must be text"
        refused = [("see", {"path": 7}), ("see", {}), ("see", {"path": "../x"}), ("sh", {"cmd": ["ls"]})]
        assert [box.call(name, given).status for name, given in refused] == ["tool_error"] * 4
        assert box.call("bash", {"command": "ls"}).status == "undeclared"
        assert box.fault == ""
    finally:
        box.close()
        box.release()


def test_a_call_after_the_end_does_not_count() -> None:
    """The agent has answered; what it calls then was not run, and no published rule takes it for a call."""
    grade = {"tool_calls": {"name": "get", "args": {"id": "W77"}}}
    for before in (True, False):
        box = Toolbox(StateWorld.of(DESK, name="desk"), ["get"])
        for name in ("get", "answer") if before else ("answer", "get"):
            box.call(name, {"id": "W77"} if name == "get" else {"value": "x"})
        seen = Evidence(box.close())
        said = dict(wrongs(AgentdGrade(grade), Transcript(answer="x"), seen))
        assert (said["tool_calls"] is None) is before
