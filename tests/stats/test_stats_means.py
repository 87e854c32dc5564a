"""Means with errors in closed form: Student's t, clusters, runs; by hand and by oracles."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from agentbench_lab.stats import clustered_se, mcnemar_corrected, standard_error, student_t

values = st.floats(-1e3, 1e3)


@pytest.mark.parametrize("df", [0.5, 1, 2, 3, 4.5, 7, 30, 99, 101, 199, 1_000, 10_000, 1_000_000])
def test_student_is_scipys(df: float) -> None:
    """To 1e-9, in the middle and far out on either side."""
    for p in (1e-6, 0.005, 0.025, 0.2, 0.4999, 0.5001, 0.6, 0.9, 0.95, 0.975, 0.995, 0.9995, 1 - 1e-7):
        assert student_t(p, df) == pytest.approx(float(scipy_stats.t.ppf(p, df)), rel=1e-9, abs=1e-12)


def test_student_by_hand() -> None:
    """One degree of freedom is Cauchy's: the 75 % point is tan(45 degrees) = 1."""
    assert student_t(0.75, 1) == pytest.approx(1, rel=1e-12)
    assert student_t(0.5, 3) == 0
    for p, df in ((0, 3), (1, 3), (0.5, 0)):
        with pytest.raises(ValueError, match="degrees of freedom"):
            student_t(p, df)


def test_clustered_error_by_hand() -> None:
    """Clusters (1, 1) and (0, 0, 1): the mean is 0.6; deviations sum to 0.8 and -0.8; sqrt(2 x 1.28) / 5 = 0.32."""
    found = clustered_se([1, 1, 0, 0, 1], ["x", "x", "y", "y", "y"])
    assert found is not None
    assert found.estimate == pytest.approx(0.6)
    assert found.se == pytest.approx(0.32)
    assert found.df == 1
    half = math.tan(math.pi * 0.475) * 0.32
    assert (found.low, found.high) == pytest.approx((0.6 - half, 0.6 + half))


def test_clustered_error_without_enough() -> None:
    assert clustered_se([], []) is None
    assert clustered_se([1, 0], ["x", "x"]) == (0.5, None, 0, None, None)
    with pytest.raises(ValueError, match="one length"):
        clustered_se([1, 0], ["x"])


@given(st.lists(values, min_size=2, max_size=20))
def test_clusters_of_one_are_the_plain_interval(x: list[float]) -> None:
    """Oracle: scipy's Student interval of a mean."""
    found = clustered_se(x, range(len(x)))
    assert found is not None
    se = float(scipy_stats.sem(x))
    assert found.se == pytest.approx(se, rel=1e-9, abs=1e-9)
    if se > 1e-6:
        wanted = scipy_stats.t.interval(0.95, len(x) - 1, loc=np.mean(x), scale=se)
        assert (found.low, found.high) == pytest.approx(wanted, rel=1e-9, abs=1e-9)


@given(st.lists(st.tuples(st.integers(0, 5), values), min_size=2, max_size=30), st.randoms())
def test_clustered_error_is_the_sandwich(rows: list[tuple[int, float]], random: object) -> None:
    """Oracle: X'X inverse, the outer products of each cluster's scores, X'X inverse, times G / (G - 1).

    Nor does the order of rows matter.
    """
    names, x = zip(*rows, strict=True)
    found = clustered_se(x, names)
    assert found is not None
    random.shuffle(rows)  # type: ignore[attr-defined]
    again = clustered_se([value for _, value in rows], [name for name, _ in rows])
    assert again is not None
    groups = set(names)
    assert found.df == len(groups) - 1
    if len(groups) == 1:
        assert found.se is again.se is None
        return
    ones, y, of = np.ones((len(x), 1)), np.array(x), np.array(names)
    bread = np.linalg.inv(ones.T @ ones)
    left = y - ones @ (bread @ ones.T @ y)
    scores = [ones[of == g].T @ left[of == g] for g in groups]
    meat = sum(np.outer(score, score) for score in scores)
    wanted = math.sqrt(float((bread @ meat @ bread)[0, 0]) * len(groups) / (len(groups) - 1))
    assert found.se == pytest.approx(wanted, rel=1e-9, abs=1e-9)
    assert again.se == pytest.approx(wanted, rel=1e-9, abs=1e-9)


def test_error_of_runs_by_hand() -> None:
    """0.4, 0.5, 0.6: sample variance 0.01, so 0.1 / sqrt(3); one run says nothing of others."""
    assert standard_error([0.4, 0.5, 0.6]) == pytest.approx(0.1 / math.sqrt(3))
    assert standard_error([0.4]) is standard_error([]) is None


@pytest.mark.parametrize(
    ("only_a", "only_b", "chi2", "p"),
    [(9, 6, 0.267, 0.61), (8, 9, 0.0, 1.0), (23, 20, 0.093, 0.76), (9, 5, 0.643, 0.42)],
)
def test_corrected_mcnemar_gives_published_figures(only_a: int, only_b: int, chi2: float, p: float) -> None:
    """Four comparisons of a native harness with another one, as a public index reports them."""
    found, chance = mcnemar_corrected(only_a, only_b)
    assert found == pytest.approx(chi2, abs=5e-4)
    assert chance == pytest.approx(p, abs=5e-3)
    assert chance == pytest.approx(float(scipy_stats.chi2.sf(found, 1)), abs=1e-12)
    assert mcnemar_corrected(only_b, only_a) == (found, chance)


def test_corrected_mcnemar_of_ties() -> None:
    assert mcnemar_corrected(0, 0) == mcnemar_corrected(4, 4) == (0.0, 1.0)
    with pytest.raises(ValueError, match="negative"):
        mcnemar_corrected(1, -1)
