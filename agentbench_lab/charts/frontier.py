"""Accuracy against cost, and the arms that no other beats in both."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from agentbench_lab.charts.theme import (
    APART,
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
    beaten_by,
    evidence,
    listed,
    marked,
    per_arm,
    percent,
    short_names,
    text_width,
    unsafe_said,
    usd,
    users_said,
)

if TYPE_CHECKING:
    import altair as alt
    import polars as pl

    from agentbench_lab.charts.theme import Drawing

_HEIGHT = 400
_RARE = 0.05  # a smaller share of resamples is only in the tooltip and the table
_LETTERS = 11  # pixels: the size of a label

Box = tuple[float, float, float, float]
Row = dict[str, Any]


def frontier(frame: pl.DataFrame, *, doubted: Collection[tuple[str, str | None]] = ()) -> Drawing:
    """Accuracy (from 0 to 100 %) against dollars a trial, by arm, with both 95 % intervals as a cross.

    `frame` is a `metrics.frontier`. The line joins the arms that no other arm beats in both; beside each of them stands in
    which share of resamples it is one of those, and so it does beside others that are in more than 5 %; of one arm alone
    there is neither. Hollow: the cost of
    some trials is not known, and so the arm has no place. Arms without one of the two numbers are named in the subtitle.
    An arm that is `doubted` (driver and model, see `tables.doubted`) is not named in the title. The axis of dollars is logarithmic only where costs differ more than thirtyfold. Beyond
    six arms the points have numbers, and their names stand beside the plot.
    """
    import polars as pl

    if frame.is_empty():
        return nothing("there is no arm")
    frame, said = marked(frame, doubted)
    frame = beaten_by(frame)
    both = frame.filter(pl.col("accuracy").is_not_null() & pl.col("cost").is_not_null())
    left_out = frame.join(both.select("arm"), on="arm", how="anti", maintain_order="left")
    if both.is_empty():
        reasons = list(dict.fromkeys(row["reason"] or "not known" for row in frame.iter_rows(named=True)))
        return sentence(
            "Accuracy against cost cannot be drawn", f"no arm has both numbers: {listed(reasons, 3)}"
        )
    shown = both.sort("on_frontier", "membership", descending=True, nulls_last=True, maintain_order=True)
    shown = shown.head(MOST_ARMS).sort("accuracy", descending=True, maintain_order=True)
    best = shown.filter("on_frontier").sort("cost", "accuracy", maintain_order=True)
    claim = _claim(shown.rows(named=True), best.rows(named=True))
    # of one arm alone there is no frontier to draw
    plot, log = _plot(shown.rows(named=True), best.rows(named=True) if shown.height > 1 else [])
    how = listed(per_arm(sorted(shown["estimator"].unique()), shown.height), 2)
    about = f"Crosses: 95% intervals ({how})."
    if shown.height > 1:
        about += (
            " Circles and line: on the frontier, beaten by no arm in both; "
            f"percents: in how many resamples an arm is (from {percent(_RARE)} on)."
        )
    about += (
        " Hollow: only some costs are known, so that the arm has no place on or off it."
        if shown["lower_bound"].any()
        else ""
    )
    about += " Logarithmic axis." if log else ""
    subtitle = [about]
    if left_out.height:
        words = [f"{row['arm']} ({row['reason'] or 'not known'})" for row in left_out.iter_rows(named=True)]
        subtitle.append(f"Not drawn: {listed(words, 3)}.")
    if shown.height < both.height:
        subtitle.append(
            f"Drawn: {shown.height} of {both.height:,} arms, those on the frontier first; {frame.height:,} rows in, "
            f"{shown.height} points drawn."
        )
    subtitle += [*unsafe_said(frame), *users_said(frame), *said, evidence(frame)]
    spoken = " ".join(_spoken(row) for row in shown.iter_rows(named=True))
    return themed(plot.properties(title=headline([claim], subtitle)), f"{claim}. {spoken} {subtitle[-1]}.")


def _plot(shown: Sequence[Row], best: Sequence[Row]) -> tuple[Drawing, bool]:
    """The plot, and whether its axis is logarithmic."""
    import altair as alt
    import polars as pl

    costs = [row[name] for row in shown for name in ("cost", "cost_low", "cost_high") if not _open(row[name])]
    scale, ticks, log = money_axis(costs)
    left, right = scale.domain
    many = len(shown) > APART
    short = short_names([row["arm"] for row in shown], 34)
    beside = min(6.1 * max(map(len, short.values())) + 66, 290) if many else 0
    width = WIDTH - 60 - beside

    def across(value: float) -> float:
        if log:
            return float(width * math.log(max(value, left) / left) / math.log(right / left))
        return float(width * value / right)

    points = []
    for n, row in enumerate(shown, start=1):
        on = bool(row["on_frontier"])
        member = row["membership"]
        sure = (
            f" · {percent(member)}"
            if len(shown) > 1 and member is not None and (on or member >= _RARE)
            else ""
        )
        if row["lower_bound"]:
            sure += f" · {row['n']:,} of {row['of']:,} costs"
        name = f"{short[row['arm']]}{sure}"
        points.append(
            {
                **{key: row[key] for key in ("arm", "accuracy", "accuracy_low", "accuracy_high", "cost", "cost_low")},
                "cost_high": right if row["cost_high"] == math.inf else row["cost_high"],  # without an end: to the edge
                "on": "yes" if on else "no", "membership": row["membership"], "by": row["dominated_by"] or "",
                "bound": "yes" if row["lower_bound"] else "no", "known": f"{row['n']} of {row['of']}",
                "fill": "transparent" if row["lower_bound"] else ARM_COLOURS[0 if on else 5],
                "words": str(n) if many else name, "name": name, "number": str(n), "line": 16.0 * (n - 1) + 8,
                "x": across(row["cost"]), "y": _HEIGHT * (1 - row["accuracy"]),
            }
        )  # fmt: skip
    for point, (x, y) in zip(
        points, _placed(points, _lines(points, best, across, width), width), strict=True
    ):
        point["label_x"], point["label_y"] = x, y
    stairs = [{"cost": row["cost"], "accuracy": row["accuracy"], "n": n} for n, row in enumerate(best)]
    stairs += [{"cost": right, "accuracy": best[-1]["accuracy"], "n": len(best)}] if best else []

    title = "dollars per trial" + (", logarithmic axis" if log else "")
    dollars = alt.X("cost:Q", title=title, scale=scale)
    dollars = dollars.axis(format="$,.3~r", values=ticks, grid=False, labelOverlap=True)
    share = alt.Y("accuracy:Q", title=None).scale(domain=[0, 1], nice=False)
    share = share.axis(format=".0%", values=[0, 0.25, 0.5, 0.75, 1])
    colour = alt.condition("datum.on === 'yes'", alt.value(ARM_COLOURS[0]), alt.value(ARM_COLOURS[5]))
    shape = alt.Shape("on:N", legend=None).scale(domain=["yes", "no"], range=["circle", "diamond"])
    tips = [alt.Tooltip("arm:N")]
    tips += [alt.Tooltip(f"{key}:Q", format=".1%") for key in ("accuracy", "accuracy_low", "accuracy_high")]
    tips += [alt.Tooltip(f"{key}:Q", format="$,.4~r") for key in ("cost", "cost_low", "cost_high")]
    tips += [alt.Tooltip("on:N", title="on the frontier"), alt.Tooltip("by:N", title="beaten by")]
    tips += [alt.Tooltip("membership:Q", title="on it in resamples", format=".0%")]
    tips += [
        alt.Tooltip("known:N", title="trials with a cost"),
        alt.Tooltip("bound:N", title="cost partly unknown"),
    ]

    base = alt.Chart(pl.DataFrame(points, infer_schema_length=None))
    line = alt.Chart(alt.InlineData(stairs)).mark_line(
        interpolate="step-after", strokeDash=[5, 3], strokeWidth=1.4, color=ARM_COLOURS[0], opacity=0.8
    )
    cross = base.mark_rule(strokeWidth=1.8, opacity=0.55).encode(color=colour)
    layers = [
        line.encode(x=dollars, y=share, order="n:Q"),
        cross.encode(x=alt.X("cost_low:Q"), x2="cost_high:Q", y=share),
        cross.encode(x=dollars, y=alt.Y("accuracy_low:Q"), y2="accuracy_high:Q"),
        base.mark_point(size=80, opacity=1, strokeWidth=2).encode(
            x=dollars, y=share, tooltip=tips, stroke=colour, shape=shape, fill=alt.Fill("fill:N", scale=None, legend=None)
        ),
    ]  # fmt: skip
    for side in ("yes", "no"):
        mine = base.transform_filter(f"datum.on === '{side}'")
        layers.append(
            _text(mine, side).encode(x=_pixel(alt.X, "label_x"), y=_pixel(alt.Y, "label_y"), text="words:N")
        )
        if many:  # the names stand beside the plot, under the numbers of their points
            at = _pixel(alt.Y, "line")
            layers.append(_text(mine, side, "right").encode(x=alt.value(width + 34), y=at, text="number:N"))
            layers.append(_text(mine, side).encode(x=alt.value(width + 42), y=at, text="name:N"))
    return alt.layer(*layers).properties(width=width, height=_HEIGHT), log


def _pixel(channel: Any, field: str) -> Any:
    return channel(field, type="quantitative", scale=None, axis=None)


def _text(base: alt.Chart, on: str, align: Literal["left", "right"] = "left") -> alt.Chart:
    strong = on == "yes"
    chart: alt.Chart = base.mark_text(
        align=align, baseline="middle", color=INK, fontSize=_LETTERS, fontWeight=600 if strong else 400, opacity=1 if strong else SOFT
    )  # fmt: skip
    return chart


def _lines(
    points: Sequence[Row], best: Sequence[Row], across: Callable[[float], float], width: float
) -> list[Box]:
    """What a label had better not cross: the frontier, and the arms of the crosses."""
    after = [across(row["cost"]) for row in best[1:]] + [width] * bool(best)
    heights = [_HEIGHT * (1 - row["accuracy"]) for row in best]
    found: list[Box] = [
        (across(row["cost"]), y - 2, end, y + 2) for row, y, end in zip(best, heights, after, strict=True)
    ]
    for point in points:
        ends = (
            across(point["cost"] if _open(point[key]) else point[key]) for key in ("cost_low", "cost_high")
        )
        low, high = ends
        found.append((low, point["y"] - 2, high, point["y"] + 2))
        if point["accuracy_low"] is not None:
            top, foot = (_HEIGHT * (1 - point[key]) for key in ("accuracy_high", "accuracy_low"))
            found.append((point["x"] - 2, top, point["x"] + 2, foot))
    return found


def _claim(shown: Sequence[Row], best: Sequence[Row]) -> str:
    placed = [row for row in shown if row["on_frontier"] is not None]
    arms, on = len(placed), len(best)
    if not placed:
        row = shown[0]
        more = "" if len(shown) == 1 else f", and no other of {len(shown)} arms tells it of all"
        return f"The frontier is not known: {row['arm']} tells the cost of {row['n']:,} of {row['of']:,} trials{more}"
    best = [row for row in best if not row["arm"].endswith(DOUBT)] or best
    names = [
        f"{row['arm']} ({percent(row['accuracy'], gate=False)} at {usd(row['cost'])} a trial)" for row in best
    ]
    if not names:
        return f"No arm of {arms} can be said to be on the frontier"
    if arms == 1:
        return f"{best[0]['arm']} solves {percent(best[0]['accuracy'], gate=False)} at {usd(best[0]['cost'])} a trial"
    if on == 1:
        sure = best[0]["membership"]
        more = "" if sure is None else f"; it is on the frontier in {percent(sure)} of resamples"
        return f"No arm beats {names[0]} in accuracy or in cost{more}"
    if len(names) == 1:
        return f"{on} of {arms} arms are on the frontier, one of them {names[0]}"
    return f"{on} of {arms} arms are on the frontier, from {names[0]} to {names[-1]}"


def _spoken(row: Row) -> str:
    parts = []
    for name, say in (("accuracy", partial(percent, gate=False)), ("cost", usd)):
        low, high = row[f"{name}_low"], row[f"{name}_high"]
        ends = "" if low is None or high is None or not math.isfinite(high) else f" [{say(low)}, {say(high)}]"
        parts.append(f"{say(row[name])}{ends}")
    place = "on the frontier" if row["on_frontier"] else f"beaten by {row['dominated_by'] or 'another arm'}"
    if row["on_frontier"] is None:
        place = f"{row['n']:,} of {row['of']:,} costs known, so without a place"
    share = "" if row["membership"] is None else f" (on it in {percent(row['membership'])} of resamples)"
    return f"{row['arm']}: {parts[0]} at {parts[1]} a trial, {place}{share}."


def _open(end: float | None) -> bool:
    return end is None or not math.isfinite(end)


def _placed(points: Sequence[Row], lines: Sequence[Box], width: float) -> list[tuple[float, float]]:
    """Where each label begins, in pixels: near its point, over no other label or point if that can be."""
    marks: list[Box] = [(point["x"] - 6, point["y"] - 6, point["x"] + 6, point["y"] + 6) for point in points]
    taken: list[Box] = []
    found = []
    for n, point in enumerate(points):
        wide, x, y = text_width(point["words"], _LETTERS), point["x"], point["y"]
        spots = [(x + 10.0, y + step) for step in (-10, 10, -22, 22, -35, 35)]
        spots += [(x - 10.0 - wide, y + step) for step in (-9, 9, -22, 22, -35, 35)]
        spots += [(x - wide / 2, y + step) for step in (-48, 48, -61, 61)]

        def price(
            spot: tuple[float, float], wide: float = wide, n: int = n, x: float = x, y: float = y
        ) -> float:
            box = (spot[0], spot[1] - 7, spot[0] + wide, spot[1] + 7)
            over = sum(_overlap(box, other) for other in taken)
            over += 0.7 * sum(_overlap(box, other) for m, other in enumerate(marks) if m != n)
            over += 1.5 * sum(_overlap(box, line) for line in lines)
            outside = (
                max(0.0, -box[0])
                + max(0.0, box[2] - width - 14)
                + max(0.0, -box[1])
                + max(0.0, box[3] - _HEIGHT)
            )
            away = math.hypot(min(abs(spot[0] - x), abs(spot[0] + wide - x)), spot[1] - y)
            return over + 20 * outside + 0.6 * away

        spot = min(spots, key=price)  # the first of the cheapest: the nearest
        spot = (min(max(spot[0], 0.0), max(0.0, width + 14 - wide)), spot[1])
        taken.append((spot[0], spot[1] - 7, spot[0] + wide, spot[1] + 7))
        found.append(spot)
    return found


def _overlap(a: Box, b: Box) -> float:
    return max(0.0, min(a[2], b[2]) - max(a[0], b[0])) * max(0.0, min(a[3], b[3]) - max(a[1], b[1]))
