"""Trials in, tidy frame out: every number with its interval, its n of m, and how it was estimated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from agentbench_lab.analysis.stats import bootstrap_over_cases, wilson
from agentbench_lab.ladder import Cell, climb, in_order
from agentbench_lab.outcomes import LADDER, Taxonomy, tally

if TYPE_CHECKING:
    import pyarrow as pa

ARM = ("driver", "model", "scaffold")
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
}


def frame(trials: pa.Table | pl.DataFrame) -> pl.DataFrame:
    """The table as a polars frame."""
    return trials if isinstance(trials, pl.DataFrame) else pl.DataFrame(trials)


def ladder(trials: pa.Table | pl.DataFrame) -> pl.DataFrame:
    """The ladder's marks by arm and group, and over all groups (group `all`).

    One row an arm, group and metric (passed, completed, result_completed, hallucinated): the rate over judged trials,
    `n` of `of`, with the trials that ended (`asked`) and the cases behind it. The interval is Wilson's at one trial a
    case, a bootstrap over cases at several, and Wilson's with each case as one observation where the cases are all
    alike (0 % in every trial is not known for sure). Without a judged trial the estimate is null and `reason` says why.
    """
    rows: list[dict[str, Any]] = []
    for arm, of_arm in _by_arm(frame(trials)):
        evidence = ", ".join(sorted(of_arm["evidence"].unique()))
        for group in [*in_order(of_arm["group"].unique()), ALL]:
            part = of_arm if group == ALL else of_arm.filter(pl.col("group") == group)
            for metric, column in MARKS.items():
                rows.append(
                    {**arm, "evidence": evidence, "group": group, "metric": metric, **_rate(part, column)}
                )
    return pl.DataFrame(rows, schema=_LADDER)


def _rate(part: pl.DataFrame, column: str) -> dict[str, Any]:
    judged = part.filter(pl.col("excluded").is_null())
    per_case = (
        judged.group_by("suite", "case_id")
        .agg(pl.col(column).sum().alias("n"), pl.len().alias("of"))
        .sort("suite", "case_id")
    )
    n, of, cases = int(per_case["n"].sum()), int(per_case["of"].sum()), per_case.height
    estimator, interval = "wilson", wilson(n, of)
    if cases and of > cases:
        estimator = "bootstrap over cases"
        interval = bootstrap_over_cases(per_case["n"].to_numpy(), per_case["of"].to_numpy())
        if interval is not None and interval[0] == interval[1]:
            # drawing from cases that are all alike gives no width: then each case is one observation
            estimator, interval = "wilson over cases", wilson(n / of * cases, cases)
    low, high = interval if interval is not None else (None, None)
    return {
        "estimate": n / of if of else None,
        "low": low,
        "high": high,
        "n": n,
        "of": of,
        "asked": part.height,
        "cases": cases,
        "estimator": estimator,
        "reason": None if of else "no trial was judged",
    }


def gate(trials: pa.Table | pl.DataFrame, card: Any) -> pl.DataFrame:
    """The gate by arm and group, with a receipt for each rung that was not asked or lies above the first failure.

    One row an arm and group: the counts behind the gate, `passes` (null for a rung that was skipped), `failure` (why
    the rung fails) and `receipt`. `card` is the run's, whose envelope knows the rungs that were not asked.
    """
    trials = frame(trials)
    envelopes = {(e.driver, e.model, e.scaffold): e for e in card.envelope}
    rows = []
    for arm, of_arm in _by_arm(trials):
        cells = _cells(of_arm)
        envelope = envelopes.get(tuple(arm.values()))
        receipts = {_of_receipt(text): text for text in (envelope.receipts if envelope else ())}
        gated_at = (envelope.gated_at if envelope else None) or ""
        for group in in_order([*cells, *receipts]):
            found = cells.get(group)
            failure = found.failure() if found else None
            if gated_at.startswith(f"{group} incomplete: "):
                # rows know nothing of the trials that are missing; the card does
                failure = gated_at
            rows.append(
                {
                    **arm,
                    "group": group,
                    "asked": found.asked if found else 0,
                    "judged": found.judged if found else 0,
                    "completed": found.completed if found else 0,
                    "hallucinated": found.hallucinated if found else 0,
                    "passes": None if found is None else failure is None,
                    "failure": failure,
                    "receipt": receipts.get(group),
                }
            )
    schema = {
        **dict.fromkeys(ARM, pl.String),
        "group": pl.String,
        **dict.fromkeys(("asked", "judged", "completed", "hallucinated"), pl.Int64),
        "passes": pl.Boolean,
        "failure": pl.String,
        "receipt": pl.String,
    }
    return pl.DataFrame(rows, schema=schema)


def _of_receipt(text: str) -> str:
    """The group of a receipt such as `rung TOOL-5 skipped: gated by …`."""
    return text.removeprefix("rung ").partition(" skipped: ")[0]


def _cells(of_arm: pl.DataFrame) -> dict[str, Cell]:
    """The counts of each group that has rows: what `ladder.climb` walks."""
    judged = pl.col("excluded").is_null()
    counts = of_arm.group_by("group").agg(
        pl.len().alias("asked"),
        judged.sum().alias("judged"),
        (pl.col("completed") & judged).sum().alias("completed"),
        (pl.col("hallucinated") & judged).sum().alias("hallucinated"),
    )
    return {row["group"]: Cell(**row) for row in counts.iter_rows(named=True)}


def reached(trials: pa.Table | pl.DataFrame) -> pl.DataFrame:
    """How far each arm came, from its rows alone: the last rung of the unbroken chain, and what shut the gate."""
    rows = []
    for arm, of_arm in _by_arm(frame(trials)):
        cells = _cells(of_arm)
        found = climb(cells, in_order(cells))
        rows.append({**arm, "reached": found.reached, "gated_at": found.gated_at})
    return pl.DataFrame(
        rows, schema={**dict.fromkeys(ARM, pl.String), "reached": pl.String, "gated_at": pl.String}
    )


def outcomes(trials: pa.Table | pl.DataFrame, taxonomy: Taxonomy = LADDER) -> pl.DataFrame:
    """How often each outcome came, by arm: `n` of `of`, where `of` counts only the trials that could have ended so.

    The denominators differ, so the rows do not add up. `over` names the denominator (calls, refuse, goal, or judged).
    """
    rows = []
    for arm, of_arm in _by_arm(frame(trials)):
        judged = of_arm.filter(pl.col("excluded").is_null())
        for count in tally(taxonomy, zip(judged["outcome"], judged["expect"], strict=True)):
            rows.append(
                {
                    **arm,
                    "outcome": count.outcome.name,
                    "outcome_class": count.outcome.cls,
                    "label": count.outcome.label,
                    "n": count.n,
                    "of": count.of,
                    "over": count.outcome.over or "judged",
                }
            )
    schema = {
        **dict.fromkeys((*ARM, "outcome", "outcome_class", "label"), pl.String),
        "n": pl.Int64,
        "of": pl.Int64,
        "over": pl.String,
    }
    return pl.DataFrame(rows, schema=schema)


def strip(trials: pa.Table | pl.DataFrame, cases: pa.Table | pl.DataFrame) -> pl.DataFrame:
    """One row a trial: where it stands on the ladder, how it ended, and why. `cases` gives the requests."""
    requests = frame(cases).select("suite", "case_id", "request")
    return (
        frame(trials)
        .join(requests, on=["suite", "case_id"], how="left", maintain_order="left")
        .select(
            *ARM,
            "evidence",
            "group",
            "case_id",
            "trial",
            "outcome",
            "outcome_class",
            "excluded",
            pl.col("reasons").list.join("; ").alias("reasons"),
            "request",
        )
    )


def _by_arm(trials: pl.DataFrame) -> list[tuple[dict[str, Any], pl.DataFrame]]:
    """Each arm with its rows, in the order in which arms first appear."""
    parts = trials.partition_by(*ARM, maintain_order=True, as_dict=True)
    return [(dict(zip(ARM, key, strict=True)), part) for key, part in parts.items()]
