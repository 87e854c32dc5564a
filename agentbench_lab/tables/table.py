"""A table of text, the same one for a notebook, a report and a terminal."""

from __future__ import annotations

import re
import shutil
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

from agentbench_lab.charts import arm_labels, percent

if TYPE_CHECKING:
    import polars as pl


_WIDTH = 100  # columns of a terminal
_LONG_WORD = 18  # letters: the longest names of outcomes stay whole


@dataclass(frozen=True)
class Table:
    """A titled table of text.

    A column whose name begins with ">" is aligned to the right. A row is a sequence of cells, or one string: the
    heading of the rows below it. `data` adds output types (name -> JSON object) to what a notebook keeps of it.
    `verbatim`: its cells are evidence, and stand with their own line breaks and indentation.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str] | str]
    notes: Sequence[str] = ()
    data: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    verbatim: bool = False

    def _repr_html_(self) -> str:
        if not self.rows:  # headings over nothing would squeeze the one sentence that there is
            said = "; ".join(self.notes) or "nothing"
            return f"<p><strong>{escape(self.title)}</strong>: {escape(said)}</p>"
        names = [name.removeprefix(">") for name in self.columns]
        style = ["right" if name.startswith(">") else "left" for name in self.columns]

        def cell(kind: str, text: str, side: str, more: str = "") -> str:
            return f'<{kind}{more} style="text-align: {side}">{escape(text)}</{kind}>'

        def data(text: str, side: str) -> str:
            if self.verbatim and laid_out(text):
                return f"<td{VERBATIM.format(more=f'text-align: {side}; ')}>{escape(text)}</td>"
            return cell("td", text, side, _kind(text))

        head = "".join(cell("th", *pair, ' scope="col"') for pair in zip(names, style, strict=True))
        body = []
        for row in self.rows:
            if isinstance(row, str):
                more = f' scope="colgroup" colspan="{len(names)}"'
                body.append(f"<tr>{cell('th', row, 'left', more)}</tr>")
                continue
            cells = [cell("th", row[0], style[0], f' scope="row"{_kind(row[0])}')]
            cells += [data(*pair) for pair in zip(row[1:], style[1:], strict=True)]
            body.append(f"<tr>{''.join(cells)}</tr>")
        span = f' colspan="{len(names)}"'
        # inside its cell, so that a page can keep it in sight while a wide table is scrolled
        notes = "".join(
            f'<tr><td{span} style="text-align: left"><div class="note">{escape(note)}</div></td></tr>'
            for note in self.notes
        )
        foot = f"<tfoot>{notes}</tfoot>" if notes else ""
        caption = f"<caption>{escape(self.title)}</caption>"
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody>{foot}</table>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return dict(self.data)

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        """As wide as the terminal, at most 100 columns: what does not fit is set closer, then broken into lines."""
        most = min(_WIDTH, max(40, shutil.get_terminal_size((_WIDTH, 24)).columns))
        names = [name.removeprefix(">") for name in self.columns]
        right = [name.startswith(">") for name in self.columns]
        whole = printable_lines if self.verbatim else printable
        rows = [
            row if isinstance(row, str) else [printable(row[0]), *map(whole, row[1:])] for row in self.rows
        ]
        cells = [names, *(row for row in rows if not isinstance(row, str))]
        widths = [
            max(1, *(len(line) for row in cells for line in row[n].split("\n"))) for n in range(len(names))
        ]
        gap = 2 if sum(widths) + 2 * (len(widths) - 1) <= most else 1
        while sum(widths) + gap * (len(widths) - 1) > most and max(widths) > 6:
            widths[widths.index(max(widths))] -= 1

        def lines(row: Sequence[str]) -> list[str]:
            wrapped = [
                [part for line in text.split("\n") for part in textwrap.wrap(line, width) or [""]]
                for text, width in zip(row, widths, strict=True)
            ]
            wrapped = [part + [""] * (max(map(len, wrapped)) - len(part)) for part in wrapped]
            return [
                (" " * gap)
                .join(
                    text.rjust(width) if to_right else text.ljust(width)
                    for text, width, to_right in zip(line, widths, right, strict=True)
                )
                .rstrip()
                for line in zip(*wrapped, strict=True)
            ]

        rule = (" " * gap).join("-" * width for width in widths)
        body = [line for row in rows for line in ([printable(row)] if isinstance(row, str) else lines(row))]
        notes = [line for note in self.notes for line in textwrap.wrap(printable(note), most)]
        return "\n".join([*textwrap.wrap(printable(self.title), most), *lines(names), rule, *body, *notes])


@dataclass(frozen=True)
class Banner:
    """A line that must not be overlooked; an empty one shows nothing."""

    text: str

    def _repr_html_(self) -> str:
        return f'<p class="banner" role="note"><strong>{escape(self.text)}</strong></p>' if self.text else ""

    def __repr__(self) -> str:
        return self.text


CLAIM_MIME = "application/vnd.agentbench-lab.claim+json"
"""The output type by which a report without a chart knows what it claims."""


@dataclass(frozen=True)
class Paragraphs:
    """Plain sentences, a paragraph each; the first one is what they come to."""

    texts: Sequence[str]

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return {CLAIM_MIME: {"text": self.texts[0]}} if self.texts else {}

    def _repr_html_(self) -> str:
        first, *others = (escape(text) for text in self.texts)
        return "".join([f"<p><strong>{first}</strong></p>", *(f"<p>{text}</p>" for text in others)])

    def __repr__(self) -> str:
        return "\n\n".join(textwrap.fill(printable(text), _WIDTH) for text in self.texts)


def printable(text: str) -> str:
    """One line that cannot steer a terminal."""
    return "".join(_seen(char) for char in " ".join(text.split()))


def printable_lines(text: str) -> str:
    """The text with its own lines and indentation; nothing in it steers a terminal."""
    lines = text.replace("\r\n", "\n").expandtabs().strip("\n").split("\n")
    return "\n".join("".join(_seen(char) for char in line) for line in lines)


def _seen(char: str) -> str:
    return char if char.isprintable() else " " if char.isspace() else "\N{REPLACEMENT CHARACTER}"


VERBATIM = (
    ' class="verbatim" style="{more}white-space: pre-wrap; overflow-wrap: anywhere; font-family: monospace"'
)
"""What makes an element of HTML show a text's lines and indentation, in a notebook too."""


