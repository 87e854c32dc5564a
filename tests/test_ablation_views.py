"""An ablation drawn, tabled and put in words: on frames whose result is known."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import polars as pl
import pytest
import vl_convert

from agentbench_lab import charts, metrics, tables
from agentbench_lab.charts import worth

from .analysis.arranged import arms, frame, row, simulated
from .drawing import NASTY
from .test_charts import encodings, lines, rows

KNOWN = {1: (1, 1, 80), 2: (0, 1, 50), 4: (0, 1, 300), 8: (1, 1, 101), 16: (1, 1, 250), 32: (1, 0, 300)}
"""By width: whether once and fan_out_4 solve every case, and what the latter costs where the former costs 100."""
EXPECTED = ["cheaper, no worse", "dominates", "pays", "no difference", "costs without gain", "loses"]


def known() -> pl.DataFrame:
    """200 cases a width, each verdict once."""
    return frame(
        *(
            row(f"w{width}-{n}", scaffold, bool(solved), width=width, cost=cost * 1000)
            for width, (once, fan, dear) in KNOWN.items()
            for scaffold, solved, cost in (("once", once, 100), ("fan_out_4", fan, dear))
            for n in range(200)
        )
    )


def both(trials: pl.DataFrame, **more: Any) -> tuple[pl.DataFrame, pl.DataFrame]:
    return metrics.ablation(trials, **more), metrics.where_it_pays(trials, **more)


class Later:
    """Both frames, made when a test first looks at them: every process of the tests imports this file."""

    def __init__(self, trials: Callable[[], pl.DataFrame]) -> None:
        self.made = cache(lambda: both(trials()))

    def __getitem__(self, at: int) -> pl.DataFrame:
        return self.made()[at]


FOUND = Later(simulated)
ALL = Later(known)


def test_the_curves_state_from_where_on_each_arm_pays() -> None:
    """Title: arms that are alike in one claim. Subtitle: what is shown, over how much, by what evidence."""
    spec = charts.ablation(*FOUND).to_dict()
    assert spec["title"]["text"] == [
        "linear pays against once from width 2 on.",
        "fan_out_4 and durable:linear pay against once from width 4 on.",
    ]
    subtitle = " ".join(spec["title"]["subtitle"])
    assert "95% interval over cases, 48 trials of 6 cases at each width and arm" in subtitle
    assert subtitle.endswith("Evidence: simulated (no model was asked)")
    assert "linear at width 16: 81% [48%, 90%], 12,800 tokens a trial." in spec["description"]
    assert vl_convert.vegalite_to_svg(spec)


def test_colour_shape_and_dash_carry_the_arm_and_its_name_stands_at_the_end() -> None:
    spec = charts.ablation(*FOUND).to_dict()
    for channel in ("color", "shape", "strokeDash"):
        found = [each for each in encodings(spec, channel) if each.get("field") == "scaffold"]
        assert found
        assert all(len({str(look) for look in each["scale"]["range"]}) == 4 for each in found)
    words = {each["words"] for each in rows(spec) if "words" in each}
    assert words == {
        "6%  once", "81%  linear", "67%  fan_out_4", "77%  durable:linear",
        "7,220  once", "12,800  linear", "15,800  fan_out_4", "12,600  durable:linear",
    }  # fmt: skip


def test_accuracy_has_one_scale_and_cost_says_that_it_is_logarithmic() -> None:
    spec = charts.ablation(*FOUND).to_dict()
    upper, lower = (part["layer"][0]["layer"][1]["encoding"] for part in spec["vconcat"])
    assert upper["y"]["scale"] == {"domain": [0, 1], "nice": False}
    assert lower["y"]["scale"]["type"] == "log"
    assert lower["y"]["title"] == "tokens a trial, logarithmic axis"
    assert lower["x"]["title"] == "width: parts of a task, logarithmic axis"
    # equal widths stand at the same places above and below
    assert upper["x"]["scale"] == lower["x"]["scale"]
    free = both(known().with_columns(pl.lit(0, pl.Int64).alias("cost_micros")))
    assert "log" not in str(
        charts.ablation(*free).to_dict()["vconcat"][1]["layer"][0]["layer"][1]["encoding"]["y"]
    )


def test_what_is_not_known_is_not_drawn_and_said() -> None:
    """Without any cost there is one panel; of one arm without, its line is missing below."""
    unknown = simulated().with_columns(pl.lit(None, pl.Int64).alias("tokens_output"))
    spec = charts.ablation(*both(unknown)).to_dict()
    assert len(spec["vconcat"]) == 1
    assert "Cost not known: once, linear, fan_out_4, durable:linear." in " ".join(spec["title"]["subtitle"])
    one = simulated().with_columns(
        pl.when(pl.col("scaffold") != "linear").then("tokens_output").alias("tokens_output")
    )
    words = {each["words"] for each in rows(charts.ablation(*both(one)).to_dict()) if "words" in each}
    assert "12,800  linear" not in words
    assert "81%  linear" in words


def test_the_map_shows_each_verdict_in_words() -> None:
    spec = charts.where_it_pays(ALL[0]).to_dict()
    cells = {each["column"]: each for each in rows(spec) if "column" in each}
    assert [cells[f"width {width}"]["verdict"] for width in KNOWN] == EXPECTED
    assert cells["width 4"]["gain"] == "+100.0 points"
    assert cells["width 4"]["cost"] == "3.00 × money"
    assert len({each["fill"] for each in cells.values()}) == 6
    (title,) = [" ".join(spec["title"]["text"])]
    assert title == (
        "Of 6 comparisons by width, 1 dominates, 1 pays, 1 is cheaper and no worse, 1 makes no difference, 1 costs without "
        "gain, 1 loses"
    )
    assert "Evidence: simulated" in " ".join(spec["title"]["subtitle"])
    undecided = charts.where_it_pays(FOUND[0]).to_dict()
    assert "Undecided (+n)" in " ".join(undecided["title"]["subtitle"])
    assert "undecided (+14)" in {each.get("verdict") for each in rows(undecided)}
    assert vl_convert.vegalite_to_svg(spec)


def test_nothing_to_draw_says_so_in_its_place() -> None:
    empty = both(frame())
    assert "no trials" in " ".join(line["line"] for line in rows(charts.ablation(*empty).to_dict())).lower()
    assert (
        "no trials"
        in " ".join(line["line"] for line in rows(charts.where_it_pays(empty[0]).to_dict())).lower()
    )
    alone = both(simulated(["once"]))
    assert lines(charts.where_it_pays(alone[0]).to_dict()) == "Nothing to compare"
    assert charts.ablation(*alone).to_dict()["title"]["text"] == ["Accuracy and cost by width"]
    excluded = both(arms({"once": ["x"], "linear": ["x"]}))
    assert "no arm has a judged trial" in str(charts.ablation(*excluded).to_dict()).lower()


def test_several_drivers_have_panels_of_their_own() -> None:
    one = simulated(["once", "linear"], trials=2)
    several = pl.concat([one.with_columns(pl.lit(name).alias("driver")) for name in ("a", "b")])
    spec = charts.ablation(*both(several)).to_dict()
    assert [part["vconcat"][0]["title"]["text"] for part in spec["vconcat"]] == ["a", "b"]
    many = pl.concat([one.with_columns(pl.lit(f"driver-{n}").alias("driver")) for n in range(6)])
    assert "Drawn: 4 of 6 drivers." in " ".join(charts.ablation(*both(many)).to_dict()["title"]["subtitle"])


def test_the_table_has_each_width_with_its_intervals() -> None:
    table = tables.ablation(FOUND[0])
    assert table.columns == [
        "over",
        ">cases",
        ">accuracy",
        ">difference",
        ">a trial",
        ">cost ratio",
        "verdict",
    ]
    assert [each for each in table.rows if isinstance(each, str)] == [
        "once, the baseline", "linear against once", "fan_out_4 against once", "durable:linear against once",
    ]  # fmt: skip
    linear = table.rows[table.rows.index("linear against once") + 1 :]
    assert linear[0] == [
        "all cases", "30", "92% [80, 95] 220/240", "+39.2 [+26.1, +50.3]", "5,870", "1.78 [1.75, 1.81]", "pays",
    ]  # fmt: skip
    assert linear[1][0] == "width 1"
    assert linear[1][-1] == "undecided (about 14 more)"
    assert any("within 2 points or 5% of cost is no difference" in note for note in table.notes)
    assert table.notes[-1] == "Evidence: simulated (no model was asked)"
    assert max(map(len, str(table).splitlines())) <= 100
    assert tables.ablation(FOUND[0].clear()).notes == ["no trials"]


def test_the_table_names_what_it_leaves_out_and_what_was_unsafe() -> None:
    trials = arms({"once": ["1", "x", "0"], "linear": ["1", "1", "0"]}).with_columns(
        pl.when((pl.col("scaffold") == "linear") & (pl.col("case_id") == "c2"))
        .then(pl.lit("unsafe"))
        .otherwise("outcome_class")
        .alias("outcome_class")
    )
    found, where = both(trials)
    notes = " ".join(tables.ablation(found).notes)
    assert "in no difference: c1 (all 1 trial of the baseline excluded)" in notes
    assert "which no verdict makes up for: linear 1, once 0" in notes
    said = str(tables.ablation_says(found, where)).replace("\n", " ")
    assert "In no difference: c1 (all 1 trial of the baseline excluded)." in said
    assert "Unsafe outcomes: linear 1; no verdict makes up for them." in said


def test_the_paragraph_states_the_result_and_its_evidence() -> None:
    says = tables.ablation_says(*FOUND)
    assert says.texts[0] == (
        "linear pays against once from width 2 on; fan_out_4 and durable:linear pay against once from width 4 on."
    )
    assert says.texts[1] == (
        "linear solves 39.2 points more than once (difference [+26.1, +50.3] points; 92% against 52% over 30 paired cases), for "
        "1.78 times the tokens [1.75, 1.81]: it pays against once. It pays from width 2 on by every verdict; by the estimates "
        "alone from width 1 on (from 1 in 95% of resamples)."
    )
    assert says.texts[-1] == (
        "A difference within 2 points or 5% of cost counts as none; all intervals are at 95%, and verdicts are not corrected for "
        "their number. Cost is counted in tokens of all kinds, since money is not known of as many trials. Evidence: simulated (no "
        "model was asked)."
    )
    assert says._repr_html_().count("<p>") == len(says.texts) == 5
    assert says._repr_html_().startswith("<p><strong>linear pays")


@pytest.mark.parametrize(
    ("width", "words"),
    [
        (1, "fan_out_4 is cheaper than once and no worse over all cases"),
        (2, "fan_out_4 dominates once over all cases"),
        (4, "fan_out_4 pays against once over all cases"),
        (8, "fan_out_4 makes no difference to once over all cases"),
        (16, "fan_out_4 costs more than once without gain over all cases"),
        (32, "fan_out_4 loses to once over all cases"),
    ],
)
def test_each_verdict_has_its_claim(width: int, words: str) -> None:
    says = tables.ablation_says(*both(known().filter(pl.col("width") == width)))
    assert says.texts[0] == f"{words}."


def test_undecided_and_unknown_are_said_as_such() -> None:
    few = tables.ablation_says(*both(simulated(["once", "linear"], widths=(1,))))
    assert few.texts[0] == "linear against once is undecided over all cases."
    assert "this is undecided (about 14 more cases would decide)." in few.texts[1]
    nothing = tables.ablation_says(*both(arms({"once": ["x"], "linear": ["1"]})))
    assert nothing.texts[1] == "linear cannot be compared: no case has a counterpart."
    assert tables.ablation_says(*both(frame())).texts == ("There are no trials, so nothing can be said.",)
    alone = tables.ablation_says(*both(simulated(["once"])))
    assert alone.texts[0].startswith("There is nothing to compare: only the baseline was asked.")
    never = tables.ablation_says(*both(known().filter(pl.col("width") > 4)))
    assert (
        "There is no width from which on it gains more than the margin (in 0% of resamples there is one)."
        in never.texts[1]
    )


LONG = (
    "once", "linear", "fan_out_2", "fan_out_4", "fan_out_8", "durable:linear", "durable:fan_out_4", "linear:plan", "native:workflow",
    "durable:native:workflow-with-review", "my_package.scaffolds.experiments:tree_of_thought", "fan_out_16", "native:plain",
    "my_package.scaffolds.experiments:graph_of_thought", "durable:fan_out_16", "durable:once",
)  # fmt: skip


@pytest.mark.parametrize(("count", "drivers"), [(1, 1), (2, 1), (2, 2), (4, 2), (10, 1), (16, 1), (16, 2)])
def test_no_title_is_wider_than_the_chart_however_many_arms_and_however_long_their_names(
    count: int, drivers: int
) -> None:
    """At 16 pixels 84 letters, at 14 pixels 96 are as wide as a chart in the widest font."""
    once = simulated(LONG[:count], cases=3, trials=2)
    named = (
        "command:./agent --mode {native}",
        "chat:some-vendor/some-large-model-2026@https://api.example.org/v1",
    )
    found, where = both(
        pl.concat([once.with_columns(pl.lit(each).alias("driver")) for each in named[:drivers]])
    )
    for chart in (charts.ablation(found, where), charts.where_it_pays(found)):
        title = chart.to_dict()["title"]
        most = 84 if title["fontSize"] == 16 else 96
        assert max(map(len, title["text"])) <= most and len(title["text"]) <= 9
        assert max(map(len, title["subtitle"]), default=0) <= 134
        assert vl_convert.vegalite_to_svg(chart.to_dict())
    if count > 12:
        assert "Drawn: 12 of 16 scaffolds." in title_of(charts.ablation(found, where))
        assert "Drawn: 12 of " in title_of(charts.where_it_pays(found))


def title_of(chart: Any) -> str:
    return " ".join(chart.to_dict()["title"]["subtitle"])


def test_of_many_widths_a_legible_part_is_drawn_and_all_are_counted() -> None:
    found, where = both(simulated(["once", "linear"], widths=range(1, 26), cases=2, trials=2))
    spec = charts.where_it_pays(found).to_dict()
    columns = {each["column"] for each in rows(spec) if "column" in each}
    assert columns == {"all cases", *(f"width {each}" for each in (1, 6, 11, 15, 20, 25))}
    assert "Of 25 comparisons by width" in spec["title"]["text"][0]
    assert "Drawn: 6 of 25 widths" in title_of(charts.where_it_pays(found))
    assert len([row for row in tables.ablation(found).rows if row[0].startswith("width")]) == 50
    curves = charts.ablation(found, where)
    assert "of 25 widths, without the intervals" in title_of(curves)
    assert (
        '"accuracy_low:Q"' not in str(curves.to_json())
        and "isValid(datum.accuracy_low)" not in curves.to_json()
    )
    assert "isValid(datum.accuracy_low)" in charts.ablation(*FOUND).to_json()


@pytest.mark.parametrize(
    ("trials", "says"),
    [
        (simulated(["once", "linear"], widths=(3,), cases=1, trials=1), "no ratio of costs"),
        (simulated(["once", "linear"], widths=(3,)), "tokens"),
        (simulated(["once", "linear"]).with_columns(solved=pl.lit(False)), "+0.0 points"),
        (simulated(["once", "linear"]).with_columns(tokens_output=pl.lit(None, pl.Int64)), "cost not known"),
    ],
    ids=["one trial", "one width", "nothing solved", "no cost"],
)
def test_what_cannot_be_said_is_said(trials: pl.DataFrame, says: str) -> None:
    found, where = both(trials)
    assert says in str(rows(charts.where_it_pays(found).to_dict()))
    for chart in (charts.ablation(found, where), charts.where_it_pays(found)):
        assert vl_convert.vegalite_to_svg(chart.to_dict())
    assert str(tables.ablation(found)) and str(tables.ablation_says(found, where))
    kept = metrics.durability(trials)
    assert "No arm was run both durable and bare" in str(tables.durability(kept))
    # an axis of costs has a tick, also where there is one cost
    if says != "cost not known":
        axes = [
            each["y"]["axis"]["values"] for each in encodings_of(charts.ablation(found, where)) if "y" in each
        ]
        assert all(axes)


def encodings_of(chart: Any) -> list[dict[str, Any]]:
    parts = [part["layer"][0]["layer"] for part in chart.to_dict()["vconcat"]]
    return [
        {"y": each}
        for part in parts
        for layer in part
        for each in [layer["encoding"].get("y", {})]
        if "axis" in each
    ]


def test_lower_bounds_and_attempts_are_said_wherever_a_cost_is() -> None:
    hit = (pl.col("scaffold") == "durable:linear") & (pl.col("width") == 16) & (pl.col("trial") == 1)
    trials = simulated(["once", "durable:linear"]).with_columns(
        usage_lost=hit, attempts=1 + hit.cast(pl.Int32)
    )
    found, where = both(trials)
    table = tables.ablation(found)
    assert table.columns[3] == ">attempts"
    all_cases, last = table.rows[-6], table.rows[-1]
    assert (all_cases[3], last[3]) == ("246", "54")
    assert last[5].startswith("≥ ") and last[6].startswith("≥ ") and last[6].endswith(", no end]")
    assert not table.rows[-2][5].startswith("≥")
    # a mean of lower bounds has no interval to draw
    drawn = rows(charts.ablation(found, where).to_dict())
    for each in (one for one in drawn if "cost_low" in one):
        assert (each["cost_low"] is None) == (each["cost_high"] is None) == bool(each["floors"])
    bound = "≥: a lower bound, since an attempt was killed with what it had used: 6 of 240 trials of durable:linear"
    assert bound in table.notes
    says = tables.ablation_says(found, where).texts
    assert "for at least " in says[1]
    assert "Attempts: durable:linear 246 for 240 trials" in says[-1] and bound in says[-1]
    for chart in (charts.ablation(found, where), charts.where_it_pays(found)):
        assert "a cost is a lower bound" in str(chart.to_dict()) or bound in " ".join(
            chart.to_dict()["title"]["subtitle"]
        )
        assert "≥ " in str([each for each in rows(chart.to_dict()) if "words" in each or "cost" in each])
    assert ">attempts" not in tables.ablation(FOUND[0]).columns


def test_names_cannot_break_out() -> None:
    trials = simulated(["once", "linear"], trials=2).with_columns(
        pl.col("scaffold").replace({"linear": NASTY}), pl.lit("simulated").alias("evidence")
    )
    found, where = both(trials)
    for shown in (tables.ablation(found)._repr_html_(), tables.ablation_says(found, where)._repr_html_()):
        assert "<img" not in shown
        assert "&lt;img" in shown
    for chart in (charts.ablation(found, where), charts.where_it_pays(found)):
        assert "<img" not in vl_convert.vegalite_to_svg(chart.to_dict())


def test_numbers_in_words() -> None:
    assert [worth.times(each) for each in (1.7765, 12.34, 123.4, 1234.5, 0.8, 0.0031, 0.0)] == [
        "1.78", "12.3", "123", "1,234", "0.80", "0.0031", "0.00",
    ]  # fmt: skip
    assert [worth.amount(each, "tokens") for each in (7217.8, 64.2, 0.5)] == [
        "7,220 tokens",
        "64 tokens",
        "0.5 tokens",
    ]
    assert worth.amount(0.0123, "usd") == "$0.0123"
    assert [worth.rounded_up(each) for each in (3, 42, 417, 12345)] == ["3", "42", "420", "13,000"]
