"""A trial with one tool call, logged: ours against Inspect AI's mock model. At least 200 times as many a second.

Ours: the stub over those ladder cases at which it makes exactly one call; cases planned, graded and journaled, the fixed
cost of a start included, until the last trial stands in the log, which is the journal. The tables and exports that
follow have no counterpart in Inspect's log and are printed as a figure of their own. Inspect: its mock model makes one tool call and answers (two turns), scored by `includes`,
with its default log. Neither side's import counts. Inspect has a thousand samples a round: its time a sample grows with
their number (with five thousand it is longer still).

The ratio is ours by theirs, as in every script here: 1/200 = 0.005 is the goal. Needs `make bench-inspect`, which puts
Inspect into an environment of its own; without that this script says so and measures nothing.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import Journaled, compare, inspect_python

from agentbench_lab.cases import load_suite
from agentbench_lab.running.runner import evaluate

SAMPLES = 1_000
TRIALS = 200
GOAL = 1 / 200


def main() -> int:
    python = inspect_python()
    if python is None:
        return 0
    suite = load_suite("ladder")
    once = evaluate(suite, "stub", save_run=False).trials.select(["case_id", "tool_calls"]).to_pylist()
    calling = {row["case_id"] for row in once if row["tool_calls"] == 1}
    cases = [case for case in suite.cases if case.id in calling]
    count = len(cases) * TRIALS

    def ours() -> float:
        with tempfile.TemporaryDirectory() as folder:
            journaled = Journaled()
            run = evaluate(cases, "stub", trials=TRIALS, out=Path(folder) / "run", progress=journaled)
            whole = time.perf_counter() - journaled.began
        assert run.calls.num_rows == count
        print(f"  files at the end: {1e3 * (whole - journaled.spent) / count:.4f} ms a trial more")
        return 1e3 * journaled.spent / count

    with tempfile.TemporaryDirectory() as home:
        # what Inspect keeps beside its log goes there too
        environment = {**os.environ, "XDG_DATA_HOME": home, "XDG_CACHE_HOME": home}
        environment.pop("PYTHONPATH", None)
        with subprocess.Popen(
            [str(python), str(Path(__file__).with_name("inspect_mock.py")), str(SAMPLES)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        ) as inspect:
            assert inspect.stdin is not None and inspect.stdout is not None

            def theirs() -> float:
                assert inspect.stdin is not None and inspect.stdout is not None
                print(file=inspect.stdin, flush=True)
                return float(inspect.stdout.readline())

            print(
                f"ours {count} trials, Inspect {SAMPLES} samples a round; one tool call each, both with their logs"
            )
            code = compare(ours, theirs, goal=GOAL, unit="ms a trial", rounds=3)
            inspect.stdin.close()
    return code


if __name__ == "__main__":
    sys.exit(main())
