"""One report from a cold start against papermill's command line and nbconvert's after it.

Ours: `agentbench-lab report run_ladder`, the whole process: the notebook is run and published with its live charts.
The other side: `papermill run_ladder.ipynb` and then `jupyter nbconvert --to html` of what it wrote, two whole processes;
their page has pictures only. Both run the same cases by the stub, and save the run. A first round is thrown away: it
makes the chart library, which is then kept for the user as Python keeps its .pyc files.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from common import of_neighbours
from reporting import ours, project, the_pair

ROUNDS = 5
GOAL = 0.6

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        where = project(Path(folder), ["run_ladder"], "run_ladder")
        ours(where, "report", "run_ladder"), the_pair(where, "run_ladder")
        pairs = [(ours(where, "report", "run_ladder"), the_pair(where, "run_ladder")) for _ in range(ROUNDS)]
    sys.exit(of_neighbours(pairs, "agentbench-lab report", "papermill + nbconvert", goal=GOAL))
