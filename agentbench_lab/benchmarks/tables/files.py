"""Tables of other projects as columns of plain values, with the place of each row for an error: CSV, JSON lines, Parquet.

Values are as the file has them: text in CSV, JSON values in JSON lines, Python's own in Parquet. Nothing is guessed.
"""

from __future__ import annotations

import csv
import io
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct

from agentbench_lab.benchmarks.reading import decode_json, read_bytes
from agentbench_lab.errors import LabError, unreadable


class TableFile(Struct, frozen=True):
    """A table that was read. `names` are its columns in order, as often as they stand there.

    `column` gives the values of one of them, and `where` the place of a row (counted from 0): `file:line`, the physical
    line on which the record begins, or `file: row n` where there are no lines.
    """

    names: tuple[str, ...]
    rows: int
    column: Callable[[str], Sequence[Any]]
    where: Callable[[int], str]

    def twice(self) -> frozenset[str]:
        """The names that several columns share."""
        return frozenset(name for name, count in Counter(self.names).items() if count > 1)


def read_csv(path: Path) -> TableFile:
    """A CSV file in UTF-8: commas, a heading, double quotes around what holds commas, quotes or line ends.

    Lines end as they like (LF, CRLF, CR); a byte order mark and empty lines are skipped, and blanks around a name in
    the heading. Raises LabError with the line for a record that is longer or shorter than the heading, a quote that is
    never closed, bytes that are no UTF-8, and a heading that semicolons or tabs separate.
    """
    text = _decoded(read_bytes(path), path)
    with _any_length():
        names, rows = _records(text, path)
    if len(names) == 1 and not rows:
        names = names if names[0] else ()
    width = len(names)
    if width == 1 and (hint := _separated(names)):
        raise LabError(f"{_line(text, path, -1)}: the heading is one field{hint}")
    if not {width}.issuperset(map(len, rows)):
        at = next(at for at, row in enumerate(rows) if len(row) != width)
        odd = len(rows[at])
        fields = "1 field" if odd == 1 else f"{odd} fields"
        raise LabError(f"{_line(text, path, at)}: {fields} under a heading of {width}")
    columns = list(zip(*rows, strict=True)) if rows else [()] * width
    place = {name: at for at, name in enumerate(names)}
    return TableFile(names, len(rows), lambda name: columns[place[name]], lambda at: _line(text, path, at))


def _decoded(data: bytes, path: Path) -> str:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise LabError(f"{path}: is UTF-16; save it as UTF-8")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise LabError(f"{path}:{line}: is no UTF-8 (byte {data[error.start]:#04x})") from None


def _records(text: str, path: Path) -> tuple[tuple[str, ...], list[list[str]]]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        heading = next((row for row in reader if row), None)
        rows = [row for row in reader if row]
    except csv.Error as error:
        raise LabError(f"{path}:{_broken(text)}: {error}") from None
    if heading is None:
        raise LabError(f"{path}: is empty: no heading")
    return tuple(name.strip() for name in heading), rows


def _broken(text: str) -> int:
    """The line on which the record begins that is no CSV."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    begins = 1
    try:
        for _ in reader:
            begins = reader.line_num + 1
    except csv.Error:
        pass
    return begins


def _line(text: str, path: Path, at: int) -> str:
    """Where the record begins: looked up only for an error, so that reading stays quick."""
    with _any_length():
        reader = csv.reader(io.StringIO(text, newline=""))
        begins, seen = 1, -1  # the heading is a record too
        for row in reader:
            if row:
                if seen == at:
                    break
                seen += 1
            begins = reader.line_num + 1
    return f"{path}:{begins}"


def _separated(names: Sequence[str]) -> str:
    for sign, said in ((";", "semicolons"), ("\t", "tabs")):
        if names and sign in names[0]:
            return f"; it looks separated by {said}: save it with commas"
    return ""


@contextmanager
def _any_length() -> Iterator[None]:
    """Python's own reader stops at fields of 128 KiB, which a transcript easily is."""
    before = csv.field_size_limit(sys.maxsize)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def read_jsonl(path: Path) -> TableFile:
    """JSON lines: one object a line, separated by LF alone (U+2028 is text). A key that a line lacks is null there.

    Raises LabError with the line for what is no JSON object.
    """
    lines = read_bytes(path).removeprefix(b"\xef\xbb\xbf").split(b"\n")
    rows: list[dict[str, Any]] = []
    numbers: list[int] = []
    for number, line in enumerate(lines, start=1):
        if line.strip():
            rows.append(decode_json(line, dict[str, Any], f"{path}:{number}", one_line=True))
            numbers.append(number)
    if not rows:
        raise LabError(f"{path}: is empty: no rows")
    names = dict.fromkeys(name for row in rows for name in row)
    return TableFile(
        tuple(names),
        len(rows),
        lambda name: [row.get(name) for row in rows],
        lambda at: f"{path}:{numbers[at]}",
    )


def read_parquet(path: Path) -> TableFile:
    """A Parquet file; only the columns that are asked for are read. Raises LabError for what is none."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        # a path would be taken for an address (s3:...), or for UTF-8
        mapped = pa.memory_map(os.fsencode(path))  # type: ignore[arg-type]  # bytes will do
        file = pq.ParquetFile(mapped)
        names = tuple(file.schema_arrow.names)
        rows = file.metadata.num_rows
    except Exception as error:
        raise unreadable(path, error) from None

    def column(name: str) -> Sequence[Any]:
        try:
            return file.read(columns=[name]).column(name).to_pylist()
        except Exception as error:
            raise unreadable(path, error, f"column {name!r}") from None

    return TableFile(
        names,
        rows,
        column,
        lambda at: f"{path}: row {at + 1}",
    )
