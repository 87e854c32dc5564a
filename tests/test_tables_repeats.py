"""Tables of pass^k, of curves that cross, and of how often cases are solved; and of what is in a suite."""

from __future__ import annotations

import polars as pl

from agentbench_lab import load_suite, tables

from .drawing import NASTY, crossing, histogram, reliability

CURVES = {"a": [0.5, 0.4], "b": [0.3, 0.2]}


def wide(table: tables.Table) -> int:
    """The columns that it takes of a terminal."""
    return max(map(len, str(table).splitlines()))


def test_each_k_has_its_interval_and_its_cases() -> None:
    """pass^k beside pass@k, both with intervals, over how many of the cases; no bounds where nothing is excluded."""
    table = tables.reliability(reliability(CURVES))
    assert table.columns == ["", ">pass^k", ">pass@k", ">over", ">judged"]
    assert table.rows == [
        "a",
        ["k = 1", "50% [40, 60]", "50% [40, 60]", "80 of 80 cases", "160/160"],
        ["k = 2", "40% [30, 50]", "60% [50, 70]", "80 of 80 cases", "160/160"],
        "b",
        ["k = 1", "30% [20, 40]", "30% [20, 40]", "80 of 80 cases", "160/160"],
        ["k = 2", "20% [10, 30]", "40% [30, 50]", "80 of 80 cases", "160/160"],
    ]
    assert table.notes[0].endswith("[95% interval, wilson over cases]")
    assert tables.reliability(reliability(CURVES).clear()).notes == ["no trials"]


def test_the_rarer_kind_of_interval_is_marked_where_it_stands() -> None:
    """And a reason stands below."""
    way = pl.when((pl.col("k") == 2) & (pl.col("metric") == "pass_hat_k"))
    frame = reliability({"a": [0.5, 0.0]}, cases=12).with_columns(
        estimator=way.then(pl.lit("pass_hat_k.unbiased, wilson")).otherwise("estimator"),
        reason=pl.lit("no case has 3 judged trials"),
    )
    table = tables.reliability(frame)
    assert [row[1] for row in table.rows] == ["50% [40, 60]", "0% [0, 10]*"]
    assert table.notes[0].endswith("[95% interval, wilson over cases; *: wilson]")
    assert "no case has 3 judged trials" in table.notes


def by_group(*arms: str, groups: int = 2) -> pl.DataFrame:
    """A `metrics.ladder`: 30, 40, ... % of 40 cases solved in each group, 10 points more by each further arm."""
    rows = [
        {
            "driver": arm, "model": None, "scaffold": "once", "evidence": "imported", "group": group, "metric": "passed",
            "estimate": 0.3 + (n + at) / 10, "low": 0.2 + (n + at) / 10, "high": 0.4 + (n + at) / 10, "n": 12 + 4 * (n + at),
            "of": 40, "asked": 40, "cases": 40, "reason": None,
        }
        for at, arm in enumerate(arms)
        for n, group in enumerate([*(f"g{n}" for n in range(groups)), "all"])
    ]  # fmt: skip
    return pl.DataFrame(rows, schema_overrides={"model": pl.String, "reason": pl.String})


def test_groups_are_told_apart() -> None:
    """A row a group with one arm; a heading a group and the best arm first with several; not one group, nor very many."""
    one = tables.groups(by_group("a"))
    assert one.columns == ["group", ">solved", ">cases"]
    assert one.rows == [["g0", "30% [20, 40] 12/40", "40"], ["g1", "40% [30, 50] 16/40", "40"]]
    two = tables.groups(by_group("a", "b"))
    assert two.columns == ["arm", ">solved"]
    assert two.rows == [
        "g0: 40 cases", ["b", "40% [30, 50] 16/40"], ["a", "30% [20, 40] 12/40"],
        "g1: 40 cases", ["b", "50% [40, 60] 20/40"], ["a", "40% [30, 50] 16/40"],
    ]  # fmt: skip
    assert tables.groups(by_group("a", groups=1)).notes == ["1 group: not told apart here"]
    assert tables.groups(by_group("a", groups=13)).rows == []
    assert tables.groups(by_group("a").clear()).notes == ["no trials"]


def test_what_is_missing_is_named() -> None:
    """Bounds, the cases that are short of trials, and the reason in place of a number."""
    table = tables.reliability(reliability({"a": [0.5, None]}, complete=False))
    assert table.columns[-1] == ">bounds of pass^k"
    assert table.rows[0] == [
        "k = 1",
        "50% [40, 60]",
        "50% [40, 60]",
        "78 of 80 cases",
        "158/160",
        "50% to 50%",
    ]
    assert table.rows[1][1:3] == ["not asked for 3 trials: c1", "–"]
    assert table.notes[-1] == "a: fewer than 1 judged trial in c7, c9"


