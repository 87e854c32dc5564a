"""A run: its tables, its product rows and its card; saved to a folder and read back."""

from __future__ import annotations

import os
import secrets
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Struct

from agentbench_lab.cases import project_root
from agentbench_lab.errors import LabError, did_you_mean, shown, unreadable
from agentbench_lab.outcomes import CLASSES, Outcome, Taxonomy, taxonomy
from agentbench_lab.results.product import ProductRow, encode_rows, read_product
from agentbench_lab.results.schema import SCHEMAS, check, completed, no_collection
from agentbench_lab.transcripts import Status

if TYPE_CHECKING:
    import pandas as pd

    from agentbench_lab.results.bench_v1 import BenchFile

FORMAT = "agentbench-lab/run/v1"
GO_ON = "the `agentbench-lab run` command that began it goes on with it, with this folder as --out"


class SuiteCard(Struct, frozen=True):
    """Which cases were asked: the suite's name and digest, what its own card says of version and date, how many of its
    cases were selected, of how many (None when the source does not say), and the groups that the whole suite has."""

    name: str
    digest: str
    version: str | None
    date: str | None
    cases: int
    of: int | None = None
    groups: tuple[str, ...] = ()


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
    """How far one arm came up the ladder: the last rung of the unbroken chain, what shut the gate, a receipt for each
    rung above it, and how many trials each group was asked (also those that are missing)."""

    driver: str
    model: str | None
    scaffold: str
    reached: str | None
    gated_at: str | None
    receipts: tuple[str, ...]
    asked: dict[str, int] = {}


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


class Published(Struct, frozen=True):
    """A total that the source publishes beside what its rows give: reported, never adopted.

    `rows` is None where the rows do not give it. `follows` is whether the two agree as closely as the source prints.
    `driver` and `model` name the arm ("" and None for the file as a whole); `unit` is share, usd, or the
    word for what is counted (trials, calls, tokens, score); `note` says what may explain a difference.
    """

    driver: str
    model: str | None
    metric: str
    unit: str
    published: float
    rows: float | None
    follows: bool
    note: str = ""

    def __str__(self) -> str:
        """`mini-swe-agent Claude 3.7 Sonnet: solved: published 52.8%, rows give 10.2% (broken details)`."""
        arm = " ".join(part for part in (self.driver, self.model) if part)
        gives = "do not give it" if self.rows is None else f"give {_quantity(self.rows, self.unit)}"
        verdict = " (follows)" if self.follows else ""
        note = f" ({self.note})" if self.note else ""
        published = _quantity(self.published, self.unit)
        return f"{f'{arm}: ' if arm else ''}{self.metric}: published {published}, rows {gives}{verdict}{note}"


def _quantity(value: float, unit: str) -> str:
    if unit == "share":
        return f"{100 * value:.4g}%"
    return f"${value:,.6g}" if unit == "usd" else f"{value:,.6g} {unit}"


class Imported(Struct, frozen=True, omit_defaults=True):
    """What the file of another harness says beside its trials: its format, its name, its own outcomes, its notes.

    `options` are its options, each as the JSON text that stands in the file. `digest` is the SHA-256 of what was read,
    `source` and `licence` where it comes from and under which terms, where known. `published` are its own totals.
    `statuses` are the kinds of failed calls that it tells apart, where it does not tell all of them (`Status`, without
    `ok`): of the others it has no calls because it does not name them, not because there were none.
    """

    format: str
    file: str
    outcomes: tuple[Outcome, ...] = ()
    options: dict[str, str] = {}
    notes: tuple[str, ...] = ()
    digest: str = ""
    source: str = ""
    licence: str = ""
    published: tuple[Published, ...] = ()
    statuses: tuple[Status, ...] = ()


