"""Recording and replay: a run that was recorded gives the same verdicts again; what was not recorded is never made up."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentbench_lab.cases import Limits, Task
from agentbench_lab.drivers.context import Context
from agentbench_lab.drivers.faults import InfrastructureError, OutOfTime
from agentbench_lab.drivers.loading import load_driver
from agentbench_lab.drivers.recording import Begun, Recorded, read_recording
from agentbench_lab.errors import LabError
from agentbench_lab.results.run import Run
from agentbench_lab.running.runner import evaluate
from agentbench_lab.running.trial import Retries
from agentbench_lab.transcripts import Transcript
from agentbench_lab.worlds.toolbox import Toolbox

from ..doing import CASES, ROOT, environment, knows, lab, some, write_driver, write_suite

FATES = '''
"""A driver that ends in every way there is, by its trial's own random numbers."""
import asyncio, os, signal, time
from agentbench_lab.cases import Call
from agentbench_lab.drivers.faults import InfrastructureError, OutOfTime
from agentbench_lab.transcripts import Transcript, Usage
from agentbench_lab.worlds.toolbox import BudgetSpent
from tests.doing import knows

class Odd(Exception):
    pass

def fates(task, tools, ctx):
    drawn = ctx.random.randrange(14)
    if drawn < 3:
        ctx.spend(Usage(5, 0, 0, 7, 1, 30, 0.5))
        return knows(task, tools, ctx)
    tools.call("tmct_describe", {"symbol": ctx.random.choice(["Cart", "Order", "Ledger"])})
    ctx.spend(Usage(5, 0, 0, 7, 1, 30, 0.5))
    if drawn == 3:
        raise Odd("out of luck")
    if drawn == 4:
        return {"colour": "red"}
    if drawn == 5:
        raise InfrastructureError("the other side is down", retry_after=0.0, usage=Usage(cost_micros=3))
    if drawn == 6:
        ctx.spend(Usage(10**6, 0, 0, 0, 1, 1, 0.0))
    if drawn == 7:
        while True:
            tools.call("tmct_describe", {"symbol": "Cart"})
    if drawn == 8:
        tools.call("refuse", {"reason": "I would rather not"})
        tools.call("tmct_describe", {"symbol": "Cart"})
    if drawn == 9:
        tools.call("answer", {"value": {"n": 3}, "status": "success"})
        return Transcript(text="three", messages=({"role": "assistant", "content": "three"},))
    if drawn == 10:
        tools.call("tmct_unheard_of", {"a": [1, {"b": None}]})
        tools.call("tmct_describe", {"symbol": {1, 2}})
        tools.call(3, None)
    if drawn == 11:
        raise SystemExit(4)
    if drawn == 12:
        return Transcript(calls=(Call("tmct_describe", {"symbol": "Moon"}),), usage=Usage(1, 2, 3, 4, 5, 6, 7.5))
    return Transcript(refused=True, answer=ctx.random.random(), notes=("a reason",))

fates.model = "coin"

async def fates_later(task, tools, ctx):
    await asyncio.sleep(0)
    return fates(task, tools, ctx)

def down_twice(task, tools, ctx, tries={}):
    tries[ctx.seed] = tries.get(ctx.seed, 0) + 1
    if tries[ctx.seed] < 3:
        raise InfrastructureError("down", retry_after=0.01, usage=Usage(cost_micros=tries[ctx.seed]))
    return knows(task, tools, ctx)

def shaped(request, tools, ctx):
    seen = ctx.dispatch(tools[0], {"symbol": request.split()[-1]})
    ctx.spend(Usage(1, 0, 0, 2, 1, 3, 0.0))
    return {"calls": [], "refused": not seen["ok"], "why": seen.get("error", "")}

def gone(task, tools, ctx):
    raise InfrastructureError("closed for the season", retry_after=1e4)

def hangs(task, tools, ctx):
    tools.call("tmct_describe", {"symbol": "Cart"})
    if ctx.trial == 2:
        time.sleep(0.6)
    return knows(task, tools, ctx)

async def hangs_later(task, tools, ctx):
    tools.call("tmct_describe", {"symbol": "Cart"})
    if ctx.trial == 2:
        await asyncio.sleep(60)
    return knows(task, tools, ctx)

