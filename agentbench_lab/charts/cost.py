"""What a solved task costs."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from agentbench_lab.charts.theme import (
    ARM_COLOURS,
    INK,
    MOST_ARMS,
    SOFT,
    WIDTH,
    headline,
    money_axis,
    nothing,
    sentence,
    themed,
)
from agentbench_lab.charts.words import (
    DOUBT,
    evidence,
    listed,
    marked,
    per_arm,
    short_names,
    shortened,
    usd,
    users_said,
)

if TYPE_CHECKING:
    import polars as pl

    from agentbench_lab.charts.theme import Drawing


def cost(frame: pl.DataFrame, *, doubted: Collection[tuple[str, str | None]] = ()) -> Drawing:
    """The money spent per solved trial by arm, with 95 % intervals, the cheapest on top.

    `frame` is a `metrics.cost`. A hollow point is a lower bound: some trial's cost is unknown, or known in part. An arm without a number
    (nothing solved, nothing known) keeps its row, which says why. Neither a lower bound nor an arm that is `doubted`
    (driver and model, see `tables.doubted`) is in the title's numbers. The axis starts at $0; it is logarithmic only where
    the arms differ more than thirtyfold, and says so.
    """
    import altair as alt
    import polars as pl

    if frame.is_empty():
        return nothing("nobody spent anything")
    asked = frame.height
    solved, said = marked(frame.filter(pl.col("metric") == "per_solved"), doubted)
    known = solved.filter(pl.col("estimate").is_not_null() & pl.col("estimate").is_finite())
    if known.is_empty():
        why = "; ".join(
            f"{row['arm']}: {row['reason'] or 'not known'}" for row in solved.head(8).iter_rows(named=True)
        )
        reasons = list(solved["reason"].unique(maintain_order=True))
        text = reasons[0] if len(reasons) == 1 and reasons[0] else why
        return sentence("What a solved trial costs is not known", text or "nothing is known of any cost")
    unknown = solved.filter(pl.col("estimate").is_null() | ~pl.col("estimate").is_finite())
    known = known.sort("estimate", maintain_order=True)
    shown = pl.concat([known.head(MOST_ARMS), unknown.head(max(0, MOST_ARMS - known.height))])
    ends = [
        row[name]
        for row in known.iter_rows(named=True)
        for name in ("estimate", "low", "high")
        if not _open(row[name])
    ]
    scale, ticks, log = money_axis(ends)
    low_end, right = scale.domain
    short = short_names(list(shown["arm"]), 38)
    rows = [_row(row, short[row["arm"]], low_end, right) for row in shown.iter_rows(named=True)]
    order = [row["label"] for row in rows]
    margin = min(6.3 * max(map(len, order)) + 16, 250)
    words = 6.0 * max(len(row["words"]) for row in rows if row["estimate"] is not None) + 16
    width = round(WIDTH - margin - words)
    title = "dollars per solved trial" + (", logarithmic axis" if log else "")
    y = alt.Y("label:N", sort=order, title=None).axis(
        labelColor=INK, labelOpacity=1, labelLimit=240, grid=True
    )
    x = alt.X("estimate:Q", title=title, scale=scale).axis(format="$,.3~r", values=ticks, labelOverlap=True)
    tips = [
        alt.Tooltip("arm:N"),
        *(alt.Tooltip(f"{name}:Q", format="$,.4~r") for name in ("estimate", "low", "high", "total")),
    ]
    tips += [
        alt.Tooltip("solved:Q"),
        alt.Tooltip("known:N", title="trials with a cost"),
        alt.Tooltip("bound:N", title="lower bound"),
    ]
    base = alt.Chart(pl.DataFrame(rows, infer_schema_length=None)).encode(y=y)
    there = base.transform_filter("isValid(datum.estimate)")
    layers = [
        there.mark_rule(strokeWidth=2.4, opacity=0.5, color=ARM_COLOURS[0]).encode(
            x=alt.X("from:Q"), x2="to:Q"
        ),
        there.mark_point(size=80, opacity=1, strokeWidth=2, color=ARM_COLOURS[0]).encode(
            x=x,
            tooltip=tips,
            fill=alt.condition("datum.bound === 'yes'", alt.value("transparent"), alt.value(ARM_COLOURS[0])),
        ),
        there.mark_text(align="left", fontSize=11, color=INK, dx=12).encode(
            x=alt.value(width), text="words:N"
        ),
        base.transform_filter("!isValid(datum.estimate)")
        .mark_text(align="left", fontSize=11, fontStyle="italic", color=INK, opacity=SOFT, dx=4)
        .encode(x=alt.value(0), text="words:N"),
    ]
    chart = alt.layer(*layers).properties(width=width, height={"step": 24})
    estimators = listed(
        per_arm(list(known["estimator"].drop_nulls().unique(maintain_order=True)), known.height)
    )
    about = f"Points: all that was spent, failures too, divided by the trials solved; bars: 95% interval ({estimators})."
    about += (
        " Hollow, ≥: a lower bound, some cost is unknown or known in part."
        if known["lower_bound"].any()
        else ""
    )
    about += " Logarithmic axis." if log else ""
    subtitle = [about]
    if unknown.height:
        subtitle.append(
            "Without a number: "
            + listed(
                [f"{row['arm']} ({row['reason'] or 'not known'})" for row in unknown.iter_rows(named=True)], 3
            )
            + "."
        )
    if shown.height < solved.height:
        subtitle.append(
            f"Drawn: {shown.height} of {solved.height:,} arms, the cheapest; {asked:,} rows in, {shown.height} points drawn."
        )
    subtitle += [*users_said(solved), *said, *_not_claimed(known), evidence(solved)]
    claims = [_claim(known)]
    spoken = " ".join(f"{row['arm']}: {row['words']}." for row in rows)
    chart = chart.properties(title=headline(claims, subtitle))
    return themed(chart, f"{claims[0]}. {spoken} {subtitle[-1]}.")  # fmt: skip


def _open(end: float | None) -> bool:
    return end is None or not math.isfinite(end)


def _row(row: Mapping[str, Any], label: str, left: float, right: float) -> dict[str, Any]:
    """What is drawn of an arm. An interval without an end runs to the edge."""
    estimate = row["estimate"]
    there = estimate is not None and math.isfinite(estimate)
    words = row["reason"] or "not known"
    start, end = None, None
    if there:
        words = f"{'≥ ' if row['lower_bound'] else ''}{usd(estimate)}"
        if row["low"] is not None:
            high = "no end" if row["high"] is None or not math.isfinite(row["high"]) else usd(row["high"])
            words += f" [{usd(row['low'])}, {high}]"
            start, end = max(row["low"], left), right if _open(row["high"]) else row["high"]
        words += f", {row['solved']:,} solved"
        if row["lower_bound"]:
            words += f", {row['n']:,} of {row['of']:,} costs known"
    return {
        "arm": row["arm"], "label": label, "estimate": estimate if there else None,
        "low": row["low"], "high": None if _open(row["high"]) else row["high"], "from": start, "to": end,
        "total": row["total"], "solved": row["solved"], "known": f"{row['n']} of {row['of']}",
        "bound": "yes" if row["lower_bound"] else "no", "words": words if there else shortened(words, 90),
    }  # fmt: skip


def _sure(known: pl.DataFrame) -> pl.DataFrame:
    """The arms that a title may speak of: all of their costs are known, and their published numbers follow."""
    import polars as pl

    whole = known.filter(~pl.col("lower_bound"))
    sure = whole.filter(~pl.col("arm").str.ends_with(DOUBT))
    return sure if sure.height else whole


def _not_claimed(known: pl.DataFrame) -> list[str]:
    left_out = known.join(_sure(known).select("arm"), on="arm", how="anti", maintain_order="left")
    if left_out.is_empty() or left_out.height == known.height:
        return []
    return [f"Not in the title: {listed(list(left_out['arm']))}."]


def _claim(known: pl.DataFrame) -> str:
    """`known` is sorted, the cheapest first."""
    arms, known = known, _sure(known)
    if known.is_empty():
        first = arms.row(0, named=True)
        more = f", and of {arms.height - 1} more in part" if arms.height > 1 else ""
        return (
            f"What a solved trial costs is not known: {first['arm']} tells the cost of {first['n']:,} of "
            f"{first['of']:,} trials{more}"
        )
    first, last = known.row(0, named=True), known.row(-1, named=True)

    def money(row: Mapping[str, Any]) -> str:
        return usd(row["estimate"])

    if known.height == 1:
        return f"A solved trial costs {money(first)} with {first['arm']}"
    more = f"{last['estimate'] / first['estimate']:.1f} times " if first["estimate"] > 0 else ""
    if more == "1.0 times " or first["estimate"] == last["estimate"]:
        return f"A solved trial costs {money(first)} with {first['arm']}, about the same with every arm"
    behind = (
        f", {more}as much with {last['arm']} ({money(last)})"
        if more
        else f", {money(last)} with {last['arm']}"
    )
    return f"A solved trial costs {money(first)} with {first['arm']}{behind}"
