"""What arrangements gain and cost as tasks grow wider, and the map of where they pay."""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from agentbench_lab.charts.theme import (
    INK,
    SOFT,
    WIDTH,
    dodged,
    headline,
    nothing,
    sentence,
    themed,
    told_apart,
)
from agentbench_lab.charts.words import (
    counted,
    evidence,
    in_points,
    interval,
    listed,
    percent,
    points,
    short_names,
    shortened,
    users_said,
)
from agentbench_lab.charts.worth import (
    amount,
    bound_sign,
    claims,
    floors,
    rounded_up,
    times,
    verdict_words,
    with_arms,
)

if TYPE_CHECKING:
    import altair as alt
    import polars as pl

    from agentbench_lab.charts.theme import Drawing

_HEIGHTS = (250, 190)
_MOST_DRIVERS = 4
"""Of more drivers than these the first are drawn; the table has all."""
_MOST_SCAFFOLDS = 12
_CELL = 48
_MOST_BARS = 12
"""Of more widths than these no intervals are drawn: they would cover each other and the lines."""
_MOST_COLUMNS = 6
"""Of more widths than these the map shows so many, the first and the last among them; the table has all."""
_WIDEST = 170

# verdict -> fill of its cell and the ink on it; words stand in every cell, so that colour says nothing alone
_FILLS = {
    "dominates": ("#2f9e77", "#ffffff"),
    "pays": ("#a5dcc3", "#0c4a36"),
    "cheaper, no worse": ("#c9e4f2", "#123f5a"),
    "no difference": ("#dfe3e8", "#333b44"),
    "costs without gain": ("#f6e7bf", "#5f4700"),
    "loses": ("#a3182b", "#ffffff"),
}


def ablation(found: pl.DataFrame, where: pl.DataFrame) -> Drawing:
    """Accuracy against the width of tasks, a line an arm with 95 % intervals, and below it what a trial costs.

    `found` is a `metrics.ablation`, `where` its `metrics.where_it_pays`. Both axes of the lower panel, and the widths, are
    logarithmic: equal ratios are equal distances. Arms stand a little apart at each width, so that their intervals do not
    cover each other; without widths there is one place. Several drivers have a pair of panels each.
    """
    import altair as alt
    import polars as pl

    if found.is_empty():
        return nothing("there is no ablation to draw")
    named = with_arms(found)
    rows = named.filter((pl.col("over") == "width") & pl.col("accuracy").is_not_null())
    if rows.is_empty():
        return sentence("Accuracy by width is not known", "no arm has a judged trial of any width")
    drivers = list(rows.select("driver", "model").unique(maintain_order=True).iter_rows())
    parts = []
    for driver, model in drivers[:_MOST_DRIVERS]:
        mine = rows.filter(
            (pl.col("driver") == driver) & pl.col("model").eq_missing(pl.lit(model, pl.String))
        )
        title = " + ".join(part for part in (driver, model) if part) if len(drivers) > 1 else ""
        parts.append(_pair(mine, shortened(title, 90)))
    drawn = alt.vconcat(*parts, spacing=26) if len(parts) > 1 else parts[0]
    spoken = " ".join(_spoken(row) for row in rows.head(200).iter_rows(named=True))
    said = claims(named, where, short=True) or ["Accuracy and cost by width"]
    chart = drawn.properties(title=headline(said, _about(named, rows, len(drivers))))
    return themed(chart, f"{'; '.join(said)}. {spoken} {evidence(named)}.")


