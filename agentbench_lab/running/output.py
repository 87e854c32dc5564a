"""What drivers print, kept with their trial instead of spoiling the output of the run.

While a run is under way sys.stdout and sys.stderr are routed by context: what a trial's own code prints goes to the
trial, all else where it went before. What is printed outside Python, or in a thread that a driver starts, is not seen.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import TextIO

from agentbench_lab.drivers import keys

OUTPUT_LIMIT = 20_000
"""Characters of each stream that are kept of a trial: its beginning."""


class Said:
    """What one trial has printed, on both streams."""

    def __init__(self) -> None:
        self._kept = {"stdout": "", "stderr": ""}
        self._room = keys.room()

    def add(self, stream: str, text: str) -> None:
        room = OUTPUT_LIMIT + self._room - len(self._kept[stream])
        if room > 0:
            self._kept[stream] += text[:room]

    def text(self, stream: str) -> str:
        """What was printed, without secrets, and with nothing in it that no file can hold."""
        kept = self._kept[stream]
        cut = len(kept) == OUTPUT_LIMIT + self._room
        clean = keys.begun(keys.without(kept), OUTPUT_LIMIT, self._room if cut else 0)
        return clean.encode(errors="replace").decode()


_current: ContextVar[Said | None] = ContextVar("said", default=None)


class _Routed(io.TextIOBase):
    """A stream that hands a trial's text to the trial, and all other text on."""

    def __init__(self, name: str, behind: TextIO) -> None:
        self._name, self._behind = name, behind

    def write(self, text: str) -> int:
        said = _current.get()
        if said is None:
            return self._behind.write(text)
        said.add(self._name, str(text))
        return len(text)

    def flush(self) -> None:
        if _current.get() is None:
            self._behind.flush()

    def isatty(self) -> bool:
        return _current.get() is None and self._behind.isatty()

    def fileno(self) -> int:
        return self._behind.fileno()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return getattr(self._behind, "encoding", None) or "utf-8"


@contextmanager
def routed() -> Iterator[None]:
    """Route the streams for as long as trials run; within another `routed` this does nothing."""
    before = sys.stdout, sys.stderr
    if isinstance(before[0], _Routed):
        yield
        return
    ours = _Routed("stdout", before[0]), _Routed("stderr", before[1])
    sys.stdout, sys.stderr = ours
    try:
        yield
    finally:
        # a driver may have put its own in their place
        sys.stdout, sys.stderr = before


class spoken_by:
    """What is printed within `with spoken_by(said):` is the trial's."""

    # no generator, which would cost a trial four times as much
    def __init__(self, said: Said) -> None:
        self._said = said

    def __enter__(self) -> None:
        self._token = _current.set(self._said)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _current.reset(self._token)
