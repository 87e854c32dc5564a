"""The stub over the ladder suite, graded and journaled, against a bare loop with the same driver and the same world.

Ours: from the call of evaluate, with the planning and the fixed cost of a start (the commit among it), until the last
trial is graded and its line is with the system. Each trial has a toolbox with its ledger, limits, a thread that watches
them, and its prints kept. What follows when all trials are journaled is left aside and printed as a figure of its own:
five Parquet tables, product.jsonl, bench.json and the card.
The bare loop: for each case and trial it calls the driver with a toolbox and writes one JSON line of what happened
(case, trial, calls, refusal, proof, note, and the ledger with its texts). It grades nothing and flushes once.
Both read the worlds; reading the suite counts on neither side.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

from common import Journaled, compare

from agentbench_lab.cases import load_suite
from agentbench_lab.drivers.context import Context
from agentbench_lab.drivers.stub import stub
from agentbench_lab.running.runner import evaluate
from agentbench_lab.worlds.find import Worlds
from agentbench_lab.worlds.toolbox import Toolbox

TRIALS = 100
GOAL = 3.0

SUITE = load_suite("ladder")
COUNT = len(SUITE.cases) * TRIALS


def ours() -> float:
    with tempfile.TemporaryDirectory() as folder:
        journaled = Journaled()
        run = evaluate(SUITE, "stub", trials=TRIALS, out=Path(folder) / "run", progress=journaled)
        whole = time.perf_counter() - journaled.began
    assert run.card.counts.judged == COUNT
    print(f"  files at the end: {1e6 * (whole - journaled.spent) / COUNT:.1f} µs a trial more")
    return 1e6 * journaled.spent / COUNT


def bare() -> float:
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        worlds = Worlds(SUITE)
        with open(Path(folder) / "trials.jsonl", "w", encoding="utf-8") as file:
            for case in SUITE.cases:
                world = worlds.of(case)
                for trial in range(1, TRIALS + 1):
                    tools = Toolbox(world, case.task.tools)
                    said = stub(case.task, tools, Context(tools, case.task, seed="0", trial=trial))
                    row = {
                        "case": case.id,
                        "trial": trial,
                        "calls": [{"name": call.name, "input": call.input} for call in said.calls],
                        "refused": said.refused,
                        "proof": said.proof,
                        "note": said.notes[-1],
                        "ledger": [
                            {
                                "name": call.name,
                                "input": call.input,
                                "status": call.status,
                                "value": call.value,
                                "text": call.text,
                            }
                            for call in tools.close()
                        ],
                    }
                    file.write(json.dumps(row) + "\n")
        return 1e6 * (time.perf_counter() - began) / COUNT


if __name__ == "__main__":
    print(f"{len(SUITE.cases)} cases x {TRIALS} trials of the stub")
    sys.exit(compare(ours, bare, goal=GOAL, unit="µs a trial", rounds=5))
