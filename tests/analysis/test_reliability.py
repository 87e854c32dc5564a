"""pass^k and pass@k of trials, their cases and crossings: by hand, by laws, and against published figures."""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Iterable, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentbench_lab import tables
from agentbench_lab.analysis import metrics
from agentbench_lab.results.schema import table
from agentbench_lab.stats import bootstrap_over_kinds, pass_hat_k, pass_hat_weights, wilson, wilson_over_cases

SCHEMA: dict[str, Any] = {
    **dict.fromkeys(("suite", "case_id", "group", "driver", "model", "scaffold", "evidence"), pl.String),
    "trial": pl.Int32,
    "solved": pl.Boolean,
    "excluded": pl.String,
}
Marks = Iterable[bool | None]


def rows(arm: str, of_cases: Mapping[str, Marks], suite: str = "s") -> list[dict[str, Any]]:
    """The trials of an arm, by case: solved, not solved, or None for excluded."""
    return [
        {
            "suite": suite,
            "case_id": case,
            "group": "g",
            "driver": arm,
            "model": None,
            "scaffold": "once",
            "evidence": "simulated",
            "trial": number,
            "solved": solved,
            "excluded": "the endpoint is down" if solved is None else None,
        }
        for case, marks in of_cases.items()
        for number, solved in enumerate(marks, start=1)
    ]


def frame(*parts: list[dict[str, Any]]) -> pl.DataFrame:
    return pl.DataFrame([row for part in parts for row in part], schema=SCHEMA)


def counted(counts: Mapping[int, int], trials: int) -> dict[str, list[bool]]:
    """Cases by how many of their trials are solved: {2: 5} is five cases with two solved."""
    made = [c for c, cases in counts.items() for _ in range(cases)]
    return {f"c{number}": [True] * c + [False] * (trials - c) for number, c in enumerate(made)}


def curve(found: pl.DataFrame, metric: str = "pass_hat_k") -> list[float | None]:
    return found.filter(pl.col("metric") == metric)["estimate"].to_list()


HAND = frame(
    rows(
        "a",
        {"c3": [True, True, True], "c1": [True, None, False], "c2": [False, False, True], "c4": [None] * 3},
    )
)
"""Cases with 3 of 3, 1 of 2 (one excluded), 1 of 3, and none judged."""


def test_cases_by_hand() -> None:
    assert metrics.per_case(HAND).select("case_id", "solved", "judged", "asked").rows() == [
        ("c1", 1, 2, 3),
        ("c2", 1, 3, 3),
        ("c3", 3, 3, 3),
        ("c4", 0, 0, 3),
    ]
    assert metrics.per_case(HAND).row(0)[:7] == ("a", None, "once", "simulated", "s", "c1", "g")


def test_a_trial_of_which_nobody_knows_is_not_judged() -> None:
    """The source excluded nothing, and does not say whether it was solved: unknown is not a failure."""
    unknown = HAND.with_columns(pl.lit(None, pl.String).alias("excluded"))
    assert metrics.per_case(unknown).equals(metrics.per_case(HAND))


def test_the_histogram_by_hand() -> None:
    """One case with no judged trial, one with two, two with three; the counts in between stand as 0."""
    assert metrics.histogram(HAND).select("judged", "solved", "cases").rows() == [
        (0, 0, 1),
        *((2, 0, 0), (2, 1, 1), (2, 2, 0)),
        *((3, 0, 0), (3, 1, 1), (3, 2, 0), (3, 3, 1)),
    ]


