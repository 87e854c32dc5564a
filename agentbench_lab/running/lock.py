"""One writer per run: a lock that the system lets go of when its owner dies."""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import weakref
from functools import lru_cache
from pathlib import Path
from types import TracebackType

from agentbench_lab.errors import LabError, shown

_held: weakref.WeakSet[RunLock] = weakref.WeakSet()


@lru_cache(maxsize=1)
def _at_fork() -> None:
    """A child that a driver forks has the lock's handle too, and would hold the lock beyond its owner's death."""
    os.register_at_fork(after_in_child=_let_go)


def _let_go() -> None:
    for lock in _held:
        if lock._handle >= 0:
            os.close(lock._handle)
            lock._handle = -1


class RunLock:
    """Held while a run is written. Raises LabError that names the owner when another process holds it."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "run.lock"
        self._handle = -1
        while not self._taken(folder):
            pass
        # a full disk has no room for the owner's name; the lock holds all the same
        with contextlib.suppress(OSError):
            os.truncate(self._handle, 0)
            os.pwrite(self._handle, f"process {os.getpid()} on {socket.gethostname()}".encode(), 0)

    def _taken(self, folder: Path) -> bool:
        """Whether the lock is ours; False when its file was removed under us, and there is a new one to be tried."""
        try:
            handle = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise LabError(f"{shown(folder)}: cannot write there: {error.strerror}") from None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(handle, 200, 0).decode(errors="replace").strip() or "another process"
            os.close(handle)
            raise LabError(f"{shown(folder)}: is being written by {owner}") from None
        except OSError as error:
            os.close(handle)
            raise LabError(f"{shown(folder)}: cannot be locked: {error.strerror}") from None
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(handle), os.stat(self._path)):
                self._handle = handle
                _held.add(self)
                _at_fork()
                return True
        os.close(handle)
        return False

    def release(self) -> None:
        """Let go, and leave no file behind."""
        if self._handle >= 0:
            self._path.unlink(missing_ok=True)
            os.close(self._handle)
            self._handle = -1

    def __enter__(self) -> RunLock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
