"""Trials side by side in threads that can be left behind.

A driver that hangs cannot be ended from outside for sure; its thread is abandoned at the trial's limit, its toolbox is
shut, and a new thread takes its place. The abandoned one is asked to end, for an endless loop would slow down all other
trials. The threads are daemons, so that one which does not hear of it cannot keep the process alive.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable, Iterable, Iterator

from agentbench_lab.running.trial import NO_LIMIT, Job, Record

GRACE_S = 0.25
"""An async driver is cancelled from within at its limit; a thread is given up only this much later."""


def run_jobs(
    jobs: Iterable[Callable[[], Job]],
    workers: int,
    sink: Callable[[Record], None],
    stop: Callable[[], bool] = lambda: False,
) -> None:
    """Run jobs, at most `workers` at a time, and hand each record to `sink` as its trial ends, one at a time.

    `jobs` makes each job when a worker is free for it. Threads report by themselves, so that a trial costs no switch
    between threads; the caller's thread only watches the limits. Once `stop()` is true no further trial is begun.
    Raises what `sink` or the making of a job raised.
    """
    state = _State(iter(jobs), sink, stop)
    running = [_Worker(state) for _ in range(workers)]
    for worker in running:
        worker.start()
    try:
        while not state.over(running):
            state.changed.wait(timeout=_until_next_limit(running))
            state.changed.clear()
            _replace_late(running, state)
    except BaseException:
        # drivers that compute would hold up all that is left to do
        for worker in running:
            if worker.take() is not None:
                worker.abandon()
        raise
    finally:
        with state.lock:
            state.stop = True
    if state.error is not None:
        raise state.error


class _State:
    """What the workers of one call share. `lock` guards the jobs and the sink."""

    def __init__(
        self, jobs: Iterator[Callable[[], Job]], sink: Callable[[Record], None], enough: Callable[[], bool]
    ) -> None:
        self.jobs = jobs
        self.enough = enough
        self.sink = sink
        self.lock = threading.Lock()
        self.changed = threading.Event()
        self.stop = False
        self.error: BaseException | None = None

    def next_job(self) -> Job | None:
        with self.lock:
            make = None if self.stop or self.enough() else next(self.jobs, None)
        return make() if make is not None else None

    def report(self, record: Record) -> None:
        with self.lock:
            if not self.stop:
                self.sink(record)

    def over(self, workers: list[_Worker]) -> bool:
        return self.error is not None or all(worker.done for worker in workers)


class _Worker(threading.Thread):
    """One thread. `job` is set while it runs one; whoever takes it away (here or at the limit) reports the trial."""

    def __init__(self, state: _State) -> None:
        super().__init__(daemon=True, name="agentbench-lab trial")
        self.state = state
        self.lock = threading.Lock()
        self.job: Job | None = None
        self.done = False
        self.abandoned = False

    def run(self) -> None:
        state = self.state
        try:
            while (job := state.next_job()) is not None:
                with self.lock:
                    self.job = job
                record = job.run()
                if self.take() is None:
                    return
                state.report(record)
        except BaseException as error:
            if self.abandoned:
                return
            state.error = error
        self.done = True
        state.changed.set()

    def take(self) -> Job | None:
        """The running job, taken away from this worker; None when the other side was first."""
        with self.lock:
            job, self.job = self.job, None
            return job

    @property
    def deadline(self) -> float:
        """When the attempt under way is out of time."""
        job = self.job
        return NO_LIMIT if job is None else job.deadline

    def abandon(self) -> None:
        """Leave the thread behind. Python code in it is ended; a call that waits outside Python is not reached."""
        self.abandoned = True
        assert self.ident is not None
        end = ctypes.py_object(SystemExit)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self.ident), end)


def _until_next_limit(workers: list[_Worker]) -> float:
    nearest = min(worker.deadline for worker in workers)
    return min(0.5, max(0.0, nearest + GRACE_S - time.monotonic()))


def _replace_late(workers: list[_Worker], state: _State) -> None:
    now = time.monotonic()
    for at, worker in enumerate(workers):
        if worker.deadline + GRACE_S <= now:
            job = worker.take()
            if job is not None:
                worker.abandon()
                workers[at] = _Worker(state)
                workers[at].start()
                state.report(job.abandon())
