"""Files damaged at one node, for importers that have to answer with a run or one clear error."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

GONE = object()
ODD: list[Any] = [
    GONE,
    None,
    True,
    0,
    -1,
    2**70,
    1e300,
    0.5,
    "",
    "x",
    "1",
    [],
    {},
    [1],
    {"a": 1},
    "\x00",
    "é" * 3,
]


def nodes(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path to every node of a JSON value but the root."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in items:
        yield (*path, key)
        yield from nodes(child, (*path, key))


def damaged(value: Any, path: tuple[Any, ...], by: Any) -> Any:
    """A copy with the node at the path deleted or replaced."""
    whole = copy.deepcopy(value)
    inside = whole
    for key in path[:-1]:
        inside = inside[key]
    if by is GONE:
        del inside[path[-1]]
    else:
        inside[path[-1]] = by
    return whole


def damages(value: Any) -> st.SearchStrategy[Any]:
    """The value, damaged at one node."""
    return st.builds(damaged, st.just(value), st.sampled_from(list(nodes(value))), st.sampled_from(ODD))
