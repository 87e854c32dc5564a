"""What trials used: money, tokens, calls and time, in all, by trial, and for each one solved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from agentbench_lab.analysis.metrics.arms import ARM, frame
from agentbench_lab.analysis.metrics.ratios import (
    RESAMPLES,
    Ratio,
    all_ratios,
    knowing,
    said,
    sums_by_case,
)
from agentbench_lab.analysis.metrics.users import USERS, left_aside
from agentbench_lab.analysis.prices import priced
from agentbench_lab.errors import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pyarrow as pa

    from agentbench_lab.analysis.prices import Prices

USED = {
    "tokens_fresh_input": "tokens",
    "tokens_cache_read": "tokens",
    "tokens_cache_write": "tokens",
    "tokens_output": "tokens",
    "model_calls": "calls",
    "tool_calls": "calls",
    "wall_s": "s",
}
"""Columns of `trials` that are metrics of `cost` by their own names, a mean by trial each, and their units."""

MICROS = 1_000_000
ENDS = ("estimate", "low", "high")

_SCHEMA = {
    **dict.fromkeys((*ARM, "evidence", "metric", "unit"), pl.String),
    **dict.fromkeys(("total", "estimate", "low", "high"), pl.Float64),
    **dict.fromkeys(("n", "floors", "of", "solved"), pl.Int64),
    "lower_bound": pl.Boolean,
    **USERS,
    "estimator": pl.String,
    "reason": pl.String,
}


def cost(
    trials: pa.Table | pl.DataFrame,
    prices: Prices | None = None,
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
    level: float = 0.95,
) -> pl.DataFrame:
    """What each arm used. Money is dollars; a trial's is that of all its attempts, failed ones too.

    One row an arm and metric: `spent` (the sum over all trials that ended, excluded ones too: that money is gone),
    `per_trial` (its mean), `per_solved` (what was spent on all trials, divided by the trials solved; null when none
    was), `failures` (the share of the money that went to trials that were not solved), and the mean by trial of tokens
    of each kind, calls to a model, calls of tools, and seconds by the wall clock (without trials answered from a
    cache, whose times say nothing).

    It is the agent's: what simulated users have used is left aside, and `user_cost` (dollars), `user_tokens` and
    `user_trials` say what that was (`users.left_aside`).

    `n` of the `of` trials that ended are known to have used so much, and `total` is the sum over them and over the
    `floors`: trials of which only a part is known (`only_a_floor`). With n < of it is a `lower_bound`, and so are `spent`
    and `per_solved`; a mean is that of the n trials. Unknown is
    never 0: where nothing is known all is null, and `reason` says why. With `prices` a cost that the source does not
    give is worked out from the tokens, see `prices.priced`, and the estimator says so. Intervals are percentile
    intervals of the ratio, resampling whole cases with all their trials (`stats.ratio_over_cases`); a sum has none.
    """
    table = with_costs(trials, prices)
    arms = sums_by_case(table, *money(table), *_used(table))
    known = [knowing(cases, "cost_n") for _, cases in arms]
    pairs = {
        "per_trial": [(cases["whole"], cases["cost_n"]) for cases in known],
        "per_solved": [(cases["cost"], cases["solved"]) for _, cases in arms],
        "failures": [(cases["lost"], cases["whole"]) for cases in known],
    }
    for name in USED:
        counted = f"{name}_n"
        pairs[name] = [(c[name], c[counted]) for c in (knowing(cases, counted) for _, cases in arms)]
    found = all_ratios(pairs, seed=seed, resamples=resamples, level=level)
    notes = why_unknown(table)
    users = left_aside(table)
    rows = []
    for at, (arm, cases) in enumerate(arms):
        mine = {name: each[at] for name, each in found.items()}
        whole = cases.sum().row(0, named=True)
        key = tuple(arm[name] for name in ARM)
        note, aside = notes.get(key), users.get(key, {})
        for row in (*_money_rows(whole, mine, note, by_what(whole, prices)), *_used_rows(whole, mine)):
            rows.append({**arm, "of": whole["trials"], "solved": whole["solved"], **aside, **row})
    return pl.DataFrame(rows, schema=_SCHEMA)


def with_costs(trials: pa.Table | pl.DataFrame, prices: Prices | None) -> pl.DataFrame:
    """The trials, with costs by these prices where the source gives none."""
    return frame(trials) if prices is None else priced(trials, prices)


FLOOR_COLUMNS = ("usage_lost", "tokens_estimated", "attempts")
"""The columns of `trials` that say which figures are a lower bound."""


def only_a_floor(names: Iterable[str]) -> pl.Expr:
    """Which trials have used at least what they say, in a table with columns of these names: an attempt of theirs was
    killed, with what it had used since its last finished step (`usage_lost`).

    A run from before that was kept (null) does not tell such a trial from one that was tried again and whose driver gives
    estimates: both count there, so that nothing is called exact that may be a part.
    """
    names = set(names)
    lost = pl.col("usage_lost").cast(pl.Boolean) if "usage_lost" in names else pl.lit(None, pl.Boolean)
    if {"tokens_estimated", "attempts"} <= names:
        lost = pl.coalesce(lost, pl.col("tokens_estimated").cast(pl.Boolean) & (pl.col("attempts") > 1))
    return lost.fill_null(False)


def is_only_a_floor(trial: Mapping[str, Any]) -> bool:
    """The same of one row."""
    row = pl.DataFrame([{name: trial[name] for name in FLOOR_COLUMNS if name in trial}])
    return bool(row.select(only_a_floor(row.columns).alias("floor")).item())


def money(table: pl.DataFrame) -> list[pl.Expr]:
    """The sums over a case's trials that money is counted from, in micros: `cost` of all, `whole` and `lost` (for nothing)
    of the `cost_n` trials whose cost is known to its end, the `cost_floors` that are not, how many were solved, ..."""
    kept, told = pl.col("excluded").is_null(), pl.col("solved").is_not_null()
    won = kept & pl.col("solved").fill_null(False)
    floor = only_a_floor(table.columns)
    whole = pl.when(~floor).then("cost_micros")
    source = pl.col("cost_source") if "cost_source" in table.columns else pl.lit(None, pl.String)
    return [
        won.sum().alias("solved"),
        (kept & told).sum().alias("judged"),
        (kept & ~told).sum().alias("untold"),
        pl.col("cost_micros").sum().alias("cost"),
        whole.sum().alias("whole"),
        whole.count().alias("cost_n"),
        (floor & pl.col("cost_micros").is_not_null()).sum().alias("cost_floors"),
        whole.filter(~won).sum().alias("lost"),
        source.is_in(["priced", "assumed"]).sum().alias("worked"),
        (source == "assumed").sum().alias("assumed"),
        pl.col("cached").sum().alias("cached"),
    ]


def _used(table: pl.DataFrame) -> list[pl.Expr]:
    columns = {name: pl.col(name) for name in USED}
    columns["wall_s"] = pl.when(~pl.col("cached")).then("wall_s")
    floor = only_a_floor(table.columns)
    # a call that was made stands in the ledger, whatever was killed
    floors = {name: floor & (name != "tool_calls") & column.is_not_null() for name, column in columns.items()}
    return [
        each
        for name, column in columns.items()
        for each in (
            column.sum().alias(f"{name}_all"),
            column.filter(~floors[name]).sum().alias(name),
            column.filter(~floors[name]).count().alias(f"{name}_n"),
            floors[name].sum().alias(f"{name}_floors"),
        )
    ]


def why_unknown(table: pl.DataFrame) -> dict[tuple[Any, ...], str]:
    """By arm, the most frequent reason why trials have no cost, where prices were asked."""
    if "cost_note" not in table.columns:
        return {}
    noted = table.filter(pl.col("cost_note").is_not_null())
    counts = noted.group_by(*ARM, "cost_note", maintain_order=True).len().sort("len", maintain_order=True)
    return {tuple(arm): note for *arm, note, _ in counts.iter_rows()}


def by_what(whole: dict[str, Any], prices: Prices | None) -> str:
    """Where the costs come from, when not all are the source's own."""
    if not whole["worked"]:
        return ""
    by = f"by {prices.name} on {prices.on}" if prices is not None else "worked out from tokens"
    how = f", {whole['assumed']} with all input at its price for input_total" if whole["assumed"] else ""
    return f"; {counted(whole['worked'], 'cost')} {by}{how}"


