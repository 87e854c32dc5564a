"""A driver's close(): once when a run ends, in every process that loaded it, and never a lost run."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from agentbench_lab.cases import Limits, Task
from agentbench_lab.drivers.context import Context
from agentbench_lab.drivers.faults import OutOfTime
from agentbench_lab.results.run import Run
from agentbench_lab.running.runner import Interrupted, evaluate
from agentbench_lab.transcripts import Usage
from agentbench_lab.worlds.toolbox import Toolbox

from ..doing import some, write_driver, write_suite

HOLDS = """
import os, time
class Holds:
    def __init__(self, file):
        self.file = file
    def _note(self, word):
        with open(self.file, "a") as out:
            out.write(f"{word} {os.getpid()}\\n")
    def __call__(self, task, tools, ctx):
        self._note("trial")
        if task.request.endswith("Order"):
            time.sleep(HANG)
        return {"refused": True}
    def close(self):
        self._note("close")
mine = Holds(FILE)
"""


@pytest.fixture
def noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[tuple[str, int]]]:
    """A module of such a driver; called, what it has noted: words and the processes that noted them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    file = tmp_path / "notes"

    def read() -> list[tuple[str, int]]:
        pairs = [line.split() for line in file.read_text().splitlines()]
        return [(word, int(pid)) for word, pid in pairs]

    write_driver(
        tmp_path,
        HOLDS.replace("FILE", repr(str(file))).replace("HANG", "0"),
        name=f"holds_{os.urandom(4).hex()}",
    )
    return read


def module(folder: Path) -> str:
    (file,) = folder.glob("holds_*.py")
    return f"{file.stem}:mine"


def test_in_this_process(tmp_path: Path, noted: Any) -> None:
    for executor in ("threads", ThreadPoolExecutor(2)):
        evaluate(
            write_suite(tmp_path, some(0)),
            module(tmp_path),
            trials=3,
            workers=2,
            executor=executor,
            save_run=False,
        )
        assert Counter(word for word, _ in noted()) == {"trial": 6, "close": 1}
        assert noted()[-1] == ("close", os.getpid())
        (tmp_path / "notes").unlink()


def test_in_worker_processes(tmp_path: Path, noted: Any) -> None:
    evaluate(
        write_suite(tmp_path, some(0)),
        module(tmp_path),
        trials=5,
        workers=2,
        executor="processes",
        save_run=False,
    )
    workers = {pid for word, pid in noted() if word == "trial"}
    closed = Counter(pid for word, pid in noted() if word == "close")
    assert os.getpid() not in workers and len(workers) <= 2
    assert set(closed) >= workers
    assert set(closed.values()) == {1}


def test_a_worker_that_was_ended_for_its_time_does_not_hold_up_the_rest(tmp_path: Path, noted: Any) -> None:
    (file,) = tmp_path.glob("holds_*.py")
    file.write_text(file.read_text().replace("time.sleep(0)", "time.sleep(60)"))
    run = evaluate(
        write_suite(tmp_path, some(0)),
        module(tmp_path),
        workers=1,
        executor="processes",
        limits=Limits(wall_s=1.0),
        save_run=False,
    )
    assert {row.verdict.outcome for row in run.product} == {"over_refusal", "timeout"}
    assert Counter(word for word, _ in noted())["trial"] == 2


@pytest.mark.long
def test_on_a_cluster(tmp_path: Path, noted: Any) -> None:
    pytest.importorskip("distributed")
    evaluate(
        write_suite(tmp_path, some(0)), module(tmp_path), trials=5, workers=2, executor="dask", save_run=False
    )
    workers = {pid for word, pid in noted() if word == "trial"}
    closed = Counter(pid for word, pid in noted() if word == "close")
    assert workers and os.getpid() not in workers
    assert {pid: closed[pid] for pid in workers} == dict.fromkeys(workers, 1)


class Fails:
    """Its close fails, which costs nothing but itself."""

    closed = 0

    def __call__(self, task: Task, tools: Toolbox, ctx: Context) -> Any:
        return {"refused": True}

    def close(self) -> None:
        self.closed += 1
        raise OSError("no such thing")


def test_a_close_that_fails_loses_no_run(tmp_path: Path) -> None:
    driver = Fails()
    run = evaluate(write_suite(tmp_path, some(0)), driver, scaffolds=["once", "linear"], save_run=False)
    assert isinstance(run, Run) and run.card.complete and driver.closed == 1


def test_it_is_called_when_the_run_is_interrupted(tmp_path: Path) -> None:
    driver = Fails()

    def stop(finished: int, asked: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(Interrupted):
        evaluate(write_suite(tmp_path, some(0)), driver, progress=stop, save_run=False)
    assert driver.closed == 1


def test_a_driver_that_keeps_its_time_itself_ends_as_timeout(tmp_path: Path) -> None:
    seen = []

    def keeps(task: Task, tools: Toolbox, ctx: Context) -> Any:
        seen.append((ctx.limits.wall_s, ctx.deadline))
        ctx.spend(Usage(3, 0, 0, 4, 1, 5))
        raise OutOfTime("what became of it", usage=Usage(1, 0, 0, 1, 1, 1))

    suite = write_suite(tmp_path, some(0)[:1])
    run = evaluate(suite, keeps, limits=Limits(wall_s=9), save_run=False)
    (row,), (trial,) = run.product, run.trials.to_pylist()
    assert (row.verdict.outcome, row.produced.why) == ("timeout", "out of time after 9 s; what became of it")
    assert (trial["tokens_fresh_input"], trial["tokens_output"], trial["cost_micros"]) == (4, 5, 6)
    assert seen[0][0] == 9 and seen[0][1] < float("inf")