def _about(named: pl.DataFrame, rows: pl.DataFrame, drivers: int) -> list[str]:
    """What is shown, what is not, and by what evidence."""
    per_width = rows["of"]
    least, most = int(per_width.min() or 0), int(per_width.max() or 0)  # type: ignore[arg-type]
    each = counted(most, "trial") if least == most else f"{least:,} to {counted(most, 'trial')}"
    cases = rows["cases"].drop_nulls()
    of = f" of {counted(int(cases.max()), 'case')}" if cases.len() and cases.n_unique() == 1 else ""  # type: ignore[arg-type]
    bars = "; bars: 95% interval over cases"
    if rows["width"].n_unique() > _MOST_BARS:
        bars = f"; of {rows['width'].n_unique()} widths, without the intervals, which are in the table"
    about = f"Share of trials solved{bars}, {each}{of} at each width and arm."
    unknown = list(rows.filter(rows["cost"].is_null())["arm"].unique(maintain_order=True))
    if unknown:
        about += f" Cost not known: {listed(unknown)}."
    more = []
    bound = floors(named)
    if bound:
        more.append(f"{bound}.")
    more += users_said(named)
    if drivers > _MOST_DRIVERS:
        more.append(f"Drawn: {_MOST_DRIVERS} of {drivers} drivers.")
    if rows["scaffold"].n_unique() > _MOST_SCAFFOLDS:
        more.append(f"Drawn: {_MOST_SCAFFOLDS} of {rows['scaffold'].n_unique()} scaffolds.")
    return [about, *more, evidence(named)]


def _pair(rows: pl.DataFrame, title: str) -> alt.VConcatChart:
    """Accuracy above, cost below, on the same widths; arms named at their right ends."""
    import altair as alt
    import polars as pl

    scaffolds = list(rows["scaffold"].unique(maintain_order=True))[:_MOST_SCAFFOLDS]
    rows = rows.filter(pl.col("scaffold").is_in(scaffolds))
    short = short_names(scaffolds, 30)
    margin = 118 + min(6.3 * max(map(len, short.values())), 200)
    width = round(WIDTH - margin - 60)
    widths = sorted(rows["width"].unique())
    logs = [math.log2(each) for each in widths]
    gap = min((b - a for a, b in itertools.pairwise(logs)), default=1.0)
    step = min(0.06, 0.5 * gap / len(scaffolds))
    pad = max(0.18, len(scaffolds) * step)
    apart = {name: (at - (len(scaffolds) - 1) / 2) * step for at, name in enumerate(scaffolds)}
    placed = rows.with_columns(
        pl.Series("x", [math.log2(w) + apart[s] for w, s in rows.select("width", "scaffold").iter_rows()], pl.Float64)
    ).select(
        "scaffold", "width", "x", "n", "of", "floors", "accuracy", "accuracy_low", "accuracy_high", "cost", "cost_low", "cost_high"
    )  # fmt: skip
    cases = {w: int(most) for w, most in rows.group_by("width").agg(pl.col("of").max()).iter_rows()}
    x = alt.X("x:Q", title=None).scale(domain=[logs[0] - pad, logs[-1] + pad], nice=False)
    bare = x.axis(values=logs, labels=False, grid=True)
    said = {f"{log:.6f}": f"{w}" for log, w in zip(logs, widths, strict=True)}
    under = x.title("width: parts of a task" + (", logarithmic axis" if len(widths) > 1 else "")).axis(
        values=logs,
        labelExpr=f"{json.dumps(said)}[format(datum.value, '.6f')]",
        labelOverlap=len(cases) > 8,
        grid=True,
    )
    unit = rows["cost_unit"][0]
    known = placed.filter(pl.col("cost").is_not_null())
    y = alt.Y("accuracy:Q", title="share of trials solved").scale(domain=[0, 1], nice=False)
    y = y.axis(format=".0%", values=[0, 0.25, 0.5, 0.75, 1])
    ends = [each for name in ("cost", "cost_low", "cost_high") for each in known[name].drop_nulls()]
    upper = _panel(
        placed,
        "accuracy",
        bare if ends else under,
        y,
        scaffolds,
        short,
        width,
        _HEIGHTS[0],
        [0.0, 1.0],
        percent,
    )
    if not ends:
        return alt.vconcat(upper.properties(title=_over(title)) if title else upper)
    what = "dollars a trial" if unit == "usd" else "tokens a trial"
    scale, ticks, log = _cost_axis(ends)
    y = alt.Y("cost:Q", title=what + (", logarithmic axis" if log else ""), scale=scale).axis(
        values=ticks, format="$,.3~r" if unit == "usd" else ",.3~s"
    )
    lower = _panel(
        known, "cost", under, y, scaffolds, short, width, _HEIGHTS[1], list(scale.domain),
        lambda value: amount(value, unit).removesuffix(" tokens"), log=log,
    )  # fmt: skip
    return alt.vconcat(upper.properties(title=_over(title)) if title else upper, lower, spacing=12)


