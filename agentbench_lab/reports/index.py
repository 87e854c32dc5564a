"""The list of published reports, made from what each says of itself in its head."""

from __future__ import annotations

import re
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from agentbench_lab.reports.page import page
from agentbench_lab.results.run import write_file

_HEAD_CHARACTERS = 65536


class _Head(HTMLParser):
    """The title and the `report-...` metas of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.facts: dict[str, str] = {}
        self._in_title = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, Any]]) -> None:
        said = dict(attrs)
        self._in_title = tag == "title"
        if tag == "meta" and str(said.get("name", "")).startswith("report-"):
            self.facts[said["name"].removeprefix("report-")] = said.get("content") or ""

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.facts["title"] = self.facts.get("title", "") + data

    def handle_endtag(self, tag: str) -> None:
        self._in_title = False


def write_index(folder: Path) -> Path:
    """Write `index.html` over the reports in a folder, by name; returns its path."""
    entries = []
    for path in sorted(folder.glob("*.html")):
        if path.name == "index.html":
            continue
        head = _Head()
        with path.open(encoding="utf-8", errors="replace") as file:
            head.feed(file.read(_HEAD_CHARACTERS).partition("<style>")[0])
        facts = {
            key: escape(head.facts.get(key, "")) for key in ("title", "claim", "date", "evidence", "commit")
        }
        commit = re.sub(r"[0-9a-f]{12,}", lambda found: found[0][:12], facts["commit"])
        about = " · ".join(
            part for part in (facts["date"], facts["evidence"], commit and f"commit {commit}") if part
        )
        link = f'<a href="{escape(path.name)}">{facts["title"] or escape(path.stem)}</a>'
        entries.append(
            f'<article><h2>{link}</h2>\n<p>{facts["claim"]}</p>\n<p class="kicker">{about}</p></article>'
        )
    index = folder / "index.html"
    text = page(
        title="Reports",
        header='<p class="kicker">AgentBench Lab</p>\n<h1>Reports</h1>',
        main="\n".join(entries) or "<p>Nothing is published yet.</p>",
        footer=f"<p>{len(entries)} published {'report' if len(entries) == 1 else 'reports'}.</p>",
        facts={},
    )
    write_file(index, text.encode())
    return index
