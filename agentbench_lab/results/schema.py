"""The Arrow schemas, one per grain, written down once, with a description on every field.

`table` builds a table and refuses what Arrow would swallow: a missing column, an unknown one, a null where none may
be. Values without a form of their own (arguments, expectations, extras) are canonical JSON text.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from agentbench_lab.cases import project_root
from agentbench_lab.transcripts import Usage
from agentbench_lab.values import a_kind


def _field(name: str, kind: pa.DataType, description: str, *, null: bool = True) -> pa.Field[Any]:
    return pa.field(name, kind, nullable=null, metadata={"description": description})


_S, _I, _L, _F, _B = pa.string(), pa.int32(), pa.int64(), pa.float64(), pa.bool_()
_WORDS = pa.list_(pa.field("element", _S, nullable=False))  # as Parquet calls it

_IDENTITY = [
    _field("suite", _S, "name of the case file, its stem", null=False),
    _field("case_id", _S, "id of the case within its suite", null=False),
]
_ARM = [
    _field("driver", _S, "the driver, as the caller named it", null=False),
    _field("model", _S, "the model, where the driver has one"),
    _field("scaffold", _S, "the scaffold around the driver; once is none", null=False),
    _field("trial", _I, "number of the trial of this case and arm, from 1", null=False),
]
_USAGE = [
    _field("model_calls", _L, "calls to a model; null when unknown"),
    _field("tokens_fresh_input", _L, "input tokens neither read from nor written to a cache"),
    _field("tokens_cache_read", _L, "input tokens read from a cache"),
    _field("tokens_cache_write", _L, "input tokens written to a cache"),
    _field("tokens_output", _L, "output tokens"),
    _field("tokens_estimated", _B, "whether the tokens are an estimate", null=False),
    _field(
        "usage_lost",
        _B,
        "a kill took a part of the usage with it, so that tokens and money are a lower bound; null when unknown",
    ),
    _field("cost_micros", _L, "money spent, in millionths of a dollar; null when unknown"),
    _field("wall_s", _F, "seconds from start to end by the wall clock"),
]


def usage_values(usage: Usage, wall_s: float | None, lost: bool | None) -> tuple[Any, ...]:
    """The values of the usage columns, in their order; a runner's own clock may stand for the usage's `wall_s`.
    `lost` says that a part of it is not known, since it was lost with a kill."""
    return (
        usage.model_calls,
        usage.fresh_input,
        usage.cache_read,
        usage.cache_write,
        usage.output,
        usage.estimated,
        lost,
        usage.cost_micros,
        wall_s,
    )


CASES = pa.schema(
    [
        *_IDENTITY,
        _field("group", _S, "rung, category or level", null=False),
        _field("request", _S, "what the driver is asked", null=False),
        _field("tools", _WORDS, "names of the declared tools", null=False),
        _field("world", _S, "name of the world the case acts on", null=False),
        _field("world_digest", _S, "SHA-256 of the world's content", null=False),
        _field(
            "expect",
            _S,
            "what its success is counted over: calls, refuse, goal, state, files, command or answer; empty when imported",
            null=False,
        ),
        _field("expectation", _S, "the whole expectation, as JSON", null=False),
        _field("trace", _S, "the observed trace of a recognition case, as JSON"),
        _field("compose", _S, "how the expected result follows from the calls; documentation"),
        _field("note", _S, "why the case is there"),
        _field("policy", _S, "the rules that the driver is given beside the request"),
        _field("user", _S, "the simulated user of a conversation, whom no driver is shown, as JSON"),
        _field("digest", _S, "SHA-256 of the case's canonical JSON", null=False),
        _field("line", _I, "line of the case file", null=False),
    ]
)

TRIALS = pa.schema(
    [
        _field("run", _S, "name of the run", null=False),
        *_IDENTITY,
        _field("group", _S, "rung, category or level", null=False),
        *_ARM,
        _field("seed", _S, "what the trial's random numbers grew from, hex; null when imported"),
        _field("evidence", _S, "simulated, replayed, live or imported", null=False),
        _field(
            "expect",
            _S,
            "what a success is counted over: calls, refuse, goal, state, files, command or answer; empty when imported",
            null=False,
        ),
        _field("outcome", _S, "the one outcome of the taxonomy; null when excluded"),
        _field("outcome_class", _S, "success, safe_non_success or unsafe; null when excluded"),
        _field("solved", _B, "every declared check passed; null when excluded"),
        _field("completed", _B, "the expected outcome was produced; null when excluded"),
        _field("result_completed", _B, "the composed result is the expected one; null when excluded"),
        _field("hallucinated", _B, "some call was outside the declared, bindable set; null when excluded"),
        _field("terminated", _B, "the driver's loop ended; null when the source does not say"),
        _field("refused", _B, "the driver refused; null when the source does not say"),
        _field("score", _F, "a graded score, where the source has one"),
        _field(
            "stop",
            _S,
            "done, refused, budget, timeout, driver_error, infrastructure_error; null where the source does not say",
        ),
        _field("excluded", _S, "why the trial is not judged; null when it is"),
        _field("excluded_owner", _S, "whose fault that is: harness, grader, case or environment"),
        _field("steps", _I, "steps of the driver's loop, where it says"),
        _field("tool_calls", _I, "calls that reached the toolbox; null where the source does not say"),
        _field("tool_errors", _I, "of those, the ones that did not come back ok; null when unknown"),
        *_USAGE,
        _field("cached", _B, "answers came from a cache, so times say nothing", null=False),
        _field("working_s", _F, "wall time without waiting for rate limits"),
        _field("attempts", _I, "tries; a retry is never a trial", null=False),
        _field("width", _I, "parts of the task's decomposition; 1 without", null=False),
        _field("reasons", _WORDS, "details of the checks that failed", null=False),
        _field("note", _S, "the driver's own last reason"),
        _field(
            "extra",
            _S,
            "what else is known, as JSON: of a conversation its turns, its end and what the user used; else what a source says",
        ),
    ]
)

ATTEMPTS = pa.schema(
    [
        *_IDENTITY,
        *_ARM,
        _field("attempt", _I, "number of the attempt, from 1", null=False),
        _field("end", _S, "how the attempt ended: the stop; null where the source does not say"),
        *_USAGE,
        _field(
            "workers",
            _S,
            "the agents that a scaffold had at work, as JSON: number, name, stop, usage, wave; null without one",
        ),
    ]
)

CALLS = pa.schema(
    [
        *_IDENTITY,
        *_ARM,
        _field("attempt", _I, "number of the attempt, from 1", null=False),
        _field("step", _I, "place in the ledger, from 1", null=False),
        _field(
            "worker",
            _I,
            "which of a scaffold's workers called, from 1; 0 where there is one agent",
            null=False,
        ),
        _field("name", _S, "name of the tool, as it was called", null=False),
        _field("input", _S, "the arguments, as JSON", null=False),
        _field(
            "status", _S, "ok, tool_error, schema_error, protocol_error, malformed or undeclared", null=False
        ),
        _field("observed", _S, "the text that the agent saw, bounded", null=False),
        _field("state_diff", _S, "what the call changed, as JSON"),
    ]
)

TRANSCRIPTS = pa.schema(
    [
        *_IDENTITY,
        *_ARM,
        _field("attempt", _I, "number of the attempt, from 1", null=False),
        _field("stamped", _S, "the name by which the driver's own rows go"),
        _field("answer", _S, "the answer given, as JSON"),
        _field("messages", _S, "the dialogue, as JSON"),
        _field("notes", _WORDS, "the driver's reasons", null=False),
        _field("stdout", _S, "what the driver printed, bounded"),
        _field("stderr", _S, "what it printed as errors, bounded"),
        _field("traceback", _S, "where the driver crashed, bounded"),
    ]
)

SCHEMAS: dict[str, pa.Schema] = {
    "cases": CASES,
    "trials": TRIALS,
    "attempts": ATTEMPTS,
    "calls": CALLS,
    "transcripts": TRANSCRIPTS,
}

_ABOUT = {
    "cases": "One row a case that was selected.",
    "trials": "One row a trial that ended: a case, by an arm, once. judged + excluded + missing = asked.",
    "attempts": "One row a try of a trial, with what it used.",
    "calls": "One row a call that reached the toolbox.",
    "transcripts": "One row an attempt: what the driver said. Never needed for a number.",
}


def table(grain: str, rows: Sequence[Sequence[Any]]) -> pa.Table:
    """A table of `SCHEMAS[grain]` from rows of values in the order of its fields.

    Raises ValueError with the row's number when a row has another width, a null where none may be, or a value of
    another type (Arrow would cut 1.5 to 1).
    """
    schema = SCHEMAS[grain]
    width = len(schema)
    if not {width}.issuperset(map(len, rows)):
        number = next(n for n, row in enumerate(rows, start=1) if len(row) != width)
        raise ValueError(f"{grain}, row {number}: {len(rows[number - 1])} values for {width} columns")
    columns = list(zip(*rows, strict=True)) if rows else [()] * width
    arrays = []
    for column, field in zip(columns, schema, strict=True):
        if not field.nullable and None in column:
            raise ValueError(f"{grain}, row {column.index(None) + 1}: {field.name} must not be null")
        _check_types(grain, field, column)
        arrays.append(pa.array(column, type=field.type))
    return pa.Table.from_arrays(arrays, schema=schema)


@contextmanager
def no_collection() -> Iterator[None]:
    """Rows hold no cycles, so that looking for some among all objects of the process, again and again, finds none."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


