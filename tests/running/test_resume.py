"""Going on with a run: nothing finished is lost or run twice, and what is not the same run is refused."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agentbench_lab import grading
from agentbench_lab.cases import Limits, Task
from agentbench_lab.drivers.context import Context
from agentbench_lab.errors import LabError
from agentbench_lab.results.product import read_product
from agentbench_lab.results.run import load_run
from agentbench_lab.running.journal import read_journal
from agentbench_lab.running.runner import Caps, Interrupted, Plan, evaluate, prepare
from agentbench_lab.transcripts import Transcript
from agentbench_lab.worlds.toolbox import Toolbox

from ..doing import CASES, ROOT, environment, knows, some, write_driver, write_suite


class Counting:
    """The driver that knows, and what it was asked; lucky by its trial's own random numbers."""

    evidence, version = "simulated", "1"

    def __init__(self) -> None:
        self.asked: Counter[tuple[str, int]] = Counter()
        self.__module__, self.__qualname__ = "counting", "counting"

    def __call__(self, task: Task, tools: Toolbox, ctx: Context) -> Transcript:
        self.asked[task.request, ctx.trial] += 1
        return knows(task, tools, ctx) if ctx.random.random() < 0.8 else Transcript(refused=True)


def stopping(after: int) -> Callable[[int, int], None]:
    def stop(finished: int, asked: int) -> None:
        if finished == after:
            raise KeyboardInterrupt

    return stop


