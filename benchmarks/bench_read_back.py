"""Reading a run back is linear in its size: `load_run` of 20,800 trials against 5,200, both per trial.

Both sides are ours: the same suite by the stub, with 100 and with 25 trials a case, read whole and checked.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from common import compare

from agentbench_lab.cases import load_suite
from agentbench_lab.results.run import load_run
from agentbench_lab.running.runner import evaluate

LARGE, SMALL = 100, 25
GOAL = 1.5

SUITE = load_suite("ladder")


def main() -> int:
    with tempfile.TemporaryDirectory() as scratch:
        for trials in (LARGE, SMALL):
            evaluate(SUITE, "stub", trials=trials, out=Path(scratch) / str(trials))

        def reading(trials: int, times: int) -> float:
            count = 0
            began = time.perf_counter()
            for _ in range(times):
                count += len(load_run(Path(scratch) / str(trials)).product)
            return 1e6 * (time.perf_counter() - began) / count

        print(f"{LARGE * len(SUITE.cases)} trials (ours) and {SMALL * len(SUITE.cases)} (other side)")
        # the same number of trials on both sides, so that a loud moment meets both alike
        return compare(
            lambda: reading(LARGE, 1), lambda: reading(SMALL, LARGE // SMALL), goal=GOAL, unit="µs a trial"
        )


if __name__ == "__main__":
    sys.exit(main())
