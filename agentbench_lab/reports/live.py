"""The chart library of a page: one script for all its charts, packed, and made while the notebook still runs."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import Any

from agentbench_lab.reports.page import resource


@cache
def prepare() -> Future[str]:
    """Begin to make the library, once a process: a second's work that needs nothing of the notebook's."""
    with_it = ThreadPoolExecutor(1, thread_name_prefix="chart-library")
    made = with_it.submit(_bundle)
    with_it.shutdown(wait=False)
    return made


def _bundle() -> str:
    """Vega, Vega-Lite and vega-embed with our few lines, as one script."""
    import vl_convert

    return vl_convert.javascript_bundle(resource("hydrate.js"))


@cache
def _packed() -> str:
    """The same script, gzipped, as base64; the same bytes whenever it is made."""
    return base64.b64encode(gzip.compress(prepare().result().encode(), 9, mtime=0)).decode()


def data_of(specs: Sequence[Any]) -> str:
    """The elements that hold the charts' specifications as data."""
    tag = '<script type="application/json" data-figure="chart-{}">{}</script>\n'
    return "".join(tag.format(number, _json(spec)) for number, spec in enumerate(specs, 1))


def library() -> tuple[str, tuple[str, ...]]:
    """The element that holds the packed library, and the scripts that may run: the one that unpacks, the library."""
    held = f'<script type="application/octet-stream" id="packed">{_packed()}</script>\n'
    return held, (resource("unpack.js"), prepare().result())


def _json(value: Any) -> str:
    """JSON that may stand inside a script element: it holds no character that ends or opens one."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return re.sub("[<>&\u2028\u2029]", lambda found: f"\\u{ord(found[0]):04x}", text)