def state(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Every file's bytes and when it was written."""
    return {file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in sorted(folder.iterdir())}


def product(folder: Path) -> bytes:
    return (folder / "product.jsonl").read_bytes()


def interrupted(folder: Path, suite: Path, *, after: int = 5, **more: Any) -> Path:
    """A run that ended early, with its journal."""
    out = folder / "run"
    with pytest.raises(Interrupted):
        evaluate(suite, Counting(), out=out, progress=stopping(after), **more)
    return out


# ---- what is finished stays finished


@pytest.mark.parametrize("ladder", [False, True])
def test_a_finished_run_is_left_as_it_is(tmp_path: Path, ladder: bool) -> None:
    """Nothing is asked, no byte is changed, no file is written."""
    suite, driver = write_suite(tmp_path), Counting()
    first = evaluate(suite, driver, trials=2, ladder=ladder, out=tmp_path / "run")
    before, asked = state(tmp_path / "run"), driver.asked.copy()
    again = evaluate(suite, driver, trials=2, ladder=ladder, out=tmp_path / "run", workers=3)
    assert state(tmp_path / "run") == before
    assert driver.asked == asked
    assert again.card == first.card


def test_more_trials_extend_a_run(tmp_path: Path) -> None:
    """To the bytes of a run that was asked so from the start, and only what is new is asked."""
    suite, driver = write_suite(tmp_path), Counting()
    evaluate(suite, Counting(), trials=5, stamp="s", out=tmp_path / "whole")
    for trials in (1, 2, 5):
        run = evaluate(suite, driver, trials=trials, stamp="s", out=tmp_path / "run")
        assert run.card.counts.judged == trials * len(CASES)
    assert set(driver.asked.values()) == {1}
    assert len(driver.asked) == 5 * len(CASES)
    assert product(tmp_path / "run") == product(tmp_path / "whole")
    whole, run = load_run(tmp_path / "whole"), load_run(tmp_path / "run")
    for grain in ("cases", "calls", "attempts", "trials", "transcripts"):
        clocks = [c for c in ("run", "wall_s", "working_s") if c in getattr(run, grain).column_names]
        tables = [getattr(each, grain).drop_columns(clocks) for each in (whole, run)]
        assert tables[0].equals(tables[1]), grain
    assert run.card.options == whole.card.options
    assert run.card.counts == whole.card.counts
    assert run.card.envelope == whole.card.envelope


def test_fewer_trials_are_refused(tmp_path: Path) -> None:
    suite = write_suite(tmp_path, some(0))
    evaluate(suite, Counting(), trials=3, out=tmp_path / "run")
    before = state(tmp_path / "run")
    with pytest.raises(LabError, match="trial 2 of 't0-cart', which is not asked now; ask at least as many"):
        evaluate(suite, Counting(), trials=1, out=tmp_path / "run")
    assert state(tmp_path / "run") == before


@pytest.mark.parametrize("ladder", [False, True])
@pytest.mark.parametrize("after", [1, 6, 17])
def test_an_interrupted_run_goes_on(tmp_path: Path, ladder: bool, after: int) -> None:
    """Also in the midst of a rung: it climbs as one that never stopped, and asks nothing twice."""
    suite = write_suite(tmp_path)
    arguments: dict[str, Any] = {"trials": 2, "ladder": ladder, "stamp": "s"}
    whole = evaluate(suite, Counting(), out=tmp_path / "whole", **arguments)
    driver = Counting()
    with pytest.raises(Interrupted):
        evaluate(suite, driver, out=tmp_path / "run", progress=stopping(after), **arguments)
    assert sum(driver.asked.values()) == after
    run = evaluate(suite, driver, out=tmp_path / "run", workers=2, **arguments)
    assert product(tmp_path / "run") == product(tmp_path / "whole")
    assert (run.card.counts, run.card.envelope) == (whole.card.counts, whole.card.envelope)
    assert set(driver.asked.values()) == {1}
    assert not (tmp_path / "run" / "journal.jsonl").exists()


def test_a_ladder_run_that_is_asked_for_more_trials_climbs_as_a_new_one(tmp_path: Path) -> None:
    suite, driver = write_suite(tmp_path), Counting()
    whole = evaluate(suite, Counting(), trials=4, ladder=True, stamp="s", seed=3, out=tmp_path / "whole")
    evaluate(suite, driver, trials=4, ladder=True, stamp="s", seed=3, out=tmp_path / "part")
    run = evaluate(suite, driver, trials=4, ladder=True, stamp="s", seed=3, out=tmp_path / "part")
    assert product(tmp_path / "part") == product(tmp_path / "whole")
    assert run.card.envelope == whole.card.envelope


# ---- what is not the same run


CHANGES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "seed": ({"seed": 1}, ["seed: 0 is now 1"]),
    "stamp": ({"stamp": "t"}, ["stamp: 's' is now 't'"]),
    "strictness": ({"strictness": "original"}, ["strictness: 'strict' is now 'original'"]),
    "a limit": ({"limits": Limits(wall_s=5)}, ["limit 'wall_s': 60.0 is now 5"]),
    "two limits": (
        {"limits": Limits(steps=3)},
        ["limit 'steps': None is now 3", "limit 'wall_s': 60.0 is now None"],
    ),
    "another driver": (
        {"driver": "stub"},
        ["driver 'counting:counting' is no longer asked", "driver 'stub' is new"],
    ),
    "one more driver": ({"driver": [Counting(), "stub"]}, ["driver 'stub' is new"]),
    "fewer cases": ({"only": "t0-cart"}, ["case 't0-order' is no longer asked"]),
    "the ladder": ({"ladder": True}, ["ladder: False is now True"]),
    "a shard": ({"shard": "1/2"}, ["shard: '' is now '1/2'"]),
}


@pytest.mark.parametrize("finished", [False, True], ids=["unfinished", "finished"])
@pytest.mark.parametrize("name", CHANGES)
def test_other_settings_are_refused_with_the_difference(tmp_path: Path, name: str, finished: bool) -> None:
    """One line each, before anything is asked or written."""
    changed, expected = CHANGES[name]
    arguments: dict[str, Any] = {"stamp": "s", "trials": 2, "limits": Limits(wall_s=60.0)}
    suite = write_suite(tmp_path, some(0))
    if finished:
        evaluate(suite, Counting(), out=tmp_path / "run", **arguments)
    else:
        interrupted(tmp_path, suite, after=2, **arguments)
    before = state(tmp_path / "run")
    with pytest.raises(LabError) as caught:
        evaluate(suite, out=tmp_path / "run", **{"driver": Counting(), **arguments, **changed})
    first, *lines = str(caught.value).splitlines()
    assert first == f"{tmp_path / 'run'}: holds a run with other settings; give another --out"
    assert lines == expected
    assert state(tmp_path / "run") == before


