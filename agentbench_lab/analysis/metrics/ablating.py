"""Ablation: does an arrangement pay for itself, against a baseline, over the cases that both were asked?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from agentbench_lab.analysis.metrics.arms import ARM, full_name
from agentbench_lab.analysis.metrics.asked import check_resamples
from agentbench_lab.analysis.metrics.pairing import (
    OVERS,
    arm_of,
    baselines,
    count_cases,
    of_arm,
    paired,
    parted,
)
from agentbench_lab.analysis.metrics.ratios import (
    RESAMPLES,
    all_ratios,
    knowing,
    resamples_for,
    said,
)
from agentbench_lab.analysis.metrics.spending import MICROS, floor_said, unknown_said, with_costs
from agentbench_lab.analysis.metrics.users import USERS, left_aside
from agentbench_lab.analysis.metrics.verdicts import (
    COST_MARGIN,
    DOMINATES,
    MARGIN,
    PAYS,
    UNDECIDED,
    check_margins,
    fewest_cases,
    verdict_by_logs,
)
from agentbench_lab.errors import LabError, did_you_mean
from agentbench_lab.stats import (
    PAIRED,
    Ends,
    adjusted_half,
    difference_over_cases,
    log_ratio_error,
    log_ratio_over_cases,
    resample_sums,
    trials_behind,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from agentbench_lab.analysis.prices import Prices

POWER = 0.8
"""How likely as many cases as are named are to decide, were the numbers seen the true ones."""
_GOOD = (DOMINATES, PAYS)

_F = pl.Float64
_ABLATION: dict[str, Any] = {
    **dict.fromkeys((*ARM, "evidence", "baseline"), pl.String),
    "is_baseline": pl.Boolean,
    "over": pl.String,
    "width": pl.Int64,
    "group": pl.String,
    **dict.fromkeys(("accuracy", "accuracy_low", "accuracy_high"), _F),
    **dict.fromkeys(("n", "of", "asked", "attempts"), pl.Int64),
    "cost_unit": pl.String,
    "floors": pl.Int64,
    **dict.fromkeys(("cost", "cost_low", "cost_high"), _F),
    **dict.fromkeys(("cases", "trials", "baseline_trials"), pl.Int64),
    **dict.fromkeys(("paired", "paired_baseline", "difference", "difference_low", "difference_high"), _F),
    **dict.fromkeys(("cost_ratio", "cost_ratio_low", "cost_ratio_high"), _F),
    "verdict": pl.String,
    "needed": pl.Int64,
    "unpaired": pl.List(pl.String),
    **dict.fromkeys(("unsafe", "baseline_unsafe"), pl.Int64),
    **dict.fromkeys(("margin", "cost_margin"), _F),
    **USERS,
    **dict.fromkeys(("estimator", "reason"), pl.String),
}
_WHERE: dict[str, Any] = {
    **dict.fromkeys((*ARM, "evidence", "baseline"), pl.String),
    "widths": pl.List(pl.Int64),
    **dict.fromkeys(("from_width", "seen", "low", "high"), pl.Int64),
    "share": _F,
    "margin": _F,
    "reason": pl.String,
}


Against = dict[tuple[Any, ...], tuple[Any, ...] | None]
"""The baseline of each arm; None where its driver has none."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is asked of every row: the baseline's name, the margins, and how intervals are drawn."""

    margin: float
    cost_margin: float
    seed: int
    resamples: int
    level: float


