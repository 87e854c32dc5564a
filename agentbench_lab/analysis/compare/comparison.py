"""What comes of a comparison: its numbers, its cases, and what they say in plain words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import polars as pl

from agentbench_lab.analysis.compare.differences import Difference, difference_of
from agentbench_lab.analysis.compare.pairing import Pair, Standing, Unmatched
from agentbench_lab.analysis.compare.power import POWER
from agentbench_lab.analysis.compare.refusals import MIXED
from agentbench_lab.analysis.compare.words import about, interval, many, p_value, share
from agentbench_lab.ladder import in_order
from agentbench_lab.points import points

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
        return self.notes[0] if self.notes and self.notes[0].startswith(MIXED) else ""

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
        """Whether b is better or worse and by how much, or that it is not decided: the heart of `sentence`, without its evidence."""
        if not self.decisive:
            return f"The difference between {self.a.name} and {self.b.name} is not decisive"
        d = self.solved.difference or 0.0
        # always of b against a, as every figure of a comparison is: word and sign say the same
        return f"{self.b.name} solves {points(abs(d), sign=False)} {'more' if d > 0 else 'less'} than {self.a.name}"

    @property
    def evidence(self) -> str:
        """The numbers behind the claim: both rates, the difference with its interval, and the test."""
        s = self.solved
        assert s.rate_a is not None and s.rate_b is not None and s.p is not None
        over = many(s.cases, "paired case")
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
            f"{each.name} has {many(each.unsafe, 'unsafe outcome')}"
            for each in (self.a, self.b)
            if each.unsafe
        ]
        if unsafe:
            new = (
                f" ({many(len(self.new_unsafe), 'case')} where {self.a.name} has none)"
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
            said += f"A true difference of this size would take about {about(self.needed)} cases"
            said += f" (of 5 points: {about(self.needed_for_5 or 0)})" if abs(mean) < 0.05 else ""
        else:
            said += f"Gains and losses are even; a true difference of 5 points would take about {about(self.needed)} cases"
        return f"{said} at {self.trials_a_case} to show ({POWER:.0%} power)."

    @property
    def trials_a_case(self) -> str:
        """How often each case was judged, in words."""
        fewest, most = min(self.a.fewest, self.b.fewest), max(self.a.most, self.b.most)
        return f"{many(most, 'trial')} a case" if fewest == most else f"{fewest} to {most} trials a case"

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
            found = difference_of("solved", [(p.n_a, p.of_a, p.n_b, p.of_b) for p in part], seed=0)
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
