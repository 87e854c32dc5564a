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
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, wait
from queue import SimpleQueue

from agentbench_lab.drivers.faults import Misconfigured
from agentbench_lab.errors import LabError
from agentbench_lab.running.kit import Kit, Wire, unpacked
from agentbench_lab.running.output import routed
from agentbench_lab.running.plan import Spec
from agentbench_lab.running.pool import GRACE_S
from agentbench_lab.running.trial import NO_LIMIT, Job, Record

_AHEAD = 2
"""Trials that a worker is given ahead of time, so that it does not wait for the next one."""
_GRACE_S = 1.5
"""A worker reports a late trial itself, with what it did; only one that cannot is given up this much later."""
_START_S = 120.0
_CLOSE_S = 5.0
"""What drivers have at the end of a run to give back what they hold, all workers together."""


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
                elif not worker.ready and time.monotonic() > worker.deadline:
                    raise LabError(f"a worker process did not start within {_START_S:g} s")
                elif worker.process.poll() is not None and not worker.pipe.poll():
                    # what its driver forked may still hold the pipe open
                    _lost(worker, running, left, kit, packed, sink)
                elif time.monotonic() > worker.deadline + _GRACE_S:
                    late = worker.given[0]
                    _replace(worker, running, left, packed, drop=1)
                    sink(kit.lost(late).abandon())
        for worker in running:
            worker.leave()
    finally:
        until = time.monotonic() + _CLOSE_S
        for worker in running:
            worker.end(until)


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
        _lost(worker, running, left, kit, packed, sink)
        return
    if kind in ("record", "late"):
        worker.given.popleft()
        worker.deadline = float("inf")
        worker.begun, worker.ended = False, worker.ended + 1
        if kind == "late":
            _replace(worker, running, left, packed, drop=0)
        sink(Wire.records(message)[0])
    elif kind == "stop":
        raise Misconfigured(message)
    elif kind == "ready":
        worker.ready = True
        worker.deadline = float("inf")
    else:
        worker.begun = True
        worker.deadline = float("inf") if message is None else time.monotonic() + message


def _lost(
    worker: _Worker,
    running: list[_Worker],
    left: deque[Spec],
    kit: Kit,
    packed: bytes,
    sink: Callable[[Record], None],
) -> None:
    """A worker is no more: the trial under way is its driver's fault, the others are run elsewhere."""
    code = worker.end()
    if not worker.ready:
        raise LabError(f"a worker process could not start (exit code {code}): {worker.said}")
    lost = worker.given[0]
    # a worker that is killed between two trials takes none along
    blamed = worker.begun or not worker.ended
    if worker.begun and kit.goes_on(lost):
        _replace(worker, running, left, packed, drop=0)
        return
    _replace(worker, running, left, packed, drop=int(blamed))
    if blamed:
        sink(kit.lost(lost).died(f"the worker process died with exit code {code}"))


def _replace(worker: _Worker, running: list[_Worker], left: deque[Spec], packed: bytes, *, drop: int) -> None:
    """End a worker; what it was given beyond the first `drop` trials goes back to the front of the queue."""
    worker.end()
    left.extendleft(reversed(list(worker.given)[drop:]))
    worker.given.clear()
    if left:
        running[running.index(worker)] = _Worker(packed)
    else:
        running.remove(worker)


