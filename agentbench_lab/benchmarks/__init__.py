"""Results of public benchmarks and other harnesses, as runs: one module a format, each with `load_results`.

Nothing is judged again. What a source does not say is null, what it excluded is excluded and nothing else is, and a
published total that does not follow from the rows stands on the card beside what the rows give.
"""

from __future__ import annotations

import importlib
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


class Format(Struct, frozen=True):
    """A format that can be read: the module that reads it, what its files are, and the function that does it."""

    module: str
    about: str
    function: str = "load_results"


FORMATS: dict[str, Format] = {
    "bench-v1": Format("bench_v1", "a result file of agent-runtime/bench/v1"),
    "bfcl": Format("bfcl", "a BFCL folder with result/ and score/"),
    "hal": Format("hal", "an UPLOAD.json of the Holistic Agent Leaderboard's harness, or a folder of them"),
    "harbor": Format("harbor", "a job's folder of Harbor, or one trial's result.json"),
    "inspect": Format("inspect", "logs of Inspect AI: .eval or .json, one or a folder of them"),
    "mini-swe-agent": Format(
        "mini_swe_agent", "trajectories (.traj.json) with SWE-bench reports beside them"
    ),
    "swe-bench": Format("swe_bench", "a SWE-bench leaderboard, run report, or folder of report.json files"),
    "tau-bench": Format("tau_bench", "trajectories of tau-bench, one JSON file"),
    "tau2": Format("tau2", "results of tau2-bench: a results.json, its folder, or a folder of several"),
    "terminal-bench": Format("terminal_bench", "a run's results.json of Terminal-Bench, or a folder of runs"),
    "csv": Format("columns", "a table, one trial a row; --map says which column holds what", "load_csv"),
    "jsonl": Format("columns", "the same as JSON lines, one object a trial", "load_jsonl"),
    "parquet": Format("columns", "the same as a Parquet file", "load_parquet"),
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
    module = importlib.import_module(f"agentbench_lab.benchmarks.{FORMATS[form].module}")
    if options.columns and not hasattr(module, "COLUMNS"):
        tables = ", ".join(name for name, each in FORMATS.items() if each.module == "columns")
        raise LabError(
            f"{form} says itself what its fields are; columns are named for tables only ({tables})"
        )
    source = Path(path)
    if not source.exists():
        raise LabError(f"{path}: there is no such file or folder")
    try:
        run = getattr(module, FORMATS[form].function)(source, options)
    except LabError as error:
        from agentbench_lab.benchmarks.kinds import looks_like

        meant = looks_like(source)
        if meant is None or meant == form or len(str(error).splitlines()) != 1:
            raise
        raise LabError(f"{error}; it looks like {meant}: agentbench-lab import {meant} {path}") from None
    assert isinstance(run, Run)
    return run
