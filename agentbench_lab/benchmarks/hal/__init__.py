"""Results of the Holistic Agent Leaderboard's harness (hal-harness): an <run_id>_UPLOAD.json, or a folder of them.

The verdict is the source's own: its lists of successful and failed tasks where they name the task, else the task's
score. Its accuracy divides by the tasks with an output (some benchmarks by all their tasks); the accuracies of levels
always by all tasks of the level, of which the file does not tell.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from agentbench_lab.benchmarks import Options
from agentbench_lab.benchmarks.hal.usage import TaskLog, task_logs
from agentbench_lab.benchmarks.reading import decode_json, digest_of, is_one, read_bytes
from agentbench_lab.benchmarks.totals import (
    Asked,
    Dollars,
    accuracy,
    as_float,
    claim,
    lacking,
    tally,
    told_lacking,
    unsplit,
)
from agentbench_lab.errors import LabError, counted
from agentbench_lab.results.imported import SourceCase, SourceTrial, imported_run
from agentbench_lab.results.run import Imported, Published, Run
from agentbench_lab.transcripts import Usage

FORM = "hal"
SUFFIX = "_UPLOAD.json"
SCORES = ("score", "reward", "resolved", "success", "fraction_passed")
"""Where a task's score stands, in the order of preference, when its result is an object."""
_LEVEL = re.compile(r"level_(\w+)_accuracy")
_REPEAT = re.compile(r"_rep(\d{1,6})$")


class _Config(Struct):
    agent_name: str
    benchmark_name: str
    run_id: str = ""
    date: str | None = None
    agent_args: dict[str, Any] | None = None


class _Latency(Struct):
    total_time: float | None = None


class _Upload(Struct):
    config: _Config
    results: dict[str, Any]
    raw_eval_results: Any
    raw_logging_results: Any = None
    task_prompts: dict[str, Any] | None = None
    total_usage: dict[str, Any] | None = None
    total_cost: Dollars | None = None
    git_info: dict[str, Any] | None = None
    wall_clock_times: dict[str, float | None] | None = None
    task_step_counts: dict[str, int | None] | None = None


class _Results(Struct):
    """Of `results`, what has a meaning here."""

    successful_tasks: list[str | int] | None = None
    failed_tasks: list[str | int] | None = None
    latencies: dict[str, _Latency] | None = None
    total_cost: Dollars | None = None
    accuracy: float | None = None


class _Score(Struct):
    """What one result of a task says: its number, or only a verdict, or neither; the text of an error."""

    number: float | None = None
    verdict: bool | None = None
    text: str | None = None
    level: str | None = None


class _Source(Struct):
    file: Path
    said: _Upload
    results: _Results
    logs: dict[str, TaskLog]
    scores: dict[str, list[_Score]]


def load_results(path: Path, options: Options) -> Run:
    """The tasks of one result file, or of all of a folder, as trials.

    Files of one agent and model are further trials of its tasks, in the order of their names; an agent name that ends
    in _rep<K> says the number itself. A list of results of one task (its prompt variations) is as many trials. A
    task that one file of an agent and model has and another lacks is missing there. Raises
    LabError for a file that is none, for scores that name no tasks, and for a run that is there twice.
    """
    files = [path] if path.is_file() else sorted(path.glob(f"*{SUFFIX}"))
    if not files:
        raise LabError(f"{path}: no *{SUFFIX} in it")
    sources = [_read(file) for file in files]
    notes: list[str] = []
    sources = _once(sources, notes)
    suites = list(dict.fromkeys(source.said.config.benchmark_name for source in sources))
    if len(suites) > 1:
        raise LabError(f"{path}: results of several benchmarks ({', '.join(suites)}); import each by itself")
    trials: list[SourceTrial] = []
    cases: dict[str, SourceCase] = {}
    published: list[Published] = []
    asked: list[Asked] = []
    for source in sources:
        arm, repeat = _arm(source, options)
        so_far = Counter(trial.case_id for trial in trials if (trial.driver, trial.model) == arm)
        mine = _trials(source, arm, repeat, so_far, notes)
        trials += mine
        asked.append(Asked(arm, Counter(trial.case_id for trial in mine)))
        for task, case in _cases(source, mine).items():
            cases.setdefault(task, case)
        published += _published(source, arm, mine, several=len(sources) > 1)
    lacks = lacking(asked)
    notes += [*told_lacking(lacks), *unsplit(trial.extra for trial in trials)]
    commits = {_commit(source) for source in sources}
    dates = sorted(source.said.config.date or "" for source in sources)
    return imported_run(
        suite=options.suite or suites[0],
        trials=trials,
        cases=cases,
        missing=sum(lacks.values()),
        imported=Imported(
            format=FORM,
            file=path.name,
            digest=digest_of([source.file for source in sources], path),
            notes=tuple(dict.fromkeys(notes)),
            published=tuple(published),
        ),
        name=options.name,
        commit=commits.pop() if len(commits) == 1 else "",
        started_at=dates[0],
    )


