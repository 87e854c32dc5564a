"""agentd's task files, read as they are, and its tasks as cases that are judged in mode `agentd`.

Source: bench/run.py and bench/mcp_stub.py of agentd-dev/source-code at 9ff2f04 (Apache-2.0). Its tool server becomes a
world of state, or a work folder where it has files or built-in tools. What that server lets pass stays an error here: an
unknown tool, arguments outside the schema, a way out of the folder. What has no counterpart is refused by name: effects
on a path whose way is not there yet, built-in tools beside others.

There an agent can edit the check script that judges it. Here a seeded file that the instruction forbids to edit is
protected: the command of the grade finds it as the task has it. The task files have no word of their own for that, so
that a script which the instruction does not name stays as open as it is there; `load_cases(protected=...)` names more.

A simulated user keeps its scenario; who plays it is named with the run, and the model that the file names for it is not
asked.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from agentbench_lab.benchmarks.reading import read_bytes
from agentbench_lab.cases import Case, Expect, Limits, Suite, Task
from agentbench_lab.errors import LabError, Problem, ProblemsError, did_you_mean
from agentbench_lab.expect import NOTHING_JUDGED, AgentdGrade
from agentbench_lab.paths import ABSENT, join, look
from agentbench_lab.users import User
from agentbench_lab.values import NotJson, digest, plain
from agentbench_lab.worlds.sandbox import BadSandbox, Sandbox
from agentbench_lab.worlds.statestore import BadWorld, StateWorld

_GRADED = "agentd"
_BASH_S = 120
"""Seconds for which a call of the built-in shell may run."""
_EFFECTS = ("set", "append", "return")
_BUILTINS = ("bash", "read_file", "write_file")
_FORBIDS = re.compile(
    r"\b(?:not|don't|never|without)\s+(?:edit|chang|modif|touch|alter|overwrit)\w*\s+"
    r"(?:the\s+)?(?:check\s+)?(?:script\s+|file\s+)?[`'\"]?(\S+)",
    re.IGNORECASE,
)
"""The words that forbid to edit a file, and the word that names it."""


class Simulator(Struct, frozen=True):
    """The simulated user of a conversation."""

    scenario: str = ""
    mock_llm: str | None = None
    intelligence: str | None = None
    model: str | None = None


class ToolServer(Struct, frozen=True):
    """The tools of a task; `state` or `files` where they act on something."""

    tools: tuple[dict[str, Any], ...]
    name: str = "bench"
    state: dict[str, Any] | None = None
    files: dict[str, str] | None = None


class AgentdTask(Struct, frozen=True):
    """One line of a task file, every field of it; what a field means is told in agentd's own documents."""

    id: str
    instruction: str = ""
    mode: str = "once"
    workflow: dict[str, Any] | None = None
    mock_llm: str | None = None
    mock_mcp: dict[str, Any] | None = None
    intelligence: str | None = None
    model: str | None = None
    mcp: tuple[str, ...] = ()
    tool_server: ToolServer | None = None
    user_simulator: Simulator | None = None
    policy: str = ""
    max_turns: int = 4
    max_tokens: Any = None
    max_steps: Any = None
    deadline: Any = None
    grade: dict[str, Any] = {}
    expect: dict[str, Any] = {}


class Line(Struct, frozen=True):
    """A task, the line of the file it stands on, and the object as it stands there."""

    number: int
    task: AgentdTask
    raw: dict[str, Any]


