"""pass^k curves and case histograms by their specifications."""

from __future__ import annotations

import itertools
import json
from typing import Any

import polars as pl
import pytest
import vl_convert

from agentbench_lab import charts
from agentbench_lab.charts.theme import dodged, looks
from agentbench_lab.charts.words import text_width

from .drawing import NASTY, crossing, histogram, reliability
from .test_charts import encodings, lines, rows, walk

TWO = {
    "droid/gpt-5": [0.525, 0.445, 0.394, 0.355, 0.325],
    "droid/sonnet-4": [0.505, 0.439, 0.404, 0.375, 0.35],
}
MANY = {f"harness-{n}": [0.9 - n / 20, 0.8 - n / 20, 0.7 - n / 20] for n in range(13)}


def drawn(spec: dict[str, Any], *keys: str) -> list[dict[str, Any]]:
    """The rows that have all these fields."""
    return [row for row in rows(spec) if set(keys) <= set(row)]


def domains(spec: dict[str, Any], channel: str, field: str) -> list[Any]:
    """The domains of the scales of a field's channel."""
    return [
        one["scale"]["domain"]
        for one in encodings(spec, channel)
        if one.get("field") == field and "scale" in one
    ]


def test_curves_state_who_leads_and_who_turns_round() -> None:
    """The title is a claim with its uncertainty, the subtitle the metric, the band, the estimator and the evidence."""
    spec = charts.reliability(reliability(TWO), crossing("droid/gpt-5", "droid/sonnet-4")).to_dict()
    title = " ".join(spec["title"]["text"])
    assert title == (
        "Most solved in one trial by droid + gpt-5 (52%), in 5 of 5 by droid + sonnet-4 (35%). droid + gpt-5 and droid + "
        "sonnet-4 may change places, which is not decided: +2.0 [−4.5, +8.5] points at k=1, −2.5 [−13.8, +8.8] at k=5 (in "
        "37% of resamples)."
    )
    sure = charts.reliability(
        reliability(TWO), crossing("droid/gpt-5", "droid/sonnet-4", decided=True)
    ).to_dict()
    assert "sonnet-4 change places: +2.0 [+1.0, +3.0] points at k=1" in " ".join(sure["title"]["text"])
    subtitle = " ".join(spec["title"]["subtitle"])
    for said in (
        "k trials of a case are all solved",
        "95% interval (wilson over cases)",
        "80 cases",
    ):
        assert said in subtitle
    assert "Evidence: imported" in subtitle
    assert "droid + gpt-5 pass^5: 32% [22%, 42%] over 80 of 80 cases." in spec["description"]
    one = charts.reliability(reliability({"stub": [0.5, 0.4]}, evidence="simulated")).to_dict()
    assert one["title"]["text"] == ["stub solves 50% of its cases in one trial, 40% in 2 of 2"]
    assert "simulated (no model was asked)" in lines(one)
    same = charts.reliability(
        reliability({"a": [0.9, 0.8], "b": [0.5, 0.4]}), crossing("a", "b").clear()
    ).to_dict()
    assert same["title"]["text"] == ["Most solved by a: 90% in one trial, 80% in 2 of 2.", "No curves cross."]


def test_arms_on_other_cases_are_not_ranked() -> None:
    """The title says what they share; an arm with one k has a whisker, and no line that runs across the plot."""
    frame = reliability({"m1": [0.75, 0.5], "m2": [0.9]}, cases=30, common=12)
    spec = charts.reliability(frame).to_dict()
    assert " ".join(spec["title"]["text"]) == (
        "The 2 arms were tried on other cases: all share 12 of 30, so that their order says little"
    )
    assert "30 cases, of which all arms share 12." in lines(spec).replace("| ", "")
    rules = [
        part for part in walk(spec) if isinstance(part.get("mark"), dict) and part["mark"]["type"] == "rule"
    ]
    assert any(part["encoding"].get("y2") == {"field": "high"} for part in rules)
    assert {row["from"] for row in drawn(spec, "from", "place")} == {2.012}
    together = charts.reliability(reliability({"m1": [0.75, 0.5], "m2": [0.9]})).to_dict()
    assert together["title"]["text"] == ["Most solved in one trial by m2: 90%"]