# ---- the file -------------------------------------------------------------------------------------------------------


def _read(file: Path) -> _Source:
    said: _Upload = decode_json(read_bytes(file), _Upload, str(file))
    try:
        results = msgspec.convert(said.results, _Results)
    except msgspec.ValidationError as error:
        raise LabError(f"{file}: $.results: {error}") from None
    return _Source(
        file, said, results, task_logs(said.raw_logging_results, str(file)), _scores(file, said, results)
    )


def _once(sources: Sequence[_Source], notes: list[str]) -> list[_Source]:
    kept: dict[str, _Source] = {}
    for source in sources:
        run = source.said.config.run_id or source.file.name
        if run not in kept:
            kept[run] = source
        elif source.said == kept[run].said:
            notes.append(f"{source.file.name} is a second copy of {kept[run].file.name} and was not read.")
        else:
            raise LabError(f"{source.file}: run {run} is in {kept[run].file.name} too, with other results")
    return list(kept.values())


def _scores(file: Path, said: _Upload, results: _Results) -> dict[str, list[_Score]]:
    """The results of each task; each benchmark has a shape of its own."""
    raw = said.raw_eval_results
    lists = [str(task) for task in (*(results.successful_tasks or ()), *(results.failed_tasks or ()))]
    if isinstance(raw, Mapping) and isinstance(raw.get("scores"), list):
        raise LabError(f"{file}: $.raw_eval_results.scores: a list of scores that names no tasks")
    if isinstance(raw, Mapping):
        for known in ("sdict", "details"):  # of USACO and SciCode: by task, one level down
            if isinstance(raw.get(known), Mapping):
                raw = raw[known]
                break
        else:
            if isinstance(raw.get("resolved_ids"), list):  # SWE-bench's report: nothing but lists of tasks
                raw = dict.fromkeys(lists)
        by_task = {str(task): _score_list(value) for task, value in raw.items()}
        if lists and not by_task.keys() & set(lists):
            by_task = {}  # an object that is not by task, such as a log of its own
        by_task |= {task: [_Score()] for task in lists if task not in by_task}
        if by_task:
            return by_task
    elif lists:
        return {task: [_Score()] for task in dict.fromkeys(lists)}
    raise LabError(f"{file}: $.raw_eval_results: names no tasks")


def _score_list(value: Any) -> list[_Score]:
    if (
        isinstance(value, list)
        and value
        and all(isinstance(each, dict | bool | int | float) for each in value)
    ):
        return [_score(each) for each in value]
    return [_score(value)]


def _score(value: Any) -> _Score:
    if isinstance(value, bool):
        return _Score(verdict=value)
    if isinstance(value, int | float):
        return _Score(number=as_float(value))
    if isinstance(value, str):
        return _Score(text=value)
    if isinstance(value, Mapping):
        level = value.get("level", value.get("Level"))
        told = str(level) if isinstance(level, str | int) and not isinstance(level, bool) else None
        inner = value.get("result") if isinstance(value.get("result"), Mapping) else value
        for name in SCORES:
            found = inner.get(name) if inner is not None else None
            if isinstance(found, bool):
                return _Score(verdict=found, level=told)
            if isinstance(found, int | float):
                return _Score(number=as_float(found), level=told)
            if isinstance(found, str):  # USACO writes its fractions as text
                try:
                    return _Score(number=as_float(float(found)), level=told)
                except ValueError:
                    continue
        return _Score(level=told)
    return _Score()


# ---- trials ---------------------------------------------------------------------------------------------------------


def _arm(source: _Source, options: Options) -> tuple[tuple[str, str | None], int | None]:
    """Agent and model, and the number that a repetition's agent name ends in."""
    config = source.said.config
    match = _REPEAT.search(config.agent_name)
    driver = config.agent_name[: match.start()] if match else config.agent_name
    model = None
    for name in ("model_name", "model", "agent.model.name"):
        told = (config.agent_args or {}).get(name)
        if isinstance(told, str) and told:
            model = told
            break
    else:
        logged = {each for log in source.logs.values() for each in log.models} or set(
            source.said.total_usage or ()
        )
        model = logged.pop() if len(logged) == 1 else None
    repeat = int(match[1]) if match and int(match[1]) > 0 else None
    return (driver or config.agent_name, model or options.model or None), repeat


