"""One writer per run: a lock that the system lets go of when its owner dies."""

from __future__ import annotations

import fcntl
import os
import socket
from pathlib import Path
from types import TracebackType

from agentbench_lab.errors import LabError


class RunLock:
    """Held while a run is written. Raises LabError that names the owner when another process holds it."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "run.lock"
        self._file = open(self._path, "a+", encoding="utf-8")  # noqa: SIM115 - closed by release
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.seek(0)
            owner = self._file.read().strip() or "another process"
            self._file.close()
            raise LabError(f"{folder}: is being written by {owner}") from None
        self._file.seek(0)
        self._file.truncate()
        self._file.write(f"process {os.getpid()} on {socket.gethostname()}")
        self._file.flush()

    def release(self) -> None:
        """Let go, and leave no file behind."""
        if not self._file.closed:
            self._path.unlink(missing_ok=True)
            self._file.close()

    def __enter__(self) -> RunLock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
