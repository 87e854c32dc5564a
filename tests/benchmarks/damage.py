"""Small damages to a JSON document: what a reader has to answer with one clear LabError or with a run, and nothing else."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

ODD: list[Any] = [
    *(None, True, 0, 1, -1, 0.5, -0.5, 2**63, 2**70, 10**400, 1e300, 1.7e308),
    *("", "x", "1", "C", "NaN", "é\u2028", "\x00", "\ud800", "2026-13-45", "a/../b", "y" * 400),
    *([], [None], [1], [[{}]], [{"role": "assistant"}], {}, {"": 1}, {"a": 1}, {"id": None}),
]


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every node below the root."""
    below = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in below:
        yield (*at, key)
        yield from places(one, (*at, key))


@st.composite
def damaged(draw: st.DrawFn, whole: Any) -> Any:
    """The document with one to three nodes gone or replaced."""
    document = copy.deepcopy(whole)
    for _ in range(draw(st.integers(1, 3))):
        found = list(places(document))
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
