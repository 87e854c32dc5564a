"""A driver that computes about 5 ms a trial, over two worker processes, against a bare ProcessPoolExecutor(2).

Both do the same work as many times. On both sides the clock runs from the first task that is finished to the last one,
so that the start of the first worker counts on neither (the second starts a little later, which is spread over the
tasks); ours has a toolbox, limits, a grade and a line of the journal for
each trial, the bare pool sends back a number.
"""

from __future__ import annotations

import hashlib
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from common import compare

from agentbench_lab.cases import Task, load_suite
from agentbench_lab.drivers.context import Context
from agentbench_lab.running.runner import evaluate
from agentbench_lab.transcripts import Transcript, Usage
from agentbench_lab.worlds.toolbox import Toolbox

WORKERS = 2
TRIALS = 8
STEPS = 18_000
"""Digests of digests, about 5 ms of them."""
CASES = load_suite("ladder").cases[:200]
COUNT = len(CASES) * TRIALS
GOAL = 1 / 0.95


def work() -> str:
    found = b""
    for _ in range(STEPS):
        found = hashlib.sha256(found).digest()
    return found.hex()


def computes(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
    """A driver that thinks by itself."""
    return Transcript(refused=True, stop="refused", usage=Usage.zero(), notes=(work(),))


def ours() -> float:
    ended: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        evaluate(
            CASES,
            "bench_runner_computing:computes",
            trials=TRIALS,
            workers=WORKERS,
            executor="processes",
            out=Path(folder) / "run",
            progress=lambda done, asked: ended.append(time.perf_counter()),
        )
    return _per_task(ended)


def bare() -> float:
    ended = []
    with ProcessPoolExecutor(WORKERS) as pool:
        for future in as_completed([pool.submit(work) for _ in range(COUNT)]):
            future.result()
            ended.append(time.perf_counter())
    return _per_task(ended)


def _per_task(ended: list[float]) -> float:
    assert len(ended) == COUNT
    return 1e3 * (ended[-1] - ended[0]) / (COUNT - 1)


if __name__ == "__main__":
    print(f"{COUNT} tasks over {WORKERS} processes")
    sys.exit(compare(ours, bare, goal=GOAL, unit="ms a task", rounds=5))
