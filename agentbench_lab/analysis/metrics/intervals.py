"""The interval of a share, by the one rule that every metric follows: charts and tables only show it."""

from __future__ import annotations

from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from agentbench_lab.stats import Z_95, bootstrap_over_cases, wilson

RESAMPLES = 10_000
"""Of every bootstrap, unless it is told otherwise: one number has one interval, whichever metric gives it."""
SAME = 1e-12
"""Values that differ by less, relative to their size, differ by rounding."""
_WORK, _LEAST = 10_000_000, 500


class Ends(NamedTuple):
    """The ends of an interval, null where there is none, and how they were found."""

    low: float | None
    high: float | None
    how: str


def share(
    per_case: pl.DataFrame, *, seed: int = 0, resamples: int = RESAMPLES, level: float = 0.95
) -> dict[str, Any]:
    """`n` of `of` over all cases, from a frame with both by case: estimate, low, high, n, of, cases, estimator.

    The interval is that of `ends`. Without a trial the estimate and its ends are null.
    """
    n, of, cases = int(per_case["n"].sum()), int(per_case["of"].sum()), per_case.height
    found = ends(
        per_case["n"].to_numpy(), per_case["of"].to_numpy(), seed=seed, resamples=resamples, level=level
    )
    return {
        "estimate": n / of if of else None,
        "low": found.low,
        "high": found.high,
        "n": n,
        "of": of,
        "cases": cases,
        "estimator": found.how,
    }


def ends(
    n: npt.ArrayLike, of: npt.ArrayLike, *, seed: int = 0, resamples: int = RESAMPLES, level: float = 0.95
) -> Ends:
    """The interval of sum(n) / sum(of), whole numbers of one case each.

    Wilson's interval at one trial a case, a bootstrap over cases at several, and Wilson's with each case as one
    observation where the cases are all alike, as one case is (0 % in every trial is not known for sure).
    """
    each, every = np.asarray(n, dtype=np.float64), np.asarray(of, dtype=np.float64)
    each, every = each[every > 0], every[every > 0]
    total, whole, cases = float(each.sum()), float(every.sum()), each.size
    if whole == cases:
        return Ends(*wilson_at(total, cases, level), "wilson")
    if alike(each, every):
        # drawing from cases that are all alike gives no width: then each case is one observation
        return Ends(*wilson_at(total / whole * cases, cases, level), "wilson over cases")
    # it is kinds of cases that are drawn; only where there are very many of them is it too much work
    kinds = (
        1 if cases <= _WORK // max(1, resamples) else len(np.unique(np.column_stack([each, every]), axis=0))
    )
    enough = resamples_for(kinds, resamples)
    low, high = bootstrap_over_cases(each, every, seed=seed, resamples=enough, level=level) or (None, None)
    return Ends(low, high, "bootstrap over cases")


def resamples_for(cases: int, resamples: int) -> int:
    """Fewer resamples for very many cases, whose intervals are narrow anyway."""
    return min(resamples, max(_LEAST, _WORK // max(1, cases)))


def alike(over: npt.NDArray[np.float64], under: npt.NDArray[np.float64]) -> bool:
    """Whether every case has the same ratio: from the data, since equal ratios need not have equal decimals."""
    return bool(np.allclose(over * under.sum(), over.sum() * under, rtol=SAME, atol=0))


def wilson_at(successes: float, n: int, level: float) -> tuple[float | None, float | None]:
    """Wilson's interval of `successes`, which rounding may have taken a hair past n; nulls without a trial."""
    z = Z_95 if level == 0.95 else NormalDist().inv_cdf(0.5 + level / 2)
    return wilson(min(successes, n), n, z) or (None, None)
