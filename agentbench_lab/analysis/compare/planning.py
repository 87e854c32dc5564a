"""Before a run: how many cases, at so many trials each, would show a difference of a given size."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from agentbench_lab.analysis.compare.comparing import compare
from agentbench_lab.analysis.compare.comparison import Comparison
from agentbench_lab.analysis.compare.differences import LEVEL
from agentbench_lab.analysis.compare.pairing import Rows
from agentbench_lab.analysis.compare.power import POWER, cases_for
from agentbench_lab.analysis.compare.sides import Side
from agentbench_lab.errors import LabError

CORRELATION = 0.5
"""How alike two arms find the same cases hard, where nothing is known about the second one."""


@dataclass(frozen=True, slots=True)
class Spread:
    """What the number of cases depends on, for two arms together.

    `within`: the variance of a single trial about its case's own rate (mean over cases), added up over both arms;
    more trials shrink it. `between`: the variance over cases of the difference between the arms' true rates; only
    more cases help against it. With one trial a case the two cannot be told apart (`split` is false): both then are
    upper bounds, of which the larger one counts. `assumption` says in words what was taken for granted.
    """

    within: float
    between: float
    split: bool
    assumption: str

    def variance(self, trials: int) -> float:
        """The variance of one case's paired difference at so many trials on both sides."""
        if self.split:
            return self.between + self.within / trials
        # the sum of both is at most this, however the one known total is split between them
        return max(self.between, self.within / trials)


def spread(a: Side | None = None, b: Side | None = None, *, correlation: float = CORRELATION) -> Spread:
    """The spread to plan with: of two sides as observed; of one side, for an arm like it; of none, the worst there is.

    Of one side, what a second arm would do is unknown: it is assumed to be as noisy, its cases to vary as much, and
    its rates by case to correlate with the first's by `correlation` (0: difficulty is no common ground and pairing
    wins nothing; 1: the difference is the same on every case). Trials of a case give the variance within it
    (unbiased, k / (k - 1) p (1 - p)); the variance between cases is what is left.
    """
    if not 0 <= correlation <= 1:
        raise LabError(f"the correlation must lie between 0 and 1, not {correlation}")
    if a is not None and b is not None:
        return _spread_of_two(compare(a, b, allow_mixed_commits=True))
    as_noisy = f"the other arm is as noisy, and its rates by case correlate by {correlation:g}"
    given = a if a is not None else b
    if given is None:
        return Spread(0.5, 0.5 * (1 - correlation), False, f"half of all trials are solved; {as_noisy}")
    rows = Rows(given.name, given).rows.values()
    counts = [(row["n"], row["of"]) for row in rows]
    if not counts:
        raise LabError(f"{given.name}: no trial was judged, so there is no spread to plan with")
    rates = np.array([n / of for n, of in counts])
    within = _within(counts)
    if within is None:
        total = 2 * float(rates.mean() * (1 - rates.mean()))
        words = "one trial a case cannot tell noise from difficulty, so the worse of both is taken"
        return Spread(total, total * (1 - correlation), False, f"{as_noisy}; {words}")
    noise = within * float(np.mean([1 / of for _, of in counts]))
    among = max(0.0, (float(rates.var(ddof=1)) if len(rates) > 1 else 0.0) - noise)
    return Spread(2 * within, 2 * among * (1 - correlation), True, as_noisy)


def _spread_of_two(found: Comparison) -> Spread:
    within_a = _within([(pair.n_a, pair.of_a) for pair in found.pairs])
    within_b = _within([(pair.n_b, pair.of_b) for pair in found.pairs])
    d = np.array([pair.difference for pair in found.pairs])
    total = float(d.var(ddof=1)) if len(d) > 1 else 0.0
    if within_a is None or within_b is None:
        words = (
            "the difference varies over new cases as it did here; noise and difficulty cannot be told apart"
        )
        return Spread(total, total, False, words)
    noise = within_a * float(np.mean([1 / pair.of_a for pair in found.pairs]))
    noise += within_b * float(np.mean([1 / pair.of_b for pair in found.pairs]))
    words = "the difference varies over new cases as it did here"
    return Spread(within_a + within_b, max(0.0, total - noise), True, words)


def _within(counts: Iterable[tuple[int, int]]) -> float | None:
    """The mean variance of one trial about its case's rate, from the cases with several trials; None without."""
    found = [n * (of - n) / (of * (of - 1)) for n, of in counts if of > 1]
    return float(np.mean(found)) if found else None


def cases_to_detect(
    known: Spread, delta: float, *, trials: int = 1, power: float = POWER, level: float = LEVEL
) -> int:
    """How many cases, at `trials` trials each on both sides, show a true difference of `delta` (0.05: five points).

    n = (z(level) + z(power))² (between + within / trials) / delta², with z(level) two-sided: Miller, "Adding error
    bars to evals" (2024), section on power analysis. Never fewer than the exact paired test needs to reach that level
    at all (6 at 95 %). What is assumed of the second arm stands in `known.assumption`; at a difference of a few
    points `between` is taken not to depend on it. Raises LabError for a delta or a number of trials out of range.
    """
    if not 0 < delta <= 1:
        raise LabError(
            f"the difference to detect must be more than 0 and at most 1 (0.05 is 5 points), not {delta}"
        )
    if trials < 1:
        raise LabError(f"trials must be a whole number from 1, not {trials}")
    if not 0 < power < 1 or not 0 < level < 1:
        raise LabError(f"power and level must lie between 0 and 1, not {power} and {level}")
    return cases_for(known.variance(trials), delta, power, level)


def detect(
    known: Spread,
    delta: float,
    *,
    trials: Sequence[int] = (1, 2, 3, 5, 10),
    power: float = POWER,
    level: float = LEVEL,
) -> pl.DataFrame:
    """`cases_to_detect` for several numbers of trials: a row each, with what it costs in trials of one arm."""
    rows = []
    for count in trials:
        cases = cases_to_detect(known, delta, trials=count, power=power, level=level)
        rows.append({"trials": count, "cases": cases, "trials_an_arm": count * cases})
    return pl.DataFrame(rows, schema=dict.fromkeys(("trials", "cases", "trials_an_arm"), pl.Int64))
