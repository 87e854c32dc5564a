"""Inspect logs, read, as one run: cases and arms put together, what is missing counted, totals set beside the rows."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from agentbench_lab.benchmarks import Options
from agentbench_lab.benchmarks.inspect.log import Log, Sample, Spec
from agentbench_lab.benchmarks.inspect.scores import Chosen, Figures, choose, published
from agentbench_lab.benchmarks.inspect.trials import Read, case_of, driver_of, trial_of
from agentbench_lab.errors import LabError
from agentbench_lab.results.imported import SourceCase, SourceTrial, imported_run
from agentbench_lab.results.run import Imported, Published, Run
from agentbench_lab.transcripts import Status

_STATUSES = ("success", "started", "cancelled", "error")
_NOTES = {
    "inclusive": "cached tokens were counted within the input (an older Inspect); they are taken apart",
    "uncounted": "the value is text that is neither a number nor C, P, I, N, yes, no, true or false: not solved, as Inspect counts it",
    "above": "the score is above 1; solved is a score of 1 only",
    "retried": "an error was tried again; what all attempts together used is unknown",
    "unanswered": "the last tool calls were not answered; they stand in the messages, not among the calls",
    "invalidated": "the sample is marked as invalidated; Inspect's own totals count it, and so it is counted",
    "models": "the usage is that of other models too, such as a grader's or a simulated user's",
    "limit": "a limit ended the trial; it is judged by its score",
    "failed": "an error ended the trial, yet it has a score, by which it is judged, as Inspect does",
}


TOLD: tuple[Status, ...] = ("tool_error", "schema_error", "malformed", "undeclared")
"""The failures of calls that an answer tells apart; what an agent says outside of its calls is no call here."""


class _Arm(Struct):
    """The first log of one task and arm, and the highest trial so far."""

    log: Log
    trials: int = 0


class _Found(Struct):
    """What the logs gave so far."""

    notes: list[str]
    cases: dict[str, SourceCase] = field(default_factory=dict)
    trials: list[SourceTrial] = field(default_factory=list)
    claims: list[Published] = field(default_factory=list)
    arms: dict[tuple[str, str, str], _Arm] = field(default_factory=dict)
    uuids: dict[str, str] = field(default_factory=dict)
    odd: Counter[str] = field(default_factory=Counter)
    missing: int = 0


def run_of(path: Path, logs: Sequence[Log], notes: Iterable[str], options: Options) -> Run:
    """The run of these logs, which are in the order of time."""
    tasks = list(dict.fromkeys(log.header.eval.task for log in logs))
    found = _Found(list(notes))
    for log in logs:
        group = log.header.eval.task if len(tasks) > 1 else ""
        _add(found, log, group, options, alone=len(logs) == 1)
    if not found.trials:
        raise LabError(f"{path}: no sample in it{_why(logs)}")
    for what, count in sorted(found.odd.items()):
        found.notes.append(f"{count} {'trial' if count == 1 else 'trials'}: {_NOTES[what]}.")
    spec, first, last = logs[0].header.eval, logs[0].header.stats, logs[-1].header.stats
    alone = len(logs) == 1
    return imported_run(
        suite=options.suite or (tasks[0].replace("/", "-") if len(tasks) == 1 else path.resolve().name),
        trials=found.trials,
        cases=found.cases,
        missing=found.missing,
        name=options.name,
        version=str(spec.task_version) if len(tasks) == 1 and spec.task_version else None,
        commit=_commit(spec) if alone else "",
        started_at=(first.started_at if first is not None else "") or spec.created,
        finished_at=(last.completed_at if last is not None else "") or "",
        options=_settings(spec) if alone else {},
        imported=Imported(
            format="inspect",
            file=path.name,
            notes=tuple(found.notes),
            digest=_digest(path, logs),
            published=tuple(found.claims),
            statuses=TOLD,
        ),
    )


def _digest(path: Path, logs: Sequence[Log]) -> str:
    """The file's; of several logs, that of their names and digests, in the order of names."""
    if not path.is_dir():
        return logs[0].digest
    lines = sorted(f"{log.digest}  {log.path.relative_to(path).as_posix()}\n" for log in logs)
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _why(logs: Sequence[Log]) -> str:
    """Why a log may have none: it ended before, or only its header was kept."""
    if any(log.header.status == "success" for log in logs):
        return "; only the header of the log was kept"
    said = next((log.header.error.message for log in logs if log.header.error is not None), "")
    return f"; its status is {logs[0].header.status}" + (f": {said.splitlines()[0]:.300}" if said else "")


