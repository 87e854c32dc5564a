"""A trial by a Python program: a persistent worker that takes the next task, against a process begun for each trial.

Both sides are the command driver with the same program under the same interpreter; a trial is one task and its answer,
without the runner.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from common import compare

from agentbench_lab.cases import Task
from agentbench_lab.drivers.command import Command, make
from agentbench_lab.drivers.context import Context
from agentbench_lab.worlds.statestore import StateWorld
from agentbench_lab.worlds.toolbox import Toolbox

TRIALS, SPAWNS = 2_000, 12
GOAL = 0.01
AGENT = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    print(json.dumps({"id": message["id"], "final": {"answer": message["task"]["request"]}}), flush=True)
"""
TASK = Task("What is the sum?", ("add",))
WORLD = StateWorld("sums", {"sum": 3}, [{"name": "add", "effects": [{"return": "sum"}]}])


def trials(driver: Command, count: int) -> float:
    """Microseconds a trial."""
    began = time.perf_counter()
    for trial in range(count):
        tools = Toolbox(WORLD, TASK.tools)
        done = driver(TASK, tools, Context(tools, TASK, seed="0", trial=trial))
        assert done.answer == TASK.request, done
    return 1e6 * (time.perf_counter() - began) / count


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        agent = Path(folder) / "agent.py"
        agent.write_text(AGENT, encoding="utf-8")
        worker, spawn = make(f"{sys.executable} {agent}"), make(f"[spawn]:{sys.executable} {agent}")
        trials(worker, 1)
        code = compare(
            lambda: trials(worker, TRIALS),
            lambda: trials(spawn, SPAWNS),
            goal=GOAL,
            unit="µs a trial",
            rounds=5,
        )
        worker.close(), spawn.close()
    sys.exit(code)
