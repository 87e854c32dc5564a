"""Durability: what a solved trial costs with every finished step on disk, and what without, at each width."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from agentbench_lab.analysis.metrics.arms import ARM
from agentbench_lab.analysis.metrics.pairing import count_cases, of_arm, paired
from agentbench_lab.analysis.metrics.ratios import (
    RESAMPLES,
    Floats,
    all_ratios,
    resamples_for,
    said,
)
from agentbench_lab.analysis.metrics.spending import MICROS, unknown_said, with_costs
from agentbench_lab.stats import percentile_interval, resample_sums, student_t

if TYPE_CHECKING:
    import pyarrow as pa

    from agentbench_lab.analysis.prices import Prices

_DURABLE = "durable:"
_SIDES = ("", "bare_")
_F = pl.Float64
_SCHEMA: dict[str, Any] = {
    **dict.fromkeys((*ARM, "evidence", "bare", "over"), pl.String),
    **dict.fromkeys(("width", "cases"), pl.Int64),
    "cost_unit": pl.String,
    **{
        f"{side}{name}": kind
        for side in _SIDES
        for name, kind in (
            *dict.fromkeys(("per_solved", "low", "high", "mean_width"), _F).items(),
            *dict.fromkeys(("n", "of", "floors"), pl.Int64).items(),
        )
    },
    **dict.fromkeys(("ratio", "ratio_low", "ratio_high"), _F),
    **dict.fromkeys(("verdict", "estimator", "reason"), pl.String),
}


def durability(
    trials: pa.Table | pl.DataFrame,
    prices: Prices | None = None,
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
    level: float = 0.95,
) -> pl.DataFrame:
    """Each arm of a scaffold `durable:X` beside that of X, the `bare` one, over the cases that both have a judged trial of.

    One row over `all` these cases, one for each `width`, and with several widths one in which they weigh `alike`. `per_solved`
    is what the judged trials cost by those solved, `n` solved of `of`; the columns of the bare arm begin with `bare_`. Cost
    is dollars or tokens, as in `ablation` (`cost_unit`); null where it is not known of every judged trial or where nothing was
    solved, and `reason` says why. Of `floors` trials only a lower bound is known, and then `per_solved` is one.

    Over all widths together the two may be of different work: who crashes early on wide tasks pays little for them and solves
    the narrow ones, which are cheap. `mean_width` is that of the solved trials. The row `alike` compares like with like: the sum
    over widths w of m_w c_w / sum of m_w, with m_w the cases of a width and c_w an arm's cost per solved trial there, so that both
    arms are priced for the same tasks (direct standardisation; Fleiss, Levin and Paik, "Statistical Methods for Rates and
    Proportions", 2003, chapter 19). It is null where an arm solves nothing of some width. Intervals resample whole cases,
    width by width in the row `alike`.

    `ratio` is `per_solved` by that of the bare arm, null where that is 0. Its interval is the wider, at either end, of two: the
    bootstrap, which resamples both arms' trials of a case together, and Student's by the delta method, since a bootstrap over few
    cases is too narrow. `verdict` follows from it: `less` below 1, `more` above, `the same` where both ends are 1, else `undecided`.
    Over a single case, or with a lower bound on either side, there is no interval and no verdict.
    """
    table = with_costs(trials, prices)
    counted, unit = count_cases(table)
    arms = list(counted.select(ARM).unique(maintain_order=True).iter_rows())
    rows: list[dict[str, Any]] = []
    draws = {"seed": seed, "resamples": resamples, "level": level}
    for driver, model, scaffold in arms:
        bare = (driver, model, scaffold.removeprefix(_DURABLE))
        if not scaffold.startswith(_DURABLE) or bare not in arms:
            continue
        pairs, _ = paired(counted, (driver, model, scaffold), bare)
        if pairs.is_empty():
            continue
        both = pl.concat([of_arm(counted, (driver, model, scaffold)), of_arm(counted, bare)])
        head = {
            "driver": driver, "model": model, "scaffold": scaffold, "bare": bare[2], "cost_unit": unit,
            "evidence": ", ".join(sorted({word for text in both["evidence"].unique() for word in text.split(", ")})),
        }  # fmt: skip
        parts = [pairs.filter(pl.col("width") == width) for width in sorted(pairs["width"].unique())]
        each = [_row(part, unit, draws) | {"over": "width", "width": part["width"][0]} for part in parts]
        found = [_row(pairs, unit, draws) | {"over": "all"}, *each]
        if len(parts) > 1:
            found.append(_alike(parts, each, unit, draws) | {"over": "alike"})
        rows += [head | row for row in found]
    return pl.DataFrame(rows, schema=_SCHEMA)


def _row(pairs: pl.DataFrame, unit: str | None, draws: dict[str, Any]) -> dict[str, Any]:
    """Both arms over these paired cases."""
    row = _counts(pairs)
    ends = ["", "_b"]
    found = all_ratios(
        {"per_solved": [(pairs[f"cost{end}"], pairs[f"solved{end}"]) for end in ends]}, **draws
    )
    reasons = []
    for side, end, ratio in zip(_SIDES, ends, found["per_solved"], strict=True):
        why = _why_not(pairs, end, unit)
        if why is None:
            row |= _money(side, (ratio.estimate, ratio.low, ratio.high), unit, row[f"{side}floors"])
        reasons.append(why and f"{'bare' if side else 'durable'}: {why}")
    alone = np.ones(1)
    row |= _compared([pairs], alone, row, _drawn([pairs], alone, draws), draws["level"])
    return row | {"estimator": found["per_solved"][0].estimator, "reason": said(*reasons)}


def _alike(
    parts: list[pl.DataFrame], each: list[dict[str, Any]], unit: str | None, draws: dict[str, Any]
) -> dict[str, Any]:
    """Both arms with the widths weighing as many cases as they have."""
    row = _counts(pl.concat(parts))
    weights = np.array([part.height for part in parts], dtype=np.float64)
    weights /= weights.sum()
    drawn = _drawn(parts, weights, draws)
    reasons = []
    for at, (side, end) in enumerate(zip(_SIDES, ("", "_b"), strict=True)):
        lacking = [str(one["width"]) for one in each if one.get(f"{side}per_solved") is None]
        if lacking:
            reasons.append(
                f"{'bare' if side else 'durable'}: no cost per solved trial at width {', '.join(lacking)}"
            )
            continue
        costs = [float(part[f"cost{end}"].sum()) / float(part[f"solved{end}"].sum()) for part in parts]
        low, high = (None, None) if drawn is None else _ends(drawn[at], draws["level"])
        row |= _money(side, (float(weights @ costs), low, high), unit, row[f"{side}floors"])
    row |= _compared(parts, weights, row, drawn, draws["level"])
    return row | {
        "estimator": "mean over widths by their cases, bootstrap over cases",
        "reason": said(*reasons),
    }


def _drawn(parts: list[pl.DataFrame], weights: Floats, draws: dict[str, Any]) -> tuple[Floats, Floats] | None:
    """What a solved trial of the durable and of the bare arm costs in each resample, the same ones for both; infinite where
    nothing is solved. None where a part has a single case."""
    if any(part.height < 2 for part in parts):
        return None
    resamples = resamples_for(sum(part.height for part in parts), draws["resamples"])
    mine = bare = np.zeros(1)
    for at, (part, weight) in enumerate(zip(parts, weights, strict=True)):
        columns = part.select("cost", "solved", "cost_b", "solved_b").to_numpy()
        cost, solved, cost_b, solved_b = resample_sums(
            columns, seed=draws["seed"] + at, resamples=resamples
        ).T
        with np.errstate(divide="ignore", invalid="ignore"):
            mine = mine + weight * np.where(solved > 0, cost / solved, np.inf)
            bare = bare + weight * np.where(solved_b > 0, cost_b / solved_b, np.inf)
    return mine, bare


def _compared(
    parts: list[pl.DataFrame],
    weights: Floats,
    row: dict[str, Any],
    drawn: tuple[Floats, Floats] | None,
    level: float,
) -> dict[str, Any]:
    """The durable arm's cost by the bare one's, and what its interval comes to."""
    mine, bare = row.get("per_solved"), row.get("bare_per_solved")
    if mine is None or bare is None or row["floors"] or row["bare_floors"]:
        return {}
    if not bare:
        return {"verdict": "more" if mine else "the same"}
    found: dict[str, Any] = {"ratio": mine / bare}
    if drawn is None:
        return found
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = drawn[0] / drawn[1]
    # where neither arm solves anything of a resample, it says nothing for either side
    low, _ = _ends(np.where(np.isnan(ratios), 0.0, ratios), level)
    _, high = _ends(np.where(np.isnan(ratios), np.inf, ratios), level)
    reach = math.exp(_half(parts, weights, level)) if mine else 1.0
    low, high = min(low, mine / bare / reach), max(high, mine / bare * reach)
    found |= {"ratio_low": low, "ratio_high": high if np.isfinite(high) else None}
    if low == high == 1:
        return found | {"verdict": "the same"}
    return found | {"verdict": "less" if high < 1 else "more" if low > 1 else "undecided"}


def _half(parts: list[pl.DataFrame], weights: Floats, level: float) -> float:
    """Half the width of Student's interval of the logarithm of the ratio, by the delta method, each width's cases by
    themselves (`stats.log_ratio_over_cases` does the same for a plain ratio of sums)."""
    sides = [
        np.array([float(part[f"cost{end}"].sum()) / float(part[f"solved{end}"].sum()) for part in parts])
        for end in ("", "_b")
    ]
    variance = 0.0
    for at, part in enumerate(parts):
        apart = np.zeros(part.height)
        for sign, end, costs in zip((1, -1), ("", "_b"), sides, strict=True):
            cost, solved = (part[f"{name}{end}"].to_numpy().astype(np.float64) for name in ("cost", "solved"))
            if cost.sum():
                share = weights[at] * costs[at] / float(weights @ costs)
                apart += sign * share * (cost / cost.sum() - solved / solved.sum())
        variance += part.height / (part.height - 1) * float(apart @ apart)
    freedom = sum(part.height - 1 for part in parts)
    return student_t(0.5 + level / 2, freedom) * math.sqrt(variance)


def _ends(values: Floats, level: float) -> tuple[float, float]:
    low, high = percentile_interval(values[:, None], level)
    return float(low[0]), float(high[0])


def _counts(pairs: pl.DataFrame) -> dict[str, Any]:
    row: dict[str, Any] = {"cases": pairs.height}
    for side, end in zip(_SIDES, ("", "_b"), strict=True):
        solved = pairs[f"solved{end}"]
        row |= {
            f"{side}n": int(solved.sum()),
            f"{side}of": int(pairs[f"judged{end}"].sum()),
            f"{side}floors": int(pairs[f"floors{end}"].sum()),
            f"{side}mean_width": int((pairs["width"] * solved).sum()) / int(solved.sum())
            if solved.sum()
            else None,
        }
    return row


def _why_not(pairs: pl.DataFrame, end: str, unit: str | None) -> str | None:
    """Why there is no cost per solved trial."""
    unknown = unknown_said(unit, int(pairs[f"cost_n{end}"].sum()), int(pairs[f"judged{end}"].sum()))
    return unknown or (None if pairs[f"solved{end}"].sum() else "nothing is solved")


def _money(side: str, ends: tuple[float | None, ...], unit: str | None, floors: int) -> dict[str, Any]:
    """The estimate and its ends in the unit; a lower bound has no interval, nor have cases that are all
    alike, and an end without bound is null."""
    scale = MICROS if unit == "usd" else 1
    names = ("per_solved", "low", "high")
    kept = ends if not floors and ends[1] != ends[2] else (ends[0], None, None)
    return {
        f"{side}{name}": None if value is None or not np.isfinite(value) else value / scale
        for name, value in zip(names, kept, strict=True)
    }
