"""Where trials run: threads, one event loop, processes, any executor, a cluster; the product is the same bytes."""

from __future__ import annotations

import asyncio
import functools
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from agentbench_lab.cases import Limits, Task
from agentbench_lab.drivers.context import Context
from agentbench_lab.drivers.faulty import faulty
from agentbench_lab.drivers.loading import load_driver
from agentbench_lab.errors import LabError
from agentbench_lab.results.product import encode_rows
from agentbench_lab.results.run import Run, load_run
from agentbench_lab.running.runner import Interrupted, evaluate
from agentbench_lab.scaffolds import durable, fan_out
from agentbench_lab.worlds.toolbox import Toolbox

from ..doing import CASES, ROOT, environment, knows, some, write_driver, write_suite

DRIVERS = '''
"""Drivers that a worker can import."""
import asyncio, ctypes, os, pathlib, signal, subprocess, sys, threading, time
from agentbench_lab.cases import Call
from agentbench_lab.drivers.faults import InfrastructureError
from agentbench_lab.transcripts import Transcript
from tests.doing import knows

MARK = pathlib.Path(__file__).parent

def lucky(task, tools, ctx):
    time.sleep(ctx.random.random() / 500)
    drawn = ctx.random.random()
    if drawn < 0.2:
        raise ValueError("out of luck")
    if drawn < 0.3:
        return None
    if drawn < 0.5:
        tools.call("tmct_describe", {"symbol": ctx.random.choice(["Cart", "Order", "Ledger"])})
        return Transcript(result=frozenset({"b", "a"}), refused=True, answer=ctx.random.random())
    if drawn < 0.6:
        ctx.spend(__import__("agentbench_lab").transcripts.Usage(cost_micros=3))
        raise InfrastructureError("down", usage=ctx.spent) if drawn < 0.55 else OSError("x")
    return knows(task, tools, ctx)

async def lucky_later(task, tools, ctx):
    await asyncio.sleep(ctx.random.random() / 500)
    return lucky(task, tools, ctx)

def twenty(task, tools, ctx):
    time.sleep(0.02)
    return knows(task, tools, ctx) if ctx.random.random() < 0.7 else Transcript(refused=True)

def _only(ctx, task, trial=2):
    return ctx.trial == trial and task.request == "Describe Cart"

def hangs(task, tools, ctx):
    if _only(ctx, task):
        tools.call("tmct_describe", {"symbol": "Cart"})
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"])
        (MARK / "pids").write_text(f"{os.getpid()} {child.pid}")
        time.sleep(300)
    return knows(task, tools, ctx)

def hangs_in_c(task, tools, ctx):
    """Holds the interpreter, so that no thread of its process can do anything."""
    if _only(ctx, task):
        ctypes.PyDLL(None).sleep(300)
    return knows(task, tools, ctx)

def exits(task, tools, ctx):
    if _only(ctx, task):
        os._exit(5)
    return knows(task, tools, ctx)

def crashes(task, tools, ctx):
    if _only(ctx, task):
        ctypes.string_at(0)
    return knows(task, tools, ctx)

def is_killed(task, tools, ctx):
    if _only(ctx, task):
        os.kill(os.getpid(), signal.SIGKILL)
    return knows(task, tools, ctx)

def forks_and_exits(task, tools, ctx):
    if _only(ctx, task):
        if os.fork() == 0:
            time.sleep(300)
        os._exit(7)
    return knows(task, tools, ctx)

class Locked:
    def __init__(self):
        self.lock = threading.Lock()

    def __call__(self, task, tools, ctx):
        with self.lock:
            return knows(task, tools, ctx)

locked = Locked()

def prints(task, tools, ctx):
    print("x" * 100_000)
    print("y" * 100_000, file=sys.stderr)
    os.write(1, b"z" * 100_000), os.write(2, b"z" * 100_000)
    return knows(task, tools, ctx)
'''


