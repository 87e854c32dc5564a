"""Python's `re.search` on what an agent wrote, with an end.

A pattern that is quick on honest text can take years on text that was written for it (`(a+)+$` on many a's), and within
a process nothing ends it. So it runs in a child that the kernel ends when its processor time is spent; the child is kept
for the next pattern.
"""

from __future__ import annotations

import atexit
import os
import signal
import struct
import subprocess
import sys
from contextlib import suppress

PATTERN_S = 1.0
"""Seconds of processor time that a pattern may take on one text."""

_CHILD = """
import re, signal, struct, sys
signal.signal(signal.SIGVTALRM, signal.SIG_DFL)
limit = float(sys.argv[1])
asked, told = sys.stdin.buffer, sys.stdout.buffer
while head := asked.read(16):
    pattern, text = (asked.read(size).decode("utf-8", "surrogatepass") for size in struct.unpack("<QQ", head))
    signal.setitimer(signal.ITIMER_VIRTUAL, limit)
    found = re.search(pattern, text) is not None
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    told.write(b"1" if found else b"0")
    told.flush()
"""
_idle: dict[int, list[subprocess.Popen[bytes]]] = {}
"""Children that wait for a pattern, by the process whose they are."""


def fits(pattern: str, text: str) -> bool | None:
    """Whether `re.search` finds the pattern in the text; None when it took more than PATTERN_S.

    Raises OSError when no child can be started.
    """
    mine = _idle.setdefault(os.getpid(), [])
    for _ in range(2):
        try:
            child = mine.pop()
        except IndexError:
            child = _start()
        try:
            answer = _asked(child, pattern, text)
        except BaseException:  # interrupted: it would give its answer to another question
            child.kill()
            _ended(child)
            raise
        if answer:
            mine.append(child)
            return answer == b"1"
        if _ended(child) == -signal.SIGVTALRM:
            return None
        # somebody else ended it: once more, by another
    return None


def unfit(pattern: str, text: str, shown: str) -> str | None:
    """Why a text does not fit a pattern, in words, or None; `shown` is what is said of the text."""
    found = fits(pattern, text)
    if found is None:
        return f"{pattern!r} took more than {PATTERN_S:g} s of processor time on {shown}, and proves nothing"
    return None if found else f"{pattern!r} does not fit {shown}"


def _start() -> subprocess.Popen[bytes]:
    atexit.unregister(_close)
    atexit.register(_close)
    return subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _CHILD, str(PATTERN_S)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd="/",
        start_new_session=True,
    )


def _asked(child: subprocess.Popen[bytes], pattern: str, text: str) -> bytes:
    """The child's answer; empty when it has ended."""
    assert child.stdin is not None and child.stdout is not None
    parts = [part.encode("utf-8", "surrogatepass") for part in (pattern, text)]
    with suppress(BrokenPipeError):
        child.stdin.write(struct.pack("<QQ", *map(len, parts)) + b"".join(parts))
        child.stdin.flush()
        return child.stdout.read(1)
    return b""


def _ended(child: subprocess.Popen[bytes]) -> int:
    """How a child ended, its pipes closed; one that has not yet ends when its stdin does."""
    assert child.stdin is not None and child.stdout is not None
    with suppress(BrokenPipeError):
        child.stdin.close()
    child.stdout.close()
    return child.wait()


def _close() -> None:
    for child in _idle.pop(os.getpid(), ()):
        _ended(child)


__all__ = ["PATTERN_S", "fits", "unfit"]
