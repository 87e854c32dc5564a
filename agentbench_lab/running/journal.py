"""The journal: one line a finished trial, flushed, so that a run that is killed loses nothing it had finished."""

from __future__ import annotations

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
        self._file = open(path, "xb")  # noqa: SIM115 - closed by __exit__
        self._synced = time.monotonic()

    def add(self, record: Record) -> None:
        """Write one line and hand it to the system; the disk is made to follow once a second."""
        self._file.write(_encoder.encode(record) + b"\n")
        self._file.flush()
        now = time.monotonic()
        if now - self._synced >= 1.0:
            os.fsync(self._file.fileno())
            self._synced = now

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()

    def remove(self) -> None:
        """The run's own files hold all of it now."""
        self._path.unlink()
