"""One row an arm over tables of any size: dictionary codes, small counters, no row of text."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from agentbench_lab.analysis.metrics.arms import ARM
from agentbench_lab.analysis.metrics.repeats import pass_hat_means, per_case
from agentbench_lab.analysis.metrics.spending import FLOOR_COLUMNS, only_a_floor
from agentbench_lab.errors import LabError, shown, unreadable

if TYPE_CHECKING:
    import pyarrow as pa

Ints = npt.NDArray[Any]
Batches = Callable[[], Iterator["pa.RecordBatch"]]

_CASE = ("suite", "case_id")
_MAY_LACK = ("cost_micros", *FLOOR_COLUMNS)
_NEEDED = (*ARM, *_CASE, "solved", "excluded", *_MAY_LACK)
_CHUNK = 1 << 16  # rows worked on at a time: they stay in the processor's cache
_MOST_CELLS = 1 << 26  # arms x cases that are counted in a dense table
_MOST_CODES = 1 << 24  # combinations of codes that are looked up in a table
_FAILED, _SOLVED, _UNJUDGED = range(3)


def summary(trials: pa.Table | pl.DataFrame | str | Path) -> pl.DataFrame:
    """Each arm in one row, of a table or of an Arrow IPC or Parquet file of trials: made for millions of them.

    Columns: driver, model, scaffold; `n` judged trials of those that ended (`of`), over `cases`; `solved`, how many of
    the n; `complete`, whether every trial was judged; `pass_hat_1`, `pass_hat_2`, ... up to the most trials of a case,
    by the rules of `reliability` (null where a case was not asked so often, or none has so many judged trials);
    `cost_per_solved` in dollars, the spend of all trials by the solved ones: null where nothing was solved, where no
    cost is known, and where it is not known of a trial, which nobody excluded, whether it was solved; only a
    `lower_bound` where the cost of some trials is unknown, or itself a lower bound (`spending.only_a_floor`).

    It has no intervals: `reliability` and `cost` have them. Of a file only the columns that count are read, an
    uncompressed Arrow IPC file is not copied, and dictionary-encoded columns are never decoded. Raises LabError for a
    file that is neither, and for columns that are not there.
    """
    batches = _of_file(Path(trials)) if isinstance(trials, str | Path) else _of_table(trials)
    arms = _dense(batches)
    return _frame(_general(batches) if arms is None else arms)


# ---- reading ---------------------------------------------------------------------------------------------------


def _of_table(trials: pa.Table | pl.DataFrame) -> Batches:
    _check(trials.columns if isinstance(trials, pl.DataFrame) else trials.column_names, "the table")
    if isinstance(trials, pl.DataFrame):
        trials = trials.select(name for name in _NEEDED if name in trials.columns).to_arrow()
    table: pa.Table = trials.select([name for name in _NEEDED if name in trials.column_names])
    return lambda: iter(table.to_batches())


def _of_file(path: Path) -> Batches:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with open(path, "rb") as file:
            magic = file.read(6)
        if magic == b"ARROW1":
            names = pa.ipc.open_file(_mapped(path)).schema.names
        elif magic[:4] == b"PAR1":
            names = pq.read_schema(_mapped(path)).names
        else:
            raise LabError(f"{shown(path)}: neither an Arrow IPC file nor a Parquet file")
    except LabError:
        raise
    except pa.ArrowInvalid:
        raise LabError(f"{shown(path)}: damaged, or not written to its end") from None
    except Exception as error:
        raise unreadable(shown(path), error) from None
    _check(names, shown(path))
    wanted = [name for name in _NEEDED if name in names]
    return lambda: _readable(path, _of_ipc(path) if magic == b"ARROW1" else _of_parquet(path, wanted))


def _check(names: Sequence[str], where: str) -> None:
    missing = [name for name in _NEEDED if name not in names and name not in _MAY_LACK]
    if missing:
        raise LabError(f"{where}: no column {', '.join(missing)}: not a table of trials")


def _readable(path: Path, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches; damage further on in the file is found when its batch is read, and told like that at its end."""
    try:
        yield from batches
    except Exception as error:
        raise unreadable(shown(path), error) from None


def _mapped(path: Path) -> Any:
    """The file's bytes. Arrow would take a path for an address (s3:...), or for UTF-8."""
    import pyarrow as pa

    return pa.memory_map(os.fsencode(path))  # type: ignore[arg-type]  # bytes will do


def _of_ipc(path: Path) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    with _mapped(path) as file:
        # choosing columns here would make Arrow copy them; what is mapped and never looked at is never read
        reader = pa.ipc.open_file(file)
        for number in range(reader.num_record_batches):
            yield reader.get_batch(number)


