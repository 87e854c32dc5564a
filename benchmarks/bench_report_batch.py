"""Twenty reports by one call against twenty times papermill's command line and nbconvert's after it.

Ours: `agentbench-lab publish --jobs 2` of twenty notebooks, copies of read_failures, in two processes that start cold.
Each has a namespace of its own, asks the stub 66 cases, shows four tables and a chart, and is published with a live chart
and all its trials in full; then the index.
The other side: one pair of `papermill read_failures.ipynb` and `jupyter nbconvert --to html`, timed before and after
ours, times twenty: the pairs share nothing, so that twenty take twenty times one.

An argument names another notebook. run_ladder draws two charts, one of them of four plots, which Altair alone takes a
third of a second for: it gains less.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from common import of_neighbours
from reporting import ours, project, the_pair

REPORTS = 20
JOBS = 2
ROUNDS = 3
GOAL = 0.1

if __name__ == "__main__":
    notebook = sys.argv[1] if len(sys.argv) > 1 else "read_failures"
    names = [f"{notebook}_{n:02}" for n in range(REPORTS)]
    pairs = []
    with tempfile.TemporaryDirectory() as folder:
        where = project(Path(folder), names, notebook)
        for _ in range(ROUNDS):
            before = the_pair(where, names[0])
            mine = ours(where, "publish", "--jobs", str(JOBS))
            pairs.append((mine, REPORTS * (before + the_pair(where, names[0])) / 2))
    sys.exit(of_neighbours(pairs, f"{REPORTS} reports", f"{REPORTS} x papermill + nbconvert", goal=GOAL))
