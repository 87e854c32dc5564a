"""From bytes to what they say. Nothing is judged here but the JSON itself: see `model.check` for the rest.

There are two ways. The quick one reads with msgspec, writes what it has read, and trusts itself only where that gives
the very same tokens: then nothing was there twice, lost or coerced. Every other text, valid or not, is read the careful
way, token by token: names match without regard to case, of two values for a name the last one holds (objects merge),
null leaves a field as it was, and an invalid byte in a text becomes U+FFFD.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import NoneType
from typing import Any, TypeVar

import msgspec
from msgspec import Raw, Struct

from agentbench_lab.results.bench_v1.model import (
    INT64_MAX,
    INT64_MIN,
    OutcomeCount,
    Summary,
    Trial,
    Wire,
    WireOutcome,
    WireTaxonomy,
    invalid,
)
from agentbench_lab.results.bench_v1.scan import Malformed, Scanner, text_of
from agentbench_lab.results.bench_v1.times import Moment
from agentbench_lab.results.bench_v1.writing import escaped

S = TypeVar("S", bound=Struct)
Read = Callable[[Scanner, Any], Any]
"""Reads the value at the cursor into a field that holds the second argument, and gives what it holds then."""
Empty = Callable[[], Any]
"""Makes what a field holds before anything is read into it."""
Kind = tuple[Read, Empty]
Field = tuple[str, Read, Empty]
"""A field's attribute, its reader, and what it holds before."""

_decode = msgspec.json.Decoder(Wire).decode
_encode = msgspec.json.Encoder().encode


def parse(data: bytes) -> Wire:
    """What the file says, before any of it is judged. Raises BenchError for what is no such JSON object."""
    wire = _quick(data)
    if wire is None:
        try:
            wire = _careful(data)
        except ValueError as error:  # malformed text, or a value of the wrong type
            raise invalid(str(error)) from None
    return wire


def _quick(data: bytes) -> Wire | None:
    try:
        wire = _decode(data)
        Moment.parse(wire.started_at)
        same = _compact(_encode(wire)) == _compact(data)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return None
    return wire if same else None


def _compact(data: bytes) -> bytes:
    return escaped(msgspec.json.format(data, indent=-1))


def _careful(data: bytes) -> Wire:
    scanner = Scanner(data)
    scanner.advance()
    wire = _wire(scanner, None)
    # the format's own reader asks only whether another element of something could follow
    if data[scanner.end :].lstrip(b" \t\r\n")[:1] not in (b"", b"]", b"}"):
        raise Malformed("data after the file")
    return wire


def _wrong(scanner: Scanner, wanted: str) -> ValueError:
    found = scanner.token[:40].decode("utf-8", "replace")
    return ValueError(f"{wanted} is wanted, not {found} at byte {scanner.start}")


def _text(scanner: Scanner, old: str) -> str:
    if scanner.token == b"null":
        return old
    if scanner.token[:1] != b'"':
        raise _wrong(scanner, "a string")
    return text_of(scanner.token)


def _time(scanner: Scanner, old: str) -> str:
    if scanner.token == b"null":
        return old
    if scanner.token[:1] != b'"':
        raise _wrong(scanner, "a time")
    time = scanner.token[1:-1].decode("utf-8", "replace")  # escapes are not undone: none is in a valid time
    Moment.parse(time)
    return time


def _integer(scanner: Scanner, old: int) -> int:
    token = scanner.token
    if token == b"null":
        return old
    if not token.removeprefix(b"-").isdigit() or len(token) > 20 or not INT64_MIN <= int(token) <= INT64_MAX:
        raise _wrong(scanner, "a 64-bit integer")
    return int(token)


def _raw(scanner: Scanner, old: object) -> Raw:
    return Raw(scanner.value())


def _list(item: Read, empty: Empty = NoneType) -> Read:
    def read(scanner: Scanner, old: object) -> Any:
        if scanner.token == b"null":
            return []
        if scanner.token != b"[":
            raise _wrong(scanner, "a list")
        return [item(scanner, empty()) for _ in scanner.items()]

    return read


def _nullable(read: Read) -> Read:
    return lambda scanner, old: None if scanner.token == b"null" else read(scanner, old)


def _map(value: Read, empty: Empty = NoneType) -> Read:
    def read(scanner: Scanner, old: dict[str, Any] | None) -> dict[str, Any]:
        if scanner.token == b"null":
            return {}
        if scanner.token != b"{":
            raise _wrong(scanner, "an object")
        return (old or {}) | {key: value(scanner, empty()) for key in scanner.members()}

    return read


def _object(struct: type[S], fields: Mapping[str, Field]) -> Callable[[Scanner, S | None], S]:
    """A reader of a struct; `fields` goes by the names in the file."""

    def read(scanner: Scanner, old: S | None) -> S:
        if old is None:
            holds = {attribute: empty() for attribute, _, empty in fields.values()}
        else:
            holds = {attribute: getattr(old, attribute) for attribute, _, _ in fields.values()}
        if scanner.token == b"{":
            for name in scanner.members():
                entry = fields.get(name) or fields.get(name.replace("\u017f", "s").lower())
                if entry is None:
                    raise ValueError(f"unknown field {name!r}")
                attribute, reader, _ = entry
                holds[attribute] = reader(scanner, holds[attribute])
        elif scanner.token != b"null":
            raise _wrong(scanner, "an object")
        return struct(**holds)

    return read


def _fields(struct: type[Struct], special: Mapping[str, Kind], otherwise: Kind) -> dict[str, Field]:
    """The fields of the struct: those that are named have their own kind, all others the same."""
    return {
        known.encode_name: (known.name, *special.get(known.name, otherwise))
        for known in msgspec.structs.fields(struct)
    }


_STRING: Kind = (_text, str)
_STRINGS: Kind = (_list(_text, str), list)
_NUMBER: Kind = (_integer, int)
_RAWS: Kind = (_map(_raw), dict)
_TRIAL_STRINGS = ("scenario", "mode", "model", "run_id", "expect", "reached", "outcome", "excluded", "error")

_trial = _object(
    Trial,
    _fields(Trial, dict.fromkeys(_TRIAL_STRINGS, _STRING) | {"notes": _STRINGS, "extra": _RAWS}, _NUMBER),
)
_count = _object(OutcomeCount, _fields(OutcomeCount, {"n": _NUMBER, "of": _NUMBER}, _STRING))
_summary = _object(
    Summary,
    _fields(
        Summary,
        {
            "mode": _STRING,
            "model": _STRING,
            "counts": (_list(_count), list),
            "totals": (_map(_integer, int), dict),
        },
        _NUMBER,
    ),
)
_outcome = _object(WireOutcome, _fields(WireOutcome, {}, _STRING))
_taxonomy = _object(
    WireTaxonomy, _fields(WireTaxonomy, {"outcomes": (_nullable(_list(_outcome)), NoneType)}, _STRING)
)
_wire = _object(
    Wire,
    _fields(
        Wire,
        {
            "started_at": (_time, str),
            "options": _RAWS,
            "taxonomy": (_taxonomy, lambda: WireTaxonomy(name="", outcomes=None)),
            "trials": (_nullable(_list(_trial)), NoneType),
            "notes": _STRINGS,
            "summaries": (_nullable(_list(_summary)), NoneType),
        },
        _STRING,
    ),
)
