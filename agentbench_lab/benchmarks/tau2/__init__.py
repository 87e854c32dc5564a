"""Results of tau2-bench: a `results.json`, a folder of one with its `simulations/`, or a folder that holds several.

The file format is `Results` of github.com/sierra-research/tau2-bench, `data_model/simulation.py`. The agent and the
simulated user are kept apart: usage, cost and calls of a trial are the agent's; the user's are in extra.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from agentbench_lab.benchmarks import Options
from agentbench_lab.benchmarks.reading import digest_of, read_json
from agentbench_lab.benchmarks.tau2.simulation import Simulation, Task, source_case, source_trial
from agentbench_lab.errors import LabError
from agentbench_lab.results.imported import UNKNOWN, SourceTrial, imported_run, side_by_side
from agentbench_lab.results.run import Imported, Run
from agentbench_lab.results.schema import no_collection
from agentbench_lab.transcripts import Status

FORM = "tau2"
RESULTS = "results.json"
TOLD: tuple[Status, ...] = ("tool_error",)
"""A result says that its call failed, never of what kind the failure was."""


class _Party(Struct):
    implementation: str
    llm: str | None = None
    llm_args: dict[str, Any] | None = None


class _Environment(Struct):
    domain_name: str


class _Info(Struct):
    agent_info: _Party
    environment_info: _Environment
    user_info: _Party | None = None
    git_commit: str | None = None
    num_trials: int | None = None
    max_steps: int | None = None
    max_errors: int | None = None
    seed: int | None = None
    retrieval_config: str | None = None


class _Indexed(Struct):
    id: str


class _Results(Struct):
    info: _Info
    tasks: list[Task]
    simulations: list[Simulation] | None = None
    simulation_index: list[_Indexed] | None = None


class _Read(Struct):
    """One results file with its simulations and every file that it was read from."""

    path: Path
    results: _Results
    simulations: list[Simulation]
    files: list[Path]


def load_results(path: Path, options: Options) -> Run:
    """The simulations of one results file, or of all in a folder: one suite a domain (`tau2-airline`).

    A simulation that ended in `infrastructure_error` is excluded, as tau2 leaves it out of its figures; any other end
    than `user_stop` and `agent_stop` has the reward 0 there. One without a reward after a regular end was never
    evaluated: it is excluded too, and a note says so. Trials that the file asks for (`num_trials` of each task) and
    does not have are missing.

    Several files become one run when they fit together: files of one domain, agent and model have the same settings,
    and no trial comes twice. Raises LabError for those that do not, naming both, and for what is no such file.
    """
    with no_collection():
        read = [_read(file) for file in _files(path)]
        domains: dict[str, list[_Read]] = {}
        for one in read:
            domains.setdefault(one.results.info.environment_info.domain_name, []).append(one)
        if options.suite and len(domains) > 1:
            raise LabError(f"{path}: holds several domains ({', '.join(domains)}); --suite names one")
        root = path if path.is_dir() else path.parent
        digest = digest_of([file for one in read for file in one.files], root)
        _check_together(read, options)
        if not any(one.simulations for one in read):
            raise LabError(f"{path}: holds no simulations")
        settings = _common(read)
        runs = [_run(domain, files, path, digest, options, settings) for domain, files in domains.items()]
        if len(runs) == 1:
            return runs[0]
        cards = [run.card.imported for run in runs]
        notes = dict.fromkeys(note for card in cards if card is not None for note in card.notes)
        imported = Imported(FORM, path.name, digest=digest, notes=tuple(notes), statuses=TOLD)
        return side_by_side(runs, imported, name=options.name, commit=_commit(read))


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    if (path / RESULTS).is_file():
        return [path / RESULTS]
    found = sorted(path.rglob(RESULTS))
    if not found:
        raise LabError(f"{path}: holds no {RESULTS}, not in its folders either")
    return found


def _read(path: Path) -> _Read:
    results: _Results = read_json(path, _Results)
    folder = path.parent / "simulations"
    if not folder.is_dir():
        if results.simulations is None:
            raise LabError(f"{path}: has no simulations, and there is no folder simulations beside it")
        return _Read(path, results, results.simulations, [path])
    if results.simulations:
        raise LabError(
            f"{path}: has simulations, and there is a folder simulations beside it; which are meant?"
        )
    files = sorted(folder.glob("*.json"))
    if results.simulation_index is not None:
        indexed, there = {entry.id for entry in results.simulation_index}, {file.stem for file in files}
        for ids, what in ((indexed - there, "has no file"), (there - indexed, "is not in the index")):
            if ids:
                more = f", and {len(ids) - 1} more" if len(ids) > 1 else ""
                raise LabError(f"{path}: simulation {min(ids)} {what}{more}")
    return _Read(path, results, [read_json(file, Simulation) for file in files], [path, *files])


def _arm(read: _Read, options: Options) -> tuple[str, str | None]:
    """Agent and model; the caller names what the file does not."""
    agent = read.results.info.agent_info
    return agent.implementation or options.driver or UNKNOWN, agent.llm or options.model or None


def _settings(read: _Read) -> dict[str, Any]:
    """What has to be the same for two files to hold trials of one configuration."""
    info = read.results.info
    user = info.user_info or _Party("")
    return {
        "max_steps": info.max_steps,
        "max_errors": info.max_errors,
        "agent_llm_args": info.agent_info.llm_args,
        "user": user.implementation,
        "user_llm": user.llm,
        "user_llm_args": user.llm_args,
        "retrieval_config": info.retrieval_config,
    }


def _common(files: Sequence[_Read]) -> dict[str, Any]:
    """The settings that all files name alike."""
    all_of = [_settings(read) for read in files]
    return {
        name: value
        for name, value in all_of[0].items()
        if value is not None and all(each[name] == value for each in all_of)
    }


def _check_together(files: Sequence[_Read], options: Options) -> None:
    """Raise LabError unless the files of each domain, agent and model are parts of one configuration."""
    first: dict[tuple[str, str, str | None], _Read] = {}
    seen: dict[tuple[Any, ...], _Read] = {}
    for read in files:
        arm = (read.results.info.environment_info.domain_name, *_arm(read, options))
        one = first.setdefault(arm, read)
        whose = f"{arm[0]} by {arm[1]} {arm[2] or ''}".strip()
        ours, theirs = _settings(one), _settings(read)
        for name, value in ours.items():
            if theirs[name] != value:
                raise LabError(
                    f"{read.path}: {whose} with {name} {theirs[name]}, where {one.path} has {value}; "
                    "import them apart"
                )
        for simulation, number in _numbered(read.simulations):
            key = (*arm, str(simulation.task_id), number)
            other = seen.setdefault(key, read)
            if other is not read:
                raise LabError(
                    f"{read.path}: trial {number} of task {str(simulation.task_id)!r} ({whose}) is in "
                    f"{other.path} too; import them apart"
                )


def _numbered(simulations: Sequence[Simulation]) -> Iterator[tuple[Simulation, int]]:
    """Each with the number of its trial, from 1; those without one are counted in their order."""
    unnumbered: Counter[str] = Counter()
    for simulation in simulations:
        if simulation.trial is None:
            unnumbered[str(simulation.task_id)] += 1
            yield simulation, unnumbered[str(simulation.task_id)]
        else:
            yield simulation, simulation.trial + 1


def _commit(files: Sequence[_Read]) -> str:
    commits = {read.results.info.git_commit for read in files}
    return (commits.pop() or "") if len(commits) == 1 else ""


def _run(
    domain: str, files: Sequence[_Read], path: Path, digest: str, options: Options, settings: dict[str, Any]
) -> Run:
    tasks: dict[str, Task] = {}
    for read in files:
        for task in read.results.tasks:
            if tasks.setdefault(str(task.id), task) != task:
                raise LabError(
                    f"{read.path}: task {str(task.id)!r} of {domain} is another than in a file before"
                )
    commit = _commit(files)
    trials: list[SourceTrial] = []
    asked: dict[tuple[Any, ...], int] = {}
    for read in files:
        info = read.results.info
        driver, model = _arm(read, options)
        for simulation, number in _numbered(read.simulations):
            extra = {} if commit or not info.git_commit else {"git_commit": info.git_commit}
            trials.append(
                source_trial(
                    simulation,
                    tasks.get(str(simulation.task_id)),
                    number=number,
                    driver=driver,
                    model=model,
                    extra=extra,
                    where=str(read.path),
                )
            )
        for task in read.results.tasks:
            key = (driver, model, str(task.id))
            asked[key] = max(asked.get(key, 0), info.num_trials or 0)
    had = Counter((trial.driver, trial.model, trial.case_id) for trial in trials)
    missing = sum(max(count - had[key], 0) for key, count in asked.items())
    starts = [each.start_time for read in files for each in read.simulations if each.start_time]
    ends = [each.end_time for read in files for each in read.simulations if each.end_time]
    return imported_run(
        suite=options.suite or f"tau2-{domain}",
        trials=trials,
        imported=Imported(
            FORM, path.name, digest=digest, notes=tuple(_notes(domain, trials, commit)), statuses=TOLD
        ),
        name=options.name,
        cases={case_id: source_case(task) for case_id, task in tasks.items()},
        missing=missing,
        commit=commit,
        started_at=min(starts, default=""),
        finished_at=max(ends, default=""),
        options=settings,
    )


def _notes(domain: str, trials: Sequence[SourceTrial], commit: str) -> Iterator[str]:
    yield "Cost, tokens and calls are the agent's; those of the simulated user are in extra."
    reasons = Counter(trial.excluded for trial in trials if trial.excluded)
    for reason, count in reasons.items():
        yield f"{domain}: excluded, {reason}: {count} of {len(trials)} simulations."
    ends = Counter(trial.extra.get("termination_reason") for trial in trials)
    if ends["context_window_exceeded"]:
        yield (
            f"{domain}: beyond the context window, and not solved (later versions of tau2 leave them out): "
            f"{ends['context_window_exceeded']} of {len(trials)} simulations."
        )
    if ends["user_error"]:
        yield (
            f"{domain}: an error of the simulated user, and not solved as tau2 counts: {ends['user_error']} of "
            f"{len(trials)} simulations."
        )
    given = sum("given_messages" in trial.extra for trial in trials)
    if given:
        yield f"{domain}: going on from given messages, whose calls are not the agent's: {given} of {len(trials)} simulations."
    unknown = sum(trial.usage.cost_micros is None for trial in trials)
    if unknown:
        yield f"{domain}: without an agent cost in the source: {unknown} of {len(trials)} simulations."
    unanswered = sum(trial.extra.get("calls_without_result", 0) for trial in trials)
    if unanswered:
        yield f"{domain}: calls that have no result, and are not counted: {unanswered}."
    voice = sum(trial.calls is None for trial in trials)
    if voice:
        yield (
            f"{domain}: without messages (voice has ticks), so that calls and tokens stay unknown: {voice} of "
            f"{len(trials)} simulations."
        )
    if not commit:
        yield f"{domain}: the files name several commits of the harness, or none; git_commit is in extra."
