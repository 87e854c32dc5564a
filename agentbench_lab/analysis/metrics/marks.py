"""The ladder's marks with their intervals, and its gate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl

from agentbench_lab.analysis.metrics.arms import ARM, by_arm, envelopes, evidence_of, frame
from agentbench_lab.analysis.metrics.endings import said_of
from agentbench_lab.analysis.metrics.intervals import share
from agentbench_lab.ladder import RUNG_NAMES, Cell, climb, in_order

if TYPE_CHECKING:
    import pyarrow as pa

MARKS = {
    "passed": "solved",
    "completed": "completed",
    "result_completed": "result_completed",
    "hallucinated": "hallucinated",
}
"""The ladder's four marks: the metric's name, and the column of `trials` that it is the rate of."""
ALL = "all"

_LADDER = {
    **dict.fromkeys(ARM, pl.String),
    "evidence": pl.String,
    "group": pl.String,
    "metric": pl.String,
    "estimate": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "n": pl.Int64,
    "of": pl.Int64,
    "asked": pl.Int64,
    "cases": pl.Int64,
    "estimator": pl.String,
    "reason": pl.String,
    "reached": pl.String,
    "disqualified": pl.String,
}


def ladder(trials: pa.Table | pl.DataFrame, card: Any = None) -> pl.DataFrame:
    """The ladder's marks by arm and group, and over all groups (group `all`).

    One row an arm, group and metric (passed, completed, result_completed, hallucinated): the rate over judged trials,
    `n` of `of`, with the trials that were asked (`asked`) and the cases behind it. Trials that are missing have no row:
    only with the run's `card` are they counted among the asked ones, and is `reached`, the
    rung that the arm came to, that of the whole suite. `disqualified` says which outcomes of the arm are unsafe, null
    where none is (see `disqualified`). The interval is Wilson's, over whole cases where they have several trials
    (`intervals.ends`). Without a judged trial the estimate is null and `reason` says why;
    so it is where the mark is null, as hallucination is in imported rows: it was not measured.
    """
    rows: list[dict[str, Any]] = []
    cards, unsafe = envelopes(card), said_of(trials)
    for arm, of_arm in by_arm(frame(trials), card):
        evidence = evidence_of(of_arm)
        envelope = cards.get(tuple(arm.values()))
        asked = dict(of_arm.group_by("group").len().iter_rows())
        asked.update(envelope.asked if envelope else {})
        cells = _cells(of_arm, asked)
        rungs = [group for group in in_order(cells) if group in RUNG_NAMES]
        reached = envelope.reached if envelope else climb(cells, rungs).reached
        said = unsafe.get(tuple(arm.values()))
        for group in [*in_order(asked), ALL]:
            part = of_arm if group == ALL else of_arm.filter(pl.col("group") == group)
            of = sum(asked.values()) if group == ALL else asked[group]
            for metric, column in MARKS.items():
                head = {**arm, "evidence": evidence, "group": group, "metric": metric}
                rows.append({**head, **_rate(part, column, of), "reached": reached, "disqualified": said})
    return pl.DataFrame(rows, schema=_LADDER)


def _rate(part: pl.DataFrame, column: str, asked: int) -> dict[str, Any]:
    judged = part.filter(pl.col("excluded").is_null())
    any_judged = judged.height > 0
    judged = judged.filter(pl.col(column).is_not_null())
    per_case = (
        judged.group_by("suite", "case_id")
        .agg(pl.col(column).sum().alias("n"), pl.len().alias("of"))
        .sort("suite", "case_id")
    )
    reason = None if per_case.height else "not measured" if any_judged else "no trial was judged"
    return {**share(per_case), "asked": asked, "reason": reason}


def gate(trials: pa.Table | pl.DataFrame, card: Any) -> pl.DataFrame:
    """The gate by arm and group, with a receipt for each rung that was not asked or lies above the first failure.

    One row an arm and group: the counts behind the gate, `passes` (null for a rung that was skipped), `failure` (why
    the rung fails), `receipt`, how far the arm came in all (`reached`), and which of its outcomes are unsafe (`disqualified`, null
    where none is): those shut the gate for the arm, whatever its rungs say. `card` is the run's, whose envelope knows what was asked of each arm: trials that are
    missing have no row. `hallucinated` is null where it was not measured (imported rows): there no gate is passed.
    """
    cards, unsafe = envelopes(card), said_of(trials)
    rows = []
    for arm, of_arm in by_arm(frame(trials), card):
        envelope = cards.get(tuple(arm.values()))
        cells = _cells(of_arm, envelope.asked if envelope else {})
        unmeasured = _unmeasured(of_arm)
        receipts = {_of_receipt(text): text for text in (envelope.receipts if envelope else ())}
        for group in in_order([*cells, *receipts]):
            found = cells.get(group)
            failure = found.failure() if found else None
            if group in unmeasured:
                failure = f"{group} hallucination was not measured"
            rows.append(
                {
                    **arm,
                    "group": group,
                    "asked": found.asked if found else 0,
                    "judged": found.judged if found else 0,
                    "completed": found.completed if found else 0,
                    "hallucinated": None if group in unmeasured else found.hallucinated if found else 0,
                    "passes": None if found is None else failure is None,
                    "failure": failure,
                    "receipt": receipts.get(group),
                    "reached": envelope.reached if envelope else None,
                    "disqualified": unsafe.get(tuple(arm.values())),
                }
            )
    schema = {
        **dict.fromkeys(ARM, pl.String),
        "group": pl.String,
        **dict.fromkeys(("asked", "judged", "completed", "hallucinated"), pl.Int64),
        "passes": pl.Boolean,
        "failure": pl.String,
        "receipt": pl.String,
        "reached": pl.String,
        "disqualified": pl.String,
    }
    return pl.DataFrame(rows, schema=schema)


def _of_receipt(text: str) -> str:
    """The group of a receipt such as `rung TOOL-5 skipped: gated by …`."""
    return text.removeprefix("rung ").partition(" skipped: ")[0]


def _unmeasured(of_arm: pl.DataFrame) -> set[str]:
    """The groups with judged trials of which nobody knows whether they hallucinated."""
    unknown = of_arm.filter(pl.col("excluded").is_null() & pl.col("hallucinated").is_null())
    return set(unknown["group"])


def _cells(of_arm: pl.DataFrame, asked: Mapping[str, int]) -> dict[str, Cell]:
    """The counts of each group that has rows or was asked: what `ladder.climb` walks."""
    judged = pl.col("excluded").is_null()
    counts = of_arm.group_by("group").agg(
        pl.len().alias("asked"),
        judged.sum().alias("judged"),
        (pl.col("completed") & judged).sum().alias("completed"),
        (pl.col("hallucinated") & judged).sum().alias("hallucinated"),
    )
    cells = {row["group"]: Cell(**row) for row in counts.iter_rows(named=True)}
    for group, of in asked.items():
        found = cells.get(group)
        cells[group] = replace(found, asked=of) if found else Cell(group, of, 0, 0, 0)
    return cells
