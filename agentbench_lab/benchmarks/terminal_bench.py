"""Results of Terminal-Bench's own harness (`tb run`, before Harbor): a run's results.json, or a folder of such runs.

The source counts a null `is_resolved` as a failure and excludes nothing. Its `failure_mode` is `unset` for most
failures, so it says nothing of them; its token counts are 0 where they are unknown.
"""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from agentbench_lab.benchmarks import Options
from agentbench_lab.benchmarks.reading import decode_json, digest_of, read_bytes
from agentbench_lab.benchmarks.totals import (
    Asked,
    Count,
    accuracy,
    claim,
    lacking,
    pass_at_k,
    tally,
    told_lacking,
    unsplit,
)
from agentbench_lab.errors import LabError, counted
from agentbench_lab.results.imported import SourceCase, SourceTrial, imported_run, seconds_between
from agentbench_lab.results.run import Imported, Published, Run
from agentbench_lab.transcripts import Usage

FORM = "terminal-bench"
RESULTS = "results.json"
METADATA = "run_metadata.json"

STOPS: dict[str, str] = {
    "agent_timeout": "timeout",
    "unknown_agent_error": "driver_error",
    "fatal_llm_parse_error": "driver_error",
    "agent_installation_failed": "driver_error",
    "context_length_exceeded": "budget",
    "output_length_exceeded": "budget",
}
"""The failure modes that say how the agent ended. Those of the tests (test_timeout, parse_error) do not, nor do unset,
none and unknown."""
_SAY_NOTHING = ("unset", "none")
_ATTEMPT = re.compile(r"\.(\d+)-of-\d+\.")


class _Result(Struct):
    task_id: str
    is_resolved: bool | None = None
    id: str | None = None
    trial_name: str | None = None
    instruction: str | None = None
    failure_mode: str | None = None
    parser_results: dict[str, str] | None = None
    total_input_tokens: Count | None = None
    total_output_tokens: Count | None = None
    trial_started_at: str | None = None
    trial_ended_at: str | None = None
    agent_started_at: str | None = None
    agent_ended_at: str | None = None


class _Results(Struct):
    results: list[_Result]
    id: str | None = None
    accuracy: float | None = None
    n_resolved: Count | None = None
    pass_at_k: dict[str, float | None] | None = None


class _Kind(Struct):
    """What tells a run's results.json from that of one trial, which lies in the trial's own folder."""

    results: msgspec.Raw = msgspec.Raw()
    task_id: str | None = None


class _Metadata(Struct):
    run_id: str | None = None
    dataset_name: str | None = None
    dataset_version: str | None = None
    agent_name: str | None = None
    model_name: str | None = None
    start_time: str | None = None
    end_time: str | None = None
    commit_hash: str | None = None
    n_attempts: Annotated[int, Meta(ge=0, le=10_000)] | None = None


class _Source(Struct):
    """One run: its files, and what they say."""

    path: Path
    files: tuple[Path, ...]
    found: _Results
    about: _Metadata

    @property
    def name(self) -> str:
        return self.about.run_id or self.path.parent.name

    @property
    def started(self) -> str:
        """When it began: by its own word, else by its first trial's."""
        starts = [trial.trial_started_at or trial.agent_started_at or "" for trial in self.found.results]
        return self.about.start_time or min(filter(None, starts), default="")


