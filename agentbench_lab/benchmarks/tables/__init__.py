"""Plain tables, one trial a row: CSV, JSON lines, Parquet. Which column holds what is said by name (`COLUMNS`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from agentbench_lab.benchmarks import Options
from agentbench_lab.benchmarks.reading import digest_of
from agentbench_lab.benchmarks.tables.cells import OUTCOMES, CellError, between, parsed, solved_by, span, text
from agentbench_lab.benchmarks.tables.files import TableFile, read_csv, read_jsonl, read_parquet
from agentbench_lab.benchmarks.tables.mapping import COLUMNS, EXTRA, NULL_SOLVED, Mapped, mapped
from agentbench_lab.errors import LabError
from agentbench_lab.results.imported import UNKNOWN, SourceCase, SourceTrial, imported_run
from agentbench_lab.results.run import Imported, Run
from agentbench_lab.results.schema import no_collection
from agentbench_lab.transcripts import Usage, disjoint_input


def load_csv(path: Path, options: Options) -> Run:
    """The trials of a CSV file; see `load_table`."""
    with no_collection():
        return load_table(read_csv(path), path, "csv", options)


def load_jsonl(path: Path, options: Options) -> Run:
    """The trials of a file of JSON lines; see `load_table`."""
    with no_collection():
        return load_table(read_jsonl(path), path, "jsonl", options)


def load_parquet(path: Path, options: Options) -> Run:
    """The trials of a Parquet file; see `load_table`."""
    with no_collection():
        return load_table(read_parquet(path), path, "parquet", options)


def load_table(file: TableFile, path: Path, form: str, options: Options) -> Run:
    """The run of a table's rows.

    `options.columns` maps our names to theirs; a column that is named like ours maps itself unless it, or ours, is
    mapped already. `=VALUE` instead of a column stands for that value in every row. `trial` mapped to `#` numbers the
    rows of each case and arm in the order of the file. `null_solved` mapped to `failure` counts a trial without a
    verdict as not solved; else that is an error. Where only a score tells the verdict, no score may exceed 1. Raises LabError with the place of the row for what cannot be meant.
    """
    mapping = mapped(file, path, options.columns)
    if not file.rows:
        raise LabError(f"{path}: has columns and no row below them: no trials")
    cells = _read(file, mapping)
    notes: list[str] = []
    trials = _trials(_Rows(file, mapping, cells, notes), options)
    unread = [name for name in dict.fromkeys(file.names) if name not in mapping.columns.values()]
    if unread:
        notes.append(f"Columns that were not read: {', '.join(unread)}.")
    first, last = span(cells.get("started_at", ()), cells.get("ended_at", ()))
    return imported_run(
        suite=options.suite or path.stem,
        trials=trials,
        imported=Imported(form, path.name, digest=digest_of([path], path), notes=tuple(notes)),
        name=options.name,
        cases=_cases(file, cells),
        started_at=first,
        finished_at=last,
        options={"columns": dict(options.columns)} if options.columns else {},
    )


def _read(file: TableFile, mapping: Mapped) -> dict[str, list[Any]]:
    """Each mapped column, read."""
    found: dict[str, list[Any]] = {}
    for ours, theirs in mapping.columns.items():
        try:
            found[ours] = parsed(file.column(theirs), COLUMNS.get(ours, _anything))
        except CellError as wrong:
            raise LabError(
                f"{file.where(wrong.row)}: {ours}{_from(ours, theirs)}: {wrong.value!r} {wrong}"
            ) from None
    for ours, value in mapping.constants.items():
        try:
            found[ours] = [COLUMNS.get(ours, _anything)(value)] * file.rows
        except ValueError as error:
            raise LabError(f"{ours}=={value}: {value!r} {error}") from None
    return found


def _from(ours: str, theirs: str) -> str:
    return f" (column {theirs!r})" if theirs != ours else ""


def _anything(value: Any) -> Any:
    """What is kept as it is, where JSON can hold it."""
    if value == "" or (isinstance(value, float) and value != value):
        return None
    try:
        msgspec.json.encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return text(value)
    return value


class _Rows(Struct):
    """A table while its rows become trials."""

    file: TableFile
    mapping: Mapped
    cells: dict[str, list[Any]]
    notes: list[str]

    def column(self, name: str, default: Any = None) -> Sequence[Any]:
        """A column, nulls filled with the default."""
        if name not in self.cells:
            return [default] * self.file.rows
        if default is None:
            return self.cells[name]
        return [default if value is None else value for value in self.cells[name]]

    def wrong(self, row: int, what: str) -> LabError:
        return LabError(f"{self.file.where(row)}: {what}")


def _trials(rows: _Rows, options: Options) -> list[SourceTrial]:
    case_ids = rows.column("case_id")
    if None in case_ids:
        raise rows.wrong(case_ids.index(None), "case_id is empty")
    drivers = rows.column("driver", options.driver or UNKNOWN)
    models = rows.column("model", options.model or None)
    scaffolds = rows.column("scaffold", "once")
    if UNKNOWN in drivers:
        rows.notes.append("Which agent it was is not said (--map driver=COLUMN, or --driver NAME).")
    numbers = _numbers(rows, list(zip(case_ids, drivers, models, scaffolds, strict=True)))
    reasons = rows.column("excluded")
    verdicts = _verdicts(rows, reasons)
    usages, extras = _usages(rows)
    names = ("score", "stop", "terminated", "refused", "hallucinated", "note", "answer")
    counts = ("steps", "tool_calls", "tool_errors", "working_s", "excluded_owner", "outcome")
    others = [rows.column(name) for name in (*names, *counts)]
    rest = zip(*others, strict=True)
    trials = []
    arms = zip(case_ids, drivers, models, scaffolds, numbers, strict=True)
    judged = zip(arms, verdicts, reasons, usages, extras, rest, strict=True)
    for (case_id, driver, model, scaffold, trial), solved, reason, usage, extra, row in judged:
        score, stop, terminated, refused, hallucinated, note, answer = row[:7]
        steps, tool_calls, tool_errors, working_s, owner, outcome = row[7:]
        trials.append(
            SourceTrial(
                case_id=case_id,
                driver=driver,
                solved=solved,
                trial=trial,
                model=model,
                scaffold=scaffold,
                outcome=outcome or "",
                excluded=reason,
                excluded_owner=owner if reason is not None else None,
                hallucinated=hallucinated,
                terminated=terminated,
                refused=refused,
                score=score,
                stop=stop,
                steps=steps,
                tool_calls=tool_calls,
                tool_errors=tool_errors,
                usage=usage,
                working_s=working_s,
                note=note,
                answer=answer,
                extra=extra,
            )
        )
    return trials


def _numbers(rows: _Rows, keys: Sequence[tuple[Any, ...]]) -> Sequence[int]:
    """The number of each row's trial; `keys` are case and arm."""
    if rows.mapping.numbered:
        seen: dict[tuple[Any, ...], int] = {}
        numbers = []
        for key in keys:
            seen[key] = seen.get(key, 0) + 1
            numbers.append(seen[key])
        return numbers
    found: Sequence[Any] = rows.column("trial", None if "trial" in rows.cells else 1)
    if None in found:
        raise rows.wrong(found.index(None), "trial is empty (--map trial=# numbers them in their order)")
    arms = [key[1:] for key in keys]
    from_0 = {arm for arm, number in zip(arms, found, strict=True) if number == 0}
    if from_0:
        whose = "" if len(from_0) == len(set(arms)) else f" for {len(from_0)} of {len(set(arms))} arms"
        rows.notes.append(f"Trials count from 0 in the source{whose}; here from 1.")
        found = [number + (arm in from_0) for arm, number in zip(arms, found, strict=True)]
    first: dict[tuple[Any, ...], int] = {}
    for row, key in enumerate(zip(keys, found, strict=True)):
        if first.setdefault(key, row) != row:
            (case_id, *arm), number = key
            whose = " ".join(part for part in arm if part and part != "once")
            there = rows.file.where(first[key]).rpartition(":")[2].strip()
            there = there if there.startswith("row") else f"line {there}"
            what = f"trial {number} of {case_id!r} by {whose} again, as on {there}"
            hint = "if these are further trials, --map trial=# numbers them in their order"
            raise rows.wrong(row, f"{what}; {hint}")
    rows.notes.extend(_gaps(first))
    return found


