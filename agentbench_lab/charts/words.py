"""Words that charts and tables share: percents, the names of arms, what stands behind a number."""

from __future__ import annotations

import json
import math
import re
import textwrap
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

from agentbench_lab.errors import counted as counted
from agentbench_lab.ladder import COMPLETION_FLOOR, RUNG_NAMES
from agentbench_lab.points import tenths

if TYPE_CHECKING:
    import polars as pl


def percent(share: float, *, gate: bool = True) -> str:
    """A share as a whole percent; with one decimal where that would read as none, as all, or as passing the gate.

    `gate`: whether it is a number that some gate may ask for; else the last does not matter.
    """
    exact = round(100.0 * share, 9)
    near = gate and share < COMPLETION_FLOOR <= round(exact) / 100
    if exact.is_integer() or (0.5 < exact < 99.5 and not near):
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


def evidence(frame: pl.DataFrame) -> str:
    """What stands behind each arm's numbers, for a subtitle."""
    words = {"simulated": "simulated (no model was asked)", "replayed": "replayed (recorded earlier)"}
    pairs = frame.select("arm", "evidence").unique(maintain_order=True).rows()
    kinds = list(dict.fromkeys(kind for _, kind in pairs))
    if len(kinds) == 1:
        pairs = [("", kinds[0])]
    elif len(pairs) > 4:
        arms = {kind: [arm for arm, each in pairs if each == kind] for kind in kinds}
        pairs = [
            (names[0] if len(names) == 1 else f"{len(names)} arms", kind) for kind, names in arms.items()
        ]
    return "Evidence: " + "; ".join(
        f"{arm} {words.get(kind, kind or 'unknown')}".strip() for arm, kind in pairs
    )


def label_expression(groups: Sequence[str]) -> str:
    """Axis labels over several lines: a rung's name and what it asks for. Names are data: JSON, never code."""
    names = {drawable(group): RUNG_NAMES.get(group, "") for group in groups}
    lines = {name: [name, *textwrap.wrap(words, 11)] for name, words in names.items()}
    return f"{json.dumps(lines)}[datum.value]"


_UNDRAWABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def drawable(value: Any) -> Any:
    """A JSON value without the signs that no drawing (XML) can hold: over one of them the whole process would end."""
    if isinstance(value, str):
        return _UNDRAWABLE.sub("\N{REPLACEMENT CHARACTER}", value)
    if isinstance(value, dict):
        return {drawable(key): drawable(item) for key, item in value.items()}
    return [drawable(item) for item in value] if isinstance(value, list | tuple) else value


def shortened(name: str, most: int, head: float = 0.5) -> str:
    """A name with its middle left out where it is long; `head` of what is left is its beginning."""
    if len(name) <= most:
        return name
    first = round((most - 1) * head)
    return f"{name[:first]}…{name[len(name) - (most - 1 - first) :]}"


def short_names(names: Sequence[str], most: int) -> dict[str, str]:
    """Each name shortened so that all of them still differ: cut elsewhere than in the middle, or numbered."""
    for head in (0.5, 0.65, 0.35, 0.8, 0.2, 1.0, 0.0):
        found = {name: shortened(name, most, head) for name in names}
        if len(set(found.values())) == len(found):
            return found
    return {name: f"{n}. {shortened(name, most - 4)}" for n, name in enumerate(dict.fromkeys(names), start=1)}


_THIN, _THICK = set("iljtfrI.,:;|!'() -"), set("mwMW%@…→+")


def text_width(text: str, size: float) -> float:
    """About how many pixels the text takes at this size in the widest of the fonts that a page may have."""
    return size * sum(
        0.38 if c in _THIN else 0.92 if c in _THICK else 0.7 if c.isupper() else 0.62 for c in text
    )


def named(frame: pl.DataFrame, name: str = "arm") -> pl.DataFrame:
    """The frame with a column of its arms' short names."""
    import polars as pl

    return frame.with_columns(pl.Series(name, arm_labels(frame), dtype=pl.String))


DOUBT = " †"
FEW_ARMS = 6
"""Of more arms than these the words that all names begin with are said once, below the title."""


def marked(
    frame: pl.DataFrame, doubted: Collection[tuple[str, str | None]] = ()
) -> tuple[pl.DataFrame, list[str]]:
    """`named`, for a chart: a dagger at the arms of which a published number does not follow from their rows, and
    without what the names of many arms begin with; and the sentences that say both."""
    import polars as pl

    names, said = arm_labels(frame), []
    lead = _lead(names) if len(set(names)) > FEW_ARMS else ""
    if lead:
        names = [name.removeprefix(lead) for name in names]
        said.append(f"All arms: {lead.removesuffix(' + ')}.")
    arms = list(frame.select("driver", "model").iter_rows())
    if any(arm in doubted for arm in arms):
        names = [name + DOUBT * (arm in doubted) for name, arm in zip(names, arms, strict=True)]
        said.append("†: a published number of this arm does not follow from its rows.")
    return frame.with_columns(pl.Series("arm", names, dtype=pl.String)), said