def test_reliability_by_hand() -> None:
    """pass^1 over three cases, (1/2 + 1/3 + 1) / 3; pass^2 (0 + 0 + 1) / 3; pass^3 over the two with three trials.

    The worst is over all four, the three asked trials of each: (1/3 + 1/3 + 1 + 0) / 4; the best 2/3 + 1/3 + 1 + 1.
    """
    found = metrics.reliability(HAND)
    assert found["metric"].to_list() == ["pass_hat_k"] * 3 + ["pass_at_k"] * 3
    assert found["k"].to_list() == [1, 2, 3] * 2
    assert curve(found) == pytest.approx([11 / 18, 1 / 3, 1 / 2])
    assert curve(found, "pass_at_k") == pytest.approx([11 / 18, (1 + 2 / 3 + 1) / 3, 1.0])
    one, _, three = found.filter(pl.col("metric") == "pass_hat_k").to_dicts()
    assert (one["n"], one["of"], one["short"]) == (3, 4, ["c4"])
    assert (three["n"], three["of"], three["short"]) == (2, 4, ["c1", "c4"])
    assert (one["worst"], one["best"]) == pytest.approx((5 / 12, 3 / 4))
    assert (three["worst"], three["best"]) == pytest.approx((1 / 4, 2 / 4))
    assert (one["judged"], one["asked"], one["complete"]) == (8, 12, False)
    assert one["estimator"] == "pass_hat_k.unbiased, wilson over cases"
    # the case without a judged trial counts for nothing, the other three have eight
    wanted = wilson_over_cases([1 / 2, 1 / 3, 1], [1] * 3, trials=8)
    assert (one["low"], one["high"]) == pytest.approx(wanted)


def test_a_k_that_not_every_case_was_asked_for_has_no_estimate() -> None:
    """Five cases were tried twice and one three times: pass^3 is that one case's, and no figure of the suite."""
    of_cases = {f"c{n}": [True, False] for n in range(5)} | {"c9": [True] * 3}
    found = metrics.reliability(frame(rows("a", of_cases)))
    assert curve(found) == [pytest.approx(3.5 / 6), pytest.approx(1 / 6), None]
    last = found.filter(pl.col("k") == 3).to_dicts()[0]
    assert last["reason"] == "not asked for 3 trials: c0, c1, c2 and 2 more"
    assert (last["low"], last["high"], last["worst"], last["best"]) == (None, None, None, None)
    assert (last["n"], last["of"], last["short"], last["complete"]) == (
        1,
        6,
        [f"c{n}" for n in range(5)],
        False,
    )


def test_cases_of_several_suites_go_by_both_names() -> None:
    found = metrics.reliability(frame(rows("a", {"c": [True]}, "s"), rows("a", {"c": [None]}, "t")))
    assert found["short"].to_list() == [["t/c"], ["t/c"]]
    assert (found["n"][0], found["of"][0]) == (1, 2)


def test_intervals_where_cases_are_alike() -> None:
    """All solved, always: eight trials of five cases are five observations. One trial a case: as many as trials."""
    often = metrics.reliability(frame(rows("a", counted({8: 5}, 8))))
    assert set(zip(often["low"], often["high"], strict=True)) == {wilson(5, 5)}
    assert often["estimator"][0] == "pass_hat_k.unbiased, wilson over cases"
    once = metrics.reliability(frame(rows("a", counted({1: 3, 0: 4}, 1))))
    assert (once["low"][0], once["high"][0]) == pytest.approx(wilson(3, 7))
    assert once["estimator"].to_list() == ["pass_hat_k.unbiased, wilson", "pass_at_k.unbiased, wilson"]


def test_every_interval_is_that_of_its_own_name() -> None:
    """30 cases, 28 solved in all of three and two once: pass@3 is 100 %, by Wilson [88.6, 100], whatever k = 1 has."""
    found = metrics.reliability(frame(rows("a", counted({3: 28, 1: 2}, 3))))
    last = found.filter(metric="pass_at_k", k=3).to_dicts()[0]
    assert (last["estimate"], last["estimator"]) == (1.0, "pass_at_k.unbiased, wilson over cases")
    assert (last["low"], last["high"]) == pytest.approx(wilson(30, 30))
    assert last["low"] == pytest.approx(0.886, abs=1e-3)


def test_nobody_solved_in_all_of_three_is_not_known_for_sure() -> None:
    """2, 1, 0, 1, 0 and 0 of 3 solved: each case is one observation, and no end is carried over from another k."""
    found = metrics.reliability(frame(rows("a", counted({2: 1, 1: 2, 0: 3}, 3))))
    hats = found.filter(pl.col("metric") == "pass_hat_k")
    assert hats["estimate"].to_list() == pytest.approx([4 / 18, 1 / 18, 0])
    assert (hats["low"][2], hats["high"][2]) == pytest.approx(wilson(0, 6))
    two = wilson_over_cases([1 / 3, 0, 0, 0, 0, 0], [1] * 6, trials=9)
    assert (hats["low"][1], hats["high"][1]) == pytest.approx(two)
    assert found["reason"].null_count() == found.height