def _gaps(numbered: Iterable[tuple[tuple[Any, ...], int]]) -> Iterator[str]:
    """Whether trials of a case are not there, by their numbers; nobody knows what became of them."""
    numbers: dict[tuple[Any, ...], list[int]] = {}
    for key, number in numbered:
        numbers.setdefault(key, []).append(number)
    gone = {key: max(each) - len(each) for key, each in numbers.items() if max(each) > len(each)}
    if gone:
        (case_id, *_), there = next((key, sorted(numbers[key])) for key in gone)
        said = ", ".join(map(str, there[:8])) + (", …" if len(there) > 8 else "")
        yield (
            f"Trial numbers have gaps: {sum(gone.values())} between 1 and the largest are not in the file, of "
            f"{len(gone)} of {len(numbers)} cases by their arms (first {case_id!r}, which has {said})."
        )


def _verdicts(rows: _Rows, reasons: Sequence[str | None]) -> list[bool | None]:
    """Solved or not; None exactly for what the source excludes."""
    solved: Sequence[bool | None]
    if "solved" in rows.cells:
        solved = rows.cells["solved"]
    elif "score" in rows.cells:
        _check_scores(rows)
        solved = [solved_by(score) for score in rows.cells["score"]]
        rows.notes.append("Solved is a score within 1e-6 of 1.")
    else:
        solved = [None] * rows.file.rows
    outcomes = rows.column("outcome")
    found: list[bool | None] = []
    failures = 0
    for row, (verdict, outcome, reason) in enumerate(zip(solved, outcomes, reasons, strict=True)):
        if reason is not None:
            found.append(None)
            continue
        if outcome is not None:
            said = outcome == OUTCOMES[0]
            if verdict is not None and verdict != said:
                raise rows.wrong(row, f"outcome is {outcome}, but solved is {str(verdict).lower()}")
            verdict = said
        if verdict is None:
            if not rows.mapping.null_is_failure:
                raise rows.wrong(
                    row,
                    "whether it is solved is empty; map excluded=COLUMN where the source excludes such trials, "
                    f"or count them as failures with --map {NULL_SOLVED}=failure",
                )
            failures += 1
            verdict = False
        found.append(verdict)
    if failures:
        rows.notes.append(
            f"Without a verdict, and not solved as asked for: {failures} of {rows.file.rows} trials."
        )
    return found


