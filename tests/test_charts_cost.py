"""Cost per solved and the frontier by their specifications."""

from __future__ import annotations

import itertools
import json
import math

import polars as pl
import pytest
import vl_convert

from agentbench_lab import charts, tables
from agentbench_lab.charts.theme import money_axis
from agentbench_lab.charts.words import short_names, shortened, usd

from .drawing import NASTY, cost, frontier
from .test_charts import encodings, lines
from .test_charts_repeats import domains, drawn

ARMS = {"cheap": 0.2, "dear": 0.5, "vain": None}


def test_cost_per_solved_is_a_claim_with_intervals() -> None:
    """The cheapest on top, each with its interval and how many were solved; what has no number says why in its row."""
    spec = charts.cost(cost(ARMS)).to_dict()
    assert spec["title"]["text"] == [
        "A solved trial costs $0.200 with cheap, 2.5 times as much with dear ($0.500)"
    ]
    bars = {row["arm"]: row for row in drawn(spec, "words", "estimate")}
    assert list(bars) == ["cheap", "dear", "vain"]
    assert bars["cheap"]["words"] == "$0.200 [$0.160, $0.250], 10 solved"
    assert (bars["vain"]["estimate"], bars["vain"]["words"]) == (None, "no trial was solved")
    assert "failures too, divided by the trials solved" in lines(spec)
    assert "95% interval (ratio of sums, bootstrap over cases)" in lines(spec)
    assert "Without a number: vain (no trial was solved)." in lines(spec)
    assert "Evidence: imported" in lines(spec)
    assert "dear: $0.500 [$0.400, $0.625], 10 solved." in spec["description"]
    (domain,) = domains(spec, "x", "estimate")
    assert domain[0] == 0
    assert domain[1] > 0.625
    assert "ogarithmic" not in json.dumps(spec)
    assert "NaN" not in vl_convert.vegalite_to_svg(spec)


def test_a_lower_bound_is_hollow() -> None:
    """Where some cost is unknown the point is empty, has no interval, and is called at least so much."""
    spec = charts.cost(cost({"a": 0.2, "b": 0.5}, partly=["b"])).to_dict()
    bars = {row["arm"]: row for row in drawn(spec, "words", "estimate")}
    assert (bars["a"]["bound"], bars["b"]["bound"]) == ("no", "yes")
    assert bars["b"]["words"] == "≥ $0.500, 10 solved, 30 of 40 costs known"
    assert (bars["b"]["from"], bars["b"]["to"]) == (None, None)
    (fill,) = [one for one in encodings(spec, "fill") if "condition" in one]
    assert fill["condition"] == {"test": "datum.bound === 'yes'", "value": "transparent"}
    assert "Hollow, ≥: a lower bound" in lines(spec)
    assert spec["title"]["text"] == ["A solved trial costs $0.200 with a"]
    assert "Not in the title: b." in lines(spec)
    alone = charts.cost(cost({"a": 0.003}, partly=["a"])).to_dict()
    assert " ".join(alone["title"]["text"]) == (
        "What a solved trial costs is not known: a tells the cost of 30 of 40 trials"
    )


def test_arms_whose_published_numbers_do_not_follow_are_marked_and_in_no_title() -> None:
    """A headline does not rest on rows that contradict what their own source printed."""
    spec = charts.cost(cost({"a": 0.2, "b": 0.5, "c/m": 9.0}), doubted={("c", "m")}).to_dict()
    assert spec["title"]["text"] == ["A solved trial costs $0.200 with a, 2.5 times as much with b ($0.500)"]
    assert "Not in the title: c †." in lines(spec)
    assert "†: a published number of this arm does not follow from its rows." in lines(spec)
    places = frontier({"cheap": (0.4, 0.1), "good": (0.8, 0.5), "odd/m": (0.9, 0.9)})
    drawing = charts.frontier(places, doubted={("odd", "m")}).to_dict()
    assert " ".join(drawing["title"]["text"]) == (
        "3 of 3 arms are on the frontier, from cheap (40% at $0.100 a trial) to good (80% at $0.500 a trial)"
    )
    assert "†: a published number" in lines(drawing)


