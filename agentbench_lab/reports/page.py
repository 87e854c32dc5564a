"""The shell around every page: one file, its own style, and a policy that lets nothing in."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from string import Template


def page(
    *,
    title: str,
    header: str,
    main: str,
    footer: str,
    facts: Mapping[str, str],
    data: str = "",
    scripts: Sequence[str] = (),
) -> str:
    """The shell around ready HTML; `title` and `facts` are text.

    Only `scripts`, by their digests, may run in it; the first is put into the page, and has the others run.
    """
    allowed = " ".join(f"'sha256-{_digest(script)}'" for script in scripts) or "'none'"
    if scripts:
        data += f"<script>{scripts[0]}</script>\n"
    whole = Template(resource("page.html")).substitute(
        title=escape(title),
        style=resource("report.css").strip(),
        allowed=allowed,
        metas="".join(
            f'<meta name="report-{key}" content="{escape(value)}">\n' for key, value in facts.items()
        ),
        header=header,
        main=main,
        footer=footer,
        scripts=data,
    )
    return whole.encode(errors="replace").decode()  # a notebook may hold what no file can


@cache
def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


@cache
def resource(name: str) -> str:
    """The text of a file beside this one."""
    return (files("agentbench_lab.reports") / name).read_text(encoding="utf-8")
