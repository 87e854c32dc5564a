"""Trials side by side in processes of their own: what hangs is ended, what dies takes only its own trial along.

A worker is a fresh Python that imports the drivers by name, so that it works from a notebook too. It leads a session of
its own: at a trial's limit the worker and whatever its driver started are ended together, and another takes its place.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, wait

from agentbench_lab.errors import LabError
from agentbench_lab.running.kit import Kit, Wire, unpacked
from agentbench_lab.running.plan import Spec
from agentbench_lab.running.trial import Record

_AHEAD = 2
"""Trials that a worker is given ahead of time, so that it does not wait for the next one."""
_GRACE_S = 0.5
_START_S = 120.0


def run_in_processes(
    kit: Kit, specs: Sequence[Spec], workers: int, sink: Callable[[Record], None], stop: Callable[[], bool]
) -> None:
    """Run the specs in `workers` processes and hand each record to `sink` as it comes.

    Once `stop()` is true no further trial is given out; those that a worker has (at most two) are finished.
    """
    packed = kit.packed()
    left = deque(specs)
    running: list[_Worker] = []
    try:
        for _ in range(min(workers, len(left))):
            running.append(_Worker(packed))
        while left or any(worker.given for worker in running):
            if stop():
                left.clear()
            for worker in running:
                worker.feed(left)
            busy = [worker for worker in running if worker.given]
            if not busy:
                break
            timeout = max(
                0.0, min(1.0, min(worker.deadline for worker in busy) + _GRACE_S - time.monotonic())
            )
            ready = set(wait([worker.pipe for worker in busy], timeout))
            for worker in busy:
                if worker.pipe in ready:
                    _receive(worker, running, left, kit, packed, sink)
                elif time.monotonic() > worker.deadline + _GRACE_S:
                    late = worker.given[0]
                    _replace(worker, running, left, packed, drop=1)
                    sink(kit.job(late).abandon())
    finally:
        for worker in running:
            worker.end()


def _receive(
    worker: _Worker,
    running: list[_Worker],
    left: deque[Spec],
    kit: Kit,
    packed: bytes,
    sink: Callable[[Record], None],
) -> None:
    """One message of a worker: a trial has begun, its record, or that the worker is no more."""
    try:
        kind, message = pickle.loads(worker.pipe.recv_bytes())
    except (EOFError, OSError, pickle.UnpicklingError):
        code = worker.end()
        if not worker.ready:
            raise LabError(f"a worker process could not start (exit code {code}): {worker.said()}") from None
        lost = worker.given[0]
        _replace(worker, running, left, packed, drop=1)
        sink(kit.job(lost).died(f"the worker process died with exit code {code}"))
        return
    if kind == "record":
        worker.given.popleft()
        worker.deadline = float("inf")
        sink(Wire.records(message)[0])
    elif kind == "ready":
        worker.ready = True
    else:
        worker.deadline = float("inf") if message is None else time.monotonic() + message


def _replace(worker: _Worker, running: list[_Worker], left: deque[Spec], packed: bytes, *, drop: int) -> None:
    """End a worker; what it was given beyond the first `drop` trials goes back to the front of the queue."""
    worker.end()
    left.extendleft(reversed(list(worker.given)[drop:]))
    running[running.index(worker)] = _Worker(packed)


class _Worker:
    """One worker process, the trials it was given, and when the first of them is out of time."""

    def __init__(self, packed: bytes) -> None:
        ours, theirs = socket.socketpair()
        code = f"from agentbench_lab.running.processes import serve; serve({theirs.fileno()})"
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-c", code],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
            env=environment,
        )
        theirs.close()
        self.pipe: Connection = Connection(ours.detach())
        self.given: deque[Spec] = deque()
        self.deadline = time.monotonic() + _START_S
        self.ready = False
        with contextlib.suppress(OSError):
            self.pipe.send_bytes(packed)

    def feed(self, left: deque[Spec]) -> None:
        """Give it trials up to what it may have ahead; one at a time where few are left."""
        ahead = _AHEAD if len(left) > _AHEAD else 1
        while left and len(self.given) < ahead:
            spec = left.popleft()
            self.given.append(spec)
            with contextlib.suppress(OSError):
                self.pipe.send_bytes(Wire.pack([spec]))

    def said(self) -> str:
        """The last line of what it printed as errors."""
        assert self.process.stderr is not None
        with contextlib.suppress(OSError, ValueError):
            lines = self.process.stderr.read().decode(errors="replace").strip().splitlines()
            return lines[-1] if lines else "it said nothing"
        return "it said nothing"

    def end(self) -> int | None:
        """End the process and everything in its session; its exit code."""
        code = self.process.poll()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.pipe.close()
        return code if code is not None else self.process.returncode


def serve(handle: int) -> None:
    """The worker's side: unpack the kit, then run each trial that comes and send its record back."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with Connection(handle) as pipe:
        kit = unpacked(pipe.recv_bytes())
        pipe.send_bytes(pickle.dumps(("ready", None)))
        # from here on nobody reads what drivers print as errors, and a full pipe would stop them
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        while True:
            try:
                spec = Wire.specs(pipe.recv_bytes())[0]
            except EOFError:
                return
            job = kit.job(spec)
            job.watch = lambda wall_s: pipe.send_bytes(pickle.dumps(("limit", wall_s)))
            pipe.send_bytes(pickle.dumps(("record", Wire.pack([job.run()]))))
