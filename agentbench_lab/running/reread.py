"""A finished run's files as records of trials again, so that it can be gone on with, merged or judged anew."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import msgspec
import pyarrow as pa

from agentbench_lab.conversation import Talk
from agentbench_lab.errors import LabError
from agentbench_lab.results.product import ProductRow, ledger_row, regrade, transcript_of, verdict_of
from agentbench_lab.results.run import Run
from agentbench_lab.running.checkpoint import Attempt
from agentbench_lab.running.trial import Record
from agentbench_lab.transcripts import Usage, Worker

Key = tuple[str, str, str, str | None, str, int]
"""A trial's identity: suite, case, driver, model, scaffold, trial."""


def key_of(row: ProductRow) -> Key:
    """The identity of a row's trial."""
    return row.suite, row.case_id, row.arm.driver, row.arm.model, row.arm.scaffold, row.trial


def records_of(run: Run) -> list[Record]:
    """The run's trials as records, in the order of its rows (their places count that order).

    Raises LabError for an imported run, which holds nothing that could be gone on with or judged again.
    """
    if run.card.imported is not None:
        raise LabError(
            f"{run.path or run.card.run}: is imported ({run.card.imported.format}): what its agents did is not in it, "
            "so it can be neither continued nor merged nor judged again"
        )
    trials = {_key(row): row for row in _rows(run.trials)}
    said = {_key(row): row for row in _rows(run.transcripts)}
    calls: dict[Key, list[dict[str, Any]]] = {}
    for row in _rows(run.calls):
        calls.setdefault(_key(row), []).append(row)
    tries: dict[Key, list[dict[str, Any]]] = {}
    for row in _rows(run.attempts):
        tries.setdefault(_key(row), []).append(row)
    return [
        _record(at, row, trials[key], said[key], calls.get(key, []), tries[key])
        for at, row in enumerate(run.product)
        for key in [key_of(row)]
    ]


def _rows(table: pa.Table) -> Iterable[dict[str, Any]]:
    return table.to_pylist()


def _key(row: dict[str, Any]) -> Key:
    return row["suite"], row["case_id"], row["driver"], row["model"], row["scaffold"], row["trial"]


def _usage(row: dict[str, Any], wall_s: float | None = None) -> Usage:
    return Usage(
        fresh_input=row["tokens_fresh_input"],
        cache_read=row["tokens_cache_read"],
        cache_write=row["tokens_cache_write"],
        output=row["tokens_output"],
        model_calls=row["model_calls"],
        cost_micros=row["cost_micros"],
        wall_s=wall_s,
        estimated=row["tokens_estimated"],
    )


def _record(
    at: int,
    row: ProductRow,
    trial: dict[str, Any],
    said: dict[str, Any],
    calls: list[dict[str, Any]],
    tries: list[dict[str, Any]],
) -> Record:
    produced = row.produced
    transcript = msgspec.structs.replace(
        transcript_of(produced),
        usage=_usage(trial),
        messages=tuple(json.loads(said["messages"])) if said["messages"] else (),
        notes=tuple(said["notes"]),
        cached=trial["cached"],
    )
    ledger = tuple(
        ledger_row(
            entry,
            call["observed"],
            None if call["state_diff"] is None else json.loads(call["state_diff"]),
            call["worker"],
        )
        for entry, call in zip(produced.ledger, calls, strict=True)
    )
    return Record(
        (at, 0, row.trial),
        row,
        trial["seed"],
        transcript,
        ledger,
        trial["wall_s"],
        trial["working_s"],
        tuple(
            Attempt(each["end"], _usage(each), each["wall_s"], _workers(each["workers"]), each["usage_lost"])
            for each in tries
        ),
        said["traceback"] or "",
        said["stdout"] or "",
        said["stderr"] or "",
        trial["width"],
        talk=None if trial["extra"] is None else msgspec.json.decode(trial["extra"], type=Talk),
    )


def _workers(text: str | None) -> tuple[Worker, ...]:
    return () if text is None else msgspec.json.decode(text, type=tuple[Worker, ...])


def judged_again(record: Record, strictness: str | None = None) -> Record:
    """The record with today's verdict on what it holds."""
    row = msgspec.structs.replace(
        record.row,
        strictness=strictness or record.row.strictness,
        verdict=verdict_of(regrade(record.row, strictness=strictness)),
    )
    return msgspec.structs.replace(record, row=row)
