"""The list of published reports, by question, made from what each page says of itself.

One that could not be made again keeps its older page, and the list says so until a later attempt succeeds.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Collection, Mapping
from html import escape, unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import quote

from agentbench_lab.cases import project_root
from agentbench_lab.reports.page import page
from agentbench_lab.results.run import write_file

_MOST_SVG = 80_000  # characters of a picture; a larger one is drawn into pixels
_MOST_WORDS = 400
_CHART = re.compile(r'<div id="chart-1" role="img" aria-label="([^"]*)">(<svg.*?</svg>)</div>', re.DOTALL)
_PIXELS = re.compile(
    r'<div id="chart-1" role="img" aria-label="([^"]*)"><img src="(data:image/png;base64,[A-Za-z0-9+/=]*)"'
)
_SAID = re.compile(r' (?:role|class|pointer-events|aria-[a-z]+)="[^"]*"')


class _Head(HTMLParser):
    """The title and the `report-...` metas of a page; of an index, what it says of failed attempts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.facts: dict[str, str] = {}
        self.failed: dict[str, str] = {}
        self._in_title = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, Any]]) -> None:
        said = dict(attrs)
        self._in_title = tag == "title"
        if tag == "meta" and str(said.get("name", "")).startswith("report-"):
            self.facts[said["name"].removeprefix("report-")] = said.get("content") or ""
        if tag == "article" and said.get("data-failed"):
            self.failed[str(said.get("data-report"))] = said["data-failed"]

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.facts["title"] = self.facts.get("title", "") + data

    def handle_endtag(self, tag: str) -> None:
        self._in_title = False


def write_index(folder: Path, *, done: Collection[str] = (), failed: Mapping[str, str] | None = None) -> Path:
    """Write `index.html` over the reports in a folder, by name; returns its path.

    `done` are the reports made just now; `failed` those that were tried, with what went wrong. An earlier index is asked
    for the failures before that.
    """
    index = folder / "index.html"
    problems: dict[str, str] = {}
    if index.is_file():
        problems = _Head(index.read_text(encoding="utf-8", errors="replace")).failed
    problems = {name: why for name, why in problems.items() if name not in done} | dict(failed or {})
    pages = {path.stem: path for path in folder.glob("*.html") if path != index}
    entries = [
        _entry(name, pages.get(name), problems.get(name, ""))
        for name in _in_order(pages.keys() | problems.keys())
    ]
    counts = f"{len(pages)} published {'report' if len(pages) == 1 else 'reports'}."
    if problems:
        counts += f" Of {len(problems)} the last attempt failed."
    text = page(
        title="Reports",
        header='<p class="kicker">AgentBench Lab</p>\n<h1>Reports, by question</h1>',
        main="\n".join(entries) or "<p>Nothing is published yet.</p>",
        footer=f"<p>{counts}</p>",
        facts={},
    )
    write_file(index, text.encode())
    return index


def _in_order(names: Collection[str]) -> list[str]:
    """In the order in which notebooks/README.md lists the questions; then the others, by name."""
    listed = project_root() / "notebooks" / "README.md"
    text = listed.read_text(encoding="utf-8") if listed.is_file() else ""
    places = {name: at for at, name in enumerate(dict.fromkeys(re.findall(r"\((\w+)\.ipynb\)", text)))}
    return sorted(names, key=lambda name: (places.get(name, len(places)), name))


def _entry(name: str, path: Path | None, problem: str) -> str:
    mark = f' data-failed="{escape(problem)}"' if problem else ""
    opened = f'<article class="entry" data-report="{escape(name)}"{mark}>'
    if path is None:
        why = f'<p class="banner" role="note"><strong>No report:</strong> {escape(problem)}</p>'
        return f"{opened}<div><h2>{escape(name)}</h2>\n{why}</div></article>"
    text = path.read_text(encoding="utf-8", errors="replace")
    facts = _Head(text.partition("<style>")[0]).facts
    commit = re.sub(r"[0-9a-f]{12,}", lambda found: found[0][:12], facts.get("commit", ""))
    about = [
        facts.get("date", ""),
        facts.get("evidence", ""),
        commit and commit != "unknown" and f"commit {commit}",
        facts.get("trials", ""),
    ]
    lines = [f'<h2><a href="{quote(path.name)}">{escape(facts.get("title") or name)}</a></h2>']
    if facts.get("claim"):
        lines.append(f"<p>{escape(facts['claim'])}</p>")
    lines.append(f'<p class="kicker">{escape(" · ".join(part for part in about if part))}</p>')
    if problem:
        why = f"<strong>An older page:</strong> the last attempt failed. {escape(problem)}"
        lines.append(f'<p class="banner" role="note">{why}</p>')
    said = "\n".join(lines)
    return f"{opened}<div>{said}</div>{_thumbnail(text)}</article>"


def _of_pixels(text: str) -> str:
    """The first chart of a page where it is in pixels."""
    found = _PIXELS.search(text)
    if found is None:
        return ""
    words = unescape(found[1])
    words = words if len(words) <= _MOST_WORDS else f"{words[: _MOST_WORDS - 1]}…"
    return f'<div class="thumbnail"><img src="{found[2]}" alt="{escape(words)}" loading="lazy"></div>'


def _thumbnail(text: str) -> str:
    """The first chart of a page as a small picture with its text; "" for a page without charts."""
    found = _CHART.search(text)
    if found is None:
        return _of_pixels(text)
    words = unescape(found[1])
    words = words if len(words) <= _MOST_WORDS else f"{words[: _MOST_WORDS - 1]}…"
    svg = _SAID.sub("", found[2])
    if len(svg) <= _MOST_SVG:
        kind, data = "svg+xml", svg.encode()
    else:
        import vl_convert

        kind, data = "png", vl_convert.svg_to_png(svg, scale=0.5)
    source = f"data:image/{kind};base64,{base64.b64encode(data).decode()}"
    return f'<div class="thumbnail"><img src="{source}" alt="{escape(words)}" loading="lazy"></div>'
