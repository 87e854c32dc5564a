"""Many ratios over cases at once are what they are one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench_lab.analysis.metrics.ratios import resamples_for
from agentbench_lab.stats import ratio_over_cases, ratios_over_cases, resample_sums

PAIR = st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 5)), min_size=1, max_size=8)


@given(st.lists(PAIR, min_size=1, max_size=5))
def test_each_interval_is_that_of_the_pair_alone(several: list[list[tuple[int, int]]]) -> None:
    """Exactly: whole numbers add up without a rounding, and the resamples are the same."""
    pairs = [([x for x, _ in each], [y for _, y in each]) for each in several]
    found = ratios_over_cases(pairs, resamples=200, seed=3)
    assert found == [ratio_over_cases(x, y, resamples=200, seed=3) for x, y in pairs]


def test_the_columns_of_sums_see_the_same_resamples() -> None:
    """The second column is twice the first, in every resample; the third counts what is drawn: 3 of 3."""
    sums = resample_sums([[1, 2, 1], [10, 20, 1], [100, 200, 1]], resamples=300)
    assert sums.shape == (300, 3)
    assert (sums[:, 1] == 2 * sums[:, 0]).all()
    assert (sums[:, 2] == 3).all()
    # each of the 27 draws is one of ten sums: 3, 12, 21, 30, 102, ...
    assert set(sums[:, 0]) == {a + b + c for a in (1, 10, 100) for b in (1, 10, 100) for c in (1, 10, 100)}


def test_sums_over_many_cases_come_in_blocks() -> None:
    """2,000 cases make several blocks of 1,000 resamples: the mean of the sums is that of the cases."""
    values = np.arange(2_000)[:, None]
    sums = resample_sums(values, resamples=2_500)
    assert sums.mean() == pytest.approx(values.sum(), rel=0.002)
    assert sums.std() == pytest.approx(values.std() * 2_000**0.5, rel=0.06)


def test_what_is_no_ratio_is_refused() -> None:
    with pytest.raises(ValueError, match="a denominator is negative"):
        ratios_over_cases([([1], [-1])])
    with pytest.raises(ValueError, match="two lists of one length"):
        ratios_over_cases([([1], [1, 2])])
    with pytest.raises(ValueError, match="one row a case"):
        resample_sums([1, 2])
    assert ratios_over_cases([([1, 2], [0, 0]), ([], [])]) == [None, None]
    assert ratios_over_cases([]) == []


def test_very_many_cases_are_resampled_less_often() -> None:
    assert [resamples_for(cases, 5_000) for cases in (2, 2_000, 10_000, 10**6)] == [5_000, 5_000, 1_000, 500]
    assert resamples_for(10**6, 100) == 100