def _commit(spec: Spec) -> str:
    if spec.revision is None or not spec.revision.commit:
        return ""
    return spec.revision.commit + ("+dirty" if spec.revision.dirty else "")


def _settings(spec: Spec) -> dict[str, Any]:
    """What was set, of that which is not empty and says something of the result."""
    named = {
        "task_args": spec.task_args,
        "solver_args": spec.solver_args,
        "model_generate_config": spec.model_generate_config,
        "epochs": spec.config.epochs,
    }
    return {name: value for name, value in named.items() if value}


_SAME = (
    "task_version",
    "task_args",
    "solver_args",
    "model_args",
    "model_base_url",
    "model_generate_config",
    "model_roles",
)
"""What has to be the same in two logs for one to hold further trials of the other's arm."""


def _add(found: _Found, log: Log, group: str, options: Options, *, alone: bool) -> None:
    spec, where = log.header.eval, str(log.path)
    if log.header.status not in _STATUSES:
        raise LabError(f"{where}: status {log.header.status!r} is none of {', '.join(_STATUSES)}")
    driver = driver_of(log, options.driver)
    arm = found.arms.setdefault((spec.task, driver, spec.model), _Arm(log))
    for name in _SAME:
        if getattr(spec, name) != getattr(arm.log.header.eval, name):
            raise LabError(
                f"{where}: the same task, solver and model as {arm.log.path.name}, but another {name}: "
                f"nothing tells the two apart in one run; import them one by one"
            )
    if arm.log is not log:
        found.notes.append(
            f"{log.path.name}: the same arm as {arm.log.path.name}; its trials follow that one's."
        )
    chosen = choose(log, options.columns.get("scorer", ""), where)
    if chosen is None and any(sample.error is None for sample in log.samples):
        raise LabError(f"{where}: no sample was scored, so nothing is judged; `inspect score` does that")
    if chosen is not None and chosen.others:
        others = ", ".join(chosen.others)
        found.notes.append(f"{log.path.name}: judged by {chosen}; --map scorer=NAME takes another: {others}.")
    reads = _samples(found, log, group, chosen, arm.trials, driver)
    arm.trials = max([arm.trials, *(read.trial.trial for read in reads)])
    found.trials += [read.trial for read in reads]
    values: dict[str, list[Any]] = {}
    for read in reads:
        if read.value is not None:
            values.setdefault(read.trial.case_id, []).append(read.value)
    if values and all(read.uncounted for read in reads if read.value is not None):
        example = next(iter(values.values()))[0]
        raise LabError(f"{where}: the values by {chosen}, such as {example!r}, are no verdicts")
    if chosen is not None:
        found.claims += published(log, chosen, Figures(values), driver, "" if alone else log.path.name)
    found.claims += _totals(log, driver, "" if alone else log.path.name)
    _tell_missing(found, log)
    log.samples = []  # several large logs need not be in memory together


def _samples(
    found: _Found, log: Log, group: str, chosen: Chosen | None, offset: int, driver: str
) -> list[Read]:
    spec, where = log.header.eval, str(log.path)
    prefix = f"{group}/" if group else ""
    ids: dict[str, int | str] = {}
    for selected in spec.dataset.sample_ids or ():
        name = _named(selected, ids, where)
        found.cases.setdefault(prefix + name, SourceCase(group=group))
    seen: set[tuple[str, int]] = set()
    told: set[str] = set()
    reads = []
    for sample in sorted(log.samples, key=_place):
        name = _named(sample.id, ids, where)
        at = f"{where}: sample {name!r}, epoch {sample.epoch}"
        if (name, sample.epoch) in seen:
            raise LabError(f"{at}: comes twice")
        seen.add((name, sample.epoch))
        if sample.uuid and found.uuids.setdefault(sample.uuid, where) != where:
            raise LabError(f"{at}: is also in {found.uuids[sample.uuid]}")
        case_id = prefix + name
        if name not in told:
            told.add(name)
            _tell_case(found, case_id, case_of(sample, group), at)
        read = trial_of(sample, chosen, case_id, offset + sample.epoch, driver, spec.model, at)
        _count_odd(found.odd, read)
        reads.append(read)
    return reads