def test_what_all_of_many_arms_are_called_is_said_once() -> None:
    """The telling part of a name is not cut away for the part that all share."""
    names = {f"mini-swe-agent/Claude {n} Sonnet (20250514)": (n / 10, n / 10) for n in range(1, 9)}
    spec = charts.frontier(frontier(names)).to_dict()  # type: ignore[arg-type]
    assert "All arms: mini-swe-agent." in lines(spec)
    points = drawn(spec, "accuracy", "name")
    assert {row["name"].split(" · ")[0] for row in points} == {name.split("/")[1] for name in names}


def test_a_logarithmic_axis_is_said() -> None:
    """Only where costs differ more than thirtyfold, in the subtitle and at the axis."""
    spec = charts.cost(cost({"a": 0.01, "b": 1.0})).to_dict()
    assert "Logarithmic axis." in lines(spec)
    scales = [one["scale"] for one in encodings(spec, "x") if "scale" in one]
    assert [one["type"] for one in scales] == ["log"]
    assert [one["title"] for one in encodings(spec, "x") if one.get("title")] == [
        "dollars per solved trial, logarithmic axis"
    ]
    assert "NaN" not in vl_convert.vegalite_to_svg(spec)


def test_an_interval_without_an_end_runs_to_the_edge() -> None:
    """In some resamples nothing is solved: the cost has no upper end, and the words say so."""
    frame = cost({"a": 0.2, "b": 0.4}).with_columns(
        pl.when((pl.col("driver") == "b") & (pl.col("metric") == "per_solved"))
        .then(math.inf).otherwise(pl.col("high")).alias("high")
    )  # fmt: skip
    spec = charts.cost(frame).to_dict()
    (row,) = [row for row in drawn(spec, "words", "estimate") if row["arm"] == "b"]
    assert row["words"] == "$0.400 [$0.320, no end], 10 solved"
    assert row["to"] == domains(spec, "x", "estimate")[0][1]
    assert "Infinity" not in json.dumps(spec)


@pytest.mark.parametrize("reason", ["no trial was solved", "the cost is not known of any trial"])
def test_without_any_cost_a_sentence_stands_in_the_figures_place(reason: str) -> None:
    """Never an error, never a zero: the reason."""
    spec = charts.cost(cost({"a": None, "b": None}, reason=reason)).to_dict()
    assert spec["title"]["text"] == ["What a solved trial costs is not known"]
    said = f"{reason.capitalize()}."
    assert said in spec["description"]
    assert said in vl_convert.vegalite_to_svg(spec)
    assert charts.cost(cost(ARMS).clear()).to_dict()["title"]["text"] == ["No trials"]


def test_a_free_model_is_drawn_at_zero() -> None:
    """0 is a price: the arm stands at the left end, and is compared with no factor."""
    spec = charts.cost(cost({"free": 0.0, "paid": 0.5})).to_dict()
    assert spec["title"]["text"] == ["A solved trial costs $0 with free, $0.500 with paid"]
    assert next(row["estimate"] for row in drawn(spec, "words", "estimate")) == 0
    spec = charts.cost(cost({"free": 0.0})).to_dict()
    assert "NaN" not in vl_convert.vegalite_to_svg(spec)


def test_many_arms_are_cut_and_counted() -> None:
    """50,000 rows of a frame are at most forty bars."""
    spec = charts.cost(cost({f"arm {n}": 0.1 + n / 100 for n in range(7200)})).to_dict()
    assert len(drawn(spec, "words", "estimate")) == 40
    assert len(json.dumps(spec)) < 200_000
    assert "Drawn: 40 of 7,200 arms, the cheapest; 50,400 rows in, 40 points drawn." in lines(spec)