def load_results(path: Path, options: Options) -> Run:
    """The trials of one run, or of all runs below a folder.

    Runs of one agent and model continue each other's trial numbers in the order of their start; several results of a
    task within a run count by their `-of-` number where they have one, else in the file's order. A task that one run of
    an agent and model has and another lacks is missing there, as often as that run asked each task. A second copy of a
    run is left out, aloud. Raises LabError for a file that is no run's, for runs of different data sets, and where neither
    the source nor `options` names the agent.
    """
    sources, notes = _sources(path)
    sources.sort(key=lambda source: (source.started, source.name))
    suite, version = _suite(sources, options, path)
    trials: list[SourceTrial] = []
    cases: dict[str, SourceCase] = {}
    published: list[Published] = []
    so_far: Counter[tuple[str, str | None, str]] = Counter()
    asked: list[Asked] = []
    for source in sources:
        arm = _arm(source, options)
        mine = _trials(source, arm, so_far)
        so_far.update((*arm, trial.case_id) for trial in mine)
        trials += mine
        had = Counter(trial.case_id for trial in mine)
        asked.append(Asked(arm, had, max([source.about.n_attempts or 1, *had.values()])))
        for each in source.found.results:
            known = cases.setdefault(each.task_id, SourceCase(each.instruction or ""))
            if each.instruction and not known.request:
                cases[each.task_id] = SourceCase(each.instruction)
        published += _published(source, arm, mine, several=len(sources) > 1)
    nulls = sum(each.is_resolved is None for source in sources for each in source.found.results)
    if nulls:
        have = "trial has" if nulls == 1 else "trials have"
        notes.append(f"{nulls} {have} no verdict (is_resolved is null); the source counts that as a failure.")
    lacks = lacking(asked)
    notes += [*told_lacking(lacks), *unsplit(trial.extra for trial in trials)]
    files = [file for source in sources for file in source.files]
    return imported_run(
        suite=suite,
        version=version,
        trials=trials,
        cases=cases,
        missing=sum(lacks.values()),
        imported=Imported(
            format=FORM,
            file=path.name,
            digest=digest_of(files, path.parent if path.is_file() else path),
            notes=tuple(notes),
            published=tuple(published),
        ),
        name=options.name,
        commit=_common([source.about.commit_hash for source in sources]) or "",
        started_at=sources[0].about.start_time or "",
        finished_at=max((source.about.end_time or "" for source in sources), default=""),
    )


def _sources(path: Path) -> tuple[list[_Source], list[str]]:
    if path.is_file():
        kind = decode_json(read_bytes(path), _Kind, str(path))
        if not kind.results and kind.task_id is not None:
            raise LabError(f"{path}: the results of one trial; give the {RESULTS} of its run, or its folder")
        return [_read(path)], []
    runs: list[Path] = []
    strays: list[Path] = []
    # The folders of a run's trials hold a results.json each: they say nothing that the run's own does not.
    for folder, below, files in os.walk(path):
        below.sort()
        if RESULTS not in files:
            continue
        file = Path(folder) / RESULTS
        if any(file.is_relative_to(run.parent) for run in runs) and _is_trial(file):
            continue
        (strays if _is_trial(file) else runs).append(file)
    if not runs:
        near = (
            f"; {counted(len(strays), 'trial')} {'has' if len(strays) == 1 else 'have'} one, their run has none"
            if strays
            else ""
        )
        raise LabError(f"{path}: no run's {RESULTS} here or below{near}")
    kept, notes = _once([_read(file) for file in runs], path)
    if strays:
        notes.append(
            f"Not read, since no run's {RESULTS} is theirs: {counted(len(strays), 'folder')} of trials."
        )
    return kept, notes


def _is_trial(file: Path) -> bool:
    kind = decode_json(read_bytes(file), _Kind, str(file))
    return not kind.results and kind.task_id is not None


def _read(file: Path) -> _Source:
    found = decode_json(read_bytes(file), _Results, str(file))
    beside = file.parent / METADATA
    if not beside.is_file():
        return _Source(file, (file,), found, _Metadata())
    return _Source(file, (file, beside), found, decode_json(read_bytes(beside), _Metadata, str(beside)))


def _once(sources: Sequence[_Source], root: Path) -> tuple[list[_Source], list[str]]:
    """The runs without second copies: same trials by their ids, or the same run's id with the same results."""
    kept: list[_Source] = []
    notes = []
    for source in sorted(sources, key=lambda source: (len(source.path.parts), source.path)):
        ids = {each.id for each in source.found.results if each.id}
        for other in kept:
            theirs = {each.id for each in other.found.results if each.id}
            here, there = (each.path.relative_to(root) for each in (source, other))
            named = source.found.id is not None and source.found.id == other.found.id
            if source.found.results == other.found.results and (ids or named):
                notes.append(f"{here} is a second copy of {there} and was not read.")
                break
            if ids & theirs or named:
                shared = counted(len(ids & theirs), "trial") if ids & theirs else f"the id {source.found.id}"
                raise LabError(f"{source.path}: shares {shared} with {there}, and is no copy of it")
        else:
            kept.append(source)
    return kept, notes


