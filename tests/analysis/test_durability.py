"""A durable arm beside its bare scaffold: by hand, where all cases together and the widths alike disagree, and what is unknown."""

from __future__ import annotations

import math
import random
from typing import Any

import polars as pl
import pytest

from agentbench_lab import metrics, tables

from .arranged import frame, row, simulated

HAND = frame(
    *(row(f"w1{c}", "linear", True, width=1, cost=8_000_000) for c in "ab"),
    *(row(f"w4{c}", "linear", c == "a", width=4, cost=20_000_000) for c in "ab"),
    *(row(f"w1{c}", "durable:linear", True, width=1, cost=10_000_000) for c in "ab"),
    *(row(f"w4{c}", "durable:linear", True, width=4, cost=36_000_000) for c in "ab"),
)
"""Two cases a width. Bare crashes early on one of the wide ones: 8 and 40 dollars a solved trial; durable 10 and 36."""


MANY = frame(
    *(row(f"w1{n}", "linear", True, width=1, cost=8_000_000) for n in range(150)),
    *(row(f"w4{n}", "linear", n < 50, width=4, cost=12_000_000) for n in range(150)),
    *(row(f"w1{n}", "durable:linear", True, width=1, cost=10_000_000) for n in range(150)),
    *(row(f"w4{n}", "durable:linear", True, width=4, cost=24_000_000) for n in range(150)),
)
"""Many cases a width: 8 and 36 dollars a solved trial, 15 over all; durable 10 and 24, 17 over all."""


def over(found: pl.DataFrame, what: str, width: int | None = None) -> dict[str, Any]:
    (one,) = (each for each in found.to_dicts() if (each["over"], each["width"]) == (what, width))
    return dict(one)


def test_by_hand() -> None:
    """Together 92 dollars for 4 against 56 for 3; alike (2 x 10 + 2 x 36) / 4 against (2 x 8 + 2 x 40) / 4."""
    found = metrics.durability(HAND)
    assert found["over"].to_list() == ["all", "width", "width", "alike"]
    pairs = [(each["per_solved"], each["bare_per_solved"]) for each in found.to_dicts()]
    assert pairs == [(23.0, pytest.approx(56 / 3)), (10.0, 8.0), (36.0, 40.0), (23.0, 24.0)]
    whole = over(found, "all")
    assert (whole["n"], whole["of"], whole["bare_n"], whole["bare_of"], whole["cases"]) == (4, 4, 3, 4, 4)
    assert (whole["mean_width"], whole["bare_mean_width"]) == (2.5, 2.0)
    # in a quarter of all resamples no wide trial of the bare arm is solved: there is no upper end; and the durable ones are all alike
    assert (over(found, "alike")["bare_high"], over(found, "alike")["high"]) == (None, None)
    assert over(found, "alike")["bare_low"] == 14.0  # both wide trials solved: (2 x 8 + 2 x 20) / 4


def test_the_ratio_and_what_follows_from_it() -> None:
    """At width 1 all cases are alike: 10 by 8 in every resample. At width 4 both wide trials of the bare arm are drawn solved,
    or one, or none: 36 by 20, by 40, and by no bound. Student's interval is wider at the upper end: all cost the same, and one of the
    two has all that is solved, half above its share and half below, so that the error of the logarithm is 1; t is 12.706."""
    found = metrics.durability(HAND)
    told = [
        (each["ratio"], each["ratio_low"], each["ratio_high"], each["verdict"]) for each in found.to_dicts()
    ]
    assert told[1] == (1.25, 1.25, 1.25, "more")
    assert told[2] == (0.9, 0.0, pytest.approx(0.9 * math.exp(12.7062), rel=1e-4), "undecided")
    assert told[0][3] == told[3][3] == "undecided"
    decided = metrics.durability(MANY)
    assert decided["ratio"].to_list() == pytest.approx([17 / 15, 10 / 8, 24 / 36, 34 / 44])
    assert decided["verdict"].to_list() == ["more", "more", "less", "less"]
    same = HAND.with_columns(cost_micros=pl.lit(8_000_000), solved=pl.lit(True))
    assert set(metrics.durability(same)["verdict"]) == {"the same"}


