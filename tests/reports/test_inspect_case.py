"""The notebook that reads one case: by itself with the reference solution, and on a trial from disk."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest

from agentbench_lab.reports import publish, run_notebook, runs_of
from agentbench_lab.running.runner import evaluate

NOTEBOOK = Path(__file__).resolve().parents[2] / "notebooks" / "inspect_case.ipynb"


def texts(executed: Path) -> str:
    """All that its cells show as plain text."""
    read = nbformat.read(executed, as_version=4)
    return "\n".join(
        out.get("data", {}).get("text/plain", "") for cell in read.cells for out in cell.get("outputs", [])
    )


@pytest.mark.long
def test_the_reference_solution_changes_two_places(tmp_path: Path) -> None:
    executed = run_notebook(NOTEBOOK, tmp_path / "out.ipynb", {})
    said = texts(executed)
    for words in ("World nursery (state)", "GLOVE-M → GLOVE-L", "7 → 6", "4 calls, 2 changes"):
        assert words in said
    page = publish(executed, tmp_path / "page.html").read_text(encoding="utf-8")
    assert "GLOVE-M → GLOVE-L" in page and "SIMULATED" in page
    # a page without a chart claims its first sentence, for the index
    (claim,) = re.findall(r'<meta name="report-claim" content="([^"]*)">', page)
    assert claim.endswith("reference ended as solved (success), after 4 calls and 2 changes.")


@pytest.mark.long
def test_a_trial_from_disk(tmp_path: Path) -> None:
    run = evaluate("support", ["stub", "refuse_all"], only="cancel-shipped", trials=2, out=tmp_path / "run")
    assert run.path is not None
    given = {"suite": "support", "case": "cancel-shipped", "run": str(run.path), "trial": "2"}
    given["arm"] = "refuse_all"
    executed = run_notebook(NOTEBOOK, tmp_path / "out.ipynb", given)
    said = texts(executed)
    assert "no call reached the toolbox" in said and "correct_refusal" in said
    assert "[refuse_all #2]" in said
    assert runs_of(executed) == [tmp_path / "run"]