def money_unknown(whole: dict[str, Any], note: str | None) -> str | None:
    """Why money is not known of all trials, and whose else is counted."""
    missing = _unknown("the cost", whole["cost_n"], whole["cost_floors"], whole["trials"])
    excluded = whole["trials"] - whole["judged"] - whole["untold"]
    return said(
        f"{missing} ({note})" if missing and note else missing,
        f"of {counted(whole['assumed'], 'trial')} only the total of the input is known: what was read from a cache "
        "is not told apart, and costs here as the prices assume of a total"
        if whole["assumed"]
        else None,
        f"what {counted(excluded, 'excluded trial')} cost is counted too"
        if excluded and whole["cost_n"] + whole["cost_floors"]
        else None,
    )


def _unknown(what: str, n: int, floors: int, of: int) -> str | None:
    """`the cost is not known of 2 of 8 trials; the cost of 1 of 8 trials is a lower bound, an attempt was killed`."""
    gone = of - n - floors
    return said(
        f"{what} is not known of {f'{gone} of {of} trials' if n + floors else 'any trial'}" if gone else None,
        floor_said(what, floors, of),
    )


def unknown_said(unit: str | None, n: int, of: int) -> str | None:
    """Of how many judged trials the cost is not known, when it is counted in this unit; None where of none."""
    what = {"usd": "the cost is not", "tokens": "the number of tokens is not"}.get(
        unit or "", "neither cost nor tokens is"
    )
    return None if n == of else f"{what} known of {f'{of - n} of {of} trials' if n else 'any trial'}"