def _trials(
    source: _Source,
    arm: tuple[str, str | None],
    repeat: int | None,
    so_far: Counter[str],
    notes: list[str],
) -> list[SourceTrial]:
    succeeded = {str(task) for task in source.results.successful_tasks or ()}
    failed = {str(task) for task in source.results.failed_tasks or ()}
    both = sorted(succeeded & failed)
    if both:
        raise LabError(
            f"{source.file}: $.results: {both[0]!r} is among both the successful and the failed tasks"
        )
    trials, varied, partial = [], 0, 0
    for task, scores in source.scores.items():
        varied += len(scores) > 1
        for number, score in enumerate(scores, start=1):
            listed = None if len(scores) > 1 else _listed(task, succeeded, failed)
            solved = _solved(score, listed, f"{source.file}: $.raw_eval_results.{task}")
            partial += solved and score.number is not None and not is_one(score.number)
            at = repeat if repeat is not None and len(scores) == 1 else so_far[task] + number
            trials.append(_trial(source, task, arm, at, score, solved, several=len(scores) > 1))
    if varied:
        notes.append(f"With several results (prompt variations), each a trial: {counted(varied, 'task')}.")
    if partial:
        notes.append(f"Listed as successful by the source with a score below 1: {counted(partial, 'task')}.")
    return trials


def _listed(task: str, succeeded: set[str], failed: set[str]) -> bool | None:
    return True if task in succeeded else False if task in failed else None


def _solved(score: _Score, listed: bool | None, where: str) -> bool:
    if listed is not None:
        return listed
    if score.verdict is not None:
        return score.verdict
    if score.number is not None:
        return is_one(score.number)
    raise LabError(f"{where}: neither a score, nor among the successful or the failed tasks")


def _trial(
    source: _Source,
    task: str,
    arm: tuple[str, str | None],
    number: int,
    score: _Score,
    solved: bool,
    *,
    several: bool,
) -> SourceTrial:
    # Times, steps and tokens are told of the task as a whole: of one of several trials of it they say nothing.
    log = None if several else source.logs.get(task)
    usage = log.usage if log else Usage()
    wall: float | None = None
    extra: dict[str, Any] = {"run_id": source.said.config.run_id or source.file.name}
    clock = (source.said.wall_clock_times or {}).get(task)
    latency = (source.results.latencies or {}).get(task)
    if not several:
        wall = clock if clock is not None else latency.total_time if latency else None
    if log and log.input_total is not None:
        extra["tokens_input_total"] = log.input_total
    steps = None if several else (source.said.task_step_counts or {}).get(task)
    return SourceTrial(
        case_id=task,
        driver=arm[0],
        model=arm[1],
        trial=number,
        solved=solved,
        score=score.number,
        steps=steps if steps is not None and 0 <= steps < 2**31 else None,
        usage=msgspec.structs.replace(usage, wall_s=wall if wall is not None and 0 <= wall < 1e12 else None),
        note=score.text[:500] if score.text else None,
        messages=log.messages if log else None,
        extra=extra,
    )


def _cases(source: _Source, trials: Sequence[SourceTrial]) -> dict[str, SourceCase]:
    prompts = source.said.task_prompts or {}
    found = {}
    for trial in trials:
        level = source.scores[trial.case_id][0].level
        prompt = prompts.get(trial.case_id)
        found[trial.case_id] = SourceCase(
            request=prompt if isinstance(prompt, str) else "", group=f"level {level}" if level else ""
        )
    return found


# ---- totals ---------------------------------------------------------------------------------------------------------


def _published(
    source: _Source, arm: tuple[str, str | None], trials: Sequence[SourceTrial], *, several: bool
) -> list[Published]:
    by_case = tally((trial.case_id, trial.solved is True) for trial in trials)
    run = f" of {source.said.config.run_id or source.file.name}" if several else ""
    claims = []
    told = source.results.accuracy
    if told is not None:
        first = claim(arm, f"accuracy{run}", "share", told, accuracy(by_case))
        why = (
            ""
            if first.follows
            else "the source may divide by all tasks of the benchmark, or add up part scores"
        )
        claims.append(msgspec.structs.replace(first, note=why))
    for name, value in source.said.results.items():
        match = _LEVEL.fullmatch(name)
        printed = as_float(value)
        if match and printed is not None:
            of_level = tally(
                (trial.case_id, trial.solved is True)
                for trial in trials
                if source.scores[trial.case_id][0].level == match[1]
            )
            note = "of all tasks of the level, also those without an output"
            claims.append(
                claim(arm, f"accuracy on level {match[1]}{run}", "share", printed, accuracy(of_level), note)
            )
    cost = source.said.total_cost if source.said.total_cost is not None else source.results.total_cost
    if cost is not None:
        claims.append(claim(arm, f"cost{run}", "usd", cost, None, "the file has no cost of single tasks"))
    return claims


def _commit(source: _Source) -> str:
    for name in ("commit_hash", "commit"):
        told = (source.said.git_info or {}).get(name)
        if isinstance(told, str):
            return told
    return ""
