"""Trials of several arrangements of one driver, made from chances by width: what an ablation reads."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from .rows import TRIALS

SCHEMA: dict[str, Any] = {**TRIALS, "group": pl.String, "width": pl.Int32, "outcome_class": pl.String}
WIDTHS = (1, 2, 4, 8, 16)
PER_PART = 0.93
"""Chance of one part, where parts are done one by one."""


def row(
    case: str,
    scaffold: str,
    solved: bool | None,
    trial: int = 1,
    *,
    width: int = 1,
    cost: int | None = None,
    tokens: int | None = None,
    **more: Any,
) -> dict[str, Any]:
    """One trial; None is excluded. `cost` in micros of a dollar; `tokens` are fresh input, and 0 of the other kinds."""
    found = {
        "suite": "s", "case_id": case, "driver": "d", "model": None, "scaffold": scaffold, "evidence": "simulated",
        "excluded": "harness: no disk" if solved is None else None, "trial": trial, "solved": solved, "cached": False,
        "tool_calls": 0, "tool_errors": 0, "cost_micros": cost, "wall_s": 1.0, "group": f"{width} parts", "width": width,
        "outcome_class": None if solved is None else "success" if solved else "safe_non_success",
    }  # fmt: skip
    if tokens is not None:
        found |= {
            "tokens_fresh_input": tokens,
            "tokens_cache_read": 0,
            "tokens_cache_write": 0,
            "tokens_output": 0,
        }
    return {**found, **more}


def frame(*rows: dict[str, Any]) -> pl.DataFrame:
    return pl.DataFrame(list(rows), schema=SCHEMA)


def arms(results: Mapping[str, Sequence[str]], costs: Mapping[str, int | None] | None = None) -> pl.DataFrame:
    """A frame from letters: for each scaffold a text a case, with 1 solved, 0 not, x excluded, by trial."""
    letters: dict[str, bool | None] = {"1": True, "0": False, "x": None}
    return frame(
        *(
            row(f"c{n}", scaffold, letters[letter], trial, cost=(costs or {}).get(scaffold, 100))
            for scaffold, cases in results.items()
            for n, case in enumerate(cases)
            for trial, letter in enumerate(case, start=1)
        )
    )


def chance(scaffold: str, width: int) -> float:
    """In closed form: alone, attention falls with the width; one by one, parts fail independently."""
    if scaffold == "once":
        return float(PER_PART**width * 0.9 ** (width - 1))
    return float(0.97 * (PER_PART + 0.05) ** width)


def price(scaffold: str, width: int) -> int:
    """Tokens of a trial: what is decomposed carries its overhead for each part."""
    return {"once": 800 + 400 * width, "linear": 1500 + 700 * width, "fan_out_4": 1500 + 900 * width}.get(
        scaffold.removeprefix("durable:"), 1000
    )


def simulated(
    scaffolds: Sequence[str] = ("once", "linear", "fan_out_4", "durable:linear"),
    *,
    cases: int = 6,
    trials: int = 8,
    seed: int = 1,
    widths: Sequence[int] = WIDTHS,
) -> pl.DataFrame:
    """A suite like `wide` under these scaffolds, by `chance` and `price`."""
    found = []
    for scaffold in scaffolds:
        for width in widths:
            rng = random.Random(f"{seed} {scaffold} {width}")
            for case in range(cases):
                for trial in range(1, trials + 1):
                    tokens = round(price(scaffold, width) * rng.uniform(0.9, 1.1))
                    solved = rng.random() < chance(scaffold, width)
                    found.append(row(f"w{width}-{case}", scaffold, solved, trial, width=width, tokens=tokens))
    return frame(*found)