def _check_scores(rows: _Rows) -> None:
    """A score is a verdict only on a scale that ends at 1: on one to 100, nothing would be solved."""
    for row, score in enumerate(rows.cells["score"]):
        if score is not None and score > 1 + 1e-6 and "outcome" not in rows.cells:
            what = f"score is {score:g}, and solved would be a score of 1"
            raise rows.wrong(
                row, f"{what}; say which are solved with --map solved=COLUMN, or give scores from 0 to 1"
            )


def _usages(rows: _Rows) -> tuple[list[Usage], list[dict[str, Any]]]:
    """What each trial used, and what is kept of it beside the columns."""
    total = "tokens_input_total" in rows.cells
    inputs = rows.column("tokens_input_total" if total else "tokens_fresh_input")
    reads, writes = rows.column("tokens_cache_read"), rows.column("tokens_cache_write")
    costs = rows.column("cost_usd")
    usages = []
    extras: list[dict[str, Any]] = [{} for _ in range(rows.file.rows)]
    split_unknown = 0
    columns = (rows.column(name) for name in ("tokens_output", "model_calls", "cost_micros"))
    cells = zip(inputs, reads, writes, costs, *columns, _walls(rows), strict=True)
    for row, (tokens, read, write, cost, output, model_calls, whole, wall_s) in enumerate(cells):
        try:
            fresh, read, write = disjoint_input(tokens, read, write, inclusive=total)
        except ValueError as error:
            raise rows.wrong(row, str(error)) from None
        if total and tokens is not None:
            extras[row]["tokens_input_total"] = tokens
            split_unknown += fresh is None
        if cost is not None:
            whole, exact = cost
            if exact is not None:
                extras[row]["cost_usd"] = exact
        usages.append(Usage(fresh, read, write, output, model_calls, whole, wall_s))
    if split_unknown:
        rows.notes.append(
            "Input tokens are told as a total, but not how many of them were read from and written to a cache; the "
            "buckets stay unknown, the total is in extra (--map tokens_cache_read==0 --map tokens_cache_write==0 "
            f"where there was no cache): {split_unknown} of {rows.file.rows} trials."
        )
    for name in ("started_at", "ended_at"):
        for row, when in enumerate(rows.cells.get(name, ())):
            if when is not None:
                extras[row][name] = when.isoformat()
    for ours, values in rows.cells.items():
        if ours.startswith(EXTRA):
            name = ours.removeprefix(EXTRA)
            for row, value in enumerate(values):
                if value is not None:
                    extras[row][name] = value
    return usages, extras


def _walls(rows: _Rows) -> Sequence[float | None]:
    """Seconds of each trial: those of the source, else from its instants."""
    if "wall_s" in rows.cells:
        return rows.cells["wall_s"]
    seconds: list[float | None] = []
    instants = zip(rows.column("started_at"), rows.column("ended_at"), strict=True)
    for row, (start, end) in enumerate(instants):
        try:
            seconds.append(between(start, end))
        except ValueError as error:
            raise rows.wrong(row, f"ended_at: {end.isoformat()!r} {error}") from None
    return seconds


def _cases(file: TableFile, cells: Mapping[str, Sequence[Any]]) -> dict[str, SourceCase]:
    """What the rows say of their cases, on which all rows of a case have to agree."""
    requests, groups = (_said(file, cells, name) for name in ("request", "group"))
    return {
        case_id: SourceCase(requests.get(case_id, ""), group=groups.get(case_id, ""))
        for case_id in dict.fromkeys(cells["case_id"])
    }


def _said(file: TableFile, cells: Mapping[str, Sequence[Any]], name: str) -> dict[str, str]:
    known: dict[str, str] = {}
    for row, (case_id, value) in enumerate(zip(cells["case_id"], cells.get(name, ()), strict=False)):
        if value is not None and known.setdefault(case_id, value) != value:
            shown = f"{value!r}, before {known[case_id]!r}" if name == "group" else "another than before"
            raise LabError(
                f"{file.where(row)}: the {name} of {case_id!r} is {shown} (keep it with --map extra.{name}=COLUMN)"
            )
    return known


__all__ = ["COLUMNS", "load_csv", "load_jsonl", "load_parquet", "load_table"]
