"""From a number to the trials behind it, and to what was said and done in one of them: within one page, by links alone.

`drill(run)` lists a run's trials by arm and group, by outcome, and by case where cases were asked more than once. The
page is bounded: failures come first, and what had to be left out is counted aloud.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from agentbench_lab.tables.dialogue import MESSAGE, dialogue
from agentbench_lab.tables.table import VERBATIM, laid_out

if TYPE_CHECKING:
    import polars as pl

    from agentbench_lab.results.run import Run

DRILL_MIME = "application/vnd.agentbench-lab.drill+json"
"""The output type from which a published notebook makes the section that its tables link into."""

MOST_BYTES = 450_000
"""What the section may take of a page: a page with its charts and their library stays below 1.3 MB."""

_FOR_LINES = 0.4  # of the bytes: a list of many trials says more than a few in full
_RANKS = ("unsafe", "safe_non_success", "excluded", "success")
_WORDS = {
    "unsafe": "unsafe",
    "safe_non_success": "not solved",
    "excluded": "excluded",
    "success": "solved",
}

Row = str | tuple[str, str]
"""What, and how it was; or the heading of the rows below it."""


class Line(Struct, frozen=True):
    """One trial that is listed: `cls` is its class, or `excluded`; `full` is the trial in full, where it is shown: rows
    under headings, of which the first is one."""

    number: int
    arm: str
    group: str
    case: str
    trial: int
    outcome: str
    cls: str
    why: str
    full: tuple[Row, ...] | None = None
    ended: str = ""


class Cell(Struct, frozen=True):
    """How many trials of one arm and group there are, listed or not, and how they came out; None where a judged trial
    does not say."""

    arm: str
    group: str
    trials: int
    judged: int
    solved: int
    completed: int | None
    hallucinated: int | None


class Repeated(Struct, frozen=True):
    """How often one arm solved a case that it was asked more than once, over all its judged trials."""

    arm: str
    case: str
    solved: int
    judged: int


class Drill(Struct, frozen=True):
    """The trials of a run, as far as a page has room: `trials` counts all of them, `lines` those that are listed."""

    run: str
    saved: bool
    word: str
    trials: int
    cells: tuple[Cell, ...]
    lines: tuple[Line, ...]
    repeated: tuple[Repeated, ...] = ()

    def __repr__(self) -> str:
        return f"{self.run}: {self.note}"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        import msgspec

        return {DRILL_MIME: msgspec.to_builtins(self)}

    def _repr_html_(self) -> str:
        return self.html()

    @property
    def note(self) -> str:
        """How many trials are listed and in full, and what is left out, in one line."""
        full = sum(line.full is not None for line in self.lines)
        if full == self.trials:
            return f"{_many(self.trials, 'trial')}, all of them in full."
        said = f"{_many(self.trials, 'trial')}: {len(self.lines):,} listed, {full:,} of them in full, failures first."
        left = self.trials - len(self.lines)
        unlisted = f" {left:,} are left out, to keep this page small." if left else ""
        where = " Every one: agentbench-lab show RUN --case ID" if self.saved else " The run was not saved."
        return f"{said}{unlisted}{where}"

    def names(self, prefix: str = "d1") -> dict[tuple[str, str, str], str]:
        """Where a table's words lead: (kind, arm or "", word) -> anchor, where the kind says what the word names: an
        `arm` (twice), a `group`, an `outcome`, or a `case`, alone or as `case #1`.

        A word that two arms share leads, without an arm, to the first of them; the one arm of a run needs no name.
        """
        found: dict[tuple[str, str, str], str] = {}
        for number, arm in enumerate(self._arms()):
            found["arm", arm, arm] = found["arm", "", arm] = f"{prefix}-a{number}"
        if len(self._arms()) == 1:
            found["arm", "", ""] = f"{prefix}-a0"
        for number, cell in enumerate(self.cells):
            for arm in (cell.arm, ""):
                found.setdefault(("group", arm, cell.group), f"{prefix}-g{number}")
        for number, (arm, outcome) in enumerate(self._outcomes()):
            for whose in (arm, ""):
                found.setdefault(("outcome", whose, outcome), f"{prefix}-o{number}")
        for line in self.lines:
            for arm in (line.arm, ""):
                found.setdefault(("case", arm, f"{line.case} #{line.trial}"), f"{prefix}-t{line.number}")
                found.setdefault(("case", arm, line.case), f"{prefix}-t{line.number}")
        return found

    def _arms(self) -> list[str]:
        return list(dict.fromkeys(cell.arm for cell in self.cells))

    def _outcomes(self) -> dict[tuple[str, str], list[Line]]:
        found: dict[tuple[str, str], list[Line]] = {}
        for line in self.lines:
            found.setdefault((line.arm, line.outcome), []).append(line)
        return found

    def html(self, prefix: str = "d1") -> str:
        """The section; anchors begin with `prefix`, and nothing of a trial's own text is markup."""
        return "".join(self._parts(prefix))

    def _parts(self, prefix: str) -> Iterator[str]:
        arms = self._arms()
        many = len(arms) > 1
        yield f'<section class="drill" aria-label="Trials of {escape(self.run)}"><p>{escape(self.note)}</p>'
        first = "" if many or not arms else f' id="{prefix}-a0" tabindex="-1"'
        yield f"<h3{first}>By {escape(self.word)}</h3>"
        by_cell: dict[tuple[str, str], list[Line]] = {}
        for line in self.lines:
            by_cell.setdefault((line.arm, line.group), []).append(line)
        above = ""
        for number, cell in enumerate(self.cells):
            if many and cell.arm != above:
                above = cell.arm
                yield f'<h4 id="{prefix}-a{arms.index(above)}" tabindex="-1">{escape(above)}</h4>'
            listed = by_cell.get((cell.arm, cell.group), [])
            counts = [f"{cell.solved} of {cell.judged} solved"]
            known = (("completed", cell.completed), ("hallucinated", cell.hallucinated))
            counts += [f"{count} {what}" for what, count in known if count is not None]
            if cell.trials > cell.judged:
                counts.append(f"{cell.trials - cell.judged} excluded")
            if len(listed) < cell.trials:
                counts.append(f"{len(listed)} of {cell.trials} listed")
            name = f"{cell.arm} · {cell.group}" if many else cell.group
            yield _opened(f"{prefix}-g{number}", name, "; ".join(counts))
            yield "<ol>"
            yield from (_item(line, prefix, number) for line in listed)
            yield "</ol></div></details>"
        yield "<h3>By outcome</h3>"
        for number, ((arm, outcome), lines) in enumerate(self._outcomes().items()):
            name = f"{arm} · {outcome}" if many else outcome
            yield _opened(f"{prefix}-o{number}", name, f"{_many(len(lines), 'trial')} listed")
            yield f"<p>{', '.join(_link(line, prefix) for line in lines)}</p></div></details>"
        if self.repeated:
            yield "<h3>By case</h3>"
            yield from self._by_case(prefix, many)
        yield "</section>"

    def _by_case(self, prefix: str, many: bool) -> Iterator[str]:
        """For what repeats tell: which trials of a case were solved."""
        lines: dict[tuple[str, str], list[Line]] = {}
        for line in sorted(self.lines, key=lambda line: line.trial):
            lines.setdefault((line.arm, line.case), []).append(line)
        for number, case in enumerate(self.repeated):
            listed = lines.get((case.arm, case.case), [])
            name = f"{case.arm} · {case.case}" if many else case.case
            about = f"solved in {case.solved} of {_many(case.judged, 'judged trial')}"
            links = (f"{_link(line, prefix, f'#{line.trial}')} {escape(line.outcome)}" for line in listed)
            yield _opened(f"{prefix}-c{number}", name, about)
            yield f"<p>Listed: {', '.join(links)}</p></div></details>"


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def _opened(anchor: str, name: str, about: str) -> str:
    """The beginning of a folded list. The anchor is inside it: a link there unfolds it, without any script."""
    summary = f"<summary><b>{escape(name)}</b> {escape(about)}</summary>"
    return f'<details>{summary}<div id="{anchor}" class="opened" tabindex="-1">'


