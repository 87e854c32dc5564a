"""The journal: one line a finished trial, flushed, so that a run that is killed loses nothing it had finished."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path
from types import TracebackType

import msgspec

from agentbench_lab.running.trial import Record

_encoder = msgspec.json.Encoder()


class Journal:
    """Append-only records of a run that is under way; removed when the run's own files are written."""

    def __init__(self, path: Path) -> None:
        self._path = path
        # unbuffered: a line goes to the system whole, so that no moment of being killed leaves half of one
        self._file = open(path, "xb", buffering=0)  # noqa: SIM115 - closed by __exit__
        self._size = 0
        self._synced = time.monotonic()

    def add(self, record: Record) -> None:
        """Hand one line to the system; the disk is made to follow once a second."""
        line = _encoder.encode(record) + b"\n"
        size = len(line)
        try:
            while (written := self._file.write(line)) < len(line):
                line = line[written:]
        except OSError:
            # a full disk may have taken half of the line
            self._file.truncate(self._size)
            raise
        self._size += size
        now = time.monotonic()
        if now - self._synced >= 1.0:
            os.fsync(self._file.fileno())
            self._synced = now

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(OSError):
            os.fsync(self._file.fileno())
        self._file.close()

    def remove(self) -> None:
        """The run's own files hold all of it now."""
        self._path.unlink()
