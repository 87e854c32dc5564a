"""Notebooks run strictly, and published as single HTML files that need no network.

`report(notebook, parameters)` does both; `run_notebook` and `publish` are its halves; `runs_of`
leads from an executed notebook to the runs that it shows.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentbench_lab.cases import project_root
from agentbench_lab.reports.execute import find_notebook, notebook_list, run_notebook
from agentbench_lab.reports.html import publish, runs_of

__all__ = ["notebook_list", "publish", "report", "run_notebook", "runs_of"]


def report(
    notebook: str | Path,
    parameters: Mapping[str, Any] | None = None,
    *,
    out: Path | None = None,
    timeout: int | None = None,
) -> tuple[Path, Path]:
    """Run a notebook with these parameters and publish it: (the executed notebook, the HTML file).

    The executed notebook is kept beside the notebooks as `out-<name>.ipynb`; the HTML file is `out`, or
    `reports/<name>.html` of the project. Raises LabError for a user's mistake and for a notebook that failed.
    """
    path = find_notebook(notebook)
    executed = run_notebook(
        path, project_root() / "notebooks" / f"out-{path.stem}.ipynb", parameters or {}, timeout=timeout
    )
    return executed, publish(executed, out)