@pytest.fixture(autouse=True)
def drivers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The module `sent`, in the working folder."""
    write_driver(tmp_path, DRIVERS, name="sent")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), str(ROOT), *sys.path])
    sys.modules.pop("sent", None)
    yield
    sys.modules.pop("sent", None)


def rows(run: Run) -> list[bytes]:
    return [encode_rows([row]) for row in run.product]


def spawned(workers: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(workers, mp_context=get_context("spawn"))


# ---- the same bytes


@pytest.mark.parametrize("driver", ["lucky", "lucky_later"])
@pytest.mark.parametrize("workers", [1, 2, 5])
def test_threads_and_the_loop_give_the_same_bytes(tmp_path: Path, driver: str, workers: int) -> None:
    suite = write_suite(tmp_path)
    arguments: dict[str, Any] = {"trials": 3, "retries": 0}
    first = evaluate(suite, f"sent:{driver}", **arguments, save_run=False)
    assert rows(evaluate(suite, f"sent:{driver}", workers=workers, **arguments, save_run=False)) == rows(
        first
    )
    with ThreadPoolExecutor(workers) as pool:
        other = evaluate(suite, f"sent:{driver}", executor=pool, workers=workers, **arguments, save_run=False)
    assert rows(other) == rows(first)
    assert len({row.verdict.outcome for row in first.product}) > 4
    assert first.card.counts.excluded > 0


@pytest.mark.parametrize("driver", ["lucky", "lucky_later"])
def test_processes_give_the_same_bytes(tmp_path: Path, driver: str) -> None:
    suite = write_suite(tmp_path)
    arguments: dict[str, Any] = {"trials": 3, "retries": 0, "save_run": False}
    first = evaluate(suite, f"sent:{driver}", **arguments)
    run = evaluate(suite, f"sent:{driver}", executor="processes", workers=2, **arguments)
    assert rows(run) == rows(first)


def everything_alike(tmp_path: Path, executor: str | Executor, *workers: int) -> None:
    """All tables but for clocks, with a ladder and without."""
    suite = write_suite(tmp_path)
    for ladder in (False, True):
        arguments: dict[str, Any] = {"trials": 2, "retries": 0, "ladder": ladder, "stamp": "s"}
        both = ["sent:lucky", "sent:lucky_later", "stub"]
        first = evaluate(suite, both, out=tmp_path / f"first-{ladder}", **arguments)
        for count in workers:
            out = tmp_path / f"run-{ladder}-{count}"
            run = evaluate(suite, both, executor=executor, workers=count, out=out, **arguments)
            products = [(each.path / "product.jsonl").read_bytes() for each in (first, run) if each.path]
            assert products[0] == products[1]
            assert (run.card.counts, run.card.envelope) == (first.card.counts, first.card.envelope)
            for grain in ("cases", "trials", "attempts", "calls", "transcripts"):
                mine, theirs = (getattr(each, grain) for each in (run, first))
                clocks = {"run", "wall_s", "working_s", "traceback"} & set(mine.column_names)
                assert mine.drop_columns(list(clocks)).equals(theirs.drop_columns(list(clocks))), grain


def test_processes_give_the_same_tables(tmp_path: Path) -> None:
    everything_alike(tmp_path, "processes", 2)


@pytest.mark.long
def test_any_number_of_processes_gives_the_same_tables(tmp_path: Path) -> None:
    everything_alike(tmp_path, "processes", 1, 2, 5)


@pytest.mark.long
def test_a_pool_of_processes_gives_the_same_tables(tmp_path: Path) -> None:
    with spawned(2) as pool:
        everything_alike(tmp_path, pool, 1, 2, 5)


@pytest.mark.long
def test_a_local_cluster_gives_the_same_tables(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    everything_alike(tmp_path, "dask", 1, 2, 5)


# ---- the event loop


def meeting(parties: int) -> Any:
    """A driver that goes on only when so many of its trials wait at once; and how many waits came together."""
    waiting: list[asyncio.Future[None]] = []
    met: list[int] = []

    async def driver(task: Task, tools: Toolbox, ctx: Context) -> Any:
        mine = asyncio.get_running_loop().create_future()
        waiting.append(mine)
        if len(waiting) == parties:
            met.append(parties)
            for other in waiting:
                other.set_result(None)
            waiting.clear()
        await mine
        return knows(task, tools, ctx)

    return driver, met


def test_async_drivers_wait_side_by_side(tmp_path: Path) -> None:
    """Trials that wait for one another, 64 at a time: with one fewer side by side none of them would ever go on."""
    driver, met = meeting(64)
    suite = write_suite(tmp_path, some(0))
    run = evaluate(suite, driver, trials=96, workers=64, limits=Limits(wall_s=30), save_run=False)
    assert run.card.counts.judged == 192
    assert {row.verdict.outcome for row in run.product} == {"correct_calls"}
    assert met == [64, 64, 64]


def test_no_more_trials_wait_side_by_side_than_were_asked_for(tmp_path: Path) -> None:
    at_once, most = 0, 0

    async def driver(task: Task, tools: Toolbox, ctx: Context) -> Any:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        for _ in range(20):
            await asyncio.sleep(0)
        at_once -= 1
        return knows(task, tools, ctx)

    evaluate(write_suite(tmp_path, some(0)), driver, trials=40, workers=8, save_run=False)
    assert most == 8


def blocking(seconds: float) -> Any:
    async def driver(task: Task, tools: Toolbox, ctx: Context) -> Any:
        await asyncio.sleep(0.01)
        if ctx.trial == 3 and task.request == "Describe Cart":
            # a task of its own, of which only the loop knows whose it is
            await asyncio.create_task(asyncio.sleep(0, time.sleep(seconds)))
        for _ in range(3):
            await asyncio.sleep(0.01)
        return knows(task, tools, ctx)

    return driver


def later_blocking(seconds: float) -> Any:
    async def blocks() -> None:
        time.sleep(seconds)

    async def driver(task: Task, tools: Toolbox, ctx: Context) -> Any:
        if ctx.trial == 3 and task.request == "Describe Cart":
            await asyncio.gather(blocks(), asyncio.sleep(0.01))
        for _ in range(3):
            await asyncio.sleep(0.01)
        return knows(task, tools, ctx)

    return driver


@pytest.mark.parametrize("make", [pytest.param(blocking, marks=pytest.mark.long), later_blocking])
def test_a_driver_that_blocks_the_loop_costs_only_its_own_trial(tmp_path: Path, make: Any) -> None:
    """Longer than all of its neighbours' limits, which began with it: they are judged by what they do."""
    suite = write_suite(tmp_path, some(0))
    limits = Limits(wall_s=0.3)
    run = evaluate(suite, make(2.5), trials=8, workers=16, limits=limits, save_run=False)
    outcomes = {(row.case_id, row.trial): row.verdict.outcome for row in run.product}
    assert outcomes.pop(("t0-cart", 3)) == "timeout"
    assert set(outcomes.values()) == {"correct_calls"}
    assert run.card.counts.judged == 16
    time.sleep(2.0)


