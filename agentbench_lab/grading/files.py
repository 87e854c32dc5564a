"""Files of a work folder against what is expected of them: bytes compared, and a difference told so that it can be
found. What differs in line ends alone, or in a missing last one, is said to."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping

from agentbench_lab.errors import wanted
from agentbench_lab.expect_work import Base64, ExpectedFile, content, texts
from agentbench_lab.grading.grade import Check, cut
from agentbench_lab.worlds.seen_work import Blob, FileSeen

_BOM = b"\xef\xbb\xbf"


def file_checks(expected: Mapping[str, ExpectedFile], seen: Mapping[str, FileSeen]) -> list[Check]:
    """One check per expected file, in the order of their paths."""
    checks = []
    for path in sorted(expected):
        wrong = wrong_file(expected[path], seen.get(path, FileSeen("nothing")))
        checks.append(Check(f"file {path}", wrong is None, "" if wrong is None else f"{path}: {wrong}"))
    return checks


def wrong_file(expected: ExpectedFile, seen: FileSeen) -> str | None:
    """What is wrong with one file, or None."""
    if expected.absent:
        return None if seen.what == "nothing" else f"there must be nothing, and there is {_a(seen.what)}"
    if seen.blob is None:
        return "there is no such file" if seen.what == "nothing" else f"is {_a(seen.what)}, not a file"
    said = list(wrong_content(seen.blob, expected.exact, texts(expected.contains), texts(expected.line)))
    return "; ".join(said) or None


def wrong_content(
    seen: Blob, exact: str | Base64 | None, contains: tuple[str, ...], lines: tuple[str, ...]
) -> Iterator[str]:
    """Everything that is wrong with bytes that have to be, contain or have a line. Of bytes that were cut nothing passes
    but what the kept ones prove."""
    if exact is not None:
        wrong = difference(content(exact), seen)
        if wrong is not None:
            yield wrong
    beyond = f" ({seen.cut})" if seen.cut else ""
    data, end = seen.data, seen.end
    for text in contains:
        if text.encode() not in data and text.encode() not in end:
            yield f"{cut(repr(text))} is not in it{beyond}{_nearly(text, data)}"
    if lines:
        found = {line.removesuffix(b"\r") for line in _lines(seen)}
        for text in lines:
            if text.encode() not in found:
                yield f"no line is {cut(repr(text))}{beyond}{_nearly_line(text, found)}"


def _lines(seen: Blob) -> list[bytes]:
    """The lines that are there as a whole: where bytes were cut, not those that the cut goes through."""
    begins = seen.data.split(b"\n")
    return begins if seen.whole else begins[:-1] + seen.end.split(b"\n")[1:]


def difference(expected: bytes, seen: Blob) -> str | None:
    """How bytes differ from those expected, in words; None when they do not."""
    got = seen.data
    if not seen.whole:
        if seen.sha256 == hashlib.sha256(expected).hexdigest():
            return None
        if len(expected) != seen.size:
            return wanted(seen.size, len(expected), "byte")
        end = seen.end
        if got == expected[: len(got)] and end == expected[len(expected) - len(end) :]:
            if seen.sha256 is None:
                return f"cannot be proven: {seen.cut}, and those are as expected"
            return f"differs between the first {len(got)} and the last {len(end)} bytes"
        if got == expected[: len(got)]:
            return f"differs in the last {len(end)} of its {seen.size} bytes"
    if got == expected:
        return None
    if got.removeprefix(_BOM) == expected:
        return "begins with a byte order mark, and is as expected otherwise"
    if _unix(got) == _unix(expected):
        return f"line endings only: {_endings(got)} where {_endings(expected)} is expected"
    if got + b"\n" == expected:
        return "the newline at the end is missing"
    if got == expected + b"\n":
        return "there is one newline too many at the end"
    if _unix(got).rstrip(b"\n") == _unix(expected).rstrip(b"\n"):
        return "differs only in newlines at the end"
    try:
        return _first_line(expected.decode(), got.decode())
    except UnicodeDecodeError:
        at = next((n for n, (a, b) in enumerate(zip(expected, got, strict=False)) if a != b), None)
        if at is None:
            return f"{wanted(len(got), len(expected), 'byte')}, the same as far as they go"
        return f"byte {at} is 0x{got[at]:02x}; expected 0x{expected[at]:02x}"


def _first_line(expected: str, got: str) -> str:
    want, have = expected.split("\n"), got.split("\n")
    for number, (a, b) in enumerate(zip(want, have, strict=False), start=1):
        if a == b:
            continue
        if number == len(have) and not b and number < len(want):
            return f"ends after line {number - 1}; line {number} should be {cut(repr(a))}"
        if number == len(want) and not a and number < len(have):
            return f"goes on after line {number - 1} with {cut(repr(b))}"
        spaces = " (white space only)" if "".join(a.split()) == "".join(b.split()) else ""
        return f"line {number} is {cut(repr(b))}; expected {cut(repr(a))}{spaces}"
    at = min(len(want), len(have))
    if len(want) > len(have):
        return f"ends after line {at}; line {at + 1} should be {cut(repr(want[at]))}"
    return f"goes on after line {at} with {cut(repr(have[at]))}"


def _unix(data: bytes) -> bytes:
    return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def _endings(data: bytes) -> str:
    crlf = data.count(b"\r\n")
    names = [
        name
        for name, count in (
            ("\\r\\n", crlf),
            ("\\n", data.count(b"\n") - crlf),
            ("\\r", data.count(b"\r") - crlf),
        )
        if count
    ]
    return " and ".join(names) or "none"


def _nearly(text: str, data: bytes) -> str:
    if b"\r" in data and text.encode() in _unix(data):
        return " (line endings only)"
    return (
        " (upper and lower case only)" if text.casefold() in data.decode(errors="replace").casefold() else ""
    )


def _nearly_line(text: str, found: set[bytes]) -> str:
    words = {line.decode(errors="replace").strip() for line in found}
    return " (white space around it only)" if text.strip() in words else ""


def _a(what: str) -> str:
    return {
        "file": "a file",
        "folder": "a folder",
        "link": "a symbolic link",
        "other": "a pipe, socket or device",
    }.get(what, what)


__all__ = ["difference", "file_checks", "wrong_content", "wrong_file"]
