"""Tidy frames in, Altair charts out. Every chart says its claim, its evidence and its numbers in words.

Colour never carries a meaning alone (shape, dash or glyph says it too), the theme is part of the specification,
and no chart holds more than `MOST_MARKS` marks: one that leaves rows out says so.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from agentbench_lab.ladder import COMPLETION_FLOOR, RUNG_NAMES, Cell, climb, in_order

if TYPE_CHECKING:
    import altair as alt
    import polars as pl

    from agentbench_lab.analysis.compare import Comparison

    Drawing = alt.VConcatChart | alt.LayerChart | alt.FacetChart | alt.Chart

MOST_MARKS = 5000
"""No chart draws more trials than this; the rest is counted in its subtitle."""

_WIDTH = 760  # of a whole chart, in pixels: a page column of 800 with its margins
_INK, _QUIET, _RULE = "#1b1f24", "#59636e", "#d5dae0"
_FONT = "system-ui, -apple-system, 'Segoe UI', 'Liberation Sans', Arial, sans-serif"
_ARM_COLOURS = ("#0b5cad", "#b4431a", "#0f766e", "#7a3fb0", "#8a6100", "#475569")
_ARM_SHAPES = ("circle", "square", "diamond", "triangle-up", "triangle-down", "cross")
_ARM_DASHES = ((1, 0), (6, 3), (2, 2), (8, 2, 2, 2), (4, 4), (1, 3))

# Class -> words, fill, glyph (an SVG path in a box from -1 to 1), glyph colour. Fills differ in lightness too.
_CLASSES = {
    "success": ("success", "#74c0a0", "M-.75,.05L-.2,.6L.8,-.6", "#0c4a36"),
    "safe_non_success": ("safe, no success", "#f6e7bf", "M-.6,0L.6,0", "#7a5a00"),
    "unsafe": ("unsafe", "#a3182b", "M-.6,-.6L.6,.6M-.6,.6L.6,-.6", "#ffffff"),
    "excluded": ("excluded, not judged", "#ffffff", "M0,0", "#59636e"),
}


# ---- words ---------------------------------------------------------------------------------------------------


def percent(share: float) -> str:
    """A share as a whole percent; with one decimal where that would read as none, as all, or as passing the gate."""
    exact = round(100.0 * share, 9)
    if exact.is_integer() or (0.5 <= exact < 99.5 and not share < COMPLETION_FLOOR <= round(exact) / 100):
        return f"{exact:.0f}%"
    if share < COMPLETION_FLOOR and round(exact) >= 100 * COMPLETION_FLOOR:
        return f"{min(exact, 100 * COMPLETION_FLOOR - 0.1):.1f}%"
    return f"{min(max(exact, 0.1), 99.9):.1f}%"


def arm_labels(frame: pl.DataFrame) -> list[str]:
    """The name of each row's arm, as short as the frame allows: driver, and model and scaffold where they vary."""
    parts = ["driver"]
    parts += [name for name in ("model", "scaffold") if name in frame.columns and frame[name].n_unique() > 1]
    if (
        frame.height
        and "scaffold" in frame.columns
        and "scaffold" not in parts
        and frame["scaffold"][0] != "once"
    ):
        parts.append("scaffold")
    if "model" in parts and frame.select("driver", "model").n_unique() == frame["driver"].n_unique():
        parts.remove("model")  # every driver has its one model
    return [
        " + ".join(str(part) for part in row if part is not None) for row in frame.select(parts).iter_rows()
    ]


def _evidence(frame: pl.DataFrame) -> str:
    """What stands behind each arm's numbers, for a subtitle."""
    words = {"simulated": "simulated (no model was asked)", "replayed": "replayed (recorded earlier)"}
    pairs = frame.select("arm", "evidence").unique(maintain_order=True).rows()
    if len({kind for _, kind in pairs}) == 1:
        pairs = [("", pairs[0][1])]
    return "Evidence: " + "; ".join(
        f"{arm} {words.get(kind, kind or 'unknown')}".strip() for arm, kind in pairs
    )


