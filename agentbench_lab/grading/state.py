"""An end state against what is expected of it, path by path.

Of objects the expected keys are compared, at every depth, and further ones are free; lists are compared entry by
entry; a number never equals true or false, and null is not the same as nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from agentbench_lab.cases import Expect
from agentbench_lab.errors import counted
from agentbench_lab.expect import Form, form_of
from agentbench_lab.grading.calls import MOST, pairing
from agentbench_lab.grading.grade import Check, cut
from agentbench_lab.paths import ABSENT, Change, Path, join, named, split
from agentbench_lab.values import canonical, same
from agentbench_lab.worlds.seen import LOST, Seen, StateSeen


def state_checks(expect: Expect, seen: Seen | None) -> list[Check]:
    """The checks `state`, `state_absent` and `state_equals`, those of them that the case declares."""
    found = None if seen is None else seen.state
    checks = []
    for name, given, wrong in (
        ("state", expect.state is not None, _state),
        ("state_absent", bool(expect.state_absent), _absent),
        ("state_equals", expect.state_equals is not None, _equals),
    ):
        if not given:
            continue
        if found is None:
            why = LOST if seen is not None and seen.lost else "the world has no state"
            checks.append(Check(name, False, why))
            continue
        said = list(wrong(expect, found))
        more = f"; {len(said) - MOST} more" if len(said) > MOST else ""
        checks.append(Check(name, not said, "; ".join(said[:MOST]) + more))
    return checks


def _state(expect: Expect, seen: StateSeen) -> Iterator[str]:
    for path, expected in (expect.state or {}).items():
        yield from against(form_of(expected), seen.values.get(path, ABSENT), path)


def _absent(expect: Expect, seen: StateSeen) -> Iterator[str]:
    for path in expect.state_absent:
        if path in seen.values:
            yield f"{path}: expected nothing, got {brief(seen.values[path])}"


def _equals(expect: Expect, seen: StateSeen) -> Iterator[str]:
    """The whole world: the paths that may differ have their expected values, and nothing else has changed."""
    for path, expected in (expect.state_equals or {}).items():
        got = seen.values.get(path, ABSENT)
        if got is ABSENT or not same(got, expected):
            yield from _differing(expected, got, path)
    free = [split(path) for path in (*(expect.state_equals or ()), *expect.state_absent)]
    for path, expected in (expect.state or {}).items():
        options = form_of(expected).options
        # of an object `state` looks at the expected keys alone: what lies beside them may not change either
        free += _leaves(split(path), options[0]) if len(options) == 1 else [split(path)]
    for change in seen.changes:
        at = split(change.path)
        within = [at]
        if any(path[: len(at)] == at for path in free):
            # an object that came or went as a whole: each of its entries has to be looked at
            within = list(dict.fromkeys([*_leaves(at, change.old), *_leaves(at, change.new)]))
        if not all(any(leaf[: len(path)] == path for path in free) for leaf in within):
            yield _beside(change)


def _leaves(at: Path, value: Any) -> list[Path]:
    """The paths of all that a value holds: of objects their entries, at every depth; nothing of what is not there."""
    if value is ABSENT:
        return []
    if type(value) is dict and value:
        return [leaf for key, item in value.items() for leaf in _leaves((*at, key), item)]
    return [at]


def _beside(change: Change) -> str:
    if change.old is ABSENT:
        return f"{change.path}: expected as it was (nothing there), got {brief(change.new)}"
    return f"{change.path}: expected as it was ({brief(change.old)}), got {brief(change.new)}"


def against(form: Form, got: Any, path: str) -> list[str]:
    """How a value differs from the expected form, a text for each path within it that does; empty when it fits."""
    if len(form.options) > 1:
        if any(not list(_differing(option, got, path, subset=True)) for option in form.options):
            return []
        return [f"{path}: expected one of {', '.join(map(brief, form.options))}, got {brief(got)}"]
    expected = form.options[0]
    if not form.unordered:
        return list(_differing(expected, got, path, subset=True, tol=form.tol))
    if type(got) is not list:
        return [f"{path}: expected {brief(expected)} in any order, got {brief(got)}"]
    of = pairing(
        len(expected),
        len(got),
        lambda a, b: not list(_differing(expected[a], got[b], path, subset=True, tol=form.tol)),
    )
    said = [f"{path}: {brief(expected[at])} is missing" for at, place in enumerate(of) if place is None]
    return said + [f"{path}: {brief(item)} is too much" for at, item in enumerate(got) if at not in of]


def _differing(
    expected: Any, got: Any, path: str, *, subset: bool = False, tol: float | None = None
) -> Iterator[str]:
    """Each place where two values differ; with `subset` of objects only the expected keys count."""
    if type(expected) is dict and type(got) is dict:
        for key, item in expected.items():
            yield from _differing(
                item, got.get(key, ABSENT), f"{path}.{join((key,))}", subset=subset, tol=tol
            )
        for key in () if subset else got:
            if key not in expected:
                yield f"{path}.{join((key,))}: expected nothing, got {brief(got[key])}"
    elif type(expected) is list and type(got) is list:
        if len(expected) != len(got):
            yield f"{path}: expected {counted(len(expected), 'entry', 'entries')}, got {len(got)}: {brief(got)}"
            return
        for at, (a, b) in enumerate(zip(expected, got, strict=True)):
            yield from _differing(a, b, f"{path}.{at}", subset=subset, tol=tol)
    elif got is ABSENT or not (_near(expected, got, tol) or same(expected, got)):
        within = "" if tol is None or type(expected) not in (int, float) else f" within {tol:g}"
        kinds = named(expected), named(got)
        told = f" ({kinds[1]}, not {kinds[0]})" if got is not ABSENT and kinds[0] != kinds[1] else ""
        yield f"{path}: expected {brief(expected)}{within}, got {brief(got)}{told}"


def _near(expected: Any, got: Any, tol: float | None) -> bool:
    """Whether two numbers differ by no more than the tolerance, as they are written: 28.0 is within 0.01 of 27.99."""
    if tol is None or type(expected) not in (int, float) or type(got) not in (int, float):
        return False
    return abs(Decimal(repr(expected)) - Decimal(repr(got))) <= Decimal(repr(tol))


def brief(value: Any) -> str:
    """A value as JSON, long ones cut; `nothing` for what is not there."""
    return "nothing" if value is ABSENT else cut(canonical(value).decode(), 80)


__all__ = ["against", "brief", "state_checks"]
