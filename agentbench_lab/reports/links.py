"""Tables of a page lead into its lists of trials: a cell in a column of arms, rungs, cases or outcomes becomes a link.

Links are anchors within the page, so that they work from a file, by keyboard and without scripts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import escape, unescape

_TABLE = re.compile(r"<table\b.*?</table>", re.DOTALL)
_HEAD = re.compile(r"<thead\b[^>]*>(.*?)</thead>", re.DOTALL)
_ROW = re.compile(r"<tr>(.*?)</tr>", re.DOTALL)
_CELL = re.compile(r"<(th|td)([^>]*)>([^<]*)</\1>")
_COUNTED = re.compile(r"\d+/\d+$")
_CAPTION = re.compile(r"<caption>([^<]*)</caption>")

_KINDS = {
    "arm": "arm",
    "rung": "group",
    "group": "group",
    "outcome": "outcome",
    "case": "case",
    "case #trial": "case",
}
"""What the cells of a column name, by its heading. A cell of any other column may look like a case's id and be a count."""

_OF_TRIALS = ("judged", "solved", "cost known")
"""The columns whose counts in a row about a whole arm are of its trials; others count its cases or its calls."""


def table_of(html: str) -> str:
    """The box of a cell's table; it scrolls by itself, also by keys, and is called what its caption says."""
    caption = _CAPTION.search(html)
    if "<table" not in html:
        return f'<div class="output">{html}</div>'
    name = escape(unescape(caption[1])) if caption else "Table"
    return f'<div class="output" role="group" tabindex="0" aria-label="{name}">{html}</div>'


def linked(html: str, names: Mapping[tuple[str, str, str], str]) -> str:
    """The tables in `html` with links to anchors of the page, by what their columns hold.

    `names`: (kind, arm or "", word) -> anchor, as `Drill.names` gives them. A row's arm is the cell of its column of
    arms, or the last heading above it that is an arm. In a row whose first cell leads somewhere, each `n/m` leads there
    too; to keys only the first cell is a stop. A row with a case in it leads to that case only. Where a row names no
    more than its arm, its judged trials lead to all of the arm's.
    """
    return _TABLE.sub(lambda found: _linked_table(found[0], names), html) if names else html


def _linked_table(html: str, names: Mapping[tuple[str, str, str], str]) -> str:
    arms = {arm for kind, _, arm in names if kind == "arm" and arm}
    head = _HEAD.search(html)
    headings = [unescape(text) for _, _, text in _CELL.findall(head[1])] if head else []
    kinds = [_KINDS.get(heading, "") for heading in headings]
    arm = ""

    def row(found: re.Match[str]) -> str:
        nonlocal arm
        cells = [(kind, more, unescape(text)) for kind, more, text in _CELL.findall(found[1])]
        if len(cells) == 1 and "colgroup" in cells[0][1]:
            arm = cells[0][2] if cells[0][2] in arms else ""
            if not arm:
                return found[0]
            kind, more, text = cells[0]
            return f"<tr><{kind}{more}>{_link(names['arm', arm, arm], text)}</{kind}></tr>"
        if len(cells) != len(kinds) or len(cells) != len(re.findall(r"<t[hd]\b", found[1])):
            return found[0]
        whose = next(
            (cells[at][2] for at, kind in enumerate(kinds) if kind == "arm" and cells[at][2] in arms), arm
        )
        targets = [
            _target(names, kind, whose, text) if kind else None
            for kind, (_, _, text) in zip(kinds, cells, strict=True)
        ]
        # a row about one trial leads to that trial only
        cases = [target if kind == "case" else None for kind, target in zip(kinds, targets, strict=True)]
        whole = targets[0] if not any(cases) else None
        made = []
        for at, (kind, more, text) in enumerate(cells):
            target = cases[at] or (whole if at == 0 else None)
            counts = whole if kinds[0] != "arm" or headings[at] in _OF_TRIALS else None
            if counts is None and not any(kinds) and headings[at] == "judged":
                counts = names.get(("arm", whose, whose))
            shown = escape(text, quote=False)
            if target is not None:
                shown = _link(target, text)
            elif counts is not None and _COUNTED.search(text):
                shown = _link(counts, text, ' tabindex="-1"')
            made.append(f"<{kind}{more}>{shown}</{kind}>")
        return f"<tr>{''.join(made)}</tr>"

    above, _, below = html.partition("</thead>")
    return f"{above}</thead>{_ROW.sub(row, below)}" if below else html


def _link(anchor: str, text: str, more: str = "") -> str:
    return f'<a href="#{anchor}"{more}>{escape(text, quote=False)}</a>'


def _target(names: Mapping[tuple[str, str, str], str], kind: str, arm: str, word: str) -> str | None:
    return names.get((kind, arm, word)) or names.get((kind, "", word))