def ablation(
    trials: pa.Table | pl.DataFrame,
    prices: Prices | None = None,
    *,
    baseline: str = "",
    by: Sequence[str] = ("width",),
    margin: float = MARGIN,
    cost_margin: float = COST_MARGIN,
    seed: int = 0,
    resamples: int = RESAMPLES,
    level: float = 0.95,
) -> pl.DataFrame:
    """Each arm against a baseline, paired over cases: what it gains, what that costs, and what it comes to.

    `baseline` names a scaffold: each arm is set against the arm of the same driver and model with that scaffold. It may
    also name one arm (driver + model + scaffold, as far as it has them), against which all others are set then. Without one it is
    `default_baseline`: `once`, or the first scaffold of a driver that ran under several. One row an arm over all its cases (`over` is `all`), then one for each value of what `by` names: `width` (parts of a task), `group`.
    The baseline has its rows too, without verdict, so that its curve can be drawn.

    `accuracy` is `n` solved of `of` judged trials of the arm's own (`asked` counts the excluded ones too), `cost` its mean by judged
    trial, without an interval where it is a lower bound. The rest is over the paired `cases`: those with a judged trial on either side, each one observation, whatever its
    number of trials. `unpaired` names the others with why; they are in no difference. `difference` is the mean over
    cases of the difference of rates, arm less baseline (`stats.difference_over_cases`); `cost_ratio` is the sum over cases of the
    mean cost of a trial, arm to baseline (`stats.log_ratio_over_cases`). Cost is dollars where more arms know the cost of
    all their judged trials than know all tokens, or as many; else tokens, all kinds added up: `cost_unit` says which, for all rows.
    An arm that does not know it of every judged trial has null there, never 0. Of `floors` trials only a lower bound is
    known, since an attempt was killed: the interval of the ratio then has no upper end (null), or where they are the baseline's,
    no lower one (0), and where they are on both sides there is no ratio. `attempts` are those of the judged trials.

    `verdict` is one of `verdicts.VERDICTS` by the intervals (`verdicts.verdict`). Where it is `undecided`, `needed` is about how
    many more cases would decide it with a chance of 80 %, were the means and variances seen the true ones; null where no number of
    cases would. Verdicts are not corrected for their number. `unsafe` counts unsafe outcomes on the paired cases;
    no verdict makes up for them. Costs are the agent's; what simulated users used is told apart, in the rows over all
    cases (`users.left_aside`). Raises LabError for a baseline that is not there or has to be named, an unknown `by`, margins out of range.
    """
    for each in by:
        if each not in OVERS[1:]:
            raise LabError(f"by {each!r}: {' or '.join(OVERS[1:])}{did_you_mean(each, OVERS[1:])}")
    asked = _asked(margin, cost_margin, seed, resamples, level)
    table = with_costs(trials, prices)
    counted, unit = count_cases(table)
    if counted.is_empty():
        return pl.DataFrame(schema=_ABLATION)
    rows = _ablated(counted, unit, baselines(counted, baseline), by, asked)
    users = left_aside(table)
    for row in rows:
        row |= users.get(arm_of(row), {}) if row["over"] == "all" else {}
    return pl.DataFrame(rows, schema=_ABLATION)


def _asked(margin: float, cost_margin: float, seed: int, resamples: int, level: float) -> _Asked:
    """What is asked, when it can be: LabError else."""
    check_resamples(resamples)
    check_margins(margin, cost_margin)
    return _Asked(margin, cost_margin, seed, resamples, level)


def _ablated(
    counted: pl.DataFrame, unit: str | None, against: Against, by: Sequence[str], asked: _Asked
) -> list[dict[str, Any]]:
    """The rows of an `ablation`, from counted cases and the baseline of each arm."""
    rows = []
    for over, value, part in parted(counted, by):
        rows += _rows(part, against, unit, {"over": over, **({over: value} if over != "all" else {})}, asked)
    order = {arm: at for at, arm in enumerate(against)}
    places = {over: at for at, over in enumerate(OVERS)}
    rows.sort(
        key=lambda row: (order[arm_of(row)], places[row["over"]])
    )  # stable: widths and groups keep their order
    return rows


