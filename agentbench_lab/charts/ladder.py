"""The metric pair by rung."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentbench_lab.charts.theme import APART, INK, WIDTH, headline, nothing, themed, told_apart
from agentbench_lab.charts.words import arm_labels, evidence, label_expression, percent
from agentbench_lab.ladder import COMPLETION_FLOOR, RUNG_NAMES, Cell, climb, in_order

if TYPE_CHECKING:
    import altair as alt
    import polars as pl

    from agentbench_lab.charts.theme import Drawing


def ladder_claims(frame: pl.DataFrame) -> list[str]:
    """The sentences that a frame of `metrics.ladder` supports, one an arm: how far it came, what shut the gate, and
    what disqualifies it."""
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
        if "disqualified" in mine.columns and mine["disqualified"][0]:
            claim += f"; {mine['disqualified'][0]}"
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
        return nothing("there is nothing to draw the metric pair from")
    pair = pair.with_columns(
        pl.Series("arm", arm_labels(pair), dtype=pl.String),
        pl.format("{}/{}", "n", "of").alias("count"),
    )
    arms, groups = list(pair["arm"].unique(maintain_order=True)), in_order(pair["group"])
    claims = ladder_claims(frame)
    columns = ("arm", "group", "metric", "estimate", "low", "high", "count", "asked", "reason", "evidence")
    drawn = pair.select(columns).with_columns(pl.col("reason").cast(pl.String))

    colour, shape, dash = told_apart(arms)
    bands = alt.Scale(type="band", paddingInner=0.1, paddingOuter=0.05)
    across = alt.X("group:N", sort=groups, title=None, scale=bands).axis(labels=False, grid=False)
    beside = alt.XOffset("arm:N", sort=arms).scale(domain=arms, paddingOuter=1)
    share = alt.Y("estimate:Q", title=None).scale(domain=[0, 1], nice=False).axis(
        format=".0%", values=[0, 0.25, 0.5, 0.75, 1]
    )  # fmt: skip
    tips = [alt.Tooltip("arm:N"), alt.Tooltip("group:N", title="rung")]
    tips += [alt.Tooltip(f"{name}:Q", format=".1%") for name in ("estimate", "low", "high")]
    tips += [alt.Tooltip("count:N", title="n of judged"), alt.Tooltip("asked:Q"), alt.Tooltip("reason:N")]

    size, thick = (70, 2.6) if len(arms) <= APART else (20, 1.6)
    margin = min(max(7 * max(map(len, arms)) + 26, 50), 140)
    width = WIDTH - margin - 76

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
            edge.mark_rect(color=INK, opacity=0.045).encode(y=alt.Y("from:Q"), y2="to:Q"),
            edge.mark_rule(color=INK, strokeWidth=1.2, strokeDash=[3, 3]).encode(y="gate:Q"),
            edge.mark_text(align="left", color=INK, fontSize=11).encode(
                y="gate:Q", x=alt.value(width + 6), text="words:N"
            ),
            base.mark_line(strokeWidth=1.4, opacity=0.55).encode(y=share, strokeDash=dash),
            base.mark_rule(strokeWidth=thick, opacity=0.45).encode(y="low:Q", y2="high:Q"),
            base.mark_point(filled=True, size=size, opacity=1).encode(y=share, shape=shape, tooltip=tips),
        ).properties(
            width=width, height=height,
            title=alt.Title(heading, fontSize=12.5, fontWeight=600, offset=8, color=INK, frame="group"),
        )  # fmt: skip
        by_arm = alt.Y("arm:N", sort=arms, title=None).axis(
            labelPadding=18, labelColor=INK, grid=False, labelLimit=112
        )
        last = metric == "hallucinated"
        under = alt.Axis(
            labels=last, labelExpr=label_expression(groups), labelAngle=0, labelLineHeight=12, labelFontSize=min(10.5, width / len(groups) / 5.8),
            labelColor=INK, grid=False, labelOverlap=False,
        )  # fmt: skip
        if len(groups) > 12:
            under = alt.Axis(labels=last, labelAngle=-40, labelColor=INK, grid=False)
        table = alt.Chart(rows).encode(y=by_arm)
        counts = alt.layer(
            table.mark_text(fontSize=11, color=INK).encode(
                x=alt.X("group:N", sort=groups, title=None, axis=under, scale=bands), text="count:N"
            ),
            table.mark_point(filled=True, size=44, opacity=1).encode(
                x=alt.value(-11), shape=shape, color=colour
            ),
        ).properties(width=width, height=17 * len(arms))
        return alt.vconcat(plot, counts)

    estimator = ", ".join(pair["estimator"].drop_nulls().unique().sort()).replace("wilson", "Wilson")
    subtitle = [
        f"Points: share of judged trials; bars: 95% interval ({estimator}); below: n/judged. Shaded: the gate is shut.",
        evidence(pair),
    ]
    chart = alt.vconcat(
        panel("completed", "Completed: the expected outcome was produced", COMPLETION_FLOOR, f"gate: ≥ {percent(COMPLETION_FLOOR)}", 170),
        panel("hallucinated", "Hallucinated: some call was outside the declared, bindable set", 0.0, "gate: 0%", 110),
        spacing=16,
    ).properties(title=headline(claims, subtitle))  # fmt: skip
    return themed(chart, f"{'; '.join(claims)}. {_ladder_words(pair)} {subtitle[1]}.")


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
