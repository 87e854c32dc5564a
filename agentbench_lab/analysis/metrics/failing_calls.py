"""Calls of tools that did not come back ok, by arm and kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from agentbench_lab.analysis.metrics.arms import ARM, frame
from agentbench_lab.analysis.metrics.ratios import RESAMPLES, Ratio, all_ratios, said, sums_by_case
from agentbench_lab.errors import counted

if TYPE_CHECKING:
    import pyarrow as pa

ERRORS = ("malformed", "undeclared", "schema_error", "tool_error", "protocol_error")
"""The statuses of calls that are not ok."""
ANY = "any"

_SCHEMA = {
    **dict.fromkeys((*ARM, "evidence", "metric"), pl.String),
    **dict.fromkeys(("n", "of"), pl.Int64),
    **dict.fromkeys(("estimate", "low", "high"), pl.Float64),
    **dict.fromkeys(("estimator", "reason"), pl.String),
}
_KEY = (*ARM, "suite", "case_id")


def tool_errors(
    trials: pa.Table | pl.DataFrame,
    calls: pa.Table | pl.DataFrame,
    card: Any = None,
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
    level: float = 0.95,
) -> pl.DataFrame:
    """How often a call of a tool failed, by arm and kind of error, and in `any` way.

    One row an arm and metric (malformed, undeclared, schema_error, tool_error, protocol_error, any): `n` of the `of`
    calls that reached the toolbox, in excluded trials too. The first two are hallucinations, the others are not, and
    none of them excludes a trial. An arm without a call has a null and a `reason`. Where a source has counts but no
    calls (imported rows), only `any` is known, from the counts of its trials. With the run's `card` also those kinds
    are null that its source does not tell (`card.imported.statuses`), and `any` counts those that it does. The interval
    is that of every share: Wilson's, over whole cases where they have several calls.
    """
    told = _told(card)
    table, made = frame(trials), frame(calls)
    statuses = made.group_by(_KEY).agg(
        pl.len().alias("calls"), *((pl.col("status") == name).sum().alias(name) for name in ERRORS)
    )
    counted = pl.col("tool_errors").is_not_null()
    arms = sums_by_case(
        table,
        pl.col("tool_calls").sum().alias("reported"),
        pl.col("tool_calls").is_null().sum().alias("silent"),
        pl.col("tool_calls").filter(counted).sum().alias("counted"),
        pl.col("tool_errors").sum().alias("failed"),
    )
    sources, wholes = [], []
    for arm, cases in arms:
        joined = cases.join(
            statuses.filter(*(pl.col(name).eq_missing(pl.lit(arm[name])) for name in ARM)).drop(ARM),
            on=["suite", "case_id"],
            how="left",
            maintain_order="left",
        ).with_columns(pl.col("calls", *ERRORS).fill_null(0).cast(pl.Int64))
        joined = joined.with_columns(pl.sum_horizontal(ERRORS).alias(ANY))
        whole = joined.sum().row(0, named=True)
        if not whole["calls"] and whole["counted"]:
            # the source tells of no call, but how many there were
            joined = joined.with_columns(pl.col("counted").alias("calls"), pl.col("failed").alias(ANY))
        wholes.append(whole)
        sources.append(joined.filter(pl.col("calls") > 0))
    places = [(at, name) for at in range(len(arms)) for name in (*ERRORS, ANY)]
    pairs = {"share": [(sources[at][name], sources[at]["calls"]) for at, name in places]}
    found = all_ratios(pairs, seed=seed, resamples=resamples, level=level)["share"]
    rows = []
    for (at, name), ratio in zip(places, found, strict=True):
        whole, source = wholes[at], sources[at]
        unknown = name != ANY and source.height > 0 and (not whole["calls"] or name not in told)
        if unknown or not source.height:
            ratio = Ratio(None, None, None, ratio.estimator, None)
        of = int(source["calls"].sum())
        rows.append(
            {
                **arms[at][0],
                "metric": name,
                "n": None if unknown or (not of and whole["reported"]) else int(source[name].sum()),
                "of": of,
                "estimate": ratio.estimate,
                "low": ratio.low,
                "high": ratio.high,
                "estimator": ratio.estimator,
                "reason": said(
                    _missing(whole, of, unknown),
                    f"of failed calls the source tells only {', '.join(told)}"
                    if name == ANY and len(told) < len(ERRORS) and whole["calls"]
                    else None,
                    ratio.reason,
                ),
            }
        )
    return pl.DataFrame(rows, schema=_SCHEMA)


def _told(card: Any) -> tuple[str, ...]:
    """The kinds of errors that the calls of a run can tell: all, unless its card says which its source knows."""
    statuses = () if card is None or card.imported is None else card.imported.statuses
    return tuple(name for name in ERRORS if not statuses or name in statuses)


def _missing(whole: dict[str, int], of: int, unknown: bool) -> str | None:
    """Why there is no rate, or which calls it leaves out."""
    reported = whole["reported"]
    if unknown:
        return "the source does not tell the kinds of errors apart"
    if not of:
        if reported:
            return f"nothing is known of {counted(reported, 'call')}"
        return "the source does not tell of calls" if whole["silent"] else "no call was made"
    if of < reported:
        return f"nothing is known of {reported - of} of {reported} calls"
    return f"{counted(whole['silent'], 'trial')} tell of no calls" if whole["silent"] else None
