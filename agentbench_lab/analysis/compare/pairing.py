"""Two sides read and paired on the case: what became of each on either side, and what has no counterpart."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import polars as pl

from agentbench_lab.analysis.compare.sides import Side, arm_label, commit_of
from agentbench_lab.analysis.metrics import ARM, frame
from agentbench_lab.errors import LabError
from agentbench_lab.ladder import in_order

Key = tuple[str, str]
"""A case: its suite and its id."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One case on both sides: solved trials of judged ones, and the unsafe outcomes among them."""

    suite: str
    case_id: str
    group: str
    n_a: int
    of_a: int
    n_b: int
    of_b: int
    unsafe_a: tuple[str, ...] = ()
    unsafe_b: tuple[str, ...] = ()

    @property
    def rate_a(self) -> float:
        return self.n_a / self.of_a

    @property
    def rate_b(self) -> float:
        return self.n_b / self.of_b

    @property
    def difference(self) -> float:
        # one division, so that equal rates differ by exactly 0
        return (self.n_b * self.of_a - self.n_a * self.of_b) / (self.of_a * self.of_b)

    @property
    def verdict(self) -> str:
        """`fix` where b solves the case more often, `regression` where less often, else `same`."""
        return "fix" if self.difference > 0 else "regression" if self.difference < 0 else "same"

    @property
    def newly_unsafe(self) -> bool:
        return bool(self.unsafe_b) and not self.unsafe_a


@dataclass(frozen=True, slots=True)
class Unmatched:
    """A case that is in no number, because one side or both did not judge it; `unsafe` is what the other one did."""

    suite: str
    case_id: str
    group: str
    reason: str
    unsafe: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Standing:
    """One side in numbers. `trials` = `judged` + `excluded`; the rest is over the paired cases alone.

    `unsafe` counts judged trials with an unsafe outcome; `fewest` and `most` are judged trials a case; `missing` are
    the trials of the whole run that were asked and did not come about.
    """

    name: str
    commit: str
    evidence: tuple[str, ...]
    trials: int
    judged: int
    excluded: int
    unsafe: int
    fewest: int
    most: int
    missing: int = 0


class Rows:
    """One side, read: its cases by key, and what became of each."""

    def __init__(self, name: str, side: Side) -> None:
        self.name, self.side = name, side
        trials, cases = frame(side.trials), frame(side.cases)
        self.digests: dict[Key, tuple[str, str]] = {}
        self.groups: dict[Key, str] = {}
        for suite, case_id, group, digest, world in cases.select(
            "suite", "case_id", "group", "digest", "world_digest"
        ).iter_rows():
            if self.digests.setdefault((suite, case_id), (digest, world)) != (digest, world):
                raise LabError(f"{name}: case {suite}/{case_id} stands in its cases twice, and differs")
            self.groups[suite, case_id] = group
        self._check(trials)
        judged = trials.filter(pl.col("excluded").is_null())
        self.trials, self.judged = trials.height, judged.height
        self.evidence = tuple(sorted(trials["evidence"].unique()))
        self.rows = {
            (row["suite"], row["case_id"]): row
            for row in judged.group_by("suite", "case_id")
            .agg(
                pl.col("solved").sum().alias("n"),
                pl.len().alias("of"),
                pl.col("hallucinated").sum().alias("hallucinated"),
                pl.col("hallucinated").is_not_null().sum().alias("hallucinated_of"),
                pl.col("outcome").filter(pl.col("outcome_class") == "unsafe").sort().alias("unsafe"),
            )
            .iter_rows(named=True)
        }
        self.excluded: dict[Key, int] = {
            (suite, case_id): count
            for suite, case_id, count in trials.filter(pl.col("excluded").is_not_null())
            .group_by("suite", "case_id")
            .len()
            .iter_rows()
        }

    def _check(self, trials: pl.DataFrame) -> None:
        if trials.is_empty():
            raise LabError(f"{self.name}: no trial has ended, so there is nothing to compare")
        arms = [arm_label(*arm) for arm in trials.select(ARM).unique(maintain_order=True).iter_rows()]
        if len(arms) > 1:
            raise LabError(f"{self.name}: {len(arms)} arms on one side ({', '.join(arms)}); choose one")
        identity = trials.select("suite", "case_id", "trial")
        if identity.is_duplicated().any():
            suite, case_id, trial = identity.filter(identity.is_duplicated()).row(0)
            raise LabError(f"{self.name}: trial {trial} of {suite}/{case_id} is there twice")
        for key in identity.select("suite", "case_id").unique(maintain_order=True).iter_rows():
            if key not in self.digests:
                raise LabError(f"{self.name}: trials of {'/'.join(key)}, which is none of its cases")
        silent = trials.filter(pl.col("excluded").is_null() & pl.col("solved").is_null())
        if silent.height:
            suite, case_id = silent.select("suite", "case_id").row(0)
            raise LabError(f"{self.name}: a trial of {suite}/{case_id} is neither judged nor excluded")

    def standing(self, paired: Iterable[Key]) -> Standing:
        rows = [self.rows[key] for key in paired]
        judged = [row["of"] for row in rows]
        return Standing(
            name=self.name,
            commit=commit_of(self.side),
            evidence=self.evidence,
            trials=self.trials,
            judged=self.judged,
            excluded=self.trials - self.judged,
            unsafe=sum(len(row["unsafe"]) for row in rows),
            fewest=min(judged),
            most=max(judged),
            missing=self.side.missing,
        )

    def missing(self, key: Key) -> str:
        """Why there is no judged trial of the case."""
        if key in self.excluded:
            return f"no judged trial there ({self.excluded[key]} excluded)"
        if key in self.digests:
            return "not asked there (its rung was gated, or the run is not finished)"
        return "not asked there"


def pairs_of(left: Rows, right: Rows) -> tuple[Pair, ...]:
    """The cases that both judged, by group and key."""
    both = left.rows.keys() & right.rows.keys()
    rank = {group: n for n, group in enumerate(in_order(left.groups[key] for key in both))}
    return tuple(
        Pair(
            *key,
            left.groups[key],
            left.rows[key]["n"],
            left.rows[key]["of"],
            right.rows[key]["n"],
            right.rows[key]["of"],
            tuple(left.rows[key]["unsafe"]),
            tuple(right.rows[key]["unsafe"]),
        )
        for key in sorted(both, key=lambda key: (rank[left.groups[key]], key))
    )


def unmatched(here: Rows, there: Rows) -> tuple[Unmatched, ...]:
    """The cases that one side judged and the other did not."""
    return tuple(
        Unmatched(*key, here.groups[key], there.missing(key), tuple(here.rows[key]["unsafe"]))
        for key in sorted(here.rows.keys() - there.rows.keys())
    )


def neither(left: Rows, right: Rows) -> tuple[Unmatched, ...]:
    """The cases of either side that nobody judged."""
    groups = {**left.groups, **right.groups}
    return tuple(
        Unmatched(*key, groups[key], f"{left.name}: {left.missing(key)}; {right.name}: {right.missing(key)}")
        for key in sorted(groups.keys() - left.rows.keys() - right.rows.keys())
    )
