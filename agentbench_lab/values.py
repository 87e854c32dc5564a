"""JSON values: one notion of equality, of a private copy, and of canonical bytes."""

from __future__ import annotations

import hashlib
import math
from typing import Any

import msgspec

_SCALARS = frozenset({str, int, float, bool, type(None)})
_encode = msgspec.json.Encoder(order="sorted").encode

MAX_DEPTH = 100
"""How deep a JSON value may be nested: far beyond what tools take, and well within what every reader of JSON can."""


class NotJson(ValueError):
    """A value that JSON cannot hold; the message says where."""

    def __init__(self, reason: str, path: str = "") -> None:
        self.reason = reason
        self.path = path
        where = path if len(path) <= 120 else f"{path[:119]}…"
        super().__init__(f"${where}: {reason}")


def a_kind(kind: str) -> str:
    """The name of a kind with its article: `a str`, `an int`."""
    return f"an {kind}" if kind[:1] in "aeiouAEIOU" else f"a {kind}"


def same(a: Any, b: Any) -> bool:
    """Whether two JSON values are equal: 1 equals 1.0, true is never 1, "1" is never 1, objects have no order."""
    if type(a) is str or type(b) is str:
        return type(a) is type(b) and a == b
    if type(a) is bool or type(b) is bool or a is None or b is None:
        return a is b
    if isinstance(a, dict):
        if not isinstance(b, dict) or a.keys() != b.keys():
            return False
        for key, value in a.items():  # noqa: SIM110 - half the time of all(...), and every claim goes through here
            if not same(value, b[key]):
                return False
        return True
    if isinstance(a, list | tuple):
        return isinstance(b, list | tuple) and len(a) == len(b) and all(map(same, a, b))
    return not isinstance(b, dict | list | tuple) and bool(a == b)


def plain(value: Any) -> Any:
    """A private copy of a JSON value (tuples become lists); raises NotJson with the path of what JSON cannot hold."""
    return _plain(value, MAX_DEPTH)


def _plain(value: Any, room: int) -> Any:
    kind = type(value)
    if kind is str:
        return value if value.isascii() else _encodable(value)
    if kind in _SCALARS:
        if kind is float and not math.isfinite(value):
            raise NotJson(f"{value} is no JSON number")
        if kind is int and not -(2**63) <= value < 2**64:
            raise NotJson("the integer does not fit into 64 bits")
        return value
    if kind is not dict and kind is not list and kind is not tuple:
        raise NotJson(f"{a_kind(kind.__name__)} is no JSON value")
    if not room:
        raise NotJson(f"nested deeper than {MAX_DEPTH} levels")
    at: int | str | None = None
    try:
        if kind is dict:
            copy = {}
            for key, item in value.items():
                at = None
                if type(key) is not str:
                    raise NotJson(f"a key is {a_kind(type(key).__name__)}, not text")
                at = key if key.isascii() else _encodable(key)
                copy[at] = _plain(item, room - 1)
            return copy
        entries: list[Any] = []
        for item in value:
            at = len(entries)
            entries.append(_plain(item, room - 1))
        return entries
    except NotJson as wrong:
        here = "" if at is None else f"[{at}]" if type(at) is int else f".{at:.80}"
        raise NotJson(wrong.reason, here + wrong.path) from None


def _encodable(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise NotJson(f"text with a lone surrogate at {error.start}") from None
    return text


def canonical(value: Any) -> bytes:
    """The value's one canonical form: UTF-8 JSON, keys sorted, no white space."""
    return _encode(value)


def digest(value: Any) -> str:
    """SHA-256 of the canonical form, in hex."""
    return hashlib.sha256(_encode(value)).hexdigest()
