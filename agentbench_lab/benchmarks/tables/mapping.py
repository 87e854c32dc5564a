"""Which column of a table holds what: our names, and how the caller's words and the heading give them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from agentbench_lab.benchmarks.tables.cells import (
    OUTCOMES,
    OWNERS,
    STOPS,
    Parse,
    amount,
    count,
    dollars,
    excluded,
    instant,
    name_of,
    one_of,
    real,
    text,
    truth,
)
from agentbench_lab.benchmarks.tables.files import TableFile
from agentbench_lab.errors import LabError, did_you_mean

_FEW, _MANY = count(32), count(64)

COLUMNS: dict[str, Parse] = {
    "case_id": text,
    "trial": _FEW,
    "driver": name_of,
    "model": name_of,
    "scaffold": name_of,
    "group": name_of,
    "request": text,
    "solved": truth,
    "score": real,
    "outcome": one_of(OUTCOMES),
    "excluded": excluded,
    "excluded_owner": one_of(OWNERS),
    "stop": one_of(STOPS),
    "terminated": truth,
    "refused": truth,
    "hallucinated": truth,
    "note": text,
    "answer": text,
    "steps": _FEW,
    "tool_calls": _FEW,
    "tool_errors": _FEW,
    "model_calls": _MANY,
    "tokens_fresh_input": _MANY,
    "tokens_input_total": _MANY,
    "tokens_cache_read": _MANY,
    "tokens_cache_write": _MANY,
    "tokens_output": _MANY,
    "cost_usd": dollars,
    "cost_micros": _MANY,
    "wall_s": amount,
    "working_s": amount,
    "started_at": instant,
    "ended_at": instant,
}
"""What a column can be mapped to, with how its cells are read. `tokens_input_total` counts cached tokens within,
`tokens_fresh_input` beside; `cost_usd` is dollars; `started_at` and `ended_at` are ISO instants and give `wall_s` where
that is not mapped itself. Beside these: `extra.NAME` keeps a column under that name."""

NULL_SOLVED = "null_solved"
EXTRA = "extra."


class Mapped(Struct, frozen=True):
    """Our names to their columns, and to the one value of every row; whether rows are numbered here, and whether an empty
    verdict is a failure."""

    columns: dict[str, str]
    constants: dict[str, str]
    numbered: bool
    null_is_failure: bool


def mapped(file: TableFile, path: Path, asked: Mapping[str, str]) -> Mapped:
    """What each of our columns is read from; `asked` is what the caller says (see `tables.load_table`).

    Raises LabError for a name that is not ours or not theirs, for two columns of one meaning, and where no column tells
    the case or the verdict.
    """
    columns: dict[str, str] = {}
    constants: dict[str, str] = {}
    for ours, theirs in asked.items():
        if ours == NULL_SOLVED:
            if theirs != "failure":
                raise LabError(f"{NULL_SOLVED}={theirs}: it can only be failure")
            continue
        _check_ours(ours)
        if theirs.startswith("="):
            constants[ours] = theirs[1:]
        elif not (ours == "trial" and theirs == "#"):
            if theirs not in file.names:
                raise LabError(f"{path}: no column {theirs!r}{did_you_mean(theirs, file.names)}")
            columns[ours] = theirs
    taken = set(columns.values())
    for name in file.names:
        if name in COLUMNS and name not in asked and name not in taken:
            columns[name] = name
    for ours, theirs in columns.items():
        if theirs in file.twice():
            raise LabError(f"{path}: {ours} is mapped to {theirs!r}, and several columns are called so")
    known = {*columns, *constants}
    for one, other, why in (
        ("cost_usd", "cost_micros", "both are the cost"),
        ("tokens_fresh_input", "tokens_input_total", "the first is a part of the second"),
    ):
        if one in known and other in known:
            raise LabError(f"{path}: {one} and {other} are both mapped; {why}, give one")
    if "case_id" not in known:
        raise LabError(f"{path}: which column is case_id? --map case_id=COLUMN {_there_is(file)}")
    if not known & {"solved", "score", "outcome"}:
        raise LabError(
            f"{path}: which column says whether a trial is solved? "
            f"--map solved=COLUMN, or score=COLUMN (solved is a score of 1) {_there_is(file)}"
        )
    return Mapped(columns, constants, asked.get("trial") == "#", NULL_SOLVED in asked)


def _check_ours(ours: str) -> None:
    if ours.startswith(EXTRA):
        name = ours.removeprefix(EXTRA)
        if not name or not (name.isascii() and name.replace("_", "a").isalnum() and name == name.lower()):
            raise LabError(f"{ours}: a name under extra is of a-z, 0-9 and _")
    elif ours not in COLUMNS:
        raise LabError(
            f"{ours!r} is none of our columns{did_you_mean(ours, (*COLUMNS, NULL_SOLVED), most=0)}; "
            f"there is: {', '.join(COLUMNS)}, extra.NAME, {NULL_SOLVED}"
        )


def _there_is(file: TableFile) -> str:
    names = list(dict.fromkeys(file.names))
    return f"(there is: {', '.join(names[:12])}{', …' if len(names) > 12 else ''})"