def test_the_cases_that_all_arms_share_are_counted() -> None:
    yes = [True, True]
    apart = frame(
        rows("m1", {"a": yes, "b": yes}), rows("m2", {"a": yes, "b": yes, "c": yes}), rows("m3", {"c": yes})
    )
    assert set(metrics.reliability(apart)["common"]) == {0}
    assert set(metrics.reliability(apart.filter(pl.col("driver") != "m3"))["common"]) == {2}
    assert set(metrics.reliability(apart.filter(pl.col("driver") == "m2"))["common"]) == {3}


def test_no_trials_make_empty_frames_of_the_same_columns() -> None:
    for made in (metrics.reliability, metrics.per_case, metrics.histogram, metrics.crossings):
        assert made(HAND.clear()).is_empty()
        assert made(HAND.clear()).schema == made(HAND).schema
        assert made(table("trials", [])).is_empty()


def test_arms_keep_their_order_and_nothing_of_each_other() -> None:
    """Also where a model is not said: each arm's rows are those it has alone."""
    b, a = rows("b", counted({2: 3, 1: 4}, 2)), rows("a", counted({2: 1, 0: 2}, 2))
    both = metrics.reliability(frame(b, a))
    assert both["driver"].unique(maintain_order=True).to_list() == ["b", "a"]
    alone = pl.concat([metrics.reliability(frame(b)), metrics.reliability(frame(a))])
    assert both.drop("common").equals(alone.drop("common"))


marks = st.lists(
    st.lists(st.sampled_from([True, False, None]), min_size=1, max_size=5), min_size=1, max_size=8
)


@settings(max_examples=60, deadline=None)
@given(marks, st.randoms())
def test_laws(made: list[list[bool | None]], random: Any) -> None:
    """Against a loop over cases; pass^k <= pass^1 <= pass@k; monotone where no case is lost; worst to best holds it;
    the order of rows does not matter."""
    given_rows = rows("a", {f"c{n}": each for n, each in enumerate(made)})
    found = metrics.reliability(frame(given_rows))
    random.shuffle(given_rows)
    assert metrics.reliability(frame(given_rows)).equals(found)
    judged = [[mark for mark in each if mark is not None] for each in made]
    hats, ats = curve(found), curve(found, "pass_at_k")
    first = hats[0]
    for k, (hat, at) in enumerate(zip(hats, ats, strict=True), start=1):
        values = [pass_hat_k(sum(each), len(each), k) for each in judged]
        known = [value for value in values if value is not None]
        if hat is None:
            assert not known or min(map(len, made)) < k
            continue
        assert hat == pytest.approx(sum(known) / len(known), abs=1e-12)
        if len(known) == len(made):
            assert first is not None
            assert at is not None
            assert hat <= first + 1e-12
            assert first <= at + 1e-12
    for row in found.filter(pl.col("estimate").is_not_null()).iter_rows(named=True):
        assert -1e-12 <= row["low"] <= row["high"] <= 1 + 1e-12
        assert row["low"] - 1e-12 <= row["estimate"] <= row["high"] + 1e-12
        if row["n"] == row["of"]:
            assert row["worst"] - 1e-12 <= row["estimate"] <= row["best"] + 1e-12
            assert row["worst"] <= row["best"] + 1e-12
    if all(mark is not None for each in made for mark in each):
        whole = [value for value in hats if value is not None]
        assert (np.diff(whole) <= 1e-12).all()
        assert set(found["complete"].to_list()[: len(whole)]) == {True}


def test_the_decay_is_the_mean_of_powers() -> None:
    """Half the cases at 1.0, half at 0.8, eight trials: pass^8 is 0.5 + 0.5 x 0.8^8 = 0.584. 0.9^8 = 0.430, which takes
    all cases for equally hard, lies outside the band."""
    rng = np.random.default_rng(8)
    of_cases = {f"c{n}": (rng.random(8) < (1.0 if n % 2 else 0.8)).tolist() for n in range(200)}
    last = metrics.reliability(frame(rows("a", of_cases))).filter(metric="pass_hat_k", k=8).to_dicts()[0]
    truth, wrong = 0.5 + 0.5 * 0.8**8, 0.9**8
    assert (truth, wrong) == (pytest.approx(0.584, abs=5e-4), pytest.approx(0.430, abs=5e-4))
    assert last["low"] <= truth <= last["high"]
    assert wrong < last["low"]


