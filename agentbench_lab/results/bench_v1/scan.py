"""JSON text token by token: for the files that must be read, checked or laid out with every token kept as it is."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

MAX_DEPTH = 10_000
"""Levels of nesting that the format's own reader allows."""

# a group is not taken possessively: until Python 3.11.5 one that fails half-way keeps what it had taken
_TOKEN = re.compile(
    rb"""[ \t\r\n]*+(
        "[^"\\\x00-\x1f]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*+)*"
        | -?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?
        | [{}\[\]:,] | true | false | null
    )""",
    re.VERBOSE,
)
_SURROGATE = re.compile("[\ud800-\udfff]")
_CLOSERS = {b"{": b"}", b"[": b"]"}
_NO_VALUES = frozenset({b"}", b"]", b":", b","})


class Malformed(ValueError):
    """Text that is not JSON, or is nested too deep; the message says where."""


class Scanner:
    """A cursor over JSON text. `token` is the current one, data[start:end]; a read value leaves its last token there."""

    __slots__ = ("_depth", "data", "end", "start", "token")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.token = b""
        self.start = self.end = self._depth = 0

    def advance(self) -> bytes:
        """Go to the next token."""
        found = _TOKEN.match(self.data, self.end)
        if found is None:
            at = len(self.data) - len(self.data[self.end :].lstrip(b" \t\r\n"))
            what = "the text ends early" if at == len(self.data) else "unexpected text"
            raise Malformed(f"{what} at byte {at}")
        self.start, self.end = found.span(1)
        self.token = found[1]
        return self.token

    def _unexpected(self) -> Malformed:
        return Malformed(f"unexpected {self.token[:40].decode('utf-8', 'replace')} at byte {self.start}")

    def _enter(self) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise Malformed(f"more than {MAX_DEPTH} levels of nesting at byte {self.start}")

    def members(self) -> Iterator[str]:
        """The keys of the object at the cursor; each value is to be read before the next key is asked for."""
        self._enter()
        if self.advance() != b"}":
            while True:
                yield text_of(self._key())
                if self.advance() == b"}":
                    break
                if self.token != b",":
                    raise self._unexpected()
                self.advance()
        self._depth -= 1

    def items(self) -> Iterator[None]:
        """The elements of the array at the cursor; each is to be read before the next is asked for."""
        self._enter()
        if self.advance() != b"]":
            while True:
                yield
                if self.advance() == b"]":
                    break
                if self.token != b",":
                    raise self._unexpected()
                self.advance()
        self._depth -= 1

    def value(self) -> bytes:
        """Read any value, without recursion however deep it is, and give its text."""
        begin = self.start
        awaited: list[bytes] = []  # the closers of what is open, the outermost first
        while True:
            closer = _CLOSERS.get(self.token)
            if closer is not None:
                self._enter()
                if self.advance() != closer:
                    awaited.append(closer)
                    if closer == b"}":
                        self._key()
                    continue
                self._depth -= 1
            elif self.token in _NO_VALUES:
                raise self._unexpected()
            while awaited:
                if self.advance() == b",":
                    self.advance()
                    if awaited[-1] == b"}":
                        self._key()
                    break
                if self.token != awaited.pop():
                    raise self._unexpected()
                self._depth -= 1
            else:
                return self.data[begin : self.end]

    def _key(self) -> bytes:
        """Read a key and its colon, go on to the value, and give the key's token."""
        key = self.token
        if key[:1] != b'"' or self.advance() != b":":
            raise self._unexpected()
        self.advance()
        return key


def tokens(data: bytes) -> Iterator[bytes]:
    """The tokens of JSON text that is known to be well-formed."""
    return (found[1] for found in _TOKEN.finditer(data))


def text_of(token: bytes) -> str:
    """The text of a string token. An invalid byte, and half of a surrogate pair, becomes U+FFFD."""
    text = _SURROGATE.sub("\ufffd", token.decode("utf-8", "surrogateescape"))
    if "\\" not in text:
        return text[1:-1]
    return _SURROGATE.sub("\ufffd", json.loads(text))
