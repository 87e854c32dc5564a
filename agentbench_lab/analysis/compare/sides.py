"""One arm of one run, as it is compared with another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import polars as pl

from agentbench_lab.analysis.metrics import ARM, frame
from agentbench_lab.errors import LabError, did_you_mean
from agentbench_lab.outcomes import Outcome

if TYPE_CHECKING:
    import pyarrow as pa

UNKNOWN = "unknown"


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


def commit_of(side: Side) -> str:
    """The commit that a side ran at, or that it is unknown."""
    return side.commit or UNKNOWN


def told_apart(a: Side, b: Side) -> tuple[str, str]:
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