def read_tasks(path: str | Path) -> tuple[Line, ...]:
    """The tasks of a file: JSON Lines, where blank lines and lines that begin with `//` are skipped but counted.

    Unknown fields are kept in `raw`, as agentd ignores them. Raises ProblemsError with `file:line` of each line that is
    no task.
    """
    file = Path(path)
    found, problems = [], []
    for number, text in enumerate(read_bytes(file).removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        text = text.strip()
        if not text or text.startswith(b"//"):
            continue
        try:
            raw = plain(msgspec.json.decode(text))
            found.append(Line(number, msgspec.convert(raw, AgentdTask), raw))
        except (msgspec.DecodeError, NotJson, RecursionError) as error:
            problems.append(Problem(str(file), number, str(error)))
    if problems:
        raise ProblemsError(problems)
    if not found:
        raise LabError(f"{file}: no tasks")
    return tuple(found)


def naive_spots(lines: Sequence[Line], file: str) -> list[Problem]:
    """Where agentd passes or skips without a word: no grade, `all: []`, an id given twice, fields that mean nothing."""
    said: list[Problem] = []
    first: dict[str, int] = {}
    for line in lines:
        for fault in _faults(line, first):
            said.append(Problem(file, line.number, f"{line.task.id}: {fault}"))
        first.setdefault(line.task.id, line.number)
    return said


def _faults(line: Line, first: dict[str, int]) -> Iterator[str]:
    task, known = line.task, AgentdTask.__struct_fields__
    if task.id in first:
        yield f"id {task.id!r} is already on line {first[task.id]}"
    for key in line.raw:
        if key not in known:
            yield f"unknown key {key!r}{did_you_mean(key, known)}"
    if not task.instruction and task.workflow is None:
        yield "needs an instruction"
    yield from _graded(task).faults()
    for tool in task.tool_server.tools if task.tool_server else ():
        wrong = _misshapen(tool)
        if wrong is not None:
            yield wrong
            continue
        words = [word for word in _EFFECTS if word in (tool.get("effect") or {})]
        if len(words) > 1:
            yield f"{tool['name']}: of the effects {', '.join(words)} only the first takes place"
        elif tool.get("effect") and tool.get("builtin"):
            yield f"{tool['name']}: the effect of a built-in tool never takes place"


def _graded(task: AgentdTask) -> AgentdGrade:
    return AgentdGrade(task.grade, task.expect, task.user_simulator is not None)


# ---- cases


def load_cases(path: str | Path, *, users: bool = False, protected: Sequence[str] = ()) -> Suite:
    """The tasks of a file as a suite in mode `agentd`. With `users` those with a simulated user are conversations, whose
    user is played by the driver that the run names as its `user`.

    `protected` names seeded files that the command of a grade is to find as they were, beside those that a task's own
    instruction forbids to edit. Raises ProblemsError with `file:line` of every task that has no counterpart here, so
    that none is left out silently.
    """
    file = Path(path)
    cases, problems = [], []
    first: dict[str, int] = {}
    for line in read_tasks(file):
        try:
            if line.task.id in first:
                raise _Untold(f"is on line {first[line.task.id]} already")
            first[line.task.id] = line.number
            cases.append(_case(line, file, users, protected))
        except _Untold as error:
            problems.append(Problem(str(file), line.number, f"{line.task.id}: {error}"))
    if problems:
        raise ProblemsError(problems)
    return Suite(file.stem, tuple(cases), hashlib.sha256(read_bytes(file)).hexdigest(), file)


class _Untold(ValueError):
    """What the worlds here have no words for."""


def _case(line: Line, file: Path, users: bool, protected: Sequence[str]) -> Case:
    task = line.task
    if task.user_simulator is not None and not users:
        raise _Untold(
            "has a simulated user, whom somebody has to play (users=True, and a run that names its user)"
        )
    if task.mcp:
        raise _Untold(f"needs the MCP server {task.mcp[0]}, which a case cannot name")
    grade = _graded(task)
    for wrong in grade.misshapen():
        raise _Untold(wrong)
    server = task.tool_server
    declared = server.tools if server is not None else ()
    for tool in declared:
        misshapen = _misshapen(tool)
        if misshapen is not None:
            raise _Untold(misshapen)
    if _in_folder(task):
        names, world = _folder(task, declared, protected)
    else:
        names, world = _state(task, declared)
    if NOTHING_JUDGED in grade.faults():
        raise _Untold(NOTHING_JUDGED)
    steps, tokens = (_whole(value) for value in (task.max_steps, task.max_tokens))
    limits = Limits(steps=steps, tokens=tokens) if task.user_simulator is None else Limits()
    return Case(
        task.id,
        _GRADED,
        Task(task.instruction, names, limits=limits, policy=task.policy),
        Expect(agentd=grade),
        world,
        file.stem,
        digest=digest(line.raw),
        file=str(file),
        line=line.number,
        taxonomy="outcome-graded",
        user=None if task.user_simulator is None else User(task.user_simulator.scenario),
        max_turns=task.max_turns,
    )


def _in_folder(task: AgentdTask) -> bool:
    """Whether the tools act on a work folder; in a conversation there is none, whatever is declared."""
    server = task.tool_server
    if server is None or task.user_simulator is not None:
        return False
    return server.files is not None or any(tool.get("builtin") for tool in server.tools)


def _misshapen(tool: dict[str, Any]) -> str | None:
    """What has not the shape of a tool, or None."""
    name = tool.get("name")
    if not isinstance(name, str):
        return "a tool has no name"
    schema = tool.get("inputSchema", {})
    if not isinstance(schema, dict):
        return f"{name}: inputSchema must be an object"
    if not isinstance(schema.get("properties", {}), dict) or not isinstance(schema.get("required", []), list):
        return f"{name}: inputSchema: properties must be an object, required a list"
    effect = tool.get("effect") or {}
    if not isinstance(effect, dict):
        return f"{name}: effect must be an object"
    for word in (*_EFFECTS, "value_arg"):
        if not isinstance(effect.get(word, ""), str):
            return f"{name}: effect: {word} must be text"
    builtin = tool.get("builtin")
    if builtin and builtin not in _BUILTINS:
        return f"{name}: no built-in tool {builtin!r}{did_you_mean(str(builtin), _BUILTINS)}"
    return None


# ---- a work folder


def _folder(
    task: AgentdTask, declared: Sequence[dict[str, Any]], protected: Sequence[str]
) -> tuple[tuple[str, ...], dict[str, Any]]:
    """The tools' names and the world of a task whose tools act on a work folder."""
    for key in ("state", "state_absent"):
        if key in task.grade:
            raise _Untold(f"grade.{key}: its tools act on a work folder, which has no state")
    if task.mock_mcp is not None:
        raise _Untold("has a resource server beside a work folder, and a case has one world")
    for tool in declared:
        if not tool.get("builtin"):
            raise _Untold(f"{tool['name']}: is no built-in tool, and those beside it act on a work folder")
    files = (task.tool_server.files if task.tool_server is not None else None) or {}
    named = {found.rstrip(".,;:!?`'\")") for found in _FORBIDS.findall(task.instruction)}
    # a task without tools still has its folder; nobody is shown the tool in it
    tools: list[Any] = [_builtin(tool) for tool in declared] or ["bash"]
    world: dict[str, Any] = {
        "kind": "sandbox",
        "files": files,
        "protected": [path for path in files if path in named or path in protected],
        "tools": tools,
        "limits": {"wall_s": _BASH_S},
    }
    try:
        Sandbox.of(world, name=task.id)
    except BadSandbox as error:
        raise _Untold(error.problems[0]) from None
    return tuple(tool["name"] for tool in declared), world


def _builtin(tool: dict[str, Any]) -> dict[str, Any]:
    """A built-in tool under the name and the schema that the task gives it."""
    made = {"name": tool["name"], "builtin": tool["builtin"], "description": tool.get("description", "")}
    schema = tool.get("inputSchema", {})
    # one that declares no argument is called with those that it has all the same
    return made | {"input_schema": {**schema, "type": "object"}} if schema.get("properties") else made


# ---- a state


def _state(task: AgentdTask, declared: Sequence[dict[str, Any]]) -> tuple[tuple[str, ...], dict[str, Any]]:
    """The tools' names and the world of a task whose tools act on a state, or on nothing."""
    for tool in declared:
        if tool.get("builtin"):
            raise _Untold(f"{tool['name']}: a built-in tool has no work folder in a conversation")
    if task.user_simulator is None:
        for key in ("files", "command"):
            if key in task.grade:
                raise _Untold(f"grade.{key} needs a work folder: give files, or a built-in tool")
    state: dict[str, Any] = (task.tool_server.state if task.tool_server is not None else None) or {}
    tools = [_tool(tool, state) for tool in declared]
    if task.mock_mcp is not None:
        tools.append(_resource(task.mock_mcp))
    # a task without tools still acts on a world; nobody is shown the tool in it
    world = {"kind": "state", "state": state, "tools": tools or [{"name": "nothing"}]}
    try:
        StateWorld.of(world, name=task.id)
    except BadWorld as error:
        raise _Untold(error.problems[0]) from None
    return tuple(tool["name"] for tool in tools), world


def _whole(value: Any) -> int | None:
    """A budget, which may be written as a number or as text."""
    text = str(value)
    return int(text) if text.isdecimal() and len(text) < 19 else None


def _resource(mock: dict[str, Any]) -> dict[str, Any]:
    """The one tool that the built-in server for resources is used through."""
    schema = {"type": "object", "properties": {"uri": {"type": "string"}}, "required": ["uri"]}
    return {
        "name": "resource.read",
        "description": f"Read a resource of the server {mock.get('name', 'mock')}.",
        "input_schema": schema,
        "result": {"uri": "{uri}", "text": "{{}}"},
    }


def _tool(tool: dict[str, Any], state: dict[str, Any]) -> dict[str, Any]:
    """A tool of the bridge as one of a world of state."""
    name = tool["name"]
    schema = tool.get("inputSchema", {"type": "object"})
    properties = schema.get("properties", {})
    required = [key for key in schema.get("required", ()) if isinstance(key, str) and key in properties]
    made: dict[str, Any] = {
        "name": name,
        "description": tool.get("description", ""),
        "input_schema": {**schema, "type": "object"},
    }
    effects = _effects(name, tool.get("effect") or {}, properties, required, state)
    if effects:
        made["effects"] = effects
    if any("return" in effect for effect in effects):
        return made
    if tool.get("result") is not None:
        made["result"] = _literal(tool["result"])
    else:
        arguments = {key: f"{{{key}}}" for key in required}
        made["result"] = {"ok": True, "tool": _literal(name), "arguments": arguments}
    return made


def _effects(
    name: str, effect: dict[str, Any], properties: dict[str, Any], required: list[str], state: dict[str, Any]
) -> list[dict[str, Any]]:
    word = next((word for word in _EFFECTS if word in effect), None)
    if word is None:
        return []
    keys = tuple(effect[word].split("."))
    path = _literal(join(keys))
    if word == "return":
        if look(state, keys) in (ABSENT, None):
            raise _Untold(f"{name}: returns {effect[word]!r}, which is not in the state at first")
        return [{"return": path}]
    holder = look(state, keys[:-1])
    if not isinstance(holder, dict):
        raise _Untold(f"{name}: {word} {effect[word]!r}: the way there is not in the state at first")
    if word == "append" and not isinstance(look(state, keys), list):
        raise _Untold(f"{name}: append {effect[word]!r}: there is no list in the state at first")
    key = effect.get("value_arg")
    if key is None:
        if set(required) != set(properties):
            raise _Untold(f"{name}: {word} takes all arguments, some of which may be left out")
        return [{word: path, "value": {each: f"{{{each}}}" for each in required}}]
    if key not in properties:
        return [{word: path, "value": None}]
    if key not in required:
        # an argument that is left out writes null
        if word == "append":
            raise _Untold(f"{name}: append takes {key!r}, which may be left out")
        return [
            {"set": path, "value": None},
            {"set": path, "value": f"{{{key}}}", "if_given": key},
        ]
    return [{word: path, "value": f"{{{key}}}"}]


def _literal(value: Any) -> Any:
    """A value in which braces mean themselves."""
    if isinstance(value, str):
        return value.replace("{", "{{").replace("}", "}}")
    if isinstance(value, list):
        return [_literal(each) for each in value]
    if isinstance(value, dict):
        return {key: _literal(each) for key, each in value.items()}
    return value


__all__ = ["AgentdTask", "Line", "load_cases", "naive_spots", "read_tasks"]
