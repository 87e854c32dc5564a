"""Paired differences and ratios over few cases: against scipy, by formula, and in repeated suites."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from agentbench_lab.stats import (
    adjusted_half,
    difference_over_cases,
    log_ratio_error,
    log_ratio_over_cases,
    paired_over_cases,
)

Z = 1.959963984540054
differences = st.lists(st.integers(-8, 8).map(lambda n: n / 8), min_size=1, max_size=12)
costs = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=2, max_size=10)


def test_the_adjusted_interval_is_that_of_the_table_with_half_added() -> None:
    """Agresti and Min: approval asked twice of 1600, 150 changed one way and 86 the other; half is added to each cell."""
    d = np.array([1.0] * 150 + [-1.0] * 86 + [0.0] * (1600 - 236))
    b, c, n = 150.5, 86.5, 1602
    half = Z * math.sqrt(b + c - (b - c) ** 2 / n) / n
    assert adjusted_half(float(d.var()), d.size, float(d.mean()), Z) == pytest.approx(half)
    found = difference_over_cases(d, seed=3)
    assert found is not None
    assert found.low == pytest.approx((b - c) / n - half, abs=0.001)
    assert found.high == pytest.approx((b - c) / n + half, abs=0.001)


def test_student_s_interval_is_scipy_s() -> None:
    """Where cases vary much, a few of them: the ends are those of Student's t."""
    d = [0.5, -0.25, 0.875, 0.125]
    found = difference_over_cases(d, trials=8)
    ends = scipy_stats.ttest_1samp(d, 0).confidence_interval(0.95)
    assert found is not None
    assert (found.estimate, found.low) == pytest.approx((np.mean(d), ends.low))
    assert found.high == pytest.approx(min(1.0, ends.high))


def test_over_many_cases_it_is_the_bootstrap_of_scipy() -> None:
    """All three agree there, and the bootstrap's ends are those of scipy's percentile method."""
    rng = np.random.default_rng(5)
    d = rng.integers(-4, 6, size=2000) / 8
    found = difference_over_cases(d, trials=8)
    theirs = scipy_stats.bootstrap(
        (d,), np.mean, method="percentile", n_resamples=4000, rng=np.random.default_rng(1)
    ).confidence_interval
    assert found is not None
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high), abs=0.002)


def test_alike_cases_are_one_observation_each() -> None:
    """48 of 48 trials in six cases on either side is no proof that nothing differs."""
    six, two_hundred = (difference_over_cases([0.0] * n, trials=8) for n in (6, 200))
    assert six is not None
    assert two_hundred is not None
    assert (six.low, six.high) == pytest.approx((-Z / 8, Z / 8))
    assert two_hundred.high < 0.01
    assert difference_over_cases([]) is None
    one = difference_over_cases([1.0])
    assert one is not None
    assert one.low < 0


@given(differences)
def test_negation_negates(d: list[float]) -> None:
    one, other = (difference_over_cases(side, resamples=200) for side in (d, [-x for x in d]))
    assert one is not None
    assert other is not None
    assert (one.estimate, one.low, one.high) == (-other.estimate, -other.high, -other.low)
    assert -1 <= one.low <= one.estimate <= one.high <= 1


@given(costs)
def test_exchanging_negates_the_logarithm(pairs: list[tuple[int, int]]) -> None:
    x, y = zip(*pairs, strict=True)
    one, other = log_ratio_over_cases(x, y, resamples=200), log_ratio_over_cases(y, x, resamples=200)
    if one is None or other is None:
        assert sum(x) == sum(y) == 0
        return
    assert (one.estimate, one.low, one.high) == (-other.estimate, -other.high, -other.low)
    assert one.low <= one.estimate <= one.high


def test_a_ratio_of_constants_has_no_width_and_of_nothing_no_logarithm() -> None:
    assert log_ratio_over_cases([2, 4, 6], [1, 2, 3]) == pytest.approx((math.log(2),) * 3)
    assert log_ratio_over_cases([1], [2]) is None
    assert log_ratio_over_cases([0, 0], [0, 0]) is None
    free = log_ratio_over_cases([0, 0], [1, 2])
    assert free == (-math.inf,) * 3


def test_the_error_of_a_ratio_is_that_of_the_jackknife() -> None:
    """The delta method against leaving out a case at a time, which needs no formula of its own."""
    rng = np.random.default_rng(2)
    x, y = rng.uniform(1, 3, 200), rng.uniform(2, 3, 200)
    left = np.array([math.log((x.sum() - a) / (y.sum() - b)) for a, b in zip(x, y, strict=True)])
    jackknife = math.sqrt(199 / 200 * float(((left - left.mean()) ** 2).sum()))
    assert log_ratio_error(x, y) == pytest.approx(jackknife, rel=0.01)


def test_bad_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="from -1 to 1"):
        difference_over_cases([1.5])
    with pytest.raises(ValueError, match="without negative"):
        log_ratio_over_cases([1, -1], [1, 1])


@pytest.mark.long
def test_the_truth_lies_inside_as_often_as_it_should() -> None:
    """Suites simulated again and again: the interval holds the true difference in 94 % at every size, the bootstrap does not."""
    rng = np.random.default_rng(1)
    kinds = {
        "alike": (0.9, 0.5),
        "nearly always": (0.98, 0.95),
        "none": (0.5, 0.5),
        "turned round": None,
        "spread": None,
    }
    suites = 1500
    for cases in (6, 12, 30, 100):
        for trials in (1, 8):
            for name, rates in kinds.items():
                held = alone = 0
                for _ in range(suites):
                    if name == "spread":
                        a = rng.uniform(size=cases)
                        b = np.minimum(1, a + 0.05)
                    elif rates is None:
                        a, b = np.ones(cases), (rng.uniform(size=cases) > 0.05).astype(float)
                    else:
                        a, b = (np.full(cases, rate) for rate in rates)
                    true = {"spread": 0.05 - 0.05**2 / 2, "turned round": -0.05}.get(name)
                    true = rates[1] - rates[0] if rates else true
                    d = (rng.binomial(trials, b) - rng.binomial(trials, a)) / trials
                    found = difference_over_cases(d, trials=trials, resamples=300)
                    bare = paired_over_cases(np.zeros(cases), d, resamples=300)
                    assert found is not None
                    assert bare is not None
                    held += found.low - 1e-9 <= true <= found.high + 1e-9
                    alone += bare[0] - 1e-9 <= true <= bare[1] + 1e-9
                assert held / suites >= 0.935, (cases, trials, name, held / suites)
                if cases == 6 and trials == 8 and rates is not None:
                    assert 0.8 < alone / suites < 0.9, (name, alone / suites)
