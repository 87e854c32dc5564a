"""Two hundred thousand trials are counted while one waits."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import polars as pl
import pytest

from agentbench_lab.analysis import metrics

from .rows import TOKENS


def many(arms: int, cases: int, repeats: int) -> pl.DataFrame:
    size = arms * cases * repeats
    at = np.arange(size)
    rng = np.random.default_rng(1)
    return pl.DataFrame(
        {
            "suite": "s",
            "case_id": (at // repeats % cases).astype(str),
            "driver": (at // (repeats * cases)).astype(str),
            "model": "m",
            "scaffold": "once",
            "trial": at % repeats + 1,
            "evidence": "live",
            "excluded": pl.Series([None] * size, dtype=pl.String),
            "solved": rng.random(size) < 0.5,
            "cached": False,
            "tool_calls": rng.integers(0, 9, size),
            "tool_errors": 0,
            **{name: rng.integers(0, 10_000, size) for name in TOKENS},
            "model_calls": rng.integers(1, 9, size),
            "cost_micros": rng.integers(0, 10**6, size),
            "wall_s": rng.random(size),
        }
    )


@pytest.mark.long
@pytest.mark.parametrize("shape", [(40, 1_000, 5), (20, 10_000, 1), (1, 1_000, 200)])
def test_two_hundred_thousand_trials_take_less_than_two_seconds(shape: tuple[int, int, int]) -> None:
    table = many(*shape)
    calls = table.select("suite", "case_id", "driver", "model", "scaffold", status=pl.lit("ok"))
    each: dict[str, Callable[[], pl.DataFrame]] = {
        "cost": lambda: metrics.cost(table),
        "frontier": lambda: metrics.frontier(table),
        "tool_errors": lambda: metrics.tool_errors(table, calls),
    }
    took = {}
    for name, count in each.items():
        seconds = []
        for _ in range(3):
            began = time.perf_counter()
            found = count()
            seconds.append(time.perf_counter() - began)
        assert found.height > 0
        took[name] = min(seconds)
    print(shape, took)
    assert max(took.values()) < 2, took