def test_the_published_figures_of_tau_bench() -> None:
    """50 airline tasks, 4 trials of gpt-4o with tool calls."""
    counts = {0: 14, 1: 12, 2: 10, 3: 4, 4: 10}
    trials = frame(rows("gpt-4o", counted(counts, 4)))
    assert curve(metrics.reliability(trials)) == pytest.approx([0.42, 0.2733, 0.22, 0.20], abs=5e-5)
    assert dict(metrics.histogram(trials).select("solved", "cases").iter_rows()) == counts


def test_the_table_shows_every_rate_with_interval_and_cases() -> None:
    text = str(tables.reliability(metrics.reliability(HAND)))
    (line,) = (line for line in text.splitlines() if line.startswith("k = 1"))
    assert "61% [" in line
    assert "3 of 4 cases" in line
    assert "8/12" in line


# ---- crossings -------------------------------------------------------------------------------------------------

STEADY = counted({2: 4, 0: 6}, 2)
"""Four of ten cases always, the others never: pass^1 = pass^2 = 0.4."""
SHAKY = counted({1: 10}, 2)
"""Every case every other time: pass^1 = 0.5, pass^2 = 0."""


def test_crossings_by_hand() -> None:
    """The shaky arm leads by 0.1 at k = 1 and lags by 0.4 at k = 2, whichever comes first."""
    for parts in ((rows("x", SHAKY), rows("y", STEADY)), (rows("y", STEADY), rows("x", SHAKY))):
        (row,) = metrics.crossings(frame(*parts)).to_dicts()
        assert (row["driver_a"], row["driver_b"], row["model_a"], row["scaffold_b"]) == (
            "x",
            "y",
            None,
            "once",
        )
        assert (row["k_last"], row["cases"]) == (2, 10)
        assert (row["first"], row["last"]) == (pytest.approx(0.1), pytest.approx(-0.4))
        # the differences of a case are -1/2 (four) or 1/2, and -1 or 0
        low, high = bootstrap_over_kinds([4, 6], [[-0.5, -1], [0.5, 0]])
        assert (row["first_low"], row["last_low"]) == pytest.approx(tuple(low), abs=0.11)
        assert (row["first_high"], row["last_high"]) == pytest.approx(tuple(high), abs=0.11)
        assert row["first_low"] < 0 < row["first_high"]
        assert row["last_high"] < 0
        assert not row["decided"]
        # ahead at k = 1 where fewer than five of ten draws are of the four; then it is behind unless none is
        chance = sum(math.comb(10, j) * 0.4**j * 0.6 ** (10 - j) for j in range(1, 5))
        assert row["share"] == pytest.approx(chance, abs=0.02)


def test_a_crossing_that_is_decided() -> None:
    """Enough cases: both leads are clear."""
    steady, shaky = counted({2: 200, 0: 400}, 2), counted({1: 600}, 2)
    (row,) = metrics.crossings(frame(rows("x", shaky), rows("y", steady))).to_dicts()
    assert (row["decided"], row["share"]) == (True, 1.0)
    assert row["first_low"] > 0 > row["last_high"]


def test_curves_that_meet_or_never_cross_are_none() -> None:
    same = rows("z", SHAKY)
    better = rows("w", counted({2: 10}, 2))
    assert metrics.crossings(frame(rows("x", SHAKY), same)).is_empty()
    assert metrics.crossings(frame(rows("x", SHAKY), better)).is_empty()
    assert metrics.crossings(frame(rows("x", {"c0": [True]}), rows("y", {"c0": [False]}))).is_empty()
    apart = rows("v", {f"other-{case}": each for case, each in STEADY.items()})
    assert metrics.crossings(frame(rows("x", SHAKY), apart)).is_empty()


