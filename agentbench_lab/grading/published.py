"""The grade of a case under a rule that a public benchmark has published: that rule alone decides whether it passes.

Every check is named after its mode, so that no verdict of theirs is taken for one of ours. The calls are those that
reached the toolbox, whatever came of them. What our own rule would mind is shown and decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from agentbench_lab.cases import Call, Case
from agentbench_lab.expect import BfclTruth
from agentbench_lab.grading import agentd
from agentbench_lab.grading.bfcl import Checker
from agentbench_lab.grading.grade import STOPS, Check, Evidence, Grade, excluded, judged
from agentbench_lab.grading.strict import invented_calls
from agentbench_lab.transcripts import Transcript
from agentbench_lab.worlds.seen import LOST

_KEPT = 4096
_compiled: dict[int, tuple[BfclTruth, Checker]] = {}
"""Checkers by the identity of their ground truth, which is kept beside them so that no other can take its place."""


def grade_published(case: Case, transcript: Transcript, evidence: Evidence) -> Grade:
    """Judge one trial by `expect.bfcl` or `expect.agentd`. A trial that ran out of time fails under both; an error of
    the driver's or a spent budget fails under `bfcl`, while `agentd` looks at what was done before; where that is lost with
    the process that ran the trial, its rule has nothing to decide on, and the trial is excluded."""
    expect, mode = case.expect, case.expect.mode
    made = [row for row in evidence.ledger if not row.late]
    calls = tuple([Call(row.name, row.input) for row in made if type(row.input) is dict])
    ends: tuple[str, ...] = STOPS
    if expect.bfcl is not None:
        checks = [_check("bfcl.calls", checker(expect.bfcl).wrong(calls))]
    else:
        assert expect.agentd is not None
        if evidence.seen is not None and evidence.seen.lost and transcript.stop != "timeout":
            return excluded(LOST, "environment")
        checks = [
            _check(f"agentd.{name}", wrong)
            for name, wrong in agentd.wrongs(expect.agentd, transcript, evidence)
        ]
        ends = ("timeout",)
    stop = transcript.stop if transcript.stop in ends else ""
    if stop:
        checks.insert(0, Check(f"{mode}.terminated", False, f"stopped: {stop}"))
    invented = invented_calls(transcript, evidence)
    said = f"hallucinated {', '.join(invented)}" if invented else ""
    checks.append(Check("hallucination", not invented, said, gates=False))
    solved = all(check.passed for check in checks if check.gates)
    nothing = not (calls or transcript.answer is not None or transcript.refused)
    outcome = (
        "solved" if solved
        else stop if stop
        else transcript.stop if transcript.stop in STOPS
        else "over_refusal" if transcript.refused and not calls
        else "no_answer" if nothing
        else "unsolved"
    )  # fmt: skip
    return judged(outcome, solved, solved, bool(invented), checks)


def checker(truth: BfclTruth, make: Callable[[BfclTruth], Checker] = Checker) -> Checker:
    """The compiled ground truth, made once."""
    found = _compiled.get(id(truth))
    if found is None:
        if len(_compiled) >= _KEPT:
            _compiled.clear()
        found = _compiled[id(truth)] = truth, make(truth)
    return found[1]


def _check(name: str, wrong: str | None) -> Check:
    return Check(name, wrong is None, wrong or "")


__all__ = ["checker", "grade_published"]