@pytest.mark.parametrize("make", [blocking, later_blocking])
def test_a_short_block_is_not_charged_to_the_neighbours(tmp_path: Path, make: Any) -> None:
    suite = write_suite(tmp_path, some(0))
    limits = Limits(wall_s=0.2)
    run = evaluate(suite, make(0.4), trials=8, workers=16, limits=limits, save_run=False)
    outcomes = {(row.case_id, row.trial): row.verdict.outcome for row in run.product}
    outcomes.pop(("t0-cart", 3))
    assert set(outcomes.values()) == {"correct_calls"}


def test_an_interrupted_loop_ends(tmp_path: Path) -> None:
    """Drivers that are under way are ended too, where they wait: nothing goes on behind the caller's back."""
    ended: list[str] = []

    async def waits(task: Task, tools: Toolbox, ctx: Context) -> Any:
        if ctx.trial == 1:
            return knows(task, tools, ctx)
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(task.request)

    def stop(finished: int, asked: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(Interrupted):
        evaluate(
            write_suite(tmp_path, some(0)[:1]), waits, trials=3, workers=3, save_run=False, progress=stop
        )
    deadline = time.monotonic() + 5
    while len(ended) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(ended) == 2


@pytest.mark.parametrize("executor", ["threads", pytest.param("dask", marks=pytest.mark.long), "processes"])
def test_a_run_inside_a_running_loop(tmp_path: Path, executor: str) -> None:
    """As in a notebook: sync and async drivers, and the loop that was there goes on."""
    if executor == "dask":
        pytest.importorskip("distributed")
    suite = write_suite(tmp_path, some(0))

    async def cell() -> Run:
        run = evaluate(
            suite, ["sent:lucky_later", "sent:lucky"], executor=executor, workers=2, retries=0, save_run=False
        )
        await asyncio.sleep(0)
        return run

    inside = asyncio.run(cell())
    assert rows(inside) == rows(
        evaluate(suite, ["sent:lucky_later", "sent:lucky"], retries=0, save_run=False)
    )


CELL = """
import asyncio, sys
from agentbench_lab.errors import LabError
from agentbench_lab.running.runner import evaluate
from tests.doing import knows

def plain(task, tools, ctx):
    return knows(task, tools, ctx)

async def later(task, tools, ctx):
    await asyncio.sleep(0)
    return knows(task, tools, ctx)

if __name__ == "__main__":
    from concurrent.futures import ThreadPoolExecutor
    pool = ThreadPoolExecutor(2)
    for executor in ("threads", pool):
        run = evaluate("small.jsonl", [plain, later], executor=executor, workers=2, save_run=False)
        assert {row.verdict.outcome for row in run.product} == {"correct_calls"}, run.product
    try:
        evaluate("small.jsonl", sys.argv[2:] or plain, executor=sys.argv[1], workers=2, out="run")
    except LabError as error:
        print(error)
"""


@pytest.mark.parametrize("executor", ["processes", pytest.param("dask", marks=pytest.mark.long)])
def test_functions_of_a_script_run_here_and_cannot_be_sent(tmp_path: Path, executor: str) -> None:
    """One clear line that names the driver and the ways out."""
    if executor == "dask":
        pytest.importorskip("distributed")
    write_suite(tmp_path, some(0))
    (tmp_path / "cell.py").write_text(CELL, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "cell.py", executor],
        env=environment(PYTHONPATH=f"{ROOT}"),
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    (line,) = done.stdout.splitlines()
    assert line == (
        "driver '__main__:plain' is defined in a notebook, a script or a function, where a worker cannot import it: "
        "put it into a module, or run in this process (executor threads)"
    )


def local() -> tuple[Any, Any]:
    """A driver and a scaffold that only this process has."""

    def mine(task: Any, tools: Any, ctx: Any) -> Any: ...

    def around(agent: Any) -> Any:
        return agent

    return mine, around


def parts(*given: Any) -> list[str]:
    return []


MINE, AROUND = local()
HERE = {
    "crashes by lot": (faulty(MINE, 0.5), "once", "mine"),
    "a partial": (functools.partial(MINE), "once", None),
    "a partial of what can be sent": (functools.partial(parts, MINE), "once", "mine"),
    "an object": (
        type("Made", (), {"__call__": parts, "__qualname__": "local.<locals>.Made"})(),
        "once",
        None,
    ),
    "both, and a scaffold of ours": (faulty(functools.partial(MINE), 0.5), "durable:linear", "mine"),
    "a scaffold": ("stub", AROUND, "around"),
    "durable": ("stub", durable(AROUND), "around"),
    "what takes a request apart": ("stub", fan_out(2, decompose=MINE), "mine"),
}


@pytest.mark.parametrize("what", HERE)
def test_whatever_is_around_what_cannot_be_sent_it_is_named(tmp_path: Path, what: str) -> None:
    driver, scaffold, named = HERE[what]
    whose = f"'{__name__}:local.<locals>.{named}' of " if named else ""
    with pytest.raises(LabError) as caught:
        evaluate(
            write_suite(tmp_path, some(0)), driver, scaffolds=scaffold, executor="processes", save_run=False
        )
    said = f"{whose}driver {load_driver(driver).name!r} is defined in a notebook, a script or a function, where a worker "
    assert str(caught.value).startswith(said)


def test_a_driver_that_cannot_be_sent_is_named(tmp_path: Path) -> None:
    """It holds what only this process has."""
    with pytest.raises(LabError) as caught:
        evaluate(write_suite(tmp_path, some(0)), "sent:locked", executor="processes", out=tmp_path / "run")
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("driver 'sent:locked' cannot be sent to a worker: ")
    run = evaluate(write_suite(tmp_path, some(0)), "sent:locked", save_run=False)
    assert {row.verdict.outcome for row in run.product} == {"correct_calls"}


# ---- processes


def others_are_right(run: Run) -> tuple[str | None, str]:
    """The outcome and the reason of the one trial that went wrong; all the others are solved."""
    found = {(row.case_id, row.trial): (row.verdict.outcome, row.produced.why) for row in run.product}
    wrong = found.pop(("t0-cart", 2))
    assert {outcome for outcome, _ in found.values()} == {"correct_calls"}
    assert run.card.complete
    return wrong


def gone(pid: int) -> bool:
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state in "ZX":
            return True
        time.sleep(0.02)
    return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")
def test_a_process_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    """What it did until then is kept, as in a thread; nothing of it goes on."""
    suite = write_suite(tmp_path, some(0))
    began = time.monotonic()
    run = evaluate(
        suite,
        "sent:hangs",
        trials=4,
        executor="processes",
        workers=2,
        limits=Limits(wall_s=0.7),
        save_run=False,
    )
    assert time.monotonic() - began < 10
    assert others_are_right(run) == ("timeout", "out of time after 0.7 s")
    assert run.product[1].produced.ledger[0].name == "tmct_describe"
    pids = [int(word) for word in (tmp_path / "pids").read_text(encoding="utf-8").split()]
    assert [gone(pid) for pid in pids] == [True, True]


DEATHS = {
    "exits": "the worker process died with exit code 5",
    "crashes": "the worker process died with exit code -11",
    "is_killed": "the worker process died with exit code -9",
    "forks_and_exits": "the worker process died with exit code 7",
    "hangs_in_c": "out of time after 0.7 s",
}


@pytest.mark.parametrize("name", DEATHS)
def test_a_process_that_dies_takes_only_its_own_trial_along(tmp_path: Path, name: str) -> None:
    run = evaluate(
        write_suite(tmp_path, some(0)),
        f"sent:{name}",
        trials=4,
        executor="processes",
        workers=2,
        limits=Limits(wall_s=0.7),
        save_run=False,
    )
    outcome = "timeout" if name == "hangs_in_c" else "driver_error"
    assert others_are_right(run) == (outcome, DEATHS[name])


def test_what_drivers_print_in_processes_stops_nobody(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run = evaluate(
        write_suite(tmp_path, some(0)), "sent:prints", trials=3, executor="processes", save_run=False
    )
    assert {row.verdict.outcome for row in run.product} == {"correct_calls"}
    assert capfd.readouterr() == ("", "")


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")
def test_workers_end_with_a_coordinator_that_is_killed(tmp_path: Path) -> None:
    """Also one whose driver hangs, and what that has started."""
    write_suite(tmp_path, some(0)[:1])
    script = (
        "from agentbench_lab.running.runner import evaluate\n"
        "evaluate('small.jsonl', 'sent:hangs', trials=4, executor='processes', out='run')\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script], env=environment(PYTHONPATH=f"{ROOT}{os.pathsep}{tmp_path}")
    )
    deadline = time.monotonic() + 20
    while not (tmp_path / "pids").exists() or " " not in (tmp_path / "pids").read_text(encoding="utf-8"):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.kill()
    process.wait(20)
    pids = [int(word) for word in (tmp_path / "pids").read_text(encoding="utf-8").split()]
    assert [gone(pid) for pid in pids] == [True, True]


def test_a_worker_that_cannot_start_is_one_clear_line(tmp_path: Path) -> None:
    """The module is there for us, and gone when the worker looks for it."""
    suite = write_suite(tmp_path, some(0))
    import sent  # type: ignore[import-not-found]

    (tmp_path / "sent.py").unlink()
    with pytest.raises(LabError) as caught:
        evaluate(suite, sent.twenty, executor="processes", out=tmp_path / "run")
    assert "a worker process could not start" in str(caught.value)
    assert "No module named 'sent'" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_driver_that_says_much_when_it_is_imported_starts_all_the_same(tmp_path: Path) -> None:
    """More than a pipe holds, which nobody reads before the worker is ready."""
    write_driver(
        tmp_path,
        "import os, sys\n"
        "if '-c' in sys.orig_argv:\n"
        "    os.write(2, b'warning\\n' * 100_000)\n"
        "def refuses(task, tools, ctx):\n"
        "    return {'refused': True}\n",
        name="wordy",
    )
    suite = write_suite(tmp_path, some(0)[:1])
    run = evaluate(suite, "wordy:refuses", executor="processes", save_run=False)
    assert run.trials.column("stop").to_pylist() == ["refused"]


# ---- any executor


def test_a_pool_that_breaks_is_one_clear_line_and_the_run_can_go_on(tmp_path: Path) -> None:
    """It is the caller's, and nobody can mend it; what was finished stays, and other workers finish the rest."""
    suite = write_suite(tmp_path, some(0))
    with spawned(1) as pool:
        with pytest.raises(LabError, match=r"the executor failed .*BrokenProcessPool") as caught:
            evaluate(suite, "sent:exits", trials=4, executor=pool, out=tmp_path / "run")
        assert "\n" not in str(caught.value)
        with pytest.raises(LabError, match="the executor takes no more trials"):
            evaluate(suite, "sent:exits", trials=4, executor=pool, out=tmp_path / "run")
    run = evaluate(suite, "sent:exits", trials=4, executor="processes", out=tmp_path / "run")
    assert others_are_right(run)[0] == "driver_error"


def test_a_pool_that_is_shut_is_one_clear_line(tmp_path: Path) -> None:
    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    with pytest.raises(LabError, match="the executor takes no more trials: cannot schedule new futures"):
        evaluate(write_suite(tmp_path, some(0)), knows, executor=pool, save_run=False)


def test_a_hanging_driver_does_not_hold_up_a_pool(tmp_path: Path) -> None:
    def hangs(task: Task, tools: Toolbox, ctx: Context) -> Any:
        if ctx.trial == 2 and task.request == "Describe Cart":
            time.sleep(1.5)
        return knows(task, tools, ctx)

    with ThreadPoolExecutor(2) as pool:
        run = evaluate(
            write_suite(tmp_path, some(0)),
            hangs,
            trials=4,
            executor=pool,
            workers=2,
            limits=Limits(wall_s=0.3),
            save_run=False,
        )
    assert others_are_right(run) == ("timeout", "out of time after 0.3 s")
    time.sleep(1.2)


@pytest.mark.parametrize(
    ("executor", "said"),
    [
        ("thread", "no executor 'thread' (did you mean 'threads'?)"),
        ("threads:4", "no executor 'threads:4'"),
        (4, "executor must be a name or a concurrent.futures.Executor, not 4"),
    ],
)
def test_an_unknown_executor_is_named(tmp_path: Path, executor: Any, said: str) -> None:
    with pytest.raises(LabError) as caught:
        evaluate(write_suite(tmp_path, some(0)), knows, executor=executor, save_run=False)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


# ---- a cluster


@contextmanager
def cluster(folder: Path, workers: int) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A scheduler and its workers, as they would be started on several machines."""
    pytest.importorskip("distributed")
    file = folder / "scheduler.json"
    paths = f"{ROOT}{os.pathsep}{folder}"

    def start(module: str, *arguments: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", f"distributed.cli.{module}", *arguments],
            env=environment(PYTHONPATH=paths),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    scheduler = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(file)]
    running = [start("dask_scheduler", *scheduler)]
    try:
        deadline = time.monotonic() + 30
        while not file.exists() or not file.read_bytes().endswith(b"}"):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        address = json.loads(file.read_bytes())["address"]
        local = ["--local-directory", str(folder / "scratch"), "--nthreads", "1", "--no-dashboard"]
        running += [start("dask_worker", address, *local) for _ in range(workers)]
        yield address, running[1:]
    finally:
        for process in running:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(20)


@pytest.mark.long
def test_a_cluster_at_an_address_gives_the_same_tables(tmp_path: Path) -> None:
    with cluster(tmp_path, 2) as (address, _):
        everything_alike(tmp_path, f"dask:{address}", 1, 5)


@pytest.mark.long
@pytest.mark.parametrize("where", ["tcp://127.0.0.1:9", "nowhere", "tcp://no.such.host.invalid:1", "x://y"])
def test_a_wrong_address_is_one_clear_line(tmp_path: Path, where: str) -> None:
    pytest.importorskip("distributed")
    began = time.monotonic()
    with pytest.raises(LabError) as caught:
        evaluate(
            write_suite(tmp_path, some(0)), "sent:twenty", executor=f"dask:{where}", out=tmp_path / "run"
        )
    assert time.monotonic() - began < 40
    assert str(caught.value).startswith(f"executor dask:{where}: no scheduler there")
    assert "\n" not in str(caught.value)


@pytest.mark.long
def test_a_scheduler_that_goes_away_leaves_a_run_to_go_on_with(tmp_path: Path) -> None:
    suite = write_suite(tmp_path, CASES[:5])
    with cluster(tmp_path, 1) as (address, workers):
        scheduler_of = workers[0]

        def lose(finished: int, asked: int) -> None:
            if finished == 10:
                os.killpg(int(scheduler.pid), signal.SIGKILL)

        import psutil

        (scheduler,) = [
            process
            for process in psutil.Process().children()
            if "distributed.cli.dask_scheduler" in process.cmdline()
        ]
        assert scheduler.pid != scheduler_of.pid
        with pytest.raises(LabError) as caught:
            evaluate(
                suite,
                "sent:twenty",
                trials=40,
                executor=f"dask:{address}",
                out=tmp_path / "run",
                stamp="s",
                progress=lose,
            )
        assert "\n" not in str(caught.value)
    run = evaluate(suite, "sent:twenty", trials=40, workers=8, out=tmp_path / "run", stamp="s")
    whole = evaluate(suite, "sent:twenty", trials=40, workers=8, stamp="s", save_run=False)
    assert rows(run) == rows(whole)


@pytest.mark.long
@pytest.mark.parametrize("name", ["exits", "is_killed"])
def test_a_driver_that_kills_its_workers_takes_only_its_own_trial_along(tmp_path: Path, name: str) -> None:
    """Its neighbours, whose workers it took too, are judged by what they do."""
    pytest.importorskip("distributed")
    run = evaluate(
        write_suite(tmp_path, some(0)), f"sent:{name}", trials=4, executor="dask", workers=2, save_run=False
    )
    assert others_are_right(run) == ("driver_error", "every worker that ran it was lost")


LOSING = """
import sys
if __name__ == "__main__":
    from agentbench_lab.running.runner import evaluate
    evaluate("small.jsonl", "sent:twenty", stamp="s", trials=int(sys.argv[1]), executor="dask", workers=2, out="run")
"""


@pytest.mark.long
def test_a_cluster_that_loses_workers_loses_no_trial(tmp_path: Path) -> None:
    """Ten worker processes killed at random moments: 500 trials, each once, and the bytes of a quiet run."""
    pytest.importorskip("distributed")
    import psutil

    cases = CASES[:10]
    suite = write_suite(tmp_path, cases)
    whole = evaluate(suite, "sent:twenty", stamp="s", trials=50, workers=16, save_run=False)
    (tmp_path / "losing.py").write_text(LOSING, encoding="utf-8")
    process = subprocess.Popen(
        [sys.executable, "losing.py", "50"],
        env=environment(PYTHONPATH=f"{ROOT}{os.pathsep}{tmp_path}"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    lots = random.Random(3)
    journal = tmp_path / "run" / "journal.jsonl"
    goals = sorted(lots.sample(range(1, 480), 10))
    killed: set[int] = set()
    deadline = time.monotonic() + 300
    while len(killed) < 10 and process.poll() is None:
        assert time.monotonic() < deadline
        held = journal.read_bytes().count(b"\n") - 1 if journal.exists() else 0
        if held >= goals[len(killed)]:
            children = psutil.Process(process.pid).children(recursive=True)
            workers = [one for one in children if "spawn_main" in " ".join(one.cmdline())]
            fresh = [one for one in workers if one.pid not in killed]
            if fresh:
                victim = lots.choice(fresh)
                victim.kill()
                killed.add(victim.pid)
        time.sleep(0.01)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors.decode(errors="replace")
    assert len(killed) == 10
    run = load_run(tmp_path / "run")
    assert set(Counter((row.case_id, row.trial) for row in run.product).values()) == {1}
    assert run.card.counts.judged == 500
    assert rows(run) == rows(whole)


def test_a_cluster_without_its_library_is_one_clear_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(
        LabError, match=r"executor dask needs the extra: pip install 'agentbench-lab\[cluster\]'"
    ):
        evaluate(write_suite(tmp_path, some(0)), "sent:twenty", executor="dask", save_run=False)
