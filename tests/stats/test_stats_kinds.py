"""Resampling by kinds of cases and of ratios: against drawing cases, against all draws, and how often it covers."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from agentbench_lab.stats import (
    bootstrap_over_kinds,
    pass_hat_weights,
    percentile_interval,
    ratio_over_cases,
    resample_kinds,
)

kinds = st.lists(st.tuples(st.integers(0, 6), st.floats(0, 1)), min_size=1, max_size=6)


def test_kinds_against_all_draws() -> None:
    """Two cases worth 0 and one worth 1: of the 27 draws of three, the sum is 0 to 3 in 8, 12, 6 and 1."""
    sums = [sum(draw) for draw in itertools.product([0, 0, 1], repeat=3)]
    chances = np.bincount(sums) / 27
    assert (27 * chances).tolist() == [8, 12, 6, 1]
    drawn = resample_kinds([2, 1], [[0.0], [1.0]], resamples=20_000)[:, 0]
    found = np.bincount(np.rint(3 * drawn).astype(int), minlength=4)
    assert scipy_stats.chisquare(found, 20_000 * chances).pvalue > 1e-3
    # 2.5 % and 97.5 % of all draws lie at 0 and 1, and the middle third from 0 to 1/3
    low, high = bootstrap_over_kinds([2, 1], [[0.0], [1.0]], level=0.95)
    assert (low[0], high[0]) == (0, 1)
    low, high = bootstrap_over_kinds([2, 1], [[0.0], [1.0]], level=1 / 3)
    assert (low[0], high[0]) == pytest.approx((1 / 3, 1 / 3))


def test_kinds_where_a_statistic_is_not_over_all() -> None:
    """One case of each kind, known to the second only: its value, or NaN where it was not drawn at all (1 in 4)."""
    drawn = resample_kinds([1, 1], [[0.0], [0.7]], [[0], [1]], resamples=4_000)[:, 0]
    assert set(drawn[~np.isnan(drawn)]) == {0.7}
    assert np.isnan(drawn).mean() == pytest.approx(0.25, abs=0.03)
    low, high = bootstrap_over_kinds([1, 1], [[0.0], [0.7]], [[0], [1]])
    assert (low[0], high[0]) == (0.7, 0.7)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 4)), min_size=5, max_size=30), st.integers(1, 2))
def test_kinds_are_drawing_cases(cases: list[tuple[int, int]], k: int) -> None:
    """Unequal trials: the resampled pass^k has the mean and the spread of drawing whole cases one by one."""
    n = np.array([of for of, _ in cases])
    c = np.minimum(n, [won for _, won in cases])
    value = np.array(
        [pass_hat_weights(of)[won, k - 1] if of >= k else 0.0 for of, won in zip(n, c, strict=True)]
    )
    known = (n >= k).astype(float)
    if known.sum() < 3:
        return
    pairs, counts = np.unique(np.stack([value, known]), axis=1, return_counts=True)
    ours = resample_kinds(counts, pairs[0][:, None], pairs[1][:, None])[:, 0]
    rng = np.random.default_rng(1)
    drawn = rng.integers(0, len(cases), size=(10_000, len(cases)))
    with np.errstate(invalid="ignore"):
        theirs = value[drawn].sum(axis=1) / known[drawn].sum(axis=1)
    spread = float(np.nanstd(theirs))
    assert np.nanmean(ours) == pytest.approx(np.nanmean(theirs), abs=0.08 * spread + 1e-12)
    assert np.nanstd(ours) == pytest.approx(spread, rel=0.08, abs=1e-12)
    for share in (5, 50, 95):
        least, most = np.nanpercentile(theirs, [share - 2, share + 2])
        assert least - 1e-9 <= np.nanpercentile(ours, share) <= most + 1e-9


@given(kinds, st.randoms())
def test_kinds_keep_to_their_values(rows: list[tuple[int, float]], random: object) -> None:
    """A mean never leaves the values it is of; all of one kind have no width; no case at all is NaN."""
    counts, values = zip(*rows, strict=True)
    low, high = bootstrap_over_kinds(counts, [[value] for value in values], resamples=200)
    there = [value for count, value in rows if count]
    if not there:
        assert np.isnan([low[0], high[0]]).all()
        return
    assert min(there) - 1e-9 <= low[0] <= high[0] <= max(there) + 1e-9
    if len(set(there)) == 1:
        assert high[0] - low[0] < 1e-9


def test_kinds_of_nonsense_raise() -> None:
    with pytest.raises(ValueError, match="one row a kind"):
        resample_kinds([1, 2], [[1.0]])
    with pytest.raises(ValueError, match="negative"):
        resample_kinds([1, -2], [[1.0], [0.0]])


def test_percentiles_by_column() -> None:
    """NaN counts for nothing, and an end among infinite values is infinite rather than NaN."""
    inf, nan = math.inf, math.nan
    columns = np.array([[0, 1, 2, 3, 4], [0, nan, 2, nan, 4], [0, 1, inf, inf, inf], [nan] * 5]).T
    low, high = percentile_interval(columns, level=0.5)
    assert low[:3].tolist() == [1, 1, 1]
    assert high[:3].tolist() == [3, 3, inf]
    assert np.isnan([low[3], high[3]]).all()


def test_ratio_by_hand() -> None:
    """Costs 3 and 1, solved 1 and 1: drawn twice over that is 3, 2 or 1, with chances 1/4, 1/2, 1/4."""
    assert ratio_over_cases([3, 1], [1, 1]) == (1.0, 3.0)
    assert ratio_over_cases([3, 1], [1, 1], level=0.4) == (2.0, 2.0)


def test_ratio_without_an_upper_end() -> None:
    """One of three cases is solved: the ratio is 1, 1.5, 3 or infinite with chances 1, 6, 12 and 8 of 27."""
    low, high = ratio_over_cases([1, 1, 1], [1, 0, 0]) or (0, 0)
    assert (low, high) == (1.0, math.inf)
    assert ratio_over_cases([1, 1, 1], [1, 0, 0], level=0.56) == (1.5, math.inf)
    assert ratio_over_cases([1, 1, 1], [1, 0, 0], level=0.3) == (3.0, 3.0)
    assert ratio_over_cases([1, 1], [0, 0]) is ratio_over_cases([], []) is None
    with pytest.raises(ValueError, match="negative"):
        ratio_over_cases([1, 1], [1, -1])
    with pytest.raises(ValueError, match="numerator and denominator"):
        ratio_over_cases([1, 1], [1])


@pytest.mark.parametrize("seed", range(3))
def test_ratio_is_scipys(seed: int) -> None:
    """Within the Monte Carlo error of both, for skewed costs."""
    rng = np.random.default_rng(seed)
    solved = rng.binomial(8, rng.beta(1, 1, size=60))
    cost = rng.lognormal(0, 1, size=60) * (16 - solved)

    def ratio(x: np.ndarray, y: np.ndarray, axis: int) -> np.ndarray:  # type: ignore[type-arg]
        return x.sum(axis=axis) / y.sum(axis=axis)

    oracle = scipy_stats.bootstrap(
        (cost, solved),
        ratio,
        paired=True,
        method="percentile",
        n_resamples=10_000,
        rng=np.random.default_rng(9),
    )
    wanted = (oracle.confidence_interval.low, oracle.confidence_interval.high)
    assert ratio_over_cases(cost, solved) == pytest.approx(wanted, abs=0.15 * oracle.standard_error)


CASES, TRIALS, SETS = 200, 8, 1_000


@pytest.mark.long
def test_intervals_cover() -> None:
    """Of 1,000 simulated suites 93 to 97 % of the intervals hold the truth: pass^1, pass^4 and the cost per solved.

    Cases are beta-binomial (a case has its own chance); the cost of a trial is lognormal, and a failed one is twice as
    dear, so that cost and success hang together within a case. Truth: E[p^k] of the beta distribution, and mean cost by
    mean success.
    """
    rng = np.random.default_rng(2024)
    a, b, sigma = 0.8, 0.6, 1.0
    truth = {k: math.prod((a + j) / (a + b + j) for j in range(k)) for k in (1, 4)}
    rate = a / (a + b)
    dear = math.exp(sigma**2 / 2) * (2 - rate) / rate
    weights = pass_hat_weights(TRIALS)[:, [0, 3]]
    held = {"pass^1": 0, "pass^4": 0, "cost": 0}
    for seed in range(SETS):
        chance = rng.beta(a, b, size=(CASES, 1))
        solved = rng.random((CASES, TRIALS)) < chance
        cost = rng.lognormal(0, sigma, size=(CASES, TRIALS)) * (2 - solved)
        counts = np.bincount(solved.sum(axis=1), minlength=TRIALS + 1)
        low, high = bootstrap_over_kinds(counts, weights, seed=seed, resamples=1_000)
        held["pass^1"] += low[0] <= truth[1] <= high[0]
        held["pass^4"] += low[1] <= truth[4] <= high[1]
        ends = ratio_over_cases(cost.sum(axis=1), solved.sum(axis=1), seed=seed, resamples=1_000)
        assert ends is not None
        held["cost"] += ends[0] <= dear <= ends[1]
    assert all(0.93 <= each / SETS <= 0.97 for each in held.values()), held
