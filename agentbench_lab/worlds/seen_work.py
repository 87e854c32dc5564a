"""What is read off a work folder when a trial is over: expected files, and what the check command did."""

from __future__ import annotations

import base64
import hashlib

from msgspec import Struct

KEPT = 262_144
"""Bytes of a file, or of a command's stream, that are kept as evidence; of a longer one its size and digest say the rest."""


class Blob(Struct, frozen=True, gc=False, omit_defaults=True):
    """Bytes as JSON can hold them: `text` where they are UTF-8, else `base64`. At most the first KEPT of `size` bytes.

    `sha256` is that of all of them; None where they are all here, or were too many to be read.
    """

    size: int
    text: str | None = None
    base64: str | None = None
    sha256: str | None = None

    @property
    def data(self) -> bytes:
        """The bytes that are kept."""
        return self.text.encode() if self.text is not None else base64.b64decode(self.base64 or "")

    @property
    def whole(self) -> bool:
        """Whether all bytes are here."""
        return len(self.data) == self.size


def blob(data: bytes, size: int | None = None) -> Blob:
    """Evidence of bytes; `size` is how many there were, when more than are given."""
    size = len(data) if size is None else size
    kept = data[:KEPT]
    digest = hashlib.sha256(data).hexdigest() if len(kept) < size == len(data) else None
    try:
        return Blob(size, text=kept.decode(), sha256=digest)
    except UnicodeDecodeError:
        return Blob(size, base64=base64.b64encode(kept).decode(), sha256=digest)


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
