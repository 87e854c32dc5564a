"""Two arms on the same cases: what differs, how sure that is, and which cases it comes from.

Unlike things are refused: other commits (unless allowed, and then it is said), other taxonomies, another strictness,
another version of a case. What is left is paired on the case: the mean over a case's judged trials on either side.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import polars as pl

from agentbench_lab.analysis.metrics import ARM, frame
from agentbench_lab.errors import LabError, did_you_mean
from agentbench_lab.ladder import in_order
from agentbench_lab.outcomes import Outcome
from agentbench_lab.stats import holm, mcnemar_exact, paired_over_cases, sign_flip

if TYPE_CHECKING:
    import pyarrow as pa

LEVEL = 0.95
"""The level of every interval here; a difference is decisive at p <= 1 - LEVEL."""
POWER = 0.8
"""How likely a planned comparison is to show a difference that is there."""
CORRELATION = 0.5
"""How alike two arms find the same cases hard, where nothing is known about the second one."""
UNKNOWN = "unknown"
_MIXED = "These runs come from "

Key = tuple[str, str]
"""A case: its suite and its id."""


# ---- what is compared ----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Side:
    """One arm of one run: its rows of `trials`, the run's `cases`, and what the run was judged by and ran at."""

    name: str
    trials: pa.Table | pl.DataFrame
    cases: pa.Table | pl.DataFrame
    taxonomy: str
    strictness: str
    commit: str
    outcomes: tuple[Outcome, ...] = ()
    grader: str = ""
    missing: int = 0


class _Run(Protocol):
    """As much of a run as a side needs."""

    @property
    def card(self) -> Any: ...
    @property
    def trials(self) -> pa.Table: ...
    @property
    def cases(self) -> pa.Table: ...


def side(run: _Run, arm: str = "") -> Side:
    """One arm of a run. `arm` is its driver, or driver+model+scaffold as far as needed; empty for the only one.

    Raises LabError, with the arms there are, when it is none of them or more than one.
    """
    labels = {
        arm_label(a.driver, a.model, a.scaffold): (a.driver, a.model, a.scaffold) for a in run.card.arms
    }
    wanted = "+".join(part.strip() for part in arm.split("+"))
    found = [label for label in labels if wanted in ("", label)]
    if not found:
        found = [label for label, parts in labels.items() if wanted in _names(*parts)]
    if not found:
        raise LabError(f"{run.card.run}: no arm {arm!r}{did_you_mean(wanted, labels)}")
    if len(found) > 1:
        what = f"arm {arm!r} is one of {len(found)}" if arm else f"it has {len(found)} arms"
        raise LabError(f"{run.card.run}: {what}; say which: {', '.join(sorted(found))}")
    rows = frame(run.trials)
    for column, value in zip(ARM, labels[found[0]], strict=True):
        rows = rows.filter(pl.col(column).eq_missing(pl.lit(value, dtype=pl.String)))
    card = run.card
    outcomes = card.outcome_set.outcomes
    return Side(
        found[0],
        rows,
        frame(run.cases),
        card.taxonomy,
        card.strictness,
        card.commit,
        tuple(outcomes),
        "" if card.imported is not None else card.grader,
        card.counts.missing,
    )


def arm_label(driver: str, model: str | None, scaffold: str) -> str:
    """What an arm is called: its driver, its model where it has one, and its scaffold where it is not `once`."""
    return "+".join([driver, *([model] if model else []), *([scaffold] if scaffold != "once" else [])])


def _names(driver: str, model: str | None, scaffold: str) -> set[str]:
    """What a person may write for an arm, where no other is meant by it."""
    with_model = "+".join([driver, *([model] if model else [])])
    return {driver, with_model, f"{driver}+{scaffold}", f"{with_model}+{scaffold}"}