def _link(line: Line, prefix: str, words: str = "") -> str:
    text = escape(words or f"{line.case} #{line.trial}")
    return f'<a href="#{prefix}-t{line.number}">{text}</a>'


def _item(line: Line, prefix: str, cell: int) -> str:
    """One trial in a list: a line, which unfolds where it is shown in full."""
    anchor = f"{prefix}-t{line.number}"
    # a class that is none of ours comes out of a file: it is text, never an attribute
    words, style = _WORDS.get(line.cls, line.cls), line.cls if line.cls in _WORDS else "other"
    said = f'<span class="{style}">{escape(words)}</span> <b>{escape(line.case)} #{line.trial}</b> {escape(line.outcome)}'
    if line.why:
        said += f" <small>{escape(line.why)}</small>"
    if line.full is None:
        return f'<li id="{anchor}" tabindex="-1">{said}</li>'
    title = f"{line.case} [{line.arm} #{line.trial}], {line.group}"
    table = f"<table><caption>{escape(title)}</caption>{_rows(line.full)}</table>"
    table += f"<p>{escape(line.ended)}</p>"
    back = f'<p><a href="#{prefix}-g{cell}">Back to the list</a></p>'
    return f'<li><details><summary>{said}</summary><div id="{anchor}" class="opened" tabindex="-1">{table}{back}</div></details></li>'