class RunCard(Struct, frozen=True):
    """Where a run's numbers come from. Two runs are comparable only within one commit.

    `grader` is the digest of the grader's source; `source` names the run that this one was judged again from; `stopped`
    what ended it early: a cap that was reached, or another side that is not there;
    `imported` is there for a run that another harness made: nothing but rows is known of it.
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
    stopped: str | None = None
    imported: Imported | None = None

    @property
    def complete(self) -> bool:
        return self.counts.missing == 0

    @property
    def outcome_set(self) -> Taxonomy:
        """The outcomes by which the trials were judged: those of the imported file, else those that ship."""
        if self.imported is not None and self.imported.outcomes:
            return Taxonomy(self.taxonomy, self.imported.outcomes)
        return taxonomy(self.taxonomy)


class Run(Struct, frozen=True):
    """Five Arrow tables, the product rows, and the card. `path` is the run's folder, or None for one in memory.

    An imported run has no product rows, and calls and transcripts only where its files tell of them.
    """

    card: RunCard
    cases: pa.Table
    trials: pa.Table
    attempts: pa.Table
    calls: pa.Table
    transcripts: pa.Table
    product: tuple[ProductRow, ...]
    path: Path | None = None

    def __repr__(self) -> str:
        counts = self.card.counts
        return f"Run({self.card.run!r}, {counts.judged} of {counts.asked} trials judged, path={str(self.path)!r})"

    def to_pandas(self, grain: str = "trials") -> pd.DataFrame:
        """One table as a pandas frame, with Arrow's own types (integers stay integers beside nulls)."""
        import pandas as pd

        if grain not in SCHEMAS:
            raise LabError(f"no table {grain!r}{did_you_mean(grain, SCHEMAS)}")
        return getattr(self, grain).to_pandas(types_mapper=pd.ArrowDtype)  # type: ignore[no-any-return]

    def to_bench(self) -> BenchFile:
        """The trials as a file of the format agent-runtime/bench/v1: see `results.bench_io.to_bench`."""
        from agentbench_lab.results.bench_io import to_bench

        return to_bench(self)

    @staticmethod
    def from_bench(file: BenchFile, *, name: str = "") -> Run:
        """A run of imported trials from such a file: see `results.bench_io.from_bench`."""
        from agentbench_lab.results.bench_io import from_bench

        return from_bench(file, name=name)


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
    classes = {str(each) for each in run.trials.column("outcome_class").drop_null().unique().to_pylist()}
    for odd in sorted(classes - {*CLASSES}):
        raise LabError(
            f"{run.card.run}: trials.parquet: outcome_class {odd[:80]!r} is none of {', '.join(CLASSES)}"
            f"{did_you_mean(odd[:80], CLASSES)}"
        )
    _check_verdicts(run)
    if len(run.product) != run.trials.num_rows and (run.product or run.card.imported is None):
        raise LabError(
            f"{run.card.run}: {run.trials.num_rows} trials but {len(run.product)} rows in product.jsonl"
        )
    _check_rows(run)


def _check_verdicts(run: Run) -> None:
    """What a trial's outcome is, its class, and whether it is solved are one verdict: none of them stands alone."""
    classes = {outcome.name: outcome.cls for outcome in run.card.outcome_set.outcomes}
    names = ["outcome", "outcome_class", "solved"]
    found = run.trials.group_by(names).aggregate([([], "count_all")])
    for row in sorted(found.to_pylist(), key=str):
        outcome, cls, solved = (row[name] for name in names)
        wrong = cls != classes.get(outcome, cls) or solved is not _solved(cls)
        # another harness may count as solved what it reports as unsafe
        if wrong and not (run.card.imported is not None and cls == classes.get(outcome) == "unsafe"):
            says = f"outcome {outcome!r}, outcome_class {cls!r} and solved {solved}"
            raise LabError(
                f"{run.card.run}: trials.parquet: {says} do not fit together, in {row['count_all']:,} of "
                f"{run.trials.num_rows:,} trials"
            )


def _solved(cls: str | None) -> bool | None:
    return None if cls is None else cls == "success"


_KEY = ["suite", "case_id", "driver", "model", "scaffold", "trial"]


