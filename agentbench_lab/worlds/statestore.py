"""A world that is a JSON state, with tools whose effects on it are declared in data.

A trial gets a fork, which shares everything with the world it comes from until it changes something: then the values
along the changed path are copied, and nothing else. The paths that calls have touched are all that can differ.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec

from agentbench_lab.cases import Expect, Goal
from agentbench_lab.errors import Problem, ProblemsError, did_you_mean
from agentbench_lab.expect import BadForm, part_of
from agentbench_lab.paths import ABSENT, BadPath, Change, Path, difference, join, look, split
from agentbench_lab.values import NotJson, digest, plain
from agentbench_lab.worlds.capabilities import Registry
from agentbench_lab.worlds.effects import Failed
from agentbench_lab.worlds.seen import Seen, StateSeen
from agentbench_lab.worlds.statetools import StateTool, read_tools
from agentbench_lab.worlds.templates import as_text
from agentbench_lab.worlds.toolbox import CONTROL_TOOLS, Ran

_KEYS = ("kind", "state", "tools", "description")
KEPT = 20_000
"""Characters of JSON up to which the ledger keeps what a call gave back; an agent is given all of it."""
_CONTROLS = frozenset(tool.name for tool in CONTROL_TOOLS)


class BadWorld(ValueError):
    """What is wrong with a world's declaration, one text each."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(problems))


class StateWorld:
    """A JSON state and its tools. `fork` costs the same however large the state is."""

    kind = "state"
    labels: frozenset[str] = frozenset()

    __slots__ = ("_changed", "_declared", "_first", "_state", "_tools", "digest", "name", "registry")

    def __init__(self, name: str, state: dict[str, Any], tools: list[dict[str, Any]]) -> None:
        """Raises BadWorld with everything that is wrong with the tools or the state."""
        self.name = name
        # a private copy: forks share it, and nobody may change it under them
        state, self._tools, self.registry = _checked(state, tools)
        self._declared = {"kind": "state", "state": state, "tools": tools}
        self.digest = digest(self._declared)
        self._first = self._state = state
        self._changed: tuple[Path, ...] = ()

    @property
    def declared(self) -> dict[str, Any]:
        """What it was made of; nobody changes it."""
        return self._declared

    @classmethod
    def of(cls, declared: dict[str, Any], *, name: str) -> StateWorld:
        """The world of a declaration, `{"kind": "state", "state": …, "tools": […]}`; raises BadWorld."""
        odd = [f"unknown key {key!r}{did_you_mean(key, _KEYS)}" for key in declared if key not in _KEYS]
        odd += [f"missing {key}" for key in ("state", "tools") if key not in declared]
        if odd:
            raise BadWorld(odd)
        return cls(name, declared["state"], declared["tools"])

    @classmethod
    def from_bytes(cls, data: bytes, *, name: str, file: str) -> StateWorld:
        """The world of a file's bytes; raises ProblemsError with `file: place` of each fault."""
        try:
            declared = msgspec.json.decode(data)
            if not isinstance(declared, dict):
                raise BadWorld(["a world must be an object"])
            return cls.of(declared, name=name)
        except msgspec.DecodeError as error:
            texts: Sequence[str] = [f"invalid JSON: {str(error).removeprefix('JSON is malformed: ')}"]
        except RecursionError:
            texts = ["invalid JSON: nested too deeply"]
        except BadWorld as error:
            texts = error.problems
        raise ProblemsError([Problem(file, 0, text) for text in texts])

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self.name, self._declared, self._first, self._state, self._changed)

    def fork(self) -> StateWorld:
        """A world that begins where this one stands, and shares with it all that neither changes."""
        other = object.__new__(StateWorld)
        other.name, other.digest, other.registry = self.name, self.digest, self.registry
        other._declared, other._tools = self._declared, self._tools
        other._first = other._state = self._state
        other._changed = ()
        return other

    def snapshot(self) -> bytes:
        """The state as it stands, and which paths of it have been touched."""
        return json.dumps([self._state, self._changed]).encode()

    def restore(self, snapshot: bytes) -> None:
        """Put a fork of the same world where this snapshot was taken."""
        self._state, changed = json.loads(snapshot)
        self._changed = tuple(tuple(path) for path in changed)

    def run(self, name: str, input: dict[str, Any]) -> Ran:
        """Run one call. A call that fails has changed nothing, whichever of its effects it was that failed."""
        tool = self._tools.get(name)
        if tool is None:
            return Ran(None, "", error=f"no tool is called {name!r}{did_you_mean(name, self._tools)}")
        try:
            after, touched, value = tool.run(self._state, input)
        except Failed as error:
            return Ran(None, "", error=str(error))
        text = as_text(value)
        kept = len(text) <= KEPT
        if not touched:
            return Ran(value, text, empty=value in ([], {}, "", None), kept=kept)
        diff = [msgspec.to_builtins(change) for change in difference(self._state, after, touched)]
        self._state = after
        self._changed = (*self._changed, *touched)
        return Ran(value, text, diff=diff, empty=False, kept=kept)

    def goals(self, declared: Sequence[str]) -> tuple[Goal, ...]:
        return ()

    # ---- what has become of it

    @property
    def state(self) -> Any:
        """A copy of the state as it stands."""
        return plain(self._state)

    def look(self, path: str) -> Any:
        """A copy of what stands at a path, or paths.ABSENT."""
        found = look(self._state, split(path))
        return found if found is ABSENT else plain(found)

    def changes(self) -> list[Change]:
        """What differs from the state that this world began with; empty exactly when it is as it was."""
        return difference(self._first, self._state, self._changed)

    def seen(self, expect: Expect) -> Seen:
        """The values at the expected paths, and all changes."""
        values: dict[str, Any] = {}
        wanted = [*(expect.state or {}).items(), *(expect.state_equals or {}).items()]
        for text, expected in wanted:
            found = _at(self._state, text)
            if found is not ABSENT:
                whole = expect.state_equals is not None and text in expect.state_equals
                values[text] = found if whole else _part(found, expected)
        for text in expect.state_absent:
            found = _at(self._state, text)
            if found is not ABSENT:
                values[text] = found
        for place in expect.agentd.places if expect.agentd is not None else ():
            found = _within(self._state, place)
            if found is not ABSENT:
                values[join(place)] = found
        return Seen(StateSeen(values, tuple(self.changes())))


