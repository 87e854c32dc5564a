"""Records of trials as the run's five tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pyarrow as pa

from agentbench_lab.cases import Case
from agentbench_lab.results.product import Arm
from agentbench_lab.results.schema import no_collection, table, usage_values
from agentbench_lab.running.trial import Record
from agentbench_lab.values import canonical
from agentbench_lab.worlds.toolbox import World


def cases_table(cases: Sequence[tuple[Case, World]]) -> pa.Table:
    """One row a selected case."""
    return table(
        "cases",
        [
            (
                case.suite,
                case.id,
                case.group,
                case.task.request,
                list(case.task.tools),
                world.name,
                world.digest,
                case.expect.key,
                _json(case.expect),
                _json(case.task.trace) if case.task.trace else None,
                case.compose or None,
                case.note or None,
                case.task.policy or None,
                _json(case.user) if case.user is not None else None,
                case.digest,
                case.line,
            )
            for case, world in cases
        ],
    )


def trial_tables(run: str, records: Sequence[Record], evidence: dict[Arm, str]) -> dict[str, pa.Table]:
    """The other four tables, from records in the order of their rows."""
    with no_collection():
        parts = [
            _tables(run, records[start : start + CHUNK], evidence)
            for start in range(0, max(1, len(records)), CHUNK)
        ]
    return {grain: pa.concat_tables([part[grain] for part in parts]).combine_chunks() for grain in parts[0]}


CHUNK = 1_000
"""Records that are made into rows at a time: rows that stand in memory all at once cost more than they are worth."""


def _tables(run: str, records: Sequence[Record], evidence: dict[Arm, str]) -> dict[str, pa.Table]:
    return {
        "trials": table("trials", [_trial(run, record, evidence) for record in records]),
        "attempts": table("attempts", [row for record in records for row in _attempts(record)]),
        "calls": table("calls", [row for record in records for row in _calls(record)]),
        "transcripts": table("transcripts", [_transcript(record) for record in records]),
    }


def _arm(record: Record) -> tuple[Any, ...]:
    arm = record.row.arm
    return arm.driver, arm.model, arm.scaffold, record.row.trial


def _trial(run: str, record: Record, evidence: dict[Arm, str]) -> tuple[Any, ...]:
    row, said, verdict = record.row, record.transcript, record.row.verdict
    return (
        run,
        row.suite,
        row.case_id,
        row.group,
        *_arm(record),
        record.seed,
        evidence[row.arm],
        row.expect.key,
        verdict.outcome,
        verdict.cls,
        verdict.solved,
        verdict.completed,
        verdict.result_completed,
        verdict.hallucinated,
        said.terminated,
        said.refused,
        None,
        said.stop,
        verdict.excluded,
        verdict.owner,
        None,
        len(record.ledger),
        sum(call.status != "ok" for call in record.ledger),
        *usage_values(said.usage, record.wall_s, _lost(record)),
        said.cached,
        record.working_s,
        len(record.attempts),
        record.width,
        [check.detail or check.name for check in verdict.checks if check.gates and not check.passed],
        said.notes[-1] if said.notes else None,
        _json(msgspec.to_builtins(record.talk)) if record.talk is not None else None,
    )


def _lost(record: Record) -> bool | None:
    """Whether an attempt lost a part of what it used; None where that is not known of one, and of none it is known."""
    marks = [attempt.lost for attempt in record.attempts]
    return True if True in marks else None if None in marks else False


def _attempts(record: Record) -> list[tuple[Any, ...]]:
    row = record.row
    return [
        (
            row.suite,
            row.case_id,
            *_arm(record),
            number,
            tried.end,
            *usage_values(tried.usage, tried.wall_s, tried.lost),
            _json(msgspec.to_builtins(tried.workers)) if tried.workers else None,
        )
        for number, tried in enumerate(record.attempts, start=1)
    ]


def _calls(record: Record) -> list[tuple[Any, ...]]:
    row = record.row
    return [
        (
            row.suite,
            row.case_id,
            *_arm(record),
            len(record.attempts),
            step,
            call.worker,
            call.name,
            _json(call.input),
            call.status,
            call.text,
            None if call.diff is None else _json(call.diff),
        )
        for step, call in enumerate(record.ledger, start=1)
    ]


def _transcript(record: Record) -> tuple[Any, ...]:
    row, said = record.row, record.transcript
    return (
        row.suite,
        row.case_id,
        *_arm(record),
        len(record.attempts),
        said.driver or None,
        None if said.answer is None else _json(said.answer),
        _json(said.messages) if said.messages else None,
        list(said.notes),
        record.stdout or None,
        record.stderr or None,
        record.traceback or None,
    )


def _json(value: Any) -> str:
    return canonical(value).decode()
