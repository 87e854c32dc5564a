"""Files of a work folder and what is expected of it: their forms in a case file, and what is wrong with one."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping

from msgspec import Struct

WORK_KEYS = ("files", "command")
"""The keys of an expectation that are about a work folder."""
Texts = str | tuple[str, ...]


def regex_faults(pattern: str, what: str) -> Iterator[str]:
    """Why a pattern can judge nothing: it is none, or it fits every text. `what` names the texts (answer, output)."""
    try:
        found = re.compile(pattern).search("")
    except (re.error, RecursionError, OverflowError) as error:
        yield f"regex: {error}"
    else:
        if found is not None:
            yield f"regex: fits the empty text, and so every {what}"


class Given(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A file's content as `text` or as `base64`, and its mode in octal digits."""

    text: str | None = None
    base64: str | None = None
    mode: str = "644"

    @property
    def data(self) -> bytes:
        return content(self.text if self.text is not None else Base64(self.base64 or ""))

    def faults(self) -> Iterator[str]:
        """What is wrong with it."""
        if (self.text is None) == (self.base64 is None):
            yield "needs one of text, base64"
        if self.base64 is not None:
            yield from Base64(self.base64).faults()
        if re.fullmatch(r"0?[0-7]{3}", self.mode) is None:
            yield f"mode {self.mode!r} must be three octal digits, such as 755"


class Base64(Struct, frozen=True, forbid_unknown_fields=True):
    """Bytes that are no text."""

    base64: str

    def faults(self) -> Iterator[str]:
        """What is wrong with it."""
        try:
            base64.b64decode(self.base64, validate=True)
        except (binascii.Error, ValueError):
            yield "base64 is no base64"


class ExpectedFile(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a file has to be; each key that is given must hold.

    `exact`: these bytes. `contains`: each text occurs. `line`: each is a whole line of it, without its end. `absent`:
    there is nothing at the path. `{}`: there is a file.
    """

    exact: str | Base64 | None = None
    contains: Texts = ()
    line: Texts = ()
    absent: bool = False

    def faults(self) -> Iterator[str]:
        """What is wrong with the expectation itself."""
        if self.absent and (self.exact is not None or self.contains or self.line):
            yield "absent and a content exclude each other"
        yield from _content_faults(self.exact, self.contains, self.line)


class ExpectedOutput(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a command has to print; each key that is given must hold.

    `exact`, `contains` and `line` as for a file; `regex`: Python's `re.search` finds it.
    """

    exact: str | Base64 | None = None
    contains: Texts = ()
    line: Texts = ()
    regex: str | None = None

    def faults(self) -> Iterator[str]:
        """What is wrong with the expectation itself."""
        if self == ExpectedOutput():
            yield "needs one of exact, contains, line, regex"
        yield from _content_faults(self.exact, self.contains, self.line)
        if self.regex is not None:
            yield from regex_faults(self.regex, "output")


class ExpectedCommand(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A command that is run in a copy of the work folder when the trial is over, and how it has to end.

    In the copy the world's protected files are as the case has them, and `files` are there that the agent never saw.
    `exit` null takes any.
    """

    run: str
    exit: int | None = 0
    stdout: ExpectedOutput | None = None
    stderr: ExpectedOutput | None = None
    timeout_s: float = 60.0
    files: dict[str, str | Given] = {}

    def faults(self) -> Iterator[str]:
        """What is wrong with the expectation itself."""
        if not self.run.strip():
            yield "run must not be blank"
        if not 0 < self.timeout_s <= 86_400:
            yield "timeout_s must be a number of seconds above 0"
        if self.exit is None and self.stdout is None and self.stderr is None:
            yield "any exit and any output: nothing is expected"
        for name, output in (("stdout", self.stdout), ("stderr", self.stderr)):
            if output is not None:
                yield from (f"{name}: {text}" for text in output.faults())
        yield from (f"files: {text}" for text in path_faults(self.files))
        yield from given_faults(self.files)


def work_faults(files: Mapping[str, ExpectedFile] | None, command: ExpectedCommand | None) -> Iterator[str]:
    """What is wrong with the expectations of a work folder, as `key: what`."""
    if files is not None:
        if not files:
            yield "files: names no file"
        yield from (f"files: {text}" for text in path_faults(files, together=False))
        for path, expected in files.items():
            yield from (f"files: {path}: {text}" for text in expected.faults())
    if command is not None:
        yield from (f"command: {text}" for text in command.faults())


def path_faults(paths: Mapping[str, object], *, together: bool = True) -> Iterator[str]:
    """What is wrong with paths of files in a work folder; `together`: they have to lie in it at once."""
    for path in paths:
        wrong = wrong_path(path)
        if wrong is not None:
            yield f"{path!r} {wrong}"
            continue
        parts = path.split("/")
        for count in range(1, len(parts)):
            above = "/".join(parts[:count])
            if together and above in paths:
                yield f"{path!r} lies in {above!r}, which is a file"


def given_faults(files: Mapping[str, str | Given]) -> Iterator[str]:
    """What is wrong with the contents of files."""
    for path, given in files.items():
        if isinstance(given, Given):
            yield from (f"files: {path}: {text}" for text in given.faults())


def wrong_path(path: str) -> str | None:
    """What is wrong with a path that a case gives to a file of a work folder; None when it is sound."""
    if not path or "\0" in path:
        return "is no path"
    if path.startswith("/"):
        return "must be relative to the work folder"
    parts = path.split("/")
    if ".." in parts:
        return "leads out with '..'"
    if "" in parts or "." in parts:
        return "has an empty name or '.' in it"
    if any(len(part.encode(errors="replace")) > 255 for part in parts):
        return "has a name longer than 255 bytes"
    if len(parts) > 100:
        return "is nested deeper than 100 folders"
    return None


def content(given: str | Base64) -> bytes:
    """The bytes that a text (as UTF-8) or a base64 stands for."""
    return given.encode() if isinstance(given, str) else base64.b64decode(given.base64)


def texts(given: Texts) -> tuple[str, ...]:
    """One text or several, as several."""
    return (given,) if isinstance(given, str) else given


def _content_faults(exact: str | Base64 | None, contains: Texts, line: Texts) -> Iterator[str]:
    if isinstance(exact, Base64):
        yield from (f"exact: {text}" for text in exact.faults())
    if any(not text for text in texts(contains)):
        yield "contains: an empty text is in every file"
    for text in texts(line):
        # before a line end, `\r` belongs to it
        if "\n" in text or text.endswith("\r"):
            yield "line: a line has no line end in it"


__all__ = [
    "WORK_KEYS",
    "Base64",
    "ExpectedCommand",
    "ExpectedFile",
    "ExpectedOutput",
    "Given",
    "content",
    "given_faults",
    "path_faults",
    "texts",
    "work_faults",
    "wrong_path",
]
