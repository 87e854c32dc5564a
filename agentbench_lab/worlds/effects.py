"""What an effect does to a JSON state: a new state and the path that was touched, the old state as it was."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from agentbench_lab.paths import ABSENT, Path, join, look, named, push, put, remove
from agentbench_lab.values import MAX_DEPTH
from agentbench_lab.worlds.templates import Arguments

Step = Callable[[Any, Arguments], tuple[Any, Path, Any]]
"""From a state and arguments: the state after, the path that was touched (none is empty), what is given back."""


class Failed(Exception):
    """A call that the state does not allow; the message is what the agent is told."""


def read(source: Callable[[Arguments], Path]) -> Callable[[Any, Arguments], Any]:
    """What takes a value from a path of the state; it raises Failed where nothing is."""
    return lambda state, arguments: _there(state, source(arguments))


def _there(state: Any, path: Path) -> Any:
    found = look(state, path)
    if found is ABSENT:
        raise Failed(f"{join(path)} is not there")
    return found


def effect_step(
    word: str, at: Callable[[Arguments], Path], value: Callable[[Any, Arguments], Any] | None
) -> Step:
    """The step of an effect by its word, at a path, with the value that it takes (None where it takes none)."""

    def step(state: Any, arguments: Arguments) -> tuple[Any, Path, Any]:
        path = at(arguments)
        if word == "return":
            return state, (), _there(state, path)
        if word == "delete":
            # what follows in a list moves up, so that the whole list is touched
            holder = look(state, path[:-1])
            return remove(state, path), path[:-1] if type(holder) is list else path, ABSENT
        assert value is not None
        new = value(state, arguments)
        if _depth(new) + len(path) >= MAX_DEPTH:
            raise Failed(f"{join(path)}: the value is nested too deeply")
        if word == "append":
            return push(state, path, new), path, ABSENT
        if word == "increment":
            new = _sum(look(state, path), new, path)
        return put(state, path, new), path, ABSENT

    return step


def _sum(old: Any, by: Any, path: Path) -> int | float:
    """The sum as it is written down: 0.1 and 0.2 are 0.3."""
    if type(old) not in (int, float):
        raise Failed(f"{join(path)} is {named(old)}, and no number")
    if type(by) not in (int, float):
        raise Failed(f"{join(path)} cannot be changed by {named(by)}")
    if type(old) is int and type(by) is int:
        total: int | float = old + by
    else:
        total = float(Decimal(repr(old)) + Decimal(repr(by)))
    if not math.isfinite(total) or (type(total) is int and not -(2**63) <= total < 2**63):
        raise Failed(f"{join(path)} would be too large a number")
    return total


def _depth(value: Any) -> int:
    if type(value) is dict:
        return 1 + max(map(_depth, value.values()), default=0)
    if type(value) is list:
        return 1 + max(map(_depth, value), default=0)
    return 0


__all__ = ["Failed", "Step", "effect_step", "read"]