@pytest.mark.parametrize(
    "finished", [pytest.param(False, marks=pytest.mark.long), True], ids=["unfinished", "finished"]
)
def test_other_files_are_refused_with_the_difference(tmp_path: Path, finished: bool) -> None:
    """The text of a case, a case more, the file of the world, the source of the driver."""
    suite = write_suite(tmp_path, some(0))
    world = tmp_path / "worlds" / "tiny.json"
    source = (
        "from tests.doing import knows\ndef mine(task, tools, ctx):\n    return knows(task, tools, ctx)\n"
    )

    def run(name: str) -> str:
        """In a process of its own, since a module is read once in each; what it printed as errors."""
        script = (
            "import sys; from agentbench_lab.running.runner import *; from agentbench_lab.errors import LabError\n"
            "try: evaluate('small.jsonl', 'resumed:mine', trials=2, out='run', caps=Caps(wall_s=float(sys.argv[1])))\n"
            "except LabError as error: sys.exit(str(error))\n"
        )
        seconds = "1e9" if finished else "0"
        done = subprocess.run(
            [sys.executable, "-c", script, seconds],
            cwd=tmp_path,
            env=environment(PYTHONPATH=f"{ROOT}{os.pathsep}{tmp_path}"),
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=False,
        )
        assert "Traceback" not in done.stderr
        return done.stderr

    write_driver(tmp_path, source, name="resumed")
    assert run("first") == ""
    before = state(tmp_path / "run")
    kept = {file: file.read_bytes() for file in (suite, world, tmp_path / "resumed.py")}

    def changed(file: Path, data: bytes) -> list[str]:
        file.write_bytes(data)
        said = run("changed").splitlines()[1:]
        file.write_bytes(kept[file])
        assert state(tmp_path / "run") == before
        return said

    assert changed(suite, kept[suite].replace(b"Describe Cart", b"Describe the Cart")) == [
        "case 't0-cart' has changed"
    ]
    more = json.dumps({**some(0)[0], "id": "t0-more"}).encode()
    assert changed(suite, kept[suite] + more + b"\n") == ["case 't0-more' is new"]
    assert changed(world, kept[world].replace(b"the Cart", b"the cart")) == [
        "the world of case 't0-cart' has changed",
        "the world of case 't0-order' has changed",
    ]
    (said,) = changed(tmp_path / "resumed.py", source.encode() + b"# changed\n")
    assert said.startswith("driver 'resumed:mine': version ")
    assert " is now " in said


# ---- journals that were damaged


