"""Calls of workers side by side, carried out in an order that no clock decides.

Each worker that is still at work hands in its next call or ends; once all of them have, the calls of that round are
carried out in the order of the workers' numbers. What a worker does between two calls runs beside the others.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

_LOOK_S = 0.5
"""Seconds after which a thread that waits looks up: one that is to end hears of it only then."""


class BudgetSpent(Exception):
    """A limit of the trial is used up, or it is over; the trial ends as `budget`."""


class Rounds:
    """The rounds of some workers, by their numbers."""

    def __init__(self, workers: Iterable[int]) -> None:
        self._live = set(workers)
        self._waiting: dict[int, deque[object]] = {worker: deque() for worker in self._live}
        self._round: list[tuple[int, object]] = []
        self._changed = threading.Condition()

    @contextmanager
    def turn(self, worker: int) -> Iterator[None]:
        """Wait until it is this worker's turn; the next one's comes when the block ends.

        Raises BudgetSpent for a worker that is through, or was sent away.
        """
        ticket = object()
        with self._changed:
            if worker not in self._live:
                raise BudgetSpent("the worker is through")
            self._waiting[worker].append(ticket)
            self._begin()
            while not (self._round and self._round[0][1] is ticket):
                if worker not in self._live:
                    raise BudgetSpent("the worker is through")
                self._changed.wait(_LOOK_S)
        try:
            yield
        finally:
            with self._changed:
                self._drop(ticket)

    def left(self, worker: int) -> None:
        """A worker is through: nobody waits for it."""
        with self._changed:
            self._live.discard(worker)
            self._waiting.pop(worker, None)
            self._round = [entry for entry in self._round if entry[0] != worker]
            self._begin()
            self._changed.notify_all()

    def end(self) -> None:
        """Send everybody away."""
        with self._changed:
            self._live.clear()
            self._waiting.clear()
            self._round.clear()
            self._changed.notify_all()

    def _drop(self, ticket: object) -> None:
        self._round = [entry for entry in self._round if entry[1] is not ticket]
        self._begin()
        self._changed.notify_all()

    def _begin(self) -> None:
        """Begin a round when the last is over and every worker has handed in a call."""
        if not self._round and self._live and all(self._waiting[worker] for worker in self._live):
            self._round = [(worker, self._waiting[worker].popleft()) for worker in sorted(self._live)]
            self._changed.notify_all()
