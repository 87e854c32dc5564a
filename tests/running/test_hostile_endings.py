"""Endings that nobody plans: forks that come back, rungs that fall, long waits, rows that stand twice, outages."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from agentbench_lab.cases import Call, Task, load_suite
from agentbench_lab.drivers.context import Context
from agentbench_lab.drivers.faults import InfrastructureError
from agentbench_lab.errors import LabError
from agentbench_lab.results.provenance import commit
from agentbench_lab.results.run import load_run
from agentbench_lab.running.merge import regrade_run
from agentbench_lab.running.runner import Caps, evaluate, prepare
from agentbench_lab.transcripts import Transcript, Usage
from agentbench_lab.worlds.toolbox import Toolbox

from ..doing import write_suite

FORKS = """
import os
from agentbench_lab import Transcript

def forks(task, tools, ctx):
    os.fork()
    return Transcript(refused=True)
"""


@pytest.mark.parametrize("executor", ["threads", "processes"])
def test_a_child_that_comes_back_from_a_fork_is_no_second_runner(tmp_path: Path, executor: str) -> None:
    """Every trial stands once, and nothing goes on writing."""
    (tmp_path / "forking.py").write_text(FORKS, encoding="utf-8")
    command = [sys.executable, "-m", "agentbench_lab.cli", "run", "ladder", "--driver", "forking:forks"]
    command += ["--group", "TOOL-0", "--executor", executor, "--workers", "2", "--out", "run"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*filter(None, sys.path), str(tmp_path)])}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    run = load_run(tmp_path / "run")
    cases = [case for case in load_suite("ladder").cases if case.group == "TOOL-0"]
    assert run.card.counts.judged == len(cases)


def falls(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
    """Knows every case of TOOL-0 and TOOL-1 at the first trial, and nothing from the second on."""
    if ctx.trial > 1:
        return Transcript(refused=True)
    case = next(c for c in load_suite("ladder").cases if c.task.request == task.request)
    calls = tuple(Call(call.name, call.input) for call in case.expect.expected_calls)
    for call in calls:
        tools.call(call.name, call.input)
    return Transcript(calls=calls, refused=case.expect.refuse)


def test_a_ladder_whose_lower_rung_falls_later_still_adds_up(tmp_path: Path) -> None:
    """Trials above the fallen rung were asked before, and are counted; the run can be read and gone on with."""
    first = evaluate("ladder", falls, group="TOOL-0,TOOL-1,TOOL-2", ladder=True, out=tmp_path / "run")
    assert first.card.envelope[0].reached == "TOOL-2"
    more = evaluate(
        "ladder", falls, group="TOOL-0,TOOL-1,TOOL-2", ladder=True, trials=3, out=tmp_path / "run"
    )
    counts = more.card.counts
    assert counts.asked == counts.judged + counts.missing == more.trials.num_rows + counts.missing
    assert more.card.envelope[0].reached is None
    assert more.card.envelope[0].gated_at is not None
    assert load_run(tmp_path / "run").card.counts == counts


def test_a_wait_that_nobody_should_wait_excludes_the_trial(tmp_path: Path) -> None:
    def throttled(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
        raise InfrastructureError("come back next year", retry_after=1e12)

    run = evaluate(write_suite(tmp_path), throttled, save_run=False)
    assert run.card.counts.excluded == run.card.counts.asked


def test_an_outage_can_be_made_good(tmp_path: Path) -> None:
    """What the environment excluded is run again when that is asked for, and only then."""
    up = False

    def endpoint(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
        if not up:
            raise InfrastructureError("connection refused")
        return Transcript(refused=True)

    endpoint.version = "1"  # type: ignore[attr-defined]
    suite, out = write_suite(tmp_path), tmp_path / "run"
    down = evaluate(suite, endpoint, retries=0, out=out)
    assert down.card.counts.judged == 0
    up = True
    assert prepare(suite, endpoint, retries=0, out=out).plan.to_run == 0
    again = evaluate(suite, endpoint, retries=0, out=out, again_excluded=True)
    assert again.card.counts.judged == again.card.counts.asked == down.card.counts.asked


def test_output_that_was_told_is_not_drawn_again(tmp_path: Path) -> None:
    """A model that has spoken is not asked twice, whatever the error itself says; both figures are kept."""

    def speaks(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
        ctx.spend(Usage(0, 0, 0, 500, 1, 5))
        raise InfrastructureError("reset", usage=Usage(3, 0, 0, 0, 0, 0))

    run = evaluate(write_suite(tmp_path), speaks, save_run=False)
    assert set(run.trials.column("attempts").to_pylist()) == {1}
    assert set(run.trials.column("tokens_output").to_pylist()) == {500}
    assert set(run.trials.column("tokens_fresh_input").to_pylist()) == {3}


def test_what_was_delivered_before_the_budget_ran_out_is_graded(tmp_path: Path) -> None:
    def refuses_then_spends(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
        tools.call("refuse", {"reason": "no tool fits"})
        raise TimeoutError("and then it hangs")

    run = evaluate(write_suite(tmp_path), refuses_then_spends, save_run=False)
    assert set(run.trials.column("refused").to_pylist()) == {True}


def test_a_cap_says_that_it_was_reached(tmp_path: Path) -> None:
    def spends(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
        ctx.spend(Usage(100, 0, 0, 0, 1, 0))
        return Transcript(refused=True)

    run = evaluate(write_suite(tmp_path), spends, caps=Caps(tokens=150), save_run=False)
    assert run.card.stopped == "the cap of 150 tokens is reached: 200 used"


@pytest.mark.parametrize(
    ("options", "says"),
    [({"caps": "5"}, "caps must be Caps"), ({"caps": Caps(tokens=-1)}, "the cap tokens"),
     ({"retries": -1}, "retries must be"), ({"retries": "3"}, "retries must be")],
)  # fmt: skip
def test_odd_caps_and_retries_are_mistakes(tmp_path: Path, options: dict[str, object], says: str) -> None:
    with pytest.raises(LabError, match=says):
        evaluate(write_suite(tmp_path), "stub", save_run=False, **options)  # type: ignore[arg-type]


def test_rows_that_stand_twice_or_not_at_all_are_one_line(tmp_path: Path) -> None:
    evaluate(write_suite(tmp_path), "stub", out=tmp_path / "run")
    product = tmp_path / "run" / "product.jsonl"
    lines = product.read_bytes().splitlines(keepends=True)
    product.write_bytes(b"".join([lines[0], lines[0], *lines[2:]]))
    with pytest.raises(LabError, match=r"product\.jsonl has trial 1 of"):
        load_run(tmp_path / "run")
    row = json.loads(lines[1])
    row["trial"] = 7
    product.write_bytes(b"".join([lines[0], msgspec.json.encode(row) + b"\n", *lines[2:]]))
    with pytest.raises(LabError, match=r"product\.jsonl has trial 7 of"):
        load_run(tmp_path / "run")


def test_an_empty_journal_beside_a_finished_run_takes_nothing_away(tmp_path: Path) -> None:
    suite = write_suite(tmp_path)
    run = evaluate(suite, "stub", out=tmp_path / "run")
    (tmp_path / "run" / "journal.jsonl").touch()
    plan = prepare(suite, "stub", out=tmp_path / "run").plan
    assert (plan.finished, plan.to_run) == (run.card.counts.asked, 0)


def test_a_run_does_not_change_the_commit_it_stands_at(tmp_path: Path) -> None:
    """Its own files are no part of the tree that it measures."""
    suite = write_suite(tmp_path)
    git = ["git", "-C", str(tmp_path), "-c", "user.name=x", "-c", "user.email=x@example.org"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "cases"]):
        subprocess.run([*git, *words], check=True)
    before = commit(tmp_path)
    evaluate(suite, "stub", out=tmp_path / "runs" / "one")
    assert commit(tmp_path) == before
    (tmp_path / "new.py").write_text("x = 1\n", encoding="utf-8")
    assert commit(tmp_path).startswith("dirty: ")


def test_judging_again_changes_no_rung_by_itself(tmp_path: Path) -> None:
    """The envelope of a part of a suite, and of a shard, is what it was."""
    for name, options in {
        "part": {"group": "TOOL-2"},
        "only": {"only": "t0-*,t1-*"},
        "shard": {"shard": "1/2"},
        "ladder": {"ladder": True},
    }.items():
        run = evaluate("ladder", "stub", out=tmp_path / name, **options)  # type: ignore[arg-type]
        again, changed = regrade_run(tmp_path / name, tmp_path / f"{name}-again")
        assert (again.card.envelope, changed) == (run.card.envelope, [])
