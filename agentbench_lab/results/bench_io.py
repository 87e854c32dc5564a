"""A run as a file of the format agent-runtime/bench/v1, and such a file as a run of imported trials.

What the one cannot hold of the other is said, not invented: unknown figures are written 0 and named in
`extra.unknown`, and come back as null; what a file does not say (stops, calls, requests, who hallucinated) is null or
empty in the run. Encoding a file's run again gives the file's bytes, as long as its numbers fit into the tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
from msgspec import Raw

from agentbench_lab.errors import LabError
from agentbench_lab.outcomes import Taxonomy
from agentbench_lab.results.bench_v1 import FORMAT as BENCH_FORMAT
from agentbench_lab.results.bench_v1 import BenchFile, Trial, raw
from agentbench_lab.results.bench_v1.scan import Scanner
from agentbench_lab.results.imported import UNKNOWN, run_of_rows
from agentbench_lab.results.run import Counts, Imported, Run, RunCard, SuiteCard
from agentbench_lab.results.schema import no_collection
from agentbench_lab.values import canonical, digest

_INT64_MAX = 2**63 - 1
_INT32_MAX = 2**31 - 1
_CRASHES = ("driver_error", "infrastructure_error")
_FIGURES = ("steps", "model_calls", "input_tokens", "output_tokens", "cost_micros", "wall_ns")
"""The figures of a trial that may be unknown, in the order of the format."""
_ONCE = "once"
_NO_TIME = "1970-01-01T00:00:00Z"
"""Stands for an unknown start, which the format has no word for; a note says so."""


# ---- from a run ----------------------------------------------------------------------------------------------


def to_bench(run: Run) -> BenchFile:
    """The run's trials as a result file; the same run gives the same file.

    The scenario is the case id (suite/case_id with several suites), the mode the driver, or driver+scaffold where there
    is one, the repeat the trial. Input tokens are the three input buckets together. Unknown figures are written 0 and
    named in `extra.unknown`. What is not live and what is missing stands in the file's notes.
    """
    card = run.card
    several = len(card.suites) > 1
    again = card.imported is not None and card.imported.format == BENCH_FORMAT
    trials = _trials(run.trials, several, again)
    if card.imported is not None and again:
        return BenchFile(
            started_at=card.started_at,
            taxonomy=card.outcome_set,
            trials=trials,
            commit=_commit(card.commit),
            options={name: Raw(text.encode()) for name, text in card.imported.options.items()},
            notes=list(card.imported.notes),
            source=card.imported.file,
        )
    options = {
        name: value
        for name, value in card.options.items()
        if value is not False and value not in ("", None, [])
    }
    about = {
        "evidence": list(card.evidence),
        "seed": card.seed,
        "stamp": card.stamp,
        "strictness": card.strictness,
        "suites": {suite.name: suite.digest for suite in card.suites},
    }
    return BenchFile(
        started_at=card.started_at or _NO_TIME,
        taxonomy=card.outcome_set,
        trials=trials,
        commit=_commit(card.commit),
        options={name: raw(value) for name, value in {**options, **about}.items()},
        notes=_notes(card),
    )


def bench_bytes(run: Run) -> bytes:
    """bench.json: the run's trials as a file of agent-runtime/bench/v1."""
    with no_collection():
        return to_bench(run).encode()


def _commit(commit: str) -> str:
    return "" if commit == UNKNOWN else commit


def _notes(card: RunCard) -> list[str]:
    notes = [
        f"{arm.driver}: {arm.evidence}{f', {arm.banner}' if arm.banner else ''}"
        for arm in card.arms
        if arm.evidence != "live"
    ]
    if not card.started_at:
        notes.append(f"the start is unknown; {_NO_TIME} stands for it")
    if card.counts.missing:
        notes.append(f"incomplete: {card.counts.missing} of {card.counts.asked} trials asked are missing")
    return notes


_COLUMNS = (
    *("extra", "steps", "model_calls", "tokens_fresh_input", "tokens_cache_read", "tokens_cache_write"),
    *(
        "tokens_output",
        "cost_micros",
        "wall_s",
        "tokens_estimated",
        "usage_lost",
        "attempts",
        "excluded_owner",
        "stop",
        "suite",
    ),
    *(
        "case_id",
        "driver",
        "scaffold",
        "model",
        "trial",
        "run",
        "expect",
        "outcome",
        "excluded",
        "tool_calls",
    ),
    *("note", "reasons", "evidence"),
)


def _trials(table: pa.Table, several: bool, imported: bool) -> list[Trial]:
    # column by column: rows of all columns take twice as long
    columns = [table.column(name).to_pylist() for name in _COLUMNS]
    return [
        _trial(dict(zip(_COLUMNS, values, strict=True)), several, imported)
        for values in zip(*columns, strict=True)
    ]


