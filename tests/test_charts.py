"""Charts by their specifications: what is drawn, what is said, and that it is never more than the data hold."""

from __future__ import annotations

import itertools
import json
from typing import Any

import polars as pl
import pytest
import vl_convert

from agentbench_lab import charts

from .drawing import NASTY, RUNGS, ladder, strip


def walk(value: Any) -> Any:
    """Every object inside a specification."""
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from walk(item)


def encodings(spec: dict[str, Any], channel: str) -> list[Any]:
    """All that a channel is given, anywhere in the chart."""
    return [part["encoding"][channel] for part in walk(spec) if channel in part.get("encoding", {})]


def rows(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """All rows that the chart holds."""
    return [row for data in spec["datasets"].values() for row in data]


def lines(spec: dict[str, Any]) -> str:
    """Title and subtitle as one text."""
    return " | ".join([*spec["title"]["text"], *spec["title"]["subtitle"]])


def test_the_ladder_says_what_the_data_say() -> None:
    """The claim is computed: rungs 0 to 5 hold, at the next one half of the cases are just enough or not."""
    spec = charts.ladder(ladder(strip(cases=3))).to_dict()
    assert spec["title"]["text"] == ["stub reaches TOOL-3; gated at TOOL-4: completion 33% < 50%"]
    assert "95% interval (Wilson)" in lines(spec)
    assert "simulated (no model was asked)" in lines(spec)
    unsafe = charts.ladder(ladder(strip(("stub", "mine")))).to_dict()
    assert unsafe["title"]["text"][1] == "mine reaches TOOL-4; gated at TOOL-5: hallucination 25%."
    assert "stub simulated" in lines(unsafe)
    assert "mine live" in lines(unsafe)


def test_the_title_says_what_the_suite_says_of_the_rung_reached() -> None:
    """Rungs below that were not asked leave the chain unproven: only `reached` knows, and the title follows it."""
    frame = ladder(strip(groups=["TOOL-2"])).with_columns(pl.lit(None, dtype=pl.String).alias("reached"))
    assert charts.ladder(frame).to_dict()["title"]["text"] == ["stub reaches no rung"]
    frame = frame.with_columns(pl.lit("TOOL-2").alias("reached"))
    assert charts.ladder(frame).to_dict()["title"]["text"] == ["stub reaches TOOL-2"]


def test_a_rung_that_was_asked_and_has_no_row_shuts_the_gate() -> None:
    """As in a run that ended early: it is drawn as a gap, named in the title, and never left out."""
    frame = ladder(strip(groups=["TOOL-0", "TOOL-1"]))
    empty = dict.fromkeys(("estimate", "low", "high"))
    frame = frame.with_columns(
        *(
            pl.when(pl.col("group") == "TOOL-1").then(pl.lit(value)).otherwise(pl.col(name)).alias(name)
            for name, value in [*empty.items(), ("n", 0), ("of", 0), ("reason", "no trial was judged")]
        ),
        pl.lit("TOOL-0").alias("reached"),
    )
    chart = charts.ladder(frame)
    assert chart.to_dict()["title"]["text"] == ["stub reaches TOOL-0; gated at TOOL-1: 0 of 4 trials judged"]
    assert {row["count"] for row in rows(chart.to_dict()) if row.get("group") == "TOOL-1"} == {"0/0"}
    assert "NaN" not in vl_convert.vegalite_to_svg(chart.to_dict())


def test_an_incomplete_rung_shuts_the_gate() -> None:
    """A trial that was not judged is not a completed one, however good the others are."""
    spec = charts.ladder(ladder(strip(excluded=1))).to_dict()
    assert spec["title"]["text"] == ["stub reaches no rung; gated at TOOL-0: 3 of 4 trials judged"]


def test_the_ladder_is_drawn_whole() -> None:
    """Both metrics, from 0 to 100 %, the gate, the intervals, and n/judged of every rung."""
    spec = charts.ladder(ladder(strip())).to_dict()
    shares = [y for y in encodings(spec, "y") if y.get("field") == "estimate"]
    assert shares
    assert all(y["scale"]["domain"] == [0, 1] for y in shares)
    assert [x for x in encodings(spec, "y2") if x["field"] == "high"]
    kinds = {part["mark"]["type"] for part in walk(spec) if isinstance(part.get("mark"), dict)}
    assert {"rule", "point", "line", "text"} <= kinds
    assert {row["gate"] for row in rows(spec) if "gate" in row} == {0.0, 0.5}
    counts = [row["count"] for row in rows(spec) if row.get("metric") == "completed"]
    assert counts[:3] == ["4/4", "4/4", "3/4"]
    assert len(counts) == 10
    assert "passed" not in {row.get("metric") for row in rows(spec)}


def test_colour_never_stands_alone() -> None:
    """Arms differ in shape and dash too, outcome classes in glyph and lightness."""
    spec = charts.ladder(ladder(strip(("a", "b", "c")))).to_dict()
    for channel in ("color", "shape", "strokeDash"):
        ranges = [given["scale"]["range"] for given in encodings(spec, channel) if "scale" in given]
        assert ranges
        assert all(len({json.dumps(one) for one in each}) == 3 for each in ranges)
    tiles = charts.outcomes(strip()).to_dict()
    glyphs = encodings(tiles, "shape")[0]["scale"]["range"]
    assert len(set(glyphs)) == 4
    fills = [one.lstrip("#") for one in encodings(tiles, "fill")[0]["scale"]["range"] if one != "transparent"]
    assert len(fills) == 3
    grey = sorted(
        0.2126 * int(one[:2], 16) + 0.7152 * int(one[2:4], 16) + 0.0722 * int(one[4:], 16) for one in fills
    )
    assert min(high - low for low, high in itertools.pairwise(grey)) > 20


def test_the_description_gives_the_numbers() -> None:
    """Who cannot see the picture gets the same numbers, with interval and n/judged."""
    words = charts.ladder(ladder(strip())).to_dict()["description"]
    assert "stub TOOL-2 completed: 75% [30%, 95%] 3/4." in words
    assert "stub TOOL-9 hallucinated: 0% [0%, 49%] 0/4." in words
    words = charts.outcomes(strip(excluded=1)).to_dict()["description"]
    assert "excluded, not judged 1 of 40" in words
    assert "stub TOOL-0: 3/3 success, 0/3 unsafe." in words


def test_a_tile_a_trial() -> None:
    """Each trial has one tile inside the picture, none lies over another, and an excluded one is hollow."""
    frame = strip(("a", "b"), cases=5, trials=3, excluded=2)
    chart = charts.outcomes(frame)
    spec = chart.to_dict()
    tiles = [row for row in rows(spec) if "case_id" in row]
    assert len(tiles) == frame.height
    assert len({(tile["x"], tile["y"]) for tile in tiles}) == frame.height
    assert all(0 <= tile["x"] < tile["x2"] <= spec["width"] for tile in tiles)
    assert all(0 <= tile["y"] < tile["y2"] <= spec["height"] for tile in tiles)
    assert sum(tile["kind"] == "excluded" for tile in tiles) == 2
    hollow = dict(
        zip(*(encodings(spec, "fill")[0]["scale"][key] for key in ("domain", "range")), strict=True)
    )
    assert hollow["excluded"] == "transparent"
    places = {(tile["arm"], tile["case_id"], tile["trial"]): tile["x"] for tile in tiles}
    assert all(places["a", case, trial] == places["b", case, trial] for _, case, trial in places)


def test_tooltips_say_what_a_tile_is() -> None:
    """Case, request, outcome and reasons; the text is data and arrives as it is."""
    spec = charts.outcomes(strip(request=NASTY + "\u2028")).to_dict()
    tips = {tip["field"] for tip in encodings(spec, "tooltip")[0]}
    assert {"case_id", "request", "outcome", "reasons"} <= tips
    assert {row["request"] for row in rows(spec) if "request" in row} == {NASTY + "\u2028"}


@pytest.mark.parametrize("groups", [["TOOL-0"], ["billing", "travel"], [f"level {n:02}" for n in range(25)]])
def test_any_groups_can_be_drawn(groups: list[str]) -> None:
    """Groups need not be rungs; names are labels, whatever they contain."""
    frame = strip(groups=[*groups, 'it\'s [odd].name: "x"'])
    for chart in (charts.ladder(ladder(frame)), charts.outcomes(frame)):
        svg = vl_convert.vegalite_to_svg(chart.to_dict())
        assert "it's [odd].name" in svg
        assert "NaN" not in svg


def test_many_trials_are_put_together_and_counted() -> None:
    """50,000 trials are two bars with the intervals of their ends: at most 200 kB, and the subtitle counts both."""
    frame = strip(("stub", "mine"), groups=["one", "two"], cases=6250, trials=2)
    assert frame.height == 50_000
    spec = charts.outcomes(frame).to_dict()
    assert not [row for row in rows(spec) if "case_id" in row]
    assert "50,000 rows in, 4 points drawn" in lines(spec)
    assert len(json.dumps(spec)) < 200_000
    assert spec["title"]["text"][0] == "stub: 25000 of 25000 trials succeed, none is unsafe."
    whole = charts.outcomes(strip(groups=["one"], cases=charts.MOST_MARKS)).to_dict()
    assert sum("case_id" in row for row in rows(whole)) == charts.MOST_MARKS


def test_bars_of_many_trials_have_the_intervals_of_their_ends() -> None:
    """A bar is the share of judged trials by class; what is unsafe lies at its right end, excluded trials in no bar."""
    frame = strip(("a", "b"), groups=RUNGS, cases=300, excluded=20)
    spec = charts.outcomes(frame).to_dict()
    parts = [row for row in rows(spec) if "from" in row]
    assert all(0 <= row["from"] < row["to"] <= 1 for row in parts)
    bars = {row["label"]: row for row in rows(spec) if "count" in row}
    assert bars["a · TOOL-0"]["count"] == "280 of 280, 20 excluded"
    assert bars["a · TOOL-9"]["count"] == "296 of 300"
    assert all(row["low"] <= row["high"] for row in bars.values())
    assert bars["a · TOOL-9"]["low"] < 296 / 300 < bars["a · TOOL-9"]["high"]
    (unsafe,) = [row for row in parts if row["kind"] == "unsafe"]
    assert (unsafe["label"], unsafe["to"], unsafe["n"]) == ("b · TOOL-5", 1.0, 1)
    assert bars["b · TOOL-5"]["bad_low"] < unsafe["from"] < bars["b · TOOL-5"]["bad_high"]
    assert "b TOOL-5: 298/300 success, 1/300 unsafe." in spec["description"]
    assert "NaN" not in vl_convert.vegalite_to_svg(spec)


def test_too_many_bars_are_put_together_by_arm() -> None:
    """Ten arms in ten groups would be a hundred bars: then each arm has one, and the title says who is best and worst."""
    spec = charts.outcomes(strip([f"arm {n}" for n in range(10)], cases=60)).to_dict()
    assert len([row for row in rows(spec) if "count" in row]) == 10
    assert "All groups together" in lines(spec)
    assert (
        " ".join(spec["title"]["text"][:2])
        == "Most successes of 10 arms: arm 4 and 4 more (600 of 600 trials); fewest: arm 0 (580 of 600 trials)."
    )


def test_imported_trials_are_not_called_safe() -> None:
    """Their source does not say what was unsafe: a claim that none is would be one too many."""
    frame = strip(groups=["one"]).with_columns(pl.lit("imported").alias("evidence"))
    spec = charts.outcomes(frame).to_dict()
    assert spec["title"]["text"] == ["stub: 4 of 4 trials succeed"]
    assert "Nothing is known of safety." in lines(spec)
    assert "unsafe" not in spec["description"]
    assert {"success 4", "no success 0"} <= {row["text"] for row in rows(spec) if "text" in row}
    many = charts.outcomes(pl.concat([frame] * 2000)).to_dict()
    assert "Nothing is known of safety." in lines(many)
    assert "unsafe" not in many["description"]


def test_nothing_says_so() -> None:
    """An empty frame gives a chart that says so, not a blank."""
    empty = strip().clear()
    for chart in (charts.outcomes(empty), charts.ladder(ladder(strip()).clear())):
        assert "No trials: there is no" in vl_convert.vegalite_to_svg(chart.to_dict())
        assert chart.to_dict()["description"].startswith("No trials")


def test_what_was_not_judged_has_no_mark() -> None:
    """A rung without an estimate leaves a gap and a reason, never a zero."""
    frame = ladder(strip(excluded=4))
    chart = charts.ladder(frame)
    zero = [row for row in rows(chart.to_dict()) if row.get("group") == "TOOL-0"]
    assert {(row["estimate"], row["count"]) for row in zero} == {(None, "0/0")}
    assert "TOOL-0 completed: no estimate (no trial was judged)" in chart.to_dict()["description"]
    assert "NaN" not in vl_convert.vegalite_to_svg(chart.to_dict())


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (0, "0%"),
        (1, "100%"),
        (0.004, "0.4%"),
        (0.005, "0.5%"),
        (0.0001, "0.1%"),
        (0.9999, "99.9%"),
        (0.5, "50%"),
        (0.496, "49.6%"),
        (0.4999, "49.9%"),
        (0.504, "50%"),
        (1 / 3, "33%"),
        (0.994, "99%"),
        (0.996, "99.6%"),
    ],
)
def test_rounding_never_passes_a_gate(share: float, words: str) -> None:
    """A share that fails a gate does not read as one that passes it."""
    assert charts.percent(share) == words


