"""The notebook on scaffolds: with a run made now, from disk, from a recording, and refusing a baseline that is not there."""

from __future__ import annotations

from pathlib import Path

import pytest
from papermill.exceptions import PapermillExecutionError

from agentbench_lab.cli.common import _ablation_json
from agentbench_lab.errors import LabError
from agentbench_lab.reports import publish, run_notebook, runs_of
from agentbench_lab.reports.display import CHART_MIME
from agentbench_lab.running.runner import evaluate

from .test_compare_runs import shown

NOTEBOOK = Path(__file__).resolve().parents[2] / "notebooks" / "ablate_scaffolds.ipynb"


@pytest.mark.long
def test_it_asks_the_driver_and_states_the_result(tmp_path: Path) -> None:
    """Curves, map and pass^k, each with its evidence; the result in words; nothing is written elsewhere."""
    executed = run_notebook(NOTEBOOK, tmp_path / "out.ipynb", {"scaffolds": ["once", "linear"], "trials": 4})
    charts = [each[CHART_MIME] for each in shown(executed) if CHART_MIME in each]
    assert len(charts) == 3
    for chart in charts:
        assert "Evidence: simulated (no model was asked)" in " ".join(chart["title"]["subtitle"])
    assert charts[0]["title"]["text"] == ["linear pays against once from width 8 on"]
    assert charts[1]["title"]["text"][0].startswith("Of 5 comparisons by width, ")
    assert runs_of(executed) == []
    page = publish(executed, tmp_path / "page.html").read_text(encoding="utf-8")
    for said in (
        "<strong>linear pays against once from width 8 on.</strong>",
        "Does it pay for itself?",
        "SIMULATED",
    ):
        assert said in page


@pytest.mark.long
def test_a_run_that_is_there_is_read_and_a_wrong_baseline_is_refused(tmp_path: Path) -> None:
    evaluate(
        "wide", "simulated", scaffolds=["once", "fan_out_2"], only="wide-0*", trials=2, out=tmp_path / "run"
    )
    given = {"run": str(tmp_path / "run"), "baseline": "fan_out_2"}
    executed = run_notebook(NOTEBOOK, tmp_path / "out.ipynb", given)
    assert runs_of(executed) == [tmp_path / "run"]
    assert "fan_out_2" in str(
        next(each[CHART_MIME] for each in shown(executed) if CHART_MIME in each)["title"]
    )
    with pytest.raises((LabError, PapermillExecutionError), match="no arm has the scaffold 'linear'"):
        run_notebook(NOTEBOOK, tmp_path / "failed.ipynb", given | {"baseline": "linear"})


@pytest.mark.long
def test_a_run_without_once_has_the_baseline_that_the_command_prints(tmp_path: Path) -> None:
    finished = evaluate(
        "wide", "simulated", scaffolds=["linear", "fan_out_2"], only="wide-0*", trials=2, out=tmp_path / "run"
    )
    executed = run_notebook(NOTEBOOK, tmp_path / "out.ipynb", {"run": str(tmp_path / "run")})
    assert "fan_out_2 against linear" in publish(executed, tmp_path / "page.html").read_text(encoding="utf-8")
    assert _ablation_json(finished, None)["ablation"][0]["baseline"] == "simulated + linear"


@pytest.mark.long
def test_a_live_run_that_was_recorded_is_played_back(tmp_path: Path) -> None:
    """A small model under three scaffolds: nothing is solved, nothing is claimed of it, and what it cost is compared."""
    given = {
        "driver": "replay:smollm2-wide",
        "scaffolds": ["once", "linear", "fan_out_2"],
        "only": "wide-01-a,wide-01-b,wide-02-a,wide-02-b",
        "trials": 1,
    }
    executed = run_notebook(NOTEBOOK, tmp_path / "out.ipynb", given)
    charts = [each[CHART_MIME] for each in shown(executed) if CHART_MIME in each]
    assert len(charts) == 3
    for chart in charts[:2]:
        assert "Evidence: replayed" in " ".join(chart["title"]["subtitle"])
    assert "no case has more than one judged trial" in charts[2]["title"]["text"][0]
    page = publish(executed, tmp_path / "page.html").read_text(encoding="utf-8")
    for said in ("REPLAYED", "Does it pay for itself?", "0% [0, 49] 0/4"):
        assert said in page
