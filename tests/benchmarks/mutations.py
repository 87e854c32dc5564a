"""Damage to small valid JSON documents: one node deleted or replaced, wherever it lies."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import strategies as st

ODD = st.sampled_from(
    [
        None,
        True,
        -1,
        0,
        10**400,
        2**63,
        -0.5,
        1e308,
        "",
        "x",
        "2026-13-45",
        "é\u2028",
        [],
        [None],
        {},
        {"": 1},
        [[{}]],
    ]
)


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every node below the root."""
    below = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path for key, item in below for path in [(*at, key), *places(item, (*at, key))]]


@st.composite
def damaged(draw: st.DrawFn, document: Any) -> Any:
    """The document with one to three nodes deleted or replaced."""
    value = copy.deepcopy(document)
    for _ in range(draw(st.integers(1, 3))):
        paths = places(value)
        if not paths:
            break
        *above, last = draw(st.sampled_from(paths))
        holder = value
        for key in above:
            holder = holder[key]
        if draw(st.booleans()):
            del holder[last]
        else:
            holder[last] = copy.deepcopy(draw(ODD))
    return value