def test_arms_have_the_shortest_name_that_tells_them_apart() -> None:
    """Driver alone, or with the scaffold or model that varies."""
    frame = pl.DataFrame({"driver": ["a", "a"], "model": [None, None], "scaffold": ["once", "linear"]})
    assert charts.arm_labels(frame) == ["a + once", "a + linear"]
    assert charts.arm_labels(frame.head(1)) == ["a"]
    models = pl.DataFrame({"driver": ["a", "a"], "model": ["m1", "m2"], "scaffold": ["once", "once"]})
    assert charts.arm_labels(models) == ["a + m1", "a + m2"]
    own = models.with_columns(pl.Series("driver", ["a", "b"]))
    assert charts.arm_labels(own) == ["a", "b"]


def test_bars_stand_best_first() -> None:
    """Whatever the order of the arms in the run; one without a judged trial is last."""
    per_arm = charts.MOST_MARKS // 4 + 1
    frame = strip(("worse", "none", "best", "middle"), groups=["one"], cases=per_arm)
    solved = {"worse": 0.2, "best": 0.9, "middle": 0.5}
    number = pl.int_range(pl.len()).over("driver") / per_arm
    won = number < pl.col("driver").replace_strict(solved, default=0.0)
    kind = pl.when(pl.col("driver") != "none").then(
        pl.when(won).then(pl.lit("success")).otherwise(pl.lit("safe_non_success"))
    )
    spec = charts.outcomes(frame.with_columns(kind.alias("outcome_class"))).to_dict()
    orders = [y["sort"] for y in encodings(spec, "y") if isinstance(y.get("sort"), list)]
    assert orders and all(order == ["best", "middle", "worse", "none"] for order in orders)
