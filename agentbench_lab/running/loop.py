"""Async drivers side by side on one event loop, in a thread of its own, so that it works inside a running loop too.

A driver that blocks the loop holds up its neighbours: at its limit the loop is left behind, that trial is judged
`timeout`, and the neighbours that were under way are begun again on a new loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from typing import Any
from weakref import WeakKeyDictionary

from agentbench_lab.drivers.lasting import LASTING
from agentbench_lab.running.pool import GRACE_S
from agentbench_lab.running.trial import NO_LIMIT, Job, Record

_of: ContextVar[Job | None] = ContextVar("job", default=None)


def run_in_loop(
    jobs: Iterable[Callable[[], Job]],
    workers: int,
    sink: Callable[[Record], None],
    stop: Callable[[], bool],
) -> None:
    """Run async jobs, at most `workers` at a time, and hand each record to `sink`, one at a time."""
    left = deque(jobs)
    while left and not stop():
        loop = _Loop(left, workers, sink, stop)
        loop.start()
        blocked = False
        try:
            # a loop that is through with its trials may still wait for what drivers left behind in it
            while not (loop.through.wait(0.05) or (blocked := loop.blocked())):
                pass
        except BaseException:
            loop.abandon()
            raise
        if blocked:
            for record in loop.abandon():
                sink(record)
        if loop.error is not None:
            raise loop.error


class _Left(Exception):
    """The loop was left behind."""


class _Loop(threading.Thread):
    """One thread with an event loop. `lock` decides who reports a trial: the loop, or whoever gives it up."""

    def __init__(
        self,
        left: deque[Callable[[], Job]],
        workers: int,
        sink: Callable[[Record], None],
        stop: Callable[[], bool],
    ) -> None:
        super().__init__(daemon=True, name="agentbench-lab loop")
        self._left, self._workers, self._sink, self._stop = left, workers, sink, stop
        self._lock = threading.Lock()
        self._under_way: dict[Job, Callable[[], Job]] = {}
        self._owners: WeakKeyDictionary[Any, Job] = WeakKeyDictionary()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._turn = asyncio.Lock()
        self._abandoned = False
        self.through = threading.Event()
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            asyncio.run(self._all())
        except BaseException as error:
            self._failed(error)
        finally:
            self.through.set()

    def _failed(self, error: BaseException) -> None:
        if not self._abandoned and not self.through.is_set():
            self.error = error

    async def _all(self) -> None:
        self._loop = asyncio.get_running_loop()
        LASTING.add(self._loop)
        self._loop.set_task_factory(self._task)
        try:
            await asyncio.gather(*(self._lane() for _ in range(min(self._workers, len(self._left)))))
        except BaseException as error:
            self._failed(error)
            raise
        finally:
            self.through.set()

    def _task(self, loop: asyncio.AbstractEventLoop, coroutine: Any, **more: Any) -> asyncio.Task[Any]:
        """A task that is known to belong to the trial in which it is made."""
        task: asyncio.Task[Any] = asyncio.Task(coroutine, loop=loop, **more)
        job = _of.get()
        if job is not None:
            self._owners[task] = job
        return task

    async def _lane(self) -> None:
        lane = asyncio.current_task()
        while True:
            with self._lock:
                if self._abandoned or not self._left or self._stop():
                    return
                make = self._left.popleft()
                job = make()
                job.turn = self._turn
                self._under_way[job] = make
                self._owners[lane] = job
            _of.set(job)
            record = await job.run_async()
            with self._lock:
                if self._abandoned:
                    raise _Left
                del self._under_way[job]
                self._sink(record)

    def blocked(self) -> bool:
        """Whether some trial is so late that only a loop that stands still can explain it."""
        now = time.monotonic()
        with self._lock:
            return any(
                job.deadline != NO_LIMIT and job.deadline + 2 * GRACE_S < now for job in self._under_way
            )

    def abandon(self) -> list[Record]:
        """Leave the loop behind: the record of the trial that blocks it; the others go back to be begun again."""
        now = time.monotonic()
        with self._lock:
            self._abandoned = True
            late = [job for job in self._under_way if job.deadline < now]
            blocks = self._owners.get(asyncio.current_task(self._loop)) if self._loop is not None else None
            if blocks in late:
                late = [job for job in late if job is blocks]
            self._left.extendleft(
                reversed([make for job, make in self._under_way.items() if job not in late])
            )
        if self.ident is not None:
            end = ctypes.py_object(SystemExit)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self.ident), end)
        if self._loop is not None:
            # a loop that only waits hears of its end when it is woken
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(lambda: None)
        return [job.abandon() for job in late]
