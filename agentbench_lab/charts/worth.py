"""What an ablation found, in words: for titles, tables and the paragraph that states the result."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agentbench_lab.charts.words import (
    arm_labels,
    counted,
    in_points,
    interval,
    listed,
    percent,
    points,
    short_names,
    usd,
    users_said,
)

if TYPE_CHECKING:
    import polars as pl

_ARM = ("driver", "model", "scaffold")


def arm_names(frame: pl.DataFrame) -> list[str]:
    """The name of each row's arm: its scaffold alone, where all arms have one driver and model."""
    if frame.height and frame.select("driver", "model").n_unique() == 1:
        return list(frame["scaffold"])
    return arm_labels(frame)


def with_arms(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame with a column `arm` of short names, and `against`: that of the arm's baseline, null without one."""
    import polars as pl

    from agentbench_lab.analysis.metrics.arms import full_name

    names = arm_names(frame)
    arms = list(frame.select(_ARM).iter_rows())
    called = {full_name(*arm): (arm, name) for arm, name in zip(arms, names, strict=True)}
    against = [_against(arm, base, called) for arm, base in zip(arms, frame["baseline"], strict=True)]
    return frame.with_columns(
        pl.Series("arm", names, dtype=pl.String), pl.Series("against", against, dtype=pl.String)
    )


def _against(
    arm: tuple[Any, ...], base: str | None, called: Mapping[str, tuple[tuple[Any, ...], str]]
) -> str | None:
    """What to call an arm's baseline: its scaffold alone, where it is the same driver's."""
    if base is None or base not in called:
        return base
    other, name = called[base]
    return str(other[2]) if other[:2] == arm[:2] else name


def verdict_words(row: Mapping[str, Any], *, short: bool = False) -> str:
    """`pays`, or `undecided (about 40 more cases would decide)`, in short `undecided (about 40 more)`."""
    if row["verdict"] != "undecided":
        return str(row["verdict"] or "")
    if row["needed"] is None:
        return "undecided"
    if short:
        return f"undecided (about {rounded_up(row['needed'])} more)"
    more = "1 more case" if row["needed"] == 1 else f"{rounded_up(row['needed'])} more cases"
    return f"undecided (about {more} would decide)"


def rounded_up(count: int) -> str:
    """A whole number to two places, rounded up."""
    unit: int = 10 ** max(len(str(count)) - 2, 0)
    return f"{-(-count // unit) * unit:,}"


def times(ratio: float) -> str:
    """A ratio of costs, to three digits above 1 and two decimals below, never rounded to nothing: `12.3`, `0.80`, `0.0031`."""
    if ratio >= 1:
        return f"{ratio:,.{max(0, 2 - math.floor(math.log10(ratio)))}f}"
    return f"{ratio:.2f}" if ratio >= 0.1 or not ratio else f"{ratio:.2g}"


def amount(value: float, unit: str | None) -> str:
    """A mean cost: dollars, or tokens to three digits."""
    if unit == "usd":
        return usd(value)
    if 0 < value < 10:
        return f"{value:.2g} tokens"
    digits = max(0, math.floor(math.log10(value)) - 2) if value else 0
    return f"{round(value, -digits):,.0f} tokens"


def gain(row: Mapping[str, Any]) -> str:
    """`+39.2 [+26.1, +50.3]` points, or a dash."""
    if row["difference"] is None:
        return "–"
    return points(row["difference"]) + interval(row["difference_low"], row["difference_high"], points)


def ratio(row: Mapping[str, Any]) -> str:
    """`1.78 [1.75, 1.81]`, or a dash; `≥ 1.78 [1.75, no end]` where the arm's cost is a lower bound, `≤` where the baseline's is."""
    if row["cost_ratio"] is None:
        return "–"
    return bound_sign(row) + times(row["cost_ratio"]) + _ratio_ends(row)


def bound_sign(row: Mapping[str, Any]) -> str:
    """`≥ ` or `≤ ` before a ratio of costs whose interval is open above or below, since a cost is a lower bound."""
    low, high = row["cost_ratio_low"], row["cost_ratio_high"]
    if low is not None and high is None:
        return "≥ "
    return "≤ " if low == 0 and row["cost_ratio"] else ""


def _ratio_ends(row: Mapping[str, Any]) -> str:
    low, high = row["cost_ratio_low"], row["cost_ratio_high"]
    sign = bound_sign(row)
    if sign:
        return f" [{times(low)}, no end]" if sign == "≥ " else f" [no end, {times(high)}]"
    return interval(low, high, times)


def floors(found: pl.DataFrame) -> str | None:
    """Of whose trials only a lower bound of the cost is known, in one sentence; None where of none."""
    import polars as pl

    mine = found.filter((pl.col("over") == "all") & (pl.col("floors") > 0))
    named = [f"{row['floors']} of {row['of']} trials of {row['arm']}" for row in mine.to_dicts()]
    if not named:
        return None
    return f"≥: a lower bound, since an attempt was killed with what it had used: {listed(named)}"


def compared(found: pl.DataFrame, over: str = "all") -> list[dict[str, Any]]:
    """The rows of the arms that are set against a baseline."""
    import polars as pl

    return found.filter((pl.col("over") == over) & ~pl.col("is_baseline")).to_dicts()


def claims(found: pl.DataFrame, where: pl.DataFrame, *, short: bool = False) -> list[str]:
    """From which width on each arm pays, or what it comes to over all cases; arms that are alike together. In `short`, for a
    title, long names are cut and of more than four arms the first three are named.

    `found` is a `with_arms` of a `metrics.ablation`, `where` its `metrics.where_it_pays`.
    """
    said: dict[tuple[str, str], list[str]] = {}
    starts = {tuple(row[name] for name in _ARM): row for row in where.iter_rows(named=True)}
    names = short_names(list(found["arm"].unique(maintain_order=True)), 44 if short else 10_000)
    bases = short_names(
        list(found["against"].drop_nulls().unique(maintain_order=True)), 44 if short else 10_000
    )
    for row in compared(found):
        start = starts.get(tuple(row[name] for name in _ARM))
        first = None if start is None else start["from_width"]
        base = "its baseline" if row["against"] is None else bases[row["against"]]
        if first is None or start is None or len(start["widths"]) < 2:
            came = row["verdict"] if row["verdict"] != "undecided" else "undecided"
            what = (
                f"{_verbs(came, base, False)} over all cases",
                f"{_verbs(came, base, True)} over all cases",
            )
        elif first == start["widths"][0]:
            what = (f"pays against {base} at every width", f"pay against {base} at every width")
        else:
            what = (f"pays against {base} from width {first} on", f"pay against {base} from width {first} on")
        said.setdefault(what, []).append(names[row["arm"]])
    return [
        f"{_all_of(arms, 4 if short else len(arms))} {one if len(arms) == 1 else many}"
        for (one, many), arms in said.items()
    ]


def _verbs(verdict: str, base: str, many: bool) -> str:
    """A verdict as what an arm, or several, do."""
    be, s = ("are", "") if many else ("is", "s")
    return {
        "dominates": f"dominate{s} {base}",
        "pays": f"pay{s} against {base}",
        "cheaper, no worse": f"{be} cheaper than {base} and no worse",
        "no difference": f"make{s} no difference to {base}",
        "costs without gain": f"cost{s} more than {base} without gain",
        "loses": f"lose{s} to {base}",
    }.get(verdict, f"against {base} {be} undecided")


def _all_of(names: Sequence[str], most: int) -> str:
    """`a`, `a and b`, `a, b and c`; of more than `most` the first three: `a, b, c and 5 more`."""
    if len(names) > most:
        names = [*names[:3], f"{len(names) - 3} more"]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def sentences(found: pl.DataFrame, where: pl.DataFrame) -> list[str]:
    """The result in plain words, a text an arm: numbers, intervals, the verdict, and from which width on it pays.

    The last text says what it rests on: the margins, the unit of cost, unsafe outcomes, and what was not compared.
    """
    starts = {tuple(row[name] for name in _ARM): row for row in where.iter_rows(named=True)}
    said = []
    for row in compared(found):
        start = starts.get(tuple(row[name] for name in _ARM))
        said.append(_of_arm(row) + ("" if start is None else _of_widths(start)))
    return [*said, " ".join(_basis(found))]


def _of_arm(row: Mapping[str, Any]) -> str:
    arm, base = row["arm"], row["against"]
    if row["difference"] is None:
        return f"{arm} cannot be compared: {row['reason'] or 'nothing is known'}."
    d = row["difference"]
    ends = interval(row["difference_low"], row["difference_high"], points)
    size = f"{abs(100 * d):.1f}".removesuffix(".0")
    more = (
        "as many"
        if size == "0"
        else f"{size} {'point' if size == '1' else 'points'} {'more' if d > 0 else 'less'}"
    )
    rates = f"{percent(row['paired'])} against {percent(row['paired_baseline'])}"
    cost = _of_cost(row)
    sure = {"undecided": f"this is {verdict_words(row)}"}.get(
        row["verdict"], f"it {_verbs(row['verdict'], base, False)}"
    )
    than = f"as {base}" if size == "0" else f"than {base}"
    return f"{arm} solves {more} {than} (difference{ends} points; {rates} over {counted(row['cases'], 'paired case')}), {cost}: {sure}."


def _of_cost(row: Mapping[str, Any]) -> str:
    if row["cost_ratio"] is None:
        return f"at a cost that is not known ({row['reason'] or 'no ratio'})"
    what = "money" if row["cost_unit"] == "usd" else "tokens"
    least = {"≥ ": "at least ", "≤ ": "at most "}.get(bound_sign(row), "")
    return f"for {least}{times(row['cost_ratio'])} times the {what}{_ratio_ends(row)}"


def _of_widths(start: Mapping[str, Any]) -> str:
    """From which width on it pays, and how sure that is."""
    if len(start["widths"]) < 2:
        return ""
    if start["share"] is None or start["seen"] is None:
        share = "" if start["share"] is None else f" (in {percent(start['share'])} of resamples there is one)"
        return f" There is no width from which on it gains more than the margin{share}."
    low, high = ("never" if start[end] is None else str(start[end]) for end in ("low", "high"))
    ends = f"from {low}" if low == high else f"from {low} to {high}"
    by = f"by the estimates alone from width {start['seen']} on ({ends} in 95% of resamples)"
    if start["from_width"] is None:
        return f" From no width on does every verdict say that it pays; {by}."
    return f" It pays from width {start['from_width']} on by every verdict; {by}."


def _basis(found: pl.DataFrame) -> list[str]:
    rows = compared(found)
    if not rows:
        return ["One arm by itself gains nothing and costs nothing more."]
    first = rows[0]
    said = [
        f"A difference within {in_points(first['margin'])} or {100 * first['cost_margin']:g}% of cost counts as none; all "
        "intervals are at 95%, and verdicts are not corrected for their number."
    ]
    if first["cost_unit"] == "tokens":
        said.append("Cost is counted in tokens of all kinds, since money is not known of as many trials.")
    tried = [
        f"{row['arm']} {row['attempts']:,} for {counted(row['of'], 'trial')}"
        for row in found.filter(over="all").to_dicts()
        if row["attempts"] > row["of"]
    ]
    if tried:
        said.append(f"Attempts: {listed(tried)}; what all of them used is in the cost.")
    bound = floors(found)
    if bound:
        said.append(f"{bound}.")
    said += users_said(found)
    unpaired = sorted({case for row in rows for case in row["unpaired"]})
    if unpaired:
        more = f" and {len(unpaired) - 3} more" if len(unpaired) > 3 else ""
        said.append(f"In no difference: {', '.join(unpaired[:3])}{more}.")
    unsafe = [f"{row['arm']} {row['unsafe']}" for row in rows if row["unsafe"]]
    base = max((row["baseline_unsafe"] or 0) for row in rows)
    if unsafe or base:
        counts = [*unsafe, *([f"the baseline {base}"] if base else [])]
        said.append(f"Unsafe outcomes: {', '.join(counts)}; no verdict makes up for them.")
    return said