class _Worker:
    """One worker process, the trials it was given, and when the first of them is out of time."""

    def __init__(self, packed: bytes) -> None:
        ours, theirs = socket.socketpair()
        code = f"from agentbench_lab.running.processes import serve; serve({theirs.fileno()})"
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        # a file and not a pipe, which would fill and stop a worker whose drivers say much when they are imported
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by end
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-c", code],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._errors,
            start_new_session=True,
            env=environment,
        )
        theirs.close()
        self.pipe: Connection = Connection(ours.detach())
        self.given: deque[Spec] = deque()
        self.deadline = time.monotonic() + _START_S
        self.ready = self.begun = self.leaving = False
        self.ended = 0
        self.said = ""
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

    def leave(self) -> None:
        """Tell it that the run is over: its drivers are closed, and it ends."""
        if self.ready and not self.given:
            with contextlib.suppress(OSError):
                self.pipe.send_bytes(b"")
                self.leaving = True

    def end(self, until: float = 0.0) -> int | None:
        """End the process and everything in its session; its exit code. One that leaves is waited for."""
        if self.pipe.closed:
            return self.process.returncode
        if self.leaving:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(max(0.0, until - time.monotonic()))
        code = self.process.poll()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.pipe.close()
        with self._errors as errors:
            if not self.ready:
                errors.seek(0)
                lines = errors.read().decode(errors="replace").strip().splitlines()
                self.said = lines[-1] if lines else "it said nothing"
        return code if code is not None else self.process.returncode


def serve(handle: int) -> None:
    """The worker's side: unpack the kit, then run each trial that comes and send its record back."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    pipe = Connection(handle)
    kit = unpacked(pipe.recv_bytes())
    pipe.send_bytes(pickle.dumps(("ready", None)))
    # from here on nobody reads what drivers print as errors, and a full pipe would stop them
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    specs: SimpleQueue[Spec | None] = SimpleQueue()
    threading.Thread(target=_listen, args=(pipe, specs), daemon=True).start()
    under_way = _UnderWay(pipe)
    with routed():
        while (spec := specs.get()) is not None:
            job = kit.job(spec)
            under_way.begin(job)
            job.watch = under_way.watch
            under_way.send("record", job, job.run)
    kit.close()
    # threads that drivers left behind do not hold it up
    os._exit(0)


def _listen(pipe: Connection, specs: SimpleQueue[Spec | None]) -> None:
    """Take in what is to be run, until an empty message says that the run is over. Without the other side nothing here
    has a purpose, nor a driver that hangs."""
    try:
        while True:
            message = pipe.recv_bytes()
            specs.put(Wire.specs(message)[0] if message else None)
    except (EOFError, OSError):
        os.killpg(0, signal.SIGKILL)


class _UnderWay:
    """The trial that a worker runs: its record is sent when it ends, or at its limit with what it did until then."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._lock = threading.RLock()
        self._wake = threading.Event()
        self._looks = NO_LIMIT  # when the guard looks next; infinite while it finds that out
        self._job: Job | None = None
        threading.Thread(target=self._guard, daemon=True).start()

    def begin(self, job: Job) -> None:
        with self._lock:
            self._job = job

    def watch(self, wall_s: float | None) -> None:
        """An attempt begins or ends: tell the other side its limit."""
        with self._lock:
            if self._job is not None:
                self._pipe.send_bytes(pickle.dumps(("limit", wall_s)))
        # a guard that is woken for nothing takes time from a driver that computes
        if wall_s is not None and time.monotonic() + wall_s + GRACE_S < self._looks:
            self._wake.set()

    def send(self, kind: str, job: Job, made: Callable[[], Record]) -> None:
        """Send a trial's record, unless it was sent already."""
        try:
            record = made() if kind == "record" else None
        except Misconfigured as error:
            with self._lock:
                self._pipe.send_bytes(pickle.dumps(("stop", str(error))))
            return
        with self._lock:
            if self._job is job:
                self._job = None
                if kind == "late":
                    # what it did is being looked at, which may take a while
                    self._pipe.send_bytes(pickle.dumps(("limit", None)))
                self._pipe.send_bytes(pickle.dumps((kind, Wire.pack([record or made()]))))

    def _guard(self) -> None:
        while True:
            self._looks = NO_LIMIT
            job = self._job
            left = (NO_LIMIT if job is None else job.deadline + GRACE_S) - time.monotonic()
            if job is not None and left <= 0:
                self.send("late", job, job.abandon)
            rest = min(1.0, max(left, 0.001))
            self._looks = time.monotonic() + rest
            self._wake.wait(rest)
            self._wake.clear()
