"""An endpoint that is not there: the run stops early, says why, loses nothing, and goes on once it is."""

from __future__ import annotations

import json
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from agentbench_lab.cases import Task
from agentbench_lab.drivers.context import Context
from agentbench_lab.drivers.faults import InfrastructureError
from agentbench_lab.results.product import encode_rows
from agentbench_lab.results.run import Run, load_run
from agentbench_lab.running.runner import MOST_FAILED, MOST_TRIED_AGAIN, evaluate
from agentbench_lab.running.trial import Retries
from agentbench_lab.transcripts import Transcript
from agentbench_lab.worlds.toolbox import Toolbox

from ..doing import knows, lab, some, write_suite

QUICK = Retries(times=2, wait_initial_s=0.001, wait_max_s=0.001, wait_jitter_s=0.0)
MOST = MOST_TRIED_AGAIN


def away(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
    """The other side is there only where a file says so."""
    if not Path("there").exists():
        raise InfrastructureError("cannot connect: refused")
    return knows(task, tools, ctx)


async def away_waiting(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
    return away(task, tools, ctx)


def every_third(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
    """Fails two trials of three."""
    if ctx.trial % 3:
        raise InfrastructureError("busy")
    return knows(task, tools, ctx)


def counts(run: Run) -> tuple[int, int, int]:
    found = run.card.counts
    return found.judged, found.excluded, found.missing


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
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
    suite: Path, driver: Any, executor: str, workers: int
) -> None:
    most = max(MOST, 2 * workers)
    asked: dict[str, Any] = {"trials": 40, "retries": QUICK, "executor": executor, "workers": workers}
    stopped = evaluate(suite, driver, out="run", **asked)
    judged, excluded, missing = counts(stopped)
    # what was under way or had been given out when it stopped is finished
    assert judged == 0 and most <= excluded <= most + 2 * workers and missing == 80 - excluded
    assert (executor, workers) != ("threads", 1) or excluded == most
    why = stopped.card.stopped or ""
    assert f"{most} trials of" in why and "infrastructure: cannot connect: refused" in why
    assert len(why.splitlines()) == 1 and Path("run/journal.jsonl").exists()
    Path("there").touch()
    whole = evaluate(suite, driver, out="run", again_excluded=True, **asked)
    assert counts(whole) == (80, 0, 0) and whole.card.stopped is None
    assert not Path("run/journal.jsonl").exists()
    once = evaluate(suite, driver, save_run=False, **asked)
    assert encode_rows(whole.product) == encode_rows(once.product), "the rows of a run that was never stopped"


def test_an_executor_that_takes_groups_stops_behind_those_that_are_out(suite: Path) -> None:
    with ThreadPoolExecutor(1) as pool:
        stopped = evaluate(suite, away, trials=1_000, retries=QUICK, executor=pool, save_run=False)
    judged, excluded, missing = counts(stopped)
    assert judged == 0 and excluded >= MOST and missing > 500
    assert "in a row" in (stopped.card.stopped or "")


def test_without_again_excluded_what_was_excluded_stays(suite: Path) -> None:
    evaluate(suite, away, trials=15, retries=QUICK, out="run")
    Path("there").touch()
    done = evaluate(suite, away, trials=15, retries=QUICK, out="run")
    assert counts(done) == (30 - MOST, MOST, 0) and done.card.complete


def test_it_stops_again_while_the_other_side_is_away(suite: Path) -> None:
    for times in (1, 2):
        done = evaluate(suite, away, trials=20, retries=QUICK, out="run")
        assert counts(done) == (0, times * MOST, 40 - times * MOST)


def test_more_are_asked_where_none_is_tried_again(suite: Path) -> None:
    done = evaluate(suite, away, trials=30, retries=0, save_run=False)
    assert counts(done) == (0, MOST_FAILED, 60 - MOST_FAILED)


def test_one_judged_trial_between_lets_it_go_on(suite: Path) -> None:
    done = evaluate(suite, every_third, trials=30, retries=QUICK, save_run=False)
    assert counts(done) == (20, 40, 0)


def test_each_arm_is_counted_by_itself(suite: Path) -> None:
    """Between two trials of the one that is away there is always one of the other that is judged."""
    done = evaluate(suite, [away, knows], trials=20, retries=QUICK, save_run=False)
    assert "tests.running.test_absent:away in a row" in (done.card.stopped or "")
    assert counts(done)[1] == MOST


def test_a_replay_of_an_outage_is_not_stopped(suite: Path) -> None:
    """It asks nobody: with other workers it gives the very rows that were recorded."""
    asked: dict[str, Any] = {"only": "t0-cart", "trials": 16, "retries": QUICK, "save_run": False}
    told = evaluate(suite, away, workers=8, record="kept.jsonl", **asked)
    assert counts(told) == (0, 16, 0)
    assert counts(evaluate(suite, "replay:kept.jsonl", workers=1, **asked)) == (0, 16, 0)


def test_the_command_says_so_in_one_line(suite: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    driver = f"chat:m@http://127.0.0.1:{port}/v1"
    ask = ("run", suite.name, "--driver", driver, "--retries", "0", "--trials")
    done = lab(*ask, "29", "--out", "long", cwd=suite.parent)
    assert done.returncode == 3
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"incomplete: 10 trials are missing (48 trials of {driver}+m in a row")
    assert "cannot connect" in line and "--again-excluded" in line
    assert json.loads(Path("long/card.json").read_bytes())["counts"]["missing"] == 10
    done = lab(*ask, "1", "--out", "short", "--json", cwd=suite.parent)
    assert done.returncode == 3 and json.loads(done.stdout)["counts"]["excluded"] == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith(
        "nothing was judged: 2 trials excluded, the first by infrastructure: cannot connect"
    )
    assert load_run("short").card.complete