def test_a_torn_last_line_is_run_again(tmp_path: Path) -> None:
    """Wherever it was cut."""
    suite = write_suite(tmp_path, some(0, 1))
    evaluate(suite, Counting(), trials=2, stamp="s", out=tmp_path / "whole")
    out = interrupted(tmp_path, suite, trials=2, stamp="s")
    journal = out / "journal.jsonl"
    data = journal.read_bytes()
    last = len(data.splitlines(keepends=True)[-1])
    for cut in (1, 2, last // 2, last - 1):
        journal.write_bytes(data[:-cut])
        prepared = prepare(suite, Counting(), trials=2, stamp="s", out=out)
        assert prepared.plan == Plan(8, 4, 4, 0, ("the last line was cut off; its trial is run again",))
    driver = Counting()
    evaluate(suite, driver, trials=2, stamp="s", out=out)
    assert sum(driver.asked.values()) == 4
    assert product(out) == product(tmp_path / "whole")


@pytest.mark.parametrize(
    "damage",
    [
        lambda line: line[: len(line) // 2],
        lambda line: b"\x00" * len(line),
        lambda line: line.replace(b'"case_id"', b'"case_\xff"'),
        lambda line: b"[" * 5000,
        lambda line: b"",
        lambda line: b"{}",
    ],
    ids=["half", "zeros", "no UTF-8", "deep", "empty", "another object"],
)
def test_a_damaged_line_is_kept_aside_and_run_again(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    suite = write_suite(tmp_path, some(0, 1))
    evaluate(suite, Counting(), trials=2, stamp="s", out=tmp_path / "whole")
    out = interrupted(tmp_path, suite, trials=2, stamp="s")
    journal = out / "journal.jsonl"
    lines = journal.read_bytes().splitlines()
    lines[3] = damage(lines[3])
    data = b"".join(line + b"\n" for line in lines)
    journal.write_bytes(data)
    prepared = prepare(suite, driver := Counting(), trials=2, stamp="s", out=out)
    assert prepared.plan == Plan(8, 4, 4, 0, ("line 4 is damaged; its trial is run again",))
    prepared.run()
    assert sum(driver.asked.values()) == 4
    assert product(out) == product(tmp_path / "whole")
    assert (out / "journal.jsonl.damaged").read_bytes() == data


def test_a_line_that_stands_twice_counts_once(tmp_path: Path) -> None:
    suite = write_suite(tmp_path, some(0, 1))
    evaluate(suite, Counting(), trials=2, stamp="s", out=tmp_path / "whole")
    out = interrupted(tmp_path, suite, trials=2, stamp="s")
    journal = out / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join([*lines, lines[2]]))
    prepared = prepare(suite, Counting(), trials=2, stamp="s", out=out)
    assert (prepared.plan.finished, prepared.plan.to_run) == (5, 3)
    assert prepared.plan.notes == ("trial 2 of 't0-cart' stands twice; the first counts",)
    assert prepared.run().card.counts.judged == 8
    assert product(out) == product(tmp_path / "whole")


@pytest.mark.parametrize(
    ("header", "said"),
    [
        (b'{"format":"other/v1"}', "not the header of a journal"),
        (b"no json", "not the header of a journal"),
        (b"\xff\xfe", "not the header of a journal"),
        (b"[" * 5000, "not the header of a journal"),
        (None, "format 'agentbench-lab/journal/v9' is not 'agentbench-lab/journal/v1'"),
    ],
)
def test_a_foreign_journal_is_refused(tmp_path: Path, header: bytes | None, said: str) -> None:
    suite = write_suite(tmp_path, some(0, 1))
    out = interrupted(tmp_path, suite, after=2)
    journal = out / "journal.jsonl"
    first, rest = journal.read_bytes().split(b"\n", 1)
    journal.write_bytes((header or first.replace(b"journal/v1", b"journal/v9")) + b"\n" + rest)
    before = state(out)
    with pytest.raises(LabError) as caught:
        evaluate(suite, Counting(), out=out)
    assert said in str(caught.value)
    assert f"{journal}:1: " in str(caught.value)
    assert "\n" not in str(caught.value)
    assert state(out) == before


@pytest.mark.parametrize("left", [b"", b'{"format":"agentbench-lab/jour'])
def test_a_journal_without_a_whole_header_is_a_new_beginning(tmp_path: Path, left: bytes) -> None:
    """It was killed before anything was finished."""
    suite = write_suite(tmp_path, some(0))
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "journal.jsonl").write_bytes(left)
    prepared = prepare(suite, Counting(), out=tmp_path / "run")
    assert (prepared.plan.asked, prepared.plan.to_run) == (2, 2)
    assert prepared.run().card.complete


def test_what_a_killed_writer_left_half_written_is_no_obstacle(tmp_path: Path) -> None:
    """Temporary files and a lock that nobody holds; another's file is one, and is left alone."""
    suite, out = write_suite(tmp_path, some(0)), tmp_path / "run"
    out.mkdir()
    for name in (".journal.jsonl.abc123", ".card.json.xyz", ".trials.parquet.q", "run.lock", ".probe"):
        (out / name).write_bytes(b"half")
    assert evaluate(suite, Counting(), out=out).card.complete
    assert not [file.name for file in out.iterdir() if file.name.startswith(".") or file.name == "run.lock"]
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.txt").write_bytes(b"mine")
    with pytest.raises(LabError, match="holds no run and is not empty; nothing is written over"):
        evaluate(suite, Counting(), out=other)
    assert [file.name for file in other.iterdir()] == ["thesis.txt"]


def test_a_journal_beside_an_old_card_is_the_newer_one(tmp_path: Path) -> None:
    """Killed after the run was saved, or while a finished one was extended."""
    suite, out = write_suite(tmp_path, some(0)), tmp_path / "run"
    evaluate(suite, Counting(), stamp="s", out=out)
    old = {name: (out / name).read_bytes() for name in ("card.json", "product.jsonl")}
    with pytest.raises(Interrupted):
        evaluate(suite, Counting(), trials=3, stamp="s", out=out, progress=stopping(4))
    for name, data in old.items():
        (out / name).write_bytes(data)
    driver = Counting()
    run = evaluate(suite, driver, trials=3, stamp="s", out=out)
    assert (sum(driver.asked.values()), run.card.counts.judged) == (2, 6)
    evaluate(suite, Counting(), trials=3, stamp="s", out=tmp_path / "whole")
    assert product(out) == product(tmp_path / "whole")


def test_a_damaged_card_or_table_is_one_clear_line(tmp_path: Path) -> None:
    suite, out = write_suite(tmp_path, some(0)), tmp_path / "run"
    evaluate(suite, Counting(), out=out)
    for name in ("card.json", "trials.parquet", "attempts.parquet", "product.jsonl", "transcripts.parquet"):
        whole = (out / name).read_bytes()
        for data in (whole[: len(whole) // 2], b"", b"\xff" * 100):
            (out / name).write_bytes(data)
            before = state(out)
            with pytest.raises(LabError) as caught:
                evaluate(suite, Counting(), trials=2, out=out)
            assert "\n" not in str(caught.value)
            assert state(out) == before
        (out / name).write_bytes(whole)
    assert evaluate(suite, Counting(), trials=2, out=out).card.counts.judged == 4


# ---- the plan, and a grader that has changed


def test_the_plan_is_said_before_anything_is_done(tmp_path: Path) -> None:
    suite = write_suite(tmp_path, some(0, 1))
    out = interrupted(tmp_path, suite, trials=2)
    before = state(out)
    prepared = prepare(suite, Counting(), trials=3, out=out)
    assert prepared.plan == Plan(12, 5, 7, 0)
    assert str(prepared.plan) == "plan: 12 asked, 5 finished, 7 to run"
    assert str(Plan(4, 3, 1, 3)) == (
        "plan: 4 asked, 3 finished, 1 to run, 3 to be judged again (the grader has changed)"
    )
    assert state(out) == before
    fresh = prepare(suite, Counting(), trials=3, out=tmp_path / "new")
    assert fresh.plan == Plan(12, 0, 12, 0)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("finished", [False, True], ids=["unfinished", "finished"])
def test_a_changed_grader_judges_again_without_asking(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, finished: bool
) -> None:
    """The verdicts are today's; no driver is called for what is there."""
    suite = write_suite(tmp_path, some(0, 1))
    evaluate(suite, Counting(), trials=2, stamp="s", out=tmp_path / "whole")
    if finished:
        evaluate(suite, Counting(), trials=2, stamp="s", out=tmp_path / "run")
        spoil(tmp_path / "run" / "product.jsonl")
    else:
        spoil(interrupted(tmp_path, suite, trials=2, stamp="s") / "journal.jsonl")
    out, driver = tmp_path / "run", Counting()
    monkeypatch.setattr(grading, "version", lambda: "newer")
    prepared = prepare(suite, driver, trials=2, stamp="s", out=out)
    held = 8 if finished else 5
    assert prepared.plan == Plan(8, held, 8 - held, held)
    assert str(prepared.plan).endswith(f", {held} to be judged again (the grader has changed)")
    run = prepared.run()
    assert sum(driver.asked.values()) == 8 - held
    assert (run.card.grader, run.card.complete) == ("newer", True)
    assert product(out) == product(tmp_path / "whole")
    assert prepare(suite, driver, trials=2, stamp="s", out=out).plan == Plan(8, 8, 0, 0)


def spoil(file: Path) -> None:
    """As if an older grader had judged otherwise."""
    data = file.read_bytes()
    assert b'"outcome":"correct_calls"' in data
    file.write_bytes(data.replace(b'"outcome":"correct_calls"', b'"outcome":"wrong_calls"'))


# ---- killed at any moment

SLOW = """
import time
from tests.doing import knows
from agentbench_lab.transcripts import Transcript

def lucky(task, tools, ctx):
    time.sleep(WAIT_S)
    return knows(task, tools, ctx) if ctx.random.random() < 0.7 else Transcript(refused=True)
"""
SCRIPT = """
import json, sys
from agentbench_lab.running.runner import evaluate
evaluate("small.jsonl", "slow:lucky", stamp="s", **json.loads(sys.argv[1]))
"""


def begun(folder: Path, **arguments: Any) -> subprocess.Popen[bytes]:
    """The run, begun or gone on with, in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, json.dumps(arguments)],
        cwd=folder,
        env=environment(PYTHONPATH=f"{ROOT}{os.pathsep}{folder}"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def ended(process: subprocess.Popen[bytes]) -> None:
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors.decode(errors="replace")


def finished(folder: Path) -> int:
    """Whole trials in the journal."""
    journal = folder / "journal.jsonl"
    return max(0, journal.read_bytes().count(b"\n") - 1) if journal.exists() else 0


def killed(
    tmp_path: Path, *, trials: int, kills: int, executor: str, seed: int, wait_s: float = 0.02
) -> None:
    """Kill the run at random moments, going on each time; each trial is there once, and the bytes are the same."""
    cases = CASES[:10]
    write_suite(tmp_path, cases)
    write_driver(tmp_path, SLOW.replace("WAIT_S", str(wait_s)), name="slow")
    arguments: dict[str, Any] = {"trials": trials // len(cases), "workers": 2, "executor": executor}
    ended(begun(tmp_path, out="whole", **{**arguments, "executor": "threads", "workers": 8}))
    lots = random.Random(seed)
    held = 0
    counts = []
    for at in range(kills):
        process = begun(tmp_path, out="run", **arguments)
        if lots.random() < 0.25:
            # somewhere while it starts, reads, or writes its journal anew
            time.sleep(lots.uniform(0.0, 1.2))
        else:
            goal = min(trials - 1, held + lots.randrange(1, max(2, 2 * (trials - held) // (kills - at + 1))))
            deadline = time.monotonic() + 30
            while (
                finished(tmp_path / "run") < goal and process.poll() is None and time.monotonic() < deadline
            ):
                time.sleep(0.001)
            time.sleep(lots.uniform(0.0, 0.03))
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=30)
        now = finished(tmp_path / "run")
        done = (tmp_path / "run" / "card.json").exists()
        assert now >= held or done
        held = now or held
        counts.append(held)
    last = begun(tmp_path, out="run", **arguments)
    ended(last)
    assert len(set(counts)) > kills // 3, counts
    run = load_run(tmp_path / "run")
    keys = Counter((row.case_id, row.trial) for row in read_product(tmp_path / "run" / "product.jsonl"))
    assert set(keys.values()) == {1}
    assert len(keys) == trials == run.card.counts.judged == run.attempts.num_rows
    assert product(tmp_path / "run") == product(tmp_path / "whole")
    assert len({row.verdict.outcome for row in run.product}) > 1
    left = {file.name for file in (tmp_path / "run").iterdir()}
    assert left == {file.name for file in (tmp_path / "whole").iterdir()}


def test_a_run_that_is_killed_three_times_loses_nothing(tmp_path: Path) -> None:
    # slow enough that a machine with other work kills it in the middle too
    killed(tmp_path, trials=60, kills=3, executor="threads", seed=1, wait_s=0.1)


@pytest.mark.long
@pytest.mark.parametrize("executor", ["threads", "processes"])
def test_a_run_that_is_killed_fifty_times_loses_nothing(tmp_path: Path, executor: str) -> None:
    killed(tmp_path, trials=500, kills=50, executor=executor, seed=2)


def test_what_is_in_the_journal_is_what_was_finished(tmp_path: Path) -> None:
    """Its records are whole: read back they are the rows of the run that comes of them."""
    suite = write_suite(tmp_path, some(0, 1))
    out = interrupted(tmp_path, suite, trials=2, stamp="s")
    found = read_journal(out / "journal.jsonl")
    assert found is not None
    assert found.header.settings.stamp == "s"
    assert found.notes == ()
    rows = load_run(out).product
    assert [record.row for record in sorted(found.records, key=lambda record: record.place)] == list(rows)
    encoded = [msgspec.json.encode(record) for record in found.records]
    assert encoded == (out / "journal.jsonl").read_bytes().splitlines()[1:]


def test_a_clock_that_jumps_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The wall clock is only written down; limits and caps go by one that cannot be set."""
    suite = write_suite(tmp_path, some(0, 1))
    evaluate(suite, Counting(), trials=2, stamp="s", out=tmp_path / "whole")
    jumps = iter(range(0, 10**9, 10**5))
    monkeypatch.setattr(time, "time", lambda: float(10**9 - 10**6 * next(jumps)))
    evaluate(suite, Counting(), trials=2, stamp="s", out=tmp_path / "run", caps=Caps(wall_s=50.0))
    assert product(tmp_path / "run") == product(tmp_path / "whole")
