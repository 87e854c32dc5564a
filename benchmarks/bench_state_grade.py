"""A trial of seven calls on a state of 3 MB and its grade by the whole end state, against copying and hashing worlds.

Ours: a fork, a toolbox, seven checked calls with their differences, the evidence, and `grade` under `state_equals`.
The other side: one deep copy of the state, and JSON and SHA-256 of the one that comes out of it, as graders do
that compare hashes of whole databases; the calls themselves, and the reference world's hash, cost it nothing here.
Before anything is measured both have to give the same verdict on the right calls and on each call left out.
"""

from __future__ import annotations

import copy
import hashlib
import json
import sys
import time
from typing import Any

from common import compare
from state_world import CALLS, TOOLS, state

from agentbench_lab.cases import Case, Expect, Task
from agentbench_lab.grading import grade
from agentbench_lab.paths import ABSENT
from agentbench_lab.running.trial import collect
from agentbench_lab.transcripts import Transcript
from agentbench_lab.worlds.statestore import StateWorld
from agentbench_lab.worlds.toolbox import Toolbox

TIMES = 50
GOAL = 0.01
STATE = state()
WORLD = StateWorld("large", STATE, TOOLS)
NAMES = tuple(tool["name"] for tool in TOOLS)
SAID = Transcript()


def played(calls: list[tuple[str, dict[str, Any]]]) -> StateWorld:
    world = WORLD.fork()
    for name, input in calls:
        assert world.run(name, input).error is None
    return world


def expected() -> Case:
    """The whole end state, as the changes that the right calls make."""
    changes = {change.path: change.new for change in played(CALLS).changes() if change.new is not ABSENT}
    expect = Expect(state_equals=changes)
    return Case("c", "g", Task("r", NAMES), expect, taxonomy="outcome-graded")


CASE = expected()


def solved(calls: list[tuple[str, dict[str, Any]]]) -> bool | None:
    toolbox = Toolbox(WORLD.fork(), NAMES)
    for name, input in calls:
        toolbox.call(name, input)
    return grade(CASE, SAID, collect(CASE, CASE.task, SAID, toolbox.close(), toolbox)).solved


def hashed(world: Any) -> str:
    return hashlib.sha256(json.dumps(world, sort_keys=True).encode()).hexdigest()


def ours() -> float:
    began = time.perf_counter()
    for _ in range(TIMES):
        solved(CALLS)
    return 1e3 * (time.perf_counter() - began) / TIMES


def whole_worlds() -> float:
    began = time.perf_counter()
    hashed(copy.deepcopy(STATE))
    return 1e3 * (time.perf_counter() - began)


def agree() -> None:
    right = hashed(played(CALLS).state)
    for left_out in range(-1, len(CALLS)):
        calls = [call for at, call in enumerate(CALLS) if at != left_out]
        assert solved(calls) == (hashed(played(calls).state) == right), left_out


if __name__ == "__main__":
    agree()
    print(f"{len(json.dumps(STATE)) / 1e6:.1f} MB of state, {len(CALLS)} calls, the same verdicts")
    sys.exit(compare(ours, whole_worlds, goal=GOAL, unit="ms a trial"))
