"""Tables of a page lead into its lists of trials: a cell that names a rung, a case or an outcome becomes a link.

Links are anchors within the page, so that they work from a file, by keyboard and without scripts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import escape, unescape

_ROW = re.compile(r"<tr>(.*?)</tr>", re.DOTALL)
_CELL = re.compile(r"<(th|td)([^>]*)>([^<]*)</\1>")
_COUNTED = re.compile(r"\d+/\d+$")
_TRIAL = re.compile(r"-t\d+$")
_CAPTION = re.compile(r"<caption>([^<]*)</caption>")


def table_of(html: str) -> str:
    """The box of a cell's table; it scrolls by itself, also by keys, and is called what its caption says."""
    caption = _CAPTION.search(html)
    if "<table" not in html:
        return f'<div class="output">{html}</div>'
    name = caption[1] if caption else "Table"
    return f'<div class="output" role="group" tabindex="0" aria-label="{name}">{html}</div>'


def linked(html: str, names: Mapping[tuple[str, str], str]) -> str:
    """The tables in `html` with links to anchors of the page.

    `names`: (arm or "", word) -> anchor. A row's arm is the last heading above it, or the cell in it, that is an arm.
    In a row whose first cell leads somewhere, each `n/m` leads there too; to keys only the first cell is a stop. A row
    with a case in it leads to that case only.
    """
    arms = {arm for arm, _ in names}
    arm = ""

    def row(found: re.Match[str]) -> str:
        nonlocal arm
        cells = [(kind, more, unescape(text)) for kind, more, text in _CELL.findall(found[1])]
        if len(cells) == 1 and "colgroup" in cells[0][1]:
            arm = cells[0][2] if cells[0][2] in arms else ""
            return found[0]
        if not cells or 'scope="col"' in cells[0][1] or len(cells) != len(re.findall(r"<t[hd]\b", found[1])):
            return found[0]
        whose = next((text for _, _, text in cells[1:] if text in arms and text), arm)
        targets = [_target(names, whose, text) for _, _, text in cells]
        cases = [target for target in targets if target is not None and _TRIAL.search(target)]
        whole = targets[0] if not cases else None  # a row about one trial leads to that trial only
        made = []
        for at, (kind, more, text) in enumerate(cells):
            target = targets[at] if targets[at] in cases or (at == 0 and whole is not None) else None
            shown = escape(text, quote=False)
            if target is not None:
                shown = f'<a href="#{target}">{shown}</a>'
            elif whole is not None and _COUNTED.search(text):
                shown = f'<a href="#{whole}" tabindex="-1">{shown}</a>'
            made.append(f"<{kind}{more}>{shown}</{kind}>")
        return f"<tr>{''.join(made)}</tr>"

    return _ROW.sub(row, html) if names else html


def _target(names: Mapping[tuple[str, str], str], arm: str, word: str) -> str | None:
    return names.get((arm, word)) or names.get(("", word))
