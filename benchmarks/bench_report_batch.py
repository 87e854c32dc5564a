"""Twenty reports by one call against twenty times papermill's command line and nbconvert's after it.

Ours: `agentbench-lab publish` of twenty notebooks, copies of run_ladder, in one process that starts cold; each has a
namespace of its own, runs all cases by the stub, saves its run, and is published with live charts, and then the index.
The other side: one pair of `papermill run_ladder.ipynb` and `jupyter nbconvert --to html`, timed before and after ours,
times twenty: the pairs share nothing, so that twenty take twenty times one.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from common import of_neighbours
from reporting import ours, project, the_pair

REPORTS = 20
ROUNDS = 3
GOAL = 0.1

if __name__ == "__main__":
    names = [f"ladder_{n:02}" for n in range(REPORTS)]
    pairs = []
    with tempfile.TemporaryDirectory() as folder:
        where = project(Path(folder), names)
        for _ in range(ROUNDS):
            before = the_pair(where, names[0])
            mine = ours(where, "publish")
            pairs.append((mine, REPORTS * (before + the_pair(where, names[0])) / 2))
    sys.exit(of_neighbours(pairs, f"{REPORTS} reports", f"{REPORTS} x papermill + nbconvert", goal=GOAL))
