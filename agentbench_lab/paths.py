"""Dotted paths into JSON values, and values changed along a path without touching what they were made from.

`orders.W77.status` is a key of an object of an object; in a list a segment is an index from 0 (`tags.0`). A dot within
a key is written `\\.`, a backslash `\\\\`. Nothing here changes a value in place: what is changed is copied along the
path, and all that lies beside the path is shared with the value before.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from agentbench_lab.errors import counted
from agentbench_lab.values import same

Path = tuple[str, ...]
ABSENT = msgspec.UNSET
"""What stands at a path where there is nothing; null is something."""


class BadPath(ValueError):
    """Text that is no path, or a path that leads nowhere in a value; the message says why."""


class Change(Struct, frozen=True, gc=False, omit_defaults=True):
    """What differs at one path: the value before and after, each left out where there was none."""

    path: str
    old: Any = ABSENT
    new: Any = ABSENT


def split(text: str) -> Path:
    """The segments of a path; raises BadPath for one that is empty, has an empty segment, or a stray backslash."""
    segments, segment = [], ""
    letters = iter(text)
    for letter in letters:
        if letter == "\\":
            escaped = next(letters, "")
            if escaped not in (".", "\\") or not escaped:
                raise BadPath(rf"path {text!r}: a backslash is written \\, and only a dot is escaped (\.)")
            segment += escaped
        elif letter == ".":
            segments.append(segment)
            segment = ""
        else:
            segment += letter
    segments.append(segment)
    if not all(segments):
        raise BadPath(f"path {text!r}: has an empty segment" if text else "a path must not be empty")
    return tuple(segments)


def join(path: Sequence[str]) -> str:
    """The path as text, such that `split` gives it back."""
    return ".".join([segment.replace("\\", "\\\\").replace(".", "\\.") for segment in path])


def index(segment: str) -> int | None:
    """The place in a list that a segment names, or None when it names none."""
    plain = segment.isascii() and segment.isdigit() and (segment == "0" or segment[0] != "0")
    return int(segment) if plain and len(segment) < 16 else None


def look(value: Any, path: Sequence[str]) -> Any:
    """What stands at the path, or ABSENT."""
    for segment in path:
        if type(value) is dict:
            value = value.get(segment, ABSENT)
        elif type(value) is list:
            at = index(segment)
            value = value[at] if at is not None and at < len(value) else ABSENT
        else:
            return ABSENT
        if value is ABSENT:
            return ABSENT
    return value


def put(value: Any, path: Path, new: Any) -> Any:
    """The value with `new` at the path: a key that is there or not, or an index that is there.

    Raises BadPath when the way there is missing, or leads through what holds nothing.
    """

    def change(holder: Any, last: str, at: int) -> Any:
        if type(holder) is list:
            copy = list(holder)
            copy[_place(holder, path, at)] = new
            return copy
        return {**holder, last: new}

    return _changed(value, path, change)


def remove(value: Any, path: Path) -> Any:
    """The value without what stands at the path; raises BadPath when nothing does."""

    def change(holder: Any, last: str, at: int) -> Any:
        if type(holder) is list:
            place = _place(holder, path, at)
            return [*holder[:place], *holder[place + 1 :]]
        if last not in holder:
            raise BadPath(f"{join(path)} is not there")
        return {key: item for key, item in holder.items() if key != last}

    return _changed(value, path, change)


def push(value: Any, path: Path, item: Any) -> Any:
    """The value with `item` at the end of the list at the path; raises BadPath when there is no list."""
    found = look(value, path)
    if type(found) is not list:
        raise BadPath(f"{join(path)} is {named(found)}, and no list")
    return put(value, path, [*found, item])


def _changed(value: Any, path: Path, change: Callable[[Any, str, int], Any]) -> Any:
    holders = [value]
    for at, segment in enumerate(path[:-1]):
        holder = _holder(holders[-1], path, at)
        if type(holder) is list:
            holders.append(holder[_place(holder, path, at)])
        elif segment in holder:
            holders.append(holder[segment])
        else:
            raise BadPath(f"{join(path[: at + 1])} is not there")
    last = len(path) - 1
    new = change(_holder(holders[-1], path, last), path[-1], last)
    for at in range(last - 1, -1, -1):
        holder = holders[at]
        if type(holder) is list:
            copy: Any = list(holder)
            copy[int(path[at])] = new
        else:
            copy = {**holder, path[at]: new}
        new = copy
    return new


def _holder(value: Any, path: Path, at: int) -> Any:
    if type(value) is not dict and type(value) is not list:
        raise BadPath(f"{join(path[:at])} is {named(value)}, and holds nothing")
    return value


def _place(holder: list[Any], path: Path, at: int) -> int:
    place = index(path[at])
    if place is None:
        raise BadPath(f"{join(path[:at])} is a list: {path[at]!r} is no index in it")
    if place >= len(holder):
        raise BadPath(
            f"{join(path[:at])} has {counted(len(holder), 'entry', 'entries')}: there is no index {place}"
        )
    return place


def named(value: Any) -> str:
    """What kind of value it is, as a person says it."""
    if value is ABSENT:
        return "not there"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, str):
        return "text"
    return "an object" if isinstance(value, dict) else "a list" if isinstance(value, list) else "a number"


def difference(old: Any, new: Any, touched: Collection[Path] | None = None) -> list[Change]:
    """What has to be changed in `old` to make it `new`, the smallest parts that differ, sorted by path.

    Two values that come from the same `old` are equal exactly when their differences are. Where only the paths
    `touched` can differ, only they are looked at; parts that both values share are never entered.
    """
    found: list[tuple[Path, Any, Any]] = []
    if touched is None:
        found += _differences(old, new, ())
    else:
        for path in _outermost(touched):
            found += _differences(look(old, path), look(new, path), path)
    return [Change(join(path), a, b) for path, a, b in sorted(found, key=_sorting)]


def _sorting(found: tuple[Path, Any, Any]) -> list[tuple[int, int, str]]:
    return [(0, at, "") if (at := index(segment)) is not None else (1, 0, segment) for segment in found[0]]


def _outermost(touched: Collection[Path]) -> Iterator[Path]:
    """Each touched path that does not lie within another one."""
    inside: Path | None = None
    for path in sorted(set(touched)):
        if inside is None or path[: len(inside)] != inside:
            inside = path
            yield path


def _differences(old: Any, new: Any, path: Path) -> Iterator[tuple[Path, Any, Any]]:
    if old is new:
        return
    if type(old) is dict and type(new) is dict and "" not in old and "" not in new:
        # an empty key has no path: what holds one is told as a whole
        for key, item in old.items():
            other = new.get(key, ABSENT)
            if item is not other:
                yield from _differences(item, other, (*path, key))
        for key, item in new.items():
            if key not in old:
                yield (*path, key), ABSENT, item
    elif type(old) is list and type(new) is list:
        for at in range(max(len(old), len(new))):
            item = old[at] if at < len(old) else ABSENT
            other = new[at] if at < len(new) else ABSENT
            if item is not other:
                yield from _differences(item, other, (*path, str(at)))
    elif old is ABSENT or new is ABSENT or not same(old, new):
        yield path, old, new


__all__ = [
    "ABSENT",
    "BadPath",
    "Change",
    "Path",
    "difference",
    "index",
    "join",
    "look",
    "named",
    "push",
    "put",
    "remove",
    "split",
]