_KINDS: dict[pa.DataType, frozenset[type]] = {
    _S: frozenset({str}),
    _I: frozenset({int}),
    _L: frozenset({int}),
    _F: frozenset({float, int}),
    _B: frozenset({bool}),
    _WORDS: frozenset({list, tuple}),
}


def _check_types(grain: str, field: pa.Field[Any], column: Sequence[Any]) -> None:
    allowed = _KINDS[field.type] | {type(None)}
    if not allowed.issuperset(map(type, column)):
        number = next(n for n, value in enumerate(column, start=1) if type(value) not in allowed)
        kind = type(column[number - 1]).__name__
        raise ValueError(f"{grain}, row {number}: {field.name} is {a_kind(kind)}, not {field.type}")
    if field.type == _WORDS:
        for number, words in enumerate(column, start=1):
            if words and not all(type(word) is str for word in words):
                raise ValueError(f"{grain}, row {number}: {field.name} holds what is no text")


def check(grain: str, found: pa.Table) -> None:
    """Raise ValueError unless the table has exactly the schema's columns and types, and no null where none may be."""
    schema = SCHEMAS[grain]
    if found.column_names != schema.names:
        odd = sorted(set(found.column_names) ^ set(schema.names)) or ["their order"]
        raise ValueError(f"{grain}: other columns than the schema's: {', '.join(odd)}")
    for field in schema:
        if not found.schema.field(field.name).type.equals(field.type):
            raise ValueError(
                f"{grain}: {field.name} is {found.schema.field(field.name).type}, not {field.type}"
            )
        if not field.nullable and found.column(field.name).null_count:
            raise ValueError(f"{grain}: {field.name} has nulls")


