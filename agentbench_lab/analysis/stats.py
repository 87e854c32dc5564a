"""Estimators on plain numbers and arrays; numpy only."""

from __future__ import annotations

import math
from collections.abc import Sequence

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


def paired_over_cases(
    a: npt.ArrayLike, b: npt.ArrayLike, *, seed: int = 0, resamples: int = 10_000, level: float = 0.95
) -> tuple[float, float] | None:
    """The percentile interval of mean(b - a) over paired cases, resampling whole cases; None without a case.

    `a` and `b` are one number a case (the mean over its trials), in the same order. Pairing takes the difficulty of
    the cases out of the difference. Cases are assumed independent. Source: Efron and Tibshirani, "An Introduction to
    the Bootstrap" (1993); for evaluation data Miller, "Adding error bars to evals" (2024), section on paired analysis.
    """
    d = np.asarray(b, dtype=np.float64) - np.asarray(a, dtype=np.float64)
    if d.ndim != 1:
        raise ValueError("a and b must be two lists of one length")
    if d.size == 0:
        return None
    rng = np.random.default_rng(seed)
    means = np.empty(resamples)
    block = max(1, 2_000_000 // d.size)
    for start in range(0, resamples, block):
        stop = min(start + block, resamples)
        means[start:stop] = d[rng.integers(0, d.size, size=(stop - start, d.size))].mean(axis=1)
    tail = 100 * (1 - level) / 2
    low, high = np.percentile(means, [tail, 100 - tail])
    return float(low), float(high)


def mcnemar_exact(only_a: int, only_b: int) -> float:
    """The two-sided exact McNemar p-value from the two discordant counts (solved by one arm only).

    Assumes one trial a case and independent cases; under the null a discordant case is a fair coin. 1.0 without a
    discordant case. Source: McNemar, "Note on the sampling error of the difference between correlated proportions",
    Psychometrika 12 (1947), in its exact binomial form.
    """
    if only_a < 0 or only_b < 0:
        raise ValueError("counts must not be negative")
    n, k = only_a + only_b, min(only_a, only_b)
    tail = sum(math.comb(n, i) for i in range(k + 1))
    # whole numbers until the last step, so that large counts neither overflow nor lose the small tail
    return min(1.0, (2 * tail) / (1 << n)) if n else 1.0


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down adjusted p-values, in the order given; valid for any dependence between the tests.

    Source: Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6 (1979).
    """
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted = [0.0] * len(p_values)
    running = 0.0
    for rank, i in enumerate(order):
        running = max(running, min(1.0, (len(p_values) - rank) * p_values[i]))
        adjusted[i] = running
    return adjusted


def sign_flip(
    differences: Sequence[int], *, seed: int = 0, work: int = 200_000_000, draws: int = 20_000
) -> tuple[float, bool]:
    """The two-sided p-value of the paired sign-flip test of whole-number differences, and whether it is exact.

    Under the null the two arms are exchangeable on every case, so each difference is as likely with either sign; p is
    the share of all sign assignments whose sum lies at least as far from 0 as the one seen. With differences of -1, 0
    and 1 it is the exact McNemar test. Assumes independent cases, and the same number of trials by both arms at a case
    (otherwise it holds approximately). The distribution is computed whole while that takes at most `work` steps;
    beyond, from `draws` random assignments. Source: Fisher, "The Design of Experiments" (1935), section 21; for the
    drawn p-value, which is never 0, Phipson and Smyth, "Permutation p-values should never be zero" (2010).
    """
    sizes = [abs(d) for d in differences if d]
    if not sizes:
        return 1.0, True
    unit = math.gcd(*sizes)
    sizes = [size // unit for size in sizes]
    seen, total = abs(sum(differences)) // unit, sum(sizes)
    if 2 * total * len(sizes) <= work:
        # chance[s] of a sum of 2 s - total: each size is either in the positive part or not
        chance = np.zeros(total + 1)
        chance[0], reach = 1.0, 0
        for size in sizes:
            chance[: reach + size + 1] /= 2
            chance[size : reach + size + 1] += chance[: reach + 1].copy()
            reach += size
        tail = float(chance[(total + seen) // 2 :].sum())
        return min(1.0, 2 * tail if seen else 1.0), True
    rng = np.random.default_rng(seed)
    scaled = np.asarray(sizes, dtype=np.float64)
    extreme = 0
    block = max(1, 2_000_000 // scaled.size)
    for start in range(0, draws, block):
        signs = rng.integers(0, 2, size=(min(block, draws - start), scaled.size)) * 2 - 1
        # the sums are whole numbers, up to rounding where they are huge
        extreme += int((np.abs(signs @ scaled) >= seen * (1 - 1e-9)).sum())
    return (extreme + 1) / (draws + 1), False


def pass_hat_k(successes: int, n: int, k: int) -> float | None:
    """The chance that k trials drawn from n without replacement all succeed: C(c, k) / C(n, k); None when n < k.

    The unbiased estimator of p^k from n independent trials of one case with c successes. A suite's pass^k is the mean
    over its cases, never the mean to the power of k. Source: Yao et al., "tau-bench" (2024), section 3.
    """
    if not 0 <= successes <= n or k < 1:
        raise ValueError(f"{successes} successes of {n} trials, k {k}")
    return math.comb(successes, k) / math.comb(n, k) if n >= k else None