def dies(task, tools, ctx):
    tools.call("tmct_describe", {"symbol": "Cart"})
    if ctx.trial == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return knows(task, tools, ctx)

def slow(task, tools, ctx):
    time.sleep(0.05)
    return knows(task, tools, ctx)
'''
LIMITS = Limits(wall_s=30, tool_calls=9, tokens=1000)


@pytest.fixture(autouse=True)
def drivers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The module `fated`, in the working folder."""
    write_driver(tmp_path, FATES, name="fated")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), str(ROOT), *sys.path])
    sys.modules.pop("fated", None)
    yield
    sys.modules.pop("fated", None)


def rows(run: Run) -> list[dict[str, Any]]:
    """The product rows without the arm, which is another one."""
    assert run.path is not None
    lines = (run.path / "product.jsonl").read_text(encoding="utf-8").splitlines()
    found = [{**json.loads(line), "arm": None} for line in lines]
    for row in found:
        for entry in row["produced"].get("ledger", ()):
            if "error" in entry:
                # what it was that JSON could not hold is not known any more
                entry["error"] = entry["error"].replace("$: a _Odd", "$.symbol: a set")
    return found


def spent(run: Run) -> list[Any]:
    tokens = [f"tokens_{kind}" for kind in ("fresh_input", "cache_read", "cache_write", "output")]
    columns = [*tokens, "model_calls", "cost_micros", "outcome"]
    return run.trials.select(columns).to_pylist()


def both(suite: Path, driver: str, folder: Path, **options: Any) -> tuple[Run, Run]:
    """The run that is recorded, and its replay."""
    tape = folder / "tape.jsonl"
    options = {"trials": 3, "limits": LIMITS, "retries": Retries(3, 0.01, 0.02, 0.01), **options}
    first = evaluate(suite, driver, record=tape, out=folder / "first", **options)
    options.pop("executor", None)
    again = evaluate(suite, f"replay:{tape}", out=folder / "again", **options)
    return first, again


@pytest.mark.parametrize(
    ("driver", "options"),
    [
        ("fated:fates", {"workers": 4}),
        ("fated:fates_later", {"workers": 4}),
        ("fated:fates", {"workers": 2, "executor": "processes"}),
        ("fated:down_twice", {}),
        ("fated:gone", {}),
        ("fated:shaped", {}),
        ("stub", {"trials": 1}),
    ],
    ids=["threads", "loop", "processes", "retried", "gone", "shaped", "stub"],
)
def test_a_replay_gives_the_same_rows(tmp_path: Path, driver: str, options: dict[str, Any]) -> None:
    """Whatever ended a trial ends it again; rows, cost and attempts are those of the day of the recording."""
    first, again = both(write_suite(tmp_path), driver, tmp_path, **options)
    assert rows(again) == rows(first)
    assert spent(again) == spent(first)
    names = ["case_id", "trial", "attempt", "end", "cost_micros"]
    assert again.attempts.select(names).to_pylist() == first.attempts.select(names).to_pylist()
    (arm,) = again.card.arms
    assert arm.evidence == "replayed"
    assert arm.driver.startswith("replay:")
    assert driver in arm.banner and arm.banner.startswith("replayed: ")
    if driver == "fated:fates":
        assert arm.model == "coin"
        stops = {row["produced"]["stop"] for row in rows(first)}
        assert {"done", "refused", "budget", "driver_error"} <= stops


@pytest.mark.parametrize(
    ("driver", "options"),
    [
        ("fated:hangs", {}),
        ("fated:hangs_later", {}),
        ("fated:hangs", {"executor": "processes"}),
        ("fated:dies", {"executor": "processes"}),
    ],
    ids=["thread", "loop", "process", "death"],
)
def test_a_trial_that_its_driver_did_not_end_is_replayed_too(
    tmp_path: Path, driver: str, options: dict[str, Any]
) -> None:
    """A thread that comes back long after its limit leaves no second story."""
    suite = write_suite(tmp_path, some(0)[:1])
    first, again = both(suite, driver, tmp_path, workers=1, limits=Limits(wall_s=0.3), **options)
    time.sleep(0.5)
    assert rows(again) == rows(first)
    outcomes = [row["verdict"]["outcome"] for row in rows(first)]
    assert outcomes[1] == ("driver_error" if "dies" in driver else "timeout")
    assert outcomes[0] == outcomes[2] == "correct_calls"
    late = [call for call in read_recording(tmp_path / "tape.jsonl").calls if call.trial == 2]
    assert [call.worker for call in late] == ["*"]


def test_calls_are_really_made_again(tmp_path: Path) -> None:
    """The world of today decides: it has no Cart any more, and the note says so."""
    suite = write_suite(tmp_path, some(0))
    first = evaluate(suite, "tests.doing:knows", record=tmp_path / "tape.jsonl", out=tmp_path / "first")
    assert first.card.counts.judged == 2
    world = tmp_path / "worlds" / "tiny.json"
    world.write_text(world.read_text(encoding="utf-8").replace("the Cart", "a cart"), encoding="utf-8")
    again = evaluate(suite, f"replay:{tmp_path}/tape.jsonl", out=tmp_path / "again")
    notes = [row["produced"].get("why", "") for row in rows(again)]
    assert "the world has changed since this was recorded: call 1 (tmct_describe)" in notes[0]
    assert "changed" not in notes[1]


def test_a_changed_case_is_refused_by_name(tmp_path: Path) -> None:
    suite = write_suite(tmp_path, some(0))
    evaluate(suite, "tests.doing:knows", record=tmp_path / "tape.jsonl", out=tmp_path / "first")
    changed = some(0)
    changed[1]["request"] = "Describe the Order"
    with pytest.raises(LabError, match=r"'t0-order' is another case now than the one that was recorded"):
        evaluate(write_suite(tmp_path, changed), "replay:tape.jsonl")
    with pytest.raises(LabError, match=r"no recording of 't1-callers'"):
        evaluate(write_suite(tmp_path, some(1)), "replay:tape.jsonl")
    with pytest.raises(LabError, match=r"no recording of trial 2 of 't0-cart'; there is trial 1"):
        evaluate(write_suite(tmp_path, some(0)), "replay:tape.jsonl", trials=2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("replay:", "replay needs its recording"),
        ("replay:tap.jsonl", r"no such recording \(did you mean 'tape.jsonl'\?\)"),
        ("replay:small.jsonl", "is no recording"),
        (
            "replay:tape.jsonl",
            "holds several drivers: replay:tape.jsonl#NAME, with NAME one of stub, refuse_all",
        ),
        ("replay:tape.jsonl#stab", r"no recording of driver 'stab' \(did you mean 'stub'\?\)"),
    ],
)
def test_what_cannot_be_replayed_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    suite = write_suite(tmp_path, some(0))
    evaluate(suite, ["stub", "refuse_all"], record="tape.jsonl", save_run=False)
    with pytest.raises(LabError, match=message):
        evaluate(suite, text, save_run=False)
    run = evaluate(suite, ["replay:tape.jsonl#stub", "replay:tape.jsonl#refuse_all"], save_run=False)
    assert run.card.counts.judged == 4


def test_a_file_that_is_no_recording_is_not_written_to(tmp_path: Path) -> None:
    suite = write_suite(tmp_path, some(0))
    before = suite.read_bytes()
    for record, message in (
        (suite, "is no recording"),
        (tmp_path, "a folder"),
        (tmp_path / "no" / "x", "no such folder"),
    ):
        with pytest.raises(LabError, match=message):
            evaluate(suite, "stub", record=record, save_run=False)
    with pytest.raises(LabError, match="not on a cluster that is elsewhere"):
        evaluate(suite, "stub", record="x", executor="dask:tcp://127.0.0.1:1", save_run=False)
    assert suite.read_bytes() == before
    assert not (tmp_path / "x").exists()


def test_a_recording_that_was_cut_anywhere_can_be_read(tmp_path: Path) -> None:
    """Every cut leaves whole lines, and the same file can be recorded into again."""
    suite = write_suite(tmp_path, some(0))
    tape = tmp_path / "tape.jsonl"
    evaluate(suite, "tests.doing:knows", record=tape, out=tmp_path / "first")
    whole = tape.read_bytes()
    header = whole.index(b"\n") + 1
    for cut in range(header, len(whole), 7):
        tape.write_bytes(whole[:cut])
        found = read_recording(tape)
        assert len(found.calls) == whole[:cut].count(b"\n") - 1
        assert found.damaged == (not whole[:cut].endswith(b"\n"))
    tape.write_bytes(whole[:-20])
    with pytest.raises(LabError, match="no recording of 't0-order'"):
        evaluate(suite, f"replay:{tape}", save_run=False)
    evaluate(suite, "tests.doing:knows", record=tape, save_run=False)
    run = evaluate(suite, f"replay:{tape}", save_run=False)
    assert run.card.counts.judged == 2
    assert "left out: 1 damaged line of the recording" in run.card.arms[0].banner


def test_of_two_recordings_of_a_trial_the_later_one_holds(tmp_path: Path) -> None:
    suite = write_suite(tmp_path, some(0))
    seeds = [
        evaluate(suite, "fated:fates", record="tape.jsonl", seed=seed, out=f"run{seed}", trials=4)
        for seed in (1, 2)
    ]
    assert rows(seeds[0]) != rows(seeds[1])
    again = evaluate(
        suite, "replay:tape.jsonl", out="again", trials=4, limits=Limits(wall_s=30, tool_calls=1000)
    )
    assert rows(again) == rows(seeds[1])


def test_a_trial_that_hangs_the_second_time_is_not_the_first_one(tmp_path: Path) -> None:
    """Its driver's end is of another run than the time that ran out."""
    suite = write_suite(tmp_path, some(0)[:1])
    options: dict[str, Any] = {"trials": 3, "limits": Limits(wall_s=0.3)}
    # trial 2 of the slow one ends, of the other it hangs; the arm is told by its name
    write_driver(tmp_path, FATES.replace("time.sleep(0.6)", "pass"), name="fated")
    calm = evaluate(suite, "fated:hangs", record="tape.jsonl", out="calm", **options)
    write_driver(tmp_path, FATES, name="fated")
    sys.modules.pop("fated", None)
    hung = evaluate(suite, "fated:hangs", record="tape.jsonl", out="hung", **options)
    time.sleep(0.5)
    outcomes = [[row["verdict"]["outcome"] for row in rows(run)] for run in (calm, hung)]
    assert outcomes == [["correct_calls"] * 3, ["correct_calls", "timeout", "correct_calls"]]
    assert rows(evaluate(suite, "replay:tape.jsonl", out="again", **options)) == rows(hung)


def test_a_killed_run_keeps_what_was_recorded(tmp_path: Path) -> None:
    """After kill -9 each whole line holds; the run goes on into the same file, and its replay is the whole run."""
    suite = write_suite(tmp_path)
    options = ("--driver", "fated:slow", "--trials", "2", "--out", "run", "--record", "tape.jsonl")
    done = subprocess.Popen(
        [sys.executable, "-m", "agentbench_lab.cli", "run", str(suite), *options],
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    tape = tmp_path / "tape.jsonl"
    until = time.monotonic() + 60
    while not tape.exists() or tape.read_bytes().count(b"\n") < 6:
        assert time.monotonic() < until and done.poll() is None
        time.sleep(0.01)
    os.kill(done.pid, signal.SIGKILL)
    done.wait()
    kept = len(read_recording(tape).calls)
    assert 5 <= kept < 2 * len(CASES)
    assert lab("run", str(suite), *options, cwd=tmp_path).returncode == 0
    assert len(read_recording(tape).calls) == 2 * len(CASES)
    again = evaluate(suite, "replay:tape.jsonl", trials=2, out="again")
    first = [json.loads(line) for line in (tmp_path / "run" / "product.jsonl").read_text().splitlines()]
    assert [{**row, "arm": None} for row in first] == rows(again)


def test_secrets_are_not_recorded(tmp_path: Path) -> None:
    key = "sk-" + "a1b2c3d4" * 4

    def talks(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
        tools.call("tmct_describe", {"symbol": key})
        return Transcript(
            text=f"my key is {key}", messages=({"authorization": f"Bearer {key}"},), notes=(key,)
        )

    suite = write_suite(tmp_path, some(0))
    evaluate(suite, talks, record="tape.jsonl", save_run=False)
    text = (tmp_path / "tape.jsonl").read_text(encoding="utf-8")
    assert key not in text
    assert "«redacted»" in text
    assert evaluate(suite, "replay:tape.jsonl", save_run=False).card.counts.judged == 2


@pytest.mark.parametrize(
    "note", ["it stopped \ud800 there", "x" * 495 + " sk-a1b2c3d4e5f6a1b2c3d4e5f6", "plain"]
)
def test_the_last_words_of_a_time_out_are_recorded_as_they_are_kept(tmp_path: Path, note: str) -> None:
    """With `--record` a trial ends as without, whatever the driver says of it; and no beginning of a key is left."""

    def late(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
        raise OutOfTime(note)

    suite = write_suite(tmp_path, some(0)[:1])
    (bare,) = evaluate(suite, late, save_run=False).product
    (row,) = evaluate(suite, late, record=tmp_path / "tape.jsonl", save_run=False).product
    (again,) = evaluate(suite, f"replay:{tmp_path / 'tape.jsonl'}", save_run=False).product
    assert bare.produced.stop == row.produced.stop == again.produced.stop == "timeout"
    assert "sk-" not in (tmp_path / "tape.jsonl").read_text(encoding="utf-8")


def test_a_call_that_was_not_recorded_is_excluded(tmp_path: Path) -> None:
    """What only shows while a trial runs: nothing is made up, and the environment is the owner."""
    suite = write_suite(tmp_path, some(0))
    evaluate(suite, "tests.doing:knows", record="tape.jsonl", save_run=False)
    replay = load_driver("replay:tape.jsonl")
    inner = replay.function

    def asks_else(task: Task, tools: Toolbox, ctx: Context) -> Any:
        return inner(Task(task.request + "?", task.tools), tools, ctx)

    run = evaluate(suite, asks_else, save_run=False)
    assert (run.card.counts.excluded, run.card.counts.judged) == (2, 0)
    for row in run.trials.to_pylist():
        assert row["excluded_owner"] == "environment"
        assert "no recording of" in row["excluded"]


def test_the_lines_of_a_recording(tmp_path: Path) -> None:
    """The format that docs/drivers.md describes."""
    suite = write_suite(tmp_path, some(0)[:1])
    evaluate(suite, "tests.doing:knows", record="tape.jsonl", save_run=False, stamp="day")
    run, call = [json.loads(line) for line in (tmp_path / "tape.jsonl").read_text().splitlines()]
    assert run["line"] == "run" and run["format"] == "agentbench-lab/recording/v1"
    assert (run["suite"], run["stamp"], run["arms"][0]["driver"]) == ("small", "day", "tests.doing:knows")
    assert call["line"] == "call"
    assert (call["case"], call["trial"], call["driver"]) == ("t0-cart", 1, "tests.doing:knows")
    (made,) = call["calls"]
    assert (made["name"], made["input"]) == ("tmct_describe", {"symbol": "Cart"})
    assert len(made["seen"]) == len(call["key"]) == 16
    found = read_recording(tmp_path / "tape.jsonl")
    assert isinstance(found.runs[0], Begun) and isinstance(found.calls[0], Recorded)


def test_a_failed_write_is_no_fault_of_the_driver(tmp_path: Path) -> None:
    """A full disk excludes the trial; the run says what happened."""
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    suite = write_suite(tmp_path, some(0))
    with pytest.raises(LabError, match="cannot record there: No space left on device"):
        evaluate(suite, "stub", record="/dev/full", save_run=False)


def test_an_infrastructure_error_is_not_waited_for_again(tmp_path: Path) -> None:
    """A Retry-After of the day of the recording would only cost time."""
    tried: list[float] = []

    def waits(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
        tried.append(0)
        if len(tried) == 1:
            raise InfrastructureError("busy", retry_after=0.4)
        return knows(task, tools, ctx)

    suite = write_suite(tmp_path, some(0)[:1])
    first = evaluate(suite, waits, record="tape.jsonl", out="first")
    again = evaluate(suite, "replay:tape.jsonl", out="again")
    assert rows(first) == rows(again)
    assert first.trials["wall_s"][0].as_py() >= 0.4 > again.trials["wall_s"][0].as_py()


@pytest.mark.parametrize("executor", ["threads", "processes"])
def test_scaffolds_are_replayed(tmp_path: Path, executor: str) -> None:
    """Each worker's call is a line; the replayed arm has the same rows, calls by worker and cost."""
    scaffolds = ["once", "linear", "fan_out_4", "fan_out_4:plan"]
    options: dict[str, Any] = {"scaffolds": scaffolds, "trials": 2, "only": "wide-01-a,wide-04-*,wide-08-a"}
    # its errors come by chance, and it refuses no scaffold; what is replayed knows no gold
    driver = "simulated:success=0.93"
    first = evaluate(
        "wide", driver, record="tape.jsonl", out="first", executor=executor, workers=2, **options
    )
    again = evaluate("wide", "replay:tape.jsonl", out="again", executor=executor, **options)
    assert rows(again) == rows(first)
    assert spent(again) == spent(first)
    names = [
        "case_id",
        "scaffold",
        "trial",
        "worker",
        "step",
        "name",
        "input",
        "status",
        "observed",
        "state_diff",
    ]
    assert again.calls.select(names).to_pylist() == first.calls.select(names).to_pylist()
    assert {row["solved"] for row in first.trials.to_pylist()} == {True, False}
    (evidence,) = again.card.evidence
    assert evidence == "replayed"
    assert {arm.scaffold for arm in again.card.arms} == set(scaffolds)
    with pytest.raises(
        LabError, match=r"nothing recorded under scaffold 'fan_out_2' \(did you mean 'fan_out_4'\?\)"
    ):
        evaluate("wide", "replay:tape.jsonl", scaffolds=["fan_out_2"], only="wide-01-a", save_run=False)


def test_a_worker_that_was_not_recorded_excludes_its_trial(tmp_path: Path) -> None:
    """A line is missing in the middle of a trial: no fake, and the environment is the owner."""
    evaluate("wide", "simulated", scaffolds=["linear"], only="wide-02-a", record="tape.jsonl", save_run=False)
    tape = tmp_path / "tape.jsonl"
    lines = tape.read_bytes().splitlines(keepends=True)
    tape.write_bytes(b"".join(line for line in lines if b'"worker":"2"' not in line))
    run = evaluate("wide", "replay:tape.jsonl", scaffolds=["linear"], only="wide-02-a", save_run=False)
    (row,) = run.trials.to_pylist()
    assert row["excluded_owner"] == "environment"
    assert "no recording of wide-02-a, trial 1, worker 2" in row["excluded"]


@pytest.mark.parametrize("scaffold", ["once", "linear", "fan_out_2", "durable:linear", "durable:fan_out_2"])
def test_crashes_are_replayed(tmp_path: Path, scaffold: str) -> None:
    """Each crash is a line too: a durable trial is begun again as often as it was, and costs what it did."""
    options: dict[str, Any] = {"scaffolds": [scaffold], "trials": 4, "only": "wide-04-*"}
    first = evaluate("wide", "faulty:0.03:simulated", record="tape.jsonl", out="first", **options)
    again = evaluate("wide", "replay:tape.jsonl", out="again", **options)
    assert rows(again) == rows(first)
    assert spent(again) == spent(first)
    names = ["case_id", "trial", "attempt", "end", "model_calls", "cost_micros"]
    assert again.attempts.select(names).to_pylist() == first.attempts.select(names).to_pylist()
    if scaffold.startswith("durable"):
        assert first.attempts.num_rows > first.trials.num_rows


def test_a_mistake_of_the_user_is_no_recording_of_the_agent(tmp_path: Path) -> None:
    """What may have stopped the run is not played back as what the driver did."""

    def mistaken(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
        raise LabError("this cannot work")

    suite = write_suite(tmp_path, some(0)[:1])
    first = evaluate(suite, mistaken, record="tape.jsonl", out="first")
    assert [call.worker for call in read_recording("tape.jsonl").calls] == ["*"]
    assert rows(evaluate(suite, "replay:tape.jsonl", out="again")) == rows(first)
