"""What simulated users have spent, which is no part of what an agent costs."""

from __future__ import annotations

from typing import Any

import polars as pl

from agentbench_lab.analysis.metrics.arms import ARM

USERS: dict[str, Any] = {"user_trials": pl.Int64, "user_cost": pl.Float64, "user_tokens": pl.Int64}
"""The columns of a metric of cost that say what it leaves aside; null where there is no such user, or none that uses anything."""
_MICROS = 1_000_000
_TOKENS = ("fresh_input", "cache_read", "cache_write", "output")


def left_aside(trials: pl.DataFrame) -> dict[tuple[Any, ...], dict[str, Any]]:
    """By arm, what the simulated users of its conversations have used: in how many trials, dollars, tokens of all kinds.

    It is read from `extra`: of a conversation of ours, or what a source says (`user_cost_usd`). A sum of which a part is
    unknown is None. An arm whose users have used nothing, as scripted ones do, is not there.
    """
    if "extra" not in trials.columns:
        return {}
    extra = pl.col("extra")
    talks = trials.filter(
        extra.str.contains('"user":{', literal=True) | extra.str.contains('"user_cost_usd":', literal=True)
    )
    if talks.is_empty():
        return {}
    of = {
        name: extra.str.json_path_match(f"$.user.usage.{name}").cast(pl.Int64, strict=False)
        for name in (*_TOKENS, "cost_micros")
    }
    dollars = extra.str.json_path_match("$.user_cost_usd").cast(pl.Float64, strict=False)
    used = talks.select(
        *ARM,
        pl.coalesce(of["cost_micros"], (dollars * _MICROS).round().cast(pl.Int64)).alias("cost"),
        pl.sum_horizontal(*(of[name] for name in _TOKENS), ignore_nulls=False).alias("tokens"),
    )
    sums = used.group_by(*ARM).agg(
        pl.len().cast(pl.Int64).alias("user_trials"),
        *(
            (pl.when(pl.col(name).is_not_null().all()).then(pl.col(name).sum()) / scale)
            .cast(USERS[f"user_{name}"])
            .alias(f"user_{name}")
            for name, scale in (("cost", _MICROS), ("tokens", 1))
        ),
    )
    used_some = sums.filter(
        (pl.col("user_cost") != 0).fill_null(True) | (pl.col("user_tokens") > 0).fill_null(False)
    )
    return {
        tuple(row[name] for name in ARM): {name: row[name] for name in USERS}
        for row in used_some.iter_rows(named=True)
    }
