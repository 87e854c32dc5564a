"""What trials cost, what they used, which arms no other beats, and how often tool calls go wrong."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agentbench_lab.charts import percent
from agentbench_lab.charts.words import (
    beaten_by,
    counted,
    listed,
    named,
    per_arm,
    unsafe_said,
    usd,
    users_said,
)
from agentbench_lab.tables.table import Table, share_of, under_arms

if TYPE_CHECKING:
    import polars as pl

_MONEY = {
    "spent": ">spent",
    "per_trial": ">per trial",
    "per_solved": ">per solved",
    "failures": ">on failures",
}
_USE = {
    "tokens_fresh_input": ">fresh input",
    "tokens_cache_read": ">cache read",
    "tokens_cache_write": ">cache write",
    "tokens_output": ">output",
    "model_calls": ">model calls",
    "tool_calls": ">tool calls",
    "wall_s": ">seconds",
}
_ERRORS = {
    "any": "any of them",
    "undeclared": "a tool that was not declared",
    "malformed": "not a call at all",
    "schema_error": "arguments that do not fit",
    "tool_error": "the tool said no",
    "protocol_error": "the server broke off",
}


def cost(frame: pl.DataFrame) -> Table:
    """The money by arm, from a `metrics.cost`: spent in all, per trial, per solved trial, and the share on failures.

    ≥ marks a lower bound: some trial's cost is unknown, or known in part. What has no number says why.
    """
    if frame.is_empty():
        return Table("What it costs", ["arm"], [], ["no trials"])
    rows = []
    reasons: dict[str, list[str]] = {}
    for arm, by_metric in sorted(_arms(frame), key=_dear):
        cells = [
            _spent(by_metric.get("spent"), reasons),
            _number(by_metric.get("per_trial"), usd, reasons, n_of=True),
            _number(by_metric.get("per_solved"), usd, reasons, n_of=True, bound=True),
            _failed(by_metric.get("failures"), reasons),
        ]
        any_row = by_metric.get("per_solved") or by_metric.get("spent")
        known = "–" if any_row is None else f"{any_row['n']}/{any_row['of']}"
        solved = "–" if any_row is None else f"{any_row['solved']:,}"
        rows.append([arm, *cells, solved, known])
    columns = ["arm", *_MONEY.values(), ">solved", ">cost known"]
    notes = [
        "per solved: all that was spent, failures too, by the trials solved [95% interval]; cost known: of the trials that ended"
    ]
    if any("≥" in cell for row in rows for cell in row):
        notes.append(
            "≥: a lower bound, the cost of some trials is unknown, or what an attempt had used when it was killed; n/of: only "
            "n trials say all of it, and they need not be like the others"
        )
    return Table("What it costs", columns, rows, [*notes, *users_said(named(frame)), *_why(reasons, len(rows)), *_estimators(frame, list(_MONEY))])  # fmt: skip


def usage(frame: pl.DataFrame) -> Table:
    """What a trial uses by arm, from a `metrics.cost`: tokens in four buckets, calls and seconds, as means with intervals."""
    if frame.is_empty():
        return Table("What a trial uses", ["arm"], [], ["no trials"])
    arms = _arms(frame)
    reasons: dict[str, list[str]] = {}
    unknown = [name for name in _USE if all(_null(found.get(name)) for _, found in arms)]
    shown = [name for name in _USE if name not in unknown]
    rows: list[Sequence[str]] = [
        [arm, *(_number(found.get(name), _quantity, reasons, n_of=True) for name in shown)]
        for arm, found in arms
    ]
    notes = ["mean per trial that says it [95% interval], n/of trials where some do not"]
    if unknown:
        names = ", ".join(_USE[name].removeprefix(">") for name in unknown)
        notes.append(f"not known of any trial: {names}")
    columns = ["arm", *(_USE[name] for name in shown)]
    if not shown:
        rows = []
    return Table("What a trial uses", columns, rows, [*notes, *users_said(named(frame)), *_why(reasons, len(rows)), *_estimators(frame, shown)])  # fmt: skip


def frontier(frame: pl.DataFrame) -> Table:
    """Accuracy and cost by arm, the most accurate first, and which arms no other beats in both, from a `metrics.frontier`."""
    import polars as pl

    if frame.is_empty():
        return Table("Accuracy and cost", ["arm"], [], ["no trials"])
    rows = []
    reasons: dict[str, list[str]] = {}
    ordered = beaten_by(frame).sort("accuracy", descending=True, nulls_last=True, maintain_order=True)
    for row in ordered.iter_rows(named=True):
        accuracy, money = "–", "–"
        if row["accuracy"] is not None:
            accuracy = share_of(row["accuracy"], row["accuracy_low"], row["accuracy_high"], gate=False)
        if row["cost"] is not None:
            money = f"{usd(row['cost'])}{_ends(row['cost_low'], row['cost_high'], usd)}{_some(row)}"
        if row["on_frontier"] is None:
            reasons.setdefault(row["reason"] or "not known", []).append(row["arm"])
            place = "not known"
        elif row["on_frontier"]:
            place = "on the frontier" if ordered.height > 1 else "the only arm"
        else:
            place = f"beaten by {row['dominated_by'] or 'another'}"
        alone = row["membership"] is None or ordered.height == 1
        sure = "–" if alone else percent(row["membership"])
        cases = "–" if row["cases"] is None else str(row["cases"])
        rows.append([row["arm"], accuracy, money, f"{row['n']}/{row['of']}", cases, place, sure])
    columns = ["arm", ">accuracy", ">per trial", ">cost known", ">cases", "place", ">in resamples"]
    notes = [
        "[95% interval]; on the frontier: no other arm is at least as accurate and at most as dear; in resamples: the share "
        "in which the arm is on it, over the common cases"
    ]
    if ordered["lower_bound"].any():
        notes.append("n/of: the mean of the n costs that are known, with which an arm has no place")
    estimators = frame.filter(pl.col("cost").is_not_null())["estimator"].drop_nulls().unique().sort()
    notes += [f"intervals: {listed(per_arm(list(estimators), frame.height), 3)}"] if len(estimators) else []
    return Table("Accuracy and cost", columns, rows, [*notes, *unsafe_said(named(frame)), *users_said(named(frame)), *_why(reasons, len(rows))])  # fmt: skip


def tool_errors(frame: pl.DataFrame) -> Table:
    """How often a call to a tool goes wrong, by arm and kind, from a `metrics.tool_errors`; each is n of the calls."""
    import polars as pl

    rows: list[Sequence[str] | str] = []
    why = list(frame["reason"].unique()) if frame.height else []
    if len(why) == 1 and frame["estimate"].is_null().all():
        nothing = [[_ERRORS["any"], why[0] or "not known"]]
        return Table("Calls that went wrong", ["what", ">share"], nothing)
    for _, part in under_arms(frame, rows) if frame.height else ():
        found = {row["metric"]: row for row in part.iter_rows(named=True)}
        if all(row["estimate"] is None for row in found.values()):
            reasons = [row["reason"] for row in found.values() if row["reason"]] or ["not known"]
            rows.append([_ERRORS["any"], reasons[0], "", ""])
            continue
        for name in [*_ERRORS, *(name for name in found if name not in _ERRORS)]:
            row = found.get(name)
            if row is not None:
                value = row["reason"] or "not known"
                if row["estimate"] is not None:
                    value = share_of(row["estimate"], row["low"], row["high"], gate=False)
                rows.append(
                    [
                        _ERRORS.get(name, name),
                        value,
                        f"{'–' if row['n'] is None else row['n']}/{row['of']}",
                        "" if name == "any" else name,
                    ]
                )
    known = frame.filter(pl.col("low").is_not_null() & pl.col("estimator").is_not_null())
    estimators = sorted({each.removeprefix("share, ") for each in known["estimator"]})
    notes = [
        f"share of the calls that reached a tool [95% interval{f', {listed(estimators)}' if estimators else ''}] n/calls"
    ]
    return Table("Calls that went wrong", ["what", ">share", ">calls", "status"], rows, notes if rows else ["no trials"])  # fmt: skip


def _arms(frame: pl.DataFrame) -> list[tuple[str, dict[str, Mapping[str, Any]]]]:
    """Each arm with its rows by metric."""
    found: dict[str, dict[str, Mapping[str, Any]]] = {}
    for row in named(frame).iter_rows(named=True):
        found.setdefault(row["arm"], {})[row["metric"]] = row
    return list(found.items())


def _dear(arm: tuple[str, Mapping[str, Mapping[str, Any]]]) -> float:
    """What tables go by, like the figure beside them: dollars per solved trial, those without last."""
    row = arm[1].get("per_solved")
    return math.inf if row is None or row["estimate"] is None else float(row["estimate"])


def _null(row: Mapping[str, Any] | None) -> bool:
    return row is None or row["estimate"] is None


def _ends(low: float | None, high: float | None, say: Callable[[float], str]) -> str:
    if low is None:
        return ""
    end = "no end" if high is None or not math.isfinite(high) else say(high).removeprefix("$")
    return f" [{say(low).removeprefix('$')}, {end}]"


def _number(
    row: Mapping[str, Any] | None,
    say: Callable[[float], str],
    reasons: dict[str, list[str]],
    *,
    n_of: bool = False,
    bound: bool = False,
) -> str:
    """`≥ $0.42 [0.40, 0.45]`, or – with its reason kept for a note."""
    if row is None:
        return "–"
    if row["estimate"] is None or not math.isfinite(row["estimate"]):
        reasons.setdefault(row["reason"] or "not known", []).append(row["arm"])
        return "–"
    some = _some(row) if n_of else ""
    at_least = "≥ " if bound and row["lower_bound"] else ""
    return f"{at_least}{say(row['estimate'])}{_ends(row['low'], row['high'], say)}{some}"  # fmt: skip


def _spent(row: Mapping[str, Any] | None, reasons: dict[str, list[str]]) -> str:
    """A sum is what it is: an interval would be one of other cases."""
    if row is None:
        return "–"
    total = row["total"] if row["total"] is not None else row["estimate"]
    if total is None:
        reasons.setdefault(row["reason"] or "not known", []).append(row["arm"])
        return "–"
    return f"{'≥ ' if row['lower_bound'] else ''}{usd(total)}{_some(row)}"


def _failed(row: Mapping[str, Any] | None, reasons: dict[str, list[str]]) -> str:
    if row is None:
        return "–"
    if row["estimate"] is None:
        reasons.setdefault(row["reason"] or "not known", []).append(row["arm"])
        return "–"
    return f"{share_of(row['estimate'], row['low'], row['high'], gate=False)}{_some(row)}"


def _some(row: Mapping[str, Any]) -> str:
    """` 10/500` where only so many trials say it."""
    return f" {row['n']}/{row['of']}" if row["n"] < row["of"] else ""


def _quantity(value: float) -> str:
    """1,234,567 as 1.23M: what a mean of tokens or seconds is known to."""
    for size, sign in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            scaled = value / (1e3 if sign == "k" else size)
            return f"{scaled:,.{max(0, 3 - len(str(int(abs(scaled)))))}f}{sign}"
    if float(value).is_integer():
        return f"{value:,.0f}"
    return f"{value:,.{max(0, 3 - len(str(int(abs(value)))))}f}"


def _why(reasons: Mapping[str, list[str]], arms_in_all: int) -> list[str]:
    """Each reason for a missing number once, with its arms."""
    found = []
    for reason, arms in reasons.items():
        distinct = list(dict.fromkeys(arms))
        whom = f"all {arms_in_all} arms" if len(distinct) == arms_in_all > 3 else listed(distinct, 3)
        found.append(f"–: {reason} ({whom})")
    return found[:5] + ([f"and {counted(len(found) - 5, 'more reason')}"] if len(found) > 5 else [])


def _estimators(frame: pl.DataFrame, metrics: Sequence[str]) -> list[str]:
    import polars as pl

    found = frame.filter(pl.col("metric").is_in(metrics) & pl.col("low").is_not_null())[
        "estimator"
    ].drop_nulls()
    arms = frame.select("driver", "model", "scaffold").n_unique()
    return [f"intervals: {'; '.join(per_arm(list(found.unique().sort()), arms))}"] if found.len() else []