def _named(sample_id: int | str, ids: dict[str, int | str], where: str) -> str:
    """The id as text; raises LabError where a number and a text are the same then."""
    name = str(sample_id)
    if type(ids.setdefault(name, sample_id)) is not type(sample_id):
        raise LabError(f"{where}: the number {name} and the text {name!r} are both ids of samples")
    return name


def _place(sample: Sample) -> tuple[int, str]:
    """By epoch, and numbers as numbers: the order that Inspect reads samples in."""
    return sample.epoch, sample.id if isinstance(sample.id, str) else str(sample.id).zfill(20)


def _tell_case(found: _Found, case_id: str, case: SourceCase, at: str) -> None:
    known = found.cases.get(case_id)
    if known is not None and known.expectation is not None and known != case:
        raise LabError(f"{at}: asks or wants something else than the same id in an earlier log")
    found.cases[case_id] = case


def _count_odd(odd: Counter[str], read: Read) -> None:
    trial = read.trial
    for what, there in (
        ("inclusive", read.inclusive),
        ("uncounted", read.uncounted),
        ("models", read.models),
        ("above", trial.score is not None and trial.score > 1 + 1e-6),
        ("retried", trial.attempts > 1),
        ("unanswered", "unanswered_calls" in trial.extra),
        ("invalidated", "invalidated" in trial.extra),
        ("limit", "limit" in trial.extra and trial.excluded is None),
        ("failed", trial.note is not None),
    ):
        if there:
            odd[what] += 1


def _asked(log: Log) -> int:
    """How many samples were asked for, over all epochs: what the results say, else what was selected."""
    results, spec = log.header.results, log.header.eval
    if results is not None and results.total_samples:
        return results.total_samples
    count = len(spec.dataset.sample_ids or ()) or spec.dataset.samples or 0
    limit = spec.config.limit
    if limit is not None and not spec.dataset.sample_ids:
        first, last = limit if isinstance(limit, list) and len(limit) == 2 else (0, limit)
        if isinstance(last, int):
            count = max(0, min(count, last) - max(0, first))
    return count * (spec.config.epochs or 1)


def _tell_missing(found: _Found, log: Log) -> None:
    asked, header = _asked(log), log.header
    missing = max(0, asked - len(log.samples))
    found.missing += missing
    said = []
    if header.status != "success":
        why = header.error.message.splitlines() if header.error is not None else []
        said.append(f"its status is {header.status}" + (f" ({why[0]:.300})" if why else ""))
    if missing:
        said.append(f"{missing} of {asked} samples are missing")
    if said:
        found.notes.append(f"{log.path.name}: {', '.join(said)}.")


def _totals(log: Log, driver: str, note: str) -> list[Published]:
    """Samples that ended without an error, and tokens, as the log counts them."""
    model, results, stats = log.header.eval.model, log.header.results, log.header.stats
    claims = []
    if results is not None and results.completed_samples:
        rows = sum(sample.error is None for sample in log.samples)
        completed = results.completed_samples
        claims.append(
            Published(driver, model, "completed", "trials", completed, rows, rows == completed, note)
        )
    tokens = sum(each.total_tokens for each in stats.model_usage.values()) if stats is not None else 0
    if tokens:
        found = sum(each.total_tokens for sample in log.samples for each in sample.model_usage.values())
        if found != tokens and any(sample.error_retries for sample in log.samples):
            note = "; ".join(filter(None, ("the log's total has the failed attempts too", note)))
        follows = found == tokens
        claims.append(Published(driver, model, "tokens", "tokens", tokens, found or None, follows, note))
    return claims
