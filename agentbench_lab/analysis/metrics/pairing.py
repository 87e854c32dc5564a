"""Arms and their baseline, case by case: what an ablation counts."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from agentbench_lab.analysis.metrics.arms import ARM, frame, full_name
from agentbench_lab.analysis.metrics.spending import only_a_floor
from agentbench_lab.errors import LabError, counted, did_you_mean
from agentbench_lab.ladder import in_order

if TYPE_CHECKING:
    import pyarrow as pa

OVERS = ("all", "width", "group")
"""What a row of `ablation` may be over: all cases, those of one width, those of one group."""
TOKENS = ("tokens_fresh_input", "tokens_cache_read", "tokens_cache_write", "tokens_output")


def count_cases(table: pl.DataFrame) -> tuple[pl.DataFrame, str | None]:
    """A row an arm and case (solved, judged, asked, unsafe, attempts, cost in whole units, cost_n, floors), and what cost is
    counted in. Of the `cost_n` trials that say it, `floors` say a lower bound (`spending.only_a_floor`)."""
    judged = pl.col("excluded").is_null() & pl.col("solved").is_not_null()
    tokens = pl.sum_horizontal(*TOKENS, ignore_nulls=False)
    floor = only_a_floor(table.columns)
    unsafe = pl.col("outcome_class") == "unsafe" if "outcome_class" in table.columns else pl.lit(False)
    cases = table.group_by(*ARM, "suite", "case_id").agg(
        pl.col("evidence").unique().sort().str.join(", "),
        pl.col("width").max().cast(pl.Int64)
        if "width" in table.columns
        else pl.lit(1, pl.Int64).alias("width"),
        pl.col("group").first() if "group" in table.columns else pl.lit("", pl.String).alias("group"),
        (judged & pl.col("solved")).sum().cast(pl.Int64).alias("solved"),
        judged.sum().cast(pl.Int64).alias("judged"),
        pl.len().cast(pl.Int64).alias("asked"),
        (judged & unsafe).sum().cast(pl.Int64).alias("unsafe"),
        (pl.col("attempts") if "attempts" in table.columns else pl.lit(1, pl.Int64))
        .filter(judged)
        .sum()
        .cast(pl.Int64)
        .alias("attempts"),
        *(
            each
            for name, column in (("usd", pl.col("cost_micros")), ("tokens", tokens))
            for each in (
                column.filter(judged).sum().cast(pl.Int64).alias(name),
                column.filter(judged).count().cast(pl.Int64).alias(f"{name}_n"),
                (judged & floor & column.is_not_null()).sum().cast(pl.Int64).alias(f"{name}_floors"),
            )
        ),
    )
    arms = table.select(*ARM).unique(maintain_order=True).with_row_index("arm")
    cases = cases.join(arms, on=ARM, how="left", nulls_equal=True).sort("arm", "suite", "case_id")
    whole = cases.group_by(*ARM).agg(pl.col("judged", "usd_n", "tokens_n").sum()).filter(pl.col("judged") > 0)
    knows = {unit: int((whole[f"{unit}_n"] == whole["judged"]).sum()) for unit in ("usd", "tokens")}
    some = {unit: int(whole[f"{unit}_n"].sum()) for unit in knows}
    unit = max(knows, key=lambda each: (knows[each], some[each])) if any(some.values()) else None
    used = unit or "tokens"
    of_unit = {"cost": used, "cost_n": f"{used}_n", "floors": f"{used}_floors"}
    return cases.with_columns(**{name: pl.col(column) for name, column in of_unit.items()}), unit


def default_baseline(trials: pa.Table | pl.DataFrame) -> str | None:
    """The scaffold that the others are set against where none is named: `once` where a driver ran under it and another,
    else the first of a driver that ran under several; None where no driver did."""
    by_driver: dict[tuple[Any, ...], list[str]] = {}
    for *driver, scaffold in frame(trials).select(ARM).unique(maintain_order=True).iter_rows():
        by_driver.setdefault(tuple(driver), []).append(scaffold)
    several = [scaffold for scaffolds in by_driver.values() if len(scaffolds) > 1 for scaffold in scaffolds]
    return "once" if "once" in several else several[0] if several else None


def baselines(counted: pl.DataFrame, baseline: str) -> dict[tuple[Any, ...], tuple[Any, ...] | None]:
    """The arm that each arm is set against, itself where it is a baseline; None where there is none.

    An empty `baseline` is the default one; that of one arm is itself."""
    arms = list(counted.select(ARM).unique(maintain_order=True).iter_rows())
    baseline = baseline or default_baseline(counted) or (arms[0][2] if len(arms) == 1 else "")
    if not baseline:
        names = [full_name(*arm) for arm in arms]
        raise LabError(
            f"no driver ran under several scaffolds, so none is the one to beat: name one as baseline "
            f"(in a report -p baseline {shlex.quote(names[0])}); there is {', '.join(names)}"
        )
    if any(scaffold == baseline for _, _, scaffold in arms):
        return {
            (driver, model, scaffold): (driver, model, baseline)
            if (driver, model, baseline) in arms
            else None
            for driver, model, scaffold in arms
        }
    wanted = " + ".join(part.strip() for part in baseline.split("+"))
    named = {full_name(*arm): arm for arm in arms} | {" + ".join(p for p in arm if p): arm for arm in arms}
    if wanted in named:
        return dict.fromkeys(arms, named[wanted])
    known = [
        *dict.fromkeys(scaffold for _, _, scaffold in arms),
        *dict.fromkeys(full_name(*arm) for arm in arms),
    ]
    raise LabError(
        f"no arm has the scaffold {baseline!r}, and none is called so{did_you_mean(baseline, known)}"
    )


def parted(counted: pl.DataFrame, by: Sequence[str]) -> Iterator[tuple[str, Any, pl.DataFrame]]:
    """All cases, then the cases of each width and each group, as far as they are asked for."""
    yield "all", None, counted
    for over in OVERS[1:]:
        if over in by:
            values = counted[over].unique().to_list()
            for value in sorted(values) if over == "width" else in_order(values):
                yield over, value, counted.filter(pl.col(over) == value)


def of_arm(counted: pl.DataFrame, arm: Sequence[Any]) -> pl.DataFrame:
    """The rows of one arm; a null model is a model of its own."""
    return counted.filter(
        *(pl.col(name).eq_missing(pl.lit(value, pl.String)) for name, value in zip(ARM, arm, strict=True))
    )


def paired(
    counted: pl.DataFrame, arm: Sequence[Any], base: Sequence[Any], width: int | None = None
) -> tuple[pl.DataFrame, list[str]]:
    """The paired cases of two arms, in the order of their names, with `difference`; and the cases without a counterpart."""
    part = counted if width is None else counted.filter(pl.col("width") == width)
    keys = ["suite", "case_id"]
    numbers = ["solved", "judged", "asked", "unsafe", "cost", "cost_n", "floors"]
    mine, other = (of_arm(part, each).select(*keys, "width", *numbers) for each in (arm, base))
    both = mine.join(other.drop("width"), on=keys, how="full", coalesce=True, suffix="_b").sort(keys)
    several = part["suite"].n_unique() > 1
    judged = (pl.col("judged") > 0) & (pl.col("judged_b") > 0)
    pairs = both.filter(judged).with_columns(
        # one division, so that equal rates differ by exactly 0
        (
            (pl.col("solved") * pl.col("judged_b") - pl.col("solved_b") * pl.col("judged"))
            / (pl.col("judged") * pl.col("judged_b"))
        ).alias("difference")
    )
    unpaired = [
        f"{row['suite'] + '/' if several else ''}{row['case_id']} ({_why(row)})"
        for row in both.filter(~judged.fill_null(False)).iter_rows(named=True)
    ]
    return pairs, unpaired


def _why(row: dict[str, Any]) -> str:
    """Why a case is in no difference: whose judged trials are missing."""
    found = []
    for name, whose in (("judged", "arm"), ("judged_b", "baseline")):
        asked = row["asked" if name == "judged" else "asked_b"]
        if asked is None:
            found.append(f"not asked of the {whose}")
        elif not row[name]:
            found.append(f"all {counted(asked, 'trial')} of the {whose} excluded")
    return ", ".join(found)


def arm_of(row: dict[str, Any]) -> tuple[Any, ...]:
    """Driver, model and scaffold of a row."""
    return tuple(row[name] for name in ARM)
