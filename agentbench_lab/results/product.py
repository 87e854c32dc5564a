"""The product row: one graded trial, without a clock, and with everything that the grade read.

product.jsonl holds one such row a line. The same tree and stamp give the same bytes, and `regrade` gives the same
verdict from a row alone, on every rung.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from agentbench_lab.cases import Call, Case, Expect, Goal, Task, TaxonomyName
from agentbench_lab.errors import LabError
from agentbench_lab.grading import Evidence, Grade, grade
from agentbench_lab.grading.grade import Check, Problems
from agentbench_lab.outcomes import Class
from agentbench_lab.transcripts import Status, Stop, Transcript
from agentbench_lab.worlds.arguments import Misfit
from agentbench_lab.worlds.capabilities import BindingProblem, Effect
from agentbench_lab.worlds.seen import Seen
from agentbench_lab.worlds.toolbox import Fact, LedgerRow


class Arm(Struct, frozen=True, order=True):
    """A configuration: driver x model x scaffold, by the names the caller gave."""

    driver: str
    model: str | None = None
    scaffold: str = "once"

    def __str__(self) -> str:
        parts = [self.driver, *([self.model] if self.model else [])]
        return "+".join([*parts, *([self.scaffold] if self.scaffold != "once" else [])])


class LedgerEntry(Struct, frozen=True, gc=False, omit_defaults=True):
    """A ledger row as the product keeps it: all the grade reads, without the text the agent saw."""

    name: str
    input: Any
    status: Status
    value: Any = None
    error: str = ""
    problems: tuple[BindingProblem, ...] = ()
    misfits: tuple[Misfit, ...] = ()
    facts: tuple[Fact, ...] = ()
    effects: tuple[Effect, ...] = ()
    changes: bool = False
    empty: bool | None = None


class Produced(Struct, frozen=True, gc=False, omit_defaults=True):
    """What the driver produced and the toolbox saw. The first three keys are always there, as in the ladder's rows."""

    calls: tuple[Call, ...]
    refused: bool
    terminated: bool
    stop: Stop
    driver: str = ""
    answer: Any = None
    status: str | None = None
    result: tuple[str, ...] | None = None
    candidate_results: tuple[Call, ...] | None = None
    recovered: bool = False
    inferred_goal: str | None = None
    reject: bool = False
    ambiguous_goals: tuple[str, ...] | None = None
    proof: tuple[dict[str, Any], ...] = ()
    why: str = ""
    ledger: tuple[LedgerEntry, ...] = ()
    problems: tuple[Problems, ...] = ()
    candidate_problems: tuple[Problems, ...] = ()
    fault: str = ""
    seen: Seen | None = None


class Verdict(Struct, frozen=True, gc=False):
    """The grade, as stored."""

    outcome: str | None
    cls: Class | None = msgspec.field(name="class")
    solved: bool | None
    completed: bool | None
    result_completed: bool | None
    hallucinated: bool | None
    checks: tuple[Check, ...]
    excluded: str | None = None
    owner: str | None = None


class ProductRow(Struct, frozen=True, gc=False):
    """One line of product.jsonl."""

    suite: str
    case_id: str
    group: str
    request: str
    tools: tuple[str, ...]
    arm: Arm
    trial: int
    stamp: str
    strictness: str
    expect: Expect
    produced: Produced
    verdict: Verdict
    floor_expect: bool = False
    trace: tuple[Call, ...] = ()
    goals: tuple[Goal, ...] = ()
    taxonomy: TaxonomyName | msgspec.UnsetType = msgspec.UNSET
    """The outcomes it is judged by; left out for the ladder's."""

    @property
    def outcomes(self) -> TaxonomyName:
        return "ladder" if self.taxonomy is msgspec.UNSET else self.taxonomy


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(ProductRow)


