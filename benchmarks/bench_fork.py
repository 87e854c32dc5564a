"""A fresh world for a trial: a fork of a state of 3 MB, against decoding its JSON, as a loader of worlds does.

Ours: `fork`, and a first call that changes something, so that what a fork puts off is paid for as well.
The other side: `json.loads` of the same state, and nothing else.
"""

from __future__ import annotations

import json
import sys
import time

from common import compare
from state_world import TOOLS, state

from agentbench_lab.worlds.statestore import StateWorld

TIMES = 200
GOAL = 0.02
WORLD = StateWorld("large", state(), TOOLS)
DATA = json.dumps(state())


def ours() -> float:
    began = time.perf_counter()
    for _ in range(TIMES):
        WORLD.fork().run("cancel", {"id": "W14"})
    return 1e6 * (time.perf_counter() - began) / TIMES


def decoding() -> float:
    began = time.perf_counter()
    json.loads(DATA)
    return 1e6 * (time.perf_counter() - began)


if __name__ == "__main__":
    print(f"{len(DATA) / 1e6:.1f} MB of JSON")
    sys.exit(compare(ours, decoding, goal=GOAL, unit="µs a world"))
