"""Planning to go on with a run of 100,048 finished trials, against decoding its journal's lines.

Ours is `prepare(...).plan`: it plans every trial, reads the journal into records, compares the settings and finds each
record's place. The other side reads the same file and decodes each line to the same record, and nothing more. The journal
is written by the lab's own Journal: the records of one run of the stub, once for each trial.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import msgspec
from common import compare

from agentbench_lab import grading
from agentbench_lab.cases import load_suite
from agentbench_lab.results.provenance import commit
from agentbench_lab.running.assemble import now
from agentbench_lab.running.journal import FORMAT, Header, Journal
from agentbench_lab.running.reread import records_of
from agentbench_lab.running.runner import Prepared, evaluate, prepare
from agentbench_lab.running.trial import Record

TRIALS = 481
GOAL = 2.0

SUITE = load_suite("ladder")
COUNT = len(SUITE.cases) * TRIALS


def plan_of(folder: Path) -> Prepared:
    return prepare(SUITE, "stub", trials=TRIALS, out=folder)


def write_journal(folder: Path) -> Path:
    """The journal of a run that was killed just before its end."""
    settings = plan_of(folder).settings
    records = records_of(evaluate(SUITE, "stub", save_run=False))
    folder.mkdir()
    header = Header(FORMAT, settings, grading.version(), commit(folder), now())
    journal = Journal.begin(folder / "journal.jsonl", header)
    for place, record in enumerate(records):
        for trial in range(1, TRIALS + 1):
            row = msgspec.structs.replace(record.row, trial=trial, stamp=settings.stamp)
            journal.add(msgspec.structs.replace(record, row=row, place=(place, 0, trial)))
    journal.close()
    return folder / "journal.jsonl"


def main() -> int:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "run"
        journal = write_journal(folder)
        print(f"{COUNT} finished trials, a journal of {journal.stat().st_size / 1e6:.0f} MB")

        def planning() -> float:
            began = time.perf_counter()
            plan = plan_of(folder).plan
            spent = time.perf_counter() - began
            assert (plan.finished, plan.to_run) == (COUNT, 0), plan
            return spent

        def decoding() -> float:
            decode = msgspec.json.Decoder(Record).decode
            began = time.perf_counter()
            records = [decode(line) for line in journal.read_bytes().splitlines()[1:]]
            spent = time.perf_counter() - began
            assert len(records) == COUNT
            return spent

        return compare(planning, decoding, goal=GOAL, unit="s", rounds=5)


if __name__ == "__main__":
    sys.exit(main())
