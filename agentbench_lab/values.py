"""JSON values: one notion of equality, of a private copy, and of canonical bytes."""

from __future__ import annotations

import hashlib
import math
from typing import Any

import msgspec

_SCALARS = frozenset({str, int, float, bool, type(None)})
_encode = msgspec.json.Encoder(order="sorted").encode


class NotJson(ValueError):
    """A value that JSON cannot hold; the message says where."""


def same(a: Any, b: Any) -> bool:
    """Whether two JSON values are equal: 1 equals 1.0, true is never 1, "1" is never 1, objects have no order."""
    if type(a) is str or type(b) is str:
        return type(a) is type(b) and a == b
    if type(a) is bool or type(b) is bool or a is None or b is None:
        return a is b
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return isinstance(b, list | tuple) and len(a) == len(b) and all(map(same, a, b))
    return not isinstance(b, dict | list | tuple) and bool(a == b)


def plain(value: Any, where: str = "$") -> Any:
    """A private copy of a JSON value (tuples become lists); raises NotJson with the path of what JSON cannot hold."""
    kind = type(value)
    if kind is dict:
        if all(type(k) is str and type(v) is str for k, v in value.items()):
            return dict(value)
        copy = {}
        for key, item in value.items():
            if type(key) is not str:
                raise NotJson(f"{where}: the key {key!r} is not a string")
            copy[key] = plain(item, f"{where}.{key}")
        return copy
    if kind is list or kind is tuple:
        return [plain(item, f"{where}[{n}]") for n, item in enumerate(value)]
    if kind in _SCALARS:
        if kind is float and not math.isfinite(value):
            raise NotJson(f"{where}: {value} is no JSON number")
        if kind is int and not -(2**63) <= value < 2**64:
            raise NotJson(f"{where}: the integer {value} does not fit into 64 bits")
        if kind is str and not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError as error:
                raise NotJson(f"{where}: text with a lone surrogate at {error.start}") from None
        return value
    raise NotJson(f"{where}: a {kind.__name__} is no JSON value")


def canonical(value: Any) -> bytes:
    """The value's one canonical form: UTF-8 JSON, keys sorted, no white space."""
    return _encode(value)


def digest(value: Any) -> str:
    """SHA-256 of the canonical form, in hex."""
    return hashlib.sha256(_encode(value)).hexdigest()