PLACES = {"cheap": (0.4, 0.1), "good": (0.8, 0.5), "bad": (0.3, 0.6), "unknown": (0.5, None)}


def test_the_frontier_is_a_claim_with_both_intervals() -> None:
    """Crosses, a line through the arms that none beats, and how sure each is to be one of them."""
    spec = charts.frontier(frontier(PLACES)).to_dict()
    assert " ".join(spec["title"]["text"]) == (
        "2 of 3 arms are on the frontier, from cheap (40% at $0.100 a trial) to good (80% at $0.500 a trial)"
    )
    points = {row["arm"]: row for row in drawn(spec, "accuracy", "words")}
    assert list(points) == ["good", "cheap", "bad"]
    assert [row["on"] for row in points.values()] == ["yes", "yes", "no"]
    assert [row["words"] for row in points.values()] == ["good · 83%", "cheap · 83%", "bad · 10%"]
    assert points["bad"]["by"] == "cheap"
    assert all(row["accuracy_low"] < row["accuracy"] < row["accuracy_high"] for row in points.values())
    assert all(row["cost_low"] < row["cost"] < row["cost_high"] for row in points.values())
    stairs = [row for row in drawn(spec, "n", "cost") if "words" not in row]
    assert [(row["cost"], row["accuracy"]) for row in stairs][:2] == [(0.1, 0.4), (0.5, 0.8)]
    assert set(map(tuple, domains(spec, "y", "accuracy"))) == {(0, 1)}
    assert "Not drawn: unknown (the cost is not known of any trial)." in lines(spec)
    assert "bad: 30% [25%, 35%] at $0.600 [$0.545, $0.660] a trial, beaten by cheap" in spec["description"]
    tips = {tip["field"] for each in encodings(spec, "tooltip") for tip in each}
    assert {"membership", "by", "accuracy_low", "cost_high"} <= tips
    assert "NaN" not in vl_convert.vegalite_to_svg(spec)


def test_labels_of_the_frontier_do_not_lie_over_each_other() -> None:
    """Six names, or thirteen numbers with their names beside the plot: no two boxes overlap."""
    for count in (6, 13):
        places = {f"harness-{n}": (0.3 + 0.02 * (n % 4), 0.1 + 0.015 * n) for n in range(count)}
        spec = charts.frontier(frontier(places)).to_dict()
        points = drawn(spec, "label_x", "label_y", "words")
        boxes = [(row["label_x"], row["label_y"], row["label_x"] + 5.9 * len(row["words"])) for row in points]
        for (left, y, right), (left2, y2, right2) in itertools.combinations(boxes, 2):
            assert right <= left2 or right2 <= left or abs(y - y2) >= 12
        if count > 6:
            assert [row["words"] for row in points] == [str(n) for n in range(1, 14)]
            assert [row["name"].split(" ")[0] for row in points] == [row["arm"] for row in points]
            lines_of = sorted(row["line"] for row in points)
            assert min(low - high for high, low in itertools.pairwise(lines_of)) >= 14


def test_a_cost_that_is_known_in_part_is_hollow() -> None:
    """It is the mean of the trials that say what they cost."""
    spec = charts.frontier(frontier(PLACES, partly=["good"])).to_dict()
    points = {row["arm"]: row["fill"] for row in drawn(spec, "accuracy", "words")}
    assert points["good"] == "transparent"
    assert points["cheap"] != "transparent"
    assert points["cheap"] != "transparent"
    assert "Hollow: only some costs are known" in lines(spec)
    assert "good" not in " ".join(spec["title"]["text"])
    (words,) = [row["words"] for row in drawn(spec, "accuracy", "words") if row["arm"] == "good"]
    assert words == "good · 30 of 40 costs"
    alone = charts.frontier(frontier({"good": (0.8, 0.5)}, partly=["good"])).to_dict()
    assert alone["title"]["text"] == ["The frontier is not known: good tells the cost of 30 of 40 trials"]


