"""Importing: `import agentbench_lab` against `import polars`, in fresh processes.

From both sides the time of a process that imports nothing is taken away, measured in the same rounds.
"""

from __future__ import annotations

import subprocess
import sys
import time
from statistics import median

from common import compare

GOAL = 0.25
REPEATS = 5


def process(code: str) -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return 1e3 * (time.perf_counter() - began)


def above_nothing(code: str) -> float:
    """Milliseconds, the median of a few, each with an empty process right after it."""
    return median(process(code) - process("pass") for _ in range(REPEATS))


if __name__ == "__main__":
    print("whole processes, less an empty one")
    sys.exit(
        compare(
            lambda: above_nothing("import agentbench_lab"),
            lambda: above_nothing("import polars"),
            goal=GOAL,
            unit="ms",
        )
    )
