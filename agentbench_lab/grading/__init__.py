"""Judging one trial: a pure function from the case, the transcript and the evidence to one outcome.

Source of the rule: the TOOL ladder's document, "The grade". A case passes only when no call was hallucinated, the
loop ended, the expected outcome was produced, and a proof is there when one is asked for.

Two strictnesses:

- `strict` judges what the ledger bears out: a claimed call that did not happen is a false success, recovery is read
  from what the tools gave back, a proof must agree with the preconditions that really held, values are JSON values.
- `original` judges the transcript alone by the ladder's literal rule, and exists for comparison with it.

A suite that is not of the ladder is judged by its outcomes (`grading.outcome`): end state, answer, calls, refusal.
A case may ask for a rule that a public benchmark has published (`grading.published`): modes `bfcl` and `agentd`.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path
from typing import Literal

from agentbench_lab.cases import Case
from agentbench_lab.errors import LabError, did_you_mean
from agentbench_lab.grading.grade import Check, Evidence, Grade, excluded
from agentbench_lab.grading.original import grade_original
from agentbench_lab.grading.outcome import grade_outcome
from agentbench_lab.grading.published import grade_published
from agentbench_lab.grading.strict import grade_strict
from agentbench_lab.transcripts import Transcript

Strictness = Literal["strict", "original"]
STRICTNESSES = ("strict", "original")


def grade(case: Case, transcript: Transcript, evidence: Evidence, *, strictness: str = "strict") -> Grade:
    """Judge one trial of `case`. Pure: the same arguments give the same grade, and nothing is read or run."""
    if evidence.fault:
        return excluded(evidence.fault, "environment")
    if transcript.stop == "infrastructure_error":
        return excluded(transcript.notes[-1] if transcript.notes else "infrastructure_error", "environment")
    if case.taxonomy != "ladder" and strictness in STRICTNESSES:
        if strictness == "original":
            raise LabError(
                f"strictness original is the ladder's; {case.suite or case.id} is judged by its outcomes"
            )
        if case.expect.mode != "strict":
            return grade_published(case, transcript, evidence)
        return grade_outcome(case, transcript, evidence)
    if strictness == "strict":
        return grade_strict(case, transcript, evidence)
    if strictness == "original":
        return grade_original(case, transcript, evidence)
    raise LabError(f"no strictness {strictness!r}{did_you_mean(strictness, STRICTNESSES)}")


@lru_cache(maxsize=1)
def version() -> str:
    """The start of the digest of the grader's own source: a verdict of another version is to be judged again."""
    found = hashlib.sha256()
    for file in sorted(Path(__file__).parent.glob("*.py")):
        found.update(file.name.encode() + b"\0" + file.read_bytes())
    return found.hexdigest()[:16]


__all__ = ["STRICTNESSES", "Check", "Evidence", "Grade", "Strictness", "grade", "version"]
