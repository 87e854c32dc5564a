"""What the rows of one arm give, to stand beside what a source publishes.

These are a source's own definitions, with no interval: they answer "does the printed figure follow from the rows?".
What the library itself reports of a run is `analysis.metrics`.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Annotated, NamedTuple

from msgspec import Meta

from agentbench_lab import stats
from agentbench_lab.results.run import Published

Count = Annotated[int, Meta(ge=0, le=2**53)]
"""A count in a file: what is negative, or more than sums can hold, is an error of the file."""
Dollars = Annotated[float, Meta(ge=0, le=1e9)]

REPEATED = 1e-9
"""How far a figure that a program wrote in full may be from the same sum made in another order."""


class Tally(NamedTuple):
    """So many trials solved, of so many judged."""

    solved: int
    judged: int

    @property
    def rate(self) -> float:
        return self.solved / self.judged

    def plus(self, solved: bool) -> Tally:
        return Tally(self.solved + solved, self.judged + 1)


def tally(verdicts: Iterable[tuple[object, bool]]) -> dict[object, Tally]:
    """(key, solved) pairs, counted by key: by case for pass^k and pass@k, by trial number for a standard error."""
    found: dict[object, Tally] = {}
    for key, solved in verdicts:
        found[key] = found.get(key, Tally(0, 0)).plus(solved)
    return found


def accuracy(by_case: Mapping[object, Tally]) -> float | None:
    """Solved of judged trials; None without any."""
    judged = sum(each.judged for each in by_case.values())
    return sum(each.solved for each in by_case.values()) / judged if judged else None


def pass_hat_k(by_case: Mapping[object, Tally], k: int) -> float | None:
    """pass^k: the mean over cases of C(c, k) / C(n, k), for the cases with k trials or more (tau-bench,
    arXiv:2406.12045); None where no case has k."""
    return _mean(stats.pass_hat_k(each.solved, each.judged, k) for each in by_case.values())


def pass_at_k(by_case: Mapping[object, Tally], k: int) -> float | None:
    """pass@k: the mean over cases of 1 - C(n - c, k) / C(n, k), for the cases with k trials or more (Chen et al. 2021,
    arXiv:2107.03374); None where no case has k."""
    return _mean(stats.pass_at_k(each.solved, each.judged, k) for each in by_case.values())


def standard_error(by_trial: Mapping[object, Tally]) -> float | None:
    """Of the mean accuracy of n runs, as Terminal-Bench prints it: their sample standard deviation (n - 1) over the
    square root of n, a run being all trials of one number; None for fewer than two."""
    return stats.standard_error([each.rate for each in by_trial.values()])


class Asked(NamedTuple):
    """One run of an arm: how many trials it has of each task, and how often it asked each at least."""

    arm: tuple[str, str | None]
    had: Mapping[str, int]
    attempts: int = 1


def lacking(runs: Iterable[Asked]) -> dict[tuple[str, str | None], int]:
    """By arm, the trials that its runs lack: each run is taken to have asked every task that a run of its arm has."""
    by_arm: dict[tuple[str, str | None], list[Asked]] = defaultdict(list)
    for run in runs:
        by_arm[run.arm].append(run)
    return {
        arm: sum(
            max(0, run.attempts - run.had.get(task, 0))
            for task in {t for run in mine for t in run.had}
            for run in mine
        )
        for arm, mine in by_arm.items()
    }


def told_lacking(lacks: Mapping[tuple[str, str | None], int]) -> list[str]:
    """The notes on them."""
    return [
        f"{' '.join(filter(None, arm))}: some of its runs lack tasks that others have, or attempts; missing: {count}."
        for arm, count in lacks.items()
        if count
    ]


def unsplit(extras: Iterable[Mapping[str, object]]) -> list[str]:
    """The note on trials whose `extra` holds their input tokens as a total, because its parts are unknown."""
    count = sum("tokens_input_total" in extra for extra in extras)
    if not count:
        return []
    tell = "trial tells its" if count == 1 else "trials tell their"
    return [
        f"{count} {tell} input tokens only as a total, cached or not: the buckets stay unknown, the total is in extra."
    ]


def as_float(value: object) -> float | None:
    """A JSON number as a float; None for anything else, and for a number beyond reason."""
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if plain and abs(value) < 1e15 else None  # type: ignore[arg-type]


def claim(
    arm: tuple[str, str | None], metric: str, unit: str, published: float, rows: float | None, note: str = ""
) -> Published:
    """A total that the source wrote in full, beside the rows': it follows when they are equal but for REPEATED."""
    follows = rows is not None and math.isclose(published, rows, rel_tol=REPEATED, abs_tol=REPEATED)
    return Published(*arm, metric, unit, published, rows, follows, note)


def _mean(values: Iterable[float | None]) -> float | None:
    found = [value for value in values if value is not None]
    return math.fsum(found) / len(found) if found else None