def _of_parquet(path: Path, wanted: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The batches in turn; the next one is decoded while one is counted."""
    import pyarrow.parquet as pq

    texts = [name for name in wanted if name not in ("solved", *_MAY_LACK)]
    with (
        _mapped(path) as file_bytes,
        pq.ParquetFile(file_bytes, read_dictionary=texts) as file,
        ThreadPoolExecutor(1) as ahead,
    ):
        batches = file.iter_batches(batch_size=1 << 19, columns=list(wanted))
        coming = ahead.submit(next, batches, None)
        while (batch := coming.result()) is not None:
            coming = ahead.submit(next, batches, None)
            yield batch


# ---- counting --------------------------------------------------------------------------------------------------


@dataclass
class _Arm:
    """An arm's counts: by case that was asked, what all its trials cost (micros), of how many that is unknown,
    and of how many only a lower bound is known.

    `untold` trials were not excluded, and yet nobody knows whether they were solved.
    """

    name: tuple[Any, ...]
    solved: Ints
    judged: Ints
    asked: Ints
    spent: int
    unknown: int
    floors: int
    untold: int


class _Coder:
    """Numbers for combinations of values of some columns, in the order in which they first appear."""

    def __init__(self) -> None:
        self.found: dict[tuple[Any, ...], int] = {}
        self._values: list[list[Any]] = []
        self._table: Ints = np.empty(0, dtype=np.int64)
        self._kind: type[np.int32] | type[np.int64] = np.int32

    def enter(self, values: list[list[Any]]) -> None:
        """The values that the codes of the coming rows stand for, a list a column."""
        if values == self._values:
            return
        self._values = values
        size = math.prod(map(len, values))
        self._table = np.full(size if size <= _MOST_CODES else 0, -1, dtype=np.int64)
        self._kind = np.int32 if size <= _MOST_CODES else np.int64

    def number(self, codes: list[Ints | int]) -> Ints | int:
        """The number of each row, from its codes; one number where all rows have the same."""
        fixed, scale = 0, 1
        flat: Ints | None = None
        for code, values in zip(reversed(codes), reversed(self._values), strict=True):
            if isinstance(code, int):
                fixed += scale * code
            else:
                part = np.multiply(code, scale, dtype=self._kind)
                flat = part if flat is None else flat + part
            scale *= len(values)
        if flat is None:
            return int(self._numbers(np.array([fixed]))[0])
        if fixed:
            flat += self._kind(fixed)
        if not self._table.size:
            kinds, first, place = np.unique(flat, return_index=True, return_inverse=True)
            return self._numbers(kinds, first)[place]
        numbers = self._table.take(flat)
        if numbers.min() < 0:
            kinds, first = np.unique(flat[numbers < 0], return_index=True)
            self._table[kinds] = self._numbers(kinds, first)
            numbers = self._table.take(flat)
        return numbers

    def _numbers(self, kinds: Ints, first: Ints | None = None) -> Ints:
        """The numbers of combinations; new ones are given in the order of their first rows."""
        order = np.argsort(first) if first is not None else np.arange(kinds.size)
        places = np.unravel_index(kinds[order], [len(values) for values in self._values])
        named = [[values[at] for at in place] for values, place in zip(self._values, places, strict=True)]
        numbers = np.empty(kinds.size, dtype=np.int64)
        numbers[order] = [self.found.setdefault(name, len(self.found)) for name in zip(*named, strict=True)]
        return numbers


def _dense(batches: Batches) -> list[_Arm] | None:
    """The counts of every arm, by a counter for each arm, case and state of a trial.

    None where that cannot be: a case has more than 255 trials of one state, or there are too many arms and cases.
    """
    arms, cases = _Coder(), _Coder()
    # a narrow counter stays in the cache, and a plain index goes the short way through `at`
    cells: Ints = np.zeros((3, 1, 1), dtype=np.uint8)
    one = np.uint8(1)
    sums = np.zeros(
        (4, 1), dtype=np.int64
    )  # by arm: micros spent, costs unknown, lower bounds, trials untold
    rows = 0
    for batch in batches():
        if not batch.num_rows:
            continue
        arm_codes, arm_values = zip(*(_codes(batch.column(name)) for name in ARM), strict=True)
        case_codes, case_values = zip(*(_codes(batch.column(name)) for name in _CASE), strict=True)
        arms.enter(list(arm_values))
        cases.enter(list(case_values))
        state_of, cost_of = _states(batch), _costs(batch)
        for start in range(0, batch.num_rows, _CHUNK):
            here = slice(start, min(start + _CHUNK, batch.num_rows))
            arm = arms.number([code if isinstance(code, int) else code[here] for code in arm_codes])
            case = cases.number([code if isinstance(code, int) else code[here] for code in case_codes])
            if len(arms.found) > cells.shape[1] or len(cases.found) > cells.shape[2]:
                if 4 * len(arms.found) * len(cases.found) > _MOST_CELLS:
                    return None
                cells = _grown(cells, len(arms.found), len(cases.found))
                sums = _grown(sums, cells.shape[1])
            state, untold = state_of(here)
            key = np.multiply(state, cells.shape[1], dtype=np.int64)
            key += arm
            key *= cells.shape[2]
            key += case
            np.add.at(cells.reshape(-1), key, one)
            for total, each in zip(sums, (*cost_of(here), untold), strict=True):
                if each is not None and isinstance(arm, int):
                    total[arm] += each.sum()
                elif each is not None:
                    np.add.at(total, arm, each)
        rows += batch.num_rows
    if int(cells.sum(dtype=np.int64)) != rows:
        return None  # a counter ran over
    found = []
    for name, number in arms.found.items():
        by_state = cells[:, number, : len(cases.found)].astype(np.int64)
        by_state = by_state[:, by_state.any(axis=0)]
        judged = by_state[_FAILED] + by_state[_SOLVED]
        asked = judged + by_state[_UNJUDGED]
        found.append(_Arm(name, by_state[_SOLVED], judged, asked, *sums[:, number].tolist()))
    return found


def _grown(array: Ints, *sizes: int) -> Ints:
    """The array with at least these sizes along its last axes, twice what is needed so that it seldom grows."""
    old = array.shape[-len(sizes) :]
    new = [
        have if have >= need else 2 * need if have > 1 else need
        for have, need in zip(old, sizes, strict=True)
    ]
    return np.pad(array, [(0, 0), *((0, to - have) for to, have in zip(new, old, strict=True))])


def _general(batches: Batches) -> list[_Arm]:
    """The same by grouping rows: slower, and good for any counts."""
    import pyarrow as pa

    table = pa.Table.from_batches(list(batches()))
    table = table.select([name for name in _NEEDED if name in table.column_names])
    rows = pl.DataFrame(table.unify_dictionaries())
    rows = rows.with_columns(pl.col(*ARM, *_CASE).cast(pl.String), evidence=pl.lit(""), group=pl.lit(""))
    if "cost_micros" not in rows.columns:
        rows = rows.with_columns(cost_micros=pl.lit(None, pl.Int64))
    sums = rows.group_by(*ARM).agg(
        pl.col("cost_micros").sum(),
        pl.col("cost_micros").is_null().sum().alias("unknown"),
        (pl.col("cost_micros").is_not_null() & only_a_floor(rows.columns)).sum().alias("floors"),
        (pl.col("excluded").is_null() & pl.col("solved").is_null()).sum().alias("untold"),
    )
    by_arm = {tuple(row[:3]): row[3:] for row in sums.iter_rows()}
    found = []
    for arm, part in per_case(rows).partition_by(*ARM, maintain_order=True, as_dict=True).items():
        solved, judged, asked = (part[name].to_numpy() for name in ("solved", "judged", "asked"))
        found.append(_Arm(arm, solved, judged, asked, *by_arm[arm]))
    return found


def _codes(column: Any) -> tuple[Ints | int, list[Any]]:
    """The code of each row, or the one code of all rows, and what the codes stand for; the last stands for null."""
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type):
        column = column.cast(pa.large_string()).dictionary_encode()
    values, indices = [*column.dictionary.to_pylist(), None], column.indices
    if indices.null_count == len(indices):
        return len(values) - 1, values
    if indices.null_count == 0 and len(values) == 2:
        return 0, values
    width = np.dtype(indices.type.to_pandas_dtype())
    codes: Ints = np.frombuffer(indices.buffers()[1], width, len(indices), indices.offset * width.itemsize)
    if indices.null_count:
        codes = np.where(_bits(indices, 0)(slice(0, len(indices))), codes, len(values) - 1)
    return codes, values


def _bits(column: Any, buffer: int) -> Callable[[slice], npt.NDArray[np.bool_]]:
    """The bits of some rows, of a column's validity (0) or values (1)."""
    packed = np.frombuffer(column.buffers()[buffer], dtype=np.uint8)

    def of(rows: slice) -> npt.NDArray[np.bool_]:
        start, stop = column.offset + rows.start, column.offset + rows.stop
        bits = np.unpackbits(packed[start // 8 : (stop + 7) // 8], bitorder="little")
        return bits[start % 8 : start % 8 + stop - start].view(np.bool_)

    return of


def _states(batch: pa.RecordBatch) -> Callable[[slice], tuple[Ints, Ints | None]]:
    """Whether each of some rows failed, was solved, or was not judged; and which are 1, not excluded and yet untold."""
    import pyarrow as pa

    solved: Any = batch.column("solved")
    excluded: Any = batch.column("excluded")
    if not pa.types.is_boolean(solved.type):
        solved = solved.cast(pa.bool_())
    if pa.types.is_dictionary(excluded.type):
        excluded = excluded.dictionary_decode() if excluded.dictionary.null_count else excluded.indices
    won = _bits(solved, 1)
    told = _bits(solved, 0) if solved.null_count else None
    left_out = _bits(excluded, 0) if 0 < excluded.null_count < len(excluded) else None
    all_out = excluded.null_count == 0

    def of(rows: slice) -> tuple[Ints, Ints | None]:
        state = won(rows).view(np.uint8)
        if all_out:
            return np.full_like(state, _UNJUDGED), None
        out = None if left_out is None else left_out(rows)
        untold = None if told is None else ~told(rows)
        if untold is not None and out is not None:
            untold &= ~out
        for unjudged in (out, untold):
            if unjudged is not None:
                state = np.where(unjudged, _UNJUDGED, state)
        return state, None if untold is None else untold.astype(np.int64)

    return of


def _costs(batch: pa.RecordBatch) -> Callable[[slice], tuple[Ints, Ints | None, Ints | None]]:
    """What each of some rows cost, 0 where that is unknown; and as 1 where it is unknown, and where a lower bound."""
    import pyarrow as pa

    names = batch.schema.names
    column: Any = pa.nulls(batch.num_rows)
    if "cost_micros" in names:
        column = batch.column("cost_micros")
    if column.type != pa.int64():
        column = column.cast(pa.int64())  # to its own type a cast would copy
    micros = np.frombuffer(column.buffers()[1], np.int64, len(column), 8 * column.offset)
    known = _bits(column, 0) if column.null_count else None
    parts = _floors(batch)

    def of(rows: slice) -> tuple[Ints, Ints | None, Ints | None]:
        part = None if parts is None else parts[rows]
        if known is None:
            return micros[rows], None, None if part is None else part.astype(np.int64)
        valid = known(rows)
        floors = None if part is None else (part & valid).astype(np.int64)
        return np.where(valid, micros[rows], 0), (~valid).astype(np.int64), floors

    return of


def _floors(batch: pa.RecordBatch) -> npt.NDArray[np.bool_] | None:
    """Of which rows the cost is a lower bound; None where of none."""
    import pyarrow as pa

    names = [name for name in FLOOR_COLUMNS if name in batch.schema.names]
    if not names:
        return None
    marks = pl.DataFrame(pa.Table.from_batches([batch.select(names)]))
    found: npt.NDArray[np.bool_] = marks.with_columns(only_a_floor(names).alias("floor"))["floor"].to_numpy()
    return found if found.any() else None


# ---- telling ---------------------------------------------------------------------------------------------------


def _frame(arms: list[_Arm]) -> pl.DataFrame:
    most = max((int(arm.asked.max()) for arm in arms), default=0)
    rows = []
    for arm in arms:
        n, of, solved = (int(each.sum()) for each in (arm.judged, arm.asked, arm.solved))
        priced = solved > 0 and arm.unknown < of and not arm.untold
        means = pass_hat_means(arm.solved, arm.judged)
        row: dict[str, Any] = {**dict(zip(ARM, arm.name, strict=True)), "n": n, "of": of}
        row |= {"cases": arm.asked.size, "solved": solved, "complete": n == of}
        row |= {f"pass_hat_{k}": means.get(k) for k in range(1, int(arm.asked.min()) + 1)}
        row |= {
            "cost_per_solved": arm.spent / 1e6 / solved if priced else None,
            "lower_bound": priced and arm.unknown + arm.floors > 0,
        }
        rows.append(row)
    schema: dict[str, Any] = {
        **dict.fromkeys(ARM, pl.String),
        **dict.fromkeys(("n", "of", "cases", "solved"), pl.Int64),
        "complete": pl.Boolean,
        **{f"pass_hat_{k}": pl.Float64 for k in range(1, most + 1)},
        "cost_per_solved": pl.Float64,
        "lower_bound": pl.Boolean,
    }
    return pl.DataFrame(rows, schema=schema)
