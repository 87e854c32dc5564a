"""The TOOL ladder: its rungs, and the gate between them.

A rung's number is a pair, because one number can be gamed: refusing everything hallucinates nothing,
calling everything completes a lot. The gate asks for both: 0 % hallucination at >= 50 % completion.
Source: the TOOL ladder's own document, "The grade and the metric pair".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from agentbench_lab.cases import RUNGS

RUNG_NAMES = {
    "TOOL-0": "Direct dispatch",
    "TOOL-1": "Tool selection",
    "TOOL-2": "Scope refusal",
    "TOOL-3": "Sequential composition",
    "TOOL-4": "Conditional dispatch",
    "TOOL-5": "Goal planning",
    "TOOL-6": "Goal deduction",
    "TOOL-7": "Recovery and replanning",
    "TOOL-8": "Composition under ambiguity",
    "TOOL-9": "Goal recognition",
}

COMPLETION_FLOOR = 0.5
"""The smallest share of completed trials with which a rung may pass."""


@dataclass(frozen=True, slots=True)
class Cell:
    """The counts of one rung for one arm: every rate is over `judged`; `asked` says what is missing."""

    group: str
    asked: int
    judged: int
    completed: int
    hallucinated: int

    def failure(self) -> str | None:
        """Why the gate is shut, in the ladder's own words, or None when the rung passes."""
        if self.judged < self.asked:
            return f"{self.group} incomplete: {self.judged} of {self.asked} trials judged"
        if self.judged == 0:
            return f"{self.group} has no trials"
        why = []
        if self.hallucinated:
            why.append(f"hallucination {_percent(self.hallucinated, self.judged)}")
        if self.completed < COMPLETION_FLOOR * self.judged:
            floor = f"{100 * COMPLETION_FLOOR:.0f}%"
            why.append(f"completion {_percent(self.completed, self.judged)} < {floor}")
        return f"{self.group} {', '.join(why)}" if why else None


def _percent(count: int, of: int) -> str:
    """Rounded half up to a whole percent, with as many places as it takes never to read as zero when it is not, nor
    as passing when it is not (49.96 % is neither 50 % nor 50.0 %)."""
    floor = 100 * COMPLETION_FLOOR
    for places in range(10):
        unit: int = 10**places
        # exact in whole numbers: half of a last place is rounded up, as the ladder's own report does
        units = (2 * 100 * unit * count + of) // (2 * of)
        reads_as_zero = count > 0 and units == 0
        reads_as_passing = count < COMPLETION_FLOOR * of and units >= floor * unit
        if not reads_as_zero and not reads_as_passing:
            break
    return f"{units // unit}.{units % unit:0{places}d}%" if places else f"{units}%"


@dataclass(frozen=True, slots=True)
class Climb:
    """How far one arm came: the last rung of the unbroken chain, what shut the gate, and a receipt per rung above."""

    reached: str | None
    gated_at: str | None
    receipts: tuple[str, ...]


def climb(cells: Mapping[str, Cell], order: Sequence[str]) -> Climb:
    """Walk the rungs of `order` upward. A rung without a cell was not asked: it has a receipt once the gate is shut."""
    reached: str | None = None
    gated_at: str | None = None
    receipts = []
    for group in order:
        if gated_at is not None:
            receipts.append(f"rung {group} skipped: gated by {gated_at}")
            continue
        if group not in cells:
            continue
        gated_at = cells[group].failure()
        if gated_at is None:
            reached = group
    return Climb(reached, gated_at, tuple(receipts))


def in_order(groups: Iterable[str]) -> list[str]:
    """Rungs ascending, then any other groups by name."""
    rank = {rung: n for n, rung in enumerate(RUNGS)}
    return sorted(set(groups), key=lambda group: (rank.get(group, len(RUNGS)), group))


@dataclass(frozen=True, slots=True)
class Band:
    """A point to compare with: a name, what stands for it, and how far it is expected to come, in words."""

    name: str
    anchor: str
    reach: str


ILLUSTRATIVE_BANDS = (
    Band("tiny-local", "a small local model (about 1 to 3 billion parameters)", "TOOL-0, shaky on TOOL-1"),
    Band("8B-open", "an open model of 8 billion parameters", "TOOL-0 to TOOL-1, unreliable on TOOL-2"),
    Band("Nova-micro", "Amazon Nova Micro", "TOOL-1 to TOOL-2"),
    Band("Nova-lite", "Amazon Nova Lite", "TOOL-2, some of TOOL-3"),
    Band("Haiku", "Claude Haiku", "TOOL-3 to TOOL-4"),
)
"""Where the ladder's own document expects models to come. Nobody ran them: no score is claimed for any."""
