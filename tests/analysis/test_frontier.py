"""Accuracy against cost: by hand, against brute force, and by its laws."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench_lab.analysis import metrics
from agentbench_lab.analysis.metrics.pareto import on_frontier
from agentbench_lab.stats import wilson

from .rows import column, get, trial, trials

FEW: dict[str, Any] = {"resamples": 100}


def arm(name: str, solved: str, costs: list[int | None], **more: Any) -> list[dict[str, Any]]:
    """One trial for each letter, case by case: y solved, n not, x excluded."""
    won = {"y": True, "n": False, "x": None}
    return [
        trial(f"c{n}", won[letter], cost, arm=name, **more)
        for n, (letter, cost) in enumerate(zip(solved, costs, strict=True))
    ]


HAND = trials(
    *arm("cheap", "ynnn", [10, 10, 10, 10]),
    *arm("good", "yyyn", [40, 50, 30, 40]),
    *arm("worse", "yynn", [60, 50, 50, 40]),
    *arm("worst", "nnnn", [50, 50, 50, 50]),
    *arm("mid", "ynyn", [20, 20, 20, 20]),
)
ARMS = ["cheap", "good", "worse", "worst", "mid"]


def test_the_frontier_by_hand() -> None:
    """25 % at 10, 50 % at 20 and 75 % at 40 micros stand; 50 % at 50 and 0 % at 50 fall to the 75 % at 40."""
    found = metrics.frontier(HAND)
    assert found["driver"].to_list() == ARMS
    assert found["accuracy"].to_list() == [0.25, 0.75, 0.5, 0.0, 0.5]
    assert found["cost"].to_list() == pytest.approx([10e-6, 40e-6, 50e-6, 50e-6, 20e-6])
    assert found["on_frontier"].to_list() == [True, True, False, False, True]
    assert found["dominated_by"].to_list() == [None, None, "good", "good", None]
    assert set(found["cases"]) == {4}
    good = get(found, driver="good")
    assert (good["solved"], good["judged"], good["n"], good["of"]) == (3, 4, 4, 4)
    assert (good["accuracy_low"], good["accuracy_high"]) == wilson(3, 4)
    assert good["cost_low"] < good["cost"] < good["cost_high"]


def test_membership_counts_the_resamples_in_which_nobody_beats_an_arm() -> None:
    """Two cases: of four equally likely resamples one draws c1 twice, one c2 twice, and two draw both.

    `a` solves only c1, `b` only c2 for the same money: over c1 a beats b, over c2 b beats a, over both they are alike
    and both stand: each is on the frontier in three of four. `c` is dearer and as good as none of them.
    """
    found = metrics.frontier(
        trials(
            *arm("a", "yn", [5, 5]),
            *arm("b", "ny", [5, 5]),
            *arm("c", "nn", [6, 6]),
        ),
        resamples=20_000,
    )
    assert column(found, "membership", ["a", "b"]) == pytest.approx([0.75, 0.75], abs=0.015)
    assert column(found, "membership", ["c"]) == [0.0]
    assert column(found, "on_frontier", ["a", "b", "c"]) == [True, True, False]


def test_membership_draws_only_cases_common_to_all_arms_and_says_how_many() -> None:
    """Of `a`'s four cases one is not `b`'s, and one has no judged trial there."""
    found = metrics.frontier(trials(*arm("a", "yyyy", [1, 1, 1, 1]), *arm("b", "yxn", [2, 2, 2])))
    assert column(found, "cases", ["a", "b"]) == [2, 2]
    assert column(found, "membership", ["a", "b"]) == [1.0, 0.0]
    assert (
        "2 of its 4 cases have a judged trial and a known cost in every arm"
        in get(found, driver="a")["reason"]
    )
    apart = metrics.frontier(
        trials(*arm("a", "yy", [1, 2]), *arm("b", "yn", [2, 3]), trial("c9", True, 1, arm="a")).with_columns(
            case_id=pl.when(pl.col("driver") == "b").then(pl.col("case_id") + "!").otherwise("case_id")
        )
    )
    assert apart["membership"].to_list() == [None, None]
    assert apart["cases"].to_list() == [0, 0]
    for reason in apart["reason"]:
        assert "fewer than 2 common cases give no membership" in reason


def test_an_unknown_cost_never_wins() -> None:
    """Without any known cost an arm is not compared, and takes part in nobody's membership."""
    found = metrics.frontier(
        trials(
            *arm("dark", "yyyy", [None] * 4), *arm("seen", "ynyn", [3, 4, 5, 6]), *arm("lost", "xx", [1, 1])
        )
    )
    dark, lost = get(found, driver="dark"), get(found, driver="lost")
    for out in (dark, lost):
        assert [out[name] for name in ("on_frontier", "membership", "dominated_by", "cases")] == [None] * 4
    assert (dark["accuracy"], dark["cost"], dark["lower_bound"]) == (1.0, None, False)
    assert dark["reason"] == "the cost is not known of any trial"
    assert (lost["accuracy"], lost["judged"]) == (None, 0)
    assert lost["reason"].startswith("no trial was judged")
    seen = get(found, driver="seen")
    assert (seen["on_frontier"], seen["membership"], seen["cases"]) == (True, 1.0, 4)


