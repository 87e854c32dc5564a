"""Trials that another project's files tell of, as a run: evidence and taxonomy `imported`, nothing judged again.

An importer says what its source says and leaves the rest None: it excludes a trial only where the source does, and
never adopts a total that does not follow from the rows (`Published` sets the two side by side).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec
import pyarrow as pa
from msgspec import Struct, field

from agentbench_lab.errors import LabError
from agentbench_lab.outcomes import IMPORTED, Taxonomy
from agentbench_lab.results.bench_v1.model import moment
from agentbench_lab.results.dialogues import bounded, kept_json
from agentbench_lab.results.redaction import redact
from agentbench_lab.results.run import FORMAT, ArmCard, Counts, Imported, Run, RunCard, SuiteCard, check_run
from agentbench_lab.results.schema import SCHEMAS, no_collection, table, usage_values
from agentbench_lab.transcripts import Status, Usage
from agentbench_lab.values import canonical, digest

UNKNOWN = "unknown"
LONGEST_S = 2**63 / 1e9
"""Seconds (292 years) whose nanoseconds files of results cannot hold any more."""


class SourceCase(Struct, frozen=True):
    """What the source says of a case; its digest is that of all of it."""

    request: str = ""
    tools: tuple[str, ...] = ()
    group: str = ""
    expectation: Any = None
    note: str | None = None
    width: int = 1


class SourceCall(Struct, frozen=True):
    """One tool call. `input` is a JSON value; text that is no JSON keeps the status `malformed` and stays text.

    Of `observed`, `TEXT_LIMIT` characters are kept."""

    name: str
    input: Any
    status: Status
    observed: str = ""
    worker: int = 0


class SourceTrial(Struct, frozen=True):
    """One trial; None is what the source does not say.

    `solved` is null exactly for an excluded trial. `outcome` is only for what the source itself reports as unsafe.
    `calls` is None where the source has no calls (then `tool_calls` may still be known by number). `usage` covers all
    attempts and all subagents. `extra` keeps what has no column of its own. `messages` are kept up to `dialogues.DIALOGUE_LIMIT`;
    what looks like a secret is taken out of messages, answer and calls.
    """

    case_id: str
    driver: str
    solved: bool | None
    trial: int = 1
    model: str | None = None
    scaffold: str = "once"
    outcome: str = ""
    excluded: str | None = None
    excluded_owner: str | None = None
    hallucinated: bool | None = None
    terminated: bool | None = None
    refused: bool | None = None
    score: float | None = None
    stop: str | None = None
    steps: int | None = None
    calls: tuple[SourceCall, ...] | None = None
    tool_calls: int | None = None
    tool_errors: int | None = None
    usage: Usage = field(default_factory=Usage)
    cached: bool = False
    working_s: float | None = None
    attempts: int = 1
    reasons: tuple[str, ...] = ()
    note: str | None = None
    answer: Any = None
    messages: Any = None
    extra: Mapping[str, Any] = {}


def imported_run(
    *,
    suite: str,
    trials: Sequence[SourceTrial],
    imported: Imported,
    name: str = "",
    cases: Mapping[str, SourceCase] | None = None,
    missing: int = 0,
    commit: str = "",
    started_at: str = "",
    finished_at: str = "",
    options: Mapping[str, Any] | None = None,
    version: str | None = None,
) -> Run:
    """A run of these trials, in the order of the cases.

    `cases` gives what is known of each case, and the order; cases that only trials name come after them. `missing` is
    how many trials the source asked for and has no row of. Raises LabError, with the source's name, for a trial that
    comes twice and for a number that the tables cannot hold.

    Where `imported.statuses` names the kinds of failed calls that the source tells, one that is met all the same is
    told too.
    """
    where = imported.file or suite
    known = dict(cases or {})
    for trial in trials:
        known.setdefault(trial.case_id, SourceCase())
    arms = list(dict.fromkeys((trial.driver, trial.model, trial.scaffold) for trial in trials))
    case_at = {case_id: at for at, case_id in enumerate(known)}
    arm_at = {arm: at for at, arm in enumerate(arms)}
    ordered = sorted(
        trials, key=lambda t: (case_at[t.case_id], arm_at[t.driver, t.model, t.scaffold], t.trial)
    )
    _check(ordered, where)
    name = name or where
    try:
        with no_collection():
            rows = [_trial_row(trial, name, suite, known[trial.case_id]) for trial in ordered]
            attempts = [row for trial in ordered for row in _attempt_rows(trial, suite)]
            calls = [row for trial in ordered for row in _call_rows(trial, suite)]
            transcripts = [row for trial in ordered for row in _transcript_rows(trial, suite)]
            case_rows = [
                _case_row(suite, case_id, case, line) for line, (case_id, case) in enumerate(known.items(), 1)
            ]
    except (OverflowError, RecursionError) as error:
        raise LabError(f"{where}: holds a value that cannot be kept: {error}") from None
    excluded = sum(trial.excluded is not None for trial in ordered)
    if imported.statuses:
        met = {call.status for trial in ordered for call in trial.calls or ()} - {"ok"}
        told = (*imported.statuses, *sorted(met - set(imported.statuses)))
        imported = msgspec.structs.replace(imported, statuses=told)
    return run_of_rows(
        suite=SuiteCard(
            suite,
            digest([row[-2] for row in case_rows]),
            version,
            None,
            len(known),
            groups=_groups(known, suite),
        ),
        taxonomy=IMPORTED,
        arms=arms,
        rows={
            "cases": case_rows,
            "trials": rows,
            "attempts": attempts,
            "calls": calls,
            "transcripts": transcripts,
        },
        counts=Counts(len(ordered) + missing, len(ordered) - excluded, excluded, missing),
        imported=imported,
        name=name,
        commit=commit,
        started_at=_moment(started_at),
        finished_at=_moment(finished_at),
        options=dict(options or {}),
    )


def _moment(text: str) -> str:
    """An instant as result files write it, or nothing: a time of day without its zone is no instant."""
    try:
        moment(text)
        return text
    except LabError:
        pass
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        return ""
    return when.isoformat() if when.tzinfo else ""


def side_by_side(runs: Sequence[Run], imported: Imported, *, name: str = "", commit: str = "") -> Run:
    """Imported runs of different suites as one run: their rows after one another, their counts added.

    `imported` says what was read for all of them. Raises LabError for a suite that comes twice.
    """
    first = runs[0].card
    suites = tuple(suite for run in runs for suite in run.card.suites)
    for suite, count in Counter(suite.name for suite in suites).items():
        if count > 1:
            raise LabError(f"{imported.file}: suite {suite!r} comes {count} times")
    name = name or imported.file
    counts = [run.card.counts for run in runs]
    card = msgspec.structs.replace(
        first,
        run=name,
        commit=commit or UNKNOWN,
        suites=suites,
        arms=tuple(dict.fromkeys(arm for run in runs for arm in run.card.arms)),
        counts=Counts(
            sum(each.asked for each in counts),
            sum(each.judged for each in counts),
            sum(each.excluded for each in counts),
            sum(each.missing for each in counts),
        ),
        started_at=min((run.card.started_at for run in runs if run.card.started_at), default=""),
        finished_at=max((run.card.finished_at for run in runs if run.card.finished_at), default=""),
        imported=imported,
    )
    tables = {grain: pa.concat_tables([getattr(run, grain) for run in runs]) for grain in SCHEMAS}
    at = tables["trials"].schema.get_field_index("run")
    field = tables["trials"].schema.field(at)
    names = pa.array([name] * tables["trials"].num_rows, field.type)
    tables["trials"] = tables["trials"].set_column(at, field, names)
    cases, trials, attempts, calls, transcripts = (tables[grain] for grain in SCHEMAS)
    joined = Run(card, cases, trials, attempts, calls, transcripts, ())
    check_run(joined)
    return joined


def run_of_rows(
    *,
    suite: SuiteCard,
    taxonomy: Taxonomy,
    arms: Sequence[tuple[str, str | None, str]],
    rows: Mapping[str, Sequence[tuple[Any, ...]]],
    counts: Counts,
    imported: Imported,
    name: str,
    commit: str,
    started_at: str,
    finished_at: str,
    options: dict[str, Any],
) -> Run:
    """The run of rows that are already in the tables' form, with the card of an imported run."""
    card = RunCard(
        format=FORMAT,
        run=name,
        stamp="imported",
        commit=commit or UNKNOWN,
        taxonomy=taxonomy.name,
        strictness="imported",
        grader="",
        suites=(suite,),
        worlds=(),
        arms=tuple(
            ArmCard(driver, model, scaffold, "imported", UNKNOWN, "") for driver, model, scaffold in arms
        ),
        options=options,
        seed=0,
        evidence=("imported",),
        counts=counts,
        envelope=(),
        versions={},
        started_at=started_at,
        finished_at=finished_at,
        imported=imported,
    )
    cases, trials, attempts, calls, transcripts = (
        _table(grain, rows[grain], imported.file) for grain in SCHEMAS
    )
    run = Run(card, cases, trials, attempts, calls, transcripts, ())
    check_run(run)
    return run


