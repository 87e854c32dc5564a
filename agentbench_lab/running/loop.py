"""Async drivers side by side on one event loop, in a thread of its own, so that it works inside a running loop too.

A driver that blocks the loop holds up its neighbours: at its limit the loop is left behind, that trial is judged
`timeout`, and the neighbours that were under way are begun again on a new loop.
"""

from __future__ import annotations

import asyncio
import ctypes
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable

from agentbench_lab.running.pool import GRACE_S
from agentbench_lab.running.trial import NO_LIMIT, Job, Record


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
        try:
            while loop.is_alive():
                loop.join(0.05)
                if loop.blocked():
                    break
        except BaseException:
            loop.abandon()
            raise
        if loop.error is not None:
            raise loop.error
        if loop.is_alive():
            for record in loop.abandon():
                sink(record)


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
        self._abandoned = False
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            asyncio.run(self._all())
        except BaseException as error:
            if not self._abandoned:
                self.error = error

    async def _all(self) -> None:
        await asyncio.gather(*(self._lane() for _ in range(min(self._workers, len(self._left)))))

    async def _lane(self) -> None:
        while True:
            with self._lock:
                if self._abandoned or not self._left or self._stop():
                    return
                make = self._left.popleft()
                job = make()
                self._under_way[job] = make
            record = await job.run_async()
            with self._lock:
                if self._abandoned:
                    return
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
        """Leave the loop behind: the late trials' records; the others go back to be begun again."""
        now = time.monotonic()
        with self._lock:
            self._abandoned = True
            late = [job for job in self._under_way if job.deadline < now]
            self._left.extendleft(make for job, make in self._under_way.items() if job not in late)
        if self.ident is not None:
            end = ctypes.py_object(SystemExit)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self.ident), end)
        return [job.abandon() for job in late]