def product_row(
    case: Case,
    task: Task,
    arm: Arm,
    trial: int,
    stamp: str,
    strictness: str,
    transcript: Transcript,
    evidence: Evidence,
    verdict: Grade,
) -> ProductRow:
    """The row of one graded trial."""
    return ProductRow(
        case.suite,
        case.id,
        case.group,
        task.request,
        task.tools,
        arm,
        trial,
        stamp,
        strictness,
        case.expect,
        Produced(
            transcript.calls,
            transcript.refused,
            transcript.terminated,
            transcript.stop,
            transcript.driver,
            transcript.answer,
            transcript.status,
            transcript.result,
            transcript.candidate_results,
            transcript.recovered,
            transcript.inferred_goal,
            transcript.reject,
            transcript.ambiguous_goals,
            transcript.proof,
            transcript.notes[-1] if transcript.notes else "",
            tuple([_entry(row, case.expect.proof) for row in evidence.ledger]),
            evidence.problems if any(evidence.problems) else (),
            evidence.candidate_problems if any(evidence.candidate_problems) else (),
            evidence.fault,
            evidence.seen,
        ),
        verdict_of(verdict),
        case.floor_expect,
        task.trace,
        evidence.goals,
        msgspec.UNSET if case.taxonomy == "ladder" else case.taxonomy,
    )


def verdict_of(graded: Grade) -> Verdict:
    """What a row keeps of a grade."""
    return Verdict(
        graded.outcome,
        graded.cls,
        graded.solved,
        graded.completed,
        graded.result_completed,
        graded.hallucinated,
        graded.checks,
        graded.excluded,
        graded.owner,
    )


def _entry(row: LedgerRow, proof: bool) -> LedgerEntry:
    return LedgerEntry(
        row.name,
        row.input,
        row.status,
        row.value,
        "" if row.status == "ok" else row.text,
        row.problems,
        row.misfits,
        row.facts if proof else (),
        row.effects if proof else (),
        row.changes,
        row.empty,
    )


def transcript_of(produced: Produced) -> Transcript:
    """The transcript as far as a row keeps it: without usage and messages, and of the notes the last."""
    return Transcript(
        calls=produced.calls,
        answer=produced.answer,
        status=produced.status,
        refused=produced.refused,
        terminated=produced.terminated,
        stop=produced.stop,
        proof=produced.proof,
        driver=produced.driver,
        result=produced.result,
        candidate_results=produced.candidate_results,
        recovered=produced.recovered,
        inferred_goal=produced.inferred_goal,
        reject=produced.reject,
        ambiguous_goals=produced.ambiguous_goals,
        notes=(produced.why,) if produced.why else (),
    )


def ledger_row(entry: LedgerEntry, text: str, diff: Any = None, worker: int = 0) -> LedgerRow:
    """The ledger row of an entry, with what the product does not keep of it: the text the agent saw, the diff, and
    which worker called."""
    return LedgerRow(
        entry.name,
        entry.input,
        entry.status,
        value=entry.value,
        text=text,
        problems=entry.problems,
        misfits=entry.misfits,
        facts=entry.facts,
        effects=entry.effects,
        changes=entry.changes,
        empty=entry.empty,
        diff=diff,
        worker=worker,
    )


def regrade(row: ProductRow, *, strictness: str | None = None) -> Grade:
    """Judge a stored row again, from the row alone."""
    produced = row.produced
    transcript = transcript_of(produced)
    ledger = tuple(ledger_row(entry, entry.error) for entry in produced.ledger)
    evidence = Evidence(
        ledger,
        produced.problems or ((),) * len(produced.calls),
        produced.candidate_problems or ((),) * len(produced.candidate_results or ()),
        row.goals,
        produced.fault,
        produced.seen,
    )
    case = Case(
        row.case_id,
        row.group,
        Task(row.request, row.tools, row.trace, row.goals),
        row.expect,
        suite=row.suite,
        floor_expect=row.floor_expect,
        taxonomy=row.outcomes,
    )
    return grade(case, transcript, evidence, strictness=strictness or row.strictness)


def encode_rows(rows: Iterable[ProductRow]) -> bytes:
    """product.jsonl: one row a line, each line ended."""
    return b"".join(_encoder.encode(row) + b"\n" for row in rows)


def read_product(path: str | Path) -> Iterator[ProductRow]:
    """The rows of a product.jsonl. Raises LabError with `file:line` for a line that is none."""
    with open(path, "rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                yield _decoder.decode(line)
            except (msgspec.DecodeError, ValueError, RecursionError) as error:
                raise LabError(f"{path}:{number}: no product row: {error}") from None
