"""Trials and calls in a few words, for metrics that read what they used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

TOKENS = ("tokens_fresh_input", "tokens_cache_read", "tokens_cache_write", "tokens_output")
TRIALS: dict[str, Any] = {
    **dict.fromkeys(("suite", "case_id", "driver", "model", "scaffold", "evidence", "excluded"), pl.String),
    "trial": pl.Int32,
    "solved": pl.Boolean,
    "cached": pl.Boolean,
    **dict.fromkeys(("tool_calls", "tool_errors"), pl.Int32),
    **dict.fromkeys((*TOKENS, "model_calls", "cost_micros"), pl.Int64),
    "wall_s": pl.Float64,
}
CALLS: dict[str, Any] = dict.fromkeys(
    ("suite", "case_id", "driver", "model", "scaffold", "status"), pl.String
)


def trial(
    case: str, solved: bool | None, cost: int | None = None, *, arm: str = "a", **more: Any
) -> dict[str, Any]:
    """One trial of an arm: None is excluded, `cost` is in micros of a dollar."""
    return {
        "suite": "s",
        "case_id": case,
        "driver": arm,
        "model": None,
        "scaffold": "once",
        "evidence": "live",
        "excluded": "the grader failed" if solved is None else None,
        "trial": 1,
        "solved": solved,
        "cached": False,
        "tool_calls": 0,
        "tool_errors": 0,
        "cost_micros": cost,
        **more,
    }  # fmt: skip


def trials(*rows: dict[str, Any]) -> pl.DataFrame:
    return pl.DataFrame(list(rows), schema=TRIALS)


def calls(*made: tuple[str, str], arm: str = "a") -> pl.DataFrame:
    """A row for each case and status."""
    rows = [("s", case, arm, None, "once", status) for case, status in made]
    return pl.DataFrame(rows, schema=CALLS, orient="row")


def get(found: pl.DataFrame, **where: Any) -> dict[str, Any]:
    """The only row of that kind."""
    rows = found.filter(*(pl.col(name) == value for name, value in where.items())).to_dicts()
    assert len(rows) == 1, rows
    return rows[0]


def column(found: pl.DataFrame, name: str, of: Sequence[str]) -> list[Any]:
    """A column of the rows, by driver."""
    return [get(found, driver=driver)[name] for driver in of]
