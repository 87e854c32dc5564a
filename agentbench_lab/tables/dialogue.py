"""What was said in a trial, as lines that a person reads: the messages of a dialogue, in the shapes that agents write."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from agentbench_lab.errors import counted
from agentbench_lab.users import User

MESSAGE, MESSAGES = 1500, 6000
"""Signs of one message, and of all that are shown of a trial."""
_POLICIES, _POLICY = ("system", "developer"), 300  # what every trial begins with says nothing of this one

_FIRST = 2  # messages of the beginning


def dialogue(messages: Sequence[Any], *, turns: bool = False) -> list[tuple[str, str]]:
    """Who said what, bounded, and it says so. With `turns` the user's messages are numbered."""
    told = [message(each, number) for number, each in enumerate(messages, 1)]
    return list(_bounded(_numbered(told) if turns else told))


def about_user(user: User) -> Iterator[Sequence[str]]:
    """The scenario of a simulated user, and its lines with what each waits for."""
    if user.scenario:
        yield ["scenario", user.scenario]
    for number, line in enumerate(user.script, start=1):
        if isinstance(line, str):
            yield [f"line {number}", line]
            continue
        when = line.when
        waits = [f"contains {text!r}" for text in when.texts]
        waits += [f"fits {when.regex!r}"] if when.regex is not None else []
        waits += [f"is turn {when.turn}"] if when.turn is not None else []
        yield [f"line {number}", f"{line.say} (when the agent's turn {' and '.join(waits)})"]


def _numbered(told: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    found, turn = [], 0
    for who, text in told:
        turn += who == "user"
        found.append((f"user, turn {turn}" if who == "user" else who, text))
    return found


def _bounded(told: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """How a dialogue began and, with the most of the room, how it ended: there it shows why a trial failed."""
    cut = [(who, _cut(text, _POLICY if who in _POLICIES else MESSAGE)) for who, text in told]
    first, room = 0, MESSAGES
    while first < len(cut) and first < _FIRST:
        room -= len(cut[first][1])
        first += 1
    last = len(cut)
    while last > first and len(cut[last - 1][1]) <= room:
        last -= 1
        room -= len(cut[last][1])
    yield from cut[:first]
    left = last - first
    if left:
        yield (
            "…",
            f"{counted(left, 'more message')} in transcripts.parquet of the run's folder",
        )
    yield from cut[last:]


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def message(one: Any, number: int) -> tuple[str, str]:
    """Who spoke, and what: the text of its parts and the calls it asked for, in the shapes that agents write; else JSON."""
    if not isinstance(one, dict):
        return f"message {number}", one if isinstance(one, str) else _as_json(one)
    content = one.get("content")
    parts = content if isinstance(content, list) else [content]
    found = [text for part in parts if (text := _part(part))]
    calls = one.get("tool_calls")
    found += [text for call in calls if (text := _asked(call))] if isinstance(calls, list) else []
    who = str(one.get("role") or f"message {number}")
    named = one.get("function") if isinstance(one.get("function"), str) else one.get("name")
    if who == "tool" and isinstance(named, str):
        who = f"tool {named}"
    return who, "\n".join(found) or _as_json(one)


def _part(part: Any) -> str:
    """One part of a message's content: text, a thought, a call, what a call gave."""
    if part is None or isinstance(part, str):
        return part or ""
    if isinstance(part, dict):
        if part.get("type") == "tool_use":
            return _asked(part)
        if part.get("type") == "tool_result":
            inner = part.get("content")
            return "\n".join(map(_part, inner if isinstance(inner, list) else [inner]))
        for name in ("text", "reasoning", "thinking"):
            if isinstance(part.get(name), str):
                return str(part[name])
    return _as_json(part)


def _asked(call: Any) -> str:
    """`name {"argument": 1}` of a call that a message asks for."""
    if not isinstance(call, dict):
        return _as_json(call)
    inner = call.get("function")
    told = inner if isinstance(inner, dict) else call
    name = told.get("name") if not isinstance(inner, str) else inner
    if not isinstance(name, str):
        return _as_json(call)
    given = next((told[key] for key in ("arguments", "input", "kwargs") if key in told), None)
    return f"→ {name} {given if isinstance(given, str) else _as_json(given)}"


def _as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


__all__ = ["MESSAGE", "MESSAGES", "dialogue", "message"]
