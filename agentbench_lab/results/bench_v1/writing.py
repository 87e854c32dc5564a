"""From a file's fields to its bytes: two-space indentation, keys of maps sorted, every raw token kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import NoneType
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw
from msgspec.structs import astuple

from agentbench_lab.outcomes import Taxonomy
from agentbench_lab.results.bench_v1.model import INT64_MAX, BenchError, Trial, Wire
from agentbench_lab.results.bench_v1.scan import Malformed, Scanner, tokens

if TYPE_CHECKING:
    from agentbench_lab.results.bench_v1.file import BenchFile

# signs that are escaped in every text and every raw value; outside of texts they cannot occur
_ESCAPES = (
    (b"<", rb"\u003c"),
    (b">", rb"\u003e"),
    (b"&", rb"\u0026"),
    ("\u2028".encode(), rb"\u2028"),
    ("\u2029".encode(), rb"\u2029"),
)
_FILE_TYPES: dict[str, type | tuple[type, ...]] = {
    "commit": str,
    "started_at": str,
    "options": dict,
    "taxonomy": Taxonomy,
    "trials": (list, NoneType),
    "notes": list,
}
_TRIAL_TYPES = tuple(map(type, astuple(Trial(scenario="", mode="", repeat=1))))
_NUMBERS = slice(Trial.__struct_fields__.index("steps"), Trial.__struct_fields__.index("wall_ns") + 1)

_encode = msgspec.json.Encoder(order="deterministic").encode
_check_raw = msgspec.json.Decoder(Raw).decode


def escaped(text: bytes) -> bytes:
    """JSON text with the signs escaped that HTML or JavaScript would misread."""
    for sign, escape in _ESCAPES:
        text = text.replace(sign, escape)
    return text


def check_types(file: BenchFile) -> None:
    """Raise BenchError for a field that does not hold what it declares: annotations alone stop nobody."""
    for name, wanted in _FILE_TYPES.items():
        _check_type(f"the file: {name}", getattr(file, name), wanted)
    for outcome in file.taxonomy.outcomes:
        for text in (outcome.name, outcome.cls, outcome.over, outcome.label):
            _check_type("the taxonomy: an outcome's field", text, str)
    _check_texts(file.notes, "the file: notes")
    _check_raws(file.options, "the file: options")
    for number, trial in enumerate(file.trials or ()):
        _check_trial(trial, number)


def encode(wire: Wire) -> bytes:
    """The bytes of a checked file, one newline at the end. Raises BenchError for text that is no Unicode."""
    try:
        compact = escaped(_encode(wire))
    except UnicodeEncodeError as error:
        context = error.object[max(0, error.start - 20) : error.end]
        raise _unwritable(f"text with half of a surrogate pair: {context!r}") from None
    try:
        return msgspec.json.format(compact, indent=2) + b"\n"
    except (msgspec.DecodeError, RecursionError):  # it knows no lone surrogates and no deep nesting
        return _laid_out(compact) + b"\n"


def compact(value: Raw) -> str:
    """A raw value's text without white space between its tokens; as it is where it is no JSON."""
    text = bytes(value)
    return (b"".join(tokens(text)) if _is_json(text) else text).decode("utf-8", "replace")


def _unwritable(problem: str) -> BenchError:
    return BenchError("encode", f"bench: cannot be written: {problem}")


def _check_type(where: str, value: object, wanted: type | tuple[type, ...]) -> None:
    if not isinstance(value, wanted):
        kinds = wanted if isinstance(wanted, tuple) else (wanted,)
        raise _unwritable(
            f"{where} is {value!r:.60}, not of type {' or '.join(kind.__name__ for kind in kinds)}"
        )


def _check_texts(texts: Iterable[str], where: str) -> None:
    for text in texts:
        _check_type(where, text, str)


def _check_trial(trial: Trial, number: int) -> None:
    _check_type(f"trial {number}", trial, Trial)
    values = astuple(trial)
    if tuple(map(type, values)) != _TRIAL_TYPES:
        for name, value, wanted in zip(trial.__struct_fields__, values, _TRIAL_TYPES, strict=True):
            if type(value) is not wanted:
                raise _unwritable(f"trial {number}: {name} is {value!r:.60}, not of type {wanted.__name__}")
    if max(trial.repeat, *values[_NUMBERS]) > INT64_MAX:
        raise _unwritable(f"trial {number}: a number does not fit into 64 bits")
    if trial.notes:
        _check_texts(trial.notes, f"trial {number}: notes")
    _check_raws(trial.extra, f"trial {number}: extra")


def _check_raws(values: Mapping[Any, Any], where: str) -> None:
    for key, value in values.items():
        if type(value) is not Raw or type(key) is not str:
            raise _unwritable(f"{where}[{key!r}] is no raw JSON value under a text (make one with raw())")
        try:
            _check_raw(value)
        except (msgspec.DecodeError, RecursionError):
            if not _is_json(bytes(value)):
                raise _unwritable(f"{where}[{key!r}] is not JSON") from None


def _is_json(text: bytes) -> bool:
    scanner = Scanner(text)
    try:
        scanner.advance()
        scanner.value()
    except Malformed:
        return False
    return not text[scanner.end :].strip(b" \t\r\n")


def _laid_out(compact: bytes) -> bytes:
    """The same tokens with two-space indentation."""
    try:
        scanner = Scanner(compact)
        scanner.advance()
        scanner.value()
    except Malformed as error:
        raise _unwritable(str(error)) from None
    return b"".join(_layout(tokens(compact)))


def _layout(tokens: Iterable[bytes]) -> Iterable[bytes]:
    depth = 0
    before = b""
    for token in tokens:
        opened = before in (b"{", b"[")
        if token in (b"}", b"]"):
            depth -= 1
            if not opened:
                yield b"\n" + b"  " * depth
        elif opened or before == b",":
            yield b"\n" + b"  " * depth
        elif before == b":":
            yield b" "
        yield token
        depth += token in (b"{", b"[")
        before = token
