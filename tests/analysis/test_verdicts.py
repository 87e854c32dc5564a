"""The verdict of an ablation: every pair of intervals has exactly one, and exchanging the arms mirrors it."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench_lab import LabError, metrics
from agentbench_lab.analysis.metrics.verdicts import VERDICTS, fewest_cases, verdict

# steps on which the margins of two points and five percent lie exactly, so that ends at a margin are tried too
differences = st.lists(st.integers(-8, 8).map(lambda n: n / 100), min_size=2, max_size=2).map(
    lambda two: tuple(sorted(two))
)
ratios = st.lists(
    st.one_of(st.sampled_from([0.0, 1 / 1.05, 1.0, 1.05, math.inf]), st.floats(0.5, 2)),
    min_size=2,
    max_size=2,
).map(lambda two: tuple(sorted(two)))
MIRRORED = {
    "dominates": {"loses"},
    "pays": {"loses"},
    "cheaper, no worse": {"costs without gain"},
    "no difference": {"no difference"},
    "costs without gain": {"cheaper, no worse"},
    "loses": {"dominates", "pays"},
    "undecided": {"undecided"},
}


@pytest.mark.parametrize(
    ("difference", "ratio", "expected"),
    [
        ((0.05, 0.30), (0.50, 0.80), "dominates"),
        ((0.05, 0.30), (1.50, 1.80), "pays"),
        ((0.05, 0.30), (0.80, 1.20), "pays"),
        ((0.05, 0.30), (0.99, 1.01), "pays"),
        ((0.005, 0.019), (0.50, 0.80), "cheaper, no worse"),
        ((-0.02, 0.30), (0.50, 0.80), "cheaper, no worse"),
        ((-0.021, 0.30), (0.50, 0.80), "undecided"),
        ((-0.02, 0.02), (0.96, 1.05), "no difference"),
        ((-0.02, 0.02), (0.90, 1.05), "undecided"),
        ((-0.02, 0.02), (1.01, 1.20), "costs without gain"),
        ((-0.30, 0.02), (1.50, 1.80), "costs without gain"),
        ((-0.30, 0.021), (1.50, 1.80), "undecided"),
        ((-0.30, -0.05), (1.50, 1.80), "loses"),
        ((-0.30, -0.05), (0.10, 0.20), "loses"),
        ((-0.30, -0.05), None, "loses"),
        ((0.05, 0.30), None, "undecided"),
        ((-0.01, 0.01), None, "undecided"),
        (None, (0.1, 0.2), "undecided"),
        ((0.05, 0.30), (0.0, 0.0), "dominates"),
        ((0.05, 0.30), (math.inf, math.inf), "pays"),
    ],
)  # fmt: skip
def test_each_verdict_by_hand(
    difference: tuple[float, float] | None, ratio: tuple[float, float] | None, expected: str
) -> None:
    assert verdict(difference, ratio) == expected


@given(differences, ratios, st.sampled_from([0.0, 0.02, 0.05]), st.sampled_from([0.0, 0.05]))
def test_every_pair_of_intervals_has_one_and_it_mirrors(
    difference: tuple[float, float], ratio: tuple[float, float], margin: float, cost_margin: float
) -> None:
    found = verdict(difference, ratio, margin=margin, cost_margin=cost_margin)
    assert found in VERDICTS
    turned = (1 / ratio[1] if ratio[1] else math.inf, 1 / ratio[0] if ratio[0] else math.inf)
    other = verdict((-difference[1], -difference[0]), turned, margin=margin, cost_margin=cost_margin)
    expected = MIRRORED[found]
    assert other in expected


@given(differences, ratios)
def test_the_words_mean_what_they_say(difference: tuple[float, float], ratio: tuple[float, float]) -> None:
    """Claims that anyone may check, whatever the rule: they follow from the intervals alone."""
    found = verdict(difference, ratio)
    if found in ("dominates", "pays"):
        assert difference[0] > 0
    if found == "dominates":
        assert ratio[1] < 1
    if found == "cheaper, no worse":
        assert difference[0] >= -0.02
        assert ratio[1] < 1
    if found == "costs without gain":
        assert difference[1] <= 0.02
        assert ratio[0] > 1
    if found == "no difference":
        assert difference[0] >= -0.02
        assert difference[1] <= 0.02
    if found == "loses":
        assert difference[1] < 0


@given(differences, ratios, st.floats(0, 1), st.floats(0, 1))
def test_a_decided_verdict_is_not_undone_by_knowing_more(
    difference: tuple[float, float], ratio: tuple[float, float], left: float, right: float
) -> None:
    """A narrower interval inside a decided one is decided as well."""
    if verdict(difference, ratio) == "undecided":
        return
    low, high = difference
    inside = (low + left * (high - low) / 2, high - right * (high - low) / 2)
    assert verdict(inside, ratio) != "undecided"


def test_what_cannot_be_judged_by_is_refused() -> None:
    for margin in (-0.01, 1.0):
        with pytest.raises(LabError, match="two points"):
            metrics.verdict((0, 1), (1, 2), margin=margin)
    with pytest.raises(LabError, match="cost_margin"):
        metrics.verdict((0, 1), (1, 2), cost_margin=-1)
    with pytest.raises(ValueError, match="no interval"):
        metrics.verdict((1, 0), (1, 2))
    with pytest.raises(ValueError, match="ratio"):
        metrics.verdict((0, 1), (-1, 2))


@given(st.integers(1, 5000), st.integers(1, 5000))
def test_the_fewest_cases_are_found(have: int, enough: int) -> None:
    assert fewest_cases(lambda cases: cases >= enough, have) == max(enough, have + 1)
    assert fewest_cases(lambda cases: False, have) is None