def _table(grain: str, rows: Sequence[tuple[Any, ...]], where: str) -> pa.Table:
    try:
        return table(grain, rows)
    except (ValueError, OverflowError, pa.ArrowException) as error:
        raise LabError(f"{where + ': ' if where else ''}{grain}: {error}") from None


def _groups(cases: Mapping[str, SourceCase], suite: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(case.group or suite for case in cases.values()))


def _check(ordered: Sequence[SourceTrial], where: str) -> None:
    found = Counter((t.case_id, t.driver, t.model, t.scaffold, t.trial) for t in ordered)
    for key, count in found.items():
        if count > 1:
            case_id, driver, model, scaffold, number = key
            arm = " ".join(part for part in (driver, model, scaffold) if part and part != "once")
            raise LabError(f"{where}: trial {number} of {case_id!r} by {arm} comes {count} times")
    for trial in ordered:
        if not trial.case_id or not trial.driver:
            what = "case without an id" if trial.driver else "driver without a name"
            raise LabError(f"{where}: a trial of a {what}")
        if trial.trial < 1:
            raise LabError(f"{where}: {trial.case_id!r} has a trial {trial.trial}; trials count from 1")
        for seconds in (trial.usage.wall_s, trial.working_s):
            if seconds is not None and not 0 <= seconds < LONGEST_S:
                raise LabError(
                    f"{where}: trial {trial.trial} of {trial.case_id!r} took {seconds:g} seconds, which cannot be"
                )
        if None not in (trial.tool_calls, trial.tool_errors) and trial.tool_errors > trial.tool_calls:  # type: ignore[operator]
            raise LabError(
                f"{where}: trial {trial.trial} of {trial.case_id!r} has {trial.tool_errors} failed calls of {trial.tool_calls}"
            )
        if (trial.solved is None) != (trial.excluded is not None):
            what = "is excluded and judged" if trial.excluded else "is neither judged nor excluded"
            raise LabError(f"{where}: trial {trial.trial} of {trial.case_id!r} {what}")