def _trial(row: Mapping[str, Any], several: bool, imported: bool) -> Trial:
    kept, extra = ({}, {}) if row["extra"] is None else _kept(row["extra"])
    figures = (
        row["steps"],
        row["model_calls"],
        _input(row),
        row["tokens_output"],
        row["cost_micros"],
        kept["wall_ns"] if "wall_ns" in kept else _nanoseconds(row["wall_s"]),
    )
    if not imported:
        extra = {}
        counted = (*figures, row["tool_calls"])
        if None in counted:
            extra["unknown"] = _unknown(tuple([value is None for value in counted]))
        if row["tokens_estimated"]:
            extra["tokens_estimated"] = raw(True)
        if row["usage_lost"]:
            extra["usage_lost"] = raw(True)
        if row["attempts"] > 1:
            extra["attempts"] = raw(row["attempts"])
        if row["excluded_owner"]:
            extra["excluded_owner"] = raw(row["excluded_owner"])
    crashed = imported or row["stop"] in _CRASHES
    steps, model_calls, input_tokens, output_tokens, cost_micros, wall_ns = figures
    return Trial(
        scenario=f"{row['suite']}/{row['case_id']}" if several else row["case_id"],
        mode=row["driver"] if row["scaffold"] == _ONCE else f"{row['driver']}+{row['scaffold']}",
        model=row["model"] or "",
        repeat=row["trial"],
        run_id=kept.get("run_id", "" if imported else row["run"]),
        expect=row["expect"],
        reached=kept.get("reached", ""),
        outcome=row["outcome"] or "",
        excluded=row["excluded"] or "",
        tool_calls=row["tool_calls"] or 0,
        policy_denials=kept.get("policy_denials", 0),
        error=(row["note"] or "") if crashed else "",
        notes=row["reasons"],
        extra=extra,
        steps=steps or 0,
        model_calls=model_calls or 0,
        input_tokens=min(_INT64_MAX, input_tokens or 0),
        output_tokens=output_tokens or 0,
        cost_micros=cost_micros or 0,
        wall_ns=min(_INT64_MAX, wall_ns or 0),
    )


@lru_cache(maxsize=64)
def _unknown(which: tuple[bool, ...]) -> Raw:
    """The names of the figures that are unknown."""
    return raw([name for name, unknown in zip((*_FIGURES, "tool_calls"), which, strict=True) if unknown])


def _input(row: Mapping[str, Any]) -> int | None:
    """The three input buckets together. An imported row may have fewer: those that its file tells of."""
    buckets = [row["tokens_fresh_input"], row["tokens_cache_read"], row["tokens_cache_write"]]
    if row["evidence"] == "imported" and buckets[0] is not None:
        buckets = [bucket for bucket in buckets if bucket is not None]
    return None if None in buckets else sum(buckets)


def _nanoseconds(seconds: float | None) -> int | None:
    return None if seconds is None else max(0, round(seconds * 1e9))


# ---- from a file ---------------------------------------------------------------------------------------------


def read_bench(path: str | Path) -> BenchFile:
    """Read one result file. Raises LabError (a BenchError for what is no such file) with the file's name."""
    file = Path(path)
    try:
        data = file.read_bytes()
    except OSError as error:
        raise LabError(f"{path}: cannot be read: {error.strerror}") from None
    try:
        return BenchFile.decode(data, source=file.name)
    except LabError as error:
        raise LabError(f"{path}: {error}") from None


def from_bench(file: BenchFile, *, name: str = "") -> Run:
    """The file's trials as a run with evidence `imported`, judged by the file's own outcomes; nothing is judged again.

    The suite is named by the file's taxonomy, a mode is a driver, and `solved` says whether the outcome is of class
    success. What the file does not say is null: stops, hallucination, completion apart from solving, which input tokens
    came from a cache (all of them stand as fresh). There are no product rows, calls and transcripts. `name` is the
    run's (default: the name of the file). Raises LabError for a file that is not valid, or has a number that the
    tables cannot hold.
    """
    file.encode()  # whatever is wrong with it is found before anything is made of it
    trials = list(file.trials or ())
    suite = file.taxonomy.name
    source = file.source or suite
    name = name or source.removesuffix(".json")
    imported = Imported(
        BENCH_FORMAT,
        file.source,
        file.taxonomy.outcomes,
        {key: _text(bytes(value), f"{source}: option {key!r}") for key, value in file.options.items()},
        tuple(file.notes),
    )
    rows = []
    attempts = []
    for number, trial in enumerate(trials):
        where = f"{source}: trial {number} ({trial.scenario} {trial.mode} #{trial.repeat})"
        row, tried = _rows(trial, name, suite, file.taxonomy, where)
        rows.append(row)
        attempts.append(tried)
    expects: dict[str, str] = {}
    for trial in trials:
        expects[trial.scenario] = expects.get(trial.scenario) or trial.expect
    excluded = sum(bool(trial.excluded) for trial in trials)
    return run_of_rows(
        suite=SuiteCard(suite, digest(expects), None, None, len(expects)),
        taxonomy=file.taxonomy,
        arms=list(dict.fromkeys((trial.mode, trial.model or None, _ONCE) for trial in trials)),
        rows={
            "cases": [_case(suite, scenario, expect) for scenario, expect in expects.items()],
            "trials": rows,
            "attempts": attempts,
            "calls": [],
            "transcripts": [],
        },
        counts=Counts(len(trials), len(trials) - excluded, excluded, 0),
        imported=imported,
        name=name,
        commit=file.commit,
        started_at=file.started_at,
        finished_at="",
        options={key: _value(text) for key, text in imported.options.items()},
    )


