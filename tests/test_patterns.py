"""Patterns on hostile text: as `re.search` where that ends, and an end where it does not."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agentbench_lab import patterns
from agentbench_lab.expect import ExpectedAnswer
from agentbench_lab.expect_work import ExpectedCommand, ExpectedOutput
from agentbench_lab.grading.agentd import _said
from agentbench_lab.grading.answer import wrong_answer
from agentbench_lab.grading.command import wrong_command
from agentbench_lab.patterns import fits
from agentbench_lab.worlds.seen_work import CommandSeen, blob

from .doing import environment

RUNS_AWAY = "^(a+)+$"
HOSTILE = "a" * 60 + "!"
TOOK = "'^(a+)+$' took more than 1 s of processor time on"


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(["a", "^b$", "(?i)É", "x\\nb", "\\ud800", "a{2,}", "^$", "\\Z", "(?s)a.b", "[^a]"]),
    st.text(st.sampled_from("abé\n\ud800\x00 "), max_size=12),
)
@example("b$", "a" * 1_000_000 + "b")
def test_a_pattern_fits_as_pythons_own_search_says(pattern: str, text: str) -> None:
    assert fits(pattern, text) is (re.search(pattern, text) is not None)


def test_a_pattern_that_runs_away_ends_and_proves_nothing() -> None:
    """And the next pattern is judged as if nothing had been."""
    assert wrong_answer(ExpectedAnswer(regex=RUNS_AWAY), HOSTILE) == (
        f"regex: {TOOK} {HOSTILE!r}, and proves nothing"
    )
    assert (fits(RUNS_AWAY, "aaa"), fits(RUNS_AWAY, "aab")) == (True, False)


@pytest.mark.long
def test_a_pattern_that_runs_away_ends_wherever_a_case_names_one() -> None:
    command = ExpectedCommand("t", stdout=ExpectedOutput(regex=RUNS_AWAY))
    told = wrong_command(command, CommandSeen(0, blob(HOSTILE.encode())))
    assert told == f"t: stdout: {TOOK} {HOSTILE!r}, and proves nothing"
    assert dict(_said({"regex": RUNS_AWAY}, HOSTILE)) == {"regex": f"{TOOK} {HOSTILE!r}, and proves nothing"}


def test_one_child_serves_many_patterns_and_another_takes_its_place() -> None:
    assert fits("a", "a")
    (first,) = patterns._idle[os.getpid()][-1:]
    assert fits("a", "b") is False
    assert patterns._idle[os.getpid()][-1] is first
    os.kill(first.pid, signal.SIGKILL)
    assert fits("a", "a")
    assert patterns._idle[os.getpid()][-1] is not first


def test_threads_do_not_get_one_anothers_answers() -> None:
    wrong: list[int] = []

    def judge(number: int) -> None:
        for at in range(100):
            if fits(f"^{number}$", str(at % 8)) is not (at % 8 == number):
                wrong.append(number)

    threads = [threading.Thread(target=judge, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_no_child_is_left_behind() -> None:
    """Neither by a process that ends nor by one that is killed; and a process that was forked off has its own."""
    script = """
import os, sys
from agentbench_lab import patterns
assert patterns.fits("a", "a")
if os.fork() == 0:
    assert patterns.fits("b", "a") is False
    assert len(patterns._idle) == 2
    patterns._close()
    os._exit(0)
assert os.wait()[1] == 0
assert patterns.fits("a", "a")
print(patterns._idle[os.getpid()][0].pid, flush=True)
if sys.argv[1] == "killed":
    os.kill(os.getpid(), 9)
"""
    for how in ("ends", "killed"):
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", script, how],
            env=environment(),
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.stderr == ""
        assert gone(int(done.stdout))


def gone(pid: int) -> bool:
    """Whether a process that is nobody's child here ends, with some time to do so."""
    for _ in range(1_000):
        try:
            stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
        except OSError:
            return True
        if stat.rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.01)
    return False
