"""Small damages to a JSON document: what a reader has to answer with a LabError or with a run, and nothing else."""

from __future__ import annotations

import contextlib
import copy
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from agentbench_lab.benchmarks import load_results
from agentbench_lab.errors import LabError

ODD: list[Any] = [
    None,
    True,
    -1,
    0,
    2**70,
    0.5,
    1e300,
    "",
    "x",
    "\u2028\x00",
    "\ud800",
    [],
    {},
    [[]],
    {"id": None},
    [{"role": "assistant"}],
]


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every node below the root."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path for key, one in inner for path in [(*at, key), *places(one, (*at, key))]]


@st.composite
def damaged(draw: st.DrawFn, whole: Any) -> Any:
    """The document with up to three nodes gone or replaced."""
    document = copy.deepcopy(whole)
    for _ in range(draw(st.integers(1, 3))):
        found = places(document)
        if not found:
            break
        *way, last = draw(st.sampled_from(found))
        node = document
        for key in way:
            node = node[key]
        if draw(st.booleans()):
            del node[last]
        else:
            node[last] = copy.deepcopy(draw(st.sampled_from(ODD)))
    return document


def read_or_refuse(form: str, path: Path) -> None:
    """Import the path; a LabError is as good an answer as a run, and anything else fails the test."""
    with contextlib.suppress(LabError):
        load_results(form, path)
