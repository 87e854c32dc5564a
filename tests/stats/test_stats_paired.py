"""Paired statistics: the interval, McNemar's test, the sign-flip test and Holm, by hand, by laws and by oracles."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from agentbench_lab.stats import holm, mcnemar_exact, paired_over_cases, sign_flip

counts = st.integers(0, 60)
signs = st.lists(st.sampled_from([-1, 0, 1]), max_size=40)
small = st.lists(st.integers(-6, 6), max_size=10)
chances = st.lists(st.floats(0, 1), max_size=8)
rates = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=15)


def test_mcnemar_by_hand() -> None:
    """3 against 0: two of the eight equally likely ways are as one-sided, 2/8. 5 against 1: 2 (1 + 6) / 64."""
    assert mcnemar_exact(3, 0) == 0.25
    assert mcnemar_exact(5, 1) == 14 / 64
    assert mcnemar_exact(0, 0) == mcnemar_exact(2, 2) == 1.0


@given(counts, counts)
def test_mcnemar_is_the_two_sided_binomial_test_of_a_fair_coin(only_a: int, only_b: int) -> None:
    """Oracle: scipy's binomial test on the discordant cases."""
    if only_a + only_b:
        wanted = scipy_stats.binomtest(only_a, only_a + only_b, 0.5).pvalue
        assert mcnemar_exact(only_a, only_b) == pytest.approx(wanted, rel=1e-9)
    assert mcnemar_exact(only_a, only_b) == mcnemar_exact(only_b, only_a)


def test_mcnemar_holds_for_large_counts() -> None:
    """Whole numbers do not overflow, and a tail below the smallest float is 0, not an error."""
    wanted = scipy_stats.binomtest(5_100, 10_000, 0.5).pvalue
    assert mcnemar_exact(4_900, 5_100) == pytest.approx(wanted, rel=1e-6)
    assert mcnemar_exact(3_000, 0) == 0.0
    with pytest.raises(ValueError, match="negative"):
        mcnemar_exact(-1, 2)


def test_sign_flip_by_hand() -> None:
    """2, 1, 1 sum to 4; of the eight sign assignments only the two with one sign reach that far."""
    assert sign_flip([2, 1, 1]) == (0.25, True)
    # 2, 1, -1 sum to 2: |sums| are 4, 2, 2, 0 and their negatives, six of eight reach 2
    assert sign_flip([2, 1, -1]) == (0.75, True)
    assert sign_flip([]) == sign_flip([0, 0]) == sign_flip([3, -3]) == (1.0, True)


@given(signs)
def test_sign_flip_of_single_trials_is_mcnemar(differences: list[int]) -> None:
    """With differences of -1, 0 and 1 both are the same test."""
    p, exact = sign_flip(differences)
    assert exact
    assert p == pytest.approx(mcnemar_exact(differences.count(-1), differences.count(1)), rel=1e-9)


@given(small)
def test_sign_flip_counts_every_assignment(differences: list[int]) -> None:
    """Oracle: all sign assignments, counted one by one."""
    seen = abs(sum(differences))
    sums = [
        abs(sum(s * d for s, d in zip(each, differences, strict=True)))
        for each in itertools.product((-1, 1), repeat=len(differences))
    ]
    assert sign_flip(differences)[0] == pytest.approx(sum(found >= seen for found in sums) / len(sums))


def test_sign_flip_agrees_with_scipy() -> None:
    """Oracle: scipy's exact paired permutation test of the mean, on differences of several sizes."""
    rng = np.random.default_rng(5)
    for _ in range(5):
        d = rng.integers(-4, 6, size=11)
        found = scipy_stats.permutation_test(
            (d,), np.mean, permutation_type="samples", vectorized=True, n_resamples=np.inf
        )
        assert sign_flip([int(x) for x in d])[0] == pytest.approx(found.pvalue, abs=1e-9)


@given(small, st.integers(1, 50))
def test_sign_flip_has_no_unit_and_no_direction(differences: list[int], unit: int) -> None:
    """Neither the common unit, nor which arm is first, nor the order of cases changes p."""
    p = sign_flip(differences)[0]
    for other in ([unit * d for d in differences], [-d for d in differences], differences[::-1]):
        assert sign_flip(other)[0] == pytest.approx(p)


def test_sign_flip_drawn_is_near_the_exact_one_and_never_0() -> None:
    """Too large for the whole distribution it draws; the same seed gives the same p."""
    rng = np.random.default_rng(1)
    d = [int(x) for x in rng.integers(-5, 7, size=200)]
    exact, is_exact = sign_flip(d)
    drawn, is_drawn_exact = sign_flip(d, work=0)
    assert (is_exact, is_drawn_exact) == (True, False)
    assert drawn == pytest.approx(exact, abs=4 * math.sqrt(0.25 / 20_000))
    assert sign_flip(d, work=0) == (drawn, False)
    assert sign_flip([1] * 200, work=0, draws=999)[0] == 1 / 1000


