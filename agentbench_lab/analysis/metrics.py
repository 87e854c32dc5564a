"""Trials in, tidy frame out: every number with its interval, its n of m, and how it was estimated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl

from agentbench_lab.analysis.stats import bootstrap_over_cases, pass_hat_k, wilson
from agentbench_lab.ladder import RUNG_NAMES, Cell, climb, in_order
from agentbench_lab.outcomes import CLASSES, LADDER, Taxonomy, tally

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
STOPS = ("done", "refused", "budget", "timeout", "driver_error", "infrastructure_error")
"""The ways to stop, in the order in which `exits` lists them."""

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
}


def frame(trials: pa.Table | pl.DataFrame) -> pl.DataFrame:
    """The table as a polars frame."""
    return trials if isinstance(trials, pl.DataFrame) else pl.DataFrame(trials)


def ladder(trials: pa.Table | pl.DataFrame, card: Any = None) -> pl.DataFrame:
    """The ladder's marks by arm and group, and over all groups (group `all`).

    One row an arm, group and metric (passed, completed, result_completed, hallucinated): the rate over judged trials,
    `n` of `of`, with the trials that were asked (`asked`) and the cases behind it. Trials that are missing have no row:
    only with the run's `card` are they counted among the asked ones, and is `reached`, the
    rung that the arm came to, that of the whole suite. The interval is Wilson's at one trial a
    case, a bootstrap over cases at several, and Wilson's with each case as one observation where the cases are all
    alike (0 % in every trial is not known for sure). Without a judged trial the estimate is null and `reason` says why;
    so it is where the mark is null, as hallucination is in imported rows: it was not measured.
    """
    rows: list[dict[str, Any]] = []
    envelopes = _envelopes(card)
    for arm, of_arm in _by_arm(frame(trials), card):
        evidence = ", ".join(sorted(of_arm["evidence"].unique()))
        envelope = envelopes.get(tuple(arm.values()))
        asked = dict(of_arm.group_by("group").len().iter_rows())
        asked.update(envelope.asked if envelope else {})
        cells = _cells(of_arm, asked)
        rungs = [group for group in in_order(cells) if group in RUNG_NAMES]
        reached = envelope.reached if envelope else climb(cells, rungs).reached
        for group in [*in_order(asked), ALL]:
            part = of_arm if group == ALL else of_arm.filter(pl.col("group") == group)
            of = sum(asked.values()) if group == ALL else asked[group]
            for metric, column in MARKS.items():
                head = {**arm, "evidence": evidence, "group": group, "metric": metric}
                rows.append({**head, **_rate(part, column, of), "reached": reached})
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
        "asked": asked,
        "cases": cases,
        "estimator": estimator,
        "reason": None if of else "not measured" if any_judged else "no trial was judged",
    }


def gate(trials: pa.Table | pl.DataFrame, card: Any) -> pl.DataFrame:
    """The gate by arm and group, with a receipt for each rung that was not asked or lies above the first failure.

    One row an arm and group: the counts behind the gate, `passes` (null for a rung that was skipped), `failure` (why
    the rung fails), `receipt`, and how far the arm came in all (`reached`). `card` is the run's, whose envelope knows what was asked of each arm: trials that are
    missing have no row. `hallucinated` is null where it was not measured (imported rows): there no gate is passed.
    """
    envelopes = _envelopes(card)
    rows = []
    for arm, of_arm in _by_arm(frame(trials), card):
        envelope = envelopes.get(tuple(arm.values()))
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


def _envelopes(card: Any) -> dict[tuple[str | None, ...], Any]:
    return {} if card is None else {(e.driver, e.model, e.scaffold): e for e in card.envelope}


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


def exits(trials: pa.Table | pl.DataFrame) -> pl.DataFrame:
    """How trials stopped, by arm: a histogram of exit status against what it was judged to be.

    One row an arm, `stop` (done, refused, budget, timeout, ..., null where the source does not say) and `outcome_class`
    (null for excluded trials) that occurs: `n` of the `of` trials of the arm that ended. The `n` of an arm add up.
    """
    rows = []
    classes = [*CLASSES, None]
    stops = [*STOPS, None]

    def place(key: tuple[Any, ...]) -> tuple[int, str, int]:
        stop, cls = key
        return stops.index(stop) if stop in stops else len(stops), stop or "", classes.index(cls)

    for arm, of_arm in _by_arm(frame(trials)):
        counts = {
            (row["stop"], row["outcome_class"]): row["n"]
            for row in of_arm.group_by("stop", "outcome_class").agg(pl.len().alias("n")).iter_rows(named=True)
        }
        rows += [
            {**arm, "stop": key[0], "outcome_class": key[1], "n": counts[key], "of": of_arm.height}
            for key in sorted(counts, key=place)
        ]
    schema = {
        **dict.fromkeys((*ARM, "stop", "outcome_class"), pl.String),
        **dict.fromkeys(("n", "of"), pl.Int64),
    }
    return pl.DataFrame(rows, schema=schema)


def strip(trials: pa.Table | pl.DataFrame, cases: pa.Table | pl.DataFrame) -> pl.DataFrame:
    """One row a trial: where it stands on the ladder, how it ended, and why. `cases` gives the requests.

    `reasons` are all failed checks in one text, `first_reason` is the first of them, which named the outcome.
    """
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
            pl.col("reasons").list.first().alias("first_reason"),
            "request",
        )
    )


def _by_arm(trials: pl.DataFrame, card: Any = None) -> list[tuple[dict[str, Any], pl.DataFrame]]:
    """Each arm with its rows, in the order in which arms first appear; with a card also the arms without a row."""
    parts = dict(trials.partition_by(*ARM, maintain_order=True, as_dict=True))
    for arm in _envelopes(card):
        parts.setdefault(arm, trials.clear())
    return [(dict(zip(ARM, key, strict=True)), part) for key, part in parts.items()]


TROUBLED = ("driver_error", "timeout", "budget", "infrastructure_error")
"""Stops after which a driver has not said its own last word."""


def troubles(trials: pa.Table | pl.DataFrame) -> pl.DataFrame:
    """What stopped trials before their driver was done: driver, stop, note (the reason) and n, the most frequent first."""
    return (
        frame(trials)
        .filter(pl.col("stop").is_in(TROUBLED))
        .group_by("driver", "stop", "note")
        .agg(pl.len().cast(pl.Int64).alias("n"))
        .sort(pl.col("n") * -1, "driver", "stop", "note")
    )


def reliability(trials: pa.Table | pl.DataFrame) -> pl.DataFrame:
    """pass^k by arm for every k up to the trials of a case: the chance that k trials of a case are all solved.

    One row an arm and k: the mean over the cases with k judged trials (`estimate`; null with a `reason` when there is
    none), `over_cases` of `of_cases`, the trials judged of those that ended, and the bounds. `worst` counts every
    excluded trial as a failure and `best` as a success, over all cases: one surviving trial is never 100 % without
    saying so. `complete` is whether no trial is excluded and every case has k trials. Estimator: `pass_hat_k`.
    """
    rows = []
    for arm, of_arm in _by_arm(frame(trials)):
        judged = pl.col("excluded").is_null()
        cases = (
            of_arm.group_by("suite", "case_id")
            .agg(
                pl.len().alias("asked"),
                judged.sum().alias("judged"),
                (pl.col("solved").fill_null(False) & judged).sum().alias("solved"),
            )
            .sort("suite", "case_id")
            .rows(named=True)
        )
        for k in range(1, max(case["asked"] for case in cases) + 1):
            found = [pass_hat_k(case["solved"], case["judged"], k) for case in cases]
            known = [value for value in found if value is not None]
            whole = [case for case in cases if case["asked"] >= k]
            spared = [case["solved"] + case["asked"] - case["judged"] for case in whole]
            bounds = [
                [
                    pass_hat_k(solved, case["asked"], k) or 0.0
                    for solved, case in zip(side, whole, strict=True)
                ]
                for side in ([case["solved"] for case in whole], spared)
            ]
            rows.append(
                {
                    **arm,
                    "k": k,
                    "estimate": sum(known) / len(known) if known else None,
                    "worst": sum(bounds[0]) / len(whole) if whole else None,
                    "best": sum(bounds[1]) / len(whole) if whole else None,
                    "over_cases": len(known),
                    "of_cases": len(cases),
                    "judged": sum(case["judged"] for case in cases),
                    "asked": of_arm.height,
                    "complete": len(known) == len(cases) and all(c["judged"] == c["asked"] for c in cases),
                    "estimator": "pass_hat_k",
                    "reason": None if known else f"no case has {k} judged trial{'s' if k > 1 else ''}",
                }
            )
    schema = {
        **dict.fromkeys(ARM, pl.String),
        "k": pl.Int64,
        **dict.fromkeys(("estimate", "worst", "best"), pl.Float64),
        **dict.fromkeys(("over_cases", "of_cases", "judged", "asked"), pl.Int64),
        "complete": pl.Boolean,
        "estimator": pl.String,
        "reason": pl.String,
    }
    return pl.DataFrame(rows, schema=schema)
