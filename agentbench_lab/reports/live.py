"""The chart library of a page: one script for all its charts, packed.

It is made once a user and version, while the notebook runs, and kept in `$XDG_CACHE_HOME/agentbench-lab` (`~/.cache`).
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import os
import re
import zlib
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from agentbench_lab.reports.page import resource
from agentbench_lab.results.run import write_file


@cache
def prepare() -> Future[str]:
    """Begin to have the library, once a process: a second's work at worst, and it needs nothing of the notebook's."""
    with_it = ThreadPoolExecutor(1, thread_name_prefix="chart-library")
    made = with_it.submit(_bundle)
    with_it.shutdown(wait=False)
    return made


def _bundle() -> str:
    """Vega, Vega-Lite and vega-embed with our few lines, as one script: from the user's cache, else made and put there."""
    from importlib.metadata import version

    import vl_convert

    ours = resource("hydrate.js")
    key = hashlib.sha256(ours.encode()).hexdigest()[:16]
    kept = _cache() / f"charts-{version('vl-convert-python')}-{key}.js.gz"
    with suppress(OSError, EOFError, ValueError, zlib.error):  # not there, or not whole
        return gzip.decompress(kept.read_bytes()).decode()
    made = vl_convert.javascript_bundle(ours)
    with suppress(OSError):  # it can always be made again
        kept.parent.mkdir(parents=True, exist_ok=True)
        write_file(kept, _gzipped(made))
    return made


def _cache() -> Path:
    """Where this user's programs keep what they can make again."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "agentbench-lab"


def _gzipped(script: str) -> bytes:
    """The same bytes whenever they are made."""
    return gzip.compress(script.encode(), 9, mtime=0)


@cache
def _packed() -> str:
    return base64.b64encode(_gzipped(prepare().result())).decode()


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