def test_an_arm_whose_cost_is_known_in_part_has_no_place_and_beats_nobody() -> None:
    """The trials that tell their cost need not be like the others: they may be the cheap ones."""
    found = metrics.frontier(trials(*arm("part", "yyy", [1, None, 1]), *arm("whole", "ynn", [5, 5, 6])))
    part, whole = get(found, driver="part"), get(found, driver="whole")
    assert (part["lower_bound"], part["n"], part["of"]) == (True, 2, 3)
    assert part["reason"].startswith("the cost is not known of 1 of 3 trials; its place is not known")
    assert [part[name] for name in ("on_frontier", "membership", "dominated_by", "cases")] == [None] * 4
    assert (part["accuracy"], part["cost"]) == (1.0, pytest.approx(1e-6))
    assert (whole["lower_bound"], whole["dominated_by"]) == (False, None)
    assert (whole["on_frontier"], whole["membership"]) == (True, 1.0)


def test_trials_of_which_nobody_knows_whether_they_were_solved_are_in_no_accuracy() -> None:
    rows = [*arm("a", "yn", [1, 1]), trial("c3", True, 1, arm="a") | {"solved": None}]
    (each,) = metrics.frontier(trials(*rows)).to_dicts()
    assert (each["accuracy"], each["judged"], each["n"]) == (0.5, 2, 3)


def test_a_free_model_is_on_the_frontier() -> None:
    found = metrics.frontier(trials(*arm("free", "nyn", [0, 0, 0]), *arm("paid", "nyy", [1, 1, 1])))
    assert found["on_frontier"].to_list() == [True, True]
    assert get(found, driver="free")["cost"] == 0.0


def test_a_label_is_driver_model_and_scaffold_without_null_and_once() -> None:
    rows = [
        *arm("d", "yy", [1, 1], model="m", scaffold="linear"),
        *arm("d", "yn", [2, 2], model="m"),
        *arm("e", "nn", [1, 1]),
    ]
    found = metrics.frontier(trials(*rows))
    assert found["dominated_by"].to_list() == [None, "d + m + linear", "d + m + linear"]


def test_arms_that_are_alike_stand_together() -> None:
    found = metrics.frontier(
        trials(*arm("a", "yn", [3, 4]), *arm("b", "yn", [3, 4]), *arm("c", "yn", [4, 3]))
    )
    assert found["on_frontier"].to_list() == [True, True, True]
    assert column(found, "membership", ["a", "b"]) == [get(found, driver="a")["membership"]] * 2


def test_trials_of_a_case_are_pooled_and_excluded_ones_cost() -> None:
    """2 of 3 judged; 4 trials of 10, 20, 30 and 40 micros."""
    rows = [
        trial("c1", True, 10),
        trial("c1", False, 20, trial=2),
        trial("c2", True, 30),
        trial("c3", None, 40),
    ]
    (each,) = metrics.frontier(trials(*rows)).to_dicts()
    assert (each["accuracy"], each["cost"]) == (2 / 3, pytest.approx(25e-6))
    assert (each["solved"], each["judged"], each["n"], each["of"]) == (2, 3, 4, 4)
    assert "what 1 excluded trial cost is counted too" in each["reason"]