def _over(title: str) -> alt.TitleParams:
    import altair as alt

    return alt.TitleParams(title, fontSize=12.5, anchor="start", color=INK, offset=6)


def _cost_axis(ends: Sequence[float]) -> tuple[Any, list[float], bool]:
    """A logarithmic scale that holds all costs, unless one is 0, with ticks at 1, 2 and 5 of each decade."""
    import altair as alt

    low, high = min(ends), max(ends)
    if low <= 0:
        return alt.Scale(domain=[0, high * 1.05 or 1.0], nice=False), [high * n / 4 for n in range(5)], False
    wider = max(1.15, math.sqrt(2.2 * low / high))  # a tick at least, also where all cost the same
    low, high = low / wider, high * wider
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    parts = (1, 1.5, 2, 3, 5, 7) if high / low < 6 else (1, 2, 5) if high / low < 300 else (1,)
    ticks = [round(10.0**decade * part, 12) for decade in decades for part in parts]
    return alt.Scale(type="log", domain=[low, high], nice=False), [t for t in ticks if low <= t <= high], True


def _panel(
    rows: pl.DataFrame,
    name: str,
    x: alt.X,
    y: alt.Y,
    scaffolds: list[str],
    short: dict[str, str],
    width: int,
    height: int,
    domain: list[float],
    say: Any,
    *,
    log: bool = False,
) -> alt.LayerChart:
    """Lines, intervals and points of one number, with the arms' names at the right ends."""
    import altair as alt
    import polars as pl

    colour, shape, dash = told_apart(scaffolds, "scaffold")
    tips = [
        alt.Tooltip("scaffold:N"), alt.Tooltip("width:Q"), alt.Tooltip("n:Q", title="solved"), alt.Tooltip("of:Q", title="judged"),
        *(alt.Tooltip(f"{name}{end}:Q", format=".1%" if name == "accuracy" else ",.4~r") for end in ("", "_low", "_high")),
    ]  # fmt: skip
    base = alt.Chart(rows).encode(x=x, color=colour)
    low, high = domain
    ends = rows.group_by("scaffold", maintain_order=True).agg(pl.all().sort_by("width").last())

    def place(value: float) -> float:
        part = math.log(value / low) / math.log(high / low) if log else (value - low) / (high - low)
        return height * (1 - part)

    heights = dodged([place(value) for value in ends[name]], 14.5, 0.0, float(height))
    words = [
        f"{'≥ ' if least and name == 'cost' else ''}{say(value)}  {short[s]}"
        for s, value, least in ends.select("scaffold", name, "floors").iter_rows()
    ]
    labels = ends.with_columns(
        pl.Series("place", heights, pl.Float64), pl.Series("words", words, pl.String)
    ).select("scaffold", "x", name, "place", "words")
    names = alt.Chart(labels)
    spot = alt.Y("place:Q", scale=None, axis=None)
    bars = [
        base.transform_filter(f"isValid(datum.{name}_low)").mark_rule(strokeWidth=2, opacity=0.45).encode(
            y=alt.Y(f"{name}_low:Q"), y2=f"{name}_high:Q"
        )
    ] if rows["width"].n_unique() <= _MOST_BARS else []  # fmt: skip
    layers = [
        *bars,
        base.mark_line(strokeWidth=2).encode(y=y, strokeDash=dash),
        base.mark_point(size=52, opacity=1, filled=True).encode(y=y, shape=shape, tooltip=tips),
    ]  # fmt: skip
    beside = [
        names.mark_point(filled=True, size=46, opacity=1).encode(
            x=alt.value(width + 14), y=spot, color=colour, shape=shape
        ),
        names.mark_text(align="left", baseline="middle", color=INK, fontSize=11, opacity=0.9).encode(
            x=alt.value(width + 24), y=spot, text="words:N"
        ),
    ]
    plot = alt.layer(alt.layer(*layers), *beside).resolve_scale(y="independent")
    panel: alt.LayerChart = plot.properties(width=width, height=height)
    return panel


