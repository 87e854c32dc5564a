"""Means and rates with their standard errors and intervals in closed form."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Z_95 = 1.959963984540054
"""The 97.5 % point of the standard normal distribution."""


def wilson(successes: float, n: int, z: float = Z_95) -> tuple[float, float] | None:
    """The Wilson score interval of a proportion; None when n is 0.

    Assumes n independent trials with one common chance of success; `successes` may be a fraction where each of the n
    is a mean of several. Source: Wilson, "Probable inference, the law of succession, and statistical inference",
    JASA 22 (1927).
    """
    if not 0 <= successes <= n:
        raise ValueError(f"{successes} successes of {n}")
    if n == 0:
        return None
    p = successes / n
    low, high = _score(p, p * (1 - p) / n, n, z)
    # at the ends the interval touches 0 or 1 exactly; rounding must not take it past
    return (0.0 if successes == 0 else low, 1.0 if successes == n else high)


def wilson_over_cases(
    over: npt.ArrayLike,
    under: npt.ArrayLike,
    *,
    trials: float | None = None,
    times: npt.ArrayLike | None = None,
    z: float = Z_95,
) -> tuple[float, float] | None:
    """The interval of sum(over) / sum(under), a share of trials that depend on each other within a case; None without.

    `over` and `under` have one number a case, 0 <= over <= under: solved and judged trials, or a mean and 1. `times` is
    how many cases are such (1 each, where it is left out), `trials` how many there are in all (sum(under)). With
    V the variance of the share over whole cases (with G / (G - 1), but not above p (1 - p) / G, that of cases which are all or
    nothing), it is the wider, at either end, of two of Wilson's intervals: of the effective number of observations
    p (1 - p) / V, at least the cases G and at most the trials; and of G observations with V in place of p (1 - p) / G. The
    first is short at 0, at 1 and where few trials differ from all others, when V says next to nothing; the second keeps
    to the cases there. At one trial a case, and where every case is all or nothing, both are Wilson's of the cases. Of
    cases with unlike trials G is (sum under)^2 / sum under^2. Cases are assumed independent. A test simulates what it holds.
    Sources: Wilson (1927); Korn and Graubard, "Confidence intervals for proportions with small expected number of
    positive counts estimated from survey data", Survey Methodology 24 (1998); Franco, Little, Louis and Slud,
    "Comparative study of confidence intervals for proportions in complex sample surveys", Journal of Survey Statistics
    and Methodology 7 (2019).
    """
    x, m = np.asarray(over, dtype=np.float64), np.asarray(under, dtype=np.float64)
    t = np.ones_like(x) if times is None else np.asarray(times, dtype=np.float64)
    if x.ndim != 1 or not x.shape == m.shape == t.shape:
        raise ValueError("over, under and times must be lists of one length")
    if (x < 0).any() or (x > m + 1e-9).any():
        raise ValueError("a share below 0 or above 1")
    whole, count = float(t @ m), float(t[m > 0].sum())
    if not whole:
        return None
    p = min(float(t @ x) / whole, 1.0)
    cases = whole * whole / float(t @ (m * m))
    most = p * (1 - p)
    seen = float(t @ (x - p * m) ** 2) / whole**2
    # one case says nothing of how cases vary: then it is all or nothing
    variance = most / cases if count < 2 else max(seen, min(seen * count / (count - 1), most / cases))
    observed = max(cases, whole if trials is None else trials)
    if variance > 0:
        observed = min(max(most / variance, cases), observed)
    ends = [_score(p, most / observed, observed, z), _score(p, variance, cases, z)]
    low, high = min(low for low, _ in ends), max(high for _, high in ends)
    return (0.0 if not p else max(low, 0.0), 1.0 if p == 1 else min(high, 1.0))


def _score(p: float, variance: float, n: float, z: float) -> tuple[float, float]:
    """Wilson's interval of the share p with its variance, where n observations pull it towards the middle."""
    center = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(variance + z * z / (4 * n * n)) / (1 + z * z / n)
    return center - half, center + half


class ClusteredMean(NamedTuple):
    """A mean with its cluster-robust standard error, degrees of freedom and interval; unknown is None."""

    estimate: float
    se: float | None
    df: int
    low: float | None
    high: float | None


