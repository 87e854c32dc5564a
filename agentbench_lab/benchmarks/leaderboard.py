"""A published table of results beside what a run's rows give: reported on the card, never adopted.

The table is a CSV in one of two shapes, with `driver` and, where it has one, `model` naming the arm:

    driver,model,metric,unit,value          or      driver,model,accuracy,stderr
    droid,gpt-5,accuracy,share,0.525                droid,gpt-5,0.525,0.0209
    droid,gpt-5,stderr,share,0.0209

Metrics are `accuracy` (solved of judged trials), `stderr` (of the mean accuracy of n runs, a run being all trials of
one number: their sample standard deviation over the square root of n), `pass^K` and `pass@K` (over the cases with K
trials or more), `solved` and `trials` (counts), `cost` (all trials) and `cost_per_trial` (US dollars). Units are share,
percent, usd and trials; without one it is the metric's own. `columns` maps these names to the table's own headers.
Other columns are skipped, and an empty cell publishes nothing.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from agentbench_lab.benchmarks.reading import read_bytes
from agentbench_lab.benchmarks.totals import (
    Tally,
    accuracy,
    pass_at_k,
    pass_hat_k,
    standard_error,
    tally,
)
from agentbench_lab.errors import LabError, did_you_mean
from agentbench_lab.results.run import Published, Run

ARM = ("driver", "model")
LONG = ("metric", "unit", "value")
METRICS: dict[str, str] = {
    "accuracy": "share",
    "stderr": "share",
    "solved": "trials",
    "trials": "trials",
    "cost": "usd",
    "cost_per_trial": "usd",
}
"""The metrics by name, with their units; pass^K and pass@K are shares."""
UNITS = ("share", "percent", "usd", "trials")
_THOUSANDS = re.compile(r"[-+]?\d{1,3}(,\d{3})+(\.\d*)?")
_PASS = re.compile(r"pass([@^])([1-9]\d{0,8})")


class _Rows(NamedTuple):
    """What the rows of one arm say."""

    by_case: dict[object, Tally]
    by_trial: dict[object, Tally]
    costs: list[int | None]


class _Value(NamedTuple):
    """A printed figure: its value in the metric's unit, and how many decimals of it were printed."""

    value: float
    digits: int


def check_published(
    run: Run,
    table: str | Path | Iterable[Mapping[str, Any]],
    columns: Mapping[str, str] | None = None,
) -> tuple[Published, ...]:
    """Each figure of a published table beside what the run's rows give, in the table's order.

    `table` is a CSV file or its rows; see the module for its shapes. A figure follows when the rows give it, rounded to
    as many decimals as it is printed with: to the nearest, or, with two digits or more, up or down, which the note then
    says. Rows of arms that the run does not have are an error, as are a metric or unit that is not known, and what is
    no number.
    """
    columns = dict(columns or {})
    arms = _arms(run)
    found = []
    for where, row in _read(table, columns):
        arm = _arm(row, arms, where)
        for metric, unit, printed in _figures(row, where):
            own, give = _metric(metric, where)
            value = _value(printed, own, unit, f"{where}: {metric}")
            found.append(_beside(arm, metric, own, value, give(arms[arm])))
    return tuple(found)


def with_published(run: Run, published: Iterable[Published]) -> Run:
    """The run with these on its card, after those that stand there. Raises LabError for a run that is not imported."""
    imported = run.card.imported
    if imported is None:
        raise LabError(f"{run.card.run}: published totals stand on the cards of imported runs only")
    both = msgspec.structs.replace(imported, published=(*imported.published, *published))
    return msgspec.structs.replace(run, card=msgspec.structs.replace(run.card, imported=both))


# ---- the table ------------------------------------------------------------------------------------------------------


