"""An endpoint that is not there: the run stops early, says why, loses nothing, and goes on once it is."""

from __future__ import annotations

import json
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from agentbench_lab.cases import Task
from agentbench_lab.drivers import keys
from agentbench_lab.drivers.context import Context
from agentbench_lab.drivers.faults import InfrastructureError, Misconfigured
from agentbench_lab.errors import LabError
from agentbench_lab.results.product import encode_rows
from agentbench_lab.results.run import Run, load_run
from agentbench_lab.running.runner import LEAST_ABSENT, evaluate
from agentbench_lab.running.trial import Retries
from agentbench_lab.transcripts import Transcript
from agentbench_lab.worlds.toolbox import Toolbox

from ..doing import CASES, knows, lab, some, write_suite

QUICK = Retries(times=2, wait_initial_s=0.001, wait_max_s=0.001, wait_jitter_s=0.0)
ONE = ("threads", 1)
WAYS = [ONE, ("threads", 8), ("processes", 1), ("processes", 4)]
"""Executors and their workers."""


def away(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
    """The other side is there only where a file says so."""
    if not Path("there").exists():
        raise InfrastructureError("cannot connect: refused")
    return knows(task, tools, ctx)


async def away_waiting(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
    return away(task, tools, ctx)


def outage(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
    """The other side goes away in the middle of the first case, and is back in the middle of the second."""
    judged = Path("judged")
    if ctx.trial > 3 if task.request == "Describe Cart" else ctx.trial < 28:
        while not judged.exists():  # by one that was begun before, maybe in a process that is slow to start
            time.sleep(0.01)
        raise InfrastructureError("cannot connect: refused")
    judged.touch()
    return knows(task, tools, ctx)


async def outage_waiting(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
    return outage(task, tools, ctx)


def one_bad(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
    """An endpoint that breaks on one case, the first."""
    if task.request == "Describe Cart":
        raise InfrastructureError("the endpoint answers 500: it cannot compile the schema")
    return knows(task, tools, ctx)


def turned_down(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
    """An endpoint that is there, and takes no request."""
    raise InfrastructureError("the endpoint answers 400", final=True)


def turned_down_at_last(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
    raise InfrastructureError("busy, then turned down", final=ctx.attempt > 1)


def counts(run: Run) -> tuple[int, int, int]:
    found = run.card.counts
    return found.judged, found.excluded, found.missing


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two cases."""
    monkeypatch.chdir(tmp_path)
    return write_suite(tmp_path, some(0))


@pytest.mark.parametrize(
    ("driver", "executor", "workers"),
    [
        (away, "threads", 1),
        (away_waiting, "threads", 1),
        (away, "threads", 8),
        (away_waiting, "threads", 8),
        (away, "processes", 1),
    ],
)
def test_a_run_whose_other_side_is_not_there_stops_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, driver: Any, executor: str, workers: int
) -> None:
    monkeypatch.chdir(tmp_path)
    suite = write_suite(tmp_path, CASES)
    asked, least = 4 * len(CASES), max(LEAST_ABSENT, 2 * workers)
    how: dict[str, Any] = {"trials": 4, "retries": QUICK, "executor": executor, "workers": workers}
    stopped = evaluate(suite, driver, out="run", **how)
    judged, excluded, missing = counts(stopped)
    # what was under way or had been given out when it stopped is finished
    assert judged == 0 and least <= excluded <= least + 2 * workers and missing == asked - excluded
    assert (executor, workers) != ONE or excluded == least
    why = stopped.card.stopped or ""
    assert f"{least} trials of" in why and "infrastructure: cannot connect: refused" in why
    assert len(why.splitlines()) == 1 and Path("run/journal.jsonl").exists()
    Path("there").touch()
    whole = evaluate(suite, driver, out="run", again_excluded=True, **how)
    assert counts(whole) == (asked, 0, 0) and whole.card.stopped is None
    assert not Path("run/journal.jsonl").exists()
    once = evaluate(suite, driver, save_run=False, **how)
    assert encode_rows(whole.product) == encode_rows(once.product), "the rows of a run that was never stopped"


def test_an_executor_that_takes_groups_stops_behind_those_that_are_out(suite: Path) -> None:
    with ThreadPoolExecutor(1) as pool:
        stopped = evaluate(
            suite, away, only="t0-cart", trials=1_000, retries=QUICK, executor=pool, save_run=False
        )
    judged, excluded, missing = counts(stopped)
    assert judged == 0 and excluded >= LEAST_ABSENT and missing > 500
    assert "none was judged before" in (stopped.card.stopped or "")


# ---- what stops nothing


@pytest.mark.parametrize(("executor", "workers"), WAYS)
@pytest.mark.parametrize("driver", [outage, outage_waiting])
def test_an_outage_after_a_first_judged_trial_stops_nothing(
    suite: Path, driver: Any, executor: str, workers: int
) -> None:
    done = evaluate(
        suite, driver, trials=30, retries=QUICK, executor=executor, workers=workers, save_run=False
    )
    assert counts(done) == (6, 54, 0) and done.card.complete


@pytest.mark.parametrize(("executor", "workers"), WAYS)
def test_one_bad_case_stops_nothing(suite: Path, executor: str, workers: int) -> None:
    """Also where it comes first, and nothing was judged before it."""
    done = evaluate(
        suite, one_bad, trials=30, retries=QUICK, executor=executor, workers=workers, save_run=False
    )
    assert counts(done) == (30, 30, 0) and done.card.complete


@pytest.mark.parametrize(("executor", "workers"), WAYS)
@pytest.mark.parametrize("driver", [turned_down, turned_down_at_last])
def test_requests_that_are_turned_down_stop_nothing(
    suite: Path, driver: Any, executor: str, workers: int
) -> None:
    done = evaluate(
        suite, driver, trials=30, retries=QUICK, executor=executor, workers=workers, save_run=False
    )
    assert counts(done) == (0, 60, 0)


def test_trials_that_are_never_tried_again_stop_nothing(suite: Path) -> None:
    assert counts(evaluate(suite, away, trials=30, retries=0, save_run=False)) == (0, 60, 0)


def test_a_judged_trial_that_was_read_back_counts(suite: Path) -> None:
    Path("there").touch()
    assert counts(evaluate(suite, away, out="run")) == (2, 0, 0)
    Path("there").unlink()
    assert counts(evaluate(suite, away, trials=20, retries=QUICK, out="run")) == (2, 38, 0)


def test_a_replay_of_an_outage_is_not_stopped(suite: Path) -> None:
    """It asks nobody: with other workers it gives the very rows that were recorded."""
    asked: dict[str, Any] = {"only": "t0-cart", "trials": 16, "retries": QUICK, "save_run": False}
    told = evaluate(suite, away, workers=8, record="kept.jsonl", **asked)
    assert counts(told) == (0, 16, 0)
    assert counts(evaluate(suite, "replay:kept.jsonl", workers=1, **asked)) == (0, 16, 0)


# ---- what is counted


def test_the_only_case_is_enough(suite: Path) -> None:
    done = evaluate(suite, away, only="t0-cart", trials=20, retries=QUICK, save_run=False)
    assert counts(done) == (0, LEAST_ABSENT, 20 - LEAST_ABSENT)


def test_without_again_excluded_what_was_excluded_stays(suite: Path) -> None:
    evaluate(suite, away, trials=15, retries=QUICK, out="run")
    Path("there").touch()
    done = evaluate(suite, away, trials=15, retries=QUICK, out="run")
    assert counts(done) == (14, 16, 0) and done.card.complete


def test_it_stops_again_while_the_other_side_is_away(suite: Path) -> None:
    """The second time with only one case left to run."""
    for excluded in (21, 21 + LEAST_ABSENT):
        done = evaluate(suite, away, trials=20, retries=QUICK, out="run")
        assert counts(done) == (0, excluded, 40 - excluded)


def test_each_arm_is_counted_by_itself(suite: Path) -> None:
    """The one that is away stops the run, also beside another that is judged."""
    done = evaluate(suite, [away, knows], trials=20, retries=QUICK, save_run=False)
    assert "trials of tests.running.test_absent:away were" in (done.card.stopped or "")
    assert counts(done) == (20, 21, 39)


def test_the_command_says_so_in_one_line(suite: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    driver = f"chat:m@http://127.0.0.1:{port}/v1"
    ask = ("run", suite.name, "--driver", driver, "--only", "t0-cart", "--workers", "4", "--retries")
    done = lab(*ask, "1", "--trials", "20", "--out", "long", cwd=suite.parent)
    assert done.returncode == 3
    (line,) = done.stderr.splitlines()
    missing = json.loads(Path("long/card.json").read_bytes())["counts"]["missing"]
    assert 8 <= missing <= 12
    assert line.startswith(f"incomplete: {missing} trials are missing (8 trials of {driver}+m were excluded")
    assert "cannot connect" in line and "--again-excluded" in line
    done = lab(*ask, "0", "--trials", "2", "--out", "short", "--json", cwd=suite.parent)
    assert done.returncode == 3 and json.loads(done.stdout)["counts"]["excluded"] == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith(
        "nothing was judged: 2 trials excluded, the first by infrastructure: cannot connect"
    )
    assert load_run("short").card.complete


def test_what_stops_a_run_is_cleaned_before_it_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key in the message, and what no file can hold, cost neither the card nor the promise."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-a1B2c3D4e5F6g7H8")
    keys.remember()
    asked = []

    def stops(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
        asked.append(task)
        if len(asked) > 2:
            raise Misconfigured("key sk-a1B2c3D4e5F6g7H8 refused \udcff")
        return knows(task, tools, ctx)

    with pytest.raises(LabError, match="2 finished trials are kept in") as caught:
        evaluate(write_suite(tmp_path, some(0, 1)), stops, out=tmp_path / "run")
    assert "sk-a1B2" not in str(caught.value)
    assert load_run(tmp_path / "run").trials.num_rows == 2
    assert "sk-a1B2" not in (tmp_path / "run" / "card.json").read_text()