def test_sign_flip_takes_units_beyond_a_float() -> None:
    """Many different trial numbers have a huge common denominator; that is drawn, not refused."""
    unit = math.lcm(*range(1, 101))
    p, exact = sign_flip([unit, -unit + 1, 3, unit // 7], draws=2_000)
    assert not exact
    assert 0 < p <= 1


def test_holm_by_hand() -> None:
    """0.01 x 4, 0.02 x 3, 0.03 x 2 (never below the one before), 0.04 x 1 (the same)."""
    assert holm([0.01, 0.04, 0.03, 0.02]) == pytest.approx([0.04, 0.06, 0.06, 0.06])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    assert holm([]) == []


@given(chances)
def test_holm_rejects_what_closed_testing_rejects(p_values: list[float]) -> None:
    """Oracle, by brute force: closed testing with Bonferroni. p is the worst over all sets that hold the hypothesis."""
    wanted = [
        max(
            min(1.0, size * min(p_values[j] for j in chosen))
            for size in range(1, len(p_values) + 1)
            for chosen in itertools.combinations(range(len(p_values)), size)
            if i in chosen
        )
        for i in range(len(p_values))
    ]
    assert holm(p_values) == pytest.approx(wanted)


@given(chances, st.randoms())
def test_holm_keeps_order_and_only_raises(p_values: list[float], random: object) -> None:
    """Adjusted values follow their hypotheses, lie between p and Bonferroni's, and are at most 1."""
    adjusted = holm(p_values)
    assert all(p <= q <= min(1.0, len(p_values) * p) + 1e-12 for p, q in zip(p_values, adjusted, strict=True))
    order = list(range(len(p_values)))
    random.shuffle(order)  # type: ignore[attr-defined]
    assert holm([p_values[i] for i in order]) == [adjusted[i] for i in order]


def test_paired_interval_by_hand() -> None:
    """One case, or equal differences, leave nothing to draw differently; no case has no interval."""
    assert paired_over_cases([0.0], [1.0]) == (1.0, 1.0)
    assert paired_over_cases([0.0, 0.5], [0.5, 1.0]) == (0.5, 0.5)
    assert paired_over_cases([], []) is None
    # two cases, +1 and -1: the means -1, 0, 1 come with chance 1/4, 1/2, 1/4
    assert paired_over_cases([0, 1], [1, 0]) == (-1.0, 1.0)
    assert paired_over_cases([0, 1], [1, 0], level=0.4) == (0.0, 0.0)


@settings(max_examples=30)
@given(rates)
def test_paired_interval_is_scipys(pairs: list[tuple[float, float]]) -> None:
    """Oracle: scipy's percentile bootstrap of the mean difference, up to the noise of drawing."""
    a, b = (np.array(side) for side in zip(*pairs, strict=True))
    low, high = paired_over_cases(a, b) or (math.nan, math.nan)
    assert (b - a).min() - 1e-12 <= low <= high <= (b - a).max() + 1e-12
    if len(a) < 2:
        return
    found = scipy_stats.bootstrap(
        (b - a,), np.mean, method="percentile", n_resamples=10_000, rng=np.random.default_rng(3)
    )
    spread = (b - a).std() / math.sqrt(len(a))
    # where the resampled means are few and far apart, the percentile may fall on a neighbour
    room = 0.2 * spread + (2 / len(a) if len(a) < 8 else 0) + 1e-9
    assert low == pytest.approx(found.confidence_interval.low, abs=room)
    assert high == pytest.approx(found.confidence_interval.high, abs=room)


@given(rates)
def test_paired_interval_turns_with_its_sides(pairs: list[tuple[float, float]]) -> None:
    """b against a is a against b with the other sign."""
    a, b = zip(*pairs, strict=True)
    low, high = paired_over_cases(a, b, resamples=500) or (math.nan, math.nan)
    assert paired_over_cases(b, a, resamples=500) == pytest.approx((-high, -low))


def test_paired_interval_covers() -> None:
    """40 cases, a true difference of 0.1 with noise: about 95 of 100 intervals hold it."""
    rng = np.random.default_rng(11)
    held = 0
    for seed in range(400):
        d = 0.1 + rng.normal(0, 0.5, size=40)
        low, high = paired_over_cases(np.zeros(40), d, seed=seed, resamples=1_000) or (1.0, 0.0)
        held += low <= 0.1 <= high
    assert 0.90 <= held / 400 <= 0.98
