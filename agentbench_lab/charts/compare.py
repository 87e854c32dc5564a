"""Two arms on the same cases."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from agentbench_lab.charts.theme import ARM_COLOURS, INK, MOST_MARKS, SOFT, UNSAFE, WIDTH, headline, themed
from agentbench_lab.charts.words import evidence, label_expression, shortened
from agentbench_lab.points import with_ends

if TYPE_CHECKING:
    import polars as pl

    from agentbench_lab.analysis.compare import Comparison
    from agentbench_lab.charts.theme import Drawing


def compare(found: Comparison) -> Drawing:
    """The paired difference by rung: its mean with interval, and every case that one arm solves more often.

    `found` is a `compare.compare(a, b)`. The difference b - a runs from -100 to +100 points in every such chart.
    """
    import altair as alt
    import polars as pl

    by_group, cases = found.by_group(), found.frame()
    groups = list(by_group["group"]) if by_group.height > 2 else list(by_group["group"][:-1])
    short_a, short_b = (shortened(side.name, 26) for side in (found.a, found.b))
    more, less = f"case: more often by {short_b}", f"less often by {short_b}"
    mean = "mean of the cases, 95% interval"
    marks = cases.filter(pl.col("verdict") != "same").with_columns(
        pl.when(pl.col("verdict") == "fix").then(pl.lit(more)).otherwise(pl.lit(less)).alias("kind")
    )
    side_by_side = ["group", "difference", "kind"]
    marks = marks.with_columns(
        # beside each other, closer where they are many, and beside the mean's place in the middle
        pl.when(pl.len().over(side_by_side) > 1)
        .then(pl.int_range(pl.len()).over(side_by_side) / (pl.len().over(side_by_side) - 1) * 1.7 - 0.85)
        .otherwise(0.45)
        .alias("at"),
        (pl.format("{}/{}", "n_a", "of_a")).alias("a"),
        (pl.format("{}/{}", "n_b", "of_b")).alias("b"),
    )
    drawn = marks.select("group", "difference", "kind", "at", "case_id", "a", "b", pl.lit(46.0).alias("size"))
    if drawn.height > MOST_MARKS:
        drawn = _together(marks)
    means = by_group.filter(pl.col("group").is_in(groups)).with_columns(
        pl.lit(mean).alias("kind"),
        pl.format("+{} −{}", "fixes", "regressions").alias("changes"),
        pl.format("of {}", "cases").alias("of"),
        pl.when(pl.col("new_unsafe") > 0)
        .then(pl.format("{} unsafe", "new_unsafe"))
        .otherwise(pl.lit(""))
        .alias("unsafe"),
    )

    bands = alt.Scale(type="band", paddingInner=0.1, paddingOuter=0.05)
    under = alt.Axis(
        labelExpr=label_expression(groups), labelAngle=0, labelLineHeight=12, labelFontSize=min(10.5, (WIDTH - 80) / len(groups) / 5.8),
        labelColor=INK, grid=False, labelOverlap=False,
    )  # fmt: skip
    if len(groups) > 12:
        under = alt.Axis(labelAngle=-40, labelColor=INK, grid=False)
    across = alt.X("group:N", sort=groups, title=None, scale=bands, axis=alt.Axis(labels=False, grid=False))
    beside = alt.XOffset("at:Q").scale(domain=[-1, 1])
    y = alt.Y("difference:Q", title=f"{short_b} − {short_a}, points").scale(domain=[-1, 1], nice=False)
    y = y.axis(
        labelExpr="datum.value ? format(100 * datum.value, '+.0f') : '0'",
        values=[-1, -0.5, 0, 0.5, 1],
        titleLimit=300,
        titleFontSize=min(11, 520 / len(f"{short_b} − {short_a}, points")),
    )
    kinds = [more, less, mean]
    key = alt.Legend(title=None, orient="top", labelLimit=300, symbolSize=80)
    style = {
        "color": alt.Color("kind:N", sort=kinds, legend=key).scale(
            domain=kinds, range=[ARM_COLOURS[0], ARM_COLOURS[1], INK]
        ),
        "shape": alt.Shape("kind:N", sort=kinds, legend=key).scale(
            domain=kinds, range=["triangle-up", "triangle-down", "diamond"]
        ),
    }
    tips = [alt.Tooltip("case_id:N"), alt.Tooltip("group:N", title="rung")]
    tips += [
        alt.Tooltip(f"{one}:N", title=f"solved by {name}")
        for one, name in (("a", found.a.name), ("b", found.b.name))
    ]
    shares = [alt.Tooltip(f"{name}:Q", format="+.1%") for name in ("difference", "low", "high")]
    base = alt.Chart(means).encode(x=across)
    zero = alt.Chart(alt.InlineData([{"difference": 0}]))
    plot = alt.layer(
        zero.mark_rule(color=INK, strokeWidth=1.2).encode(y=y),
        alt.Chart(drawn).mark_point(filled=True, opacity=0.7).encode(x=across, xOffset=beside, y=y, size=alt.Size("size:Q", scale=None, legend=None), tooltip=tips, **style),
        base.mark_rule(strokeWidth=2.6, opacity=0.55, color=INK).encode(y=alt.Y("low:Q"), y2="high:Q"),
        base.mark_point(filled=True, size=90, opacity=1).encode(y=y, tooltip=[alt.Tooltip("group:N", title="rung"), *shares], **style),
    ).properties(width=WIDTH - 80, height=260)  # fmt: skip
    numbers = alt.layer(
        base.mark_text(fontSize=11, dy=-7, color=INK).encode(x=across.axis(under), text="changes:N"),
        base.mark_text(fontSize=11, dy=7, color=INK, opacity=SOFT).encode(x=across.axis(under), text="of:N"),
        base.mark_text(fontSize=11, dy=21, color=UNSAFE, fontWeight=600).encode(
            x=across.axis(under), text="unsafe:N"
        ),
    ).properties(width=WIDTH - 80, height=62 if found.new_unsafe else 32)
    cut = ""
    if drawn.height < marks.height:
        cut = f" Cases with the same difference are one mark, the larger the more: {marks.height:,} rows in, {drawn.height:,} points drawn."
    rates, test = found.evidence.rsplit("; ", 1)
    unsafe = f"; unsafe: cases where only {found.b.name} did something unsafe" if found.new_unsafe else ""
    about = f"Below: cases solved more and less often, of the paired ones{unsafe}. Rungs are not corrected for their number."
    subtitle = [
        line for text in (found.mixed, rates, f"{test}; {found.solved.estimator}", f"{about}{cut}", _sides(found))
        for line in textwrap.wrap(text, 118)
    ]  # fmt: skip
    claims = [found.claim]
    if found.new_unsafe:
        count = len(found.new_unsafe)
        claims.append(f"{found.b.name} is newly unsafe on {count:,} {'case' if count == 1 else 'cases'}")
    chart = alt.vconcat(plot, numbers, spacing=4).properties(title=headline(claims, subtitle))
    words = " ".join(
        f"{row['group']}: {with_ends(row['difference'], row['low'], row['high'])} points, "
        f"{row['fixes']} more often, {row['regressions']} less often, of {row['cases']}."
        for row in means.iter_rows(named=True)
    )
    return themed(chart, f"{found.sentence} {words} {_sides(found)}.")


def _together(marks: pl.DataFrame) -> pl.DataFrame:
    """Cases with the same difference, to the point, as one mark: the area grows with their number."""
    import polars as pl

    alike = ("group", "kind", pl.col("difference").round(2).alias("difference"))
    return (
        marks.group_by(alike, maintain_order=True)
        .agg(pl.len().alias("n"))
        .with_columns(
            pl.lit(0.45).alias("at"),
            pl.format(
                "{} {}", "n", pl.when(pl.col("n") == 1).then(pl.lit("case")).otherwise(pl.lit("cases"))
            ).alias("case_id"),
            pl.lit("").alias("a"),
            pl.lit("").alias("b"),
            (46 + 400 * pl.col("n") / pl.col("n").max()).alias("size"),
        )
        .select("group", "difference", "kind", "at", "case_id", "a", "b", "size")
    )


def _sides(found: Comparison) -> str:
    """What stands behind both sides' numbers."""
    import polars as pl

    sides = [(side.name, ", ".join(side.evidence)) for side in (found.a, found.b)]
    return evidence(pl.DataFrame(sides, schema=["arm", "evidence"], orient="row"))