def floor_said(what: str, floors: int, of: int) -> str | None:
    """`the cost of 1 of 8 trials is a lower bound: an attempt was killed`, or nothing."""
    return f"{what} of {floors} of {of} trials is a lower bound: an attempt was killed" if floors else None


def _money_rows(
    whole: dict[str, Any], found: dict[str, Ratio], note: str | None, by: str
) -> list[dict[str, Any]]:
    n, floors, dollars = whole["cost_n"], whole["cost_floors"], whole["cost"] / MICROS
    told = n + floors > 0
    bound = told and n < whole["trials"]
    head = {"unit": "usd", "n": n, "floors": floors, "lower_bound": bound, "total": dollars if told else None}
    why = money_unknown(whole, note)
    rows = [
        {
            **head,
            "metric": "spent",
            "estimate": dollars if told else None,
            "estimator": f"sum over all trials{by}",
            "reason": why,
        }
    ]
    for name in ("per_trial", "per_solved", "failures"):
        each = _told(name, found[name], whole)
        scale = 1 if name == "failures" else MICROS
        rows.append(
            {
                **head,
                **({"unit": "share", "total": None} if name == "failures" else {}),
                "metric": name,
                **{key: _over(getattr(each, key), scale) for key in ENDS},
                "estimator": each.estimator + by,
                "reason": said(why, each.reason),
            }
        )
    return rows


def _told(name: str, ratio: Ratio, whole: dict[str, Any]) -> Ratio:
    """The ratio of money as far as it means something, else null with a reason."""
    untold = whole["untold"] if name != "per_trial" else 0
    if not (whole["cost_n"] or (whole["cost_floors"] and name == "per_solved")):
        why = None  # solved for an unknown cost is not solved for nothing
    elif untold:
        why = f"whether {counted(untold, 'trial')} {'was' if untold == 1 else 'were'} solved is not known"
    elif ratio.estimate is None:
        why = "no trial was solved" if name == "per_solved" else "nothing was spent"
    elif name == "per_solved" and whole["cost_n"] < whole["trials"]:
        return Ratio(ratio.estimate, None, None, "ratio of sums", "a lower bound has no interval")
    else:
        return ratio
    return Ratio(None, None, None, ratio.estimator, why)


def _used_rows(whole: dict[str, Any], found: dict[str, Ratio]) -> list[dict[str, Any]]:
    rows = []
    for name, unit in USED.items():
        n, floors, each = whole[f"{name}_n"], whole[f"{name}_floors"], found[name]
        cached = whole["cached"] if name == "wall_s" else 0
        rows.append(
            {
                "metric": name,
                "unit": unit,
                "total": whole[f"{name}_all"] if n + floors else None,
                **{key: getattr(each, key) for key in ENDS},
                "n": n,
                "floors": floors,
                "lower_bound": n + floors > 0 and n < whole["trials"],
                "estimator": each.estimator,
                "reason": said(
                    f"{counted(cached, 'trial')} answered from a cache left out" if cached else None,
                    _unknown(name, n + cached, floors, whole["trials"]),
                    each.reason,
                ),
            }
        )
    return rows


def _over(value: float | None, scale: int) -> float | None:
    return None if value is None else value / scale
