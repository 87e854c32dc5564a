"""2,000 trials of an async driver that waits 50 ms, 64 side by side, against the ideal: at least 95 % of it.

The ideal is a figure and no run: 2,000 trials are 32 rounds of 64, and so at least 1.6 s. (An event loop alone, with
nothing but the waiting, takes 1.64 s: it wakes up to a millisecond late.) Ours is timed from the call of the first driver
to the last trial in the journal, graded and flushed. The fixed cost of a run, before the first trial and after the last
(planning, the commit, tables, card), does not grow with the waiting and is left aside; the whole is printed beside it.
"""

from __future__ import annotations

import asyncio
import math
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

WAIT_S = 0.05
WORKERS = 64
TRIALS = 10
CASES = load_suite("ladder").cases[:200]
COUNT = len(CASES) * TRIALS
GOAL = 1 / 0.95

begun: list[float] = []
whole: list[float] = []


async def waits(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
    """What a driver of a fast model does most of the time."""
    begun.append(time.perf_counter())
    await asyncio.sleep(WAIT_S)
    return Transcript(refused=True, stop="refused", usage=Usage.zero())


def ours() -> float:
    begun.clear()
    ended: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        run = evaluate(
            CASES,
            waits,
            trials=TRIALS,
            workers=WORKERS,
            out=Path(folder) / "run",
            progress=lambda done, asked: ended.append(time.perf_counter()),
        )
        whole.append(time.perf_counter() - started)
    assert run.card.counts.judged == COUNT
    return ended[-1] - begun[0]


def ideal() -> float:
    return math.ceil(COUNT / WORKERS) * WAIT_S


if __name__ == "__main__":
    print(f"{COUNT} trials that wait {WAIT_S * 1000:g} ms, {WORKERS} side by side")
    ours()
    print(f"one run as a whole, from planning to card: {whole[-1]:.4g} s")
    sys.exit(compare(ours, ideal, goal=GOAL, unit="s", rounds=7))