def test_one_arm_or_none_on_the_frontier() -> None:
    """One arm is a fact about it; one that beats all says how sure; none with both numbers is a sentence."""
    one = charts.frontier(frontier({"a": (0.5, 0.1)})).to_dict()
    assert one["title"]["text"] == ["a solves 50% at $0.100 a trial"]
    # of one arm, being beaten by no other says nothing
    assert [row["words"] for row in drawn(one, "words", "label_x")] == ["a"]
    assert not drawn(one, "accuracy", "n") and "frontier" not in lines(one)
    (row,) = tables.frontier(frontier({"a": (0.5, 0.1)})).rows
    assert row[-2:] == ["the only arm", "–"]
    two = charts.frontier(frontier({"a": (0.5, 0.1), "b": (0.4, 0.2)})).to_dict()
    assert " ".join(two["title"]["text"]) == (
        "No arm beats a (50% at $0.100 a trial) in accuracy or in cost; it is on the frontier in 83% of resamples"
    )
    none = charts.frontier(frontier({"a": (0.5, None), "b": (None, 0.1)})).to_dict()
    assert none["title"]["text"] == ["Accuracy against cost cannot be drawn"]
    assert "No arm has both numbers: the cost is not known of any trial." in none["description"]
    assert charts.frontier(frontier(PLACES).clear()).to_dict()["title"]["text"] == ["No trials"]
    for spec in (one, two, none):
        assert "NaN" not in vl_convert.vegalite_to_svg(spec)


def test_a_label_leaves_room_for_wide_letters() -> None:
    """On the left of its point it ends before the interval, also in a font with wide letters."""
    name = "WWWWMMMMWWWWMMMMWWWW"
    spec = charts.frontier(frontier({name: (0.9, 1.0), "b": (0.1, 0.1)})).to_dict()
    (label,) = [row for row in drawn(spec, "words", "label_x") if row["arm"] == name]
    assert label["label_x"] + 11 * 0.9 * len(name) < label["x"]


def test_hostile_names_are_data() -> None:
    """A name is drawn as it is, and is never code."""
    for chart in (
        charts.cost(cost({NASTY: 0.1})),
        charts.frontier(frontier({NASTY: (0.5, 0.1), 'b"\\': (0.6, 0.2)})),
    ):
        assert "<script" not in vl_convert.vegalite_to_svg(chart.to_dict())


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0, "$0"),
        (1234.5, "$1,234"),
        (12.3, "$12.30"),
        (0.423, "$0.423"),
        (0.0468, "$0.0468"),
        (0.000012, "$0.0000120"),
    ],
)
def test_money_is_never_rounded_to_nothing(value: float, words: str) -> None:
    """Three digits, cents from a dollar on, whole dollars from a thousand on."""
    assert usd(value) == words


@pytest.mark.parametrize(
    "values", [[0.0], [0.0, 0.5], [0.2, 0.21], [3.0, 88.0], [0.001, 0.9], [0.0001, 900.0]]
)
def test_an_axis_of_money_holds_its_values_and_a_few_ticks(values: list[float]) -> None:
    """From 0 unless logarithmic; two to ten ticks, all inside."""
    scale, ticks, log = money_axis(values)
    low, high = scale.domain
    assert low <= min(values)
    assert max(values) < high
    assert log == (min(values) > 0 and max(values) / min(values) > 30)
    assert low == 0 or log
    assert 2 <= len(ticks) <= 10
    assert all(low <= tick <= high for tick in ticks)


def test_short_names_stay_different() -> None:
    """Cut where they still differ; numbered where they do not."""
    assert shortened("abcdefghij", 5) == "ab…ij"
    assert shortened("abc", 5) == "abc"
    names = [f"{'a' * 20}{n}{'b' * 20}" for n in range(3)]
    assert len(set(short_names(names, 30).values())) == 3
    assert [each[:2] for each in short_names(names, 12).values()] == ["1.", "2.", "3."]
    assert all(len(each) <= 12 for each in short_names(names, 12).values())