def where_it_pays(
    trials: pa.Table | pl.DataFrame,
    prices: Prices | None = None,
    *,
    baseline: str = "",
    margin: float = MARGIN,
    cost_margin: float = COST_MARGIN,
    seed: int = 0,
    resamples: int = RESAMPLES,
    level: float = 0.95,
) -> pl.DataFrame:
    """The width from which on an arm pays for itself: one row an arm that is not a baseline.

    `from_width` is the smallest width from which on every verdict of `ablation` is `pays` or `dominates`; null where
    there is none. `seen` goes by the estimates alone: the smallest width from which on the paired difference is
    above the margin. How sure it is: in each resample of cases, drawn width by width, `seen` is found anew; `low` and `high`
    leave 2.5 % of the resamples outside on either side (null where that end lies beyond the widest), and `share` is the share of resamples in
    which there is such a width at all. With few cases a width this is somewhat too sure. `widths` are those compared.
    """
    asked = _asked(margin, cost_margin, seed, resamples, level)
    counted, unit = count_cases(with_costs(trials, prices))
    if counted.is_empty():
        return pl.DataFrame(schema=_WHERE)
    against = baselines(counted, baseline)
    found = pl.DataFrame(_ablated(counted, unit, against, ("width",), asked), schema=_ABLATION)
    rows = []
    for row in found.filter((pl.col("over") == "all") & ~pl.col("is_baseline")).iter_rows(named=True):
        arm = arm_of(row)
        mine = found.filter(
            pl.col("over") == "width",
            *(pl.col(name).eq_missing(pl.lit(row[name], pl.String)) for name in ARM),
        ).sort("width")
        compared = mine.filter(pl.col("cases") > 0)
        head = {name: row[name] for name in (*ARM, "evidence", "baseline", "margin")}
        base = against[arm]
        if base is None or compared.is_empty():
            rows.append({**head, "widths": [], "reason": row["reason"] or "no case has a counterpart"})
            continue
        widths = compared["width"].to_list()
        paying = [each in _GOOD for each in compared["verdict"]]
        differences = [paired(counted, arm, base, width)[0]["difference"].to_numpy() for width in widths]
        rows.append(
            {
                **head,
                "widths": widths,
                "from_width": _from(widths, paying),
                **_sure(widths, differences, asked),
            }
        )
    return pl.DataFrame(rows, schema=_WHERE)


# ---- rows ----------------------------------------------------------------------------------------------------


def _rows(
    part: pl.DataFrame,
    against: Against,
    unit: str | None,
    head: dict[str, Any],
    asked: _Asked,
) -> list[dict[str, Any]]:
    """A row for each arm with a case in this part."""
    arms = [(arm, of_arm(part, arm)) for arm in against]
    arms = [(arm, cases) for arm, cases in arms if cases.height]
    judged = [knowing(cases, "judged") for _, cases in arms]
    pairs = {
        "share": [(cases["solved"], cases["judged"]) for cases in judged],
        "per_trial": [(cases["cost"], cases["cost_n"]) for cases in judged],
    }
    found = all_ratios(pairs, seed=asked.seed, resamples=asked.resamples, level=asked.level)
    scale = MICROS if unit == "usd" else 1
    rows = []
    for at, (arm, cases) in enumerate(arms):
        share, cost = found["share"][at], found["per_trial"][at]
        whole = int(cases["cost_n"].sum()) == int(cases["judged"].sum()) > 0
        base = against[arm]
        kinds = sorted({word for text in cases["evidence"].unique() for word in text.split(", ")})
        row = {
            **dict(zip(ARM, arm, strict=True)), **head, "evidence": ", ".join(kinds),
            "baseline": None if base is None else full_name(*base), "is_baseline": base == arm,
            "accuracy": share.estimate, "accuracy_low": share.low, "accuracy_high": share.high,
            "n": int(cases["solved"].sum()), "of": int(cases["judged"].sum()), "asked": int(cases["asked"].sum()),
            "attempts": int(cases["attempts"].sum()), "floors": int(cases["floors"].sum()),
            "cost_unit": unit, "margin": asked.margin, "cost_margin": asked.cost_margin,
        }  # fmt: skip
        if whole:
            low, high = (None, None) if row["floors"] else (cost.low, cost.high)
            ends = {"cost": cost.estimate, "cost_low": low, "cost_high": high}
            row |= {name: None if value is None else value / scale for name, value in ends.items()}
        if base is None:
            row |= {
                "cases": 0,
                "verdict": UNDECIDED,
                "unpaired": [],
                "reason": "its driver has no arm of the baseline",
            }
        elif base == arm:
            row |= {
                "reason": said(
                    None if whole else unknown_said(unit, int(cases["cost_n"].sum()), row["of"]),
                    _floors(unit, row["floors"], row["of"]),
                )
            }
        else:
            row |= _against_baseline(part, arm, base, unit, asked)
        rows.append(row)
    return rows


