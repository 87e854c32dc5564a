"""The interval of a share, by the one rule that every metric follows: charts and tables only show it."""

from __future__ import annotations

from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from agentbench_lab.stats import Z_95, wilson, wilson_over_cases

RESAMPLES = 10_000
"""Of every bootstrap, unless it is told otherwise: one number has one interval, whichever metric gives it."""
OVER_CASES = "wilson over cases"
"""What the interval of a share is called where cases have several trials."""
SAME = 1e-12
"""Values that differ by less, relative to their size, differ by rounding."""
_WORK, _LEAST = 10_000_000, 500


class Ends(NamedTuple):
    """The ends of an interval, null where there is none, and how they were found."""

    low: float | None
    high: float | None
    how: str


def share(per_case: pl.DataFrame, *, level: float = 0.95) -> dict[str, Any]:
    """`n` of `of` over all cases, from a frame with both by case: estimate, low, high, n, of, cases, estimator.

    The interval is that of `ends`. Without a trial the estimate and its ends are null.
    """
    n, of, cases = int(per_case["n"].sum()), int(per_case["of"].sum()), per_case.height
    found = ends(per_case["n"].to_numpy(), per_case["of"].to_numpy(), level=level)
    return {
        "estimate": n / of if of else None,
        "low": found.low,
        "high": found.high,
        "n": n,
        "of": of,
        "cases": cases,
        "estimator": found.how,
    }


def ends(n: npt.ArrayLike, of: npt.ArrayLike, *, level: float = 0.95) -> Ends:
    """The interval of sum(n) / sum(of), whole numbers of one case each.

    Wilson's interval at one trial a case, and at several the same over whole cases (`stats.wilson_over_cases`), which
    does not jump where the first trial differs from the others: 48 of 48 over six cases is [61, 100] %, 47 of 48
    [60, 100] %.
    """
    each, every = np.asarray(n, dtype=np.float64), np.asarray(of, dtype=np.float64)
    each, every = each[every > 0], every[every > 0]
    total, whole, cases = float(each.sum()), float(every.sum()), each.size
    if whole == cases:
        return Ends(*wilson_at(total, cases, level), "wilson")
    low, high = wilson_over_cases(each, every, z=z_of(level)) or (None, None)
    return Ends(low, high, OVER_CASES)


def resamples_for(cases: int, resamples: int) -> int:
    """Fewer resamples for very many cases, whose intervals are narrow anyway."""
    return min(resamples, max(_LEAST, _WORK // max(1, cases)))


def alike(over: npt.NDArray[np.float64], under: npt.NDArray[np.float64]) -> bool:
    """Whether every case has the same ratio: from the data, since equal ratios need not have equal decimals."""
    return bool(np.allclose(over * under.sum(), over.sum() * under, rtol=SAME, atol=0))


def wilson_at(successes: float, n: int, level: float) -> tuple[float | None, float | None]:
    """Wilson's interval of `successes`, which rounding may have taken a hair past n; nulls without a trial."""
    return wilson(min(successes, n), n, z_of(level)) or (None, None)


def z_of(level: float) -> float:
    """How many standard errors an interval of this level reaches either way."""
    return Z_95 if level == 0.95 else NormalDist().inv_cdf(0.5 + level / 2)