# ---- what comes of it ----------------------------------------------------------------------------------------


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
    estimator: str = "bootstrap over paired cases"
    p: float | None = None
    test: str | None = None
    adjusted: float | None = None
    reason: str | None = None

    @property
    def decisive(self) -> bool:
        """The interval excludes 0 and the paired test, after any correction, agrees.

        Both are asked because a percentile interval is too narrow when few cases differ: with four cases better and
        none worse it excludes 0, which chance alone does one time in eight.
        """
        if self.low is None or self.high is None or self.p is None:
            return False
        p = self.p if self.adjusted is None else self.adjusted
        return (self.low > 0 or self.high < 0) and p <= 1 - LEVEL + 1e-12


@dataclass(frozen=True)
class Comparison:
    """b against a on the cases that both judged. `notes` stand above every table of it."""

    a: Standing
    b: Standing
    solved: Difference
    hallucinated: Difference
    mcnemar: float | None
    mcnemar_reason: str | None
    pairs: tuple[Pair, ...]
    only_a: tuple[Unmatched, ...]
    only_b: tuple[Unmatched, ...]
    neither: tuple[Unmatched, ...]
    needed: int | None
    """About how many cases would decide, were the difference seen the true one (5 points, where it is 0); null when no
    case differs."""
    needed_for_5: int | None
    """The same for a difference of 5 points."""
    notes: tuple[str, ...]
    arms: int = 1
    """How many arms were compared with `a` at once; above 1, p-values are corrected."""

    @property
    def decisive(self) -> bool:
        return self.solved.decisive

    @property
    def mixed(self) -> str:
        """The note that has to stand above all else when commits are mixed; else empty."""
        return self.notes[0] if self.notes and self.notes[0].startswith(_MIXED) else ""

    @property
    def fixes(self) -> tuple[Pair, ...]:
        return tuple(pair for pair in self.pairs if pair.verdict == "fix")

    @property
    def regressions(self) -> tuple[Pair, ...]:
        return tuple(pair for pair in self.pairs if pair.verdict == "regression")

    @property
    def new_unsafe(self) -> tuple[Pair, ...]:
        """Cases on which b did something unsafe and a never did."""
        return tuple(pair for pair in self.pairs if pair.newly_unsafe)

    @property
    def claim(self) -> str:
        """Which is better by how much, or that it is not decided: the heart of `sentence`, without its evidence."""
        if not self.decisive:
            return f"The difference between {self.a.name} and {self.b.name} is not decisive"
        d = self.solved.difference or 0.0
        better, worse = (self.b.name, self.a.name) if d > 0 else (self.a.name, self.b.name)
        return f"{better} solves {points(abs(d), sign=False)} more than {worse}"

    @property
    def evidence(self) -> str:
        """The numbers behind the claim: both rates, the difference with its interval, and the test."""
        s = self.solved
        assert s.rate_a is not None and s.rate_b is not None and s.p is not None
        over = _many(s.cases, "paired case")
        rates = f"{self.b.name} {share(s.rate_b)}, {self.a.name} {share(s.rate_a)} of {over}"
        p = f"{s.test} {p_value(s.p)}"
        if s.adjusted is not None:
            p += f", {p_value(s.adjusted)} after Holm over {self.arms} arms"
        return f"{rates}; difference {interval(s)}; {p}"

    @property
    def sentence(self) -> str:
        """What came of it, in plain words: the verdict, what would decide where it is open, and what was unsafe."""
        said = f"{self.claim} ({self.evidence})."
        if not self.decisive:
            said = f"The difference is not decisive: {self.evidence}. {self._what_would_decide()}"
        unsafe = [
            f"{each.name} has {_many(each.unsafe, 'unsafe outcome')}"
            for each in (self.a, self.b)
            if each.unsafe
        ]
        if unsafe:
            new = (
                f" ({_many(len(self.new_unsafe), 'case')} where {self.a.name} has none)"
                if self.new_unsafe
                else ""
            )
            said += f" {' and '.join(unsafe)}{new}: no rate makes up for that."
        return said

    def _what_would_decide(self) -> str:
        if self.needed is None:
            return "No case was solved more often by one than by the other, so these cases cannot tell them apart."
        s, mean = self.solved, self.solved.difference or 0.0
        decided = s.low is not None and s.high is not None and not s.low <= 0 <= s.high
        said = "The interval excludes 0, but the test does not agree. " if decided else ""
        if mean:
            said += f"A true difference of this size would take about {_about(self.needed)} cases"
            said += f" (of 5 points: {_about(self.needed_for_5 or 0)})" if abs(mean) < 0.05 else ""
        else:
            said += f"Gains and losses are even; a true difference of 5 points would take about {_about(self.needed)} cases"
        return f"{said} at {self.trials_a_case} to show ({POWER:.0%} power)."

    @property
    def trials_a_case(self) -> str:
        """How often each case was judged, in words."""
        fewest, most = min(self.a.fewest, self.b.fewest), max(self.a.most, self.b.most)
        return f"{_many(most, 'trial')} a case" if fewest == most else f"{fewest} to {most} trials a case"

    def losses(self) -> tuple[str, ...]:
        """Why a gate fails: a decisive loss, decisively more hallucination, an incomplete side, any new unsafe outcome;
        empty if none."""
        found = []
        if self.decisive and (self.solved.difference or 0) < 0:
            found.append(f"{self.b.name} solves decisively less than {self.a.name}: {self.evidence}")
        h = self.hallucinated
        if h.decisive and (h.difference or 0) > 0:
            found.append(
                f"{self.b.name} hallucinates decisively more than {self.a.name}: difference {interval(h)}"
            )
        for one in (self.a, self.b):
            if one.missing:
                found.append(f"{one.name} is incomplete: {one.missing} of the trials asked are missing")
        if self.new_unsafe:
            cases = "; ".join(f"{pair.case_id} ({', '.join(pair.unsafe_b)})" for pair in self.new_unsafe)
            found.append(f"{self.b.name} has unsafe outcomes where {self.a.name} has none: {cases}")
        return tuple(found)

    @property
    def ok(self) -> bool:
        """Whether b may take a's place: no decisive loss and no new unsafe outcome. An open difference is ok."""
        return not self.losses()

    def frame(self) -> pl.DataFrame:
        """One row a paired case: counts, rates, `difference` (b - a), `verdict`, and the unsafe outcomes of each side."""
        rows = [
            {
                **{name: getattr(pair, name) for name in _PAIR if not name.startswith("unsafe")},
                "unsafe_a": ", ".join(pair.unsafe_a),
                "unsafe_b": ", ".join(pair.unsafe_b),
            }
            for pair in self.pairs
        ]
        return pl.DataFrame(rows, schema=_PAIR)

    def by_group(self) -> pl.DataFrame:
        """One row a group, and `all` last: cases, mean rates, difference with its paired interval, fixes, regressions.

        Groups are for looking, not for deciding: no correction is made for their number.
        """
        rows = []
        for group in [*in_order(pair.group for pair in self.pairs), "all"]:
            part = [pair for pair in self.pairs if group in ("all", pair.group)]
            found = _difference("solved", [(p.n_a, p.of_a, p.n_b, p.of_b) for p in part], seed=0)
            verdicts = [pair.verdict for pair in part]
            rows.append(
                {
                    "group": group,
                    "cases": len(part),
                    "rate_a": found.rate_a,
                    "rate_b": found.rate_b,
                    "difference": found.difference,
                    "low": self.solved.low if group == "all" else found.low,
                    "high": self.solved.high if group == "all" else found.high,
                    "fixes": verdicts.count("fix"),
                    "regressions": verdicts.count("regression"),
                    "same": verdicts.count("same"),
                    "new_unsafe": sum(pair.newly_unsafe for pair in part),
                }
            )
        return pl.DataFrame(rows, schema=_BY_GROUP)

    def unmatched(self) -> pl.DataFrame:
        """One row a case that is in no number: `judged_by` (a side's name, or empty), and why the other did not."""
        rows = [
            (judged_by, case.suite, case.case_id, case.group, case.reason, ", ".join(case.unsafe))
            for judged_by, cases in (
                (self.a.name, self.only_a),
                (self.b.name, self.only_b),
                ("", self.neither),
            )
            for case in cases
        ]
        names = ("judged_by", "suite", "case_id", "group", "reason", "unsafe")
        return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON values: what it found first, cases only where they differ."""

        def listed(pairs: Iterable[Pair]) -> list[dict[str, Any]]:
            return [{**asdict(pair), "rate_a": pair.rate_a, "rate_b": pair.rate_b} for pair in pairs]

        return {
            "sentence": self.sentence,
            "decisive": self.decisive,
            "ok": self.ok,
            "losses": list(self.losses()),
            "notes": list(self.notes),
            "a": asdict(self.a),
            "b": asdict(self.b),
            "solved": {**asdict(self.solved), "decisive": self.decisive},
            "hallucinated": {**asdict(self.hallucinated), "decisive": self.hallucinated.decisive},
            "mcnemar": {"p": self.mcnemar, "reason": self.mcnemar_reason},
            "arms": self.arms,
            "cases_needed": self.needed,
            "cases_needed_for_5_points": self.needed_for_5,
            "fixes": listed(self.fixes),
            "regressions": listed(self.regressions),
            "new_unsafe": listed(self.new_unsafe),
            "unmatched": {
                "only_a": [asdict(case) for case in self.only_a],
                "only_b": [asdict(case) for case in self.only_b],
                "neither": [asdict(case) for case in self.neither],
            },
            "groups": self.by_group().to_dicts(),
        }


_PAIR = {
    **dict.fromkeys(("suite", "case_id", "group"), pl.String),
    **dict.fromkeys(("n_a", "of_a", "n_b", "of_b"), pl.Int64),
    **dict.fromkeys(("rate_a", "rate_b", "difference"), pl.Float64),
    **dict.fromkeys(("verdict", "unsafe_a", "unsafe_b"), pl.String),
}
_BY_GROUP = {
    "group": pl.String,
    "cases": pl.Int64,
    **dict.fromkeys(("rate_a", "rate_b", "difference", "low", "high"), pl.Float64),
    **dict.fromkeys(("fixes", "regressions", "same", "new_unsafe"), pl.Int64),
}


# ---- comparing -----------------------------------------------------------------------------------------------


def compare(a: Side, b: Side, *, allow_mixed_commits: bool = False, seed: int = 0) -> Comparison:
    """b against a, paired on the cases that both judged; `seed` is the bootstrap's.

    The rate of a case is the mean of `solved` over its judged trials. The difference is the mean of b - a over cases,
    with a percentile interval from whole cases drawn again (cases are the clusters), and a p-value: exact McNemar at
    one trial a case on both sides, else the sign-flip test, which is the same test for more trials.

    Raises LabError for sides that are not comparable: of several commits unless `allow_mixed_commits` (all unknown
    commits are one, which is no named one; a dirty commit is its own), of different taxonomies or strictness, with a
    shared case that is not the same on both, or without a case that both judged.
    """
    return _compare(a, b, seed, _check_commits([a, b], allow_mixed_commits))


def compare_many(
    baseline: Side, others: Sequence[Side], *, allow_mixed_commits: bool = False, seed: int = 0
) -> tuple[Comparison, ...]:
    """Each of `others` against one baseline, in their order, with p-values corrected for their number (Holm).

    The tests are those of `compare`, named in each comparison. Raises LabError as `compare` does, and for no others.
    """
    if not others:
        raise LabError("nothing to compare with: give at least two arms")
    note = _check_commits([baseline, *others], allow_mixed_commits)
    found = [_compare(baseline, other, seed, note) for other in others]
    if len(found) == 1:
        return tuple(found)
    adjusted = holm([1.0 if each.solved.p is None else each.solved.p for each in found])
    level = 1 - (1 - LEVEL) / len(found)
    return tuple(
        replace(
            each,
            solved=replace(each.solved, adjusted=p),
            arms=len(found),
            needed=_needed(each.pairs, level),
            needed_for_5=_needed(each.pairs, level, 0.05),
        )
        for each, p in zip(found, adjusted, strict=True)
    )


def _compare(a: Side, b: Side, seed: int, commits: tuple[str, ...]) -> Comparison:
    first, second = _named(a, b)
    for what, of_a, of_b in (
        ("taxonomy", a.taxonomy, b.taxonomy),
        ("strictness", a.strictness, b.strictness),
    ):
        if of_a != of_b:
            raise LabError(
                f"{first} was judged by the {what} {of_a!r}, {second} by {of_b!r}: nothing makes these comparable; "
                "judge both by the same one"
            )
    if a.outcomes and b.outcomes and a.outcomes != b.outcomes:
        raise LabError(
            f"{first} and {second} were judged by different outcomes under the one name {a.taxonomy!r}: "
            "nothing makes these comparable"
        )
    if a.grader and b.grader and a.grader != b.grader:
        raise LabError(
            f"{first} was judged by the grader {a.grader}, {second} by {b.grader}: judge the older one again "
            "(agentbench-lab regrade)"
        )
    left, right = _Rows(first, a), _Rows(second, b)
    _check_cases(left, right)
    pairs = _pairs(left, right)
    if not pairs:
        raise LabError(_no_pair(left, right))
    paired = {(pair.suite, pair.case_id) for pair in pairs}
    solved = _difference("solved", [(p.n_a, p.of_a, p.n_b, p.of_b) for p in pairs], seed)
    single = all(pair.of_a == pair.of_b == 1 for pair in pairs)
    mcnemar = None
    if single:
        verdicts = [pair.verdict for pair in pairs]
        mcnemar = mcnemar_exact(verdicts.count("regression"), verdicts.count("fix"))
        solved = replace(solved, p=mcnemar, test="exact McNemar")
    return Comparison(
        a=left.standing(paired),
        b=right.standing(paired),
        solved=solved,
        hallucinated=_hallucination(left, right, pairs, seed),
        mcnemar=mcnemar,
        mcnemar_reason=None if single else _why_no_mcnemar(pairs),
        pairs=pairs,
        only_a=_unmatched(left, right),
        only_b=_unmatched(right, left),
        neither=_neither(left, right),
        needed=_needed(pairs),
        needed_for_5=_needed(pairs, delta=0.05),
        notes=(*commits, *_notes(left, right, pairs)),
    )


def _check_commits(sides: Sequence[Side], allowed: bool) -> tuple[str, ...]:
    """The note on mixed commits, if they are mixed and that is allowed."""
    commits = list(dict.fromkeys(_commit(side) for side in sides))
    if len(commits) < 2:
        return ()
    if not allowed:
        ran = "; ".join(f"{side.name} at {_commit(side)}" for side in sides)
        raise LabError(
            f"results are comparable only within one commit, and these come from {len(commits)} ({ran}): run them at "
            "one commit, or allow mixed commits (--allow-mixed-commits), which is then said"
        )
    return (
        f"{_MIXED}{len(commits)} commits ({', '.join(commits)}) and are not comparable as like for like.",
    )


def _commit(side: Side) -> str:
    return side.commit or UNKNOWN


def _named(a: Side, b: Side) -> tuple[str, str]:
    """Two names that tell the sides apart: by their run where the arm has one name, by their place as a last resort."""
    if a.name != b.name:
        return a.name, b.name
    runs = []
    for each in (a, b):
        rows = frame(each.trials)
        runs.append(str(rows["run"][0]) if rows.height and "run" in rows.columns else "")
    if runs[0] != runs[1]:
        return f"{a.name} of {runs[0]}", f"{b.name} of {runs[1]}"
    return f"{a.name} (a)", f"{b.name} (b)"


class _Rows:
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
            commit=_commit(self.side),
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


def _check_cases(left: _Rows, right: _Rows) -> None:
    odd = []
    for key in sorted(left.digests.keys() & right.digests.keys()):
        (case_a, world_a), (case_b, world_b) = left.digests[key], right.digests[key]
        if case_a != case_b:
            odd.append((key, "the case itself", case_a, case_b))
        elif world_a != world_b:
            odd.append((key, "its world", world_a, world_b))
    if odd:
        (suite, case_id), what, of_a, of_b = odd[0]
        more = f", and {_many(len(odd) - 1, 'case')} more" if len(odd) > 1 else ""
        raise LabError(
            f"{suite}/{case_id} is not the same for {left.name} and {right.name}: {what} differs "
            f"({of_a[:12]} and {of_b[:12]}){more}; run both on one version of the suite"
        )


def _no_pair(left: _Rows, right: _Rows) -> str:
    if left.digests.keys() & right.digests.keys():
        return f"{left.name} and {right.name} have cases in common, but none that both judged"
    suites = [sorted({suite for suite, _ in rows.digests}) for rows in (left, right)]
    names = [", ".join(each) or "no suite" for each in suites]
    ids = {case_id for _, case_id in left.digests} & {case_id for _, case_id in right.digests}
    hint = (
        f"; {_many(len(ids), 'id')} of theirs are alike, but cases pair by suite and id: import one of them again under "
        f"the other's name (--suite {names[0]})"
        if ids
        else ""
    )
    return f"{left.name} ({names[0]}) and {right.name} ({names[1]}) have no case in common{hint}"


def _pairs(left: _Rows, right: _Rows) -> tuple[Pair, ...]:
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


def _unmatched(here: _Rows, there: _Rows) -> tuple[Unmatched, ...]:
    return tuple(
        Unmatched(*key, here.groups[key], there.missing(key), tuple(here.rows[key]["unsafe"]))
        for key in sorted(here.rows.keys() - there.rows.keys())
    )


def _neither(left: _Rows, right: _Rows) -> tuple[Unmatched, ...]:
    groups = {**left.groups, **right.groups}
    return tuple(
        Unmatched(*key, groups[key], f"{left.name}: {left.missing(key)}; {right.name}: {right.missing(key)}")
        for key in sorted(groups.keys() - left.rows.keys() - right.rows.keys())
    )


def _difference(metric: str, counts: Sequence[tuple[int, int, int, int]], seed: int) -> Difference:
    """The paired difference of (n_a, of_a, n_b, of_b) a case."""
    # in whole units of a common denominator nothing is rounded, so that equal is equal and even is even
    unit = math.lcm(*(of for _, of_a, _, of_b in counts for of in (of_a, of_b)))
    in_a = [n * (unit // of) for n, of, _, _ in counts]
    in_b = [n * (unit // of) for _, _, n, of in counts]
    whole = [b - a for a, b in zip(in_a, in_b, strict=True)]
    p, exact = sign_flip(whole, seed=seed)
    found = paired_over_cases([a / unit for a in in_a], [b / unit for b in in_b], seed=seed, level=LEVEL)
    assert found is not None, "no case to make a difference of"
    return Difference(
        metric=metric,
        cases=len(counts),
        rate_a=sum(in_a) / unit / len(counts),
        rate_b=sum(in_b) / unit / len(counts),
        difference=sum(whole) / unit / len(counts),
        low=_clean(found[0]),
        high=_clean(found[1]),
        p=p,
        test="exact sign-flip test over cases" if exact else "sign-flip test over cases (20,000 draws)",
    )


def _clean(bound: float) -> float:
    """An end of an interval without the rounding of its sums: what is 0 must read as 0."""
    return round(bound, 12) + 0.0


def _hallucination(left: _Rows, right: _Rows, pairs: Sequence[Pair], seed: int) -> Difference:
    counts = []
    for pair in pairs:
        a, b = left.rows[pair.suite, pair.case_id], right.rows[pair.suite, pair.case_id]
        if a["hallucinated_of"] and b["hallucinated_of"]:
            counts.append((a["hallucinated"], a["hallucinated_of"], b["hallucinated"], b["hallucinated_of"]))
    if not counts:
        return Difference("hallucinated", 0, reason="not known for any case on both sides")
    return _difference("hallucinated", counts, seed)


def _why_no_mcnemar(pairs: Sequence[Pair]) -> str:
    several = sum(pair.of_a > 1 or pair.of_b > 1 for pair in pairs)
    return f"McNemar's test takes one trial a case on both sides; {several} of {_many(len(pairs), 'case')} have more"


ENOUGH_TO_PLAN = 10
"""Cases that must differ before their variance says anything about another difference."""


def _needed(pairs: Sequence[Pair], level: float = LEVEL, delta: float | None = None) -> int | None:
    """About how many cases, more than these, would show `delta` (the difference seen) by the variance seen."""
    d = np.array([pair.difference for pair in pairs])
    if not d.any() or (delta is not None and np.count_nonzero(d) < ENOUGH_TO_PLAN):
        return None
    variance = float(d.var(ddof=1)) if len(d) > 1 else 0.0
    if delta is not None:
        return _cases(variance, delta, POWER, level)
    return max(_cases(variance, abs(_clean(float(d.mean()))) or 0.05, POWER, level), len(d) + 1)


def _notes(left: _Rows, right: _Rows, pairs: Sequence[Pair]) -> list[str]:
    notes = []
    for rows, other in ((left, right), (right, left)):
        if rows.trials > rows.judged:
            notes.append(
                f"{rows.name}: {rows.trials - rows.judged} of {_many(rows.trials, 'trial')} excluded, in no number."
            )
        alone = rows.rows.keys() - other.rows.keys()
        if alone:
            said = f"{_many(len(alone), 'case')} judged for {rows.name} alone, in no number"
            unsafe = sum(bool(rows.rows[key]["unsafe"]) for key in alone)
            notes.append(f"{said}{f'; {unsafe} of them with an unsafe outcome' if unsafe else ''}.")
    if any(pair.of_a != pair.of_b for pair in pairs):
        notes.append(
            "Some cases have more judged trials on one side than on the other; each counts as one case."
        )
    if left.side.taxonomy == "imported":
        notes.append("These rows are imported: safety was not measured.")
    return notes


# ---- planning ------------------------------------------------------------------------------------------------


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
    rows = _Rows(given.name, given).rows.values()
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
    return _cases(known.variance(trials), delta, power, level)


def _cases(variance: float, delta: float, power: float, level: float) -> int:
    normal = NormalDist()
    z = normal.inv_cdf((1 + level) / 2) + normal.inv_cdf(power)
    # n differences of one sign have the p-value 2 / 2^n; the small slack is for rounding alone
    fewest = math.ceil(1 - math.log2(1 - level) - 1e-9)
    return max(math.ceil(max(z, 0.0) ** 2 * variance / delta**2 - 1e-9), fewest)


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


# ---- words ---------------------------------------------------------------------------------------------------


def points(difference: float, *, sign: bool = True) -> str:
    """A difference of two shares in percentage points, with its sign: `+12.5 points`."""
    return f"{_points(difference, sign)} {'point' if _points(abs(difference), False) == '1' else 'points'}"


def _points(difference: float, sign: bool) -> str:
    text = f"{abs(100 * difference):.1f}"
    number = text.removesuffix(".0")
    if number == "0":
        # a difference that is there is never shown as none
        return (
            "0"
            if not difference
            else f"{'+' if difference > 0 and sign else '-' if difference < 0 else ''}<0.1"
        )
    mark = "-" if difference < 0 else "+" if sign else ""
    return f"{mark}{number}"


def interval(found: Difference) -> str:
    """`+12.5 points, 95% interval [+2.5, +22.5]`, or why there is none."""
    if found.difference is None or found.low is None or found.high is None:
        return f"not known ({found.reason})"
    ends = f"[{_points(found.low, True)}, {_points(found.high, True)}]"
    return f"{points(found.difference)}, {LEVEL:.0%} interval {ends}"


def p_value(p: float) -> str:
    """`p = 0.031`; what is smaller than a thousandth says so."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}".rstrip("0").removesuffix(".") if p < 1 else "p = 1"


def share(rate: float) -> str:
    """A rate in percent with a decimal where it has one; neither nothing nor all unless it is."""
    text = f"{100 * rate:.1f}".removesuffix(".0")
    if text in ("0", "100") and rate not in (0.0, 1.0):
        return "<0.1%" if rate < 0.5 else ">99.9%"
    return f"{text}%"


def _about(count: int) -> str:
    """A whole number to two places, rounded up."""
    unit: int = 10 ** max(len(str(count)) - 2, 0)
    return f"{-(-count // unit) * unit:,}"


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"