def test_each_kind_of_interval_is_counted() -> None:
    frame = reliability({"a": [0.5, 0.3, 0.0]}, cases=12).with_columns(
        estimator=pl.when(pl.col("k") == 3).then(pl.lit("pass_hat_k.unbiased, wilson")).otherwise("estimator")
    )
    text = " ".join(lines(charts.reliability(frame).to_dict()).split(" | "))
    assert "95% interval (wilson over cases; wilson at 1 point)" in text


def test_many_arms_with_one_trial_are_one_sentence() -> None:
    many = charts.reliability(reliability({f"arm {n}": [n / 30] for n in range(25)})).to_dict()
    assert "(25 arms, from 0% by arm 0 to 80% by arm 24; the table has all of them)" in many["description"]
    assert len(many["description"]) < 300


def test_curves_run_from_0_to_100_percent_with_their_bands() -> None:
    """Every estimate has its interval, on one scale; arms differ in colour, dash and shape; pass@k is not drawn."""
    spec = charts.reliability(reliability(TWO)).to_dict()
    assert domains(spec, "y", "estimate")
    assert all(domain == [0, 1] for domain in domains(spec, "y", "estimate"))
    marks = {part["mark"]["type"] for part in walk(spec) if isinstance(part.get("mark"), dict)}
    assert {"area", "line", "point", "text", "rule"} <= marks
    points = drawn(spec, "k", "estimate", "low", "high")
    assert len(points) == 10
    assert all(row["low"] < row["estimate"] < row["high"] for row in points)
    assert max(row["estimate"] for row in points) == 0.525
    for channel in ("color", "shape", "strokeDash"):
        ranges = [one["scale"]["range"] for one in encodings(spec, channel) if "scale" in one]
        assert ranges
        assert all(len({json.dumps(each) for each in one}) == 2 for one in ranges)


def test_what_cannot_be_estimated_has_no_point_and_what_is_incomplete_is_hollow() -> None:
    """n < k draws nothing and says why; cases without k judged trials leave the mark hollow."""
    frame = reliability({"a": [0.9, 0.8, None]}, complete=False)
    spec = charts.reliability(frame).to_dict()
    points = drawn(spec, "k", "estimate", "complete")
    assert [row["k"] for row in points] == [1, 2]
    assert not any(row["complete"] for row in points)
    fills = [one for one in encodings(spec, "fill") if "condition" in one]
    assert fills
    assert all(
        one["value"] == "transparent" and one["condition"]["test"] == "datum.complete" for one in fills
    )
    assert "Hollow: not every case has k judged trials" in lines(spec)
    assert "Not drawn: a, k = 3: not asked for 3 trials: c1" in lines(spec)
    assert "a pass^3: no estimate (not asked for 3 trials: c1)" in spec["description"]
    assert "NaN" not in vl_convert.vegalite_to_svg(spec)


def test_one_trial_or_no_estimate_is_said_in_the_figures_place() -> None:
    """There is no curve through one point, and none through nothing: a sentence stands there, never an error."""
    once = charts.reliability(reliability({"a": [0.5], "b": [0.25]})).to_dict()
    assert once["title"]["text"] == ["How reliably is not known: no case has more than one judged trial"]
    assert "a 50% [40%, 60%]; b 25% [15%, 35%]" in once["description"]
    none = charts.reliability(reliability({"a": [None, None]}, reason="no trial was judged")).to_dict()
    assert none["title"]["text"] == ["pass^k is not known"]
    assert "no trial was judged" in none["description"]
    assert charts.reliability(reliability(TWO).clear()).to_dict()["title"]["text"] == ["No trials"]
    for spec in (once, none):
        assert "NaN" not in vl_convert.vegalite_to_svg(spec)


def test_above_a_panel_the_name_is_cut_and_never_its_numbers() -> None:
    """Numbers come first and all has room; names that are alike at both ends stay apart."""
    names = [f"Terminal Workbench {n} with an orchestrator + MODEL-{'AB'[n % 2]} large" for n in range(9)]
    frame = reliability({name: [0.999, 0.5, 0.001] for name in names})
    spec = charts.reliability(frame).to_dict()
    titles = {row["panel"] for row in drawn(spec, "panel")}
    assert len(titles) == 9
    header = spec["vconcat"][1]["facet"]["header"]
    for title in titles:
        assert title.startswith("99.9% → 0.1%  ")
        assert text_width(title, header["labelFontSize"]) <= header["labelLimit"]


