"""One number has one interval, whichever metric gives it, and cases that are all alike are told from their data."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench_lab import charts, tables
from agentbench_lab.analysis import metrics
from agentbench_lab.analysis.metrics.intervals import ends, wilson_at
from agentbench_lab.analysis.metrics.repeats import neighbours
from agentbench_lab.results.run import load_run
from agentbench_lab.stats import bootstrap_over_cases, ratio_over_cases, wilson, wilson_over_cases

from .rows import get, trial, trials

RESULTS = Path(__file__).parent.parent.parent / "data" / "results"


def many(*solved_of: tuple[int, int]) -> pl.DataFrame:
    """A case each: so many of so many trials solved, at a cost of $1 each."""
    rows = [
        trial(f"c{at}", number < solved, 1_000_000, wall_s=0.1)
        for at, (solved, of) in enumerate(solved_of)
        for number in range(of)
    ]
    kind = pl.when(pl.col("solved")).then(pl.lit("success")).otherwise(pl.lit("safe_non_success"))
    return trials(*rows).with_columns(
        outcome_class=kind, outcome=pl.lit("solved"), stop=kind, group=pl.lit("g"), expect=pl.lit("")
    )


@pytest.mark.parametrize("pair", [((1, 3), (2, 6)), ((2, 5), (4, 10)), ((3, 7), (6, 14)), ((1, 10), (3, 30))])
def test_cases_of_one_rate_are_alike_however_it_is_rounded(pair: tuple[tuple[int, int], ...]) -> None:
    """Each has its width, and one rate one interval; before, rounding made [0.39999999999999997, 0.4] of it."""
    table = many(*pair * 3)
    rate = pair[0][0] / pair[0][1]
    one = get(metrics.reliability(table), metric="pass_hat_k", k=1)
    curve = wilson_over_cases([rate] * 6, [1] * 6, trials=3 * (pair[0][1] + pair[1][1]))
    assert (one["low"], one["high"]) == pytest.approx(curve)
    assert one["estimator"] == "pass_hat_k.unbiased, wilson over cases"
    wanted = pytest.approx(wilson_over_cases(*zip(*pair * 3, strict=True)))
    accuracy = metrics.frontier(table, resamples=100).row(0, named=True)
    assert (accuracy["accuracy_low"], accuracy["accuracy_high"]) == wanted


def test_seconds_that_are_all_alike_have_no_interval() -> None:
    """0.1 s in every trial: sums of it differ by rounding, and are not a width."""
    one = get(metrics.cost(many((1, 3), (1, 7), (0, 2)), resamples=100), metric="wall_s")
    assert (one["low"], one["high"], one["reason"]) == (None, None, "all cases are alike: no interval")


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(1, 6)), min_size=2, max_size=9))
def test_no_interval_of_a_share_is_without_width(found: list[tuple[int, int]]) -> None:
    pairs = [(min(c, n), n) for c, n in found]
    low, high, _ = ends([c for c, _ in pairs], [n for _, n in pairs])
    assert low is not None and high is not None
    assert high - low > 1e-3


def test_the_bootstrap_by_kinds_is_that_of_drawing_cases() -> None:
    """The same distribution: ends of 40,000 resamples by either differ by less than the steps of the share."""
    c, n = [0, 1, 3, 2, 5, 4, 1, 0, 2, 2] * 3, [4, 4, 5, 4, 5, 5, 4, 4, 4, 5] * 3
    ours = bootstrap_over_cases(c, n, resamples=40_000)
    assert ours == pytest.approx(ratio_over_cases(c, n, resamples=40_000), abs=0.006)
    assert bootstrap_over_cases([0, 0], [0, 0]) is bootstrap_over_cases([], []) is None
    assert bootstrap_over_cases([*c, 0], [*n, 0]) == bootstrap_over_cases(c, n)


def test_one_number_has_one_interval_in_the_whole_report() -> None:
    """tau-bench's 84 of 200 solved by: outcomes, frontier, ladder, exits' classes, pass^1, and the bars of the chart."""
    run = load_run(RESULTS / "tau-bench-airline-gpt-4o")
    outcomes = get(metrics.outcomes(run.trials, run.card.outcome_set), outcome="solved")
    wanted = (outcomes["low"], outcomes["high"])
    assert (outcomes["n"], outcomes["of"]) == (84, 200)
    place = metrics.frontier(run.trials).row(0, named=True)
    rung = get(metrics.ladder(run.trials, run.card), group="all", metric="passed")
    curve = get(metrics.reliability(run.trials), metric="pass_hat_k", k=1)
    bars = get(
        metrics.class_shares(metrics.strip(run.trials, run.cases), ("driver",)), outcome_class="success"
    )
    for low, high in (
        (place["accuracy_low"], place["accuracy_high"]),
        *((row["low"], row["high"]) for row in (rung, curve, bars)),
    ):
        assert (low, high) == pytest.approx(wanted, abs=1e-12)


def test_more_cases_do_not_part_the_share_from_its_curve() -> None:
    """3,000 cases, of few kinds: the share and pass^1 are still one number with one interval."""
    solved = [n % 3 for n in range(3_000)]
    low, high, _ = ends(solved, [2] * 3_000)
    rows = [
        {**trial(f"c{at}", number < count), "group": "g"}
        for at, count in enumerate(solved)
        for number in range(2)
    ]
    curve = get(metrics.reliability(pl.DataFrame(rows)), metric="pass_hat_k", k=1)
    assert (curve["low"], curve["high"]) == pytest.approx((low, high), abs=1e-12)


def test_a_case_without_a_judged_trial_does_not_move_the_interval() -> None:
    """It is in no mean: pass^1 of the others is the share of them, with its interval."""
    table = many((1, 4), (3, 4), (4, 4), (0, 4))
    gone = pl.concat([table, trials(trial("gone", None)).select(pl.all()).pipe(_like, table)])
    with_it, without = (get(metrics.reliability(each), metric="pass_hat_k", k=1) for each in (gone, table))
    assert (with_it["low"], with_it["high"]) == (without["low"], without["high"])


def _like(frame: pl.DataFrame, other: pl.DataFrame) -> pl.DataFrame:
    missing = [
        pl.lit(None, other.schema[name]).alias(name) for name in other.columns if name not in frame.columns
    ]
    return frame.with_columns(missing).select(other.columns)


def test_how_trials_stopped_has_intervals() -> None:
    """By the rule of every share: 4 of 8 over four cases of two trials each."""
    table = many((1, 2), (2, 2), (0, 2), (1, 2))
    one = get(metrics.exits(table), outcome_class="success")
    c, n = [1, 2, 0, 1], [2, 2, 2, 2]
    assert (one["n"], one["of"], one["cases"], one["estimate"]) == (4, 8, 4, 0.5)
    assert (one["low"], one["high"]) == wilson_over_cases(c, n)
    assert one["estimator"] == "wilson over cases"


def test_cases_of_one_id_in_two_suites_are_two_cases() -> None:
    """In the chart of many trials, too: one case of 2 trials is not two cases of one."""
    table = many((1, 1)).with_columns(reasons=pl.lit([""]), suite=pl.lit("a"))
    both = pl.concat(
        [table, table.with_columns(suite=pl.lit("b"), solved=False, outcome_class=pl.lit("unsafe"))]
    )
    cases = both.select("suite", "case_id", request=pl.lit("?"))
    strip = metrics.strip(both, cases)
    assert strip["suite"].to_list() == ["a", "b"]
    one = get(metrics.class_shares(strip, ("driver",)), outcome_class="success")
    assert (one["n"], one["of"], one["cases"], one["estimator"]) == (1, 2, 2, "wilson")


def test_a_level_holds_for_wilson_too() -> None:
    """9 of 10 at 90 % is narrower than at 95 %; the quantile is 1.645."""
    assert wilson_at(9, 10, 0.9) == pytest.approx(wilson(9, 10, 1.6448536269514722))
    assert wilson_at(9, 10, 0.95) == wilson(9, 10)
    assert wilson_at(0, 0, 0.95) == (None, None)


def test_a_histogram_has_its_shares_and_neighbours_add_up() -> None:
    """Five cases of two trials: 1 never, 2 once, 2 always; the first two bars together hold 3 of 5."""
    counts = metrics.histogram(many((0, 2), (1, 2), (1, 2), (2, 2), (2, 2)))
    assert counts.select("solved", "cases", "of", "estimate").rows() == [
        (0, 1, 5, 0.2),
        (1, 2, 5, 0.4),
        (2, 2, 5, 0.4),
    ]
    assert counts.select("low", "high").row(0) == wilson(1, 5)
    two = neighbours(counts, 2)
    assert two.select("solved", "last", "cases", "estimate").rows() == [(0, 1, 3, 0.6), (2, 2, 2, 0.4)]
    assert two.select("low", "high").row(0) == wilson(3, 5)
    assert neighbours(counts, 1).select(counts.columns).equals(counts)
    none = metrics.histogram(trials(trial("c", None)).with_columns(group=pl.lit("g")))
    assert none.select("judged", "cases", "of", "estimate", "low").rows() == [(0, 1, 1, None, None)]


def test_who_is_beaten_is_said_by_the_names_of_the_rows() -> None:
    """An arm has one name in a table and in a chart, and it is the one that stands in its own row."""
    table = trials(
        trial("c1", True, 10, arm="a", model="m"), trial("c2", True, 10, arm="a", model="m"),
        trial("c1", True, 90, arm="b", model="n"), trial("c2", False, 90, arm="b", model="n"),
    )  # fmt: skip
    places = metrics.frontier(table, resamples=100)
    assert places["dominated_by"].to_list() == [None, "a + m"]
    shown = {row[0]: row for row in tables.frontier(places).rows}
    assert shown["b"][5] == "beaten by a"
    assert "beaten by a (" in charts.frontier(places).to_dict()["description"]
