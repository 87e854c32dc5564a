"""Reading an Inspect log of 5,000 samples: ours against Inspect AI's own `read_eval_log`. At least 20 times as fast.

Ours: `load_results("inspect", log)`, from the file's bytes to the five tables in memory: every sample judged, its
messages, calls and usage kept, checksums and published totals checked; its events are skipped. Inspect: the same file to
its own objects, events and all. The log is written by Inspect, by its mock model with one tool call and an answer a
sample. Neither side's import counts; both read the same file, which lies in the memory of the system by then.

The ratio is ours by theirs: 1/20 = 0.05 is the goal. Needs `make bench-inspect`, which puts Inspect into an environment
of its own; without that this script says so and measures nothing. Writing the log takes a minute or two.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import unquote, urlparse

from common import compare, inspect_python

from agentbench_lab.benchmarks import load_results

SAMPLES = 5_000
GOAL = 1 / 20


def main() -> int:
    python = inspect_python()
    if python is None:
        return 0
    with tempfile.TemporaryDirectory() as home:
        # what Inspect keeps beside its log goes there too
        environment = {**os.environ, "XDG_DATA_HOME": home, "XDG_CACHE_HOME": home}
        environment.pop("PYTHONPATH", None)
        with subprocess.Popen(
            [str(python), str(Path(__file__).with_name("inspect_log.py")), str(SAMPLES), f"{home}/logs"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        ) as inspect:
            assert inspect.stdin is not None and inspect.stdout is not None
            log = Path(unquote(urlparse(inspect.stdout.readline().strip()).path))
            print(f"{SAMPLES} samples, {log.stat().st_size / 1e6:.1f} MB")

            def ours() -> float:
                began = time.perf_counter()
                run = load_results("inspect", log)
                spent = time.perf_counter() - began
                assert run.card.counts.judged == run.calls.num_rows == SAMPLES
                return spent

            def theirs() -> float:
                assert inspect.stdin is not None and inspect.stdout is not None
                print(file=inspect.stdin, flush=True)
                return float(inspect.stdout.readline())

            code = compare(ours, theirs, goal=GOAL, unit="s", rounds=5)
            inspect.stdin.close()
    return code


if __name__ == "__main__":
    sys.exit(main())