def test_thirteen_arms_stay_apart() -> None:
    """All are named at their ends without overlap; those that cross stand out; each has a panel with its band."""
    frame = reliability(MANY)
    spec = charts.reliability(frame, crossing("harness-3", "harness-5")).to_dict()
    loud = [one["scale"]["domain"] for one in encodings(spec["vconcat"][0], "shape") if "scale" in one]
    assert loud
    assert all(set(each) == {"harness-3", "harness-5"} for each in loud)
    ends = drawn(spec, "place", "words")
    assert len(ends) == 13
    places = sorted(row["place"] * 340 for row in ends)
    assert min(high - low for low, high in itertools.pairwise(places)) > 13
    assert len({row["panel"] for row in drawn(spec, "panel")}) == 13
    assert "90% → 70%  harness-0" in {row["panel"] for row in drawn(spec, "panel")}
    assert spec["vconcat"][1]["resolve"] == {"axis": {"x": "independent"}}
    assert any(
        part["mark"].get("type") == "area"
        for part in walk(spec["vconcat"][0])
        if isinstance(part.get("mark"), dict)
    )
    best = charts.reliability(frame).to_dict()
    loud = [one["scale"]["domain"] for one in encodings(best["vconcat"][0], "shape") if "scale" in one]
    assert loud[0] == ["harness-0", "harness-1", "harness-2"]


def test_long_and_hostile_names_are_cut_apart() -> None:
    """Names that agree in both ends still differ in the chart, whatever they contain."""
    names = {f"{'x' * 30}{n}{'y' * 30}": [0.5, 0.4] for n in range(3)}
    spec = charts.reliability(reliability({**names, NASTY: [0.3, 0.2]})).to_dict()
    words = [row["words"] for row in drawn(spec, "place", "words")]
    assert len(set(words)) == 4
    assert max(map(len, words)) < 60
    vl_convert.vegalite_to_svg(spec)


def test_many_rows_are_put_together_and_counted() -> None:
    """100 arms with 250 values of k each, twice: 50,000 rows in, at most 200 kB and 5,000 points out, and it says so."""
    frame = reliability({f"arm {n}": [1 - k / 300 - n / 1000 for k in range(250)] for n in range(100)})
    assert frame.height == 50_000
    spec = charts.reliability(frame).to_dict()
    assert len(drawn(spec, "k", "estimate", "complete")) <= charts.MOST_MARKS
    assert len(json.dumps(spec)) < 200_000
    assert "the best 40 of 100 arms, 15 of 250 values of k; 50,000 rows in, 600 points drawn" in lines(spec)


def test_a_look_is_never_given_twice() -> None:
    """Beyond six arms colours come again, but never with the same dash and shape."""
    arms = [str(n) for n in range(36)]
    found = looks(arms)
    assert len({json.dumps(each) for each in zip(*found.values(), strict=True)}) == 36


@pytest.mark.parametrize(
    ("places", "gap", "moved"),
    [
        ([0.0, 50.0, 100.0], 10, [0.0, 50.0, 100.0]),  # far enough apart
        ([50.0, 50.0], 10, [45.0, 55.0]),  # apart to both sides
        ([0.0, 1.0], 10, [0.0, 10.0]),  # not out of the range
        ([52.0, 50.0], 10, [56.0, 46.0]),  # their order stays
        ([1.0, 2.0, 3.0], 80, [0.0, 50.0, 100.0]),  # no room: evenly
        ([], 10, []),
    ],
)
def test_labels_move_as_little_as_they_must(places: list[float], gap: float, moved: list[float]) -> None:
    """The least that keeps them apart, inside 0 to 100."""
    assert dodged(places, gap, 0.0, 100.0) == pytest.approx(moved)


AIRLINE = {"gpt-4o": {4: [14, 12, 10, 4, 10]}}  # tau-bench's airline cases by trials solved of four


