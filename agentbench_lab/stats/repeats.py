"""What several trials of one case say: pass^k and pass@k."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt


def pass_hat_k(successes: int, n: int, k: int) -> float | None:
    """The chance that k trials drawn from n without replacement all succeed: C(c, k) / C(n, k); None when n < k.

    The unbiased estimator of p^k from n independent trials of one case with c successes. A suite's pass^k is the mean
    over its cases, never the mean to the power of k. Source: Yao et al., "tau-bench" (2024), section 3.
    """
    if not 0 <= successes <= n or k < 1:
        raise ValueError(f"{successes} successes of {n} trials, k {k}")
    return math.comb(successes, k) / math.comb(n, k) if n >= k else None


def pass_at_k(successes: int, n: int, k: int) -> float | None:
    """The chance that of k trials drawn from n without replacement any succeeds: 1 - C(n-c, k) / C(n, k).

    The unbiased estimator of 1 - (1 - p)^k from n independent trials of one case with c successes; None when n < k.
    Source: Chen et al., "Evaluating large language models trained on code" (2021), section 2.1.
    """
    failing = pass_hat_k(n - successes, n, k)
    return None if failing is None else 1 - failing


def pass_hat_weights(n: int) -> npt.NDArray[np.float64]:
    """`pass_hat_k` of every number of successes: row c from 0 to n, column k - 1 for k from 1 to n."""
    if n < 0:
        raise ValueError(f"{n} trials")
    c, j = np.arange(n + 1)[:, None], np.arange(n)
    # C(c, k) / C(n, k) is the product of (c - j) / (n - j) over j < k: no factor ever exceeds 1
    return np.cumprod(np.maximum(c - j, 0) / (n - j), axis=1)


def pass_at_weights(n: int) -> npt.NDArray[np.float64]:
    """`pass_at_k` of every number of successes: row c from 0 to n, column k - 1 for k from 1 to n."""
    return 1 - pass_hat_weights(n)[::-1]
