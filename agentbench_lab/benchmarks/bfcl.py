"""BFCL: a folder with `result/` (what models answered) and `score/` (which answers failed).

A score file begins with its totals and then lists failures only: an answer passed when its id is not among them. That
holds only while both files speak of the same answers, so a score of another number of answers is refused.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from agentbench_lab.benchmarks import Options
from agentbench_lab.benchmarks.reading import agrees, decimals, decode_json, digest_of, read_bytes
from agentbench_lab.errors import LabError, counted
from agentbench_lab.results.imported import SourceCase, SourceTrial, imported_run
from agentbench_lab.results.run import Imported, Published, Run
from agentbench_lab.transcripts import Usage

FORM = "bfcl"

_NAME = re.compile(
    r"(?:(?P<version>BFCL_v\d+)_|gorilla_openfunctions_v\d+_test_)?(?P<category>.+)_(result|score)\.json"
)
_PREREQ = "_prereq"
"""Conversations that only fill the memory of later cases: they are never scored, and no case."""


class _Result(Struct, frozen=True):
    id: str | int
    result: Any = None
    input_token_count: Any = None
    output_token_count: Any = None
    latency: Any = None
    inference_log: Any = None


class _Totals(Struct, frozen=True):
    accuracy: float
    correct_count: int
    total_count: int


class _Failure(Struct, frozen=True):
    id: str | int
    error_type: str | None = None
    error: Any = None


def load_results(path: Path, options: Options) -> Run:
    """The run of all models and categories of a folder; each model folder is an arm, each category a group.

    Raises LabError where there is nothing scored, and where a score does not fit the answers that it is of.
    """
    answers, scores = _files(path, "result"), _files(path, "score")
    trials: list[SourceTrial] = []
    cases: dict[str, SourceCase] = {}
    published: list[Published] = []
    notes: list[str] = []
    unscored = 0
    driver = options.driver or FORM
    for (model, category), file in answers.items():
        rows = _rows(file)
        if category.endswith(_PREREQ):
            notes.append(
                f"{model} {category}: only fills a memory, so left out: {counted(len(rows), 'conversation')}."
            )
            continue
        for instance in rows:
            group = cases.setdefault(instance, SourceCase(group=category)).group
            if group != category:
                raise LabError(f"{file}: {instance} is also a case of {group}")
        if (model, category) not in scores:
            unscored += len(rows)
            notes.append(f"{model} {category}: no score file, so missing: {len(rows)} of the answers.")
            continue
        score = scores[model, category]
        totals, failed = _scored(score, rows, file)
        passed = len(rows) - len(failed)
        trials += (_trial(row, driver, model, failed.get(instance), file) for instance, row in rows.items())
        published.append(_accuracy(totals, passed, len(rows), driver, model, category))
    if not trials:
        raise LabError(f"{path}: no result file has its score file; run the evaluation first")
    alone = sorted(set(scores) - set(answers))
    for model, category in alone:
        notes.append(
            f"{model} {category}: a score without its result file is left out; it does not name what passed."
        )
    return imported_run(
        suite=options.suite or _suite(answers.values()),
        trials=trials,
        imported=Imported(
            FORM,
            path.name,
            notes=tuple(notes),
            digest=digest_of([*answers.values(), *scores.values()], path),
            published=tuple(published),
        ),
        name=options.name,
        cases=cases,
        missing=unscored,
    )


def _files(root: Path, kind: str) -> dict[tuple[str, str], Path]:
    """The files below `result/` or `score/`, flat or in folders of groups, by model and category."""
    folder = root / kind
    if not folder.is_dir():
        raise LabError(f"{root}: no folder {kind}/ in it; a BFCL folder has result/ and score/")
    found: dict[tuple[str, str], Path] = {}
    for file in sorted(folder.rglob(f"*_{kind}.json")):
        model = (*file.relative_to(folder).parts[:-1], "")[0]
        name = _NAME.fullmatch(file.name)
        if not model or name is None:
            raise LabError(f"{file}: not {kind}/<model>/.../BFCL_v4_<category>_{kind}.json")
        key = (model, name["category"])
        if key in found:
            raise LabError(f"{file}: {key[1]} of {model} is also in {found[key]}")
        found[key] = file
    return found


def _suite(files: Any) -> str:
    """`bfcl-v4` where all files say so."""
    names = (_NAME.fullmatch(file.name) for file in files)
    versions = {name["version"] for name in names if name is not None}
    version = versions.pop() if len(versions) == 1 else None
    return version.lower().replace("_", "-") if version else FORM


def _lines(file: Path) -> Iterator[tuple[bytes, str]]:
    """The lines that hold something, each with its place."""
    for number, line in enumerate(read_bytes(file).removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        if line.strip():
            yield line, f"{file}:{number}"


def _rows(file: Path) -> dict[str, _Result]:
    rows: dict[str, _Result] = {}
    for line, place in _lines(file):
        row = decode_json(line, _Result, place, one_line=True)
        if rows.setdefault(str(row.id), row) is not row:
            raise LabError(f"{place}: a second answer to {row.id}")
    return rows


def _scored(
    file: Path, rows: Mapping[str, _Result], answered: Path
) -> tuple[_Totals, dict[str, tuple[str, ...]]]:
    """The totals, and what was wrong by the ids that failed. One answer may fail twice: the scorer lists both."""
    lines = _lines(file)
    first = next(lines, None)
    if first is None:
        raise LabError(f"{file}: empty; the first line of a score file has its totals")
    totals: _Totals = decode_json(first[0], _Totals, first[1], one_line=True)
    failed: dict[str, tuple[str, ...]] = {}
    for line, place in lines:
        failure = decode_json(line, _Failure, place, one_line=True)
        instance = str(failure.id)
        if instance not in rows:
            raise LabError(f"{place}: {instance} is not among the answers of {answered}")
        failed[instance] = tuple(dict.fromkeys((*failed.get(instance, ()), _kind(failure))))
    if totals.total_count != len(rows):
        raise LabError(
            f"{file}: scores {totals.total_count} answers, {answered} has {len(rows)}: "
            "which of them passed cannot be told; score them again"
        )
    return totals, failed


def _kind(failure: _Failure) -> str:
    """`multi_turn:instance_state_mismatch`: beside the error, or within it."""
    if failure.error_type:
        return failure.error_type
    within = failure.error.get("error_type") if isinstance(failure.error, dict) else None
    return within if isinstance(within, str) and within else "failed"


def _accuracy(totals: _Totals, passed: int, n: int, driver: str, model: str, category: str) -> Published:
    given = passed / n if n else None
    follows = (
        given is not None
        and agrees(totals.accuracy, given, decimals(totals.accuracy))
        and totals.correct_count == passed
    )
    note = "" if totals.correct_count == passed else f"correct_count is {totals.correct_count}, {passed} pass"
    return Published(driver, model, f"accuracy of {category}", "share", totals.accuracy, given, follows, note)


def _trial(row: _Result, driver: str, model: str, failed: tuple[str, ...] | None, file: Path) -> SourceTrial:
    place = f"{file}: {row.id}"
    given = _tokens(row.input_token_count, f"{place}: input_token_count")
    waited = _numbers(row.latency, f"{place}: latency")
    return SourceTrial(
        str(row.id),
        driver,
        failed is None,
        model=model,
        usage=Usage(
            output=_tokens(row.output_token_count, f"{place}: output_token_count"),
            model_calls=len(waited) if waited else None,
            wall_s=_seconds(waited, f"{place}: latency") if waited else None,
        ),
        reasons=failed or (),
        answer=row.result,
        messages=row.inference_log,
        extra={} if given is None else {"input_tokens": given},
    )


def _seconds(waited: Sequence[float], place: str) -> float:
    try:
        return math.fsum(waited)
    except OverflowError:
        raise LabError(f"{place}: adds up to more seconds than a number can hold") from None


def _tokens(value: Any, place: str) -> int | None:
    numbers = _numbers(value, place)
    for one in numbers or ():
        if one != int(one):
            raise LabError(f"{place}: {one} is no number of tokens")
    return sum(map(int, numbers)) if numbers else None


def _numbers(value: Any, place: str) -> list[float] | None:
    """A number, or all numbers of nested lists (turns of steps). None where one of them is null.

    Raises LabError for anything else, and for a negative number.
    """
    found: list[float] = []
    left = [value]
    while left:
        one = left.pop()
        if one is None:
            return None
        if isinstance(one, list):
            left += reversed(one)
        elif isinstance(one, int | float) and not isinstance(one, bool) and one >= 0:
            found.append(one)
        else:
            text = msgspec.json.encode(one).decode()[:60]
            raise LabError(f"{place}: {text} is neither a number nor lists of numbers")
    return found
