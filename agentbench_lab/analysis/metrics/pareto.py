"""Accuracy against cost: which arms nobody beats in both."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import polars as pl

from agentbench_lab.analysis.metrics.arms import ARM, full_name
from agentbench_lab.analysis.metrics.endings import said_of
from agentbench_lab.analysis.metrics.ratios import (
    RESAMPLES,
    Floats,
    Ratio,
    all_ratios,
    knowing,
    resamples_for,
    said,
    sums_by_case,
)
from agentbench_lab.analysis.metrics.spending import (
    MICROS,
    by_what,
    money,
    money_unknown,
    why_unknown,
    with_costs,
)
from agentbench_lab.analysis.metrics.users import USERS, left_aside
from agentbench_lab.errors import counted
from agentbench_lab.stats import resample_sums

if TYPE_CHECKING:
    import pyarrow as pa

    from agentbench_lab.analysis.prices import Prices

_SCHEMA = {
    **dict.fromkeys((*ARM, "evidence"), pl.String),
    **dict.fromkeys(("accuracy", "accuracy_low", "accuracy_high"), pl.Float64),
    **dict.fromkeys(("cost", "cost_low", "cost_high"), pl.Float64),
    **dict.fromkeys(("n", "of", "solved", "judged", "cases"), pl.Int64),
    "on_frontier": pl.Boolean,
    "membership": pl.Float64,
    "dominated_by": pl.String,
    "lower_bound": pl.Boolean,
    **USERS,
    "estimator": pl.String,
    "reason": pl.String,
    "disqualified": pl.String,
}
Bools = npt.NDArray[np.bool_]


def frontier(
    trials: pa.Table | pl.DataFrame,
    prices: Prices | None = None,
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
    level: float = 0.95,
) -> pl.DataFrame:
    """Accuracy and cost of each arm, and whether it is on the Pareto frontier: no arm is as good or better in both and
    better in one.

    One row an arm. `accuracy` is `solved` of the `judged` trials, `cost` is the mean over the `n` of the `of` trials
    that ended whose cost is known to its end (`spending.only_a_floor`), in dollars; both over the arm's own cases, with percentile intervals that resample
    whole cases. With n < of the money known is a `lower_bound`, and the mean is that of the trials that say it, which
    may be the cheap ones. Such an arm, like one without either number, is not compared: `on_frontier` is null and
    `reason` says why. `dominated_by` names the most accurate arm of the frontier that beats
    this one (driver + model + scaffold, without a null model and once). `membership` is the share of resamples in which
    the arm is on the frontier; each draws the same cases for all arms, of the `cases` in which every arm that is
    compared has a judged trial and a known cost. It says how sure the frontier is, not how likely the arm is best.
    `disqualified` says which outcomes of the arm are unsafe, null where none is: its place does not make up for them.
    """
    table = with_costs(trials, prices)
    arms = sums_by_case(table, *money(table))
    pairs = {
        "share": [(c["solved"], c["judged"]) for c in (knowing(c, "judged") for _, c in arms)],
        "per_trial": [(c["whole"], c["cost_n"]) for c in (knowing(c, "cost_n") for _, c in arms)],
    }
    found = all_ratios(pairs, seed=seed, resamples=resamples, level=level)
    accuracy, cost = found["share"], found["per_trial"]
    wholes = [cases.sum().row(0, named=True) for _, cases in arms]
    compared = [
        at
        for at, whole in enumerate(wholes)
        if accuracy[at].estimate is not None
        and cost[at].estimate is not None
        and whole["cost_n"] == whole["trials"]
    ]
    places = {at: (accuracy[at].estimate or 0.0, cost[at].estimate or 0.0) for at in compared}
    points = np.array([places[at] for at in compared], dtype=np.float64).reshape(-1, 2).T
    best = [at for at, on in zip(compared, on_frontier(*points[:, None])[0], strict=True) if on]
    common, members = _membership([arms[at][1] for at in compared], seed, resamples)
    member = dict(zip(compared, members, strict=True))
    notes = why_unknown(table)
    users, unsafe = left_aside(table), said_of(table)
    rows = []
    for at, (arm, cases) in enumerate(arms):
        whole = wholes[at]
        mine = at in places
        beats = [each for each in best if mine and _beats(places[each], places[at])]
        by = min(beats, key=lambda each: (-places[each][0], places[each][1]), default=None)
        name = None if by is None else full_name(*(arms[by][0][part] for part in ARM))
        fewer = mine and common < cases.height
        rows.append(
            {
                **arm,
                **_ends("accuracy", accuracy[at], 1),
                **_ends("cost", cost[at], MICROS),
                "n": whole["cost_n"],
                "of": whole["trials"],
                **users.get(tuple(arm[part] for part in ARM), {}),
                "solved": whole["solved"],
                "judged": whole["judged"],
                "cases": common if mine else None,
                "on_frontier": at in best if mine else None,
                "membership": member.get(at),
                "dominated_by": name,
                "lower_bound": whole["cost_n"] + whole["cost_floors"] > 0
                and whole["cost_n"] < whole["trials"],
                "estimator": f"accuracy {accuracy[at].estimator}; cost {cost[at].estimator}"
                + by_what(whole, prices),
                "reason": said(
                    None if whole["judged"] else "no trial was judged",
                    money_unknown(whole, notes.get(tuple(arm[name] for name in ARM))),
                    "its place is not known"
                    if whole["cost_n"] < whole["trials"] and whole["cost_n"] + whole["cost_floors"]
                    else None,
                    f"{common} of its {counted(cases.height, 'case')} have a judged trial and a known cost in every arm"
                    if fewer
                    else None,
                    "fewer than 2 common cases give no membership" if mine and member[at] is None else None,
                    accuracy[at].reason and f"accuracy: {accuracy[at].reason}",
                    cost[at].reason and f"cost: {cost[at].reason}",
                ),
                "disqualified": unsafe.get(tuple(arm[part] for part in ARM)),
            }
        )
    return pl.DataFrame(rows, schema=_SCHEMA)


def on_frontier(accuracy: Floats, cost: Floats) -> Bools:
    """Which arms nobody beats, by row of resamples x arms: as good or better in both, and better in one.

    Arms that are alike in both stand or fall together.
    """
    order = np.lexsort((-accuracy, cost), axis=1)
    a, c = np.take_along_axis(accuracy, order, 1), np.take_along_axis(cost, order, 1)
    highest = np.maximum.accumulate(a, axis=1)
    # from the cheapest on: the first arm that came as high as the highest so far
    record = np.concatenate([np.ones_like(a[:, :1], dtype=bool), a[:, 1:] > highest[:, :-1]], axis=1)
    first = np.maximum.accumulate(np.where(record, np.arange(a.shape[1]), 0), axis=1)
    on = np.empty(a.shape, dtype=np.bool_)
    np.put_along_axis(on, order, (a == highest) & (c == np.take_along_axis(c, first, 1)), 1)
    return on


def _beats(one: tuple[float, float], other: tuple[float, float]) -> bool:
    return one != other and one[0] >= other[0] and one[1] <= other[1]


def _membership(arms: list[pl.DataFrame], seed: int, resamples: int) -> tuple[int, list[float | None]]:
    """The cases common to all arms, and how often each is on the frontier when these are resampled."""
    known = [cases.filter((pl.col("judged") > 0) & (pl.col("cost_n") > 0)) for cases in arms]
    if len(known) < 2:
        return sum(cases.height for cases in known), [1.0] * len(known)
    ids = ["suite", "case_id"]
    everywhere = pl.concat([cases.select(ids) for cases in known]).group_by(ids).len()
    everywhere = everywhere.filter(pl.col("len") == len(arms)).select(ids)
    if everywhere.height < 2:
        return everywhere.height, [None] * len(arms)
    numbers = [
        cases.join(everywhere, on=ids, how="semi")
        .sort(ids)
        .select("solved", "judged", "whole", "cost_n")
        .to_numpy()
        for cases in known
    ]
    sums = resample_sums(
        np.concatenate(numbers, axis=1), seed=seed, resamples=resamples_for(everywhere.height, resamples)
    )
    on = on_frontier(sums[:, 0::4] / sums[:, 1::4], sums[:, 2::4] / sums[:, 3::4])
    return everywhere.height, [float(share) for share in on.mean(axis=0)]


def _ends(name: str, ratio: Ratio, scale: int) -> dict[str, float | None]:
    ends = {name: ratio.estimate, f"{name}_low": ratio.low, f"{name}_high": ratio.high}
    return {key: None if value is None else value / scale for key, value in ends.items()}
