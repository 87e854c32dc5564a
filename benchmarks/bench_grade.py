"""Grading alone: the grade of two answers to every case of the ladder, against comparing call lists as dictionaries.

Ours: `grade(case, transcript, evidence)` on what the toolbox recorded: hallucination, claims against the ledger, order
and values of calls, refusals, goals, recovery, results and proofs, each as a check, with the words for what failed.
The other side: makes dictionaries of the calls that were made and of those that were expected, and compares the two
lists with ==. Both sides start from the same structs in memory; no driver and no file is in it.
"""

from __future__ import annotations

import sys
import time

from common import compare

from agentbench_lab.cases import Call, Case, load_suite
from agentbench_lab.drivers.context import Context
from agentbench_lab.drivers.stub import stub
from agentbench_lab.grading import Evidence, grade
from agentbench_lab.running.trial import collect
from agentbench_lab.transcripts import Transcript
from agentbench_lab.worlds.find import Worlds
from agentbench_lab.worlds.toolbox import Toolbox

TIMES = 100
GOAL = 12.0


def by_stub(case: Case, tools: Toolbox) -> Transcript:
    return stub(case.task, tools, Context(tools, case.task, seed="0", trial=1))


def by_the_book(case: Case, tools: Toolbox) -> Transcript:
    """What the case expects, its calls really made."""
    expect = case.expect
    calls = []
    for wanted in expect.expected_calls:
        call = Call(
            wanted.name, {**{key: values[0] for key, values in wanted.accept.items()}, **wanted.input}
        )
        tools.call(call.name, call.input)
        calls.append(call)
    return Transcript(calls=tuple(calls), refused=expect.refuse, result=expect.result)


def answers() -> list[tuple[Case, Transcript, Evidence]]:
    suite = load_suite("ladder")
    worlds = Worlds(suite)
    found = []
    for case in suite.cases:
        for answer in (by_stub, by_the_book):
            tools = Toolbox(worlds.of(case), case.task.tools)
            said = answer(case, tools)
            found.append((case, said, collect(case, case.task, said, tools.close(), tools)))
    return found


ANSWERS = answers()


def ours() -> float:
    began = time.perf_counter()
    for _ in range(TIMES):
        for case, said, evidence in ANSWERS:
            grade(case, said, evidence)
    return 1e6 * (time.perf_counter() - began) / TIMES / len(ANSWERS)


def dictionaries() -> float:
    began = time.perf_counter()
    same = 0
    for _ in range(TIMES):
        for case, said, _evidence in ANSWERS:
            made = [{"name": call.name, "input": call.input} for call in said.calls]
            wanted = [{"name": call.name, "input": call.input} for call in case.expect.expected_calls]
            same += made == wanted
    return 1e6 * (time.perf_counter() - began) / TIMES / len(ANSWERS)


if __name__ == "__main__":
    print(f"{len(ANSWERS)} answers, {TIMES} times a round")
    sys.exit(compare(ours, dictionaries, goal=GOAL, unit="µs an answer"))