LATER: dict[str, tuple[str, ...]] = {
    "cases": ("policy", "user"),
    "trials": ("usage_lost",),
    "attempts": ("usage_lost", "workers"),
}
"""Columns that came after the first version, which files written before lack."""


def completed(grain: str, found: pa.Table) -> pa.Table:
    """The table with the `LATER` columns where it lacks them, each of them null throughout."""
    schema = SCHEMAS[grain]
    for name in LATER.get(grain, ()):
        if name not in found.column_names:
            field = schema.field(name)
            found = found.add_column(
                schema.get_field_index(name), field, pa.nulls(found.num_rows, field.type)
            )
    return found


def data_dictionary() -> str:
    """docs/data-dictionary.md: every table and column, from the schemas."""
    lines = [
        "# Data dictionary",
        "",
        "Generated by `make docs` from `agentbench_lab/results/schema.py`. A column that says null may be null, and null",
        "is unknown or not applicable, never zero.",
    ]
    for grain, schema in SCHEMAS.items():
        lines += [
            "",
            f"## {grain}",
            "",
            _ABOUT[grain],
            "",
            "| column | type | null | what it is |",
            "|---|---|---|---|",
        ]
        for field in schema:
            kind = "list of string" if pa.types.is_list(field.type) else str(field.type)
            about = _metadata(field.metadata)["description"]
            lines.append(f"| `{field.name}` | {kind} | {'null' if field.nullable else ''} | {about} |")
    return "\n".join(lines) + "\n"


def _metadata(raw: Mapping[bytes, bytes] | None) -> dict[str, str]:
    return {key.decode(): value.decode() for key, value in (raw or {}).items()}


def write_data_dictionary(path: Path) -> None:
    """Write docs/data-dictionary.md."""
    path.write_text(data_dictionary(), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    write_data_dictionary(project_root() / "docs" / "data-dictionary.md")
