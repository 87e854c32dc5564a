"""The agent that a scaffold is given: a call of the driver under test as a worker, alone or side by side."""

from __future__ import annotations

import asyncio
import contextvars
import ctypes
import inspect
import os
import threading
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any

from agentbench_lab.cases import Task
from agentbench_lab.drivers.context import Context, Seat
from agentbench_lab.drivers.faults import OutOfTime
from agentbench_lab.drivers.loading import Loaded
from agentbench_lab.drivers.returned import as_transcript, ended, only_in
from agentbench_lab.transcripts import Transcript
from agentbench_lab.worlds.rounds import Rounds
from agentbench_lab.worlds.toolbox import Toolbox

_LOOK_S = 0.2
"""Seconds after which a trial that waits for its workers looks at the clock."""


class Agent:
    """The driver under test, called as a worker: always a checked transcript, whatever the driver's shape."""

    def __init__(self, driver: Loaded) -> None:
        self._driver = driver

    def __call__(
        self,
        task: Task,
        tools: Toolbox,
        ctx: Context,
        *,
        name: str = "",
        role: str = "",
        part: int | None = None,
        seat: Seat | None = None,
        rounds: Rounds | None = None,
    ) -> Transcript:
        """Raises what the driver raises; what it has used until then counts all the same.

        `name` stands with the worker's figures; `role` and `part` are what the driver may read of its place (see
        Context). `seat` and `rounds` are for workers side by side.
        """
        seat = seat or ctx.seats(1)[0]
        desk = tools.desk(seat.number, task.tools, rounds=rounds)
        child = ctx.child(seat, desk, task, name=name, role=role, part=part)
        process = os.getpid()
        try:
            returned = self._driver.start(task, desk, child)
            only_in(process)
            if type(returned) is not Transcript and inspect.isawaitable(returned):
                returned = asyncio.run(_within(returned, child.deadline))
            transcript = ended(as_transcript(returned), desk)
        except BaseException as error:
            ctx.settle(seat, error)
            raise
        finally:
            desk.close()
        ctx.settle(seat, transcript)
        return transcript


Run = Callable[[Task, Toolbox, Context], Transcript]
Scaffold = Callable[[Agent], Run]


async def outcome_of(returned: Awaitable[Any]) -> tuple[Any, BaseException | None]:
    """What an awaitable came to; an error as a value, since SystemExit in a task would end the whole loop."""
    try:
        return await returned, None
    except asyncio.CancelledError:
        raise
    except BaseException as error:
        return None, error


async def _within(returned: Awaitable[Any], deadline: float) -> Any:
    """What an async driver gives, before the trial is out of time."""
    task = asyncio.ensure_future(outcome_of(returned))
    left = None if deadline == float("inf") else max(0.0, deadline - time.monotonic())
    done, _ = await asyncio.wait({task}, timeout=left)
    return came_of(task, done)


def came_of(task: asyncio.Future[tuple[Any, BaseException | None]], done: Collection[Any]) -> Any:
    """The value of an `outcome_of` that was waited for, or its error; OutOfTime where it is not done, which ends it."""
    if not done:
        task.cancel()
        raise OutOfTime
    value, error = task.result()
    if error is not None:
        raise error
    return value


# ---- workers side by side


def side_by_side(
    agent: Agent,
    tasks: Sequence[Task],
    tools: Toolbox,
    ctx: Context,
    *,
    names: Sequence[str] = (),
    role: str = "",
    parts: Sequence[int | None] = (),
) -> list[Transcript]:
    """One worker for each task, all at once on the same world; their transcripts in the order of the tasks.

    Their tool calls are carried out in rounds (see worlds.rounds), so that neither the ledger nor the world depends on
    which of them is the quicker. All are waited for, also when one fails; then the error of the first that failed is
    raised.
    """
    names, parts = names or [""] * len(tasks), parts or [None] * len(tasks)
    seats = ctx.seats(len(tasks))
    if len(tasks) == 1:
        return [agent(tasks[0], tools, ctx, name=names[0], role=role, part=parts[0], seat=seats[0])]
    rounds = Rounds(seat.number for seat in seats)
    came: list[Transcript | BaseException] = [Lost()] * len(tasks)

    def work(at: int) -> None:
        try:
            came[at] = agent(
                tasks[at],
                tools,
                ctx,
                name=names[at],
                role=role,
                part=parts[at],
                seat=seats[at],
                rounds=rounds,
            )
        except BaseException as error:
            came[at] = error
        finally:
            rounds.left(seats[at].number)

    # in the trial's context, so that what they print is the trial's
    threads = [
        threading.Thread(
            target=contextvars.copy_context().run, args=(work, at), daemon=True, name="agentbench-lab worker"
        )
        for at in range(len(tasks))
    ]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            _join(thread, ctx.deadline)
    except BaseException:
        rounds.end()
        for thread in threads:
            _end(thread)
        raise
    for outcome in came:
        if isinstance(outcome, BaseException):
            raise outcome
    return [outcome for outcome in came if isinstance(outcome, Transcript)]


class Lost(Exception):
    """A worker's thread has ended without a word."""


def _join(thread: threading.Thread, deadline: float) -> None:
    while thread.is_alive():
        left = deadline - time.monotonic()
        if left <= 0:
            raise OutOfTime
        thread.join(min(left, _LOOK_S))


def _end(thread: threading.Thread) -> None:
    """Python code in the thread is ended; a call that waits outside Python is not reached."""
    if thread.ident is not None and thread.is_alive():
        end = ctypes.py_object(SystemExit)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), end)