def _within(value: Any, keys: Path) -> Any:
    """What stands there when only objects are walked, as harnesses do that know no places in lists."""
    for key in keys:
        if type(value) is not dict or key not in value:
            return ABSENT
        value = value[key]
    return value


def _at(state: Any, text: str) -> Any:
    try:
        return look(state, split(text))
    except BadPath:
        return ABSENT


def _part(value: Any, expected: Any) -> Any:
    try:
        return part_of(value, expected)
    except BadForm:
        return value


def _checked(state: Any, tools: Any) -> tuple[dict[str, Any], dict[str, StateTool], Registry]:
    if not isinstance(state, dict):
        raise BadWorld(["state: must be an object"])
    try:
        state = plain(state)
    except NotJson as error:
        raise BadWorld([f"state: {error}"]) from None
    found, problems = read_tools(tools, state, _CONTROLS)
    if not found and not problems:
        problems = ["tools: declares no tool"]
    if problems:
        raise BadWorld(list(dict.fromkeys(problems)))
    return state, found, Registry(tuple(tool.capability for tool in found.values()))


def _again(
    name: str, declared: dict[str, Any], first: Any, state: Any, changed: tuple[Path, ...]
) -> StateWorld:
    world = StateWorld(name, declared["state"], declared["tools"])
    world._first, world._state, world._changed = first, state, changed
    return world


__all__ = ["BadWorld", "StateWorld"]
