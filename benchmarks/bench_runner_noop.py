"""A driver that refuses at once, in process, 64 side by side, against a bare asyncio loop that does nothing.

Ours is the whole of `evaluate` with an async driver: toolbox, limits, grade, journal, tables and card, its fixed cost
spread over 20,800 trials. The bare loop has a task for each trial, under a semaphore of the same concurrency, and keeps
what each gives back; it grades and writes nothing.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from pathlib import Path

from common import compare

from agentbench_lab.cases import Task, load_suite
from agentbench_lab.drivers.context import Context
from agentbench_lab.running.runner import evaluate
from agentbench_lab.transcripts import Transcript, Usage
from agentbench_lab.worlds.toolbox import Toolbox

WORKERS = 64
TRIALS = 100
SUITE = load_suite("ladder")
COUNT = len(SUITE.cases) * TRIALS
GOAL = 10.0


async def refuses(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
    """The least that a driver can do."""
    return Transcript(refused=True, stop="refused", usage=Usage.zero())


def ours() -> float:
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        run = evaluate(SUITE, refuses, trials=TRIALS, workers=WORKERS, out=Path(folder) / "run")
        spent = time.perf_counter() - began
    assert run.card.counts.judged == COUNT
    return 1e6 * spent / COUNT


def bare() -> float:
    async def nothing(slots: asyncio.Semaphore, number: int) -> int:
        async with slots:
            await asyncio.sleep(0)
            return number

    async def all_of_them() -> list[int]:
        slots = asyncio.Semaphore(WORKERS)
        return await asyncio.gather(*(nothing(slots, number) for number in range(COUNT)))

    began = time.perf_counter()
    assert len(asyncio.run(all_of_them())) == COUNT
    return 1e6 * (time.perf_counter() - began) / COUNT


if __name__ == "__main__":
    print(f"{COUNT} trials of a driver that does nothing, {WORKERS} side by side")
    sys.exit(compare(ours, bare, goal=GOAL, unit="µs a trial", rounds=5))
