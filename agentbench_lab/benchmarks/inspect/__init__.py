"""Logs of Inspect AI: one `.eval` or `.json` file, or a folder of them."""

from __future__ import annotations

from pathlib import Path

from agentbench_lab.benchmarks import Options
from agentbench_lab.benchmarks.inspect.gather import run_of
from agentbench_lab.benchmarks.inspect.log import Log, is_log, logs_in, read_log
from agentbench_lab.errors import LabError
from agentbench_lab.results.run import Run
from agentbench_lab.results.schema import no_collection


def load_results(path: Path, options: Options) -> Run:
    """The logs as one run: the samples are its trials, an epoch is a trial's number.

    `options.columns` may say which of several scorers is the verdict: `scorer` is its name, or NAME.KEY for a dict of
    values. A log is an arm (its solvers by its model); logs of several tasks become groups, with the task before the case's id.
    Of two logs of one task (one that was tried again) the later counts; others of the same arm and task give further
    trials when all that was set in them is the same. Raises LabError for logs that cannot be told apart, for a folder
    without logs, and for a log in which nothing was scored.
    """
    with no_collection():
        if not path.is_dir():
            return run_of(path, [read_log(path)], [], options)
        logs, notes = _folder(path)
        return run_of(path, logs, notes, options)


def _folder(path: Path) -> tuple[list[Log], list[str]]:
    files = list(logs_in(path))
    others = [file for file in files if file.suffix == ".json" and not is_log(file)]
    logs = [read_log(file) for file in files if file not in others]
    if not logs:
        raise LabError(f"{path}: no Inspect log (.eval or .json) in this folder")
    notes = [f"Left out, no Inspect log: {file.name}." for file in others]
    return _latest(logs, notes), notes


def _latest(logs: list[Log], notes: list[str]) -> list[Log]:
    """The logs in the order of time, without those of which a later one is another try: it has their samples too."""
    evals: dict[str, Log] = {}
    tasks: dict[str, Log] = {}
    for log in sorted(logs, key=lambda log: (log.header.eval.created, str(log.path))):
        spec = log.header.eval
        known = evals.setdefault(spec.eval_id or str(log.path), log)
        if known is not log:
            raise LabError(f"{log.path}: the same evaluation as {known.path.name}; keep one of the two")
        earlier = tasks.pop(spec.task_id or str(log.path), None)
        if earlier is not None:
            notes.append(f"Left out: {earlier.path.name}, which {log.path.name} tried again.")
        tasks[spec.task_id or str(log.path)] = log
    return list(tasks.values())