def test_the_histogram_counts_cases() -> None:
    """14, 12, 10, 4 and 10 of 50 cases: the shares, each with its interval, from 0 to 100 %."""
    spec = charts.histogram(histogram(AIRLINE)).to_dict()
    bars = drawn(spec, "share", "low", "high")
    assert [(row["solved"], row["share"]) for row in bars] == [
        ("0", 0.28), ("1", 0.24), ("2", 0.2), ("3", 0.08), ("4", 0.2),
    ]  # fmt: skip
    assert all(row["low"] < row["share"] < row["high"] for row in bars)
    assert [row["words"] for row in bars] == ["14", "12", "10", "4", "10"]
    assert domains(spec, "y", "share") == [[0, 1]]
    assert spec["title"]["text"] == ["gpt-4o solves 10 of 50 cases every time, 14 never, and 26 now and then"]
    assert "95% interval (Wilson, each bar by itself)" in " ".join(spec["title"]["subtitle"])
    assert "4 of 4 solved: 10 of 50 cases" in spec["description"]
    assert "Evidence: imported" in lines(spec)
    assert "Evidence: imported" in spec["description"]


def test_cases_with_other_numbers_of_trials_are_counted_aloud() -> None:
    """1 of 2 and 1 of 5 are not one bar: only the usual number is drawn, the others are named."""
    spec = charts.histogram(histogram({"a": {5: [1, 0, 0, 0, 0, 3], 4: [1, 0, 0, 0, 1], 0: [2]}})).to_dict()
    assert {row["judged"] for row in drawn(spec, "share")} == {5}
    assert "Not drawn: 2 cases with another number of judged trials. Not drawn: 2 cases without a judged trial." in " ".join(
        spec["title"]["subtitle"]
    )  # fmt: skip
    assert charts.histogram(histogram({"a": {0: [3]}})).to_dict()["title"]["text"] == ["No trials"]
    assert charts.histogram(histogram(AIRLINE).clear()).to_dict()["title"]["text"] == ["No trials"]


def test_arms_have_a_panel_each() -> None:
    """Thirteen arms stand beside each other on one scale; many bars are put together."""
    spec = charts.histogram(
        histogram({f"arm {n}": {5: [n, 1, 1, 1, 1, 20 - n]} for n in range(13)})
    ).to_dict()
    assert len({row["panel"] for row in drawn(spec, "panel")}) == 13
    assert spec["facet"]["field"] == "panel"
    assert "NaN" not in vl_convert.vegalite_to_svg(spec)
    wide = charts.histogram(histogram({"a": {100: [1] * 101}})).to_dict()
    bars = drawn(wide, "share")
    assert len(bars) <= 25
    assert sum(row["share"] for row in bars) == pytest.approx(1)
    assert bars[0]["solved"] == "0–4"


def test_the_theme_is_in_the_specification() -> None:
    """No background, ink that is the page's own, and no colour of arms that is lost on white or on black."""
    spec = charts.reliability(reliability(TWO)).to_dict()
    assert spec["background"] == "transparent"
    assert spec["config"]["title"]["color"] == "currentColor"
    assert spec["config"]["axis"]["labelColor"] == "currentColor"
    assert 'fill="currentColor"' in vl_convert.vegalite_to_svg(spec)

    def light(colour: str) -> float:
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    for colour in set(looks([str(n) for n in range(6)])["color"]):
        assert 1.05 / (light(colour) + 0.05) > 3  # against white
        assert (light(colour) + 0.05) / (light("#14171b") + 0.05) > 3  # against a dark page


def test_curves_of_a_real_frame() -> None:
    """What `metrics` makes is what the charts take: 4 cases, solved 2, 2, 1 and 0 of 2 times."""
    from agentbench_lab.analysis import metrics

    trials = pl.DataFrame(
        [
            {
                "suite": "s", "case_id": f"c{case}", "group": "g", "driver": "d", "model": None, "scaffold": "once",
                "trial": trial, "evidence": "live", "excluded": None, "solved": trial <= solved,
            }
            for case, solved in enumerate((2, 2, 1, 0)) for trial in (1, 2)
        ],
        schema_overrides={"model": pl.String, "excluded": pl.String},
    )  # fmt: skip
    spec = charts.reliability(metrics.reliability(trials), metrics.crossings(trials)).to_dict()
    assert [row["estimate"] for row in drawn(spec, "k", "complete")] == [0.625, 0.5]
    bars = drawn(charts.histogram(metrics.histogram(trials)).to_dict(), "share")
    assert [row["share"] for row in bars] == [0.25, 0.25, 0.5]
