"""Calls judged in mode `bfcl` against bfcl-eval's own checker, on the ground truths of six of its categories.

The wheel of bfcl-eval 2026.3.23 is unpacked somewhere and named by AGENTBENCH_LAB_BFCL_EVAL; its checker runs as it is,
with a stand-in for its table of models alone. Before anything is measured both sides have to give the same verdict on
every ground truth and on as many outputs with something changed. Ours compiles each ground truth once, before the
clock starts; what compiling costs is printed. Each case is judged eight times in a row, on both sides, as in a run with
eight trials a case.
"""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from common import compare

from agentbench_lab.benchmarks.bfcl_cases import load_cases
from agentbench_lab.expect import BfclTruth
from agentbench_lab.grading.bfcl import Checker
from tests.bfcl_oracle import VARIABLE, mutated, their_checker, wheel

CATEGORIES = ("simple_python", "multiple", "parallel", "parallel_multiple", "live_simple", "live_multiple")
TRIALS = 8
GOAL = 0.2


def main() -> int:
    folder = wheel()
    if folder is None:
        print(f"skipped: {VARIABLE} names no unpacked wheel of bfcl-eval")
        return 0
    theirs = their_checker(folder)
    data = folder / "bfcl_eval" / "data"
    dice = random.Random(1)
    truths: list[BfclTruth] = []
    right, wrong = [], []
    for name in CATEGORIES:
        for case in load_cases(data / f"BFCL_v4_{name}.json").cases:
            assert case.expect.bfcl is not None and case.gold is not None
            truths.append(case.expect.bfcl)
            right.append(list(case.gold.calls))
            wrong.append(mutated(case.gold.calls, case.expect.bfcl, dice))
    began = time.perf_counter()
    checkers = [Checker(truth) for truth in truths]
    compiling = 1e6 * (time.perf_counter() - began) / len(truths)
    for outputs in (right, wrong):
        for truth, checker, calls in zip(truths, checkers, outputs, strict=True):
            assert (checker.wrong(calls) is None) == theirs(truth, calls), calls
    print(
        f"{len(truths)} cases, the same verdicts on {2 * len(truths)} outputs; compiling {compiling:.1f} µs a case"
    )
    from bfcl_eval.constants.enums import Language  # type: ignore[import-not-found]
    from bfcl_eval.eval_checker.ast_eval.ast_checker import ast_checker  # type: ignore[import-not-found]

    # their side's arguments are made before the clock starts too
    asked = [
        (
            list(truth.functions), [{call.name: call.input} for call in calls], list(truth.ground_truth),
            Language.PYTHON, truth.category, "none",
        )
        for truth, calls in zip(truths, right, strict=True)
    ]  # fmt: skip
    given = list(zip(checkers, right, strict=True))

    def ours() -> float:
        began = time.perf_counter()
        for checker, calls in given:
            for _ in range(TRIALS):
                checker.wrong(calls)
        return 1e6 * (time.perf_counter() - began) / len(given) / TRIALS

    def other() -> float:
        began = time.perf_counter()
        for arguments in asked:
            for _ in range(TRIALS):
                ast_checker(*arguments)
        return 1e6 * (time.perf_counter() - began) / len(asked) / TRIALS

    return compare(ours, other, goal=GOAL, unit="µs a case")


if __name__ == "__main__":
    sys.exit(main())
