"""A program beside the trial: its three pipes, read and written as long as somebody waits, and an end that holds.

It leads a session of its own, so that what it starts ends with it. A keeper, one small shell for each process of ours,
ends the programs of a process that was killed before it could, and removes their folders: it learns of that from the
end of its own stdin.

This is no sandbox: what makes a session of its own leaves the group.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

LINE_LIMIT = 4_000_000
"""Bytes that a line on stdout may have: far more than a transcript that is kept."""
LEAVE_S = 2.0
"""Seconds that a program has to go by itself, once its stdin is closed."""
_CHUNK = 65_536
STRAY_S = 0.3
"""How long the pipes of a program that has ended are still read: what it started may hold them open for ever."""
_SLICE_S = 1.0
"""A wait is cut into slices, so that a thread which is left behind hears of it."""


class Late(Exception):
    """The time that was given for something is over."""


class TooLong(Exception):
    """A line on stdout that never ends."""


_DESCRIPTORS = 8
"""How many a program takes while it is started: two for each of its streams, and two that tell how it went."""


def _check_room() -> None:
    """Raises OSError where fewer descriptors are left than a start takes. Until Python 3.11.4 `subprocess` never gives back
    those that it has opened by the time that one is missing, so that a short lack would be one for good."""
    held: list[int] = []
    try:
        for _ in range(_DESCRIPTORS):
            held.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
    finally:
        for descriptor in held:
            os.close(descriptor)


class Child:
    """A program that was started. Whoever waits for its lines also takes in what it says on stderr.

    `said` is given what comes on stderr, as it comes. `folder` is its own, in which it runs unless `cwd` says where. Raises OSError where the program cannot be started.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        folder: Path,
        cwd: Path | None = None,
        env: Mapping[str, str],
        said: Callable[[bytes], None],
        stdin: bool = True,
    ) -> None:
        self.said = said
        self.folder = folder
        _check_room()
        self.process = subprocess.Popen(
            list(argv),
            stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=cwd or folder,
            env=dict(env),
            start_new_session=True,
            bufsize=0,
        )
        _keeper.add(self.process.pid)
        assert self.process.stdout is not None and self.process.stderr is not None
        self._out_fd, self._err_fd = self.process.stdout.fileno(), self.process.stderr.fileno()
        self._in_fd = -1
        if self.process.stdin is not None:
            self._in_fd = self.process.stdin.fileno()
            os.set_blocking(self._in_fd, False)
        self._poll = select.poll()
        self._died: float | None = None
        self._pid_fd = _handle(self.process.pid)
        if self._pid_fd >= 0:
            self._poll.register(self._pid_fd, select.POLLIN)
        self._open = {self._out_fd, self._err_fd}
        for fd in self._open:
            self._poll.register(fd, select.POLLIN)
        self._out = bytearray()
        self._looked = 0
        self._to_send = bytearray()
        self.code: int | None = None
        self.over = False

    # ---- talking

    def send(self, data: bytes) -> None:
        """Hand data over; what the program does not take at once is written while its lines are waited for."""
        if self._in_fd < 0:
            return
        if not self._to_send:
            try:
                data = data[os.write(self._in_fd, data) :]
            except BlockingIOError:
                pass
            except OSError:
                return  # it does not listen any more; that it is gone is seen when it is read
        if data:
            if not self._to_send:
                self._poll.register(self._in_fd, select.POLLOUT)
            self._to_send += data

    def line(self, deadline: float) -> bytes | None:
        """The next line of its stdout, without its end; None where there is none left. `deadline` as time.monotonic.

        Raises Late, and TooLong.
        """
        while True:
            at = self._out.find(b"\n", self._looked)
            if at >= 0:
                line = bytes(self._out[:at])
                del self._out[: at + 1]
                self._looked = 0
                return line
            self._looked = len(self._out)
            if self._looked > LINE_LIMIT:
                raise TooLong(f"a line of more than {LINE_LIMIT} bytes")
            if self._out_fd not in self._open:
                line = bytes(self._out)
                self._out.clear()
                self._looked = 0
                return line or None
            self._turn(deadline)

    def all(self, deadline: float, limit: int) -> bytes:
        """All of its stdout up to `limit` bytes, until both its streams end. Raises Late; `so_far` has what came."""
        while self._open:
            self._turn(deadline)
            if len(self._out) > limit:
                del self._out[limit:]
        return self.so_far()

    def so_far(self) -> bytes:
        """What of stdout was not handed out yet."""
        return bytes(self._out)

    def look(self) -> None:
        """Take in what is there, without waiting."""
        with contextlib.suppress(Late):
            while self._open and self._turn(0.0):
                if len(self._out) > LINE_LIMIT:
                    return

    def discard(self) -> bool:
        """Throw away what is there; False where it stands in the middle of a line, whose rest would come later."""
        self.look()
        whole = not self._out or self._out.endswith(b"\n")
        self._out.clear()
        self._looked = 0
        return whole

    def _turn(self, deadline: float) -> bool:
        """Wait for something to read or write, and do it; whether there was something. Raises Late."""
        until = deadline if self._died is None else min(deadline, self._died + STRAY_S)
        left = min(_SLICE_S, until - time.monotonic())
        ready = self._poll.poll(max(0, int(left * 1000 + 0.999)))
        if not ready and left <= 0:
            if until == deadline:
                raise Late
            for fd in self._open:
                self._poll.unregister(fd)
            self._open.clear()
        for fd, _ in ready:
            if fd == self._pid_fd:
                self._died = time.monotonic()
                self._poll.unregister(fd)
                continue
            if fd == self._in_fd:
                self._write()
                continue
            chunk = os.read(fd, _CHUNK)
            if not chunk:
                self._open.discard(fd)
                self._poll.unregister(fd)
            elif fd == self._out_fd:
                self._out += chunk
            else:
                self.said(chunk)
        return bool(ready)

    def _write(self) -> None:
        try:
            del self._to_send[: os.write(self._in_fd, self._to_send)]
        except BlockingIOError:
            return
        except OSError:
            self._to_send.clear()
        if not self._to_send:
            self._poll.unregister(self._in_fd)

    # ---- ending

    @property
    def gone(self) -> bool:
        """Whether it has ended, or closed its stdout: nothing more can come from it."""
        return self.over or self._out_fd not in self._open or self._has_ended(0.0)

    def hang_up(self) -> None:
        """Close its stdin, which tells it that there is no more."""
        self._close_stdin()

    def leave(self, deadline: float) -> None:
        """Close its stdin, and wait until it has gone by itself, or until the deadline; then `end` it."""
        self._close_stdin()
        with contextlib.suppress(Late):
            while self._open:
                self._turn(deadline)
                if len(self._out) > LINE_LIMIT:
                    self._out.clear()
        self.end(deadline)

    def end(self, deadline: float = 0.0) -> int | None:
        """End it and everything in its group; its exit code, negative for a signal, None where it was us who ended it.

        Until the deadline its own end is waited for.
        """
        if self.over:
            return self.code
        self.over = True
        self._close_stdin()
        went = self._has_ended(deadline)
        # before it is reaped: until then nobody else can have its number
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        code = self.process.wait()
        _keeper.drop(self.process.pid)
        self.code = code if went else None
        if self._open:
            # what it said last; a stray helper may hold the pipes for ever, and is not waited for. Whoever listens may
            # have had enough, and the program is to be ended all the same
            with contextlib.suppress(Exception):
                self.look()
        for pipe in (self.process.stdout, self.process.stderr):
            assert pipe is not None
            pipe.close()
        self._open.clear()
        if self._pid_fd >= 0:
            os.close(self._pid_fd)
        return self.code

    def kill(self) -> None:
        """End its whole group, from any thread; whoever talks with it sees that it is gone, and calls `end`."""
        if not self.over:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)

    def _has_ended(self, deadline: float) -> bool:
        """Whether it has ended by itself by the deadline; it is not reaped where the system can tell without that."""
        if self._died is not None or self.process.returncode is not None:
            return True
        left = max(0.0, deadline - time.monotonic())
        if self._pid_fd < 0:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout=left)
            return self.process.poll() is not None
        poll = select.poll()
        poll.register(self._pid_fd, select.POLLIN)
        return bool(poll.poll(int(left * 1000 + 0.999)))

    def _close_stdin(self) -> None:
        if self._in_fd < 0:
            return
        if self._to_send:
            self._to_send.clear()
            self._poll.unregister(self._in_fd)
        self._in_fd = -1
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):
            self.process.stdin.close()