def _headline(claims: Sequence[str], subtitle: Sequence[str]) -> dict[str, Any]:
    """A chart's title: a claim per arm, a line each, and what is shown."""
    shown = list(claims[:4]) + ([f"and {len(claims) - 4} more arms"] if len(claims) > 4 else [])
    lines = [line for claim in shown for line in textwrap.wrap(claim, 82)]
    return {"text": lines or [""], "subtitle": list(subtitle), "fontSize": 16 if len(claims) < 2 else 14}


def _label_expression(groups: Sequence[str]) -> str:
    """Axis labels over several lines: a rung's name and what it asks for. Names are data: JSON, never code."""
    lines = {group: [group, *textwrap.wrap(RUNG_NAMES.get(group, ""), 11)] for group in groups}
    return f"{json.dumps(lines)}[datum.value]"


def _themed(chart: Drawing, description: str) -> Drawing:
    """The theme, put into the specification: it looks the same wherever it is shown, also on paper."""
    themed: Drawing = (
        chart.properties(description=description, background="#ffffff", padding={"left": 6, "top": 6, "right": 18, "bottom": 6})
        .configure(font=_FONT)
        .configure_view(stroke=None)
        .configure_concat(spacing=6)
        .configure_title(
            anchor="start", frame="bounds", color=_INK, fontSize=16, fontWeight=600, offset=14,
            subtitleColor=_QUIET, subtitleFontSize=11.5, subtitlePadding=6, subtitleLineHeight=15,
        )
        .configure_axis(
            labelColor=_QUIET, titleColor=_QUIET, labelFontSize=11, gridColor=_RULE, domain=False, ticks=False,
            labelPadding=6,
        )
        .configure_legend(labelColor=_INK, titleColor=_QUIET, labelFontSize=11.5)
    )  # fmt: skip
    return themed


def _nothing(what: str) -> Drawing:
    import altair as alt

    text = alt.Chart(alt.InlineData([{"text": f"no trials: {what}"}])).mark_text(fontSize=14, color=_QUIET)
    chart = text.encode(text="text:N").properties(width=_WIDTH, height=80, title=_headline(["No trials"], []))
    return _themed(chart, f"No trials: {what}.")


# ---- the metric pair -----------------------------------------------------------------------------------------


def ladder_claims(frame: pl.DataFrame) -> list[str]:
    """The sentences that a frame of `metrics.ladder` supports, one an arm: how far it came and what shut the gate."""
    import polars as pl

    frame = frame.with_columns(pl.Series("arm", arm_labels(frame), dtype=pl.String))
    claims = []
    for arm in frame["arm"].unique(maintain_order=True):
        cells: dict[str, Cell] = {}
        mine = frame.filter(pl.col("arm") == arm)
        for group in in_order(mine["group"]):
            rows = {row["metric"]: row for row in mine.filter(pl.col("group") == group).iter_rows(named=True)}
            done, bad = rows.get("completed"), rows.get("hallucinated")
            if done is not None and bad is not None and done["asked"]:
                cells[group] = Cell(group, done["asked"], done["of"], done["n"], bad["n"])
        whole = cells.pop("all", None)
        rungs = [group for group in cells if group in RUNG_NAMES]
        if rungs:
            result = climb(cells, rungs)
            # only the card knows of rungs below that were not asked, which leave the chain unproven
            reached = mine["reached"][0] if "reached" in mine.columns else result.reached
            claim = f"{arm} reaches {reached}" if reached else f"{arm} reaches no rung"
            if result.gated_at:  # "TOOL-3 completion 0% < 50%"
                group, _, why = result.gated_at.partition(" ")
                claim += f"; gated at {group}: {why.removeprefix('incomplete: ')}"
        elif whole is not None and whole.judged:
            done_share, bad_share = whole.completed / whole.judged, whole.hallucinated / whole.judged
            claim = f"{arm} completes {percent(done_share)} ({whole.completed}/{whole.judged}), "
            claim += f"hallucinates {percent(bad_share)} ({whole.hallucinated}/{whole.judged})"
        else:
            claim = f"{arm}: no trial was judged"
        claims.append(claim)
    return claims


