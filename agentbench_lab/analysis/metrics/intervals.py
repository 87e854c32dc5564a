"""The interval of a share of trials, by the rule that every metric follows."""

from __future__ import annotations

from typing import Any

import polars as pl

from agentbench_lab.analysis.stats import bootstrap_over_cases, wilson


def share(per_case: pl.DataFrame) -> dict[str, Any]:
    """`n` of `of` over all cases, from a frame with both by case: estimate, low, high, n, of, cases, estimator.

    Wilson's interval at one trial a case, a bootstrap over cases at several, and Wilson's with each case as one
    observation where the cases are all alike (0 % in every trial is not known for sure). Without a trial the
    estimate and its ends are null.
    """
    n, of, cases = int(per_case["n"].sum()), int(per_case["of"].sum()), per_case.height
    estimator, interval = "wilson", wilson(n, of)
    if cases and of > cases:
        alike = n in (0, of)
        estimator = "bootstrap over cases"
        interval = (
            None if alike else bootstrap_over_cases(per_case["n"].to_numpy(), per_case["of"].to_numpy())
        )
        if interval is None or interval[0] == interval[1]:
            # drawing from cases that are all alike gives no width: then each case is one observation
            estimator, interval = "wilson over cases", wilson(n / of * cases, cases)
    low, high = interval if interval is not None else (None, None)
    return {
        "estimate": n / of if of else None,
        "low": low,
        "high": high,
        "n": n,
        "of": of,
        "cases": cases,
        "estimator": estimator,
    }
