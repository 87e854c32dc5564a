"""A run: its tables, its product rows and its card; saved to a folder and read back."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Struct

from agentbench_lab.errors import LabError, did_you_mean
from agentbench_lab.results.product import ProductRow, encode_rows, read_product
from agentbench_lab.results.schema import SCHEMAS, check

if TYPE_CHECKING:
    import pandas as pd

FORMAT = "agentbench-lab/run/v1"


class SuiteCard(Struct, frozen=True):
    """Which cases were asked: the suite's name and digest, and what its own card says of version and date."""

    name: str
    digest: str
    version: str | None
    date: str | None
    cases: int


class WorldCard(Struct, frozen=True):
    """Which world they acted on."""

    name: str
    kind: str
    digest: str


class ArmCard(Struct, frozen=True):
    """One configuration, and what its driver says of itself."""

    driver: str
    model: str | None
    scaffold: str
    evidence: str
    version: str
    banner: str


class Envelope(Struct, frozen=True):
    """How far one arm came up the ladder: the last rung of the unbroken chain, and what shut the gate."""

    driver: str
    model: str | None
    scaffold: str
    reached: str | None
    gated_at: str | None
    receipts: tuple[str, ...]


class Counts(Struct, frozen=True):
    """Every trial is in exactly one bucket: judged + excluded + missing = asked."""

    asked: int
    judged: int
    excluded: int
    missing: int

    def __post_init__(self) -> None:
        if (
            self.judged + self.excluded + self.missing != self.asked
            or min(self.judged, self.excluded, self.missing) < 0
        ):
            raise ValueError(
                f"judged {self.judged} + excluded {self.excluded} + missing {self.missing} is not asked {self.asked}"
            )


class RunCard(Struct, frozen=True):
    """Where a run's numbers come from. Two runs are comparable only within one commit.

    `grader` is the digest of the grader's source; `source` names the run that this one was judged again from.
    """

    format: str
    run: str
    stamp: str
    commit: str
    taxonomy: str
    strictness: str
    grader: str
    suites: tuple[SuiteCard, ...]
    worlds: tuple[WorldCard, ...]
    arms: tuple[ArmCard, ...]
    options: dict[str, Any]
    seed: int
    evidence: tuple[str, ...]
    counts: Counts
    envelope: tuple[Envelope, ...]
    versions: dict[str, str]
    started_at: str
    finished_at: str
    source: str | None = None

    @property
    def complete(self) -> bool:
        return self.counts.missing == 0


class Run(Struct, frozen=True):
    """Five Arrow tables, the product rows, and the card. `path` is the run's folder, or None for one in memory."""

    card: RunCard
    cases: pa.Table
    trials: pa.Table
    attempts: pa.Table
    calls: pa.Table
    transcripts: pa.Table
    product: tuple[ProductRow, ...]
    path: Path | None = None

    def to_pandas(self, grain: str = "trials") -> pd.DataFrame:
        """One table as a pandas frame, with Arrow's own types (integers stay integers beside nulls)."""
        import pandas as pd

        if grain not in SCHEMAS:
            raise LabError(f"no table {grain!r}{did_you_mean(grain, SCHEMAS)}")
        return getattr(self, grain).to_pandas(types_mapper=pd.ArrowDtype)  # type: ignore[no-any-return]


def check_run(run: Run) -> None:
    """Raise LabError when tables, product rows and card do not agree."""
    try:
        for grain in SCHEMAS:
            check(grain, getattr(run, grain))
    except ValueError as error:
        raise LabError(f"{run.card.run}: {error}") from None
    counts = run.card.counts
    excluded = run.trials.num_rows - run.trials.column("excluded").null_count
    judged = run.trials.num_rows - excluded
    if (judged, excluded) != (counts.judged, counts.excluded):
        raise LabError(
            f"{run.card.run}: the card counts {counts.judged} judged and {counts.excluded} excluded trials, "
            f"the table has {judged} and {excluded}"
        )
    if len(run.product) != run.trials.num_rows:
        raise LabError(
            f"{run.card.run}: {run.trials.num_rows} trials but {len(run.product)} rows in product.jsonl"
        )


def write_file(path: Path, data: bytes) -> None:
    """Write a whole file or none of it: to a temporary name, to the disk, then in place."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def save(run: Run, folder: Path) -> None:
    """Write the run's files into its folder. The card comes last: a folder with a card is whole."""
    check_run(run)
    for grain in SCHEMAS:
        sink = pa.BufferOutputStream()
        pq.write_table(getattr(run, grain), sink, compression="zstd")
        write_file(folder / f"{grain}.parquet", sink.getvalue().to_pybytes())
    write_file(folder / "product.jsonl", encode_rows(run.product))
    write_file(folder / "card.json", msgspec.json.format(msgspec.json.encode(run.card), indent=2) + b"\n")


def load_run(path: str | Path) -> Run:
    """Read a run back from its folder. Raises LabError for a folder that holds none, or one that is not whole."""
    folder = Path(path)
    card_file = folder / "card.json"
    if not card_file.is_file():
        what = "an unfinished run" if (folder / "journal.jsonl").exists() else "no run"
        near = did_you_mean(folder.name, _runs(folder.parent)) if not folder.exists() else ""
        raise LabError(f"{path}: {what} (no card.json){near}")
    try:
        card = msgspec.json.decode(card_file.read_bytes(), type=RunCard)
    except OSError as error:
        raise LabError(f"{card_file}: {error.strerror}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError) as error:
        raise LabError(f"{card_file}: not a card of {FORMAT}: {error}") from None
    if card.format != FORMAT:
        raise LabError(f"{card_file}: format {card.format!r} is not {FORMAT!r}")
    tables = {}
    for grain in SCHEMAS:
        try:
            tables[grain] = pq.read_table(folder / f"{grain}.parquet")
        except (OSError, pa.ArrowException) as error:
            raise LabError(f"{folder / f'{grain}.parquet'}: {str(error).splitlines()[0]}") from None
    try:
        product = tuple(read_product(folder / "product.jsonl"))
    except OSError as error:
        raise LabError(f"{folder / 'product.jsonl'}: {error.strerror}") from None
    run = Run(card=card, product=product, path=folder, **tables)
    check_run(run)
    return run


def _runs(folder: Path) -> Sequence[str]:
    return [card.parent.name for card in folder.glob("*/card.json")] if folder.is_dir() else []
