"""Estimators on plain numbers and arrays; numpy only."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Z_95 = 1.959963984540054
"""The 97.5 % point of the standard normal distribution."""


def wilson(successes: int, n: int, z: float = Z_95) -> tuple[float, float] | None:
    """The Wilson score interval of a proportion; None when n is 0.

    Assumes n independent trials with one common chance of success. Source: Wilson, "Probable inference, the law of
    succession, and statistical inference", JASA 22 (1927).
    """
    if not 0 <= successes <= n:
        raise ValueError(f"{successes} successes of {n}")
    if n == 0:
        return None
    p = successes / n
    center = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    # at the ends the interval touches 0 or 1 exactly; rounding must not take it past
    return (0.0 if successes == 0 else center - half, 1.0 if successes == n else center + half)


def bootstrap_over_cases(
    successes: npt.ArrayLike,
    trials: npt.ArrayLike,
    *,
    seed: int = 0,
    resamples: int = 10_000,
    level: float = 0.95,
) -> tuple[float, float] | None:
    """The percentile interval of the pooled rate sum(successes) / sum(trials), resampling whole cases; None without.

    `successes` and `trials` are one number a case. Trials of one case are not independent, cases are assumed to be:
    so cases are drawn with replacement and bring all their trials. Source: Efron and Tibshirani, "An Introduction to
    the Bootstrap" (1993), section 13; for clustered evaluation data Miller, "Adding error bars to evals" (2024).
    """
    c = np.asarray(successes, dtype=np.float64)
    n = np.asarray(trials, dtype=np.float64)
    if c.shape != n.shape or c.ndim != 1:
        raise ValueError("successes and trials must be two lists of one length")
    if (c < 0).any() or (c > n).any():
        raise ValueError("a case has more successes than trials")
    keep = n > 0
    c, n = c[keep], n[keep]
    if c.size == 0:
        return None
    rng = np.random.default_rng(seed)
    rates = np.empty(resamples)
    # drawing in blocks bounds the memory for large suites
    block = max(1, 2_000_000 // c.size)
    for start in range(0, resamples, block):
        stop = min(start + block, resamples)
        drawn = rng.integers(0, c.size, size=(stop - start, c.size))
        rates[start:stop] = c[drawn].sum(axis=1) / n[drawn].sum(axis=1)
    tail = 100 * (1 - level) / 2
    low, high = np.percentile(rates, [tail, 100 - tail])
    return float(low), float(high)
