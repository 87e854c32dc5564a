"""The notebook that reads failures: by itself in a fresh clone, and on a run from disk, narrowed to one case."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest

from agentbench_lab.reports import publish, run_notebook, runs_of
from agentbench_lab.running.runner import evaluate

NOTEBOOK = Path(__file__).resolve().parents[2] / "notebooks" / "read_failures.ipynb"


def texts(executed: Path) -> str:
    """All that its cells show as plain text."""
    read = nbformat.read(executed, as_version=4)
    return "\n".join(
        out.get("data", {}).get("text/plain", "") for cell in read.cells for out in cell.get("outputs", [])
    )


@pytest.mark.long
def test_without_a_run_it_asks_the_stub(tmp_path: Path) -> None:
    """How trials ended and stopped, the list, and one failure in full; published, and nothing is written elsewhere."""
    executed = run_notebook(NOTEBOOK, tmp_path / "out.ipynb", {})
    said = texts(executed)
    for table in (
        "How trials ended",
        "How trials stopped",
        "Trials",
        "asked",
        "observed, as the toolbox saw it",
    ):
        assert f"\n{table}\n" in f"\n{said}"
    assert "FAILED first" in said
    assert runs_of(executed) == []
    page = publish(executed, tmp_path / "page.html").read_text(encoding="utf-8")
    assert "What went wrong" in page
    assert "SIMULATED" in page


@pytest.mark.long
def test_a_run_from_disk_narrowed_to_one_case(tmp_path: Path) -> None:
    """The case is shown in full whether it failed or not, and the report leads back to the run."""
    run = evaluate("ladder", "reckless", group="TOOL-0", out=tmp_path / "run")
    case = str(run.cases.column("case_id")[3].as_py())
    given = {"run": str(tmp_path / "run"), "case": case, "outcome": "unsafe", "most": "3"}
    executed = run_notebook(NOTEBOOK, tmp_path / "out.ipynb", given)
    assert f"{case} [reckless #1], TOOL-0" in texts(executed)
    assert runs_of(executed) == [tmp_path / "run"]
