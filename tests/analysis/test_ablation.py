"""Each arrangement against a baseline: by hand, by properties, and against the closed form that made the trials."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentbench_lab import LabError, metrics
from agentbench_lab.stats import difference_over_cases, log_ratio_over_cases

from .arranged import WIDTHS, arms, chance, frame, price, row, simulated
from .rows import TOKENS, get

EVERY = {"once": ["11", "10", "00"], "linear": ["11", "11", "10"]}


def whole(found: pl.DataFrame, scaffold: str) -> dict[str, Any]:
    return get(found, scaffold=scaffold, over="all")


def test_three_cases_by_hand() -> None:
    """Rates 1, 1/2, 0 against 1, 1, 1/2; each trial costs twice as much."""
    found = metrics.ablation(arms(EVERY, {"once": 100, "linear": 200}))
    once, linear = whole(found, "once"), whole(found, "linear")
    assert (once["is_baseline"], once["verdict"], once["accuracy"], once["n"], once["of"]) == (
        True,
        None,
        0.5,
        3,
        6,
    )
    assert (linear["baseline"], linear["is_baseline"]) == ("d", False)
    assert (linear["cases"], linear["trials"], linear["baseline_trials"]) == (3, 6, 6)
    assert (linear["paired"], linear["paired_baseline"]) == (pytest.approx(5 / 6), 0.5)
    assert linear["difference"] == pytest.approx(1 / 3)
    assert (linear["cost_unit"], linear["cost"], once["cost"]) == ("usd", 0.0002, 0.0001)
    assert linear["cost_ratio"] == pytest.approx(2.0)
    assert (linear["verdict"], linear["unpaired"], linear["margin"]) == ("undecided", [], 0.02)
    assert linear["needed"] is not None
    assert linear["needed"] >= 1
    expected = difference_over_cases([0, 0.5, 0.5], trials=2)
    assert expected is not None
    assert (linear["difference_low"], linear["difference_high"]) == (expected.low, expected.high)


def test_a_clear_gain_pays_and_the_reverse_loses() -> None:
    cases = {"once": ["00"] * 12 + ["10"] * 8, "linear": ["11"] * 20}
    trials = arms(cases, {"once": 100, "linear": 300})
    assert whole(metrics.ablation(trials), "linear")["verdict"] == "pays"
    assert whole(metrics.ablation(trials, baseline="linear"), "once")["verdict"] == "loses"
    cheaper = arms(cases, {"once": 300, "linear": 100})
    assert whole(metrics.ablation(cheaper), "linear")["verdict"] == "dominates"
    assert whole(metrics.ablation(cheaper, baseline="linear"), "once")["verdict"] == "loses"


def test_a_gain_that_is_none_costs_or_saves() -> None:
    """200 cases solved by both: within the margin, so that cost decides; at equal cost nothing differs."""
    cases = {"once": ["1"] * 200, "linear": ["1"] * 200}
    for costs, expected in (
        ((100, 200), "costs without gain"),
        ((200, 100), "cheaper, no worse"),
        ((100, 101), "no difference"),
    ):
        trials = arms(cases, dict(zip(("once", "linear"), costs, strict=True)))
        assert whole(metrics.ablation(trials), "linear")["verdict"] == expected
    # six such cases are too few to say so, and about how many would do is said
    six = whole(
        metrics.ablation(arms({"once": ["1"] * 6, "linear": ["1"] * 6}, {"once": 100, "linear": 200})),
        "linear",
    )
    assert six["verdict"] == "undecided"
    assert 100 <= six["needed"] <= 200


def test_as_many_cases_as_are_named_would_decide() -> None:
    """The same cases again and again, until there are as many: then it is decided, and of a third of them it is not."""
    cases = {"once": ["1100", "1000", "0000", "1110"], "linear": ["1110", "1110", "0000", "1100"]}
    few = whole(metrics.ablation(arms(cases, {"once": 100, "linear": 110})), "linear")
    assert few["verdict"] == "undecided"
    enough = 1 + (4 + few["needed"]) // 4
    for times, decided in ((enough, True), (max(1, enough // 4), False)):
        many = {name: each * times for name, each in cases.items()}
        found = whole(metrics.ablation(arms(many, {"once": 100, "linear": 110})), "linear")
        assert (found["verdict"] != "undecided") is decided


def dear(times: int) -> pl.DataFrame:
    """Solved by all; the arm costs 40 or 176 where the baseline costs 100: 8 % more on average, and very unevenly."""
    cases = range(200 * times)
    return frame(
        *(row(f"c{n:04}", "once", True, cost=100) for n in cases),
        *(row(f"c{n:04}", "linear", True, cost=40 if n % 2 else 176) for n in cases),
    )


def test_where_cost_is_open_the_cases_named_are_those_that_cost_needs() -> None:
    """By hand: (1.96 + 0.84) standard errors of 0.63 / sqrt(n) are as much as log(1.08) at 525 cases."""
    few = whole(metrics.ablation(dear(1)), "linear")
    assert few["verdict"] == "undecided"
    assert few["cost_ratio_low"] < 1 < few["cost_ratio_high"]
    by_hand = (2.8016 * 0.68 / 1.08 / math.log(1.08)) ** 2
    assert 200 + few["needed"] == pytest.approx(by_hand, rel=0.02)
    assert whole(metrics.ablation(dear(3)), "linear")["verdict"] == "costs without gain"


def test_what_has_no_counterpart_is_named() -> None:
    """A case that one side lost to exclusions, and one that was not asked: in no difference, never silently."""
    trials = arms({"once": ["1", "x", "0", "1"], "linear": ["1", "1", "xx"]})
    linear = whole(metrics.ablation(trials), "linear")
    assert linear["cases"] == 1
    assert linear["unpaired"] == [
        "c1 (all 1 trial of the baseline excluded)",
        "c2 (all 2 trials of the arm excluded)",
        "c3 (not asked of the arm)",
    ]
    # its own accuracy is over all that was judged, and says of how many
    assert (linear["n"], linear["of"], linear["asked"]) == (2, 2, 4)
    alone = whole(metrics.ablation(arms({"once": ["x"], "linear": ["1"]})), "linear")
    assert (alone["cases"], alone["verdict"], alone["needed"]) == (0, "undecided", None)
    assert alone["reason"] == "no case has a counterpart"


def test_cases_of_two_suites_are_not_mixed_up() -> None:
    """The same id in two suites is two cases, and is named with its suite."""
    trials = frame(row("c", "once", True), row("c", "linear", False, suite="other"))
    linear = whole(metrics.ablation(trials), "linear")
    assert (linear["cases"], linear["unpaired"]) == (
        0,
        ["other/c (not asked of the baseline)", "s/c (not asked of the arm)"],
    )


def test_unequal_numbers_of_trials_count_each_case_once() -> None:
    """One case in eight trials, the other in one: the mean over cases, not over trials."""
    linear = whole(metrics.ablation(arms({"once": ["00000000", "0"], "linear": ["11111111", "0"]})), "linear")
    assert (linear["difference"], linear["accuracy"]) == (0.5, pytest.approx(8 / 9))


def test_tokens_stand_in_where_money_is_unknown() -> None:
    tokens = {"once": 1000, "linear": 1500}
    trials = frame(*(row(f"c{n}", s, True, tokens=t) for s, t in tokens.items() for n in range(3)))
    linear = whole(metrics.ablation(trials), "linear")
    assert (linear["cost_unit"], linear["cost"], linear["cost_ratio"]) == ("tokens", 1500, pytest.approx(1.5))
    # money counts first where both are known
    both = trials.with_columns(pl.lit(7, pl.Int64).alias("cost_micros"))
    assert whole(metrics.ablation(both), "linear")["cost_unit"] == "usd"
    # one kind of tokens unknown: the sum is unknown, not smaller
    part = trials.with_columns(pl.lit(None, pl.Int64).alias("tokens_output"))
    linear = whole(metrics.ablation(part), "linear")
    assert (linear["cost_unit"], linear["cost"], linear["cost_ratio"], linear["verdict"]) == (
        None,
        None,
        None,
        "undecided",
    )
    assert linear["reason"] == "neither cost nor tokens is known of any trial on either side"


def test_a_cost_that_is_known_in_part_is_no_cost() -> None:
    trials = frame(
        *(row(f"c{n}", "once", True, cost=100) for n in range(3)),
        *(row(f"c{n}", "linear", True, cost=None if n == 1 else 50) for n in range(3)),
    )
    linear = whole(metrics.ablation(trials), "linear")
    assert (linear["cost"], linear["cost_ratio"]) == (None, None)
    assert linear["reason"] == "the cost is not known of 1 of 3 trials of the arm"


def test_free_is_not_unknown() -> None:
    both = whole(
        metrics.ablation(arms({"once": ["1"] * 200, "linear": ["1"] * 200}, {"once": 0, "linear": 0})),
        "linear",
    )
    assert (both["cost"], both["cost_ratio"], both["verdict"]) == (0.0, 1.0, "no difference")
    free = whole(
        metrics.ablation(arms({"once": ["1"] * 200, "linear": ["1"] * 200}, {"once": 9, "linear": 0})),
        "linear",
    )
    assert (free["cost_ratio"], free["verdict"]) == (0.0, "cheaper, no worse")
    dear = whole(
        metrics.ablation(arms({"once": ["1"] * 200, "linear": ["1"] * 200}, {"once": 0, "linear": 9})),
        "linear",
    )
    assert (dear["cost_ratio"], dear["verdict"], dear["reason"]) == (
        None,
        "costs without gain",
        "the baseline costs nothing: no ratio",
    )


def test_unsafe_outcomes_are_counted_beside_every_verdict() -> None:
    trials = arms({"once": ["1"], "linear": ["00"]}).with_columns(
        pl.when(pl.col("scaffold") == "linear")
        .then(pl.lit("unsafe"))
        .otherwise("outcome_class")
        .alias("outcome_class")
    )
    linear = whole(metrics.ablation(trials), "linear")
    assert (linear["unsafe"], linear["baseline_unsafe"]) == (2, 0)


def test_the_baseline_is_a_scaffold_of_the_same_driver_or_one_arm() -> None:
    trials = pl.concat(
        [
            arms({"once": ["1"], "linear": ["1"]}),
            arms({"once": ["0"], "linear": ["1"]}).with_columns(pl.lit("e").alias("driver")),
        ]
    )
    found = metrics.ablation(trials)
    assert [(r["driver"], r["scaffold"], r["baseline"]) for r in found.filter(over="all").to_dicts()] == [
        ("d", "once", "d"), ("d", "linear", "d"), ("e", "once", "e"), ("e", "linear", "e"),
    ]  # fmt: skip
    one = metrics.ablation(trials, baseline="e+linear").filter(over="all")
    assert one["baseline"].unique().to_list() == ["e + linear"]
    assert one.filter(pl.col("is_baseline")).select("driver", "scaffold").rows() == [("e", "linear")]
    lonely = metrics.ablation(trials.filter(~((pl.col("driver") == "e") & (pl.col("scaffold") == "once"))))
    alone = get(lonely, driver="e", over="all")
    assert (alone["verdict"], alone["baseline"], alone["reason"]) == (
        "undecided",
        None,
        "its driver has no arm of the baseline",
    )


def test_without_a_name_the_baseline_is_once_or_the_first_scaffold_of_a_driver_that_has_several() -> None:
    none = arms({"linear": ["1"], "fan_out_4": ["0"]})
    assert metrics.default_baseline(none) == "linear"
    assert whole(metrics.ablation(none), "fan_out_4")["baseline"] == "d + linear"
    assert metrics.where_it_pays(none)["baseline"].to_list() == ["d + linear"]
    assert metrics.default_baseline(arms({"linear": ["1"], "once": ["0"]})) == "once"
    # a driver that has once alone says nothing of those under several
    other = arms({"once": ["1"]}).with_columns(pl.lit("e").alias("driver"))
    assert metrics.default_baseline(pl.concat([other, none])) == "linear"
    alone = arms({"linear": ["1"]})
    assert metrics.default_baseline(alone) is None
    assert metrics.ablation(alone)["is_baseline"].all()
    with pytest.raises(LabError, match=r"-p baseline 'd \+ linear'\); there is d \+ linear, e \+ linear$"):
        metrics.ablation(pl.concat([alone, alone.with_columns(pl.lit("e").alias("driver"))]))


def killed(trials: pl.DataFrame, *scaffolds: str) -> pl.DataFrame:
    """The trials, the first of each of these arms killed once, and gone on with."""
    hit = pl.col("scaffold").is_in(scaffolds) & (pl.col("case_id") == "c0") & (pl.col("trial") == 1)
    return trials.with_columns(usage_lost=hit, attempts=1 + hit.cast(pl.Int32))


def test_a_lower_bound_of_a_cost_leaves_the_ratio_open_at_that_end() -> None:
    """An arm at a third of the price: cheaper and no worse; with one killed trial nothing can be called cheaper."""
    cheap = arms({"once": ["11"] * 200, "durable:once": ["11"] * 200}, {"once": 300, "durable:once": 100})
    assert whole(metrics.ablation(cheap), "durable:once")["verdict"] == "cheaper, no worse"
    row = whole(metrics.ablation(killed(cheap, "durable:once")), "durable:once")
    assert (row["floors"], row["attempts"], row["of"]) == (1, 401, 400)
    assert row["cost_ratio"] == pytest.approx(1 / 3) and row["cost_ratio_low"] > 0.3
    assert (row["cost_ratio_high"], row["verdict"], row["needed"]) == (None, "undecided", None)
    assert row["reason"] == "the cost of 1 of 400 trials is a lower bound: an attempt was killed (the arm)"
    # what is dearer at least is dearer
    dear = arms({"once": ["11"] * 200, "durable:once": ["11"] * 200}, {"once": 100, "durable:once": 300})
    assert (
        whole(metrics.ablation(killed(dear, "durable:once")), "durable:once")["verdict"]
        == "costs without gain"
    )
    # the other way round it has no lower end, and on both sides there is no ratio
    mirror = killed(dear, "durable:once")
    once = whole(metrics.ablation(mirror, baseline="durable:once"), "once")
    assert (once["cost_ratio_low"], once["verdict"]) == (0.0, "cheaper, no worse")
    both = whole(metrics.ablation(killed(dear, "once", "durable:once")), "durable:once")
    assert (both["cost_ratio"], both["verdict"]) == (None, "undecided")


def test_a_mean_of_lower_bounds_has_no_interval() -> None:
    """100 and 300 micros a trial, one killed: 200 at least, and no interval; by width only where it was killed."""
    two = arms({"once": ["11"] * 3, "durable:once": ["11"] * 3}, {"once": 100, "durable:once": 300})
    dearer = two.with_columns(
        cost_micros=pl.when(pl.col("case_id") == "c1")
        .then(pl.col("cost_micros") * 4)
        .otherwise("cost_micros")
    )
    for unit, scale in (("usd", 1e-6), ("tokens", 1.0)):
        trials = dearer
        if unit == "tokens":
            used = {name: pl.lit(0, pl.Int64) for name in TOKENS} | {"tokens_output": pl.col("cost_micros")}
            trials = dearer.with_columns(**used).with_columns(cost_micros=pl.lit(None, pl.Int64))
        found = metrics.ablation(killed(trials, "durable:once"))
        mine, once = whole(found, "durable:once"), whole(found, "once")
        assert (mine["cost_unit"], mine["floors"], once["floors"]) == (unit, 1, 0)
        assert mine["cost"] == pytest.approx(600 * scale)
        assert (mine["cost_low"], mine["cost_high"]) == (None, None)
        assert once["cost_low"] < once["cost"] < once["cost_high"]


def test_a_mistake_is_one_line_with_the_nearest_right_thing() -> None:
    trials = arms(EVERY)
    with pytest.raises(LabError, match=r"no arm has the scaffold 'onec'.*once"):
        metrics.ablation(trials, baseline="onec")
    with pytest.raises(LabError, match=r"width or group.*width"):
        metrics.ablation(trials, by=["widht"])
    with pytest.raises(LabError, match="two points"):
        metrics.ablation(trials, margin=2)
    with pytest.raises(LabError, match="resamples"):
        metrics.ablation(trials, resamples=3)


def test_nothing_comes_of_nothing_and_groups_on_demand() -> None:
    assert metrics.ablation(frame()).is_empty()
    assert metrics.where_it_pays(frame()).is_empty()
    found = metrics.ablation(
        simulated(["once", "linear"], trials=1, cases=2, widths=(1, 4)), by=["group"], resamples=200
    )
    assert found["over"].unique(maintain_order=True).to_list() == ["all", "group"]
    assert found.filter(over="group")["group"].unique(maintain_order=True).to_list() == ["1 parts", "4 parts"]


def test_the_numbers_are_those_of_the_estimators() -> None:
    """Of simulated trials: difference and ratio recomputed by hand from the rows."""
    trials = simulated(["once", "linear"], trials=4)
    row4 = get(metrics.ablation(trials), scaffold="linear", over="width", width=4)
    cases = {
        s: trials.filter((pl.col("scaffold") == s) & (pl.col("width") == 4)).group_by("case_id").agg(
            pl.col("solved").mean(), pl.col("tokens_fresh_input").mean().alias("cost")
        ).sort("case_id")
        for s in ("once", "linear")
    }  # fmt: skip
    d = cases["linear"]["solved"] - cases["once"]["solved"]
    expected = difference_over_cases(d.to_numpy(), trials=4)
    logs = log_ratio_over_cases(cases["linear"]["cost"].to_numpy(), cases["once"]["cost"].to_numpy())
    assert expected is not None
    assert logs is not None
    assert [row4[f"difference{end}"] for end in ("", "_low", "_high")] == pytest.approx(list(expected))
    assert [row4[f"cost_ratio{end}"] for end in ("", "_low", "_high")] == pytest.approx(np.exp(logs).tolist())


def test_the_closed_form_lies_in_the_intervals() -> None:
    """The harness measures what is there: 19 of 20 intervals of accuracy and cost should hold the truth; all but two do."""
    found = metrics.ablation(simulated(["once", "linear", "fan_out_4"], seed=7)).filter(
        pl.col("over") == "width"
    )
    missed = []
    for r in found.iter_rows(named=True):
        truth = chance(r["scaffold"], r["width"])
        missed += [] if r["accuracy_low"] <= truth <= r["accuracy_high"] else [(r["scaffold"], r["width"])]
        if not r["is_baseline"]:
            gain = truth - chance("once", r["width"])
            ratio = price(r["scaffold"], r["width"]) / price("once", r["width"])
            missed += [] if r["difference_low"] <= gain <= r["difference_high"] else [("d", r["width"])]
            missed += [] if r["cost_ratio_low"] <= ratio <= r["cost_ratio_high"] else [("c", r["width"])]
    assert len(missed) <= 3, missed


def test_where_it_pays_is_found_where_the_closed_form_has_it() -> None:
    """The closed form's gain passes the margin at width 1 (4.0 points); 40 cases a width see it from there or the next on."""
    found = metrics.where_it_pays(simulated(["once", "linear"], cases=40))
    linear = get(found, scaffold="linear")
    truth = next(width for width in WIDTHS if chance("linear", width) - chance("once", width) > 0.02)
    assert truth == 1 if chance("linear", 1) - chance("once", 1) > 0.02 else truth == 2
    assert linear["widths"] == list(WIDTHS)
    assert linear["from_width"] in (1, 2)
    assert linear["low"] <= linear["seen"] <= linear["high"]
    assert linear["share"] == 1.0


