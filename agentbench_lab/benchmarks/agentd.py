"""agentd's task files, read as they are, and its tasks as cases that are judged in mode `agentd`.

Source: bench/run.py and bench/mcp_stub.py of agentd-dev/source-code at 9ff2f04 (Apache-2.0). Its tool server becomes a
world of state. What that server lets pass stays an error here: an unknown tool, arguments outside the schema. What has
no counterpart is refused by name: work folders, effects on a path whose way is not there yet. A simulated user keeps its
scenario; who plays it is named with the run, and the model that the file names for it is not asked.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from agentbench_lab.benchmarks.reading import read_bytes
from agentbench_lab.cases import Case, Expect, Limits, Suite, Task
from agentbench_lab.errors import LabError, Problem, ProblemsError, did_you_mean
from agentbench_lab.expect import AgentdGrade
from agentbench_lab.paths import ABSENT, join, look
from agentbench_lab.users import User
from agentbench_lab.values import NotJson, digest, plain

_GRADED = "agentd"


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
        words = [word for word in ("set", "append", "return") if word in tool.get("effect", {})]
        if len(words) > 1:
            yield f"{tool.get('name')}: of the effects {', '.join(words)} only the first takes place"
        elif "effect" in tool and "builtin" in tool:
            yield f"{tool.get('name')}: the effect of a built-in tool never takes place"


def _graded(task: AgentdTask) -> AgentdGrade:
    return AgentdGrade(task.grade, task.expect, task.user_simulator is not None)


# ---- cases


def load_cases(path: str | Path, *, users: bool = False) -> Suite:
    """The tasks of a file as a suite in mode `agentd`. With `users` those with a simulated user are conversations, whose
    user is played by the driver that the run names as its `user`.

    Raises ProblemsError with `file:line` of every task that has no counterpart here, so that none is left out silently.
    """
    file = Path(path)
    cases, problems = [], []
    for line in read_tasks(file):
        try:
            cases.append(_case(line, file, users))
        except _Untold as error:
            problems.append(Problem(str(file), line.number, f"{line.task.id}: {error}"))
    if problems:
        raise ProblemsError(problems)
    return Suite(file.stem, tuple(cases), hashlib.sha256(read_bytes(file)).hexdigest(), file)


class _Untold(ValueError):
    """What a world of state has no words for."""


def _case(line: Line, file: Path, users: bool) -> Case:
    task = line.task
    if task.user_simulator is not None and not users:
        raise _Untold(
            "has a simulated user, whom somebody has to play (users=True, and a run that names its user)"
        )
    server = task.tool_server
    for key in ("files", "command"):
        if key in task.grade:
            raise _Untold(f"grade.{key} needs a work folder, and there is no world with one")
    if server is not None and (server.files is not None or any("builtin" in tool for tool in server.tools)):
        raise _Untold("its tools act on a work folder, and there is no world with one")
    if task.mcp:
        raise _Untold(f"needs the MCP server {task.mcp[0]}, which a case cannot name")
    state: dict[str, Any] = (server.state if server is not None else None) or {}
    tools = [_tool(tool, state) for tool in server.tools] if server is not None else []
    if task.mock_mcp is not None:
        tools.append(_resource(task.mock_mcp))
    # a task without tools still acts on a world; nobody is shown the tool in it
    world = {"kind": "state", "state": state, "tools": tools or [{"name": "nothing"}]}
    steps, tokens = (_whole(value) for value in (task.max_steps, task.max_tokens))
    limits = Limits(steps=steps, tokens=tokens) if task.user_simulator is None else Limits()
    return Case(
        task.id,
        _GRADED,
        Task(task.instruction, tuple(tool["name"] for tool in tools), limits=limits, policy=task.policy),
        Expect(agentd=_graded(task)),
        world,
        file.stem,
        digest=digest(line.raw),
        file=str(file),
        line=line.number,
        taxonomy="outcome-graded",
        user=None if task.user_simulator is None else User(task.user_simulator.scenario),
        max_turns=task.max_turns,
    )


def _whole(value: Any) -> int | None:
    """A budget, which may be written as a number or as text."""
    return int(value) if str(value).isdecimal() else None


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
    name = tool.get("name")
    if not isinstance(name, str):
        raise _Untold("a tool has no name")
    schema = tool.get("inputSchema", {"type": "object"})
    properties = schema.get("properties", {})
    required = [key for key in schema.get("required", ()) if key in properties]
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
    word = next((word for word in ("set", "append", "return") if word in effect), None)
    if word is None:
        return []
    keys = tuple(str(effect[word]).split("."))
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