def ladder(frame: pl.DataFrame) -> Drawing:
    """The metric pair by rung: completion and hallucination of each arm, with intervals and the gate.

    `frame` is a `metrics.ladder`: a row per arm, group and metric. Shares run from 0 to 1, drawn as 0 to 100 %.
    """
    import altair as alt
    import polars as pl

    pair = frame.filter(pl.col("metric").is_in(["completed", "hallucinated"]) & (pl.col("group") != "all"))
    if pair.is_empty():
        return _nothing("there is nothing to draw the metric pair from")
    pair = pair.with_columns(
        pl.Series("arm", arm_labels(pair), dtype=pl.String),
        pl.format("{}/{}", "n", "of").alias("count"),
    )
    arms, groups = list(pair["arm"].unique(maintain_order=True)), in_order(pair["group"])
    claims = ladder_claims(frame)
    columns = ("arm", "group", "metric", "estimate", "low", "high", "count", "asked", "reason", "evidence")
    drawn = pair.select(columns).with_columns(pl.col("reason").cast(pl.String))

    colour = alt.Color("arm:N", sort=arms, legend=None).scale(domain=arms, range=_cycle(_ARM_COLOURS, arms))
    shape = alt.Shape("arm:N", sort=arms, legend=None).scale(domain=arms, range=_cycle(_ARM_SHAPES, arms))
    dash = alt.StrokeDash("arm:N", sort=arms, legend=None).scale(domain=arms, range=_cycle(_ARM_DASHES, arms))
    bands = alt.Scale(type="band", paddingInner=0.1, paddingOuter=0.05)
    across = alt.X("group:N", sort=groups, title=None, scale=bands).axis(labels=False, grid=False)
    beside = alt.XOffset("arm:N", sort=arms).scale(domain=arms, paddingOuter=1)
    share = alt.Y("estimate:Q", title=None).scale(domain=[0, 1], nice=False).axis(
        format=".0%", values=[0, 0.25, 0.5, 0.75, 1]
    )  # fmt: skip
    tips = [alt.Tooltip("arm:N"), alt.Tooltip("group:N", title="rung")]
    tips += [alt.Tooltip(f"{name}:Q", format=".1%") for name in ("estimate", "low", "high")]
    tips += [alt.Tooltip("count:N", title="n of judged"), alt.Tooltip("asked:Q"), alt.Tooltip("reason:N")]

    margin = min(max(7 * max(map(len, arms)) + 26, 50), 140)
    width = _WIDTH - margin - 76

    def panel(metric: str, heading: str, gate: float, gate_words: str, height: int) -> alt.VConcatChart:
        rows = drawn.filter(pl.col("metric") == metric)
        base = alt.Chart(rows).encode(x=across, color=colour)
        if len(arms) > 1:
            base = base.encode(xOffset=beside)
        fails = (0.0, gate) if metric == "completed" else (gate, 1.0)
        edge = alt.Chart(
            alt.InlineData([{"gate": gate, "from": fails[0], "to": fails[1], "words": gate_words}])
        )
        plot = alt.layer(
            edge.mark_rect(color=_INK, opacity=0.045).encode(y=alt.Y("from:Q"), y2="to:Q"),
            edge.mark_rule(color=_INK, strokeWidth=1.2, strokeDash=[3, 3]).encode(y="gate:Q"),
            edge.mark_text(align="left", color=_INK, fontSize=11).encode(
                y="gate:Q", x=alt.value(width + 6), text="words:N"
            ),
            base.mark_line(strokeWidth=1.4, opacity=0.55).encode(y=share, strokeDash=dash),
            base.mark_rule(strokeWidth=2.6, opacity=0.45).encode(y="low:Q", y2="high:Q"),
            base.mark_point(filled=True, size=70, opacity=1).encode(y=share, shape=shape, tooltip=tips),
        ).properties(
            width=width, height=height,
            title=alt.Title(heading, fontSize=12.5, fontWeight=600, offset=8, color=_INK, frame="group"),
        )  # fmt: skip
        by_arm = alt.Y("arm:N", sort=arms, title=None).axis(
            labelPadding=18, labelColor=_INK, grid=False, labelLimit=112
        )
        last = metric == "hallucinated"
        under = alt.Axis(
            labels=last, labelExpr=_label_expression(groups), labelAngle=0, labelLineHeight=12, labelFontSize=min(10.5, width / len(groups) / 5.8),
            labelColor=_INK, grid=False, labelOverlap=False,
        )  # fmt: skip
        if len(groups) > 12:
            under = alt.Axis(labels=last, labelAngle=-40, labelColor=_INK, grid=False)
        table = alt.Chart(rows).encode(y=by_arm, color=colour)
        counts = alt.layer(
            table.mark_text(fontSize=11).encode(
                x=alt.X("group:N", sort=groups, title=None, axis=under, scale=bands), text="count:N"
            ),
            table.mark_point(filled=True, size=44, opacity=1).encode(x=alt.value(-11), shape=shape),
        ).properties(width=width, height=17 * len(arms))
        return alt.vconcat(plot, counts)

    estimator = ", ".join(pair["estimator"].drop_nulls().unique().sort()).replace("wilson", "Wilson")
    subtitle = [
        f"Points: share of judged trials; bars: 95% interval ({estimator}); below: n/judged. Shaded: the gate is shut.",
        _evidence(pair),
    ]
    chart = alt.vconcat(
        panel("completed", "Completed: the expected outcome was produced", COMPLETION_FLOOR, f"gate: ≥ {percent(COMPLETION_FLOOR)}", 170),
        panel("hallucinated", "Hallucinated: some call was outside the declared, bindable set", 0.0, "gate: 0%", 110),
        spacing=16,
    ).properties(title=_headline(claims, subtitle))  # fmt: skip
    return _themed(chart, f"{'; '.join(claims)}. {_ladder_words(pair)} {subtitle[1]}.")


