"""Calls and values with one leaf changed: what a grader has to tell from the right ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from agentbench_lab.cases import Call, ExpectedCall
from agentbench_lab.values import plain, same


def filled(call: ExpectedCall) -> dict[str, Any]:
    """A call's pinned arguments, with the first alternative where only alternatives are given."""
    return {**{key: values[0] for key, values in call.accept.items() if values}, **call.input}


def changed_call(call: Call, wanted: ExpectedCall, tools: Sequence[str]) -> Iterable[tuple[str, Call]]:
    """The call with one pinned leaf changed, each in turn."""
    yield "name", Call(next((name for name in tools if name != call.name), other_text(call.name)), call.input)
    for key in dict.fromkeys((*wanted.input, *wanted.accept)):
        allowed = [*([wanted.input[key]] if key in wanted.input else []), *wanted.accept.get(key, ())]
        for path, value in _leaves(call.input[key], f"input.{key}", allowed):
            yield path, Call(call.name, {**call.input, key: value})


def _leaves(value: Any, path: str, allowed: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """`value` with one leaf replaced, so that the whole is none of the allowed values, for every leaf."""
    for where, changed in replaced(value, path):
        fresh = next((other for other in changed if not any(same(other, one) for one in allowed)), _NOTHING)
        if fresh is not _NOTHING:
            yield where, fresh


_NOTHING = object()


def replaced(value: Any, path: str) -> Iterator[tuple[str, Iterator[Any]]]:
    """Per leaf of `value` its path and copies of `value` with another value there, as many as are asked for."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            for where, others in replaced(item, f"{path}.{key}"):
                yield where, ({**plain(value), key: other} for other in others)
    elif isinstance(value, list) and value:
        for at, item in enumerate(value):
            for where, others in replaced(item, f"{path}[{at}]"):
                yield where, ([*plain(value[:at]), other, *plain(value[at + 1 :])] for other in others)
    else:
        yield path, _others(value)


def _others(value: Any) -> Iterator[Any]:
    """Values that are not this one, the alike ones first."""
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int | float):
        yield from (n for n in range(64) if n != value)
    elif isinstance(value, str):
        yield from (value + "~" * n for n in range(1, 65))
    yield from ("~", None, ["~"])


def other_text(value: str) -> str:
    """A text that is not this one."""
    return f"{value}~"


__all__ = ["changed_call", "filled", "other_text", "replaced"]
