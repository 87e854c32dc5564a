"""Reliability: what becomes of a case when it is tried again and again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from agentbench_lab.analysis.metrics.arms import ARM, frame
from agentbench_lab.analysis.metrics.asked import check_resamples
from agentbench_lab.analysis.metrics.intervals import OVER_CASES, RESAMPLES, wilson_at, z_of
from agentbench_lab.stats import (
    pass_at_weights,
    pass_hat_weights,
    percentile_interval,
    resample_kinds,
    wilson_over_cases,
)

if TYPE_CHECKING:
    import pyarrow as pa

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_METRICS = ("pass_hat_k", "pass_at_k")
_DIGITS = 12  # a tie must not be a lead by rounding
_NAMED = 3  # cases that a reason names before it counts the rest

_RELIABILITY: dict[str, Any] = {
    **dict.fromkeys((*ARM, "evidence", "metric"), pl.String),
    "k": pl.Int64,
    **dict.fromkeys(("estimate", "low", "high"), pl.Float64),
    **dict.fromkeys(("n", "of"), pl.Int64),
    **dict.fromkeys(("worst", "best"), pl.Float64),
    **dict.fromkeys(("judged", "asked"), pl.Int64),
    "complete": pl.Boolean,
    "short": pl.List(pl.String),
    "common": pl.Int64,
    "estimator": pl.String,
    "reason": pl.String,
}
_SHARE: dict[str, Any] = {**dict.fromkeys(("estimate", "low", "high"), pl.Float64), "estimator": pl.String}
_CROSSINGS: dict[str, Any] = {
    **{f"{name}_{side}": pl.String for side in "ab" for name in ARM},
    "k_last": pl.Int64,
    **dict.fromkeys(("first", "first_low", "first_high", "last", "last_low", "last_high"), pl.Float64),
    "share": pl.Float64,
    "cases": pl.Int64,
    "decided": pl.Boolean,
}


def per_case(trials: pa.Table | pl.DataFrame) -> pl.DataFrame:
    """One row an arm and case: how many of its trials ended (`asked`), were judged, and were solved.

    Columns: driver, model, scaffold, evidence, suite, case_id, group, solved, judged, asked. A trial is judged when it
    is not excluded and the source knows whether it was solved. Arms in the order in which they first appear, the cases
    of an arm by suite and id.
    """
    rows = frame(trials)
    arms = rows.select(*ARM).unique(maintain_order=True).with_row_index("arm")
    judged = pl.col("excluded").is_null() & pl.col("solved").is_not_null()
    return (
        rows.group_by(*ARM, "suite", "case_id")
        .agg(
            pl.col("evidence").unique().sort().str.join(", "),
            pl.col("group").first(),
            (judged & pl.col("solved")).sum().cast(pl.Int64).alias("solved"),
            judged.sum().cast(pl.Int64).alias("judged"),
            pl.len().cast(pl.Int64).alias("asked"),
        )
        .join(arms, on=ARM, how="left", nulls_equal=True)
        .sort("arm", "suite", "case_id")
        .select(*ARM, "evidence", "suite", "case_id", "group", "solved", "judged", "asked")
    )


def histogram(trials: pa.Table | pl.DataFrame) -> pl.DataFrame:
    """How many cases were solved how often, by arm: the counts that pass^k is made of.

    Columns: driver, model, scaffold, evidence, judged (trials of a case), solved (from 0 to judged, also where no case
    is such), cases, of (those with that many judged trials), and their share: estimate, low, high and estimator, which
    is Wilson's interval of each count by itself, a case being one observation. Where cases differ in their judged
    trials, each number of trials has its own histogram; of cases without any there is no share.
    """
    cases = per_case(trials)
    counts = cases.group_by(*ARM, "judged", "solved", maintain_order=True).agg(pl.len().alias("n"))
    arms = (
        cases.group_by(*ARM, maintain_order=True)
        .agg(pl.col("evidence").str.split(", ").explode().unique().sort().str.join(", "))
        .with_row_index("arm")
    )
    found = (
        counts.select(*ARM, "judged")
        .unique()
        .with_columns(pl.int_ranges(pl.col("judged") + 1).alias("solved"))
        .explode("solved")
        .join(counts, on=[*ARM, "judged", "solved"], how="left", nulls_equal=True)
        .join(arms, on=ARM, how="left", nulls_equal=True)
        .sort("arm", "judged", "solved")
        .select(*ARM, "evidence", "judged", "solved", pl.col("n").fill_null(0).cast(pl.Int64).alias("cases"))
        .with_columns(pl.col("cases").sum().over(*ARM, "judged").alias("of"))
    )
    return found.with_columns(_of_cases(found))


def neighbours(counts: pl.DataFrame, step: int) -> pl.DataFrame:
    """The same histogram with `step` neighbouring numbers of solved trials in one row, from `solved` to `last`."""
    first = (pl.col("solved") // step) * step
    keys = [name for name in counts.columns if name not in ("solved", "cases", *_SHARE)]
    found = (
        counts.with_columns(first.alias("solved"), pl.col("solved").alias("last"))
        .group_by(*keys, "solved", maintain_order=True)
        .agg(pl.col("last").max(), pl.col("cases").sum())
    )
    return found.with_columns(_of_cases(found))


def _of_cases(counts: pl.DataFrame) -> list[pl.Series]:
    """The share that the cases of each row are of those with as many judged trials, a case being one observation."""
    rows = []
    for cases, of, judged in counts.select("cases", "of", "judged").iter_rows():
        low, high = wilson_at(cases, of, 0.95) if judged else (None, None)
        rows.append((cases / of if judged else None, low, high, OVER_CASES))
    return pl.DataFrame(rows, schema=_SHARE, orient="row").get_columns()


def reliability(trials: pa.Table | pl.DataFrame, *, level: float = 0.95) -> pl.DataFrame:
    """pass^k and pass@k by arm for every k: the chance that k trials of a case are all solved, and that any is.

    One row an arm, metric (`pass_hat_k`, then `pass_at_k`) and k up to the most trials of a case: the unbiased estimator
    of each case, averaged over the cases with k judged trials, `n` of the `of` cases asked. `short` are the ids of the
    others. A k that not every case was asked for has no estimate, and `reason` names the cases: a curve is never drawn
    over fewer and fewer cases. Where trials were excluded, the estimate is over the cases that still have k judged
    ones, and `worst` counts every excluded trial as a failure, `best` as a success, over all cases: one surviving trial
    is never 100 % without saying so. `judged` of `asked` counts trials; `complete` is whether no trial is excluded and
    every case has k. `common` counts the cases that all arms were asked: with common < of the arms were tried on other cases,
    and their numbers are no ranking.

    `low` and `high` are those of every share (`intervals.ends`): Wilson's where each case has one trial, and at several
    Wilson's over whole cases, each with its unbiased value (`stats.wilson_over_cases`), where k trials are one observation. Each
    row's interval is its own: pass^k never rises with k and pass@k never falls, but an end of their intervals may.
    Sources: Yao et al., "tau-bench" (2024), section 3; Chen et al., "Evaluating large language models trained on code"
    (2021), section 2.1; Miller, "Adding error bars to evals" (2024).
    """
    rows: list[dict[str, Any]] = []
    counted = per_case(trials)
    arms_of_case = counted.group_by("suite", "case_id").len()["len"]
    common = int((arms_of_case == counted.select(*ARM).n_unique()).sum())
    for arm, cases in _arms(counted):
        solved, judged, asked = (cases[name].to_numpy() for name in ("solved", "judged", "asked"))
        evidence = sorted({word for text in cases["evidence"].unique() for word in text.split(", ")})
        counts = {
            "of": cases.height,
            "common": common,
            "judged": int(judged.sum()),
            "asked": int(asked.sum()),
        }
        ids = _ids(cases).to_numpy()
        curves = _curves(solved, judged, level)
        bounds = [_values(side, asked, int(asked.max())) for side in (solved, solved + asked - judged)]
        for number, metric in enumerate(_METRICS):
            for k in range(1, int(asked.max()) + 1):
                short = ids[judged < k].tolist()
                row = {**arm, "evidence": ", ".join(evidence), "metric": metric, "k": k, **counts}
                row |= {"n": counts["of"] - len(short), "short": short, "estimator": f"{metric}.unbiased"}
                row["complete"] = not short and counts["judged"] == counts["asked"]
                if asked.min() < k:
                    row["reason"] = f"not asked for {_trials(k)}: {_some(ids[asked < k].tolist())}"
                else:
                    worst, best = (float(side[number, :, k - 1].mean()) for side in bounds)
                    row |= {"worst": worst, "best": best}
                    if row["n"]:
                        row |= curves[metric, k]
                    else:
                        row["reason"] = f"no case has {_trials(k, 'judged ')}"
                rows.append(row)
    return pl.DataFrame(rows, schema=_RELIABILITY)


def crossings(
    trials: pa.Table | pl.DataFrame, *, seed: int = 0, resamples: int = RESAMPLES, level: float = 0.95
) -> pl.DataFrame:
    """The pairs of arms whose order turns round between one trial and several: their pass^k curves cross.

    One row a pair: `a` is ahead at k = 1 and `b` at `k_last`, the largest k that every case the two arms share was
    asked for by both and that some such case has judged. `first` and `last` are the differences pass^k of a less b at
    the two ends, over the same `cases`: the shared ones with k_last judged trials on either side, so that the order
    does not turn because other cases are counted. The intervals are the paired percentile bootstrap's over those
    cases, `share` is the share of resamples in which a is ahead at k = 1 and behind at k_last, and `decided` whether
    both intervals leave 0 out. With one case intervals and share are null.
    """
    check_resamples(resamples)
    rows = []
    for (arm_a, of_a), (arm_b, of_b) in combinations(list(_arms(per_case(trials))), 2):
        pair = of_a.join(of_b, on=["suite", "case_id"], suffix="_b")
        if pair.is_empty():
            continue
        asked = pl.min_horizontal("asked", "asked_b").min()
        both = pl.min_horizontal("judged", "judged_b")
        k = min(int(pair.select(asked).item()), int(pair.select(both.max()).item()))
        if k < 2:
            continue
        kinds = (
            pair.filter(both >= k)
            .group_by("solved", "judged", "solved_b", "judged_b")
            .agg(pl.len().alias("cases"))
            .sort("solved", "judged", "solved_b", "judged_b")
        )
        names = ("solved", "judged", "solved_b", "judged_b", "cases")
        c, n, c_b, n_b, cases = (kinds[name].to_numpy().astype(np.int64) for name in names)
        gap = (_values(c, n, k)[0] - _values(c_b, n_b, k)[0])[:, [0, k - 1]]
        first, last = (cases @ gap / cases.sum()).round(_DIGITS).tolist()
        if not first * last < 0:
            continue
        side = 1 if first > 0 else -1
        one, other = (arm_a, arm_b) if side > 0 else (arm_b, arm_a)
        row = {f"{name}_a": one[name] for name in ARM} | {f"{name}_b": other[name] for name in ARM}
        row |= {"k_last": k, "first": side * first, "last": side * last, "cases": int(cases.sum())}
        row["decided"] = False
        if cases.sum() > 1:
            drawn = resample_kinds(cases, side * gap, seed=seed, resamples=resamples).round(_DIGITS)
            lows, highs = (ends.tolist() for ends in percentile_interval(drawn, level))
            row |= {"first_low": lows[0], "first_high": highs[0], "last_low": lows[1], "last_high": highs[1]}
            row["share"] = float(((drawn[:, 0] > 0) & (drawn[:, 1] < 0)).mean())
            row["decided"] = lows[0] > 0 > highs[1]
        rows.append(row)
    return pl.DataFrame(rows, schema=_CROSSINGS)


def _arms(cases: pl.DataFrame) -> Iterator[tuple[dict[str, Any], pl.DataFrame]]:
    """Each arm with its rows of `per_case`, in their order."""
    for key, part in cases.partition_by(*ARM, maintain_order=True, as_dict=True).items():
        yield dict(zip(ARM, key, strict=True)), part


def _trials(k: int, what: str = "") -> str:
    return f"{k} {what}trial{'s' if k > 1 else ''}"


def _some(ids: Sequence[str]) -> str:
    more = len(ids) - _NAMED
    return ", ".join(ids[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def _ids(cases: pl.DataFrame) -> pl.Series:
    """What to call each case: its id, after its suite where there are several."""
    if cases["suite"].n_unique() == 1:
        return cases["case_id"]
    return cases.select(pl.format("{}/{}", "suite", "case_id")).to_series()


def _values(solved: Ints, judged: Ints, most: int) -> Floats:
    """pass^k and pass@k of each case (or kind of case) for k from 1 to `most`: metrics x cases x k.

    0 where a case has fewer than k judged trials.
    """
    values = np.zeros((2, solved.size, most))
    for n in np.unique(judged):
        here, to = judged == n, min(int(n), most)
        values[0, here, :to] = pass_hat_weights(int(n))[solved[here], :to]
        values[1, here, :to] = pass_at_weights(int(n))[solved[here], :to]
    return values


def pass_hat_means(solved: Ints, judged: Ints) -> dict[int, float]:
    """pass^k over the cases with k judged trials, for each k that some case has; one number a case each."""
    n, c, cases = _kinds(solved, judged)
    known = n[:, None] >= np.arange(1, n.max() + 1)
    means = cases @ _values(c, n, int(n.max()))[0] / (cases @ known)
    return dict(enumerate(np.minimum(means, 1.0).tolist(), start=1))


def _kinds(solved: Ints, judged: Ints) -> tuple[Ints, Ints, Ints]:
    """The kinds of cases there are: judged trials, solved ones, and how many cases are such."""
    # one whole number a case sorts far faster than a pair
    base = int(judged.max()) + 1
    kinds, cases = np.unique(judged * base + solved, return_counts=True)
    return *np.divmod(kinds, base), cases


def _curves(solved: Ints, judged: Ints, level: float) -> dict[tuple[str, int], dict[str, Any]]:
    """Estimate, interval and estimator of each metric for k = 1, 2, ... up to the most judged trials of a case."""
    n, c, cases = _kinds(solved, judged)
    values = _values(c, n, int(n.max()))
    found: dict[tuple[str, int], dict[str, Any]] = {}
    for number, metric in enumerate(_METRICS):
        for k in range(1, int(n.max()) + 1):
            known = n >= k
            value, times = values[number, known, k - 1].clip(0, 1), cases[known]
            mean = min(float(times @ value / times.sum()), 1.0)
            how = "wilson" if n.max() == 1 else OVER_CASES
            if n.max() == 1:
                low, high = wilson_at(float(times @ value), int(times.sum()), level)
            else:
                trials = float(times @ n[known]) / k
                low, high = wilson_over_cases(
                    value, np.ones_like(value), times=times, trials=trials, z=z_of(level)
                ) or (None, None)
            found[metric, k] = {
                "estimate": mean,
                "low": low,
                "high": high,
                "estimator": f"{metric}.unbiased, {how}",
            }
    return found