def _against_baseline(
    part: pl.DataFrame, arm: tuple[Any, ...], base: tuple[Any, ...], unit: str | None, asked: _Asked
) -> dict[str, Any]:
    """What a row says of the paired cases."""
    pairs, unpaired = paired(part, arm, base)
    row: dict[str, Any] = {"cases": pairs.height, "unpaired": unpaired, "estimator": PAIRED}
    if pairs.is_empty():
        return {**row, "verdict": UNDECIDED, "reason": "no case has a counterpart"}
    draws: dict[str, Any] = {
        "seed": asked.seed,
        "resamples": resamples_for(pairs.height, asked.resamples),
        "level": asked.level,
    }
    d = pairs["difference"].to_numpy()
    gain = difference_over_cases(d, trials=_trials(pairs), **draws)
    assert gain is not None
    row |= {
        "trials": int(pairs["judged"].sum()),
        "baseline_trials": int(pairs["judged_b"].sum()),
        "unsafe": int(pairs["unsafe"].sum()),
        "baseline_unsafe": int(pairs["unsafe_b"].sum()),
        "paired": float((pairs["solved"] / pairs["judged"]).sum()) / pairs.height,
        "paired_baseline": float((pairs["solved_b"] / pairs["judged_b"]).sum()) / pairs.height,
        "difference": gain.estimate,
        "difference_low": gain.low,
        "difference_high": gain.high,
    }
    logs, why = _cost_ratio(pairs, unit, draws)
    if logs is not None:
        for name, value in (("", logs.estimate), ("_low", logs.low), ("_high", logs.high)):
            row[f"cost_ratio{name}"] = math.exp(value) if math.isfinite(value) else 0.0 if value < 0 else None
    found = verdict_by_logs(
        (gain.low, gain.high),
        None if logs is None else (logs.low, logs.high),
        asked.margin,
        asked.cost_margin,
    )
    row |= {"verdict": found, "reason": why}
    if found == UNDECIDED:
        total = _enough(pairs, gain, logs, asked)
        row["needed"] = None if total is None else total - pairs.height
    return row


def _cost_ratio(
    pairs: pl.DataFrame, unit: str | None, draws: dict[str, Any]
) -> tuple[Ends | None, str | None]:
    """The logarithm of the ratio of costs over paired cases, or why it is not known."""
    arm, base = (
        unknown_said(unit, *(int(pairs[f"{name}{side}"].sum()) for name in ("cost_n", "judged")))
        for side in ("", "_b")
    )
    if arm or base:
        both = f"{arm} on either side" if arm == base else None
        return None, both or said(arm and f"{arm} of the arm", base and f"{base} of the baseline")
    x, y = ((pairs[f"cost{side}"] / pairs[f"cost_n{side}"]).to_numpy() for side in ("", "_b"))
    mine, other = (
        _floors(unit, int(pairs[f"floors{side}"].sum()), int(pairs[f"judged{side}"].sum()))
        for side in ("", "_b")
    )
    why = said(mine and f"{mine} (the arm)", other and f"{other} (the baseline)")
    if not x.any() and not y.any():
        return (None, why) if why else (Ends(0.0, 0.0, 0.0), "both cost nothing")
    if pairs.height < 2:
        return None, "one case gives no interval of the ratio of costs"
    found = log_ratio_over_cases(x, y, **draws)
    if found is None or (mine and other):
        return None, why
    low, high = -math.inf if other else found.low, math.inf if mine else found.high
    return Ends(found.estimate, low, high), said(
        None if y.any() else "the baseline costs nothing: no ratio", why
    )


