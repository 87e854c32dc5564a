"""Intervals against hand examples, laws and oracles."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from agentbench_lab.stats import Z_95, bootstrap_over_cases, pass_hat_k, wilson


@pytest.mark.parametrize("n", [*range(1, 40), 100, 365, 1000, 12_345])
def test_wilson_is_scipys(n: int) -> None:
    """To 1e-9, at every count of successes (at some for large n)."""
    for k in range(n + 1) if n < 40 else sorted({0, 1, 2, n // 3, n // 2, n - 1, n}):
        oracle = scipy_stats.binomtest(k, n).proportion_ci(method="wilson")
        assert wilson(k, n) == pytest.approx((oracle.low, oracle.high), abs=1e-9)


def test_wilson_by_hand() -> None:
    """5 of 10 at z = 2: centre (0.5 + 0.2) / 1.4 = 0.5, half 2 sqrt(0.025 + 0.01) / 1.4."""
    half = 2 * math.sqrt(0.035) / 1.4
    assert wilson(5, 10, z=2) == pytest.approx((0.5 - half, 0.5 + half))
    assert pytest.approx(scipy_stats.norm.ppf(0.975), abs=1e-15) == Z_95


@settings(deadline=None)
@given(st.integers(1, 10**7), st.floats(0, 1))
def test_wilson_keeps_to_its_bounds(n: int, share: float) -> None:
    """Within 0 to 1, around the estimate, mirrored when successes and failures change places, never without width."""
    k = round(n * share)
    interval, mirrored = wilson(k, n), wilson(n - k, n)
    assert interval is not None
    assert mirrored is not None
    low, high = interval
    assert 0 <= low <= k / n <= high <= 1
    assert low < high
    assert (1 - high, 1 - low) == pytest.approx(mirrored, abs=1e-12)
    assert (low == 0) == (k == 0)
    assert (high == 1) == (k == n)


def test_wilson_without_trials_is_none() -> None:
    assert wilson(0, 0) is None


@pytest.mark.parametrize(("k", "n"), [(-1, 5), (6, 5), (1, 0), (0, -1)])
def test_wilson_of_nonsense_raises(k: int, n: int) -> None:
    with pytest.raises(ValueError):
        wilson(k, n)


def test_bootstrap_by_hand() -> None:
    """Two cases, one always solved and one never: a resample is 0, 1/2 or 1, with chances 1/4, 1/2, 1/4."""
    assert bootstrap_over_cases([4, 0], [4, 4]) == (0.0, 1.0)
    assert bootstrap_over_cases([4, 0], [4, 4], level=0.4) == (0.5, 0.5)


def test_bootstrap_weighs_cases_by_their_trials() -> None:
    """The pooled rate: 1 of 1 and 0 of 3. Drawn together they give 1/4, not the mean of rates 1/2."""
    assert bootstrap_over_cases([1, 0], [1, 3], level=0.4) == (0.25, 0.25)


def test_bootstrap_is_the_same_every_time() -> None:
    """And another for another seed."""
    c, n = [1, 2, 3, 0, 2, 1, 3, 3, 0], [3] * 9
    assert bootstrap_over_cases(c, n) == bootstrap_over_cases(c, n)
    assert bootstrap_over_cases(c, n, resamples=101, seed=1) != bootstrap_over_cases(
        c, n, resamples=101, seed=2
    )


def test_bootstrap_does_not_depend_on_its_blocks() -> None:
    """A large suite is drawn in blocks; the interval still comes from every resample."""
    rng = np.random.default_rng(1)
    c = rng.integers(0, 3, size=3000)
    interval = bootstrap_over_cases(c, np.full(3000, 2), resamples=2000)
    assert interval is not None
    spread = 1.96 * (c / 2).std() / math.sqrt(3000)
    center = c.mean() / 2
    assert interval == pytest.approx((center - spread, center + spread), abs=0.1 * spread)


@pytest.mark.parametrize("seed", range(3))
def test_bootstrap_is_scipys(seed: int) -> None:
    """Within the Monte Carlo error of both, with unequal trials."""
    rng = np.random.default_rng(seed)
    n = rng.integers(1, 9, size=60)
    c = rng.binomial(n, rng.beta(1, 1, size=60))

    def pooled(c: np.ndarray, n: np.ndarray, axis: int) -> np.ndarray:  # type: ignore[type-arg]
        return c.sum(axis=axis) / n.sum(axis=axis)

    oracle = scipy_stats.bootstrap(
        (c, n), pooled, paired=True, method="percentile", n_resamples=10_000, rng=np.random.default_rng(9)
    )
    ours = bootstrap_over_cases(c, n)
    expected = (oracle.confidence_interval.low, oracle.confidence_interval.high)
    assert ours == pytest.approx(expected, abs=0.15 * oracle.standard_error)


def test_bootstrap_resamples_whole_cases() -> None:
    """Trials of a case that always end alike are one observation: the interval is as wide as if each came once."""
    rng = np.random.default_rng(5)
    solved = rng.integers(0, 2, size=80)
    once, often = bootstrap_over_cases(solved, [1] * 80), bootstrap_over_cases(solved * 16, [16] * 80)
    alone = wilson(int(solved.sum()) * 16, 80 * 16)
    assert once is not None
    assert often is not None
    assert alone is not None
    assert often == pytest.approx(once, abs=1e-12)
    assert often[1] - often[0] > 3 * (alone[1] - alone[0])


def test_bootstrap_covers() -> None:
    """Of 300 suites of 40 correlated cases, about 95 % of the intervals hold the true rate, far more than 90 % of those
    that take trials for independent do."""
    rng = np.random.default_rng(7)
    held = naive = 0
    for _ in range(300):
        chances = rng.beta(0.6, 0.4, size=40)
        c, n = rng.binomial(5, chances), np.full(40, 5)
        interval = bootstrap_over_cases(c, n, resamples=1000)
        alone = wilson(int(c.sum()), 200)
        assert interval is not None
        assert alone is not None
        held += interval[0] <= 0.6 <= interval[1]
        naive += alone[0] <= 0.6 <= alone[1]
    assert 0.90 <= held / 300 <= 0.98
    assert naive / 300 < 0.85


def test_bootstrap_leaves_out_cases_without_trials() -> None:
    assert bootstrap_over_cases([1, 0, 0], [1, 1, 0]) == bootstrap_over_cases([1, 0], [1, 1])
    assert bootstrap_over_cases([], []) is None
    assert bootstrap_over_cases([0, 0], [0, 0]) is None


@pytest.mark.parametrize(("c", "n"), [([1], [1, 2]), ([2], [1]), ([-1], [1]), ([[1]], [[1]])])
def test_bootstrap_of_nonsense_raises(c: list[int], n: list[int]) -> None:
    with pytest.raises(ValueError):
        bootstrap_over_cases(c, n)


@pytest.mark.parametrize("n", range(1, 8))
def test_pass_hat_k_is_the_share_of_draws_that_all_succeed(n: int) -> None:
    """Against every draw of k of n trials, for every number of successes; unknown where there are not k trials."""
    for successes in range(n + 1):
        trials = [True] * successes + [False] * (n - successes)
        for k in range(1, n + 1):
            draws = list(itertools.combinations(trials, k))
            assert pass_hat_k(successes, n, k) == pytest.approx(sum(map(all, draws)) / len(draws), abs=1e-12)
        assert pass_hat_k(successes, n, n + 1) is None


def test_pass_hat_k_is_unbiased_where_the_power_of_the_mean_is_not() -> None:
    """Half the cases at 1.0 and half at 0.8: at k = 8 the mean of the powers is 0.584, and 0.9^8 is 0.430."""
    n = k = 8
    chance = [math.comb(n, c) * 0.8**c * 0.2 ** (n - c) for c in range(n + 1)]
    expected = 0.5 * 1.0 + 0.5 * sum(p * (pass_hat_k(c, n, k) or 0.0) for c, p in enumerate(chance))
    assert expected == pytest.approx(0.5 + 0.5 * 0.8**8)
    assert expected == pytest.approx(0.584, abs=5e-4)
    assert abs(expected - 0.9**8) > 0.15
