"""Cells of a table that lead to trials: the right ones, and no others."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest

from agentbench_lab import metrics, tables
from agentbench_lab.drilldown import drill
from agentbench_lab.reports import publish
from agentbench_lab.reports.links import linked, table_of
from agentbench_lab.running.runner import evaluate

from ..doing import knows, write_suite
from ..drawing import NASTY_ID, executed
from .test_html import Page

NAMES = {
    ("arm", "a", "a"): "d1-a0",
    ("arm", "", "a"): "d1-a0",
    ("arm", "b", "b"): "d1-a1",
    ("arm", "", "b"): "d1-a1",
    ("group", "", "TOOL-3"): "d1-g0",
    ("group", "a", "TOOL-3"): "d1-g0",
    ("group", "b", "TOOL-3"): "d1-g1",
    ("case", "", "case-1"): "d1-t4",
    ("case", "a", "case-1"): "d1-t4",
    ("case", "b", "case-1"): "d1-t9",
    ("case", "", NASTY_ID): "d1-t5",
    ("case", "", "4"): "d1-t6",
    ("case", "", "14"): "d1-t7",
}


def table(*rows: list[str] | str, columns: str = "rung >judged >cases") -> str:
    made = tables.Table("T", columns.split(), rows)
    return linked(made._repr_html_(), NAMES)


def test_a_rung_and_its_counts_lead_to_its_trials() -> None:
    """The first cell for everyone; n/m for a pointer, so that keys stop once a row."""
    text = table(["TOOL-3", "0% [0, 17] 0/19", "----"])
    assert '<a href="#d1-g0">TOOL-3</a>' in text
    assert '<a href="#d1-g0" tabindex="-1">0% [0, 17] 0/19</a>' in text
    assert ">----</td>" in text
    assert table(["TOOL-4", "0/19", "TOOL-3"]).count("<a") == 0


def test_under_the_heading_of_an_arm_it_is_that_arms() -> None:
    """The heading holds for the rows below it, and leads to all of the arm; another heading ends it."""
    text = table("b", ["TOOL-3", "1/2", ""], "something else", ["TOOL-3", "1/2", ""])
    assert '<a href="#d1-a1">b</a>' in text
    assert text.index('href="#d1-g1"') < text.index("something else") < text.index('href="#d1-g0"')


def test_a_row_about_a_trial_leads_to_it_only() -> None:
    """Not to its rung as well; the arm may stand in the row; an id is compared as text."""
    text = table(["TOOL-3", "case-1", "1/2"], columns="rung case >judged")
    assert '<a href="#d1-t4">case-1</a>' in text
    assert text.count("<a") == 1
    assert '<a href="#d1-t9">case-1</a>' in table(["TOOL-3", "case-1", "b"], columns="rung case arm")
    assert '<a href="#d1-t5">a"b&lt;c</a>' in table(["x", NASTY_ID, ""], columns="rung case arm")


def test_a_count_that_looks_like_a_case_leads_nowhere() -> None:
    """Case ids of tau-bench are numbers: 4 trials are not case 4, and 14 cases that nobody solved are not case 14."""
    assert table(["4", "14", "4"], columns=">trials >cases >k").count("<a") == 0
    assert table(["TOOL-3", "4", "14"]).count("<a") == 1
    assert '<a href="#d1-t6">4</a></th><td style="text-align: right">14</td>' in table(
        ["4", "14"], columns="case >trials"
    )


def test_an_arm_leads_to_its_trials() -> None:
    """From a table of costs with its n/m, and from pass^k, whose rows name no more than a k."""
    text = table(["b", "14/50", "3/4"], columns="arm >cases >judged")
    assert '<a href="#d1-a1">b</a>' in text
    assert '<a href="#d1-a1" tabindex="-1">3/4</a>' in text
    assert text.count("<a") == 2  # 14 of 50 cases are not the arm's trials
    text = table("a", ["k = 1", "50%", "4/4"], columns="k >pass^k >judged")
    assert '<a href="#d1-a0" tabindex="-1">4/4</a>' in text
    assert table("a", ["malformed", "5%", "4/4"], columns="what >share >calls").count("<a") == 1


def test_nothing_else_changes() -> None:
    """Without a drill-down, and in cells that hold markup, the table stays byte for byte."""
    made = tables.Table("T", ["c"], [["TOOL-3"]])._repr_html_()
    assert linked(made, {}) == made
    odd = "<table><tr><th>TOOL-3</th><td><b>1/2</b></td></tr></table>"
    assert linked(odd, NAMES) == odd
    assert table_of(made).startswith('<div class="output" role="group" tabindex="0" aria-label="T"><table>')
    assert table_of("<p>x</p>") == '<div class="output"><p>x</p></div>'


@pytest.mark.parametrize("broken", [False, True])
def test_a_report_leads_from_its_tables_to_its_trials(tmp_path: Path, broken: bool) -> None:
    """Every link of the page has its anchor; a drill-down of another form is shown as any output is, without links."""
    run = evaluate(write_suite(tmp_path), [knows, "refuse_all"], save_run=False)
    found = drill(run)
    data = found._repr_mimebundle_()
    if broken:
        data = {kind: {**value, "cells": 5} for kind, value in data.items()}
    pair = metrics.ladder(run.trials, run.card)
    source = executed(
        tmp_path / "out.ipynb",
        tables.ladder(pair),
        tables.outcomes(metrics.outcomes(run.trials)),
        tables.failures(metrics.strip(run.trials, run.cases)),
        {**data, "text/html": "<p>as it was</p>", "text/plain": "x"},
    )
    nbformat.validate(nbformat.read(source, as_version=4))
    page = Page(publish(source, tmp_path / "page.html"))
    links = [said["href"] for tag, said in page.elements if tag == "a"]
    ids = {said["id"] for _, said in page.elements if "id" in said}
    assert {link.removeprefix("#") for link in links} <= ids
    if broken:
        assert links == ["#content"]
        assert "as it was" in page.text
        return
    # 10 rungs and 3 n/m or 4 n/m each for two arms at least
    assert len([link for link in links if link.startswith("#d1-g")]) >= 2 * 10 * 4
    refused = {f"#d1-t{line.number}" for line in found.lines if line.outcome == "over_refusal"}
    assert refused <= set(links)