def _spoken(row: dict[str, Any]) -> str:
    least = "at least " if row["floors"] else ""
    cost = "" if row["cost"] is None else f", {least}{amount(row['cost'], row['cost_unit'])} a trial"
    ends = interval(row["accuracy_low"], row["accuracy_high"], percent)
    return f"{row['arm']} at width {row['width']}: {percent(row['accuracy'])}{ends}{cost}."


# ---- the map -------------------------------------------------------------------------------------------------


def where_it_pays(found: pl.DataFrame) -> Drawing:
    """The map: a row an arm, a column a width and one for all cases; each cell its verdict, gain and ratio of costs.

    `found` is a `metrics.ablation`.
    """
    import altair as alt
    import polars as pl

    if found.is_empty():
        return nothing("there is no ablation to draw")
    named = with_arms(found)
    rows = named.filter(~pl.col("is_baseline") & pl.col("over").is_in(["width", "all"]))
    if rows.is_empty():
        return sentence("Nothing to compare", "only the baseline was asked")
    arms = list(rows["arm"].unique(maintain_order=True))[:_MOST_SCAFFOLDS]
    rows = rows.filter(pl.col("arm").is_in(arms))
    widths = sorted(rows["width"].drop_nulls().unique())
    if len(widths) == 1:  # it would say the same again
        widths, rows = [], rows.filter(pl.col("over") == "all")
    title = [_counts(rows)]
    shown = _some_of(widths)
    columns = [*(f"width {each}" for each in shown), "all cases"]
    cells = [
        _cell(row, row["arm"])
        for row in rows.iter_rows(named=True)
        if row["over"] == "all" or row["width"] in shown
    ]
    lines = _lines(rows)
    margin = min(7.0 * max(len(line) for each in lines.values() for line in each) + 16, 200)
    width = round(min(WIDTH - margin - 10, _WIDEST * len(columns)))
    x = alt.X("column:N", sort=columns, title=None, scale=alt.Scale(paddingInner=0.05, paddingOuter=0)).axis(
        orient="top", labelAngle=0, labelColor=INK, labelOpacity=SOFT, grid=False
    )
    y = alt.Y("arm:N", sort=arms, title=None, scale=alt.Scale(paddingInner=0.1, paddingOuter=0)).axis(
        labelColor=INK,
        labelOpacity=1,
        labelLimit=200,
        grid=False,
        labelExpr=f"{json.dumps(lines)}[datum.value]",
    )
    tips = [alt.Tooltip(f"{name}:N") for name in ("arm", "column", "verdict", "gain", "cost", "cases")]
    data = pl.DataFrame(cells)
    base = alt.Chart(data).encode(x=x, y=y)
    ink = alt.Color("ink:N", scale=None, legend=None)
    size = min(11.0, (width / len(columns) - 8) / 10.6)
    layers = [
        base.mark_rect(cornerRadius=3, strokeWidth=1).encode(
            fill=alt.Fill("fill:N", scale=None, legend=None),
            stroke=alt.Stroke("edge:N", scale=None, legend=None),
            strokeOpacity=alt.value(0.35),
            tooltip=tips,
        ),
        base.mark_text(fontSize=size, dy=-13, fontWeight=600).encode(text="verdict:N", color=ink),
        base.mark_text(fontSize=size, dy=2).encode(text="gain:N", color=ink),
        base.mark_text(fontSize=size, dy=15).encode(text="cost:N", color=ink),
    ]
    chart = alt.layer(*layers).properties(width=width, height=alt.Step(_CELL + 10))
    margin_said = (
        f"{in_points(rows['margin'][0])} or {100 * rows['cost_margin'][0]:g}% of cost is no difference"
    )
    unit = "tokens" if rows["cost_unit"][0] == "tokens" else "money"
    base_name = _bases(rows)
    about = (
        f"Each cell: the verdict by 95% intervals, the gain in accuracy over {base_name}, and the {unit} of a trial as a "
        f"multiple of its. Within {margin_said}; not corrected for the number of cells."
    )
    if len(shown) < len(widths):
        about += (
            f" Drawn: {len(shown)} of {len(widths)} widths; the title counts all, and the table has them."
        )
    if named.filter(~pl.col("is_baseline"))["arm"].n_unique() > len(arms):
        about += f" Drawn: {len(arms)} of {named.filter(~pl.col('is_baseline'))['arm'].n_unique()} arms."
    if any(cell["cost"][0] in "≥≤" for cell in cells):
        about += " ≥ and ≤: a cost is a lower bound, since an attempt was killed."
    if any("(+" in cell["verdict"] for cell in cells):
        about += " Undecided (+n): about n more cases would decide."
    spoken = " ".join(f"{c['arm']}, {c['column']}: {c['said']}." for c in cells)
    chart = chart.properties(title=headline(title, [about, evidence(rows)]))
    return themed(chart, f"{'; '.join(title)}. {spoken} {evidence(rows)}.")


