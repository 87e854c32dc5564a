"""Durable trials: after a crash, and after a kill, they go on behind their last finished step."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from agentbench_lab import tables
from agentbench_lab.analysis import metrics
from agentbench_lab.cases import Call, Suite, Task
from agentbench_lab.drivers.context import Context
from agentbench_lab.drivers.faults import InfrastructureError
from agentbench_lab.drivers.faulty import faulty
from agentbench_lab.errors import LabError
from agentbench_lab.results.bench_io import from_bench, to_bench
from agentbench_lab.results.dialogues import DIALOGUE_LIMIT
from agentbench_lab.results.run import load_run
from agentbench_lab.running.merge import regrade_run
from agentbench_lab.running.runner import evaluate
from agentbench_lab.running.trial import Retries
from agentbench_lab.scaffolds import durable, linear
from agentbench_lab.transcripts import Transcript
from agentbench_lab.worlds.sandbox import Sandbox
from agentbench_lab.worlds.sandbox_levels import Level, unavailable
from agentbench_lab.worlds.toolbox import Toolbox

from .doing import environment, write_driver
from .test_scaffolds import EACH, frame, lines_suite, run, suite, workers, writes

__all__ = ["suite"]


def crashes(*parts: int, each: int = 1) -> Any:
    """A driver that crashes at these parts, halfway through, in each of their first attempts."""
    tries: dict[tuple[str, int], int] = {}

    def driver(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
        ctx.spend(EACH)
        key = ctx.seed, ctx.trial
        tries[key] = tries.get(key, 0) + 1
        if ctx.part in parts and tries[key] <= each:
            tools.call("add", {"line": "half done"})
            raise RuntimeError("oh")
        if ctx.role == "synthesis":
            return Transcript(answer="done")
        calls = [Call("add", {"line": f"{part[-2]}{n}"}) for part in task.parts for n in range(2)]
        for call in calls:
            tools.call(call.name, call.input)
        return Transcript(calls=tuple(calls))

    driver.tries = tries  # type: ignore[attr-defined]
    return driver


@pytest.mark.parametrize("scaffold", ["linear", "fan_out_2"])
def test_a_crash_costs_its_own_step_and_no_more(suite: Suite, scaffold: str) -> None:
    driver = crashes(3)
    bare = run(suite, driver, scaffold, only="w5")
    assert frame(bare)["outcome"].to_list() == ["driver_error"]
    driver.tries.clear()
    found = run(suite, driver, f"durable:{scaffold}", only="w5")
    (row,) = found.product
    assert row.verdict.solved
    whole = run(suite, crashes(), f"durable:{scaffold}", only="w5").product[0]
    assert row.produced.calls == whole.produced.calls and row.produced.ledger == whole.produced.ledger
    assert (
        frame(found, "calls")["worker"].to_list()
        == frame(run(suite, crashes(), scaffold, only="w5"), "calls")["worker"].to_list()
    )
    trials, attempts = frame(found), frame(found, "attempts")
    assert attempts["end"].to_list() == ["driver_error", "done"]
    first, second = workers(found)
    if scaffold == "linear":
        assert [w["name"] for w in first] == ["part 1", "part 2", "part 3", "part 4"]
        assert [w["name"] for w in second] == ["part 4", "part 5"]
        assert [w["number"] for w in second] == [4, 5]
        assert sum(driver.tries.values()) == 6
    else:
        # the other half of the wave is done again as well
        assert [w["name"] for w in second] == ["part 3", "part 4", "part 5", "synthesis"]
    assert trials["cost_micros"].to_list() == [7 * (len(first) + len(second))]
    assert attempts["cost_micros"].to_list() == [7 * len(first), 7 * len(second)]
    assert trials["attempts"].to_list() == [2]


def test_a_restart_is_no_second_sample(suite: Suite) -> None:
    """Crashes are attempts of one trial: rates, pass^k and costs count it once, and count all that it cost."""
    found = run(suite, crashes(0), "durable:linear", only="w2,w5", trials=2)
    assert (found.card.counts.asked, found.card.counts.judged, found.card.counts.excluded) == (4, 4, 0)
    assert frame(found)["attempts"].to_list() == [2, 2, 2, 2]
    cost = frame(found)["cost_micros"].to_list()
    assert cost == [3 * 7, 3 * 7, 6 * 7, 6 * 7]
    passes = metrics.reliability(frame(found)).filter(metric="pass_hat_k")
    assert passes["k"].to_list() == [1, 2] and passes["estimate"].to_list() == [1.0, 1.0]
    spent = metrics.cost(frame(found))
    figures = dict(spent.select("metric", "estimate").iter_rows())
    assert figures["spent"] == pytest.approx(18 * 7e-6)
    assert figures["per_solved"] == pytest.approx(18 * 7e-6 / 4)


def test_it_is_given_up_after_twenty_restarts(suite: Suite) -> None:
    found = run(suite, crashes(1, each=99), "durable:linear", only="w2")
    assert frame(found)["outcome"].to_list() == ["driver_error"]
    assert frame(found)["attempts"].to_list() == [21]
    assert frame(found)["cost_micros"].to_list() == [7 * 22]


def test_what_is_no_crash_is_not_begun_again(suite: Suite) -> None:
    def nonsense(task: Task, tools: Toolbox, ctx: Context) -> Any:
        return 7

    def mistaken(task: Task, tools: Toolbox, ctx: Context) -> Any:
        raise LabError("no such model")

    for driver in (nonsense, mistaken):
        found = run(suite, driver, "durable:linear", only="w2")
        assert frame(found)["attempts"].to_list() == [1]
        assert frame(found)["outcome"].to_list() == ["driver_error"]


def test_an_outage_between_two_steps_is_waited_for(suite: Suite) -> None:
    """Nothing was said since the last finished step, so that to ask again is no second sample."""
    down = [True]

    def flaky(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
        if ctx.part == 3 and down:
            down.clear()
            raise InfrastructureError("busy", retry_after=0)
        return writes(task, tools, ctx)

    quick = Retries(times=2, wait_initial_s=0.01, wait_max_s=0.02, wait_jitter_s=0)
    found = run(suite, flaky, "durable:linear", only="w5", retries=quick)
    assert frame(found)["solved"].to_list() == [True]
    assert frame(found, "attempts")["end"].to_list() == ["infrastructure_error", "done"]
    down.append(True)
    bare = run(suite, flaky, "linear", only="w5", retries=quick)
    assert frame(bare)["excluded_owner"].to_list() == ["environment"]


# ---- crashes by lot


def test_crashes_by_lot_are_the_same_each_time_and_durable_survives_them(suite: Suite) -> None:
    driver = faulty(crashes(), 0.15)
    runs = [run(suite, driver, "linear", "durable:linear", trials=40, only="w5") for _ in range(2)]
    assert runs[0].product == runs[1].product
    trials = frame(runs[0])
    bare, lasting = trials.filter(scaffold="linear"), trials.filter(scaffold="durable:linear")
    assert 0 < bare["solved"].sum() < 40  # type: ignore[operator]
    assert lasting["solved"].sum() == 40 and (lasting["attempts"] > 1).any()
    # nothing is left of a crash in what is graded: the rows are those of a run without faults
    calm = run(suite, crashes(), "durable:linear", trials=40, only="w5")
    assert [row.produced for row in runs[0].product[40:]] == [row.produced for row in calm.product]
    assert lasting["cost_micros"].min() >= 5 * 7 and lasting["cost_micros"].max() > 5 * 7  # type: ignore[operator]


def test_under_faults_durable_is_more_reliable_and_cheaper_by_the_solved_task(suite: Suite) -> None:
    found = frame(run(suite, faulty(crashes(), 0.15), "linear", "durable:linear", trials=40, only="w5"))
    passes = metrics.reliability(found).filter(metric="pass_hat_k", k=4)
    spent = metrics.cost(found).filter(metric="per_solved")
    passed = dict(passes.select("scaffold", "estimate").iter_rows())
    per_solved = dict(spent.select("scaffold", "estimate").iter_rows())
    assert passed["durable:linear"] == 1.0 > passed["linear"]
    assert per_solved["durable:linear"] < per_solved["linear"]


def test_without_faults_durable_costs_nothing(suite: Suite) -> None:
    bare, lasting = (frame(run(suite, writes, name)) for name in ("linear", "durable:linear"))
    for column in ("cost_micros", "tokens_fresh_input", "model_calls", "tool_calls", "attempts"):
        assert bare[column].to_list() == lasting[column].to_list()


@pytest.mark.parametrize(
    "text", ["0.1", "0.1:", "x:stub", "1.5:stub", "-1:stub", "nan:stub", "", "0.1:stubb"]
)
def test_a_faulty_driver_that_is_none_is_one_line(suite: Suite, text: str) -> None:
    with pytest.raises(LabError) as caught:
        evaluate(suite, f"faulty:{text}", save_run=False)
    assert "\n" not in str(caught.value)


# ---- kills

KILLED = """
import os, pathlib, time
from agentbench_lab.cases import Call
from agentbench_lab.transcripts import Transcript, Usage