def _lead(names: Sequence[str]) -> str:
    """What all names begin with, up to a plus: `mini-swe-agent + `, or nothing."""
    first = names[0].split(" + ")
    for size in range(len(first) - 1, 0, -1):
        lead = " + ".join(first[:size]) + " + "
        if all(name.startswith(lead) for name in names):
            return lead
    return ""


def beaten_by(frame: pl.DataFrame) -> pl.DataFrame:
    """A `metrics.frontier` under its arms' short names (`arm`, made where there is none), by which it then also says who beats whom."""
    import polars as pl

    from agentbench_lab.analysis.metrics.arms import ARM, full_name

    found = frame if "arm" in frame.columns else named(frame)
    names = {full_name(*key): arm for *key, arm in found.select(*ARM, "arm").iter_rows()}
    by = [None if name is None else names.get(name, name) for name in found["dominated_by"]]
    return found.with_columns(pl.Series("dominated_by", by, dtype=pl.String))


def unsafe_said(frame: pl.DataFrame, most: int = 4) -> list[str]:
    """Which arms are disqualified, as a sentence: `Whatever the numbers say, stub is disqualified: 1 unsafe of ...`.

    `frame` has a column `arm` and one that says it (`said` of a `metrics.disqualified`, else `disqualified`).
    """
    column = "said" if "said" in frame.columns else "disqualified"
    if column not in frame.columns:
        return []
    rows = frame.filter(frame[column].is_not_null()).unique("arm", maintain_order=True)
    said = [f"{arm} is {words}" for arm, words in rows.select("arm", column).iter_rows()]
    if not said:
        return []
    more = f"; and {len(said) - most} more" if len(said) > most else ""
    return [f"Whatever the rates: {'; '.join(said[:most])}{more}."]


def usd(value: float) -> str:
    """Money in dollars, to three digits and never rounded to nothing: $1,234, $12.30, $0.423, $0.00468."""
    if value == 0:
        return "$0"
    whole = len(str(int(abs(value)))) if abs(value) >= 1 else 1 - math.ceil(-math.log10(abs(value)))
    return f"${value:,.{min(max(0, 3 - whole), 9) if abs(value) < 1 else 2 if abs(value) < 1000 else 0}f}"


def users_said(frame: pl.DataFrame) -> list[str]:
    """What a cost leaves aside, as a sentence, where there are simulated users that used something: what they spent by arm.

    `frame` is a metric of cost with a column `arm`.
    """
    if "user_trials" not in frame.columns:
        return []
    rows = frame.filter(frame["user_trials"].is_not_null()).unique("arm", maintain_order=True)
    if rows.is_empty():
        return []
    said = []
    for row in rows.iter_rows(named=True):
        money, tokens = row["user_cost"], row["user_tokens"]
        what = f"{tokens:,} tokens" if tokens is not None else "nobody knows how much"
        if money is not None and (money or not tokens):
            what = usd(money)
        said.append(f"{row['arm']} {what} in {counted(row['user_trials'], 'trial')}")
    return [f"Costs are the agent's; left aside is what simulated users spent: {listed(said)}."]


def interval(low: float | None, high: float | None, say: Callable[[float], str]) -> str:
    """` [low, high]`, or nothing where there is none."""
    return "" if low is None or high is None else f" [{say(low)}, {say(high)}]"


_COSTS_BY = re.compile(r"; (?=\d+ costs? )")


def per_arm(estimators: Sequence[str], arms: int) -> list[str]:
    """The ways in which costs were estimated; of several arms it is said that the costs counted there are those of one."""
    return [_COSTS_BY.sub("; per arm, ", each) if arms > 1 else each for each in estimators]


def points(low_or_difference: float) -> str:
    """A difference of shares in points, with its sign."""
    return tenths(low_or_difference)


def in_points(share: float) -> str:
    """A margin of accuracy: `2 points`, `1 point`."""
    size = f"{100 * share:g}"
    return f"{size} {'point' if size == '1' else 'points'}"


def tied(names: Sequence[str]) -> str:
    """Those who share a place: a name, or the first and how many more."""
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def listed(items: Sequence[str], most: int = 4) -> str:
    """The first items with commas, and how many more there are."""
    more = f" and {len(items) - most} more" if len(items) > most else ""
    return ", ".join(items[:most]) + more
