"""One subprocess with a bound that holds: its whole process group ends, and what it printed is kept.

This is no sandbox. A process that makes a session of its own leaves the group; a sandbox contains that one too.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

from msgspec import Struct

OUTPUT_LIMIT = 1_000_000
"""Bytes of each stream that are kept from its beginning on; the rest is read, so that the process never blocks on it."""
END_KEPT = 131_072
"""Bytes at the end of a longer stream that are kept too; what lies between is thrown away."""
_TERM_GRACE_S = 0.2
_DRAIN_S = 1.0


class Finished(Struct, frozen=True):
    """How a process ended. `exit` is its code, negative for the signal that ended it, None when we ended it.

    Of a stream that is longer than what is kept, `stdout_end` or `stderr_end` has what was printed last. `lost` counts
    the bytes of both streams that were thrown away before that, `stdout_lost` those of stdout. `ended` says why we
    ended it, where that was not for its time.
    """

    exit: int | None
    stdout: bytes
    stderr: bytes
    timed_out: bool
    wall_s: float
    lost: int = 0
    ended: str = ""
    stdout_end: bytes = b""
    stderr_end: bytes = b""
    stdout_lost: int = 0


class _Drain(threading.Thread):
    """Reads a pipe to its end, keeping only so much of its beginning and of its end."""

    def __init__(self, pipe: IO[bytes], limit: int) -> None:
        super().__init__(daemon=True)
        self._pipe, self._limit = pipe, limit
        self.kept = bytearray()
        self.end = bytearray()
        self.lost = 0

    def run(self) -> None:
        # whoever waits for the process may be interrupted; the pipe is closed here whatever comes
        with contextlib.suppress(OSError, ValueError), self._pipe:
            while chunk := os.read(self._pipe.fileno(), 65_536):
                room = self._limit - len(self.kept)
                self.kept += chunk[:room]
                self.end += chunk[room:]
                if len(self.end) > 2 * END_KEPT:
                    self._shorten()

    def _shorten(self) -> None:
        extra = max(0, len(self.end) - END_KEPT)
        del self.end[:extra]
        self.lost += extra

    def stop(self) -> tuple[bytes, bytes, int]:
        """The beginning, the end after it, and how many bytes between them are gone."""
        # a process that left the group may still hold the pipe; what it prints is not waited for
        self.join(_DRAIN_S)
        if not self.is_alive():
            self._shorten()
        return bytes(self.kept), bytes(self.end), self.lost


def entered(shell: str, folder: str, command: str) -> list[str]:
    """The words that run a command in a folder, by the shell itself.

    An agent may take every permission of its folder away. A shell that cannot enter says so and goes on outside it, and
    the next command is the agent's own failure still; a process that is started there would be the world's.
    """
    return [shell, "-c", 'cd "$1"; unset OLDPWD; exec "$0" -c "$2"', shell, folder, command]


def run_process(
    argv: Sequence[str],
    *,
    timeout_s: float,
    cwd: str | Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    output_limit: int = OUTPUT_LIMIT,
    pass_fds: Sequence[int] = (),
    started: Callable[[subprocess.Popen[bytes]], None] | None = None,
) -> Finished:
    """Run a command for at most `timeout_s` seconds, and end what it left behind in its process group.

    `started` is called with the process once there is one, so that others can end it with `end_group`. Raises OSError
    when the command cannot be started.
    """
    began = time.monotonic()
    process = subprocess.Popen(
        list(argv),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=cwd,
        env=None if env is None else dict(env),
        start_new_session=True,
        pass_fds=tuple(pass_fds),
    )
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    drains = [_Drain(process.stdout, output_limit), _Drain(process.stderr, output_limit)]
    feed = threading.Thread(target=_feed, args=(process.stdin, stdin), daemon=True)
    for thread in (*drains, feed):
        thread.start()
    timed_out = False
    try:
        if started is not None:
            started(process)
        process.wait(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        timed_out = True
    finally:
        end_group(process)
    (out, out_end, out_lost), (err, err_end, err_lost) = (drain.stop() for drain in drains)
    code = None if timed_out else process.returncode
    return Finished(
        code,
        out,
        err,
        timed_out,
        time.monotonic() - began,
        out_lost + err_lost,
        stdout_end=out_end,
        stderr_end=err_end,
        stdout_lost=out_lost,
    )


def _feed(pipe: IO[bytes], data: bytes) -> None:
    with contextlib.suppress(OSError):
        pipe.write(data)
    with contextlib.suppress(OSError):
        pipe.close()


def end_group(process: subprocess.Popen[bytes]) -> None:
    """End every process of the group: politely first, where there is still one, then for good."""
    if _signal(process.pid, signal.SIGTERM):
        deadline = time.monotonic() + _TERM_GRACE_S
        while time.monotonic() < deadline and _signal(process.pid, 0):
            process.poll()
            time.sleep(0.005)
        _signal(process.pid, signal.SIGKILL)
    process.wait()


def _signal(group: int, number: int) -> bool:
    """Whether the group could be signalled, which is to say whether it still has a process."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True