def clustered_se(
    values: npt.ArrayLike, clusters: npt.ArrayLike, *, level: float = 0.95
) -> ClusteredMean | None:
    """The mean of `values` with a standard error that lets values of one cluster depend on each other.

    `clusters` names the cluster (a case, a topic) of each value. The error is sqrt(G / (G - 1) sum_g u_g^2) / n, with
    u_g the sum of the deviations in cluster g of G; the interval is Student's with G - 1 degrees of freedom, and is not
    cut at the ends of a scale. None without a value; se, low and high are None for one cluster. Source: Cameron and
    Miller, "A practitioner's guide to cluster-robust inference", Journal of Human Resources 50 (2015), section II and
    VI; for evaluations Miller, "Adding error bars to evals" (2024), section 2.2, there without G / (G - 1).
    """
    x = np.asarray(values, dtype=np.float64)
    names, place = np.unique(np.asarray(clusters), return_inverse=True)
    if x.ndim != 1 or place.shape != x.shape:
        raise ValueError("values and clusters must be two lists of one length")
    if x.size == 0:
        return None
    mean, groups = float(x.mean()), len(names)
    if groups == 1:
        return ClusteredMean(mean, None, 0, None, None)
    sums = np.bincount(place, weights=x - mean)
    se = math.sqrt(groups / (groups - 1) * float(sums @ sums)) / x.size
    half = student_t(0.5 + level / 2, groups - 1) * se
    return ClusteredMean(mean, se, groups - 1, mean - half, mean + half)


def standard_error(values: Sequence[float]) -> float | None:
    """Of the mean of independent values: their sample standard deviation (n - 1) by the root of n; None below two.

    Of the accuracies of whole runs it is the error over repeated runs of the same cases, not over other cases: as
    leaderboards of Terminal-Bench give it. For values of one case that depend on each other see `clustered_se`.
    """
    return statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else None


def student_t(p: float, df: float) -> float:
    """The p-quantile of Student's t with `df` degrees of freedom.

    By bisection of the tail, which is half the regularised incomplete beta function at df / (df + t^2). Source:
    Abramowitz and Stegun, "Handbook of Mathematical Functions" (1964), 26.7.1.
    """
    if not 0 < p < 1 or not df > 0:
        raise ValueError(f"p {p}, degrees of freedom {df}")
    if p < 0.5:
        return -student_t(1 - p, df)
    if p == 0.5:
        return 0.0
    low, high = 0.0, 1.0
    while _upper_tail(high, df) > 1 - p:
        low, high = high, 2 * high
    while (middle := (low + high) / 2) not in (low, high):
        if _upper_tail(middle, df) > 1 - p:
            low = middle
        else:
            high = middle
    return high


def _upper_tail(t: float, df: float) -> float:
    """The chance that Student's t is above t >= 0."""
    a, b = df / 2, 0.5
    x = df / (df + t * t)
    # the fraction converges fast on one side of the mean of the beta distribution
    if x < (a + 1) / (a + b + 2):
        return _incomplete_beta(a, b, x, t * t / (df + t * t)) / 2
    return (1 - _incomplete_beta(b, a, t * t / (df + t * t), x)) / 2


def _incomplete_beta(a: float, b: float, x: float, y: float) -> float:
    """The regularised incomplete beta function at x = 1 - y, by its continued fraction (modified Lentz).

    Source: Abramowitz and Stegun, 26.5.8; Press et al., "Numerical Recipes" (2007), section 6.4.
    """
    if x == 0 or y == 0:
        return float(x > 0)
    tiny = 1e-300
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    fraction = d
    for m in range(1, 100_000):
        for step in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / (1 + step * d or tiny)
            c = 1 + step / c or tiny
            fraction *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    front = a * math.log(x) + b * math.log(y) - _log_beta(a, b)
    return math.exp(front) * fraction / a


def _log_beta(a: float, b: float) -> float:
    small, large = min(a, b), max(a, b)
    if small == 0.5 and large > 50:
        # the difference of two huge logarithms would lose the digits that count
        ratio = 0.5 * math.log(large) - 1 / (8 * large) + 1 / (192 * large**3) - 1 / (640 * large**5)
    else:
        ratio = math.lgamma(large + small) - math.lgamma(large)
    return math.lgamma(small) - ratio