def _read(
    table: str | Path | Iterable[Mapping[str, Any]], columns: Mapping[str, str]
) -> list[tuple[str, dict[str, str]]]:
    """The rows under our names, each with its place."""
    if isinstance(table, str | Path):
        name, rows = str(table), _csv(Path(table))
    else:
        rows = [
            (number, {str(key): "" if cell is None else str(cell) for key, cell in row.items()})
            for number, row in enumerate(table, 1)
        ]
        name = "published"
    headers = list(dict.fromkeys(header for _, row in rows for header in row))
    for ours, theirs in columns.items():
        if not _known(ours):
            raise LabError(
                f"{name}: no column {ours!r}{did_you_mean(ours, [*ARM, *LONG, *METRICS], most=20)}"
            )
        if theirs not in headers:
            raise LabError(f"{name}: has no column {theirs!r}{did_you_mean(theirs, headers)}")
    taken = set(columns.values())
    names = {header: header for header in headers if _known(header) and header not in taken | columns.keys()}
    names |= {theirs: ours for ours, theirs in columns.items()}
    if "driver" not in names.values():
        raise LabError(f"{name}: no column driver{did_you_mean('driver', headers)}")
    if not ({"metric", "value"} <= set(names.values()) or any(map(_is_metric, names.values()))):
        raise LabError(f"{name}: neither columns metric and value nor a column named like a metric")
    return [
        (f"{name}:{at}", {names[header]: cell.strip() for header, cell in row.items() if header in names})
        for at, row in rows
    ]


def _csv(path: Path) -> list[tuple[int, dict[str, str]]]:
    try:
        text = read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise LabError(f"{path}: not UTF-8 at byte {error.start}") from None
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = next(reader, [])
        if len(set(header)) < len(header):
            twice = next(name for name in header if header.count(name) > 1)
            raise LabError(f"{path}:1: column {twice!r} stands twice")
        rows = []
        for cells in reader:
            if not cells:
                continue
            if len(cells) != len(header):
                raise LabError(
                    f"{path}:{reader.line_num}: {len(cells)} cells under {len(header)} column names"
                )
            rows.append((reader.line_num, dict(zip(header, cells, strict=True))))
    except csv.Error as error:
        raise LabError(f"{path}:{reader.line_num}: {error}") from None
    if not rows:
        raise LabError(f"{path}: no rows")
    return rows


def _known(name: str) -> bool:
    return name in ARM or name in LONG or _is_metric(name)


def _is_metric(name: str) -> bool:
    return name in METRICS or _PASS.fullmatch(name) is not None


def _figures(row: Mapping[str, str], where: str) -> list[tuple[str, str, str]]:
    """(metric, unit, printed) of a row: the one it names, and those of columns named like a metric."""
    figures = [(name, "", cell) for name, cell in row.items() if _is_metric(name) and cell]
    if row.get("value"):
        if not row.get("metric"):
            raise LabError(f"{where}: a value without a metric")
        figures.append((row["metric"], row.get("unit", ""), row["value"]))
    return figures


_MOST_DIGITS = 300


def _value(printed: str, own: str, unit: str, where: str) -> _Value:
    unit = unit or ("percent" if printed.endswith("%") and own == "share" else own)
    if unit not in UNITS:
        raise LabError(f"{where}: no unit {unit!r}{did_you_mean(unit, UNITS)}")
    if unit != own and (unit, own) != ("percent", "share"):
        raise LabError(f"{where}: is in {own}, not in {unit}")
    text = printed.removesuffix("%").removeprefix("$").strip()
    if "," in text and not _THOUSANDS.fullmatch(text):
        raise LabError(
            f"{where}: {printed!r} is no number: a comma parts thousands only, a point the decimals"
        )
    text = text.replace(",", "")
    match = re.fullmatch(r"[-+]?\d*\.?(?P<decimals>\d*)(?P<exponent>[eE][-+]?\d{1,3})?", text)
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if match is None or not math.isfinite(value):
        raise LabError(f"{where}: {printed!r} is no number")
    digits = len(match["decimals"]) if "." in text else 0
    digits -= int((match["exponent"] or "e0")[1:])
    if abs(digits) > _MOST_DIGITS:  # a unit in the last place would be no number
        raise LabError(f"{where}: {printed!r} is no number")
    return _Value(value / 100, digits + 2) if unit == "percent" else _Value(value, digits)