def laid_out(text: str) -> bool:
    """Whether the text has lines, tabs or runs of spaces, which running text would lose."""
    return re.search(r"[\n\t]|  |^ ", text) is not None


def _kind(text: str) -> str:
    """The class of a cell: one with a long word may be broken anywhere, or it would push others off a page."""
    if text == "PASS":
        return ' class="pass"'
    return ' class="long"' if max(map(len, re.split(r"[\s-]", text))) > _LONG_WORD else ""


def short(text: str, most: int = 160) -> str:
    """The text, cut where it is long."""
    return text if len(text) <= most else text[: most - 1] + "…"


def share_of(estimate: float, low: float | None, high: float | None, *, gate: bool = True) -> str:
    """`92% [65, 99]`; `gate` as for `percent`."""
    ends = "" if low is None or high is None else f" [{_end(low)}, {_end(high)}]"
    return f"{percent(estimate, gate=gate)}{ends}"


def _end(share: float) -> str:
    """An end of an interval has no decimal but where it would read as none or as all."""
    exact = round(100 * share, 9)
    return f"{exact:.0f}" if 0.5 < exact < 99.5 else percent(share)[:-1]


def share(row: Mapping[str, Any] | None) -> str:
    """`92% [65, 99] 11/12` of a row of `metrics.ladder`, or why there is no estimate."""
    if row is None:
        return "–"
    if row["estimate"] is None:
        return row["reason"] or f"– {row['n']}/{row['of']}"
    return f"{share_of(row['estimate'], row['low'], row['high'])} {row['n']}/{row['of']}"


def by_arm(frame: pl.DataFrame) -> list[tuple[str, pl.DataFrame]]:
    """The frame's arms, each under its short name."""
    import polars as pl

    named = frame.with_columns(pl.Series("arm", arm_labels(frame), dtype=pl.String))
    parts = named.partition_by("arm", maintain_order=True)
    return [(str(part["arm"][0]), part) for part in parts]


def under_arms(frame: pl.DataFrame, rows: list[Sequence[str] | str]) -> Iterator[tuple[str, pl.DataFrame]]:
    """The frame of each arm in turn, after a heading among the rows where there are several."""
    arms = by_arm(frame)
    for arm, part in arms:
        if len(arms) > 1:
            rows.append(arm)
        yield arm, part