def test_no_rows_give_no_rows() -> None:
    assert metrics.frontier(trials()).columns == metrics.frontier(HAND).columns


# ---- laws ------------------------------------------------------------------------------------------------------

POINTS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=8)


@given(st.lists(POINTS, min_size=1, max_size=3))
def test_the_frontier_is_what_brute_force_finds(several: list[list[tuple[int, int]]]) -> None:
    size = min(map(len, several))
    points = np.array([each[:size] for each in several], dtype=np.float64)
    accuracy, cost = points[:, :, 0], points[:, :, 1]
    found = on_frontier(accuracy, cost)
    for a, c, on in zip(accuracy, cost, found, strict=True):
        for i in range(size):
            beaten = any(a[j] >= a[i] and c[j] <= c[i] and (a[j] > a[i] or c[j] < c[i]) for j in range(size))
            assert on[i] == (not beaten)


ARM = st.lists(st.tuples(st.sampled_from("ynx"), st.none() | st.integers(0, 9)), min_size=1, max_size=4)


def several(arms: list[list[tuple[str, int | None]]]) -> pl.DataFrame:
    rows = [
        arm(f"arm{n}", "".join(letter for letter, _ in each), [cost for _, cost in each])
        for n, each in enumerate(arms)
    ]
    return trials(*(one for each in rows for one in each))


@given(st.lists(ARM, min_size=1, max_size=4))
def test_somebody_is_on_the_frontier_when_any_arm_has_both_numbers(
    arms: list[list[tuple[str, int | None]]],
) -> None:
    found = metrics.frontier(several(arms), **FEW)
    both = found.filter(pl.col("accuracy").is_not_null() & (pl.col("n") == pl.col("of")))
    assert both["on_frontier"].null_count() == 0
    assert both.height == 0 or both["on_frontier"].any()
    assert found["on_frontier"].drop_nulls().len() == both.height
    beaten = found.filter(pl.col("on_frontier") == False)  # noqa: E712
    assert beaten["dominated_by"].null_count() == 0
    assert set(beaten["dominated_by"]) <= set(found.filter("on_frontier")["driver"])
    members = found["membership"].drop_nulls()
    # in every resample somebody stands
    assert members.len() == 0 or members.sum() >= 1 - 1e-9
    assert members.is_between(0, 1).all()


@given(st.lists(ARM, min_size=1, max_size=4), st.integers(0, 3), st.integers(0, 5))
def test_an_arm_that_is_beaten_changes_nobodys_place(
    arms: list[list[tuple[str, int | None]]], like: int, dearer: int
) -> None:
    """One that solves what another does, for as much or more."""
    shadow = [(letter, None if cost is None else cost + dearer) for letter, cost in arms[like % len(arms)]]
    before = metrics.frontier(several(arms), **FEW)
    after = metrics.frontier(several([*arms, shadow]), **FEW)
    assert after["on_frontier"].to_list()[: before.height] == before["on_frontier"].to_list()
    unchanged = ["accuracy", "accuracy_low", "accuracy_high", "cost", "cost_low", "cost_high"]
    assert after.head(before.height).select(unchanged).equals(before.select(unchanged))


@given(st.lists(ARM, min_size=1, max_size=4), st.integers(2, 9))
def test_scaled_costs_change_no_place(arms: list[list[tuple[str, int | None]]], by: int) -> None:
    scaled = [[(letter, None if cost is None else cost * by) for letter, cost in each] for each in arms]
    before, after = metrics.frontier(several(arms), **FEW), metrics.frontier(several(scaled), **FEW)
    same = ["accuracy", "on_frontier", "membership", "dominated_by", "n", "of"]
    assert after.select(same).equals(before.select(same))
    for was, now in zip(before["cost"], after["cost"], strict=True):
        assert now == (None if was is None else pytest.approx(was * by))
