"""What is read off a work folder when a trial is over: expected files, and what the check command did."""

from __future__ import annotations

import base64
import hashlib

from msgspec import Struct

KEPT = 262_144
"""Bytes of a file, or of a command's stream, that are kept as evidence: of a longer one half from its beginning and half
from its end; its size and digest say the rest."""
_HALF = KEPT // 2


class Blob(Struct, frozen=True, gc=False, omit_defaults=True):
    """Bytes as JSON can hold them: `text` where they are UTF-8, else `base64`; of more than KEPT bytes the beginning,
    and the end as `end_text` or `end_base64`.

    `size` is how many there were. `sha256` is that of all of them; None where they are all here, or were too many to be
    read.
    """

    size: int
    text: str | None = None
    base64: str | None = None
    sha256: str | None = None
    end_text: str | None = None
    end_base64: str | None = None

    @property
    def data(self) -> bytes:
        """The bytes that are kept: all of them, or those of the beginning."""
        return _bytes(self.text, self.base64)

    @property
    def end(self) -> bytes:
        """The bytes that are kept of the end, where some before them are not."""
        return _bytes(self.end_text, self.end_base64)

    @property
    def whole(self) -> bool:
        """Whether all bytes are here."""
        return len(self.data) == self.size

    @property
    def cut(self) -> str:
        """What is kept where not all bytes are; empty where they are."""
        if self.whole:
            return ""
        end = f" and the last {len(self.end)}" if self.end else ""
        return f"cut to the first {len(self.data)}{end} of {self.size} bytes"


def blob(data: bytes, size: int | None = None, end: bytes = b"") -> Blob:
    """Evidence of bytes; `size` is how many there were, when more than are given: `data` then are the first of them and
    `end` the last."""
    if size is None or size == len(data) + len(end):
        data, end = data + end, b""
    size = len(data) if size is None else size
    if len(data) == size <= KEPT:
        return Blob(size, *_said(data))
    digest = hashlib.sha256(data).hexdigest() if len(data) == size else None
    begins = data[:_HALF]
    ends = (data if digest else end)[-_HALF:]
    torn = len(ends) - len(ends.lstrip(_WITHIN))
    begins, ends = begins[: len(begins) - _torn(begins)], ends[torn if torn < 4 else 0 :]
    return Blob(size, *_said(begins), digest, *(_said(ends) if ends else ()))


_WITHIN = bytes(range(0x80, 0xC0))
"""Bytes that go on with a character of UTF-8, and begin none: a text that was cut within one is a text all the same."""


def _torn(data: bytes) -> int:
    """How many bytes at the end begin a character of UTF-8 that is not there whole."""
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return len(data) - error.start if error.reason == "unexpected end of data" else 0
    return 0


def _said(data: bytes) -> tuple[str | None, str | None]:
    try:
        return data.decode(), None
    except UnicodeDecodeError:
        return None, base64.b64encode(data).decode()


def _bytes(text: str | None, encoded: str | None) -> bytes:
    return text.encode() if text is not None else base64.b64decode(encoded or "")


class FileSeen(Struct, frozen=True, gc=False, omit_defaults=True):
    """What lay at an expected path: a file with its bytes, else the word for what it was, `nothing` included."""

    what: str
    blob: Blob | None = None


class CommandSeen(Struct, frozen=True, gc=False, omit_defaults=True):
    """How the check command ended. `exit` is None where it was ended from outside: `timed_out`, or `ended` says why.

    `not_run` says why it could not be run on what the agent left behind.
    """

    exit: int | None = None
    stdout: Blob = Blob(0, text="")
    stderr: Blob = Blob(0, text="")
    timed_out: bool = False
    ended: str = ""
    not_run: str = ""


class WorkSeen(Struct, frozen=True, gc=False, omit_defaults=True):
    """A work folder as far as a grade reads it, and the level at which it was kept."""

    level: str
    files: dict[str, FileSeen] = {}
    command: CommandSeen | None = None


__all__ = ["KEPT", "Blob", "CommandSeen", "FileSeen", "WorkSeen", "blob"]