def slow(task, tools, ctx):
    log = pathlib.Path(os.environ["LOG"])
    with log.open("a") as file:
        file.write(f"{ctx.part}\\n")
    ctx.spend(Usage(100, 0, 0, 10, 1, 7))
    if ctx.part == 3 and not pathlib.Path(os.environ["GO"]).exists():
        tools.call("add", {"line": "half done"})
        if os.environ.get("SUICIDE"):
            pathlib.Path(os.environ["GO"]).touch()
            os.kill(os.getpid(), 9)
        time.sleep(600)
    calls = [Call("add", {"line": f"{part[-2]}{n}"}) for part in task.parts for n in range(2)]
    for call in calls:
        tools.call(call.name, call.input)
    return Transcript(calls=tuple(calls))
"""


def test_a_killed_run_goes_on_behind_the_last_finished_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    lines_suite(tmp_path, (5,))
    write_driver(tmp_path, KILLED)
    log, go = tmp_path / "log", tmp_path / "go"
    env = environment(LOG=str(log), GO=str(go))
    arguments = [
        "run",
        "lines.jsonl",
        "--driver",
        "mine:slow",
        "--scaffold",
        "durable:linear",
        "--out",
        "out",
    ]
    command = [sys.executable, "-m", "agentbench_lab.cli", *arguments]
    with subprocess.Popen(command, cwd=tmp_path, env=env, stdout=subprocess.DEVNULL) as process:
        until = time.monotonic() + 100
        while time.monotonic() < until and not (log.exists() and log.read_text().count("\n") == 4):
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert (tmp_path / "out" / "checkpoints").is_dir() and not (tmp_path / "out" / "card.json").exists()
    go.touch()
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert log.read_text().split() == ["0", "1", "2", "3", "3", "4"]
    found = load_run(tmp_path / "out")
    assert found.product[0].verdict.solved
    assert [e.input["line"] for e in found.product[0].produced.ledger] == [
        f"{c}{n}" for c in "abcde" for n in (0, 1)
    ]
    attempts = frame(found, "attempts")
    assert attempts["end"].to_list() == ["infrastructure_error", "done"]
    # what the killed step used is lost: a lower bound, and no estimate
    assert attempts["cost_micros"].to_list() == [3 * 7, 2 * 7]
    assert attempts["usage_lost"].to_list() == [True, False]
    assert not attempts["tokens_estimated"].any()
    assert frame(found)["cost_micros"].to_list() == [5 * 7]
    assert "≥ $0.0000350 0/1" in str(tables.cost(metrics.cost(found.trials)))
    (short,) = metrics.summary(tmp_path / "out" / "trials.parquet").to_dicts()
    assert (short["cost_per_solved"], short["lower_bound"]) == (pytest.approx(5 * 7e-6), True)
    # a run that is written again keeps the mark
    again, _ = regrade_run(tmp_path / "out", out=tmp_path / "again")
    assert frame(again)["usage_lost"].to_list() == [True]
    assert frame(again, "attempts")["usage_lost"].to_list() == [True, False]
    passed_on = from_bench(to_bench(again))
    assert frame(passed_on)["usage_lost"].to_list() == [True]
    assert "≥ $0.0000350 0/1" in str(tables.cost(metrics.cost(passed_on.trials)))
    assert not (tmp_path / "out" / "checkpoints").exists()


def test_a_checkpoint_holds_of_a_long_dialogue_what_a_run_keeps(tmp_path: Path) -> None:
    """Five parts that say a megabyte each: the file, which is written whole at every step, holds their ends; a short
    dialogue stays as it is, also for who goes on behind it."""
    lines_suite(tmp_path, (5,))
    key = "sk-ant-api03-" + "a1B2" * 8
    sizes: list[int] = []
    kept: list[bytes] = []
    tries: list[int] = []

    def driver(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
        for file in (tmp_path / "out" / "checkpoints").glob("*.checkpoint"):
            sizes.append(file.stat().st_size)
            kept.append(file.read_bytes())
        if ctx.part == 4:
            tries.append(1)
            if len(tries) == 1:
                raise RuntimeError("oh")
        calls = [Call("add", {"line": f"{part[-2]}{n}"}) for part in task.parts for n in range(2)]
        for call in calls:
            tools.call(call.name, call.input)
        said = ["word " * 400]
        if ctx.part:
            said = [*said, "." * 7_990 + key + "." * 5_000, *said * 500]
        return Transcript(
            calls=tuple(calls), messages=tuple({"role": "assistant", "content": each} for each in said)
        )

    (found,) = evaluate(
        tmp_path / "lines.jsonl", driver, scaffolds=["durable:linear"], out=tmp_path / "out"
    ).product
    assert found.verdict.solved and len(tries) == 2
    assert len(sizes) > 5 and max(sizes) < 5 * DIALOGUE_LIMIT
    assert sum(sizes) < 20 * DIALOGUE_LIMIT
    assert ("word " * 400).encode() in kept[1] and b"are left out here" not in kept[1]
    assert b"are left out here" in kept[-1] and not any(key.encode() in each for each in kept)


def test_a_worker_process_that_dies_is_a_crash_like_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = lines_suite(tmp_path, (5,))
    write_driver(tmp_path, KILLED)
    for name, value in (("LOG", "log"), ("GO", "go")):
        monkeypatch.setenv(name, str(tmp_path / value))
    monkeypatch.setenv("SUICIDE", "1")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    found = evaluate(
        suite, "mine:slow", scaffolds=["durable:linear"], executor="processes", out=tmp_path / "run"
    )
    sys.modules.pop("mine", None)
    assert found.product[0].verdict.solved
    assert (tmp_path / "log").read_text().split() == ["0", "1", "2", "3", "3", "4"]
    assert frame(found, "attempts").height == 2


def test_scaffolds_run_in_processes(tmp_path: Path, suite: Suite) -> None:
    here = run(suite, writes, "linear", "fan_out_2", "durable:linear", stamp="s")
    there = run(
        suite, writes, "linear", "fan_out_2", "durable:linear", stamp="s", executor="processes", workers=2
    )
    assert here.product == there.product
    assert frame(here, "calls").equals(frame(there, "calls"))


def test_a_scaffold_that_no_worker_can_import_is_named(suite: Suite) -> None:
    def mine(agent: Any) -> Any:
        return agent

    with pytest.raises(LabError, match=r"mine' of driver .* is defined in a notebook"):
        run(suite, writes, mine, executor="processes")


def test_a_run_of_scaffolds_is_read_back_whole(tmp_path: Path, suite: Suite) -> None:
    """Going on with it writes the same rows again: workers, widths and all."""
    first = evaluate(suite, writes, scaffolds=["fan_out_2"], out=tmp_path / "run")
    more = evaluate(suite, writes, scaffolds=["fan_out_2"], out=tmp_path / "run", trials=2)
    for grain in ("attempts", "calls"):
        old = frame(first, grain).drop("wall_s", strict=False)
        assert frame(more, grain).filter(trial=1).drop("wall_s", strict=False).equals(old)
    assert frame(more)["width"].to_list() == [1, 1, 2, 2, 5, 5]


# ---- worlds that can be put back


@pytest.mark.parametrize("level", ["local", "bubblewrap"])
def test_a_work_folder_is_put_back_as_it_was(level: str) -> None:
    if (why := unavailable(Level(level))) is not None:
        pytest.skip(why)
    declared = {
        "files": {"a/b.txt": "one\n", "run.sh": "#!/bin/sh\n"},
        "tools": ["bash", "read_file", "write_file"],
    }
    world = Sandbox.of(declared, name="work", level=Level(level))
    first, second = world.fork(), world.fork()
    try:
        look = "find . -printf '%P %y %m %l\\n' | sort; cat a/b.txt c"
        first.run(
            "bash",
            {
                "command": "echo two >> a/b.txt; rm run.sh; mkdir -m 700 d; ln -s ../etc d/l; printf x > c; chmod 755 c"
            },
        )
        taken = first.snapshot()
        before = first.run("bash", {"command": look}).value
        first.run("bash", {"command": "rm -rf a c; echo more > e"})
        second.run("bash", {"command": "echo other > f"})
        second.restore(taken)
        assert second.run("bash", {"command": look}).value == before
        assert before["exit"] == 0 and "d/l l 777 ../etc" in before["stdout"]
    finally:
        first.close()
        second.close()


def test_a_folder_that_nobody_entered_is_not_packed() -> None:
    world = Sandbox.of({"files": {"a": "x"}, "tools": ["bash"]}, name="work", level=Level("local")).fork()
    assert world.snapshot() == b""
    world.restore(b"")
    world.close()


def test_durable_needs_a_world_that_can_be_put_back(suite: Suite) -> None:
    from .test_scaffolds import forgetful

    class Far:
        """A world like another that only cannot be put back."""

        def __init__(self, world: Any) -> None:
            self._world = world

        def __getattr__(self, name: str) -> Any:
            if name in ("snapshot", "restore", "_world"):
                raise AttributeError(name)
            return getattr(self._world, name)

    from agentbench_lab.worlds.statestore import StateWorld

    case = suite.cases[0]
    assert isinstance(case.world, dict)
    far: Any = Far(StateWorld.of(case.world, name="far"))
    import msgspec

    cases = [msgspec.structs.replace(case, world=None) for case in suite.cases]
    with pytest.raises(LabError, match="durable needs a world that can be put back"):
        evaluate(cases, writes, scaffolds=[durable(linear)], world=far, save_run=False)
    assert frame(evaluate(cases, writes, scaffolds=[forgetful], world=far, save_run=False)).height == 3