def _identity(trial: SourceTrial, suite: str) -> tuple[Any, ...]:
    return suite, trial.case_id, trial.driver, trial.model, trial.scaffold, trial.trial


def _trial_row(trial: SourceTrial, run: str, suite: str, case: SourceCase) -> tuple[Any, ...]:
    outcome = None
    if trial.solved is not None:
        outcome = trial.outcome or ("solved" if trial.solved else "unsolved")
    tool_calls, tool_errors = trial.tool_calls, trial.tool_errors
    if trial.calls is not None:
        tool_calls = len(trial.calls)
        tool_errors = sum(call.status != "ok" for call in trial.calls)
    return (
        run,
        suite,
        trial.case_id,
        case.group or suite,
        *_identity(trial, suite)[2:],
        None,  # seed
        "imported",
        "",  # expect: one denominator for all
        outcome,
        None if outcome is None else IMPORTED.lookup(outcome).cls,
        trial.solved,
        trial.solved,  # completed: nothing tells the two apart
        None,  # result_completed
        None if trial.solved is None else trial.hallucinated,
        trial.terminated,
        trial.refused,
        trial.score,
        trial.stop,
        trial.excluded,
        trial.excluded_owner,
        trial.steps,
        tool_calls,
        tool_errors,
        *usage_values(trial.usage, trial.usage.wall_s, None),
        trial.cached,
        trial.working_s,
        trial.attempts,
        case.width,
        list(trial.reasons),
        trial.note,
        _json(trial.extra) if trial.extra else None,
    )


def _attempt_rows(trial: SourceTrial, suite: str) -> list[tuple[Any, ...]]:
    """Earlier attempts are known by number only; the last one stands for the usage of all."""
    unknown = usage_values(Usage(), None, None)
    return [
        (
            *_identity(trial, suite),
            attempt,
            trial.stop if attempt == trial.attempts else None,
            *(usage_values(trial.usage, trial.usage.wall_s, None) if trial.attempts == 1 else unknown),
            None,
        )
        for attempt in range(1, trial.attempts + 1)
    ]


def _call_rows(trial: SourceTrial, suite: str) -> list[tuple[Any, ...]]:
    return [
        (
            *_identity(trial, suite),
            trial.attempts,
            step,
            call.worker,
            call.name,
            redact(_json(call.input)),
            call.status,
            bounded(redact(call.observed)),
            None,
        )
        for step, call in enumerate(trial.calls or (), start=1)
    ]


def _transcript_rows(trial: SourceTrial, suite: str) -> list[tuple[Any, ...]]:
    if trial.messages is None and trial.answer is None:
        return []
    return [
        (
            *_identity(trial, suite),
            trial.attempts,
            None,
            None if trial.answer is None else redact(_json(trial.answer)),
            None if trial.messages is None else kept_json(_json(trial.messages)),
            [],
            None,
            None,
            None,
        )
    ]


def _case_row(suite: str, case_id: str, case: SourceCase, line: int) -> tuple[Any, ...]:
    expectation = "{}" if case.expectation is None else _json(case.expectation)
    return (
        suite,
        case_id,
        case.group or suite,
        case.request,
        list(case.tools),
        "",
        "",
        "",
        expectation,
        None,
        None,
        case.note,
        None,
        None,
        digest({"case_id": case_id, **msgspec.structs.asdict(case)}),
        line,
    )


def _json(value: Any) -> str:
    return canonical(value).decode("utf-8", "replace")


def seconds_between(start: str | None, end: str | None) -> float | None:
    """Seconds from one ISO instant to another; None where one is missing or is no instant."""
    if not start or not end:
        return None
    try:
        seconds = (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()
    except (TypeError, ValueError):
        return None
    return seconds if seconds >= 0 else None
