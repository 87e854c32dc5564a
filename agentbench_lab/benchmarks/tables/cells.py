"""Cells of a table as values of a run's columns. What is empty is null; what cannot be meant raises ValueError.

A cell comes as text (CSV), as a JSON value or as a value out of Parquet; a number may stand as text in any of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any, get_args

from agentbench_lab.benchmarks.reading import is_one, micros
from agentbench_lab.errors import did_you_mean
from agentbench_lab.outcomes import IMPORTED
from agentbench_lab.transcripts import Stop
from agentbench_lab.values import a_kind

TRUE = frozenset({
    "true", "t", "yes", "y", "1", "pass", "passed", "resolved", "solved", "success", "successful", "succeeded", "correct",
})  # fmt: skip
FALSE = frozenset({
    "false", "f", "no", "n", "0", "fail", "failed", "failure", "unresolved", "unsolved", "unsuccessful", "incorrect",
})  # fmt: skip
OWNERS = ("harness", "grader", "case", "environment")
STOPS: tuple[str, ...] = get_args(Stop)
OUTCOMES = tuple(outcome.name for outcome in IMPORTED.outcomes)

EMPTY = frozenset({"", "nan", "none", "null"})
"""How programs write that there is nothing, in any case."""

Parse = Callable[[Any], Any]


class CellError(ValueError):
    """What is wrong with one cell, and in which row it stands (from 0)."""

    def __init__(self, row: int, value: Any, reason: str) -> None:
        self.row = row
        shown = value if isinstance(value, str) else str(value)
        self.value = shown if len(shown) <= 60 else f"{shown[:59]}…"
        super().__init__(reason)


def parsed(values: Sequence[Any], parse: Parse) -> list[Any]:
    """Each value by `parse`; the same text is parsed once. Raises CellError for the first that cannot be."""
    known: dict[str, Any] = {}
    found: list[Any] = []
    for row, value in enumerate(values):
        if type(value) is str:
            if value not in known:
                known[value] = _cell(row, value, parse)
            found.append(known[value])
        else:
            found.append(None if value is None else _cell(row, value, parse))
    return found


def _cell(row: int, value: Any, parse: Parse) -> Any:
    try:
        return parse(value)
    except ValueError as error:
        raise CellError(row, value, str(error)) from None


def text(value: Any) -> str | None:
    """Text as it stands; a number or a truth value as JSON writes it, an instant in ISO form."""
    if isinstance(value, str):
        return value or None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return None if math.isnan(value) else repr(value)
    if isinstance(value, int | Decimal):
        return str(value)
    if isinstance(value, date):  # a datetime is one
        return value.isoformat()
    raise ValueError(f"is {a_kind(type(value).__name__)}, not text")


def _is_empty(value: Any) -> bool:
    return isinstance(value, str) and value.strip().casefold() in EMPTY


def name_of(value: Any) -> str | None:
    """Text that names something, so that the words for nothing (`EMPTY`) are empty; in other text they are words."""
    return None if _is_empty(value) else text(value)


def number(value: Any) -> Decimal | None:
    """A finite number; NaN is how some tools write null."""
    if isinstance(value, bool) or not isinstance(value, str | int | float | Decimal):
        raise ValueError("is no number")
    if isinstance(value, str):
        value = value.strip()
        if _is_empty(value):
            return None
        if "_" in value:
            raise ValueError("is no number")
    try:
        found = Decimal(repr(value) if isinstance(value, float) else value)
    except InvalidOperation:
        raise ValueError("is no number") from None
    if found.is_nan():
        return None
    if not found.is_finite() or not -400 < found.adjusted() < 300:
        raise ValueError("is no finite number")
    return found


def count(bits: int) -> Parse:
    """A whole number from 0 that fits; `12.0` is one, as tables with nulls write it."""

    def parse(value: Any) -> int | None:
        found = number(value)
        if found is None:
            return None
        if found != found.to_integral_value():
            raise ValueError("is no whole number")
        if found < 0:
            raise ValueError("is negative; what is unknown is left empty")
        if found >= 2 ** (bits - 1):
            raise ValueError("is too large")
        return int(found)

    return parse


def real(value: Any) -> float | None:
    """A finite number."""
    found = number(value)
    return None if found is None else float(found)


def amount(value: Any) -> float | None:
    """A number from 0."""
    found = real(value)
    if found is not None and found < 0:
        raise ValueError("is negative; what is unknown is left empty")
    return found


def dollars(value: Any) -> tuple[int, float | None] | None:
    """Dollars as whole micros, with the exact dollars beside them where those are no whole number of micros."""
    found = number(value)
    if found is None:
        return None
    whole = micros(str(found))
    if whole is None or whole >= 2**63:
        raise ValueError("is too large")
    return whole, None if found * 1_000_000 == whole else float(found)


def truth(value: Any) -> bool | None:
    """true or false, 1 or 0, yes or no, passed or failed, resolved or unresolved, and the like, in any case."""
    if isinstance(value, bool):
        return value
    word = value.strip().casefold() if isinstance(value, str) else ""
    if isinstance(value, str):
        if _is_empty(value):
            return None
        if word in TRUE or word in FALSE:
            return word in TRUE
    try:
        found = number(value)
    except ValueError:
        raise ValueError(f"is neither true nor false{did_you_mean(word, TRUE | FALSE, most=0)}") from None
    if found is None:
        return None
    if found in (0, 1):
        return found == 1
    raise ValueError("is a number other than 0 and 1; a share is mapped as score")


def solved_by(score: float | None) -> bool | None:
    """Whether a score is a full success, within 1e-6 of 1."""
    return None if score is None else is_one(score)


def excluded(value: Any) -> str | None:
    """The reason why a trial is excluded; a plain yes has none of its own, a plain no (or nothing) excludes nothing."""
    word = name_of(value)
    if word is None or word.strip().casefold() in ("false", "no", "0", "0.0"):
        return None
    return "excluded by the source" if word.strip().casefold() in ("true", "yes", "1", "1.0") else word


def one_of(words: Sequence[str]) -> Parse:
    """One of these words."""

    def parse(value: Any) -> str | None:
        word = name_of(value)
        if word is None:
            return None
        if word not in words:
            raise ValueError(f"is none of ours{did_you_mean(word, words)}")
        return word

    return parse


def instant(value: Any) -> datetime | None:
    """An instant in ISO form."""
    if isinstance(value, datetime):
        return value
    if not isinstance(value, str):
        raise ValueError("is no instant in ISO form")
    if _is_empty(value):
        return None
    try:
        return datetime.fromisoformat(value.strip())
    except ValueError:
        raise ValueError("is no instant in ISO form") from None


def between(start: datetime | None, end: datetime | None) -> float | None:
    """Seconds from one instant to the other. Raises ValueError where only one names its time zone, or the end is first."""
    if start is None or end is None:
        return None
    if (start.tzinfo is None) != (end.tzinfo is None):
        raise ValueError("names a time zone where the other end names none")
    seconds = (end - start).total_seconds()
    if seconds < 0:
        raise ValueError(f"lies before the start ({start.isoformat()})")
    return seconds


def span(starts: Sequence[datetime | None], ends: Sequence[datetime | None]) -> tuple[str, str]:
    """The first start and the last end in ISO form; empty where none is known, or one names no time zone."""
    first, last = [list(filter(None, each)) for each in (starts, ends)]
    if not all(when.tzinfo for when in (*first, *last)):
        return "", ""
    return min(first).isoformat() if first else "", max(last).isoformat() if last else ""
