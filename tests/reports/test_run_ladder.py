"""The notebook that everyone is told to run: by papermill from two folders, strictly, and published."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import nbformat
import papermill
import pytest
from papermill.exceptions import PapermillExecutionError

from agentbench_lab.reports import publish, run_notebook, runs_of
from agentbench_lab.reports.display import CHART_MIME, PARAMETERS_MIME
from agentbench_lab.results.run import load_run
from agentbench_lab.tables import RUN_MIME

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOK = ROOT / "notebooks" / "run_ladder.ipynb"


@pytest.mark.long
@pytest.mark.parametrize(
    ("folder", "name"), [("notebooks", "run_ladder.ipynb"), (".", "notebooks/run_ladder.ipynb")]
)
def test_it_runs_by_papermill_from_either_folder(tmp_path: Path, folder: str, name: str) -> None:
    """The documented command; whatever the working folder, the suite is found."""
    out = tmp_path / "out.ipynb"
    command = [
        sys.executable,
        "-m",
        "papermill",
        name,
        str(out),
        "-p",
        "driver",
        "stub",
        "-p",
        "group",
        "TOOL-0",
    ]
    command += ["-p", "out", str(tmp_path / "run"), "--no-progress-bar", "--log-level", "ERROR"]
    done = subprocess.run(command, cwd=ROOT / folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert load_run(tmp_path / "run").card.counts.judged > 0
    assert "TOOL-0" in publish(out, tmp_path / "page.html").read_text(encoding="utf-8")


@pytest.mark.long
def test_it_shows_charts_tables_and_where_they_come_from(tmp_path: Path) -> None:
    """Run strictly: both charts, the echoed parameters, the banner, and the way back to the run."""
    given = {"driver": "stub", "only": "*", "stamp": "0012", "ladder": "true", "out": str(tmp_path / "run")}
    executed = run_notebook(NOTEBOOK, tmp_path / "out.ipynb", given)
    read = nbformat.read(executed, as_version=4)
    nbformat.validate(read)
    shown = [out.get("data", {}) for cell in read.cells for out in cell.get("outputs", [])]
    assert len([data for data in shown if CHART_MIME in data]) == 2
    (echo,) = [data[PARAMETERS_MIME] for data in shown if PARAMETERS_MIME in data]
    assert (echo["stamp"], echo["ladder"], echo["trials"]) == ("0012", True, 1)
    assert any(
        data.get("text/plain", "").startswith("SIMULATED: driver stub is stub-floor") for data in shown
    )
    (card,) = [data[RUN_MIME] for data in shown if RUN_MIME in data]
    assert card["stamp"] == "0012"
    assert runs_of(executed) == [tmp_path / "run"]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (
            {"stamp": 7e10},
            "stamp arrived as 70000000000.0 (float), but it is text: pass it with -r stamp TEXT",
        ),
        ({"ladder": "true"}, "ladder arrived as 'true' (str), but it is bool"),
    ],
)
def test_what_papermill_guessed_wrong_stops_it(tmp_path: Path, given: dict[str, object], says: str) -> None:
    """papermill's own -p makes 7e10 a number; the notebook stops before it runs a case, and says what to do."""
    with pytest.raises(PapermillExecutionError) as error:
        papermill.execute_notebook(
            NOTEBOOK, tmp_path / "out.ipynb", given | {"out": str(tmp_path / "run")}, progress_bar=False
        )
    assert error.value.ename == "LabError"
    assert says in error.value.evalue
    assert not (tmp_path / "run").exists()


@pytest.mark.long
def test_papermills_own_command_line_cannot_pass_a_parameter_that_is_none(tmp_path: Path) -> None:
    """papermill itself only warns of a misspelt name and runs with the default; the notebook stops."""
    notebook = Path(__file__).resolve().parents[2] / "notebooks" / "run_ladder.ipynb"
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "papermill",
            str(notebook),
            str(tmp_path / "out.ipynb"),
            "-p",
            "drivr",
            "stub",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode != 0
    assert "no parameter 'drivr' (did you mean 'driver'?)" in done.stderr
