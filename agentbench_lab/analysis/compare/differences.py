"""b - a of one rate over paired cases: the number, its interval, and the test that goes with it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from agentbench_lab.stats import PAIRED, difference_over_cases, sign_flip, trials_behind

LEVEL = 0.95
"""The level of every interval here; a difference is decisive at p <= 1 - LEVEL."""


@dataclass(frozen=True, slots=True)
class Difference:
    """b - a of one rate: both rates as means over `cases` paired cases, an interval, and a p-value with its test.

    `adjusted` is the p-value after Holm's correction, where the comparison is one of several. All numbers are null,
    and `reason` says why, when no case has the metric on both sides.
    """

    metric: str
    cases: int
    rate_a: float | None = None
    rate_b: float | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    estimator: str = PAIRED
    p: float | None = None
    test: str | None = None
    adjusted: float | None = None
    reason: str | None = None

    @property
    def decisive(self) -> bool:
        """The interval excludes 0 and the paired test, after any correction, agrees.

        Both are asked because they answer differently when few cases differ: chance alone makes four of four that differ
        better one time in eight.
        """
        if self.low is None or self.high is None or self.p is None:
            return False
        p = self.p if self.adjusted is None else self.adjusted
        return (self.low > 0 or self.high < 0) and p <= 1 - LEVEL + 1e-12


def difference_of(metric: str, counts: Sequence[tuple[int, int, int, int]], seed: int) -> Difference:
    """The paired difference of (n_a, of_a, n_b, of_b) a case, with the interval that every paired difference has."""
    # in whole units of a common denominator nothing is rounded, so that equal is equal and even is even
    unit = math.lcm(*(of for _, of_a, _, of_b in counts for of in (of_a, of_b)))
    in_a = [n * (unit // of) for n, of, _, _ in counts]
    in_b = [n * (unit // of) for _, _, n, of in counts]
    whole = [b - a for a, b in zip(in_a, in_b, strict=True)]
    p, exact = sign_flip(whole, seed=seed)
    trials = trials_behind([min(of_a, of_b) for _, of_a, _, of_b in counts])
    found = difference_over_cases([d / unit for d in whole], trials=trials, seed=seed, level=LEVEL)
    assert found is not None, "no case to make a difference of"
    return Difference(
        metric=metric,
        cases=len(counts),
        rate_a=sum(in_a) / unit / len(counts),
        rate_b=sum(in_b) / unit / len(counts),
        difference=sum(whole) / unit / len(counts),
        low=found.low,
        high=found.high,
        p=p,
        test="exact sign-flip test over cases" if exact else "sign-flip test over cases (20,000 draws)",
    )


def clean(bound: float) -> float:
    """An end of an interval without the rounding of its sums: what is 0 must read as 0."""
    return round(bound, 12) + 0.0
