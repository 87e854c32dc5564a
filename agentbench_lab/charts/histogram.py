"""How often each case is solved: always, never, or now and then."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentbench_lab.charts.theme import (
    ARM_COLOURS,
    INK,
    MOST_ARMS,
    SOFT,
    WIDTH,
    headline,
    nothing,
    themed,
)
from agentbench_lab.charts.words import counted, evidence, named, short_names, tied

if TYPE_CHECKING:
    import polars as pl

    from agentbench_lab.charts.theme import Drawing

_MOST_BARS = 25  # bars of one panel; beyond them neighbours are put together


def histogram(frame: pl.DataFrame) -> Drawing:
    """The share of cases by how many of their trials were solved, by arm, from 0 to 100 %, each with its interval.

    `frame` is a `metrics.histogram`. Only cases with the arm's usual number of judged trials are drawn, since 1 of 2 and
    1 of 5 are not the same; the others are counted in the subtitle. The whiskers are 95 % Wilson intervals of each bar
    by itself, cases being a sample.
    """
    import altair as alt
    import polars as pl

    from agentbench_lab.analysis.metrics.repeats import neighbours

    frame = named(frame) if frame.height else frame
    arms = list(frame["arm"].unique(maintain_order=True)) if frame.height else []
    rows: list[dict[str, Any]] = []
    kinds: dict[str, tuple[int, int, int, int]] = {}  # never, sometimes, always, all
    apart, unjudged = 0, 0
    for arm in arms:
        mine = frame.filter(pl.col("arm") == arm)
        unjudged += int(mine.filter(pl.col("judged") == 0)["cases"].sum())
        mine = mine.filter(pl.col("judged") > 0)
        if mine.is_empty():
            continue
        usual = mine.group_by("judged").agg(pl.col("cases").sum()).sort("cases", "judged").row(-1)[0]
        apart += int(mine.filter(pl.col("judged") != usual)["cases"].sum())
        counts: dict[int, int] = dict(
            mine.filter(pl.col("judged") == usual).select("solved", "cases").iter_rows()
        )
        whole = sum(counts.values())
        step = -(-(usual + 1) // _MOST_BARS)
        for row in neighbours(mine.filter(pl.col("judged") == usual), step).iter_rows(named=True):
            first, last = row["solved"], row["last"]
            rows.append(
                {
                    "arm": arm, "judged": usual, "at": first, "solved": str(first) if first == last else f"{first}–{last}",
                    "cases": row["cases"], "of": row["of"], "share": row["estimate"], "low": row["low"], "high": row["high"],
                }
            )  # fmt: skip
        kinds[arm] = (
            counts.get(0, 0),
            whole - counts.get(0, 0) - counts.get(usual, 0),
            counts.get(usual, 0),
            whole,
        )
    if not rows:
        return nothing("no case has a judged trial")
    drawn = pl.DataFrame(rows)
    shown = [arm for arm in arms if arm in kinds][:MOST_ARMS]
    drawn = drawn.filter(pl.col("arm").is_in(shown))
    claims = _claims(kinds)
    trials = sorted(drawn["judged"].unique())
    times = f"{trials[0]}" if len(trials) == 1 else f"{trials[0]} to {trials[-1]}"
    about = f"Bars: share of cases solved in 0, 1, ... of their {times} judged trials; on them: how many cases. Whiskers: 95% interval (Wilson, each bar by itself)."
    notes = []
    if apart:
        notes.append(f"Not drawn: {counted(apart, 'case')} with another number of judged trials.")
    if unjudged:
        notes.append(f"Not drawn: {counted(unjudged, 'case')} without a judged trial.")
    if len(kinds) > MOST_ARMS:
        notes.append(
            f"Drawn: the first {MOST_ARMS} of {len(kinds)} arms; {frame.height:,} rows in, {drawn.height:,} points drawn."
        )
    notes.append(evidence(frame.filter(pl.col("arm").is_in(shown))))
    columns = 1 if len(shown) == 1 else 2 if len(shown) in (2, 4) else 3
    width = (WIDTH - 44) / columns - 30
    bars = max(drawn.group_by("arm").len()["len"])
    titles = list(short_names(shown, int(width / 6)).values())
    drawn = drawn.with_columns(
        pl.col("arm").replace_strict(shown, titles).alias("panel"),
        pl.format("{} of {}", "cases", "of").alias("count"),
        pl.when(pl.col("cases") > 0)
        .then(pl.col("cases").cast(pl.String))
        .otherwise(pl.lit(""))
        .alias("words"),
        pl.max_horizontal("high", "share").alias("top"),
    )
    order = list(dict.fromkeys(drawn.sort("at")["solved"]))
    x = alt.X(
        "solved:O", sort=order, title="trials solved", scale=alt.Scale(paddingInner=0.28, paddingOuter=0.2)
    ).axis(labelAngle=0, grid=False, labelOverlap=True)
    y = (
        alt.Y("share:Q", title=None)
        .scale(domain=[0, 1], nice=False)
        .axis(format=".0%", values=[0, 0.5, 1] if columns > 1 else [0, 0.25, 0.5, 0.75, 1])
    )
    tips = [
        alt.Tooltip("arm:N"),
        alt.Tooltip("solved:N", title="trials solved"),
        alt.Tooltip("judged:Q", title="of"),
        alt.Tooltip("count:N", title="cases"),
    ]
    tips += [alt.Tooltip(f"{name}:Q", format=".1%") for name in ("share", "low", "high")]
    base = alt.Chart().encode(x=x)
    step = width / bars
    plot = alt.layer(
        base.mark_bar(color=ARM_COLOURS[0], opacity=0.75).encode(y=y, tooltip=tips),
        base.mark_rule(color=INK, strokeWidth=1.4, opacity=0.8).encode(y=alt.Y("low:Q"), y2="high:Q"),
        base.mark_text(
            color=INK, opacity=SOFT, fontSize=10.5 if step > 16 else 8.5, dy=-6, baseline="bottom"
        ).encode(y=alt.Y("top:Q"), text="words:N"),
        data=drawn.select(
            "panel", "arm", "judged", "solved", "count", "words", "share", "low", "high", "top"
        ),
    ).properties(width=width, height=220 if columns == 1 else 130 if columns == 2 else 96)
    chart: Drawing = plot
    if len(shown) > 1:
        header = alt.Header(
            title=None,
            labelColor=INK,
            labelFontSize=11,
            labelAnchor="start",
            labelPadding=6,
            labelLimit=width + 10,
        )
        chart = plot.facet(
            facet=alt.Facet("panel:N", sort=titles, header=header),
            columns=columns,
            spacing={"row": 18, "column": 30},
        ).resolve_scale(x="independent" if len(trials) > 1 else "shared")
    chart = chart.properties(title=headline(claims, [about, *notes]))
    spoken = " ".join(
        f"{arm}: "
        + ", ".join(
            f"{row['solved']} of {row['judged']} solved: {row['count']} {'case' if row['count'] == '1' else 'cases'}"
            for row in drawn.filter(pl.col("arm") == arm).iter_rows(named=True)
        )
        + "."
        for arm in shown
    )
    return themed(chart, f"{'; '.join(claims)}. {spoken} {' '.join(notes)}")  # fmt: skip


def _claims(kinds: dict[str, tuple[int, int, int, int]]) -> list[str]:
    if len(kinds) == 1:
        ((arm, (never, sometimes, always, whole)),) = kinds.items()
        return [
            f"{arm} solves {always} of {whole} cases every time, {never} never, and {sometimes} now and then"
        ]
    unsure = {arm: some / whole for arm, (_, some, _, whole) in kinds.items()}
    ends = []
    for value in (max(unsure.values()), min(unsure.values())):
        arms = [arm for arm, share in unsure.items() if share == value]
        _, some, _, whole = kinds[arms[0]]
        ends.append(f"{tied(arms)} ({some} of {whole} cases)")
    if len(set(unsure.values())) == 1:
        return [f"The share of cases that are solved only now and then is the same for all {len(kinds)} arms"]
    return [f"Most cases solved only now and then: {ends[0]}; fewest: {ends[1]}"]
