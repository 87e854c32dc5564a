"""All eight pass^k intervals of one arm, 1,000 cases of eight trials, against scipy's bootstrap called eight times.

Both draw 10,000 resamples of whole cases and take percentiles. Ours draws how many cases of each number of successes
are in a resample, once for all k; scipy draws cases, 100 resamples at a time, its own vectorised mean over them.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from common import compare

from agentbench_lab.stats import bootstrap_over_kinds, pass_hat_weights

CASES, TRIALS, RESAMPLES = 1_000, 8, 10_000
GOAL = 0.05

RNG = np.random.default_rng(7)
SOLVED = RNG.binomial(TRIALS, RNG.beta(0.8, 0.6, size=CASES))


def ours() -> float:
    began = time.perf_counter()
    counts = np.bincount(SOLVED, minlength=TRIALS + 1)
    bootstrap_over_kinds(counts, pass_hat_weights(TRIALS), resamples=RESAMPLES)
    return 1e3 * (time.perf_counter() - began)


def scipys() -> float:
    from scipy.stats import bootstrap

    began = time.perf_counter()
    for values in pass_hat_weights(TRIALS)[SOLVED].T:
        bootstrap((values,), np.mean, n_resamples=RESAMPLES, batch=100, method="percentile", rng=RNG)
    return 1e3 * (time.perf_counter() - began)


if __name__ == "__main__":
    try:
        import scipy.stats  # noqa: F401
    except ImportError:
        print("skipped: scipy is not installed")
        sys.exit(0)
    print(f"{TRIALS} intervals, {CASES} cases x {TRIALS} trials, {RESAMPLES} resamples")
    sys.exit(compare(ours, scipys, goal=GOAL, unit="ms"))
