"""A process a trial: the command driver, against a bare subprocess run of the same program with the same input.

The program is Python and takes one task; the bare side hands it the task at once and reads its answer.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench_command_worker import AGENT, TASK, trials
from common import of_neighbours

from agentbench_lab.drivers.command import make

TRIALS, ROUNDS = 5, 15
GOAL = 1.1
LINE = b'{"id": "1", "task": {"request": "What is the sum?", "tools": ["add"]}}\n'


def bare(agent: Path) -> float:
    """Seconds for the runs."""
    began = time.perf_counter()
    for _ in range(TRIALS):
        done = subprocess.run([sys.executable, str(agent)], input=LINE, capture_output=True, check=True)
        assert TASK.request.encode() in done.stdout
    return time.perf_counter() - began


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        agent = Path(folder) / "agent.py"
        agent.write_text(AGENT, encoding="utf-8")
        spawn = make(f"[spawn]:{sys.executable} {agent}")

        def ours() -> float:
            return trials(spawn, TRIALS) * TRIALS / 1e6

        ours(), bare(agent)
        code = of_neighbours(
            [(ours(), bare(agent)) for _ in range(ROUNDS)], "a trial each", "bare runs", goal=GOAL
        )
        spawn.close()
    sys.exit(code)