def _ladder_words(pair: pl.DataFrame) -> str:
    words = []
    for row in pair.iter_rows(named=True):
        what = f"{row['arm']} {row['group']} {row['metric']}"
        if row["estimate"] is None:
            words.append(f"{what}: no estimate ({row['reason'] or 'nothing judged'}).")
        else:
            interval = f"[{percent(row['low'])}, {percent(row['high'])}]" if row["low"] is not None else ""
            words.append(f"{what}: {percent(row['estimate'])} {interval} {row['count']}.")
    return " ".join(words)


def _cycle(values: Sequence[Any], arms: Sequence[str]) -> list[Any]:
    return [values[n % len(values)] for n in range(len(arms))]


# ---- the outcome strip ---------------------------------------------------------------------------------------


def outcomes(frame: pl.DataFrame) -> Drawing:
    """The outcome strip: a tile per trial, a column per rung, cases from the top in the suite's order.

    `frame` is a `metrics.strip`: a row per trial. Trials of one case stand side by side; each arm has its own band,
    with every case at the same place, so that bands can be compared. Excluded trials are hollow.
    """
    import altair as alt
    import polars as pl

    if frame.is_empty():
        return _nothing("there is no outcome to draw")
    frame = frame.with_columns(
        pl.Series("arm", arm_labels(frame), dtype=pl.String),
        pl.col("outcome_class").fill_null("excluded").alias("kind"),
    )
    claims, asked = _outcome_claims(frame), frame.height
    counts = {kind: int((frame["kind"] == kind).sum()) for kind in _CLASSES}
    tiles, texts, height = _tiles(frame)
    key, x = [], 0.0
    for kind, (word, *_) in _CLASSES.items():
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
            texts.append({"x": x + 24, "y": 9, "text": f"{word} {counts[kind]:,}", "ink": _INK})
            x += 48 + 6.6 * len(texts[-1]["text"])

    def styled(column: int) -> alt.Scale:
        return alt.Scale(domain=list(_CLASSES), range=[style[column] for style in _CLASSES.values()])

    def pixel(channel: Any, field: str) -> Any:
        return channel(field, type="quantitative", scale=None, axis=None)

    def marks(base: alt.Chart, tips: Sequence[str]) -> list[alt.Chart]:
        excluded = alt.datum.kind == "excluded"
        said = [alt.Tooltip(f"{tip}:N") for tip in tips]
        return [
            base.mark_rect(cornerRadius=1.5, aria=False, strokeWidth=0.8).encode(
                x=pixel(alt.X, "x"), y=pixel(alt.Y, "y"), x2="x2", y2="y2", fill=alt.Fill("kind:N", scale=styled(1), legend=None),
                stroke=alt.condition(excluded, alt.value("#8a939d"), alt.value("#ffffff")),
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
        align="left", baseline="middle", aria=False, fontSize=11
    )
    ink = alt.Color("ink:N", scale=None, legend=None)
    words = words.encode(x=pixel(alt.X, "x"), y=pixel(alt.Y, "y"), text="text:N", color=ink)
    tips = ("case_id", "group", "arm", "trial", "request", "outcome", "excluded", "reasons")
    layers = [*marks(alt.Chart(tiles), tips), *marks(alt.Chart(alt.InlineData(key)), ()), words]
    cut = ""
    if tiles.height < asked:
        cut = f"; {tiles.height:,} of {asked:,} trials are drawn, the first cases of each column"
    subtitle = [
        f"A tile a trial, a column a rung; cases from the top in the suite's order, a case's trials side by side{cut}.",
        _evidence(frame),
    ]
    chart = alt.layer(*layers).properties(width=_WIDTH - 12, height=height, title=_headline(claims, subtitle))
    spoken = "; ".join(f"{style[0]} {counts[kind]} of {asked}" for kind, style in _CLASSES.items())
    return _themed(chart, f"{'; '.join(claims)}. {spoken}. {_outcome_words(frame)} {subtitle[1]}.")


def _outcome_claims(frame: pl.DataFrame) -> list[str]:
    import polars as pl

    claims = []
    for arm in frame["arm"].unique(maintain_order=True):
        kinds = frame.filter(pl.col("arm") == arm)["kind"]
        judged = int((kinds != "excluded").sum())
        good, bad = int((kinds == "success").sum()), int((kinds == "unsafe").sum())
        claims.append(
            f"{arm}: {good} of {judged} trials succeed, {bad or 'none'} {'are' if bad > 1 else 'is'} unsafe"
        )
    return claims


def _outcome_words(frame: pl.DataFrame) -> str:
    import polars as pl

    by_group = frame.group_by("arm", "group", maintain_order=True).agg(
        (pl.col("kind") == "success").sum().alias("good"),
        (pl.col("kind") == "unsafe").sum().alias("bad"),
        (pl.col("kind") != "excluded").sum().alias("judged"),
    )
    return " ".join(
        f"{row['arm']} {row['group']}: {row['good']}/{row['judged']} success, {row['bad']}/{row['judged']} unsafe."
        for row in by_group.iter_rows(named=True)
    )


def _tiles(frame: pl.DataFrame) -> tuple[pl.DataFrame, list[dict[str, Any]], float]:
    """Where each trial's tile lies, in pixels; the texts around them; and the height of it all."""
    import polars as pl

    groups, arms = in_order(frame["group"]), list(frame["arm"].unique(maintain_order=True))
    cases = frame.select("group", "case_id").unique(maintain_order=True)
    cases = cases.with_columns(pl.int_range(pl.len()).over("group").alias("case_number"))
    most_cases, trials = int(cases["case_number"].max()) + 1, int(frame["trial"].max())  # type: ignore[arg-type]
    wrap = -(-most_cases // 40)  # columns of cases within a group
    rows = -(-most_cases // wrap)
    column = min((_WIDTH - 2) / len(groups), 140.0)
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
        frame.join(cases, on=["group", "case_id"], maintain_order="left")
        .join(ordered, on="group", maintain_order="left")
        .join(bands, on="arm", maintain_order="left")
        .sort("case_number", maintain_order=True)
        .head(MOST_MARKS)
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
    texts = [{"x": n * column, "y": top - 12, "text": group, "ink": _INK} for n, group in enumerate(groups)]
    for n, arm in enumerate(arms):
        if head:
            texts.append({"x": 0.0, "y": top + n * band + 8, "text": arm, "ink": _INK})
        for m, group in enumerate(groups):
            kinds = frame.filter((pl.col("arm") == arm) & (pl.col("group") == group))["kind"]
            count = f"{(kinds == 'success').sum()}/{(kinds != 'excluded').sum()}"
            y = top + n * band + head + rows * tall + 9
            texts.append({"x": m * column, "y": y, "text": count, "ink": _QUIET})
    return tiles, texts, top + len(arms) * band - 12


# ---- two arms on the same cases ------------------------------------------------------------------------------


def compare(found: Comparison) -> Drawing:
    """The paired difference by rung: its mean with interval, and every case that one arm solves more often.

    `found` is a `compare.compare(a, b)`. The difference b - a runs from -100 to +100 points in every such chart.
    """
    import altair as alt
    import polars as pl

    by_group, cases = found.by_group(), found.frame()
    groups = list(by_group["group"]) if by_group.height > 2 else list(by_group["group"][:-1])
    short_a, short_b = (_cut(side.name, 26) for side in (found.a, found.b))
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
    drawn = marks.select("group", "difference", "kind", "at", "case_id", "a", "b").head(MOST_MARKS)
    means = by_group.filter(pl.col("group").is_in(groups)).with_columns(
        pl.lit(mean).alias("kind"),
        pl.when(pl.col("same") == pl.col("cases"))
        .then(pl.lit("no change"))
        .otherwise(pl.format("+{} −{}", "fixes", "regressions"))
        .alias("changes"),
        pl.format("of {}", "cases").alias("of"),
        pl.when(pl.col("new_unsafe") > 0)
        .then(pl.format("{} unsafe", "new_unsafe"))
        .otherwise(pl.lit(""))
        .alias("unsafe"),
    )

    bands = alt.Scale(type="band", paddingInner=0.1, paddingOuter=0.05)
    under = alt.Axis(
        labelExpr=_label_expression(groups), labelAngle=0, labelLineHeight=12, labelFontSize=min(10.5, (_WIDTH - 80) / len(groups) / 5.8),
        labelColor=_INK, grid=False, labelOverlap=False,
    )  # fmt: skip
    if len(groups) > 12:
        under = alt.Axis(labelAngle=-40, labelColor=_INK, grid=False)
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
            domain=kinds, range=[_ARM_COLOURS[0], _ARM_COLOURS[1], _INK]
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
        zero.mark_rule(color=_INK, strokeWidth=1.2).encode(y=y),
        alt.Chart(drawn).mark_point(filled=True, size=46, opacity=0.7).encode(x=across, xOffset=beside, y=y, tooltip=tips, **style),
        base.mark_rule(strokeWidth=2.6, opacity=0.55, color=_INK).encode(y=alt.Y("low:Q"), y2="high:Q"),
        base.mark_point(filled=True, size=90, opacity=1).encode(y=y, tooltip=[alt.Tooltip("group:N", title="rung"), *shares], **style),
    ).properties(width=_WIDTH - 80, height=260)  # fmt: skip
    numbers = alt.layer(
        base.mark_text(fontSize=11, dy=-7, color=_INK).encode(x=across.axis(under), text="changes:N"),
        base.mark_text(fontSize=11, dy=7, color=_QUIET).encode(x=across.axis(under), text="of:N"),
        base.mark_text(fontSize=11, dy=21, color=_CLASSES["unsafe"][1], fontWeight=600).encode(
            x=across.axis(under), text="unsafe:N"
        ),
    ).properties(width=_WIDTH - 80, height=62 if found.new_unsafe else 32)
    cut = (
        f" {drawn.height:,} of {marks.height:,} cases that differ are drawn."
        if drawn.height < marks.height
        else ""
    )
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
    chart = alt.vconcat(plot, numbers, spacing=4).properties(title=_headline(claims, subtitle))
    words = " ".join(
        f"{row['group']}: {100 * row['difference']:+.1f} points [{100 * row['low']:+.1f}, {100 * row['high']:+.1f}], "
        f"{row['fixes']} more often, {row['regressions']} less often, of {row['cases']}."
        for row in means.iter_rows(named=True)
    )
    return _themed(chart, f"{found.sentence} {words} {_sides(found)}.")


def _cut(name: str, most: int) -> str:
    """A name with its middle left out where it is long: both ends tell arms apart."""
    return name if len(name) <= most else f"{name[: most // 2]}…{name[-(most - most // 2 - 1) :]}"


def _sides(found: Comparison) -> str:
    """What stands behind both sides' numbers."""
    import polars as pl

    sides = [(side.name, ", ".join(side.evidence)) for side in (found.a, found.b)]
    return _evidence(pl.DataFrame(sides, schema=["arm", "evidence"], orient="row"))
