"""2,000 trials of an async driver that waits 50 ms, 64 side by side, against the ideal: 2,000 / 64 * 50 ms = 1.5625 s.

Ours is the whole of `evaluate`, its fixed cost included: cases planned, each trial with its toolbox and limits, graded,
journaled and flushed, tables and card saved. The ideal is a figure and no run: it knows no event loop, and not even that
2,000 trials make 32 rounds of 64, which alone is 1.024 of it.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from pathlib import Path

from common import compare

from agentbench_lab.cases import Task, load_suite
from agentbench_lab.drivers.base import Context
from agentbench_lab.running.runner import evaluate
from agentbench_lab.transcripts import Transcript, Usage
from agentbench_lab.worlds.toolbox import Toolbox

WAIT_S = 0.05
WORKERS = 64
TRIALS = 10
CASES = load_suite("ladder").cases[:200]
COUNT = len(CASES) * TRIALS
GOAL = 1 / 0.95


async def waits(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
    """What a driver of a fast model does most of the time."""
    await asyncio.sleep(WAIT_S)
    return Transcript(refused=True, stop="refused", usage=Usage.zero())


def ours() -> float:
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        run = evaluate(CASES, waits, trials=TRIALS, workers=WORKERS, out=Path(folder) / "run")
        spent = time.perf_counter() - began
    assert run.card.counts.judged == COUNT
    return spent


def ideal() -> float:
    return COUNT / WORKERS * WAIT_S


if __name__ == "__main__":
    print(f"{COUNT} trials that wait {WAIT_S * 1000:g} ms, {WORKERS} side by side")
    sys.exit(compare(ours, ideal, goal=GOAL, unit="s", rounds=5))