def _some_of(widths: Sequence[int]) -> list[int]:
    """At most `_MOST_COLUMNS` of the widths, evenly from the first to the last."""
    if len(widths) <= _MOST_COLUMNS:
        return list(widths)
    return [widths[round(n * (len(widths) - 1) / (_MOST_COLUMNS - 1))] for n in range(_MOST_COLUMNS)]


def _lines(rows: pl.DataFrame) -> dict[str, list[str]]:
    """What stands beside each row of the map: the arm's scaffold, below its driver and model where they vary."""
    arms = rows.select("arm", "driver", "model", "scaffold").unique(maintain_order=True)
    scaffolds = short_names(list(arms["scaffold"]), 28)
    drivers = {
        key: " + ".join(part for part in key if part) for key in arms.select("driver", "model").iter_rows()
    }
    short = short_names(list(drivers.values()), 28)
    alone = len(drivers) == 1
    return {
        arm: [*([] if alone else [short[drivers[driver, model]]]), scaffolds[scaffold]]
        for arm, driver, model, scaffold in arms.iter_rows()
    }


def _counts(rows: pl.DataFrame) -> str:
    """How often each verdict was given, width by width; over all cases where there is one width."""
    by_width = rows.filter(rows["over"] == "width")
    several = by_width["width"].n_unique() > 1
    given = Counter((by_width if several else rows.filter(rows["over"] == "all"))["verdict"])
    counts = [f"{given[verdict]} {_SAID[verdict][given[verdict] > 1]}" for verdict in _SAID if given[verdict]]
    of = counted(given.total(), "comparison")
    return f"Of {of} {'by width' if several else 'over all cases'}, {listed(counts, len(_SAID))}"


_SAID = {
    "dominates": ("dominates", "dominate"),
    "pays": ("pays", "pay"),
    "cheaper, no worse": ("is cheaper and no worse", "are cheaper and no worse"),
    "no difference": ("makes no difference", "make no difference"),
    "costs without gain": ("costs without gain", "cost without gain"),
    "loses": ("loses", "lose"),
    "undecided": ("is undecided", "are undecided"),
}


def _bases(rows: pl.DataFrame) -> str:
    found = list(rows["against"].drop_nulls().unique(maintain_order=True))
    return found[0] if len(found) == 1 else "each arm's baseline"


def _cell(row: dict[str, Any], arm: str) -> dict[str, Any]:
    fill, ink = _FILLS.get(row["verdict"], ("transparent", INK))
    verdict = row["verdict"]
    if verdict == "undecided" and row["needed"] is not None:
        verdict = f"undecided (+{rounded_up(row['needed'])})"
    gain = "not compared" if row["difference"] is None else f"{points(row['difference'])} points"
    cost = (
        "cost not known"
        if row["cost"] is None
        else "no ratio of costs"
        if row["cost_ratio"] is None
        else f"{bound_sign(row)}{times(row['cost_ratio'])} × {'tokens' if row['cost_unit'] == 'tokens' else 'money'}"
    )
    return {
        "arm": arm, "column": "all cases" if row["over"] == "all" else f"width {row['width']}", "verdict": verdict,
        "gain": gain, "cost": cost, "cases": counted(row["cases"], "paired case"), "fill": fill, "ink": ink,
        "edge": INK if fill == "transparent" else fill, "said": f"{verdict_words(row)}, {gain}, {cost}",
    }  # fmt: skip
