"""Calls against expected calls: position by position, the pinned input a lower bound."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from agentbench_lab.cases import Call, ExpectedCall
from agentbench_lab.grading.grade import cut, shown
from agentbench_lab.values import same

_ABSENT = object()


def mismatch(expected: Sequence[ExpectedCall], calls: Sequence[Call]) -> str | None:
    """What is wrong with the first call that is not as expected, or None when all are.

    A difference of value is told apart from one of type; text that only spells the expected value is flagged
    `stringified_arg` and still fails.
    """
    if len(expected) != len(calls):
        return f"{len(calls)} calls where {len(expected)} are expected: {shown(calls)} for {shown(expected)}"
    for number, (want, call) in enumerate(zip(expected, calls, strict=True), start=1):
        if want.name != call.name:
            return f"call {number}: {call.name} instead of {want.name}"
        if want.accept or want.optional:
            wrong = _loosely(want, call.input)
        else:
            wrong = None
            given = call.input
            for key, value in want.input.items():
                got = given.get(key, _ABSENT)
                # a text value can only equal a text value, so `==` is exact for it and no slower path is needed
                if got != value or (type(value) is not str and not same(got, value)):
                    wrong = difference(value, got, key)
                    break
        if wrong is not None:
            return f"call {number}: {want.name}: {wrong}"
    return None


def _loosely(want: ExpectedCall, given: dict[str, Any]) -> str | None:
    for key in (*want.input, *(key for key in want.accept if key not in want.input)):
        got = given.get(key, _ABSENT)
        if got is _ABSENT and key in want.optional:
            continue
        options = [*((want.input[key],) if key in want.input else ()), *want.accept.get(key, ())]
        if not any(same(got, option) for option in options):
            if len(options) == 1 or got is _ABSENT:
                return difference(options[0], got, key)
            return f"value: {key}: {_brief(got)} is none of {', '.join(map(_brief, options))}"
    return None


def difference(want: Any, got: Any, path: str) -> str:
    """The first difference between two JSON values that are not the same, as `type: …` or `value: …` with its path."""
    if got is _ABSENT:
        return f"value: {path} is missing (expected {_brief(want)})"
    if type(want) is dict and type(got) is dict:
        for key in want:
            if key not in got:
                return f"value: {path}.{key} is missing (expected {_brief(want[key])})"
            if not same(want[key], got[key]):
                return difference(want[key], got[key], f"{path}.{key}")
        extra = next(key for key in got if key not in want)
        return f"value: {path}.{extra} is not expected"
    if type(want) is list and type(got) is list:
        for n, (a, b) in enumerate(zip(want, got, strict=False)):
            if not same(a, b):
                return difference(a, b, f"{path}[{n}]")
        return f"value: {path} has {len(got)} entries, expected {len(want)}"
    reason = "value" if _kind(want) == _kind(got) else "type"
    flag = " (stringified_arg)" if _spells(got, want) else ""
    return f"{reason}: {path}: expected {_brief(want)}, got {_brief(got)}{flag}"


def _kind(value: Any) -> str:
    if value is None or isinstance(value, bool | str | dict | list):
        return type(value).__name__
    return "number"


def _spells(got: Any, want: Any) -> bool:
    if type(got) is not str or type(want) is str:
        return False
    try:
        return same(msgspec.json.decode(got), want)
    except (msgspec.DecodeError, RecursionError):
        return False


def _brief(value: Any) -> str:
    return cut(msgspec.json.encode(value).decode(), 60)
