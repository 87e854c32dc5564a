"""pass^k and pass@k against every draw, by laws, and against published figures."""

from __future__ import annotations

import itertools
from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench_lab.stats import pass_at_k, pass_at_weights, pass_hat_k, pass_hat_weights

outcomes = st.lists(st.booleans(), min_size=1, max_size=12)


@pytest.mark.parametrize("n", range(1, 9))
def test_both_are_the_shares_of_draws(n: int) -> None:
    """Against every draw of k of n trials, for every number of successes: all succeed, and any does."""
    hats, ats = pass_hat_weights(n), pass_at_weights(n)
    assert hats.shape == ats.shape == (n + 1, n)
    for c in range(n + 1):
        trials = [True] * c + [False] * (n - c)
        for k in range(1, n + 1):
            draws = list(itertools.combinations(trials, k))
            every, some = (sum(map(how, draws)) / len(draws) for how in (all, any))
            assert pass_hat_k(c, n, k) == pytest.approx(every, abs=1e-12)
            assert pass_at_k(c, n, k) == pytest.approx(some, abs=1e-12)
            assert hats[c, k - 1] == pytest.approx(every, abs=1e-12)
            assert ats[c, k - 1] == pytest.approx(some, abs=1e-12)
        assert pass_hat_k(c, n, n + 1) is pass_at_k(c, n, n + 1) is None


def test_pass_at_k_by_hand() -> None:
    """Of 4 trials 1 solved: one of 2 drawn is it in 3 of 6 draws, and always when all are drawn."""
    assert (pass_at_k(1, 4, 2), pass_at_k(1, 4, 4), pass_at_k(0, 4, 4)) == (0.5, 1.0, 0.0)
    with pytest.raises(ValueError):
        pass_at_k(5, 4, 1)


@pytest.mark.parametrize("n", [60, 400])
def test_weights_stay_exact_for_many_trials(n: int) -> None:
    """Against fractions of whole numbers, where factorials are far beyond a float."""
    weights = pass_hat_weights(n)
    for c, k in ((n, n), (n - 1, 2), (n // 2, 3), (n // 2, n // 2), (3, 4), (n - 1, n)):
        exact = Fraction(comb(c, k), comb(n, k))
        assert weights[c, k - 1] == pytest.approx(float(exact), rel=1e-12)


def test_weights_without_a_trial() -> None:
    assert pass_hat_weights(0).shape == pass_at_weights(0).shape == (1, 0)
    with pytest.raises(ValueError, match="-1 trials"):
        pass_hat_weights(-1)


@given(outcomes)
def test_laws_of_one_case(trials: list[bool]) -> None:
    """pass^1 = pass@1 = the rate; pass^k only falls and pass@k only rises with k; failures mirror successes."""
    n, c = len(trials), sum(trials)
    hats, ats = pass_hat_weights(n)[c], pass_at_weights(n)[c]
    assert hats[0] == pytest.approx(c / n)
    assert ats[0] == pytest.approx(c / n)
    assert (np.diff(hats) <= 0).all()
    assert (np.diff(ats) >= 0).all()
    assert ((hats >= 0) & (hats <= ats + 1e-12) & (ats <= 1)).all()
    assert pass_at_weights(n)[n - c] == pytest.approx(1 - hats)


@given(st.integers(1, 10), st.floats(0, 1), st.data())
def test_both_are_unbiased(n: int, p: float, data: st.DataObject) -> None:
    """Over the binomial distribution of successes the mean is p^k, and 1 - (1 - p)^k."""
    k = data.draw(st.integers(1, n))
    chance = np.array([comb(n, c) * p**c * (1 - p) ** (n - c) for c in range(n + 1)])
    assert chance @ pass_hat_weights(n)[:, k - 1] == pytest.approx(p**k, abs=1e-12)
    assert chance @ pass_at_weights(n)[:, k - 1] == pytest.approx(1 - (1 - p) ** k, abs=1e-12)


def test_the_published_figures_of_tau_bench() -> None:
    """gpt-4o with tool calls on the airline tasks: 50 tasks, 4 trials, 14 tasks never solved and 10 always."""
    tasks = np.array([14, 12, 10, 4, 10])
    assert tasks @ pass_hat_weights(4) / 50 == pytest.approx([0.42, 0.2733, 0.22, 0.20], abs=5e-5)
