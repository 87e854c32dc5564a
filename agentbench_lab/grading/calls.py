"""Calls against expected calls, the pinned input a lower bound: position by position, or in any order.

Without an order, calls are paired by maximum bipartite matching (H. W. Kuhn, "The Hungarian method for the assignment
problem", 1955, for zero-one costs: augmenting paths), so that no verdict depends on the order in which either side is
written, and a call that is expected twice has to be made twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from agentbench_lab.cases import Call, ExpectedCall, Order
from agentbench_lab.errors import counted, wanted
from agentbench_lab.grading.grade import cut, shown
from agentbench_lab.values import same

_ABSENT = object()


def unmatched(expected: Sequence[ExpectedCall], calls: Sequence[Call], order: Order) -> str | None:
    """What is wrong with the calls under an order, or None.

    `positional`: the expected calls, in that order. `any_order`: the expected calls, no more and no fewer. `subset`:
    only expected calls, each at most as often. `superset`: all expected calls, others beside them.
    """
    if order == "positional":
        return mismatch(expected, calls)
    of = pairing(len(expected), len(calls), lambda a, b: _of_call(expected[a], calls[b]) is None)
    taken = {place for place in of if place is not None}
    beside = [at for at in range(len(calls)) if at not in taken]
    missing = [at for at, place in enumerate(of) if place is None]
    said = []
    if order != "subset":
        said += [_missing(expected[at], calls, beside) for at in missing]
    if order != "superset" and (order == "subset" or not missing):
        said += [f"{shown([calls[at]])} is not expected" for at in beside]
    return "; ".join(said[:MOST]) + (f"; {len(said) - MOST} more" if len(said) > MOST else "") or None


MOST = 8
"""How many differences a reason names."""


def _missing(want: ExpectedCall, calls: Sequence[Call], beside: Sequence[int]) -> str:
    """That an expected call is missing, and how the nearest call beside the matched ones differs from it."""
    for at in beside:
        if calls[at].name == want.name:
            return f"call {at + 1}: {_of_call(want, calls[at])}"
    return f"{shown([want])} was not called"


def pairing(left: int, right: int, fits: Callable[[int, int], bool]) -> list[int | None]:
    """For each on the left its partner on the right, None for none, such that as many as possible have one."""
    near = [[b for b in range(right) if fits(a, b)] for a in range(left)]
    of_left: list[int | None] = [None] * left
    of_right: list[int | None] = [None] * right
    for start in range(left):
        # breadth first, so that a long list cannot exhaust the stack
        came: dict[int, int] = {}
        queue = [start]
        free: int | None = None
        for a in queue:
            for b in near[a]:
                if b in came:
                    continue
                came[b] = a
                owner = of_right[b]
                if owner is None:
                    free = b
                    break
                queue.append(owner)
            if free is not None:
                break
        while free is not None:
            a = came[free]
            before = of_left[a]
            of_left[a], of_right[free] = free, a
            free = before
    return of_left


def mismatch(expected: Sequence[ExpectedCall], calls: Sequence[Call]) -> str | None:
    """What is wrong with the first call that is not as expected, or None when all are.

    A difference of value is told apart from one of type; text that only spells the expected value is flagged
    `stringified_arg` and still fails.
    """
    if len(expected) != len(calls):
        return f"{wanted(len(calls), len(expected), 'call')}: {shown(calls)} for {shown(expected)}"
    for number, (want, call) in enumerate(zip(expected, calls, strict=True), start=1):
        wrong = _of_call(want, call)
        if wrong is not None:
            return f"call {number}: {wrong}"
    return None


def _of_call(want: ExpectedCall, call: Call) -> str | None:
    """What is wrong with one call, or None."""
    if want.name != call.name:
        return f"{call.name} instead of {want.name}"
    if want.accept or want.optional:
        wrong = _loosely(want, call.input)
        return None if wrong is None else f"{want.name}: {wrong}"
    given = call.input
    for key, value in want.input.items():
        got = given.get(key, _ABSENT)
        # a text value can only equal a text value, so `==` is exact for it and no slower path is needed
        if got != value or (type(value) is not str and not same(got, value)):
            return f"{want.name}: {difference(value, got, key)}"
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
        return f"value: {path} has {counted(len(got), 'entry', 'entries')}, expected {len(want)}"
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
