"""One writer per run: the second is refused and told by whom; an owner that died stands in nobody's way."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from agentbench_lab.errors import LabError
from agentbench_lab.results.run import load_run
from agentbench_lab.running.lock import RunLock
from agentbench_lab.running.runner import evaluate, prepare

from ..doing import CASES, ROOT, environment, knows, some, write_driver, write_suite

SLOW = """
import pathlib, time
from tests.doing import knows

def slow(task, tools, ctx):
    pathlib.Path("on").touch()
    time.sleep(0.05)
    return knows(task, tools, ctx)
"""
SCRIPT = """
import json, pathlib, sys, time
from agentbench_lab.errors import LabError
from agentbench_lab.running.runner import prepare
try:
    prepared = prepare("small.jsonl", "lockslow:slow", stamp="s", **json.loads(sys.argv[1]))
    at = float(sys.argv[2])
    while time.time() < at:
        pass
    prepared.run()
except LabError as error:
    sys.exit(str(error))
"""


def started(folder: Path, at: float = 0.0, **arguments: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, json.dumps({"out": "run", **arguments}), str(at)],
        cwd=folder,
        env=environment(PYTHONPATH=f"{ROOT}{os.pathsep}{folder}"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )


def wait_for(file: Path) -> None:
    deadline = time.monotonic() + 30
    while not file.exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_second_writer_is_refused_and_told_who_writes(tmp_path: Path) -> None:
    """With the owner's process and machine; the first does not notice, and the folder is as it was."""
    write_suite(tmp_path)
    write_driver(tmp_path, SLOW, name="lockslow")
    owner = started(tmp_path, trials=3)
    wait_for(tmp_path / "on")
    second = started(tmp_path, trials=3)
    _, said = second.communicate(timeout=30)
    assert second.returncode == 1
    assert re.fullmatch(rf"run: is being written by process {owner.pid} on \S+\n", said), said
    assert owner.poll() is None
    _, said = owner.communicate(timeout=60)
    assert (owner.returncode, said) == (0, "")
    run = load_run(tmp_path / "run")
    assert run.card.counts.judged == 3 * len(CASES)
    assert not (tmp_path / "run" / "run.lock").exists()


def test_a_killed_owner_is_no_obstacle(tmp_path: Path) -> None:
    """Its lock file is still there, and holds nobody up."""
    write_suite(tmp_path)
    write_driver(tmp_path, SLOW, name="lockslow")
    owner = started(tmp_path, trials=3)
    wait_for(tmp_path / "on")
    owner.send_signal(signal.SIGKILL)
    owner.communicate(timeout=30)
    assert (tmp_path / "run" / "run.lock").read_text(encoding="utf-8").startswith(f"process {owner.pid} on ")
    next_one = started(tmp_path, trials=3, workers=8)
    _, said = next_one.communicate(timeout=60)
    assert (next_one.returncode, said) == (0, "")
    assert load_run(tmp_path / "run").card.complete
    assert not (tmp_path / "run" / "run.lock").exists()


@pytest.mark.long
@pytest.mark.parametrize("there", [False, True], ids=["new folder", "empty folder"])
def test_of_several_that_begin_at_once_one_wins(tmp_path: Path, there: bool) -> None:
    """The others are refused in one line each, and the run is whole."""
    write_suite(tmp_path)
    write_driver(tmp_path, SLOW, name="lockslow")
    if there:
        (tmp_path / "run").mkdir()
    at = time.time() + 3.0
    several = [started(tmp_path, at=at, trials=3) for _ in range(4)]
    said = [one.communicate(timeout=90)[1] for one in several]
    codes = sorted(one.returncode for one in several)
    assert codes == [0, 1, 1, 1], said
    winner = next(one.pid for one in several if one.returncode == 0)
    for text in said:
        lost = rf"run: is being written by (process {winner} on \S+|another process)\n"
        assert text == "" or re.fullmatch(lost, text), text
    run = load_run(tmp_path / "run")
    assert run.card.counts.judged == len(run.product) == 3 * len(CASES)


def test_one_that_was_planned_before_another_finished_takes_what_is_there(tmp_path: Path) -> None:
    """Both were planned for the same new folder; the later one asks nothing again."""
    suite = write_suite(tmp_path, some(0))
    asked: list[str] = []

    def counts(task: Any, tools: Any, ctx: Any) -> Any:
        asked.append(task.request)
        return knows(task, tools, ctx)

    (tmp_path / "run").mkdir()
    first, second = (prepare(suite, counts, stamp="s", out=tmp_path / "run") for _ in range(2))
    first.run()
    kept = {file.name: file.read_bytes() for file in (tmp_path / "run").iterdir()}
    assert second.run().card.counts.judged == len(asked) == 2
    assert {file.name: file.read_bytes() for file in (tmp_path / "run").iterdir()} == kept
    other = prepare(suite, counts, stamp="s", out=tmp_path / "other")
    evaluate(suite, "stub", stamp="s", out=tmp_path / "other")
    with pytest.raises(LabError):
        other.run()


def test_two_writers_in_one_process_are_two(tmp_path: Path) -> None:
    with RunLock(tmp_path):
        with pytest.raises(LabError, match=f"is being written by process {os.getpid()} on "):
            RunLock(tmp_path)
        assert (tmp_path / "run.lock").exists()
    assert not (tmp_path / "run.lock").exists()
    RunLock(tmp_path).release()


def test_many_in_turn_never_hold_it_together(tmp_path: Path) -> None:
    """Letting go removes the file; nobody locks one that is not there any more, while another makes a new one."""
    holding: list[int] = []
    together: list[list[int]] = []
    held = [0] * 4
    begun = time.monotonic()

    def enough() -> bool:
        """A second of it, and on busy cores as much longer as a hundred turns take."""
        elapsed = time.monotonic() - begun
        return (elapsed > 1.0 and sum(held) > 100) or elapsed > 60.0

    def writer(number: int) -> None:
        while not enough():
            try:
                lock = RunLock(tmp_path)
            except LabError:
                continue
            holding.append(number)
            time.sleep(0)
            if len(holding) > 1:
                together.append(list(holding))
            holding.remove(number)
            held[number] += 1
            lock.release()

    threads = [threading.Thread(target=writer, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert together == []
    assert sum(held) > 100


def test_a_lock_that_cannot_be_made_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="cannot write there: No such file or directory"):
        RunLock(tmp_path / "nowhere")
