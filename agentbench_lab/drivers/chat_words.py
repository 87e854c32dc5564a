"""What a model is told and how its answer is read: the prompts, the tools in the API's shape, and both kinds of calls."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from agentbench_lab.cases import Task
from agentbench_lab.worlds.toolbox import Tool

_SYSTEM = """\
You carry out a task with tools. Call the tools that the task needs and read what each of them gives back before you go on. \
Use only the tools that are offered, with arguments that follow from the task or from what a tool gave back; invent none.

The task is ended by a tool: `answer` with what was asked for (names as a list) and a status, success or failure; `refuse` when no tool that \
is offered fits, or when what is asked for cannot be found; `goal` when the task is to name the goal that observed calls \
serve. Words without a call end your turn, and are no answer to a task."""
_SCHEMA = """\
You call one tool at a time, by writing one JSON object and nothing else: {"tool": NAME, "input": ARGUMENTS}. What the tool \
gave back comes as the next message. The tools, each with the JSON Schema of its arguments:"""
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
_FENCE = re.compile(r"\A```[a-z]*\s*(.*?)\s*```\Z", re.DOTALL)
_TOOL = re.compile(r'"tool"\s*:\s*("(?:[^"\\]|\\.)*")')


class Asked(Struct, frozen=True):
    """One call as a model asked for it. `wrong` says why its arguments are none; `input` is then the text as it came."""

    id: str
    name: str
    input: Any
    wrong: str = ""


def opening(task: Task, tools: Sequence[Tool], *, schema: bool) -> list[dict[str, Any]]:
    """The dialogue as it begins: the system's words, what was said before, and the request.

    Without tools the policy stands alone: it says what part is played (see the simulated users of `conversation`).
    """
    system = [_SYSTEM] if tools else []
    if task.policy:
        system.append(f"The policy that you keep:\n\n{task.policy}" if tools else task.policy)
    if schema and tools:
        lines = [f"- {tool.name}: {tool.description}\n  {_json(tool.input_schema)}" for tool in tools]
        system.append("\n".join([_SCHEMA, *lines]))
    request = task.request
    if task.trace:
        seen = [f"- {call.name} {_json(call.input)}" for call in task.trace]
        goals = [f"- {goal.id}: {', '.join(goal.plan)}" for goal in task.goals]
        request = "\n".join([request, "", "Observed calls:", *seen, "", "Goals, each with its plan:", *goals])
    return [
        *([{"role": "system", "content": "\n\n".join(system)}] if system else []),
        *({"role": said.role, "content": said.text} for said in task.history),
        {"role": "user", "content": request},
    ]


def api_names(tools: Sequence[Tool]) -> dict[str, str]:
    """The names under which an API is offered the tools: letters, digits, `_` and `-`, at most 64; to their own names."""
    names = {tool.name: tool.name for tool in tools if _NAME.match(tool.name)}
    for tool in tools:
        if tool.name not in names:
            base = re.sub(r"[^A-Za-z0-9_-]", "_", tool.name)[:60] or "tool"
            name, number = base, 2
            while name in names:
                name, number = f"{base}_{number}", number + 1
            names[name] = tool.name
    return names


def offered(tools: Sequence[Tool], names: Mapping[str, str]) -> list[dict[str, Any]]:
    """The tools in the API's shape."""
    by_own = {own: name for name, own in names.items()}
    return [
        {
            "type": "function",
            "function": {
                "name": by_own[tool.name],
                "description": tool.description[:1024],
                "parameters": tool.input_schema,
            },
        }
        for tool in tools
    ]


def one_call(tools: Sequence[Tool]) -> dict[str, Any]:
    """The JSON Schema of one call of one of the tools."""
    return {
        "type": "object",
        "anyOf": [
            {
                "type": "object",
                "properties": {"tool": {"const": tool.name}, "input": _shape(tool.input_schema)},
                "required": ["tool", "input"],
                "additionalProperties": False,
            }
            for tool in tools
        ],
    }


def _shape(schema: dict[str, Any]) -> dict[str, Any]:
    """A tool's schema without its rules on which arguments go together (`anyOf` of nothing but `required`).

    An endpoint whose grammar does not know such a rule drops the whole schema and says nothing. The toolbox keeps it.
    """
    return {
        name: value
        for name, value in schema.items()
        if not (name in ("anyOf", "oneOf", "allOf") and all(set(one) <= {"required"} for one in value))
    }


def words(message: Mapping[str, Any]) -> str:
    """What a message says in words."""
    content = message.get("content")
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        content = "".join(part for part in parts if isinstance(part, str))
    said = content if isinstance(content, str) and content else message.get("refusal")
    return said if isinstance(said, str) else ""


def native_calls(message: Mapping[str, Any], names: Mapping[str, str]) -> list[Asked]:
    """The calls of a message in the API's own shape, in order."""
    listed = message.get("tool_calls")
    found = []
    for number, call in enumerate(listed if isinstance(listed, list) else (), start=1):
        call = call if isinstance(call, dict) else {}
        function = call.get("function")
        function = function if isinstance(function, dict) else {}
        name, given = function.get("name"), function.get("arguments")
        name = names.get(name, name) if isinstance(name, str) else ""
        id = call.get("id")
        found.append(_asked(id if isinstance(id, str) and id else f"call_{number}", name, given))
    return found


def _asked(id: str, name: str, given: Any) -> Asked:
    if isinstance(given, dict):
        return Asked(id, name, given)
    if not isinstance(given, str):
        return Asked(id, name, _json(given), "the arguments are no JSON object")
    try:
        value = msgspec.json.decode(given)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        return Asked(id, name, given, f"the arguments are no JSON: {error}")
    if not isinstance(value, dict):
        return Asked(id, name, given, "the arguments are no JSON object")
    return Asked(id, name, value)


def schema_call(text: str) -> Asked | str | None:
    """The call that a text is; what is wrong with a JSON object that is none; None for plain words."""
    fenced = _FENCE.match(text.strip())
    text = fenced[1] if fenced else text.strip()
    if not text.startswith("{"):
        return None
    try:
        value = msgspec.json.decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        found = _TOOL.search(text)
        if found is None:
            return None
        try:
            name = msgspec.json.decode(found[1])
        except (msgspec.MsgspecError, ValueError):
            return None
        return Asked("", name, text, f"that is no JSON: {error}")
    name = value.get("tool")
    if not isinstance(name, str) or not name:
        return 'the object names no "tool"; it is {"tool": NAME, "input": ARGUMENTS}'
    if not isinstance(value.get("input"), dict):
        return Asked("", name, text, '"input" is no JSON object')
    return Asked("", name, value["input"])


def echoed(message: Mapping[str, Any], calls: Sequence[Asked]) -> dict[str, Any]:
    """The model's message as it goes back into the dialogue.

    Many servers read the arguments again, and fail on those that are no JSON: these go back as text within an object.
    """
    back: dict[str, Any] = {"role": "assistant", "content": message.get("content")}
    if calls:
        back["tool_calls"] = [
            {**_object(given), "id": call.id, "type": "function", "function": _function(given, call)}
            for given, call in zip(message["tool_calls"], calls, strict=True)
        ]
    return back


def _function(given: Any, call: Asked) -> dict[str, Any]:
    function = _object(_object(given).get("function"))
    name = function.get("name")
    arguments = {"malformed": call.input} if call.wrong else call.input
    return {"name": name if isinstance(name, str) else "", "arguments": _json(arguments)}


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
