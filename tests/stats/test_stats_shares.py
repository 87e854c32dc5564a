"""The interval of a share of trials that depend on each other within a case: by hand, by its laws, in repeated suites."""

from __future__ import annotations

import itertools
import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench_lab.stats import wilson, wilson_over_cases

CASES = st.lists(st.tuples(st.integers(0, 6), st.integers(1, 6)), min_size=1, max_size=9)


def test_by_hand_at_two() -> None:
    """4, 2 and 0 of 4 at z = 2: p = 1/2, V = (4 + 0 + 4) / 144 x 3/2 = 1/12, as that of all or nothing is: 3 observations.

    Of 4, 2 and 3 of 4: p = 3/4, V = (1 + 1 + 0) / 144 x 3/2 = 1/48, so p (1 - p) / V = 9 observations for the first
    interval, and for the second centre (3/4 + 4/6) / (1 + 4/3), half 2 sqrt(1/48 + 4/36) / (7/3).
    """
    assert wilson_over_cases([4, 2, 0], [4, 4, 4], z=2) == pytest.approx(wilson(1.5, 3, z=2))
    first = wilson(6.75, 9, z=2)
    center, half = (3 / 4 + 4 / 6) / (7 / 3), 2 * math.sqrt(1 / 48 + 4 / 36) / (7 / 3)
    assert first is not None
    wanted = (min(first[0], center - half), max(first[1], center + half))
    assert wilson_over_cases([4, 2, 3], [4, 4, 4], z=2) == pytest.approx(wanted)
    assert wanted == (center - half, first[1])


def test_one_trial_a_case_and_all_or_nothing_are_wilsons() -> None:
    """Also 8 of 8 in every case, which six cases do not prove, and one case, which is one observation."""
    assert wilson_over_cases([1, 0, 0, 1, 1], [1] * 5) == pytest.approx(wilson(3, 5))
    assert wilson_over_cases([8, 0, 0, 8, 8], [8] * 5) == pytest.approx(wilson(3, 5))
    assert wilson_over_cases([8] * 6, [8] * 6) == pytest.approx(wilson(6, 6))
    assert wilson_over_cases([0] * 6, [8] * 6) == pytest.approx(wilson(0, 6))
    assert wilson_over_cases([2], [8]) == pytest.approx(wilson(0.25, 1))
    assert wilson_over_cases([], []) is wilson_over_cases([0, 0], [0, 0]) is None
    assert wilson_over_cases([1, 0, 0], [1, 1, 0]) == pytest.approx(wilson(1, 2))


def test_the_first_trial_that_differs_is_no_jump() -> None:
    """48 of 48 over six cases, then 47, then 46: each low end is little below the last, and the bootstrap's was 94 %."""
    lows = [(wilson_over_cases([8] * 5 + [8 - lost], [8] * 6) or (0, 0))[0] for lost in range(4)]
    assert lows[0] == pytest.approx(0.6097, abs=1e-4)
    assert all(0 < one - other < 0.03 for one, other in itertools.pairwise(lows))
    # 9 of 66 over 22 cases, three of them always: the low end is no 0, and that of one trial a case
    assert wilson_over_cases([3] * 3 + [0] * 19, [3] * 22) == pytest.approx(wilson(3, 22))


@given(CASES)
def test_its_laws(found: list[tuple[int, int]]) -> None:
    """Around the share, within 0 and 1, with a width; mirrored with failures; in any order; and by kinds of cases."""
    n = np.array([of for _, of in found])
    c = np.minimum([solved for solved, _ in found], n)
    low, high = wilson_over_cases(c, n) or (1.0, 0.0)
    share = c.sum() / n.sum()
    assert 0 <= low <= share + 1e-12
    assert share - 1e-12 <= high <= 1
    assert high - low > 1e-3
    assert wilson_over_cases(n - c, n) == pytest.approx((1 - high, 1 - low), abs=1e-12)
    assert wilson_over_cases(c[::-1], n[::-1]) == pytest.approx((low, high), abs=1e-12)
    twice = wilson_over_cases([*c, *c], [*n, *n])
    assert twice == pytest.approx(wilson_over_cases(c, n, times=[2] * len(found)), abs=1e-12)


@pytest.mark.parametrize(("c", "n"), [([1], [1, 2]), ([2], [1]), ([-1], [1]), ([[1]], [[1]])])
def test_nonsense_raises(c: npt.ArrayLike, n: npt.ArrayLike) -> None:
    with pytest.raises(ValueError):
        wilson_over_cases(c, n)


@pytest.mark.long
@pytest.mark.parametrize("cases", [6, 12, 22, 50])
def test_the_truth_lies_inside_as_often_as_it_should(cases: int) -> None:
    """Suites simulated again and again, from trials that are independent to cases that are all or nothing.

    It holds in 93 %, or as often as Wilson's of as many independent trials as there are cases does, which at some shares
    and sizes is less (Brown, Cai and DasGupta, 2001).
    """
    rng = np.random.default_rng(1)
    suites = 2_000
    for trials in (2, 3, 8):
        for p in (0.1, 0.3, 0.5, 0.8, 0.9):
            single = _held(rng.binomial(1, p, size=(suites, cases)), 1, p)
            for rho in (0.0, 0.1, 0.3, 0.6, 0.9, 1.0):
                if rho in (0.0, 1.0):
                    own = np.full((suites, cases), p) if not rho else rng.binomial(1, p, size=(suites, cases))
                else:
                    spread = (1 - rho) / rho
                    own = rng.beta(p * spread, (1 - p) * spread, size=(suites, cases))
                held = _held(rng.binomial(trials, own), trials, p)
                # 0.015 is less than three standard errors of a share of 2,000
                assert held >= min(0.93, single) - 0.015, (cases, trials, p, rho, held, single)


def _held(solved: npt.NDArray[np.int64], trials: int, p: float) -> float:
    """In what share of suites the interval holds p; each kind of suite is asked for once."""
    kinds, often = np.unique(np.sort(solved, axis=1), axis=0, return_counts=True)
    held = 0
    for one, count in zip(kinds, often, strict=True):
        low, high = wilson_over_cases(one, np.full(one.size, trials)) or (1.0, 0.0)
        held += int(count) * (low <= p <= high)
    return held / int(often.sum())
