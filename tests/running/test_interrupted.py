"""Runs that end early: Ctrl-C keeps what was finished, and even a kill loses nothing that was."""

from __future__ import annotations

import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from agentbench_lab.errors import LabError
from agentbench_lab.results.product import regrade
from agentbench_lab.results.run import load_run
from agentbench_lab.running.journal import Header, Journal, read_journal
from agentbench_lab.running.pool import run_jobs
from agentbench_lab.running.runner import Interrupted, evaluate
from agentbench_lab.running.trial import Record

from ..doing import CASES, command, environment, knows, some, write_driver, write_suite

SLOW = """
import time
from tests.doing import knows

def slow(task, tools, ctx):
    time.sleep(0.05)
    return knows(task, tools, ctx)

def fast_then_hanging(task, tools, ctx):
    if ctx.trial == 3:
        time.sleep(3600)
    return knows(task, tools, ctx)

def large(task, tools, ctx):
    from msgspec.structs import replace
    return replace(knows(task, tools, ctx), messages=("x" * 150_000,))
"""


def started(folder: Path, driver: str, *more: str, cases: int = len(CASES)) -> subprocess.Popen[bytes]:
    """A long run in a process of its own."""
    suite = write_suite(folder, CASES[:cases])
    write_driver(folder, SLOW)
    return subprocess.Popen(
        command("run", str(suite), "--driver", f"mine:{driver}", "--trials", "40", "--out", "run", *more),
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def wait_until(true: Callable[[], bool], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def lines(folder: Path) -> int:
    """Finished trials in the journal, whose first line is its header."""
    journal = folder / "run" / "journal.jsonl"
    return max(0, journal.read_bytes().count(b"\n") - 1) if journal.exists() else 0


@pytest.mark.parametrize(
    ("driver", "more"),
    [("slow", ()), ("slow", ("--workers", "3", "--ladder")), ("fast_then_hanging", ("--workers", "2"))],
)
def test_ctrl_c_leaves_a_valid_run_and_130(tmp_path: Path, driver: str, more: tuple[str, ...]) -> None:
    """What was finished is saved, counted and printed; the journal stays; the process does not wait for a driver."""
    process = started(tmp_path, driver, *more)
    wait_until(lambda: lines(tmp_path) >= 2)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 130, err
    assert b"Traceback" not in err
    run = load_run(tmp_path / "run")
    counts = run.card.counts
    assert counts.judged == len(run.product) == lines(tmp_path) >= 2
    assert counts.missing > 0
    assert counts.asked <= len(CASES) * 40
    assert all(regrade(row).outcome == row.verdict.outcome for row in run.product)
    assert f"judged {counts.judged}, excluded 0, missing {counts.missing}".encode() in out


def test_ctrl_c_before_the_first_trial_ended(tmp_path: Path) -> None:
    """Nothing was finished: an empty run, and no number."""
    suite = write_suite(tmp_path, CASES[:1])
    write_driver(
        tmp_path,
        "import time, pathlib\ndef waits(task, tools, ctx):\n    pathlib.Path('on').touch(); time.sleep(3600)\n",
    )
    process = subprocess.Popen(
        command("run", str(suite), "--driver", "mine:waits", "--out", "run"),
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    wait_until((tmp_path / "on").exists)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, err) == (130, b"interrupted\n")
    assert b"asked 1, judged 0, excluded 0, missing 1" in out
    assert load_run(tmp_path / "run").card.counts.missing == 1


@pytest.mark.parametrize("driver", ["slow", "large"])
def test_a_killed_run_leaves_whole_records(tmp_path: Path, driver: str) -> None:
    """Every line of the journal is a record with its product row, which can be judged again; there is no card.

    The system may break off the write of a large line when it kills; such an end is no record, is told, and is all that
    may be broken.
    """
    process = started(tmp_path, driver, "--workers", "2")
    wait_until(lambda: lines(tmp_path) >= 3)
    process.kill()
    process.communicate(timeout=20)
    journal = tmp_path / "run" / "journal.jsonl"
    header, *rest, cut = journal.read_bytes().split(b"\n")
    assert msgspec.json.decode(header, type=Header).settings.suite == "small"
    records = [msgspec.json.decode(line, type=Record) for line in rest]
    assert len(records) >= 3
    assert len({record.place for record in records}) == len(records)
    found = read_journal(journal)
    assert found is not None
    assert found.records == tuple(records)
    assert found.notes == (("the last line was cut off; its trial is run again",) if cut else ())
    for record in records:
        assert regrade(record.row).outcome == record.row.verdict.outcome
        assert [entry.name for entry in record.row.produced.ledger] == [row.name for row in record.ledger]
    with pytest.raises(
        LabError, match=r"an unfinished run \(no card\.json\); the `agentbench-lab run` command .* goes on"
    ):
        load_run(tmp_path / "run")


def test_a_journal_that_cannot_be_written_ends_the_run_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is full after three trials: what was finished stays, and the message says where."""
    added: list[Record] = []
    add = Journal.add

    def full(self: Journal, record: Record) -> None:
        if len(added) == 3:
            raise OSError(28, "No space left on device")
        added.append(record)
        add(self, record)

    monkeypatch.setattr(Journal, "add", full)
    with pytest.raises(LabError, match="cannot write the journal: No space left on device; "):
        evaluate(write_suite(tmp_path), knows, out=tmp_path / "run")
    assert lines(tmp_path) == 3


def test_a_run_that_cannot_be_saved_keeps_its_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from agentbench_lab.running import runner

    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(runner, "save", full)
    with pytest.raises(
        LabError, match="cannot write the run: No space left on device; its 2 trials are in the journal"
    ):
        evaluate(write_suite(tmp_path, some(0)), knows, out=tmp_path / "run")
    assert lines(tmp_path) == 2


def test_a_journal_never_writes_over_another(tmp_path: Path) -> None:
    """One that is opened again is added to; a run with other settings leaves it as it is."""
    suite = write_suite(tmp_path)

    def stop(finished: int, asked: int) -> None:
        if finished == 3:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted):
        evaluate(suite, knows, out=tmp_path / "run", progress=stop)
    path = tmp_path / "run" / "journal.jsonl"
    before = path.read_bytes()
    Journal(path).close()
    assert path.read_bytes() == before
    with pytest.raises(LabError, match="other settings"):
        evaluate(suite, knows, out=tmp_path / "run", seed=1)
    assert path.read_bytes() == before
    found = read_journal(path)
    assert found is not None
    journal = Journal(path)
    journal.add(found.records[0])
    journal.close()
    assert path.read_bytes() == before + before.splitlines(keepends=True)[1]


def test_a_fault_while_a_trial_is_reported_ends_the_run(tmp_path: Path) -> None:
    """Of ours, or of a callback: it comes out as it is, and no thread goes on."""

    def faulty(finished: int, asked: int) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        evaluate(write_suite(tmp_path), knows, workers=3, save_run=False, progress=faulty)
    wait_until(lambda: not [t for t in threading.enumerate() if t.name == "agentbench-lab trial"], 5)


def test_a_fault_while_a_trial_is_made_ends_the_run() -> None:
    def faulty() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_jobs([faulty] * 3, 2, lambda record: None)  # type: ignore[list-item]


def test_no_jobs_are_no_work() -> None:
    run_jobs([], 3, lambda record: None)