def _trials(pairs: pl.DataFrame) -> float:
    """How many trials a case stand behind each rate: the harmonic mean of the fewer of either side."""
    return trials_behind(pairs.select(pl.min_horizontal("judged", "judged_b")).to_series().to_numpy())


def _floors(unit: str | None, floors: int, of: int) -> str | None:
    """Of how many judged trials only a lower bound of the cost is known."""
    return floor_said("the cost" if unit == "usd" else "the number of tokens", floors, of)


def _enough(pairs: pl.DataFrame, gain: Ends, logs: Ends | None, asked: _Asked) -> int | None:
    """About how many cases would decide, were what was seen true; None where no number would."""
    normal = NormalDist()
    z = normal.inv_cdf(0.5 + asked.level / 2) + normal.inv_cdf(POWER)
    variance = float(pairs["difference"].to_numpy().var(ddof=1)) if pairs.height > 1 else 0.0
    trials = _trials(pairs)
    error = 0.0
    if logs is not None and math.isfinite(logs.estimate) and pairs.height > 1 and pairs["cost_b"].sum():
        x, y = ((pairs[f"cost{side}"] / pairs[f"cost_n{side}"]).to_numpy() for side in ("", "_b"))
        error = log_ratio_error(x, y) * math.sqrt(pairs.height)

    def decided(cases: int) -> bool:
        half = adjusted_half(variance, cases, gain.estimate, z, trials)
        spread = z * error / math.sqrt(cases)
        ratio = None
        if logs is not None:  # an end that is open stays open
            low, high = logs.estimate - spread, logs.estimate + spread
            ratio = (-math.inf if logs.low == -math.inf else low, math.inf if logs.high == math.inf else high)
        ends = (gain.estimate - half, gain.estimate + half)
        return verdict_by_logs(ends, ratio, asked.margin, asked.cost_margin) != UNDECIDED

    return fewest_cases(decided, pairs.height)


# ---- where it pays -------------------------------------------------------------------------------------------


def _from(widths: Sequence[int], paying: Sequence[bool]) -> int | None:
    """The smallest width from which on all pay."""
    found = None
    for width, pays in zip(reversed(widths), reversed(paying), strict=True):
        if not pays:
            break
        found = width
    return found


def _sure(widths: Sequence[int], differences: Sequence[Any], asked: _Asked) -> dict[str, Any]:
    """`seen`, and how it varies where cases are drawn again, width by width."""
    above = np.column_stack(
        [
            resample_sums(d[:, None], seed=asked.seed + at, resamples=asked.resamples)[:, 0] / d.size
            > asked.margin + 1e-12
            for at, d in enumerate(differences)
        ]
    )
    onward = np.flip(np.logical_and.accumulate(np.flip(above, axis=1), axis=1), axis=1)
    # the place of the first width from which on all are above; beyond the last where there is none
    first = np.sort(np.where(onward.any(axis=1), onward.argmax(axis=1), len(widths)))
    tails = np.quantile(first, [(1 - asked.level) / 2, (1 + asked.level) / 2], method="inverted_cdf")
    low, high = (widths[int(at)] if at < len(widths) else None for at in tails)
    seen = _from(widths, [float(d.mean()) > asked.margin + 1e-12 for d in differences])
    return {"seen": seen, "low": low, "high": high, "share": float((first < len(widths)).mean())}