# ---- the run --------------------------------------------------------------------------------------------------------


def _arms(run: Run) -> dict[tuple[str, str | None], _Rows]:
    trials = run.trials.select(["driver", "model", "case_id", "trial", "solved", "cost_micros"])
    by_arm: dict[tuple[str, str | None], list[dict[str, Any]]] = defaultdict(list)
    for row in trials.to_pylist():
        by_arm[row["driver"], row["model"]].append(row)
    return {
        arm: _Rows(
            tally((row["case_id"], row["solved"]) for row in rows if row["solved"] is not None),
            tally((row["trial"], row["solved"]) for row in rows if row["solved"] is not None),
            [row["cost_micros"] for row in rows],
        )
        for arm, rows in by_arm.items()
    }


def _arm(
    row: Mapping[str, str], arms: Mapping[tuple[str, str | None], _Rows], where: str
) -> tuple[str, str | None]:
    driver, model = row.get("driver", ""), row.get("model", "") or None
    of_driver = [arm for arm in arms if arm[0] == driver]
    if not of_driver:
        raise LabError(
            f"{where}: the run has no driver {driver!r}{did_you_mean(driver, [a[0] for a in arms])}"
        )
    # An arm whose model the run does not know is the one that the table means by its driver.
    fitting = [arm for arm in of_driver if model in (arm[1], None) or of_driver == [(driver, None)]]
    models = [arm[1] or "none" for arm in of_driver]
    if not fitting:
        raise LabError(f"{where}: {driver} has no model {model!r}{did_you_mean(str(model), models)}")
    if len(fitting) > 1:
        raise LabError(f"{where}: {driver} has several models ({', '.join(sorted(models))}): name one")
    return fitting[0]


def _metric(name: str, where: str) -> tuple[str, Callable[[_Rows], float | None]]:
    """A metric's unit, and what computes it."""
    match = _PASS.fullmatch(name)
    if match:
        of_k = pass_hat_k if match[1] == "^" else pass_at_k
        return "share", partial(_of_k, of_k, int(match[2]))
    if name not in METRICS:
        known = [*METRICS, "pass^1", "pass@1"]
        raise LabError(f"{where}: no metric {name!r}{did_you_mean(name, known)}")
    return METRICS[name], _GIVE[name]


def _of_k(
    estimator: Callable[[Mapping[object, Tally], int], float | None], k: int, rows: _Rows
) -> float | None:
    return estimator(rows.by_case, k)


def _cost(rows: _Rows) -> float | None:
    known = [micros for micros in rows.costs if micros is not None]
    return sum(known) / 1e6 if known and len(known) == len(rows.costs) else None


def _cost_per_trial(rows: _Rows) -> float | None:
    spent = _cost(rows)
    return None if spent is None else spent / len(rows.costs)


_GIVE: dict[str, Callable[[_Rows], float | None]] = {
    "accuracy": lambda rows: accuracy(rows.by_case),
    "stderr": lambda rows: standard_error(rows.by_trial),
    "solved": lambda rows: sum(each.solved for each in rows.by_case.values()),
    "trials": lambda rows: len(rows.costs),
    "cost": _cost,
    "cost_per_trial": _cost_per_trial,
}


def _beside(
    arm: tuple[str, str | None], metric: str, unit: str, printed: _Value, rows: float | None
) -> Published:
    place = 10.0**-printed.digits
    apart = math.inf if rows is None else abs(printed.value - rows)
    nearest = apart <= place / 2 + 1e-9
    # One printed digit says too little to forgive how it was rounded: 0.02 would follow from 0.0121.
    follows = nearest or (apart < place - 1e-9 and abs(printed.value) >= 9.999 * place)
    note = ""
    if follows and not nearest and rows is not None:
        note = "rounded up" if printed.value > rows else "rounded down"
    return Published(*arm, metric, unit, printed.value, rows, follows, note)
