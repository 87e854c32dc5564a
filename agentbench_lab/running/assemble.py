"""Records of trials as a run: how far each arm came, the card, the tables."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
import pyarrow as pa

from agentbench_lab.cases import RUNGS
from agentbench_lab.ladder import Cell, Climb, climb, in_order
from agentbench_lab.results.product import Arm, ProductRow
from agentbench_lab.results.run import Counts, Envelope, Run, RunCard
from agentbench_lab.running.tables import trial_tables
from agentbench_lab.running.trial import Record


def cell(group: str, asked: int, rows: Iterable[ProductRow]) -> Cell:
    """The counts of one group from product rows."""
    judged = [row.verdict for row in rows if row.group == group and row.verdict.excluded is None]
    return Cell(
        group,
        asked,
        len(judged),
        sum(bool(verdict.completed) for verdict in judged),
        sum(bool(verdict.hallucinated) for verdict in judged),
    )


def climbed(
    asked: Mapping[str, int],
    begun: Collection[str],
    rows: Sequence[ProductRow],
    *,
    suite: Collection[str],
    ladder: bool,
) -> Climb:
    """How far an arm came: `asked` trials by group, `begun` the groups that were asked, `rows` the arm's own.

    A group that was begun and has no rows is incomplete, not passed over. A rung is reached only when every rung below
    it that the suite has was asked and passed. Receipts are for rungs that were really not asked, which only the
    ladder leaves out.
    """
    order = in_order(asked)
    found = climb({group: cell(group, asked[group], rows) for group in order if group in begun}, order)
    reached = None
    for group in in_order(suite):
        if found.reached is None or group not in asked or group not in RUNGS:
            break
        reached = group
        if group == found.reached:
            break
    return Climb(reached, found.gated_at, found.receipts if ladder else ())


def envelope(
    arms: Sequence[Arm], climbs: Sequence[Climb], asked: Sequence[Mapping[str, int]]
) -> tuple[Envelope, ...]:
    """The card's line on each arm; `asked` counts each arm's trials by the groups that were begun."""
    return tuple(
        Envelope(
            arm.driver, arm.model, arm.scaffold, found.reached, found.gated_at, found.receipts, dict(of_arm)
        )
        for arm, found, of_arm in zip(arms, climbs, asked, strict=True)
    )


def assembled(card: RunCard, cases: pa.Table, records: Sequence[Record], asked: int, **changes: Any) -> Run:
    """A run from the card's plain facts and the records, which are put into the order of their places."""
    records = sorted(records, key=lambda record: record.place)
    excluded = sum(record.row.verdict.excluded is not None for record in records)
    card = msgspec.structs.replace(
        card, counts=Counts(asked, len(records) - excluded, excluded, asked - len(records)), **changes
    )
    evidence = {Arm(arm.driver, arm.model, arm.scaffold): arm.evidence for arm in card.arms}
    tables = trial_tables(card.run, records, evidence)
    return Run(
        card,
        cases,
        tables["trials"],
        tables["attempts"],
        tables["calls"],
        tables["transcripts"],
        tuple(record.row for record in records),
    )


def now() -> str:
    """This moment, UTC, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
