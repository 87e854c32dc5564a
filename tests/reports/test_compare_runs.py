"""The notebook that compares two runs: by itself in a fresh clone, with two runs from disk, and refusing unlike ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest
from papermill.exceptions import PapermillExecutionError

from agentbench_lab.errors import LabError
from agentbench_lab.reports import publish, run_notebook, runs_of
from agentbench_lab.reports.display import CHART_MIME
from agentbench_lab.running.runner import evaluate

NOTEBOOK = Path(__file__).resolve().parents[2] / "notebooks" / "compare_runs.ipynb"


def shown(executed: Path) -> list[dict[str, Any]]:
    """The outputs of all cells."""
    read = nbformat.read(executed, as_version=4)
    return [out.get("data", {}) for cell in read.cells for out in cell.get("outputs", [])]


@pytest.mark.long
def test_without_runs_it_makes_two(tmp_path: Path) -> None:
    """The two floors over the ladder suite, compared and published, and nothing is written elsewhere."""
    executed = run_notebook(NOTEBOOK, tmp_path / "out.ipynb", {})
    data = shown(executed)
    (chart,) = [each[CHART_MIME] for each in data if CHART_MIME in each]
    assert chart["title"]["text"][0].startswith("stub solves ")
    assert chart["title"]["text"][0].endswith(" points more than refuse_all")
    assert runs_of(executed) == []
    page = publish(executed, tmp_path / "page.html").read_text(encoding="utf-8")
    for said in ("stub solves", "Which cases changed", "every case has one", "SIMULATED"):
        assert said in page


@pytest.mark.long
def test_with_two_runs_it_leads_back_to_them(tmp_path: Path) -> None:
    """An arm of several is chosen by name; both folders are found again in the executed notebook."""
    for name, drivers in (("one", ["stub", "reckless"]), ("two", ["stub"])):
        evaluate("ladder", drivers, group="TOOL-0", out=tmp_path / name)
    given = {
        "run_a": str(tmp_path / "one"),
        "run_b": str(tmp_path / "two"),
        "arm_a": "reckless",
        "allow_mixed_commits": "true",
    }
    executed = run_notebook(NOTEBOOK, tmp_path / "out.ipynb", given)
    assert runs_of(executed) == [tmp_path / "one", tmp_path / "two"]
    with pytest.raises((LabError, PapermillExecutionError), match="it has 2 arms; say which: reckless, stub"):
        run_notebook(NOTEBOOK, tmp_path / "failed.ipynb", given | {"arm_a": ""})