def _check_rows(run: Run) -> None:
    """Every trial once in each of its tables, in one order, with as many attempts and calls as it says."""
    trials = run.trials.select(_KEY)
    keys = list(zip(*(column.to_pylist() for column in trials.columns), strict=True))
    if len(set(keys)) != len(keys):
        twice = next(key for key, count in Counter(keys).items() if count > 1)
        raise LabError(f"{run.card.run}: trial {twice[-1]} of {twice[1]!r} stands twice")
    if run.product:
        rows = ((r.suite, r.case_id, r.arm.driver, r.arm.model, r.arm.scaffold, r.trial) for r in run.product)
        for key, row in zip(keys, rows, strict=True):
            if key != row:
                raise LabError(
                    f"{run.card.run}: product.jsonl has trial {row[-1]} of {row[1]!r} for {key[1]!r}"
                )
        if not run.transcripts.select(_KEY).equals(trials):
            raise LabError(f"{run.card.run}: the transcripts are not those of the trials")
        for grain, wanted in (("attempts", "attempts"), ("calls", "tool_calls")):
            found = Counter(
                zip(*(c.to_pylist() for c in getattr(run, grain).select(_KEY).columns), strict=True)
            )
            for key, count in zip(keys, run.trials.column(wanted).to_pylist(), strict=True):
                if found.pop(key, 0) != count:
                    raise LabError(
                        f"{run.card.run}: trial {key[-1]} of {key[1]!r} has other {grain} than it says"
                    )
            if found:
                raise LabError(
                    f"{run.card.run}: {grain} of a trial that is not there: {next(iter(found))[1]!r}"
                )


def run_name(folder: str | Path) -> str:
    """The name of the run in a folder, as a card can hold it: of the bytes of its name what is text."""
    return Path(folder).absolute().name.encode(errors="replace").decode()


def write_file(path: Path, data: bytes) -> None:
    """Write a whole file or none of it: to a temporary name, to the disk, then in place. Who may read it the user's umask
    says."""
    fresh = path.with_name(f".{path.name[:200]}.{secrets.token_hex(8)}")
    try:
        with open(fresh, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


def save(run: Run, folder: Path) -> None:
    """Write the run's files into its folder. The card comes last: a folder with a card is whole."""
    from agentbench_lab.results.bench_io import bench_bytes

    check_run(run)
    bench = bench_bytes(run)
    for grain in SCHEMAS:
        sink = pa.BufferOutputStream()
        pq.write_table(getattr(run, grain), sink, compression="zstd")
        write_file(folder / f"{grain}.parquet", sink.getvalue().to_pybytes())
    write_file(folder / "product.jsonl", encode_rows(run.product))
    write_file(folder / "bench.json", bench)
    write_file(folder / "card.json", msgspec.json.format(msgspec.json.encode(run.card), indent=2) + b"\n")


def load_run(path: str | Path) -> Run:
    """Read a run back from its folder. Raises LabError for a folder that holds none, or one that is not whole."""
    folder = _found(Path(path))
    card_file = folder / "card.json"
    if not card_file.is_file():
        what = "an unfinished run" if (folder / "journal.jsonl").exists() else "no run"
        near = did_you_mean(folder.name, _runs(folder.parent)) if not folder.exists() else ""
        hint = f"; {GO_ON}" if what == "an unfinished run" else ""
        raise LabError(f"{shown(path)}: {what} (no card.json){near}{hint}")
    try:
        card = msgspec.json.decode(card_file.read_bytes(), type=RunCard)
    except OSError as error:
        raise LabError(f"{shown(card_file)}: {error.strerror}") from None
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise LabError(f"{shown(card_file)}: not a card of {FORMAT}: {error}") from None
    if card.format != FORMAT:
        raise LabError(f"{shown(card_file)}: format {card.format!r} is not {FORMAT!r}")
    tables = {}
    for grain in SCHEMAS:
        tables[grain] = _read_table(folder / f"{grain}.parquet", grain)
    try:
        with no_collection():
            product = tuple(read_product(folder / "product.jsonl"))
    except OSError as error:
        raise LabError(f"{shown(folder / 'product.jsonl')}: {error.strerror}") from None
    run = Run(card=card, product=product, path=folder, **tables)
    check_run(run)
    return run


def _read_table(file: Path, grain: str) -> pa.Table:
    """A Parquet file, proven whole: text that is no UTF-8 is found here, and not where it is used."""
    try:
        # a path would be taken for an address (s3:...), or for UTF-8
        table = pq.read_table(pa.BufferReader(file.read_bytes()))
        table.validate(full=True)
        return completed(grain, table)
    except Exception as error:
        raise unreadable(shown(file), error) from None


def _found(path: Path) -> Path:
    """The folder itself, or the run of that bare name under data/results."""
    named = project_root() / "data" / "results" / path
    return named if len(path.parts) == 1 and not path.exists() and named.is_dir() else path


def _runs(folder: Path) -> Sequence[str]:
    return [card.parent.name for card in folder.glob("*/card.json")] if folder.is_dir() else []
