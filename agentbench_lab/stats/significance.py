"""Tests of a difference between two arms, and what several tests cost."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np


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


def mcnemar_corrected(only_a: int, only_b: int) -> tuple[float, float]:
    """McNemar's statistic with the correction for continuity, and its p-value by chi-squared with one degree of freedom.

    (|only_a - only_b| - 1)^2 / (only_a + only_b); 0 and 1.0 where the two counts are equal. It is here to check
    published figures; the exact test needs no approximation. Source: McNemar, Psychometrika 12 (1947), corrected as in
    Edwards, "Note on the correction for continuity", Psychometrika 13 (1948).
    """
    if only_a < 0 or only_b < 0:
        raise ValueError("counts must not be negative")
    if only_a == only_b:
        return 0.0, 1.0
    chi2 = (abs(only_a - only_b) - 1) ** 2 / (only_a + only_b)
    return chi2, math.erfc(math.sqrt(chi2 / 2))


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
