"""Reliability: what becomes of a case when it is tried again and again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from agentbench_lab.analysis.metrics.arms import ARM, by_arm, frame
from agentbench_lab.analysis.stats import pass_hat_k

if TYPE_CHECKING:
    import pyarrow as pa


def reliability(trials: pa.Table | pl.DataFrame) -> pl.DataFrame:
    """pass^k by arm for every k up to the trials of a case: the chance that k trials of a case are all solved.

    One row an arm and k: the mean over the cases with k judged trials (`estimate`; null with a `reason` when there is
    none), `over_cases` of `of_cases`, the trials judged of those that ended, and the bounds. `worst` counts every
    excluded trial as a failure and `best` as a success, over all cases: one surviving trial is never 100 % without
    saying so. `complete` is whether no trial is excluded and every case has k trials. Estimator: `pass_hat_k`.
    """
    rows = []
    for arm, of_arm in by_arm(frame(trials)):
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
