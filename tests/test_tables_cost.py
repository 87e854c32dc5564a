"""Tables of money, use, the frontier, failing calls, and published numbers."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from agentbench_lab import charts, load_run, tables

from .drawing import NASTY, arm, cost, frontier


def wide(table: tables.Table) -> int:
    """The columns that it takes of a terminal."""
    return max(map(len, str(table).splitlines()))


def test_money_by_arm() -> None:
    """Spent is a sum and has no interval; per trial, per solved and on failures have one; n/of says what is known."""
    table = tables.cost(cost({"a": 0.2, "b": None}))
    assert table.columns == [
        "arm",
        ">spent",
        ">per trial",
        ">per solved",
        ">on failures",
        ">solved",
        ">cost known",
    ]
    assert table.rows == [
        ["a", "$2.00", "$0.0500 [0.0400, 0.0625]", "$0.200 [0.160, 0.250]", "75% [60, 94]", "10", "40/40"],
        ["b", "$4.00", "$0.100 [0.0800, 0.125]", "–", "75% [60, 94]", "0", "40/40"],
    ]
    assert "–: no trial was solved (b)" in table.notes
    assert table.notes[-1] == "intervals: ratio of sums, bootstrap over cases"
    assert wide(table) <= 100
    assert tables.cost(cost({"a": 0.2}).clear()).notes == ["no trials"]


def test_what_is_known_in_part_is_a_lower_bound() -> None:
    """≥ at the sums that can only be higher; a mean is that of the trials that are known."""
    table = tables.cost(cost({"a": 0.2}, partly=["a"]))
    assert table.rows[0][1:4] == ["≥ $2.00 30/40", "$0.0500 [0.0400, 0.0625] 30/40", "≥ $0.200 30/40"]
    assert table.rows[0][-1] == "30/40"
    assert table.rows[0][4] == "75% [60, 94] 30/40"
    assert any(
        note.startswith("≥: a lower bound, the cost of some trials is unknown") for note in table.notes
    )


def test_nothing_known_is_said_once_for_all_arms() -> None:
    """Thirteen arms with one reason are one note, not thirteen."""
    names = {f"arm {n}": None for n in range(13)}
    frame = cost(names, reason="the cost is not known of any trial").with_columns(
        pl.when(pl.col("unit") == "usd").then(None).otherwise(pl.col(name)).alias(name)
        for name in ("estimate", "low", "high", "total")
    )
    frame = frame.with_columns(
        pl.when(pl.col("estimate").is_null())
        .then(pl.lit("the cost is not known of any trial"))
        .alias("reason")
    )
    table = tables.cost(frame)
    assert {cell for row in table.rows for cell in row[1:4]} == {"–"}
    assert "–: the cost is not known of any trial (all 13 arms)" in table.notes


def test_the_cheapest_stands_first() -> None:
    """As in the figure beside it; those without a number last."""
    table = tables.cost(cost({"none": None, "dear": 0.5, "cheap": 0.2}))
    assert [row[0] for row in table.rows] == ["cheap", "dear", "none"]


def test_no_end_is_said() -> None:
    """An infinite upper end is no number."""
    frame = cost({"a": 0.2}).with_columns(
        pl.when(pl.col("metric") == "per_solved").then(math.inf).otherwise(pl.col("high")).alias("high")
    )
    assert tables.cost(frame).rows[0][3] == "$0.200 [0.160, no end]"


def test_use_by_trial() -> None:
    """Only what some source knows is a column; the others are named."""
    table = tables.usage(cost({"a": 0.2, "b": 0.3}, partly=["b"]))
    assert table.columns == ["arm", ">fresh input", ">seconds"]
    assert table.rows == [
        ["a", "12.3k [9,876, 15.4k]", "12.5 [10, 15.6]"],
        ["b", "12.3k [9,876, 15.4k] 30/40", "12.5 [10, 15.6] 30/40"],
    ]
    assert "not known of any trial: cache read, cache write, output, model calls, tool calls" in table.notes
    assert tables.usage(cost({"a": 0.2}).clear()).notes == ["no trials"]


def test_the_frontier_by_arm() -> None:
    """The most accurate first; who beats whom, and how sure a place is."""
    table = tables.frontier(
        frontier({"cheap": (0.4, 0.1), "good/m": (0.8, 0.5), "bad": (0.3, 0.6), "none": (0.5, None)})
    )
    assert [row[0] for row in table.rows] == ["good", "none", "cheap", "bad"]
    assert table.rows[0][1:] == [
        "80% [75, 85]",
        "$0.500 [0.455, 0.550]",
        "40/40",
        "20",
        "on the frontier",
        "83%",
    ]
    assert table.rows[1][1:] == ["50% [45, 55]", "–", "0/40", "–", "not known", "–"]
    assert table.rows[3][-2:] == ["beaten by cheap", "10%"]
    assert "–: the cost is not known of any trial (none)" in table.notes
    assert wide(table) <= 100
    partly = tables.frontier(frontier({"a": (0.4, 0.1)}, partly=["a"]))
    assert partly.rows[0][2:4] == ["$0.100 [0.0909, 0.110] 30/40", "30/40"]
    assert partly.rows[0][-2:] == ["not known", "–"]
    assert "n/of: the mean of the n costs that are known, with which an arm has no place" in partly.notes
    assert tables.frontier(frontier({"a": (0.4, 0.1)}).clear()).notes == ["no trials"]


KINDS = ("malformed", "undeclared", "schema_error", "tool_error", "protocol_error", "any")


def errors(name: str, counts: dict[str, int | None], of: int, reason: str | None = None) -> pl.DataFrame:
    """A `metrics.tool_errors` of one arm; None is a kind that the source does not tell."""
    rows = [
        {
            **arm(name), "metric": kind, "n": n, "of": of, "estimate": n / of if n is not None and of else None,
            "low": 0.0 if n is not None and of else None, "high": 0.2 if n is not None and of else None,
            "estimator": "bootstrap over cases", "reason": reason if n is None or not of else None,
        }
        for kind, n in counts.items()
    ]  # fmt: skip
    schema: dict[str, Any] = {"model": pl.String, "reason": pl.String, "n": pl.Int64}
    return pl.DataFrame(
        rows, schema_overrides=schema | dict.fromkeys(("estimate", "low", "high"), pl.Float64)
    )


def test_calls_that_went_wrong() -> None:
    """All kinds in words, each n of the calls, any of them first; what the source does not tell says so."""
    table = tables.tool_errors(errors("a", dict.fromkeys(KINDS, 1) | {"any": 5}, 50))
    assert table.rows[0] == ["any of them", "10% [0, 20]", "5/50", ""]
    assert ["the tool said no", "2% [0, 20]", "1/50", "tool_error"] in table.rows
    assert len(table.rows) == 6
    only = tables.tool_errors(
        errors("a", {"tool_error": None, "any": 5}, 50, "the source does not tell the kinds of errors apart")
    )
    assert only.rows[1] == [
        "the tool said no",
        "the source does not tell the kinds of errors apart",
        "–/50",
        "tool_error",
    ]
    both = tables.tool_errors(
        pl.concat([errors("a", {"any": 5}, 50), errors("b", {"any": 0}, 0, "no call was made")])
    )
    assert both.rows == [
        "a",
        ["any of them", "10% [0, 20]", "5/50", ""],
        "b",
        ["any of them", "no call was made", "", ""],
    ]
    none = tables.tool_errors(pl.concat([errors(name, {"any": 0}, 0, "no call was made") for name in "ab"]))
    assert none.rows == [["any of them", "no call was made"]]
    assert tables.tool_errors(errors("a", {"any": 5}, 50).clear()).notes == ["no trials"]


def source(*numbers: Any, imported: bool = True) -> Any:
    """A run whose source published these numbers."""
    return SimpleNamespace(
        card=SimpleNamespace(imported=SimpleNamespace(published=numbers) if imported else None)
    )


def number(
    driver: str, metric: str, unit: str, published: float, rows: float | None, follows: bool, note: str = ""
) -> Any:
    """One of them."""
    return SimpleNamespace(
        driver=driver,
        model=None,
        metric=metric,
        unit=unit,
        published=published,
        rows=rows,
        follows=follows,
        note=note,
    )


def test_published_numbers_beside_their_rows() -> None:
    """Those that do not follow stand first, as closely as they are printed; all of them are counted."""
    run = source(
        number("a", "accuracy", "share", 0.4125, 0.4125, True),
        number("b", "cost", "usd", 360.62, 1360.5, False, "another run"),
        number("", "calls", "calls", 38.042, None, False),
    )
    table = tables.published(run)
    assert table.rows == [
        ["b", "cost", "$360.62", "$1,360.5", "NO", "another run"],
        ["all of it", "calls", "38.042 calls", "–", "NO", ""],
        ["a", "accuracy", "41.25%", "41.25%", "yes", ""],
    ]
    assert table.notes == ["1 of 3 published numbers follow from the published rows"]
    assert len(tables.published(run, follows=False).rows) == 2
    assert len(tables.published(run, follows=True).rows) == 1


def test_published_numbers_without_an_explanation_have_no_column_for_it() -> None:
    table = tables.published(source(number("a", "stderr", "share", 0.0016, 0.0155121, False)))
    assert table.columns == ["arm", "metric", ">published", ">its rows give", "follows"]
    assert table.rows == [["a", "stderr", "0.16%", "1.551%", "NO"]]


def test_arms_with_contradicted_numbers_are_named() -> None:
    """An error bar that does not follow is reported in the table, and casts no doubt on the number that it belongs to."""
    run = load_run("terminal-bench-core-0.1.1")
    names = ("claude-opus-4-1", "claude-sonnet-4", "Qwen3-Coder-480B")
    assert tables.doubted(run) == {("Orchestrator", name) for name in names}
    line = str(tables.contradicted(run))
    assert line.startswith(
        "PUBLISHED OTHERWISE: Orchestrator claude-sonnet-4: accuracy: published 36.96%, rows give 36%; "
    )
    assert "stderr" not in line
    for fine in (load_run("ladder-floors"), load_run("swe-bench-verified-gemini-3-pro")):
        assert (tables.doubted(fine), str(tables.contradicted(fine))) == (frozenset(), "")


@pytest.mark.parametrize(
    ("run", "why"),
    [(source(), "the source publishes no numbers"), (source(imported=False), "the run was made here")],
)
def test_nothing_published_says_so(run: Any, why: str) -> None:
    """An empty table with its reason, not an error."""
    table = tables.published(run)
    assert table.rows == []
    assert table.notes[0].startswith(why)
    assert str(table)


def test_names_are_escaped() -> None:
    """A name is text in a page, whatever it contains."""
    for table in (
        tables.cost(cost({NASTY: 0.1})),
        tables.usage(cost({NASTY: 0.1})),
        tables.frontier(frontier({NASTY: (0.1, 0.1)})),
        tables.tool_errors(pl.concat([errors(name, {"any": 5}, 50) for name in (NASTY, "b")])),
        tables.published(source(number(NASTY, NASTY, "", 1, 2, False, NASTY))),
    ):
        assert "<img" not in table._repr_html_()


def test_of_several_arms_counted_costs_are_said_to_be_those_of_one() -> None:
    """Beside 4,200 trials of seven arms, `600 costs` would be too few."""
    way = "ratio of sums, bootstrap; 600 costs by p.csv on 2026-01-01"
    for arms, said in (
        ({"a": 1.0}, "bootstrap; 600 costs by"),
        ({"a": 1.0, "b": 2.0}, "bootstrap; per arm, 600 costs by"),
    ):
        frame = cost(arms).with_columns(pl.lit(way).alias("estimator"))
        assert said in tables.cost(frame).notes[-1]
        assert said in " ".join(charts.cost(frame).to_dict()["title"]["subtitle"])
        places = frontier({arm: (0.5, dollars) for arm, dollars in arms.items()})
        places = places.with_columns(pl.lit(way).alias("estimator"))
        assert said in tables.frontier(places).notes[-1]
        assert said in " ".join(charts.frontier(places).to_dict()["title"]["subtitle"])


def test_a_column_that_no_gate_asks_for_has_one_precision() -> None:
    places = frontier({"a": (0.496, 1.0), "b": (0.49, 2.0), "c": (0.997, 3.0)})
    assert [row[1].split()[0] for row in tables.frontier(places).rows] == ["99.7%", "50%", "49%"]