def _rows(rows: Sequence[Row]) -> str:
    """The rows of a trial in full; a heading opens a group of rows."""
    groups: list[list[str]] = [[]]
    for row in rows:
        if isinstance(row, str):
            groups.append([f'<tr><th colspan="2" scope="rowgroup">{escape(row)}</th></tr>'])
        else:
            as_it_is = VERBATIM.format(more="") if laid_out(row[1]) else ""
            groups[-1].append(
                f'<tr><th scope="row">{escape(row[0])}</th><td{as_it_is}>{escape(row[1])}</td></tr>'
            )
    return "".join(f"<tbody>{''.join(group)}</tbody>" for group in groups if group)


# ---- which trials ----------------------------------------------------------------------------------------------


def drill(run: Run, *, most_bytes: int = MOST_BYTES) -> Drill:
    """The trials of a run for the end of a notebook: its report's tables then lead to them.

    At most `most_bytes` of HTML: failures first (unsafe ones before all), in turn from each arm and group, so that no
    cell of a table is without its trials while another has all; then what was excluded, then what was solved.
    """
    import msgspec
    import polars as pl

    from agentbench_lab.analysis.metrics import frame
    from agentbench_lab.charts import arm_labels
    from agentbench_lab.ladder import RUNG_NAMES, in_order

    trials = frame(run.trials).with_row_index("at")
    trials = trials.with_columns(pl.Series("arm", arm_labels(trials), dtype=pl.String))
    kind = pl.when(pl.col("excluded").is_not_null()).then(pl.lit("excluded")).otherwise("outcome_class")
    trials = trials.with_columns(kind.fill_null("excluded").alias("cls"))
    ranks = {name: rank for rank, name in enumerate(_RANKS)}
    trials = trials.with_columns(
        pl.col("cls").replace_strict(ranks, default=1, return_dtype=pl.Int64).alias("rank")
    )
    turn = pl.int_range(pl.len()).over("arm", "group", "rank").alias("turn")
    first = trials.with_columns(turn).sort("rank", "turn", "at")
    groups = in_order(set(trials["group"]))
    word = "rung" if any(group in RUNG_NAMES for group in groups) else "group"
    if word == "group" and "width" in trials.columns:
        wide = dict(trials.group_by("group").agg(pl.col("width").max().fill_null(0)).iter_rows())
        groups.sort(key=wide.__getitem__)
    found = Drill(run.card.run, run.path is not None, word, trials.height, _cells(trials, groups), ())
    repeated = trials["trial"].n_unique() > 1
    lines, spent = [], len(found.html().encode()) + _HEADING * trials.select("arm", "outcome").n_unique()
    for_lines = spent + _FOR_LINES * (most_bytes - spent)
    for row in first.iter_rows(named=True):
        line = _line(row)
        spent += _cost(line, repeated)
        if spent > for_lines:
            break
        lines.append(line)
    full: dict[int, Line] = {}
    for line in _in_full(run, lines, first["at"]):
        folded = msgspec.structs.replace(line, full=None)
        spent += len(_item(line, "d1", 0).encode()) - len(_item(folded, "d1", 0).encode())
        if spent > most_bytes:
            break
        full[line.number] = line
    shown = tuple(full.get(line.number, line) for line in lines)
    return msgspec.structs.replace(found, lines=shown, repeated=_repeated(trials, shown))