def _handle(pid: int) -> int:
    """A descriptor that can be read once the process has ended; -1 where the system has none."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return -1


# ---- the keeper

_KEEP = """
set -f
live=" " folders=" "
while read -r what name; do
  case $what in
    +) live="$live$name " ;;
    -) live="${live%% $name *} ${live#* $name }" ;;
    folder) folders="$folders$name " ;;
    gone) folders="${folders%% $name *} ${folders#* $name }" ;;
  esac
done
for group in $live; do kill -s KILL -- "-$group" 2>/dev/null; done
for folder in $folders; do rm -rf -- "$folder"; done
"""
_NAME = re.compile(r"/[A-Za-z0-9_./-]+/agentbench-lab-[A-Za-z0-9_]+")


class _Keeper:
    """The shell that outlives this process for as long as it takes to end what it left behind."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0

    def add(self, group: int) -> None:
        """A group to be ended with this process."""
        self._tell(b"+ %d\n" % group)

    def drop(self, group: int) -> None:
        """A group that has ended."""
        self._tell(b"- %d\n" % group)

    def folder(self, path: Path, *, gone: bool = False) -> None:
        """A folder of ours to be removed with this process, or one that is gone. Of an odd name it stays."""
        if _NAME.fullmatch(str(path)):
            self._tell(f"{'gone' if gone else 'folder'} {path}\n".encode())

    def _tell(self, line: bytes) -> None:
        with self._lock:
            if self._process is None or self._owner != os.getpid():
                # a process that was forked off has groups of its own
                self._process, self._owner = self._start(), os.getpid()
            if self._process is not None and self._process.stdin is not None:
                with contextlib.suppress(OSError):
                    self._process.stdin.write(line)

    @staticmethod
    def _start() -> subprocess.Popen[bytes] | None:
        try:
            return subprocess.Popen(
                ["/bin/sh", "-c", _KEEP],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={},
                start_new_session=True,
                bufsize=0,
            )
        except OSError:
            return None  # without a shell the programs have only the end of their stdin


_keeper = _Keeper()


def make_folder() -> Path:
    """An empty folder that goes with this process, unless `remove_folder` does it before."""
    made = Path(tempfile.mkdtemp(prefix="agentbench-lab-"))
    _keeper.folder(made)
    return made


def remove_folder(folder: Path) -> None:
    """Remove it with all that is in it."""
    shutil.rmtree(folder, ignore_errors=True)
    _keeper.folder(folder, gone=True)


__all__ = ["LEAVE_S", "LINE_LIMIT", "Child", "Late", "TooLong", "make_folder", "remove_folder"]
