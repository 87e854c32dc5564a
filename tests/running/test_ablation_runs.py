"""An ablation of a whole run by the error model: what is measured agrees with what must come out."""

from __future__ import annotations

import json

import polars as pl
import pytest

import agentbench_lab as lab
from agentbench_lab.drivers.simulated import Parameters, expected
from agentbench_lab.results.run import Run

SCAFFOLDS = ("once", "linear", "fan_out_4", "durable:linear")
MARGIN = 0.02


@pytest.fixture(scope="module")
def run() -> Run:
    return lab.evaluate("wide", "simulated", scaffolds=list(SCAFFOLDS), trials=8, save_run=False)


@pytest.fixture(scope="module")
def found(run: Run) -> pl.DataFrame:
    return lab.metrics.ablation(run.trials)


def closed_form() -> pl.DataFrame:
    """By width and scaffold the mean over the suite's cases of success and micros of a dollar."""
    rows = []
    for case in lab.load_suite("wide").cases:
        assert case.gold is not None
        sizes = case.gold.parts or (len(case.gold.calls),)
        for scaffold in SCAFFOLDS:
            each = expected(Parameters(), case.task.width, sizes, scaffold)
            rows.append((case.task.width, scaffold, each.success, each.cost_micros))
    frame = pl.DataFrame(rows, schema=["width", "scaffold", "success", "micros"], orient="row")
    return frame.group_by("width", "scaffold").mean().sort("width")


def test_accuracy_gain_and_cost_lie_where_the_closed_form_has_them(found: pl.DataFrame) -> None:
    """95 % intervals: of 20 accuracies, 15 gains, 20 costs and 15 ratios one in twenty may miss, and no more do."""
    truth = {(width, scaffold): (p, cost) for width, scaffold, p, cost in closed_form().iter_rows()}
    missed, asked = [], 0
    for row in found.filter(pl.col("over") == "width").iter_rows(named=True):
        p, micros = truth[row["width"], row["scaffold"]]
        once_p, once_micros = truth[row["width"], "once"]
        checks = {"accuracy": p}
        if not row["is_baseline"]:
            checks |= {"difference": p - once_p, "cost_ratio": micros / once_micros}
        for name, value in checks.items():
            asked += 1
            # an interval without width holds what it is up to rounding
            slack = 1e-6 if name == "accuracy" else 0.005
            if not row[f"{name}_low"] - slack <= value <= row[f"{name}_high"] + slack:
                missed.append((row["scaffold"], row["width"], name, value))
        assert row["cost"] == pytest.approx(micros / 1e6, rel=0.02)
    assert asked == 50
    assert len(missed) <= 3, missed


def test_it_begins_to_pay_where_the_closed_form_has_it(run: Run) -> None:
    """The width from which on the true gain is above the margin lies in the interval; a verdict is never earlier."""
    truth = closed_form()
    widths = truth["width"].unique().sort().to_list()
    where = lab.metrics.where_it_pays(run.trials)
    assert where["scaffold"].to_list() == list(SCAFFOLDS[1:])
    for row in where.iter_rows(named=True):
        gain = {
            width: truth.filter(width=width, scaffold=row["scaffold"])["success"][0]
            - truth.filter(width=width, scaffold="once")["success"][0]
            for width in widths
        }
        first = next(w for w in widths if all(gain[v] > MARGIN for v in widths if v >= w))
        assert row["low"] <= first <= row["high"], (row, gain)
        assert row["from_width"] >= first


def test_the_command_prints_and_gives_the_verdicts(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    """On the screen the table and from where on it pays, in JSON the same numbers; with one scaffold neither."""
    from agentbench_lab.cli.common import print_run

    print_run(run, False)
    text = capsys.readouterr().out
    assert "Does it pay for itself?" in text
    assert "durable:linear against once" in text
    assert " pay against once from width 8 on." in " ".join(text.split())
    print_run(run, True)
    told = json.loads(capsys.readouterr().out)
    assert {row["verdict"] for row in told["ablation"]} >= {None, "pays", "dominates"}
    assert [row["from_width"] for row in told["where_it_pays"]] == [8, 8, 8]
    alone = lab.evaluate("wide", "simulated", only="wide-01*", trials=1, save_run=False)
    print_run(alone, False)
    assert "Does it pay for itself?" not in capsys.readouterr().out
    print_run(alone, True)
    assert json.loads(capsys.readouterr().out)["ablation"] == []