def _suite(sources: Sequence[_Source], options: Options, path: Path) -> tuple[str, str | None]:
    sets = list(
        dict.fromkeys((source.about.dataset_name, source.about.dataset_version) for source in sources)
    )
    told = [each for each in sets if any(each)]
    if len(told) > 1:
        named = ", ".join(" ".join(filter(None, each)) for each in told)
        raise LabError(f"{path}: runs of different data sets ({named}); import each by itself")
    name, version = told[0] if told else (None, None)
    return options.suite or name or FORM, version


def _arm(source: _Source, options: Options) -> tuple[str, str | None]:
    driver = source.about.agent_name or options.driver
    if not driver:
        what = f"{METADATA} names no agent" if len(source.files) > 1 else f"no {METADATA} beside it"
        raise LabError(f"{source.path}: {what}; say which agent it was with --driver NAME")
    return driver, source.about.model_name or options.model or None


def _trials(
    source: _Source, arm: tuple[str, str | None], so_far: Counter[tuple[str, str | None, str]]
) -> list[SourceTrial]:
    by_task: dict[str, list[_Result]] = defaultdict(list)
    for each in source.found.results:
        by_task[each.task_id].append(each)
    return [
        _trial(each, source, arm, so_far[*arm, task] + number)
        for task, results in by_task.items()
        for number, each in enumerate(_in_order(results), start=1)
    ]


def _in_order(results: list[_Result]) -> list[_Result]:
    matches = [_ATTEMPT.search(each.trial_name or "") for each in results]
    numbers = [int(match[1]) for match in matches if match]
    if len(set(numbers)) < len(results):
        return results
    return [results[at] for at in sorted(range(len(results)), key=lambda at: numbers[at])]


def _trial(each: _Result, source: _Source, arm: tuple[str, str | None], number: int) -> SourceTrial:
    mode = each.failure_mode or "unset"
    stop = STOPS.get(mode)
    told = mode not in _SAY_NOTHING
    extra: dict[str, object] = {"run_id": source.name}
    for name, value in (
        ("trial_name", each.trial_name),
        ("failure_mode", mode if told else None),
        ("tokens_input_total", each.total_input_tokens or None),
        ("trial_wall_s", seconds_between(each.trial_started_at, each.trial_ended_at)),
    ):
        if value is not None:
            extra[name] = value
    failed = [test for test, verdict in (each.parser_results or {}).items() if verdict != "passed"]
    return SourceTrial(
        case_id=each.task_id,
        driver=arm[0],
        model=arm[1],
        trial=number,
        solved=each.is_resolved is True,
        stop=stop,
        terminated=False if stop == "timeout" else None,
        usage=Usage(
            output=each.total_output_tokens or None,
            wall_s=seconds_between(each.agent_started_at, each.agent_ended_at),
        ),
        reasons=tuple(f"{test} failed" for test in failed),
        note=mode if told else None,
        extra=extra,
    )


def _published(
    source: _Source, arm: tuple[str, str | None], trials: Sequence[SourceTrial], *, several: bool
) -> list[Published]:
    found = source.found
    by_case = tally((trial.case_id, trial.solved is True) for trial in trials)
    where = f" of run {source.name}" if several else ""
    claims = []
    if found.accuracy is not None:
        claims.append(claim(arm, f"accuracy{where}", "share", found.accuracy, accuracy(by_case)))
    if found.n_resolved is not None:
        solved = sum(each.solved for each in by_case.values())
        claims.append(claim(arm, f"solved{where}", "trials", found.n_resolved, solved))
    for text, value in (found.pass_at_k or {}).items():
        if value is None:
            continue
        rows = pass_at_k(by_case, int(text)) if text.isdecimal() and 0 < int(text) <= 2**31 else None
        claims.append(claim(arm, f"pass@{text}{where}", "share", value, rows))
    return claims


def _common(values: Sequence[str | None]) -> str | None:
    found = set(values)
    return found.pop() if len(found) == 1 else None
