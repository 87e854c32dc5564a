"""The outcome strip."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from agentbench_lab.charts.shares import shares
from agentbench_lab.charts.theme import (
    CLASSES,
    INK,
    MOST_MARKS,
    SOFT,
    WIDTH,
    class_words,
    headline,
    nothing,
    themed,
)
from agentbench_lab.charts.words import arm_labels, evidence, tied
from agentbench_lab.ladder import RUNG_NAMES, in_order

if TYPE_CHECKING:
    import altair as alt
    import polars as pl

    from agentbench_lab.charts.theme import Drawing


def outcomes(frame: pl.DataFrame) -> Drawing:
    """The outcome strip: a tile per trial, a column per rung, cases from the top in the suite's order.

    `frame` is a `metrics.strip`: a row per trial. Trials of one case stand side by side; each arm has its own band,
    with every case at the same place, so that bands can be compared. Excluded trials are hollow. More than `MOST_MARKS`
    trials are not drawn one by one: then each arm and group has a bar of its shares, with 95 % intervals.
    """
    import altair as alt
    import polars as pl

    if frame.is_empty():
        return nothing("there is no outcome to draw")
    frame = frame.with_columns(
        pl.Series("arm", arm_labels(frame), dtype=pl.String),
        pl.col("outcome_class").fill_null("excluded").alias("kind"),
    )
    claims, asked = _outcome_claims(frame), frame.height
    counts = {kind: int((frame["kind"] == kind).sum()) for kind in CLASSES}
    if asked > MOST_MARKS:
        return shares(frame, claims)
    tiles, texts, height = _tiles(frame)
    key, x = [], 0.0
    for kind, word in class_words(frame).items():
        if counts[kind] or kind != "excluded":
            key.append(
                {
                    "kind": kind,
                    "x": x,
                    "x2": x + 18,
                    "y": 2,
                    "y2": 15,
                    "middle": x + 9,
                    "centre": 8.5,
                    "glyph": 49,
                }
            )
            texts.append({"x": x + 24, "y": 9, "text": f"{word} {counts[kind]:,}", "opacity": 1.0})
            x += 48 + 6.6 * len(texts[-1]["text"])

    def styled(column: int) -> alt.Scale:
        return alt.Scale(domain=list(CLASSES), range=[style[column] for style in CLASSES.values()])

    def pixel(channel: Any, field: str) -> Any:
        return channel(field, type="quantitative", scale=None, axis=None)

    def marks(base: alt.Chart, tips: Sequence[str]) -> list[alt.Chart]:
        excluded = alt.datum.kind == "excluded"
        said = [alt.Tooltip(f"{tip}:N") for tip in tips]
        return [
            base.mark_rect(cornerRadius=1.5 if asked <= 1000 else 0, aria=False, strokeWidth=0.8).encode(
                x=pixel(alt.X, "x"), y=pixel(alt.Y, "y"), x2="x2", y2="y2", fill=alt.Fill("kind:N", scale=styled(1), legend=None),
                stroke=alt.condition(excluded, alt.value(CLASSES["excluded"][3]), alt.value("transparent")),
                tooltip=said,
            ),
            base.transform_filter(~excluded)
            .mark_point(filled=False, strokeWidth=1.5, strokeCap="round", opacity=1, aria=False)
            .encode(  # it lies over its tile, and is what is pointed at
                tooltip=said,
                x=pixel(alt.X, "middle"), y=pixel(alt.Y, "centre"), size=alt.Size("glyph:Q", scale=None, legend=None),
                shape=alt.Shape("kind:N", scale=styled(2), legend=None), stroke=alt.Stroke("kind:N", scale=styled(3), legend=None),
            ),
        ]  # fmt: skip

    words = alt.Chart(alt.InlineData(texts)).mark_text(
        align="left", baseline="middle", aria=False, fontSize=11, color=INK
    )
    ink = alt.Opacity("opacity:Q", scale=None, legend=None)
    words = words.encode(x=pixel(alt.X, "x"), y=pixel(alt.Y, "y"), text="text:N", opacity=ink)
    tips = ("case_id", "group", "arm", "trial", "request", "outcome", "excluded", "reasons")
    layers = [*marks(alt.Chart(tiles), tips), *marks(alt.Chart(alt.InlineData(key)), ()), words]
    column = "rung" if frame["group"].is_in(list(RUNG_NAMES)).any() else "group"
    unsaid = "" if "unsafe" in class_words(frame) else " Nothing is known of safety."
    subtitle = [
        f"A tile a trial, a column a {column}; cases from the top in the suite's order, a case's trials side by side.{unsaid}",
        evidence(frame),
    ]
    chart = alt.layer(*layers).properties(width=WIDTH - 12, height=height, title=headline(claims, subtitle))
    spoken = "; ".join(f"{word} {counts[kind]} of {asked}" for kind, word in class_words(frame).items())
    return themed(chart, f"{'; '.join(claims)}. {spoken}. {_outcome_words(frame)} {subtitle[1]}.")


def _outcome_claims(frame: pl.DataFrame) -> list[str]:
    import polars as pl

    claims = []
    # what the source of an imported trial does not say is not known to be safe
    measured = "unsafe" in class_words(frame)
    counts = frame.group_by("arm", maintain_order=True).agg(
        (pl.col("kind") == "success").sum().alias("good"),
        (pl.col("kind") == "unsafe").sum().alias("bad"),
        (pl.col("kind") != "excluded").sum().alias("judged"),
    )
    for arm, good, bad, judged in counts.iter_rows():
        unsafe = f", {_unsafe(bad)}" if measured else ""
        claims.append(f"{arm}: {good} of {judged} trials succeed{unsafe}")
    if len(claims) > 4:
        rated = counts.filter(pl.col("judged") > 0).with_columns(
            (pl.col("good") / pl.col("judged")).alias("rate")
        )
        if rated.height > 1:
            best, worst = (
                f"{tied(list(each['arm']))} ({each['good'][0]} of {each['judged'][0]} trials)"
                for each in (
                    rated.filter(pl.col("rate") == pl.col("rate").max()),
                    rated.filter(pl.col("rate") == pl.col("rate").min()),
                )
            )
            claims = [f"Most successes of {len(claims)} arms: {best}; fewest: {worst}"]
            bad = int(counts["bad"].sum())
            of = f"{bad} of all {int(counts['judged'].sum()):,} judged trials"
            claims += [f"{of} {'are' if bad > 1 else 'is'} unsafe"] if bad else []
    return claims


def _unsafe(bad: int) -> str:
    return f"{bad or 'none'} {'are' if bad > 1 else 'is'} unsafe"


def _outcome_words(frame: pl.DataFrame) -> str:
    import polars as pl

    by_group = frame.group_by("arm", "group", maintain_order=True).agg(
        (pl.col("kind") == "success").sum().alias("good"),
        (pl.col("kind") == "unsafe").sum().alias("bad"),
        (pl.col("kind") != "excluded").sum().alias("judged"),
    )
    unsafe = ", {bad}/{judged} unsafe" if "unsafe" in class_words(frame) else ""
    return " ".join(
        f"{row['arm']} {row['group']}: {row['good']}/{row['judged']} success{unsafe.format(**row)}."
        for row in by_group.iter_rows(named=True)
    )


def _tiles(frame: pl.DataFrame) -> tuple[pl.DataFrame, list[dict[str, Any]], float]:
    """Where each trial's tile lies, in pixels; the texts around them; and the height of it all."""
    import polars as pl

    groups, arms = in_order(frame["group"]), list(frame["arm"].unique(maintain_order=True))
    cases = frame.select("group", "suite", "case_id").unique(maintain_order=True)
    cases = cases.with_columns(pl.int_range(pl.len()).over("group").alias("case_number"))
    most_cases, trials = int(cases["case_number"].max()) + 1, int(frame["trial"].max())  # type: ignore[arg-type]
    wrap = -(-most_cases // 40)  # columns of cases within a group
    rows = -(-most_cases // wrap)
    column = min((WIDTH - 2) / len(groups), 140.0)
    tall = min(max(200 / rows, 4.0), 13.0)
    wide = (column - 10) / (trials * wrap)
    head = 18 if len(arms) > 1 else 0  # the arm's name
    top, band = 52.0, head + rows * tall + 30
    ordered = pl.DataFrame({"group": groups, "column": range(len(groups))})
    bands = pl.DataFrame({"arm": arms, "band": range(len(arms))})
    gap = min(1.0, wide / 6)
    left = pl.col("column") * column + ((pl.col("case_number") // rows) * trials + pl.col("trial") - 1) * wide
    upper = top + pl.col("band") * band + head + (pl.col("case_number") % rows) * tall
    tiles = (
        frame.join(cases, on=["group", "suite", "case_id"], maintain_order="left")
        .join(ordered, on="group", maintain_order="left")
        .join(bands, on="arm", maintain_order="left")
        .sort("case_number", maintain_order=True)
        .with_columns(left.round(2).alias("x"), upper.round(2).alias("y"))
        .with_columns(
            (pl.col("x") + wide - gap).round(2).alias("x2"),
            (pl.col("y") + tall - gap).round(2).alias("y2"),
            (pl.col("x") + (wide - gap) / 2).round(2).alias("middle"),
            (pl.col("y") + (tall - gap) / 2).round(2).alias("centre"),
            pl.lit(round((min(wide, tall) * 0.62) ** 2, 1)).alias("glyph"),
        )
        .select(
            "x", "x2", "y", "y2", "middle", "centre", "glyph", "kind", "arm", "group", "case_id", "trial", "outcome",
            pl.col("excluded").cast(pl.String), "reasons", "request",
        )
    )  # fmt: skip
    texts = [
        {"x": n * column, "y": top - 12, "text": group, "opacity": 1.0} for n, group in enumerate(groups)
    ]
    for n, arm in enumerate(arms):
        if head:
            texts.append({"x": 0.0, "y": top + n * band + 8, "text": arm, "opacity": 1.0})
        for m, group in enumerate(groups):
            kinds = frame.filter((pl.col("arm") == arm) & (pl.col("group") == group))["kind"]
            count = f"{(kinds == 'success').sum()}/{(kinds != 'excluded').sum()}"
            y = top + n * band + head + rows * tall + 9
            texts.append({"x": m * column, "y": y, "text": count, "opacity": SOFT})
    return tiles, texts, top + len(arms) * band - 12