def test_the_sentence_says_which_answer_compares_like_with_like_and_only_where_they_differ() -> None:
    few = tables.durability_says(metrics.durability(HAND)).texts
    assert few[0] == (
        "Whether a solved trial of durable:linear costs less than one of linear is undecided over all cases together."
    )
    assert "and $18.67 [8.00, 68.00] with linear: undecided (1.23 [0." in few[1]
    assert "answers differ" not in few[1]
    (claim, text, evidence) = tables.durability_says(metrics.durability(MANY)).texts
    assert claim == (
        "A solved trial of durable:linear costs more than one of linear over all cases together, but it costs less with the widths weighing alike."
    )
    assert text.startswith("Over 300 cases together a solved trial costs $17.00")
    assert "with durable:linear and $15.00" in text and "with linear: more (1.13 [1.0" in text
    assert "Width by width: less at width 4; more at width 1." in text
    assert ", less (0.77 [0." in text
    assert "a solved trial of durable:linear is 2.5 parts wide on average, one of linear 1.8" in text
    assert evidence == "Evidence: simulated (no model was asked)."
    dear = MANY.with_columns(
        pl.when(pl.col("scaffold") == "linear").then(90_000_000).otherwise("cost_micros").alias("cost_micros")
    )
    same = tables.durability_says(metrics.durability(dear)).texts[1]
    assert (
        tables.durability_says(metrics.durability(dear))
        .texts[0]
        .endswith("one of linear over all cases together.")
    )
    assert "linear: less (0.13 [" in same and "disagree" not in same and "answers differ" not in same
    one = tables.durability_says(metrics.durability(HAND.filter(width=1))).texts[1]
    assert one.endswith("with linear: more (1.25 [1.25, 1.25] times).")


def test_the_table_has_every_width_and_says_who_costs_less() -> None:
    table = tables.durability(metrics.durability(HAND))
    assert [table.rows[0], *([each[0], each[-1]] for each in table.rows[1:])] == [
        "durable:linear beside linear", ["all cases", "undecided"], ["width 1", "bare"], ["width 4", "undecided"], ["widths alike", "undecided"],
    ]  # fmt: skip


def test_what_is_not_known_has_no_number() -> None:
    """Nothing solved at a width, a cost that is unknown, a killed attempt, one case a width, and no such pair of arms."""
    never = HAND.with_columns(
        solved=pl.col("solved") & ((pl.col("width") == 1) | (pl.col("scaffold") != "linear"))
    )
    found = metrics.durability(never)
    assert over(found, "width", 4)["reason"] == "bare: nothing is solved"
    assert over(found, "alike")["bare_per_solved"] is None
    text = tables.durability_says(found).texts[1]
    assert "not comparable at width 4" in text
    assert "which is less is not known (bare: no cost per solved trial at width 4)" in text
    unknown = HAND.with_columns(
        pl.when((pl.col("case_id") == "w1a") & (pl.col("scaffold") == "linear"))
        .then(None)
        .otherwise("cost_micros")
        .alias("cost_micros")
    )
    assert over(metrics.durability(unknown), "all")["bare_per_solved"] is None
    hit = (pl.col("scaffold") == "durable:linear") & (pl.col("case_id") == "w4a")
    killed = metrics.durability(HAND.with_columns(usage_lost=hit, attempts=1 + hit.cast(pl.Int32)))
    assert (over(killed, "width", 4)["floors"], over(killed, "width", 4)["low"]) == (1, None)
    assert tables.durability(killed).rows[3][3:] == ["≥ $36.00", "1/2", "$40.00", "–", "not known"]
    assert tables.durability(killed).rows[2][-1] == "bare"
    lonely = metrics.durability(HAND.filter(pl.col("case_id").is_in(["w1a", "w4a"])))
    assert over(lonely, "alike")["low"] is None
    nobody = metrics.durability(simulated(["once", "linear"]))
    assert nobody.is_empty()
    assert "No arm was run both durable and bare" in str(tables.durability(nobody))
    assert "No arm was run both durable and bare" in str(tables.durability_says(nobody))
    excluded = metrics.durability(HAND.with_columns(solved=pl.lit(None, pl.Boolean), excluded=pl.lit("down")))
    assert excluded.is_empty()


def test_many_draws_hold_the_estimate() -> None:
    found = metrics.durability(simulated(["linear", "durable:linear"]))
    for each in found.to_dicts():
        for side in ("", "bare_"):
            assert each[f"{side}low"] <= each[f"{side}per_solved"] <= each[f"{side}high"]


def test_arms_that_cost_nothing_have_no_ratio_and_say_what_they_are() -> None:
    free = HAND.with_columns(cost_micros=pl.lit(0, pl.Int64))
    found = metrics.durability(free)
    assert set(found["ratio"]) == {None} and set(found["verdict"]) == {"the same"}
    assert "with linear: the same." in tables.durability_says(found).texts[1]
    dear = free.with_columns(
        pl.when(pl.col("scaffold") == "linear").then(0).otherwise(5).alias("cost_micros").cast(pl.Int64)
    )
    assert set(metrics.durability(dear)["verdict"]) == {"more"}


def test_few_cases_of_equal_cost_are_seldom_told_apart() -> None:
    """Both arms cost alike but for chance: of 60 draws at three cases, one in twenty is told apart, and few more."""
    lots = random.Random(5)
    wrong = 0
    for _ in range(60):
        rows = [
            row(f"c{case}", scaffold, True, width=1, cost=int(1_000_000 * lots.lognormvariate(0, 0.3)))
            for scaffold in ("linear", "durable:linear")
            for case in range(3)
        ]
        wrong += metrics.durability(frame(*rows), resamples=200)["verdict"][0] in ("less", "more")
    assert wrong <= 6
