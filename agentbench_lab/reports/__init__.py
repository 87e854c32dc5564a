"""Notebooks run strictly, and published as single HTML files that need no network.

`report(notebook, parameters)` does both, and `report_all` does it for several with their own defaults; `run_notebook` and
`publish` are the halves; `runs_of` leads from an executed notebook to the runs that it shows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentbench_lab.cases import project_root
from agentbench_lab.errors import LabError
from agentbench_lab.reports.execute import find_notebook, notebook_list, project_notebooks, run_notebook
from agentbench_lab.reports.html import publish, runs_of
from agentbench_lab.reports.index import write_index

__all__ = ["Reported", "notebook_list", "publish", "report", "report_all", "run_notebook", "runs_of"]


def report(
    notebook: str | Path,
    parameters: Mapping[str, Any] | None = None,
    *,
    out: Path | None = None,
    isolated: bool = False,
    timeout: int | None = None,
) -> tuple[Path, Path]:
    """Run a notebook with these parameters and publish it: (the executed notebook, the HTML file).

    The executed notebook is kept beside the notebooks as `out-<name>.ipynb`; the HTML file is `out`, or
    `reports/<name>.html` of the project. `isolated` and `timeout` are those of `run_notebook`. Raises LabError for a
    user's mistake and for a notebook that failed.
    """
    path = find_notebook(notebook)
    _expect_charts(path)
    executed = run_notebook(path, _executed(path), parameters or {}, isolated=isolated, timeout=timeout)
    return executed, publish(executed, out)


@dataclass(frozen=True, slots=True)
class Reported:
    """What became of one notebook of several: its page, or what went wrong; and the seconds that it took."""

    notebook: str
    page: Path | None
    problem: str
    seconds: float


def report_all(
    notebooks: Sequence[str | Path] = (),
    *,
    folder: Path | None = None,
    isolated: bool = False,
    jobs: int = 1,
    each: Callable[[Reported], None] = lambda done: None,
) -> tuple[list[Reported], Path]:
    """Run and publish several notebooks with their own default parameters: (what became of each, the index).

    Without names all of the project's. They run one after the other in this process, each in a namespace of its own
    (`isolated`: each in a kernel); with several `jobs` in so many processes side by side. One that fails does not stop the
    others: its older page stays, and the index says so. `each` is called as they are done. Raises LabError, before anything runs, for a notebook that is not there and for two
    that would have one page.
    """
    paths = [find_notebook(name) for name in notebooks] if notebooks else project_notebooks()
    names = [path.stem for path in paths]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise LabError(f"{twice!r} stands twice: both would be {twice}.html")
    if jobs < 1:
        raise LabError(f"jobs is {jobs}; at least 1 is needed")
    if not paths:
        raise LabError(f"{project_root() / 'notebooks'}: no notebook")
    where = (folder if folder is not None else project_root() / "reports").absolute()
    done = []
    if jobs == 1 or len(paths) == 1:
        for path in paths:
            done.append(_reported(path, where, isolated))
            each(done[-1])
    else:
        for one in _side_by_side(paths, where, isolated, jobs):
            done.append(one)
            each(one)
        done.sort(key=lambda one: names.index(one.notebook))
    failed = {one.notebook: one.problem.partition("; kept as ")[0] for one in done if one.page is None}
    try:
        where.mkdir(parents=True, exist_ok=True)
        return done, write_index(where, done=set(names) - failed.keys(), failed=failed)
    except OSError as error:
        raise LabError(f"{where}: cannot write there ({error.strerror})") from None


def _reported(path: Path, folder: Path, isolated: bool) -> Reported:
    """Run and publish one notebook; a failure is told, not raised."""
    began = time.perf_counter()
    page, problem = None, ""
    try:
        _expect_charts(path)
        executed = run_notebook(path, _executed(path), {}, isolated=isolated)
        page = publish(executed, folder / f"{path.stem}.html")
    except LabError as error:
        problem = str(error)
    return Reported(path.stem, page, problem, time.perf_counter() - began)


def _side_by_side(paths: Sequence[Path], folder: Path, isolated: bool, jobs: int) -> Iterator[Reported]:
    """The notebooks over several fresh processes, as they are done.

    A notebook that ends its process takes the others of that moment with it: all of them are run again, in kernels, and
    the one that did it is told by its own failure.
    """
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import get_context

    again = []
    with ProcessPoolExecutor(min(jobs, len(paths)), mp_context=get_context("spawn")) as pool:
        asked = {pool.submit(_reported, path, folder, isolated): path for path in paths}
        for future in as_completed(asked):
            try:
                yield future.result()
            except BrokenProcessPool:
                again.append(asked[future])
    for path in again:
        yield _reported(path, folder, True)


def _executed(path: Path) -> Path:
    return project_root() / "notebooks" / f"out-{path.stem}.ipynb"


def _expect_charts(path: Path) -> None:
    """Have the chart library made meanwhile, where the notebook looks as if it shows charts."""
    from agentbench_lab.reports.live import prepare

    if b"show_charts" in path.read_bytes():
        prepare()
