"""Ratios over cases with their intervals, many at once: money by trial, errors by call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from agentbench_lab.analysis.metrics import intervals
from agentbench_lab.analysis.metrics.arms import ARM
from agentbench_lab.analysis.metrics.asked import check_resamples
from agentbench_lab.analysis.metrics.intervals import RESAMPLES as RESAMPLES
from agentbench_lab.analysis.metrics.intervals import resamples_for as resamples_for
from agentbench_lab.stats import ratios_over_cases

Floats = npt.NDArray[np.float64]

ONE_CASE = "one case gives no interval"
ALIKE = "all cases are alike: no interval"


@dataclass(frozen=True, slots=True)
class Ratio:
    """sum(over) / sum(under) with its interval; `reason` says why an end, or all of it, is missing."""

    estimate: float | None
    low: float | None
    high: float | None
    estimator: str
    reason: str | None


@dataclass(frozen=True, slots=True)
class Kind:
    """How a ratio is called; whether it is a share, between 0 and 1 and with Wilson's interval where all cases are
    alike; whether it counts single things, so that its interval is that of every share (`intervals.ends`); and what
    happens in a resample that has nothing to divide by."""

    of: str
    share: bool = False
    counts: bool = False
    endless: str = "there is nothing to divide by"


KINDS = {
    "per_solved": Kind("ratio of sums", endless="no trial is solved"),
    "failures": Kind("ratio of sums", share=True),
    "share": Kind("share", share=True, counts=True),
}
"""What is special about some ratios; the others are means."""


def all_ratios(
    pairs: Mapping[str, Sequence[tuple[pl.Series, pl.Series]]],
    *,
    seed: int,
    resamples: int,
    level: float,
) -> dict[str, list[Ratio]]:
    """The ratio of each pair of series, which have one number a case: by name, in the order given."""
    check_resamples(resamples)
    read = {
        name: [(x.to_numpy().astype(np.float64), y.to_numpy().astype(np.float64)) for x, y in each]
        for name, each in pairs.items()
    }
    places = [(name, at) for name, each in read.items() for at in range(len(each))]
    by_size: dict[int, list[tuple[str, int]]] = {}
    for name, at in places:
        if name in KINDS and KINDS[name].counts:
            continue
        by_size.setdefault(read[name][at][1].size, []).append((name, at))
    ends: dict[tuple[str, int], tuple[float, float] | None] = {}
    for size, mine in by_size.items():
        if size > 1:
            found = ratios_over_cases(
                [read[name][at] for name, at in mine],
                seed=seed,
                resamples=resamples_for(size, resamples),
                level=level,
            )
            ends.update(zip(mine, found, strict=True))
    return {
        name: [
            _share(name, *pair, level)
            if name in KINDS and KINDS[name].counts
            else _ratio(name, *pair, ends.get((name, at)), level)
            for at, pair in enumerate(each)
        ]
        for name, each in read.items()
    }


def _share(name: str, x: Floats, y: Floats, level: float) -> Ratio:
    low, high, how = intervals.ends(x, y, level=level)
    estimate = float(x.sum()) / float(y.sum()) if y.any() else None
    return Ratio(estimate, low, high, f"{KINDS[name].of}, {how}", None)


def _ratio(name: str, x: Floats, y: Floats, ends: tuple[float, float] | None, level: float) -> Ratio:
    kind = KINDS.get(name, Kind("mean"))
    over, under = float(x.sum()), float(y.sum())
    estimate = over / under if under else None
    estimator = f"{kind.of}, bootstrap over cases"
    if estimate is None:
        return Ratio(None, None, None, estimator, None)
    if ends is None:
        return Ratio(estimate, None, None, estimator, ONE_CASE)
    low, high = ends
    if np.isinf(high):
        tail = f"in more than {100 * (1 - level) / 2:g} % of the resamples {kind.endless}: no upper end"
        return Ratio(estimate, low if np.isfinite(low) else None, None, estimator, tail)
    same = intervals.alike(x, y)
    if same and kind.share:
        # drawing from cases that are all alike gives no width: then each case is one observation
        first, last = intervals.wilson_at(estimate * y.size, y.size, level)
        return Ratio(estimate, first, last, f"{kind.of}, wilson over cases", None)
    if same:
        return Ratio(estimate, None, None, estimator, ALIKE)
    return Ratio(estimate, low, high, estimator, None)


def sums_by_case(trials: pl.DataFrame, *sums: pl.Expr) -> list[tuple[dict[str, Any], pl.DataFrame]]:
    """Each arm, in the order in which arms first appear, with a row a case: suite, case_id, trials, and the sums."""
    cases = trials.group_by(*ARM, "suite", "case_id").agg(pl.len().alias("trials"), *sums)
    parts = cases.sort("suite", "case_id").partition_by(*ARM, as_dict=True, maintain_order=True)
    arms = trials.select(*ARM, "evidence").unique(maintain_order=True)
    kinds = arms.group_by(*ARM, maintain_order=True).agg(pl.col("evidence").unique().sort())
    return [
        ({**dict(zip(ARM, key, strict=True)), "evidence": ", ".join(evidence)}, parts[tuple(key)])
        for *key, evidence in kinds.iter_rows()
    ]


def knowing(cases: pl.DataFrame, name: str) -> pl.DataFrame:
    """The cases in which `name` counts something."""
    # most often these are all, and a filter costs more than a look
    return cases if (cases[name] > 0).all() else cases.filter(pl.col(name) > 0)


def said(*reasons: str | None) -> str | None:
    """The reasons that there are, in one text."""
    return "; ".join(reason for reason in reasons if reason) or None