def _case(suite: str, scenario: str, expect: str) -> tuple[Any, ...]:
    """All that a file says of a scenario is its name and what it expects, so that is its digest, too."""
    known = digest({"expect": expect, "scenario": scenario})
    return suite, scenario, suite, "", [], "", "", expect, "{}", None, None, None, None, None, known, 0


def _rows(
    trial: Trial, run: str, suite: str, taxonomy: Taxonomy, where: str
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The trial's row of `trials`, and its one row of `attempts`."""
    for name in ("repeat", "steps", "tool_calls"):
        if getattr(trial, name) > _INT32_MAX:
            raise LabError(f"{where}: {name} {getattr(trial, name)} is more than a run can hold")
    unknown = _names(trial.extra.get("unknown"))
    known = {name: None if name in unknown else getattr(trial, name) for name in _FIGURES}
    cls = taxonomy.lookup(trial.outcome).cls if trial.outcome else None
    solved = None if cls is None else cls == "success"
    wall_s = None if known["wall_ns"] is None else known["wall_ns"] / 1e9
    kept: dict[str, Any] = {
        "reached": trial.reached,
        "run_id": trial.run_id,
        "policy_denials": trial.policy_denials,
        # seconds as a float cannot hold the nanoseconds of weeks
        "wall_ns": known["wall_ns"] if _nanoseconds(wall_s) != known["wall_ns"] else 0,
    }
    identity = (suite, trial.scenario)
    arm = (trial.mode, trial.model or None, _ONCE, trial.repeat)
    usage = (
        known["model_calls"],
        known["input_tokens"],
        None,
        None,
        known["output_tokens"],
        False,
        True if bytes(trial.extra.get("usage_lost", b"")) == b"true" else None,
        known["cost_micros"],
        wall_s,
    )
    row = (
        run,
        *identity,
        suite,
        *arm,
        None,  # seed
        "imported",
        trial.expect,
        trial.outcome or None,
        cls,
        solved,
        solved,  # completed: nothing tells the two apart
        None,  # result_completed
        None,  # hallucinated
        None,  # terminated
        None,  # refused
        None,  # score
        None,  # stop
        trial.excluded or None,
        None,  # excluded_owner
        known["steps"],
        None if "tool_calls" in unknown else trial.tool_calls,
        None,  # tool_errors
        *usage,
        False,
        None,  # working_s
        1,
        1,
        list(trial.notes),
        trial.error or None,
        _extra(kept, trial.extra, where),
    )
    return row, (*identity, *arm, 1, None, *usage, None)


def _names(value: Raw | None) -> frozenset[str]:
    """The names in a list of texts; none for anything else, since `unknown` is a free key of other harnesses."""
    if value is None:
        return frozenset()
    try:
        return frozenset(msgspec.json.decode(bytes(value), type=list[str]))
    except msgspec.DecodeError:
        return frozenset()


# ---- the column `extra`, where every value keeps the text that it was written with -----------------------------


def _extra(kept: Mapping[str, Any], extra: Mapping[str, Raw], where: str) -> str | None:
    members = [_member(name, canonical(value)) for name, value in kept.items() if value]
    if extra:
        inner = (_member(key, bytes(value)) for key, value in extra.items())
        members.append(_member("extra", _object(inner)))
    return _text(_object(members), f"{where}: extra") if members else None


def _member(name: str, value: bytes) -> bytes:
    return canonical(name) + b":" + value


def _object(members: Iterable[bytes]) -> bytes:
    return b"{" + b",".join(members) + b"}"


def _text(data: bytes, where: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise LabError(f"{where}: holds text that is not UTF-8, which a run cannot hold") from None


def _kept(text: str | None) -> tuple[dict[str, Any], dict[str, Raw]]:
    """What `_extra` put together: the trial's own fields, and its extra values."""
    kept: dict[str, Any] = {}
    extra: dict[str, Raw] = {}
    if text is None:
        return kept, extra
    scanner = Scanner(text.encode())
    scanner.advance()
    for name in scanner.members():
        if name == "extra":
            extra = {key: Raw(scanner.value()) for key in scanner.members()}
        else:
            kept[name] = msgspec.json.decode(scanner.value())
    return kept, extra


def _value(text: str) -> Any:
    """An option as a value for people to read; its text where a card could not hold the value."""
    try:
        value = msgspec.json.decode(text)
        msgspec.json.decode(msgspec.json.encode(value))
    except (msgspec.DecodeError, ValueError, RecursionError, OverflowError):
        return text
    return value