def test_crossings_count_the_same_cases_at_both_ends() -> None:
    """A case that lost a trial to an exclusion counts at neither end, on neither side."""
    lost = {"lost": [True, None]}
    whole = {"lost": [False, False]}
    (row,) = metrics.crossings(frame(rows("x", SHAKY | lost), rows("y", STEADY | whole))).to_dicts()
    assert (row["first"], row["cases"]) == (pytest.approx(0.1), 10)


def test_one_case_has_no_interval() -> None:
    """2 of 3 against 5 of 8: ahead at k = 1 (0.667 to 0.625), behind at k = 3 (0 to 10/56)."""
    parts = rows("x", {"c": [True, True, False]}), rows("y", {"c": [True] * 5 + [False] * 3})
    (row,) = metrics.crossings(frame(*parts)).to_dicts()
    assert (row["first"], row["last"]) == (pytest.approx(1 / 24), pytest.approx(-10 / 56))
    assert (row["first_low"], row["last_high"], row["share"], row["decided"]) == (None, None, None, False)


PEERS = os.environ.get("AGENTBENCH_LAB_PEERS")


@pytest.mark.skipif(not PEERS, reason="AGENTBENCH_LAB_PEERS names no folder of other projects' files")
def test_the_published_runs_of_terminal_bench() -> None:
    """80 tasks, 5 runs, 13 submissions: pass^1 to pass^5 and pass@5, and the two Droids change places."""
    path = Path(PEERS or "") / "terminal-bench" / "tb_core_0_1_1_trials.csv"
    if not path.is_file():
        pytest.skip(f"{path.name} is not among the files")
    of_arms: dict[str, dict[str, list[bool | None]]] = {}
    with open(path, encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            solved = of_arms.setdefault(row["submission"], {}).setdefault(row["task"], [])
            solved.append(row["resolved"] == "1")
    trials = frame(*(rows(arm, cases) for arm, cases in of_arms.items()))
    found = metrics.reliability(trials)
    published = {
        "20250923_droid_claude-4-1-opus": ([0.5875, 0.5275, 0.4900, 0.4625, 0.4375], 0.6875),
        "20250924_droid_gpt-5": ([0.5250, 0.4450, 0.3937, 0.3550, 0.3250], 0.6625),
        "20250923_droid_claude-4-sonnet": ([0.5050, 0.4388, 0.4037, 0.3750, 0.3500], 0.65),
        "20250811_cursor-cli_claude-4-sonnet": ([0.2625, 0.1938, 0.1588, 0.1375, 0.1250], 0.40),
    }
    for arm, (hats, at) in published.items():
        of_arm = found.filter(pl.col("driver") == arm)
        assert curve(of_arm) == pytest.approx(hats, abs=1e-4)
        assert curve(of_arm, "pass_at_k")[-1] == pytest.approx(at, abs=1e-4)
    crossed = {(row["driver_a"], row["driver_b"]): row for row in metrics.crossings(trials).to_dicts()}
    droids = crossed["20250924_droid_gpt-5", "20250923_droid_claude-4-sonnet"]
    assert (droids["k_last"], droids["cases"], droids["decided"]) == (5, 80, False)
    assert (droids["first"], droids["last"]) == (pytest.approx(0.02), pytest.approx(-0.025))
    # each crossing is one of the curves, and the other pairs do not cross
    ends = {
        arm: (curve(of_arm)[0] or 0, curve(of_arm)[4] or 0) for (arm,), of_arm in found.group_by("driver")
    }
    crossing = {
        frozenset(pair)
        for pair in combinations(of_arms, 2)
        if (ends[pair[0]][0] - ends[pair[1]][0]) * (ends[pair[0]][1] - ends[pair[1]][1]) < -1e-9
    }
    assert {frozenset(pair) for pair in crossed} == crossing


def test_many_trials_of_a_case_are_resampled_in_parts() -> None:
    """70 trials: every column has its interval, and the last of them is that of the cases alone."""
    of_cases = counted({70: 20, 35: 20, 0: 20}, 70)
    found = metrics.reliability(frame(rows("a", of_cases))).filter(metric="pass_hat_k")
    assert found["k"].to_list() == list(range(1, 71))
    assert curve(found) == pytest.approx(np.array([20, 20, 20]) @ pass_hat_weights(70)[[0, 35, 70]] / 60)
    assert (found["low"] < found["estimate"]).all()
    assert (found["estimate"] < found["high"]).all()