def _repeated(trials: pl.DataFrame, lines: Sequence[Line]) -> tuple[Repeated, ...]:
    """The cases that were asked more than once and have a trial listed."""
    import polars as pl

    listed = {(line.arm, line.case) for line in lines}
    counted = trials.group_by("arm", pl.col("case_id").alias("case"), maintain_order=True).agg(
        pl.col("solved").sum(), pl.col("solved").count().alias("judged"), pl.len().alias("asked")
    )
    rows = (row for row in counted.iter_rows(named=True) if (row["arm"], row["case"]) in listed)
    return tuple(
        Repeated(row["arm"], row["case"], row["solved"], row["judged"]) for row in rows if row["asked"] > 1
    )


def _cells(trials: pl.DataFrame, groups: Sequence[str]) -> tuple[Cell, ...]:
    import polars as pl

    order = {group: at for at, group in enumerate(groups)}
    arms = {arm: at for at, arm in enumerate(trials["arm"].unique(maintain_order=True))}
    judged = pl.col("solved").is_not_null()
    counted = trials.group_by("arm", "group").agg(
        pl.len().alias("trials"),
        pl.col("solved").count().alias("judged"),
        pl.col("solved").sum(),
        *(
            pl.when((judged & pl.col(name).is_not_null()).any() & ~(judged & pl.col(name).is_null()).any())
            .then((judged & pl.col(name)).sum())
            .alias(name)
            for name in ("completed", "hallucinated")
        ),
    )
    cells = [Cell(**row) for row in counted.iter_rows(named=True)]
    return tuple(sorted(cells, key=lambda cell: (arms[cell.arm], order[cell.group])))


def _line(row: Mapping[str, Any]) -> Line:
    why = row["excluded"] or next(iter(row["reasons"] or ()), "")
    return Line(
        number=row["at"],
        arm=row["arm"],
        group=row["group"],
        case=row["case_id"],
        trial=row["trial"],
        outcome=row["outcome"] or "excluded",
        cls=row["cls"],
        why=why if len(why) <= 160 else f"{why[:159]}…",
    )


_HEADING = 180  # bytes of a folded list's own, more or less


def _cost(line: Line, repeated: bool) -> int:
    """Bytes of a line: its item, its link by outcome, and where cases were repeated by case, under a heading at worst."""
    link = len(_link(line, "d1").encode()) + 2
    by_case = link + len(line.outcome) + len(line.arm) + len(line.case) + _HEADING if repeated else 0
    return len(_item(line, "d1", 0).encode()) + link + by_case


_AT_ONCE = 50


def _in_full(run: Run, lines: Sequence[Line], at: pl.Series) -> Iterator[Line]:
    """The lines in turn, each with its trial in full; nothing is made that nobody asks for."""
    import msgspec

    from agentbench_lab import tables

    whole = run.transcripts.num_rows == run.trials.num_rows
    for start in range(0, len(lines), _AT_ONCE):
        chosen = list(lines[start : start + _AT_ONCE])
        numbers = [line.number for line in chosen]
        product = tuple(run.product[number] for number in numbers) if run.product else ()
        part = msgspec.structs.replace(run, trials=run.trials.take(numbers), product=product)
        told = tables.in_full(part, most=len(chosen), said=False)
        said = run.transcripts.take(numbers).to_pylist() if whole else [{}] * len(chosen)
        talks = [bool(run.product and extra) for extra in part.trials.column("extra").to_pylist()]
        for line, table, words, talk in zip(chosen, told, said, talks, strict=True):
            rows = [row if isinstance(row, str) else (row[0], row[1]) for row in table.rows]
            full = (*rows, *_dialogue(words, turns=talk))
            yield msgspec.structs.replace(line, full=full, ended=" ".join(table.notes))


def _dialogue(said: Mapping[str, Any], *, turns: bool = False) -> Iterator[Row]:
    """What a trial's transcript has beside its calls: messages, prints, a traceback; bounded, and it says so."""
    messages = json.loads(said.get("messages") or "[]")
    if messages:
        yield "what was said"
        yield from dialogue(messages, turns=turns)
    for name in ("stdout", "stderr", "traceback"):
        text = said.get(name) or ""
        if text:
            yield name, text if len(text) <= MESSAGE else f"…{text[-MESSAGE:]}"