def test_what_never_pays_has_no_width() -> None:
    found = metrics.where_it_pays(simulated(["once", "linear"], cases=6), baseline="linear")
    once = get(found, scaffold="once")
    assert (once["from_width"], once["seen"], once["high"]) == (None, None, None)
    assert once["share"] < 0.05


def test_a_gain_in_the_middle_alone_is_no_from() -> None:
    """From a width on means at all wider ones too."""
    trials = frame(
        *(
            row(f"w{w}-{n}", s, (s == "linear") == (w == 4), t, width=w, cost=100 if s == "once" else 200)
            for s in ("once", "linear") for w in (1, 4, 8) for n in range(20) for t in (1, 2)
        )
    )  # fmt: skip
    verdicts = (
        metrics.ablation(trials).filter(pl.col("over") == "width").drop_nulls("verdict")["verdict"].to_list()
    )
    assert verdicts == ["loses", "pays", "loses"]
    linear = get(metrics.where_it_pays(trials), scaffold="linear")
    assert (linear["from_width"], linear["seen"], linear["share"]) == (None, None, 0.0)


letters = st.text("10x", min_size=1, max_size=3)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(letters, min_size=1, max_size=6),
    st.lists(letters, min_size=1, max_size=6),
    st.sampled_from([None, 0, 100, 200]),
    st.integers(0, 99),
)
def test_the_order_of_rows_does_not_matter_and_exchange_mirrors(
    once: list[str], linear: list[str], cost: int | None, seed: int
) -> None:
    """The same frame from shuffled rows; every case is paired or named; and each arm as the other's baseline is the mirror."""
    trials = arms({"once": once, "linear": linear}, {"once": 100, "linear": cost})
    found = metrics.ablation(trials, resamples=100)
    shuffled = trials.with_columns(
        pl.Series("at", random.Random(seed).sample(range(trials.height), trials.height))
    ).sort("at")
    keys = ["scaffold", "over", "width"]
    again = metrics.ablation(shuffled.drop("at"), resamples=100)
    assert again.sort(keys).equals(found.sort(keys))
    one = whole(found, "linear")
    assert one["cases"] + len(one["unpaired"]) == max(len(once), len(linear))
    assert one["verdict"] in metrics.VERDICTS
    assert one["needed"] is None or (one["needed"] >= 1 and one["verdict"] == "undecided")
    other = whole(metrics.ablation(trials, resamples=100, baseline="linear"), "once")
    if one["difference"] is None:
        assert other["difference"] is None
        return
    assert (one["difference"], one["difference_low"]) == (-other["difference"], -other["difference_high"])
    if one["cost_ratio"] and other["cost_ratio"]:
        assert math.isclose(one["cost_ratio_low"], 1 / other["cost_ratio_high"])
    pair = {one["verdict"], other["verdict"]}
    known = one["cost_ratio"] is not None or other["cost_ratio"] is not None
    allowed: list[set[str]] = [
        {"loses", "dominates"},
        {"loses", "pays"},
        {"cheaper, no worse", "costs without gain"},
    ]
    allowed += [{"no difference"}, {"undecided"}, *([] if known else [{"loses", "undecided"}])]
    assert pair in allowed