def test_many_arms_have_one_row_each() -> None:
    """Best at the largest k first, at no more than five values of k, and no wider than a terminal."""
    curves = {f"harness number {n}": [0.3 + n / 20 - k / 100 for k in range(8)] for n in range(8)}
    table = tables.reliability(reliability(curves))
    assert table.columns == ["arm", ">pass^1", ">pass^2", ">pass^4", ">pass^8", ">cases", ">judged"]
    assert [row[0] for row in table.rows] == [f"harness number {n}" for n in reversed(range(8))]
    assert table.rows[0][1:] == [
        "65% [55, 75]", "64% [54, 74]", "62% [52, 72]", "58% [48, 68]", "80/80", "640/640",
    ]  # fmt: skip
    assert wide(table) <= 100


def test_a_crossing_is_a_row() -> None:
    """Both differences with intervals, the share of resamples that reverse, and what that decides."""
    table = tables.crossings(crossing("droid/gpt-5", "droid/sonnet-4"))
    assert table.rows == [
        ["droid + gpt-5", "droid + sonnet-4", "80", "+2.0 [−4.5, +8.5]", "−2.5 [−13.8, +8.8] (k = 5)", "37%", "not decided"]
    ]  # fmt: skip
    (note,) = table.notes  # what the row says is not said again
    assert "looked for among all" in note
    sure = tables.crossings(crossing("a", "b", share=0.99, decided=True))
    assert sure.rows[0][-2:] == ["99%", "decided"]
    one = tables.crossings(crossing("a", "b", share=None))
    assert one.rows[0][3:6] == ["+2.0", "−2.5 (k = 5)", "–"]
    assert tables.crossings(crossing("a", "b").clear()).notes == ["no two curves of pass^k cross"]


def test_the_surest_crossing_stands_first() -> None:
    """Decided ones first, then by how often the order reverses."""
    pairs = [crossing(f"a{n}", "b", share=n / 10) for n in range(8)]
    table = tables.crossings(pl.concat([*pairs, crossing("z", "b", share=0.2, decided=True)]))
    assert [row[0] for row in table.rows] == ["z", "a7", "a6", "a5", "a4", "a3", "a2", "a1", "a0"]
    assert wide(table) <= 100


def test_cases_by_how_often_they_are_solved() -> None:
    """tau-bench's airline: 14, 12, 10, 4 and 10 of 50 cases; always and never with their intervals."""
    table = tables.histogram(histogram({"gpt-4o": {4: [14, 12, 10, 4, 10]}}))
    assert table.columns == [
        "arm", ">trials", ">cases", ">0", ">1", ">2", ">3", ">4", ">every time", ">now and then", ">never",
    ]  # fmt: skip
    assert table.rows == [
        [
            "gpt-4o",
            "4",
            "50",
            "14",
            "12",
            "10",
            "4",
            "10",
            "20% [11, 33] 10/50",
            "26/50",
            "28% [17, 42] 14/50",
        ]
    ]
    assert tables.histogram(histogram({"a": {4: [1, 0, 0, 0, 0]}}).clear()).notes == ["no trials"]


def test_other_numbers_of_trials_have_their_own_row() -> None:
    """1 of 2 is not 1 of 4; a case without a judged trial is in no share; many trials have no column each."""
    table = tables.histogram(histogram({"a": {4: [1, 0, 0, 0, 1], 2: [0, 3, 0], 0: [2]}}))
    assert [row[:3] for row in table.rows] == [["a", "4", "2"], ["a", "2", "3"], ["a", "0", "2"]]
    assert table.rows[1][3:8] == ["0", "3", "0", "", ""]
    assert table.rows[2][-3:] == ["–", "–", "–"]
    assert "0 judged trials" in table.notes[-1]
    many = tables.histogram(histogram({"a": {20: [1] * 21}}))
    assert many.columns == ["arm", ">trials", ">cases", ">every time", ">now and then", ">never"]


def test_names_are_escaped() -> None:
    """A name is text in a page, whatever it contains."""
    for table in (
        tables.reliability(reliability({NASTY: [0.5, 0.4], "b": [0.1, 0.1]})),
        tables.crossings(crossing(NASTY, "b")),
        tables.histogram(histogram({NASTY: {1: [1, 1]}})),
    ):
        assert "<img" not in table._repr_html_()
        assert "<script" not in table._repr_html_()


def test_what_is_in_a_suite() -> None:
    """Ten rungs from the bottom, what each asks for, and all the cases."""
    suite = load_suite("ladder")
    table = tables.suite(suite)
    assert [row[0] for row in table.rows] == [f"TOOL-{n}" for n in range(10)]
    assert sum(int(row[2]) for row in table.rows) == len(suite.cases)
    assert table.rows[0][1] == "Direct dispatch"
    assert f"{len(suite.cases)} cases in 10 groups; digest {suite.digest[:16]}" in table.notes[0]
