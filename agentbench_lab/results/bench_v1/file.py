"""A result file as an object: read, written, summarized, shown, compared."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import cast

from msgspec import Raw, Struct, field

from agentbench_lab.outcomes import Class, Outcome, Taxonomy
from agentbench_lab.results.bench_v1 import markdown, model, reading, writing
from agentbench_lab.results.bench_v1.model import FORMAT, BenchError, Summary, Trial, Wire, invalid, moment


class BenchFile(Struct, frozen=True, kw_only=True):
    """What one invocation of a harness ran, where, and how it scored.

    `commit` is "" where it is unknown. `started_at` is RFC 3339 text, up to nanoseconds, the offset kept. `options`
    keeps each value as its JSON text; make one with `raw`. `trials` is None where the file says null. `source` is the
    name of the file it was read from, and is not written.
    """

    started_at: str
    taxonomy: Taxonomy
    trials: list[Trial] | None
    commit: str = ""
    options: dict[str, Raw] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    source: str = ""

    @classmethod
    def decode(cls, data: bytes, *, source: str = "") -> BenchFile:
        """Read a file. Raises BenchError for what is no valid result file, or has summaries that do not follow."""
        wire = reading.parse(bytes(data))
        if wire.format != FORMAT:
            raise invalid(f"format {model.quoted(wire.format)}, want {model.quoted(FORMAT)}")
        file = cls.from_wire(wire, source)
        model.check(file.taxonomy, file.started_at, file.trials or ())
        if file.summarize() != wire.summaries:
            raise invalid("summaries do not follow from the trials")
        return file

    @classmethod
    def from_wire(cls, wire: Wire, source: str = "") -> BenchFile:
        """The file that the fields say, not checked. An unknown class stays as it is, for the check to refuse."""
        outcomes = wire.taxonomy.outcomes or ()
        return cls(
            started_at=str(moment(wire.started_at)) if wire.started_at else "",
            taxonomy=Taxonomy(
                wire.taxonomy.name,
                tuple(Outcome(o.name, cast(Class, o.cls), o.over, o.label) for o in outcomes),
            ),
            trials=wire.trials,
            commit=wire.commit,
            options=wire.options,
            notes=wire.notes,
            source=source,
        )

    @classmethod
    def read_dir(cls, folder: str | os.PathLike[str]) -> list[BenchFile]:
        """Every file in the folder whose name ends in .json, by name. The first that is refused ends it: BenchError.

        The files are not checked against one another.
        """
        files = []
        try:
            paths = [entry for entry in os.scandir(folder) if not entry.is_dir(follow_symlinks=False)]
        except OSError as error:
            raise BenchError("read", f"{os.fspath(folder)}: cannot be read: {error.strerror}") from None
        for entry in sorted(paths, key=lambda entry: os.fsencode(entry.name)):
            if not entry.name.endswith(".json"):
                continue
            try:
                files.append(cls.decode(Path(entry.path).read_bytes(), source=entry.name))
            except OSError as error:
                raise BenchError("read", f"{entry.name}: cannot be read: {error.strerror}") from None
            except BenchError as error:
                raise BenchError(error.kind, f"{entry.name}: {error}") from None
        return files

    def encode(self) -> bytes:
        """The file's bytes, with the summaries that follow from its trials. Raises BenchError where it is not valid."""
        writing.check_types(self)
        model.check(self.taxonomy, self.started_at, self.trials or ())
        at = moment(self.started_at)
        if not at.writable:
            raise BenchError(
                "encode", f"bench: cannot be written: the offset of {self.started_at} is a day or more"
            )
        return writing.encode(
            Wire(
                format=FORMAT,
                commit=self.commit,
                started_at=str(at),
                options=self.options,
                taxonomy=model.WireTaxonomy(
                    name=self.taxonomy.name,
                    outcomes=[
                        model.WireOutcome(name=o.name, cls=o.cls, over=o.over, label=o.label)
                        for o in self.taxonomy.outcomes
                    ],
                ),
                trials=self.trials,
                notes=self.notes,
                summaries=self.summarize(),
            )
        )

    def summarize(self) -> list[Summary]:
        """One summary for each mode and model, in the order in which each first appears among the trials."""
        return [
            model.summarize(self.taxonomy, mode, name, trials)
            for (mode, name), trials in model.grouped(self.trials or ()).items()
        ]

    def markdown(self) -> str:
        """The file as Markdown: its provenance, every outcome over its denominator, a row for each trial, its notes."""
        return markdown.file_markdown(self)

    @staticmethod
    def latest(files: Iterable[BenchFile]) -> list[Column]:
        """The newest column of each mode and model: by start, then by source, else the first seen. Sorted by both."""
        best: dict[tuple[str, str], Column] = {}
        newest: dict[tuple[str, str], tuple[tuple[int, int], str]] = {}
        for file in files:
            age = (moment(file.started_at).instant, file.source)
            for key in dict.fromkeys((t.mode, t.model) for t in file.trials or ()):
                if key not in best or age > newest[key]:
                    best[key] = Column(mode=key[0], model=key[1], file=file)
                    newest[key] = age
        return [best[key] for key in sorted(best)]

    @staticmethod
    def compare(
        columns: Sequence[Column],
        *,
        order: Sequence[str] = (),
        link_prefix: str = "",
        allow_mixed_commits: bool = False,
    ) -> str:
        """Columns side by side, as Markdown.

        `order` names the modes that come first; `link_prefix` makes a link of each source. Columns of different
        commits are refused unless allowed, and then said so above the tables; all files without a commit are one
        commit, which is no named one. Columns of different taxonomies are always refused. Raises BenchError.
        """
        if not columns:
            raise BenchError("nothing", "bench: nothing to compare")
        first = columns[0].file.taxonomy
        for column in columns:
            if column.file.taxonomy != first:
                raise BenchError(
                    "mixed_taxonomies",
                    "bench: results scored by different taxonomies are not comparable: "
                    f"{first.name} and {column.file.taxonomy.name}",
                )
        commits = sorted(
            markdown.commit_name(commit) for commit in {column.file.commit for column in columns}
        )
        if len(commits) > 1 and not allow_mixed_commits:
            raise BenchError(
                "mixed_commits",
                f"bench: results from different commits are not comparable: {', '.join(commits)}",
            )
        return markdown.comparison(_ordered(columns, order), commits, link_prefix)


class Column(Struct, frozen=True, kw_only=True):
    """One mode and model of one file: a column of a comparison."""

    mode: str
    model: str = ""
    file: BenchFile

    @property
    def name(self) -> str:
        """The mode, and the model where there is one."""
        return markdown.name(self.mode, self.model)


def _ordered(columns: Iterable[Column], order: Sequence[str]) -> list[Column]:
    """The named modes first, within one of them as they came; the others by mode and model."""

    def key(column: Column) -> tuple[int, str, str]:
        if column.mode in order:
            return order.index(column.mode), "", ""
        return len(order), column.mode, column.model

    return sorted(columns, key=key)
