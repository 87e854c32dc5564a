"""Results of public benchmarks and other harnesses, as runs: one module a format, each with `load_results`.

Nothing is judged again. What a source does not say is null, what it excluded is excluded and nothing else is, and a
published total that does not follow from the rows stands on the card beside what the rows give.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterable
from decimal import InvalidOperation
from pathlib import Path

from msgspec import Struct

from agentbench_lab.errors import LabError, did_you_mean
from agentbench_lab.results.run import Run


class Options(Struct, frozen=True):
    """What the caller adds: names where the source has none (`suite`, `driver`, `model`), the run's own name, and for
    tables which column holds what (`columns`: our name to theirs)."""

    name: str = ""
    suite: str = ""
    driver: str = ""
    model: str = ""
    columns: dict[str, str] = {}


COLUMNS = ("COLUMNS",)


class Format(Struct, frozen=True):
    """A format that can be read: the module that reads it, what its files are, the function that does it, and which
    names it takes in `Options.columns` (`COLUMNS`: those of our columns)."""

    module: str
    about: str
    function: str = "load_results"
    maps: tuple[str, ...] = ()


FORMATS: dict[str, Format] = {
    "bench-v1": Format("bench_v1", "a result file of agent-runtime/bench/v1"),
    "bfcl": Format("bfcl", "a BFCL folder with result/ and score/"),
    "hal": Format("hal", "an UPLOAD.json of the Holistic Agent Leaderboard's harness, or a folder of them"),
    "harbor": Format("harbor", "a job's folder of Harbor, or one trial's result.json"),
    "inspect": Format(
        "inspect", "logs of Inspect AI: .eval or .json, one or a folder of them", maps=("scorer",)
    ),
    "mini-swe-agent": Format(
        "swe_bench.mini", "trajectories (.traj.json) with SWE-bench reports beside them"
    ),
    "swe-bench": Format("swe_bench", "a SWE-bench leaderboard, run report, or folder of report.json files"),
    "tau-bench": Format("tau_bench", "trajectories of tau-bench, one JSON file"),
    "tau2": Format("tau2", "results of tau2-bench: a results.json, its folder, or a folder of several"),
    "terminal-bench": Format("terminal_bench", "a run's results.json of Terminal-Bench, or a folder of runs"),
    "csv": Format(
        "tables", "a table, one trial a row; --map says which column holds what", "load_csv", COLUMNS
    ),
    "jsonl": Format("tables", "the same as JSON lines, one object a trial", "load_jsonl", COLUMNS),
    "parquet": Format("tables", "the same as a Parquet file", "load_parquet", COLUMNS),
}
"""The formats by the name that the command line takes. A module is loaded when its format is asked for."""


def load_results(form: str, path: str | Path, options: Options | None = None) -> Run:
    """The run that a result file or folder tells of, in memory.

    Raises LabError for an unknown format (with the nearest), for what cannot be read, and for content that is not of
    the format, with file and place, and the format that it looks like where that is another.
    """
    if form not in FORMATS:
        raise LabError(f"no format {form!r}{did_you_mean(form, FORMATS, most=20)}")
    options = options or Options()
    _check_maps(form, options.columns)
    # a name of its own, which `.` has not, and one root for all files, however the path was given
    source = Path(os.path.abspath(path))
    if not source.exists():
        raise LabError(f"{path}: there is no such file or folder")
    module = importlib.import_module(f"agentbench_lab.benchmarks.{FORMATS[form].module}")
    try:
        run = _counted(getattr(module, FORMATS[form].function), source, options)
    except LabError as error:
        from agentbench_lab.benchmarks.kinds import looks_like

        told = str(error).replace(str(source), str(path))
        if not Path(path).is_absolute():  # other files that belong to it may lie beside it
            told = told.replace(f"{Path.cwd()}{os.sep}", "")
        meant = looks_like(source)
        if meant is not None and meant != form and len(told.splitlines()) == 1:
            told = f"{told}; it looks like {meant}: agentbench-lab import {meant} {path}"
        raise LabError(told) from None
    assert isinstance(run, Run)
    return run


def _counted(function: Callable[[Path, Options], Run], source: Path, options: Options) -> Run:
    """What an importer reads. Numbers of a source may be as large as they like: those that no arithmetic holds are the
    file's fault, wherever it is that they are counted with."""
    try:
        return function(source, options)
    except (OverflowError, InvalidOperation):
        raise LabError(f"{source}: holds a number that is too large to be counted with") from None


def _check_maps(form: str, names: Iterable[str]) -> None:
    takes = FORMATS[form].maps
    for name in names:
        if not takes:
            tables = ", ".join(each for each in FORMATS if FORMATS[each].maps == COLUMNS)
            raise LabError(
                f"{form} says itself what its fields are; --map names columns for tables ({tables}), and for inspect "
                "the scorer"
            )
        if takes != COLUMNS and name not in takes:
            raise LabError(f"--map {name}: {form} takes nothing of that name{did_you_mean(name, takes)}")
