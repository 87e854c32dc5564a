"""Drivers that crash, hang, lie or meddle: each of their trials is judged, and nobody else's trial is touched."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from agentbench_lab.cases import Call, Limits, Task
from agentbench_lab.drivers.context import Context
from agentbench_lab.results.product import ProductRow, encode_rows, regrade
from agentbench_lab.results.run import Run, load_run
from agentbench_lab.running.runner import evaluate
from agentbench_lab.transcripts import Transcript, Usage
from agentbench_lab.worlds.codegraph import CodeGraph
from agentbench_lab.worlds.toolbox import BudgetSpent, Ran, Toolbox

from ..doing import CASES, knows, lab, some, tiny_world, write_driver, write_suite

LIMIT = Limits(wall_s=0.3)


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even this")


def raises(task: Task, tools: Toolbox, ctx: Context) -> Any:
    raise ValueError("no \ud800 good")


def raises_the_unprintable(task: Task, tools: Toolbox, ctx: Context) -> Any:
    raise Unprintable


def exits(task: Task, tools: Toolbox, ctx: Context) -> Any:
    sys.exit("I am done")


def interrupts(task: Task, tools: Toolbox, ctx: Context) -> Any:
    raise KeyboardInterrupt


def recurses(task: Task, tools: Toolbox, ctx: Context) -> Any:
    return recurses(task, tools, ctx)


def times_itself_out(task: Task, tools: Toolbox, ctx: Context) -> Any:
    raise TimeoutError("my own clock")


async def raises_later(task: Task, tools: Toolbox, ctx: Context) -> Any:
    await asyncio.sleep(0)
    raise OSError("no network")


async def exits_later(task: Task, tools: Toolbox, ctx: Context) -> Any:
    await asyncio.sleep(0)
    sys.exit(3)


def sleeps(task: Task, tools: Toolbox, ctx: Context) -> Any:
    time.sleep(1.5)


def loops(task: Task, tools: Toolbox, ctx: Context) -> Any:
    while True:
        pass


async def waits(task: Task, tools: Toolbox, ctx: Context) -> Any:
    await asyncio.sleep(60)


async def will_not_be_cancelled(task: Task, tools: Toolbox, ctx: Context) -> Any:
    while True:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(0.02)


def gives_nothing(task: Task, tools: Toolbox, ctx: Context) -> Any:
    return None


def gives_a_generator(task: Task, tools: Toolbox, ctx: Context) -> Any:
    yield {"refused": True}


async def gives_a_promise_of_nonsense(task: Task, tools: Toolbox, ctx: Context) -> Any:
    return {"calls": 5}


def claims_the_runners_word(task: Task, tools: Toolbox, ctx: Context) -> Any:
    return Transcript(stop="infrastructure_error")


BAD: dict[Callable[..., Any], tuple[str, str]] = {
    raises: ("driver_error", "raised ValueError: no ? good"),
    raises_the_unprintable: ("driver_error", "raised Unprintable: (an error that cannot be printed)"),
    exits: ("driver_error", "raised SystemExit: I am done"),
    interrupts: ("driver_error", "raised KeyboardInterrupt"),
    recurses: ("driver_error", "raised RecursionError"),
    times_itself_out: ("driver_error", "raised TimeoutError: my own clock"),
    raises_later: ("driver_error", "raised OSError: no network"),
    exits_later: ("driver_error", "raised SystemExit: 3"),
    sleeps: ("timeout", "out of time after 0.3 s"),
    loops: ("timeout", "out of time after 0.3 s"),
    waits: ("timeout", "out of time after 0.3 s"),
    will_not_be_cancelled: ("timeout", "out of time after 0.3 s"),
    gives_nothing: ("driver_error", "gave back nothing"),
    gives_a_generator: ("driver_error", "gave back a generator"),
    gives_a_promise_of_nonsense: ("driver_error", "calls is an int, not a list"),
    claims_the_runners_word: ("driver_error", "stop 'infrastructure_error' is not a driver's to give"),
}


def rows_of(run: Run, driver: Callable[..., Any]) -> list[ProductRow]:
    return [row for row in run.product if row.arm.driver.endswith(f":{driver.__qualname__}")]


@pytest.mark.parametrize("workers", [1, 3])
def test_each_bad_driver_is_judged_and_nobody_else_is_harmed(tmp_path: Path, workers: int) -> None:
    """All of them in one run with a good one: every trial is there, and the good one's rows are what they are alone."""
    suite = write_suite(tmp_path, [*some(0)[:1], *some(9)[:1]])
    alone = evaluate(suite, knows, save_run=False)
    run = evaluate(suite, [*BAD, knows], limits=LIMIT, workers=workers, out=tmp_path / "run")
    counts = run.card.counts
    assert (counts.asked, counts.judged) == (len(BAD) * 2 + 2, len(BAD) * 2 + 2)
    found = {
        driver: {(row.verdict.outcome, row.produced.stop, row.produced.why) for row in rows_of(run, driver)}
        for driver in BAD
    }
    for driver, (outcome, why) in BAD.items():
        assert {(one[0], one[1]) for one in found[driver]} == {(outcome, outcome)}, driver
        assert all(one[2].startswith(why) for one in found[driver]), found[driver]
    assert encode_rows(rows_of(run, knows)) == encode_rows(alone.product)
    assert load_run(tmp_path / "run").trials.equals(run.trials)


def test_where_a_driver_crashed_is_kept(tmp_path: Path) -> None:
    """The traceback stands in the transcripts, never in the product, whose bytes must not depend on paths."""
    run = evaluate(write_suite(tmp_path, some(0)), raises, save_run=False)
    kept = run.transcripts.column("traceback").to_pylist()
    assert all("test_bad_drivers.py" in text and "no ? good" in text for text in kept)
    assert all(b"test_bad_drivers.py" not in encode_rows([row]) for row in run.product)


def meddles(task: Task, tools: Toolbox, ctx: Any) -> Any:
    """Changes everything that it can reach, then does what is right, and changes that too."""

    def each(*changes: Callable[[], Any]) -> None:
        for change in changes:
            with contextlib.suppress(Exception):
                change()

    each(
        lambda: setattr(task, "request", "changed"),
        lambda: setattr(task, "tools", ()),
        lambda: task.tools.append("changed"),  # type: ignore[attr-defined]
        lambda: ctx.trace[0].input.update(changed=1),
        lambda: setattr(task.trace[0], "name", "changed"),
        lambda: task.goals[0].plan.append("changed"),  # type: ignore[attr-defined]
        lambda: ctx.config.update(changed=1),
        lambda: tools.registry.by_name.clear(),
        lambda: tools.registry.excluded.clear(),  # type: ignore[attr-defined]
        lambda: setattr(tools, "names", ()),
    )
    for name in ("tmct_describe", "tmct_search", "tmct_related"):
        each(lambda name=name: ctx.capability_by_name(name).parameters[0].schema.clear())  # type: ignore[misc]
    for tool in tools.tools:
        for schema in (
            *tool.input_schema["properties"].values(),
            tool.input_schema["properties"],
            tool.input_schema,
        ):
            schema.clear()
    said = knows(task, tools, ctx)
    for row in tools.ledger:
        each(lambda row=row: row.input.clear(), lambda row=row: row.value.clear())  # type: ignore[misc]
    arguments = {"symbol": "Cart"}
    if "tmct_describe" in task.tools:
        tools.call("tmct_describe", arguments).value.append("changed")
    arguments["symbol"] = "changed"
    return said


def test_a_driver_that_meddles_changes_nothing(tmp_path: Path) -> None:
    """Neither its own verdicts and rows (bar one probe), nor what the driver after it is given."""
    suite = write_suite(tmp_path)
    clean = evaluate(suite, knows, save_run=False)
    shown: list[Any] = []

    def looks(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
        shown.append((task.request, task.tools, [call.input for call in task.trace], tools.tools, ctx.config))
        return knows(task, tools, ctx)

    evaluate(suite, looks, save_run=False)
    before, shown = shown, []
    run = evaluate(suite, [meddles, looks], save_run=False)
    assert shown == before
    assert [row.verdict for row in rows_of(run, meddles)] == [row.verdict for row in clean.product]
    for mine, theirs in zip(rows_of(run, meddles), clean.product, strict=True):
        assert (mine.request, mine.tools, mine.trace, mine.goals) == (
            theirs.request,
            theirs.tools,
            theirs.trace,
            theirs.goals,
        )
        assert mine.produced.calls == theirs.produced.calls
        assert mine.produced.ledger[: len(theirs.produced.ledger)] == theirs.produced.ledger
    assert {row.verdict.outcome for row in rows_of(run, looks)} == {
        row.verdict.outcome for row in clean.product
    }


def test_what_a_driver_does_after_its_trial_does_not_count(tmp_path: Path) -> None:
    """A thread left behind finds its tools shut, and its own dictionaries are no longer anybody else's."""
    ended: list[type[BaseException]] = []
    threads: list[threading.Thread] = []

    def lingers(task: Task, tools: Toolbox, ctx: Context) -> Any:
        mine: dict[str, Any] = {"calls": [{"name": "tmct_describe", "input": {"symbol": "Cart"}}]}
        tools.call("tmct_describe", {"symbol": "Cart"})

        def later() -> None:
            try:
                while True:
                    mine["calls"][0]["input"]["symbol"] = "changed"
                    tools.call("tmct_describe", {"symbol": "Order"})
                    time.sleep(0.001)
            except BudgetSpent as over:
                ended.append(type(over))

        threads.append(threading.Thread(target=later))
        result = {"calls": [{"name": "tmct_describe", "input": {"symbol": "Cart"}}]}
        mine = result
        threads[-1].start()
        return result

    run = evaluate(write_suite(tmp_path, some(0)[:1]), lingers, trials=5, save_run=False)
    for thread in threads:
        thread.join(10)
    assert ended == [BudgetSpent] * 5
    for row in run.product:
        assert row.verdict.outcome in ("correct_calls", "false_success", "wrong_calls")
        assert regrade(row).outcome == row.verdict.outcome


def test_calls_after_the_limit_do_not_reach_the_ledger(tmp_path: Path) -> None:
    """A trial that is left behind is judged on what it did in time."""

    def slow(task: Task, tools: Toolbox, ctx: Context) -> Any:
        tools.call("tmct_describe", {"symbol": "Cart"})
        time.sleep(1.2)
        tools.call("tmct_describe", {"symbol": "Order"})

    (row,) = evaluate(
        write_suite(tmp_path, some(0)[:1]), slow, limits=Limits(wall_s=0.1), save_run=False
    ).product
    time.sleep(1.2)
    assert [(entry.name, entry.input) for entry in row.produced.ledger] == [
        ("tmct_describe", {"symbol": "Cart"})
    ]
    assert row.verdict.outcome == "timeout"


@pytest.mark.parametrize("swallow", [False, True])
def test_the_limit_of_tool_calls_ends_a_trial(tmp_path: Path, swallow: bool) -> None:
    """Whether the driver lets the error out or not; the call that was too many is not in the ledger."""

    def eager(task: Task, tools: Toolbox, ctx: Context) -> Any:
        try:
            for _ in range(5):
                tools.call("tmct_describe", {"symbol": "Cart"})
        except BudgetSpent:
            if not swallow:
                raise
        return {"calls": [{"name": "tmct_describe", "input": {"symbol": "Cart"}}]}

    suite = write_suite(tmp_path, some(0)[:1])
    (row,) = evaluate(suite, eager, limits=Limits(tool_calls=3), save_run=False).product
    assert (row.verdict.outcome, row.produced.stop, len(row.produced.ledger)) == ("budget", "budget", 3)
    (row,) = evaluate(suite, eager, limits=Limits(tool_calls=5), save_run=False).product
    assert row.verdict.outcome == "correct_calls"


def test_a_cases_own_limits_come_first(tmp_path: Path) -> None:
    """And hold for that case only."""

    def probes(task: Task, tools: Toolbox, ctx: Context) -> Any:
        tools.call("tmct_describe", {"symbol": "Order"})
        return knows(task, tools, ctx)

    cases = some(0)
    cases[0]["limits"] = {"tool_calls": 1}
    run = evaluate(
        write_suite(tmp_path, cases), probes, limits=Limits(wall_s=5, tool_calls=9), save_run=False
    )
    assert [row.verdict.outcome for row in run.product] == ["budget", "correct_calls"]


class Stuck(CodeGraph):
    """A world in which a call takes its time."""

    def run(self, name: str, input: Mapping[str, Any]) -> Ran:
        time.sleep(2.5)
        return super().run(name, input)


def test_a_call_that_hangs_inside_the_world_is_left_behind_too(tmp_path: Path) -> None:
    """The end of the trial waits for a call under way, but not for ever."""
    cases = some(0)[:1]
    del cases[0]["world"]
    suite = write_suite(tmp_path, cases)
    began = time.monotonic()
    run = evaluate(suite, knows, world=Stuck(tiny_world().graph), limits=Limits(wall_s=0.1), save_run=False)
    assert time.monotonic() - began < 2.4
    assert [row.verdict.outcome for row in run.product] == ["timeout"]
    time.sleep(max(0.0, began + 2.6 - time.monotonic()))


ODD_CALLS: list[tuple[Any, Any]] = [
    (["a"], {}),
    (None, None),
    ("tmct_describe", "Cart"),
    ("tmct_describe", {"symbol": {1, 2}}),
    ("tmct_describe", {"symbol": "\ud800"}),
    ("tmct_\ud800", {}),
    ("tmct_describe", {"symbol": float("nan")}),
    ("tmct_describe", {"symbol": 2**80}),
    ("tmct_describe", {3: "x"}),
    ("refuse", {"reason": 5}),
    ("answer", {"value": {1}, "status": ["x"]}),
    ("goal", {"ambiguous": 5}),
    ("goal", {}),
]


@pytest.mark.parametrize("name_input", ODD_CALLS, ids=lambda pair: ascii(pair)[:40])
def test_odd_calls_of_tools_are_judged_too(tmp_path: Path, name_input: tuple[Any, Any]) -> None:
    """Whatever is given to a tool comes back as an observation, and the run can be saved and judged again."""
    seen = []

    def odd(task: Task, tools: Toolbox, ctx: Context) -> Any:
        seen.append(tools.call(*name_input))
        return Transcript(refused=True)

    run = evaluate(write_suite(tmp_path, some(0)[:1]), odd, out=tmp_path / "run")
    assert not seen[0].ok
    (row,) = load_run(tmp_path / "run").product
    assert row.verdict.outcome in ("over_refusal", "hallucinated_call")
    assert regrade(row).outcome == row.verdict.outcome
    assert run.card.counts.judged == 1


def test_odd_claims_are_judged_too(tmp_path: Path) -> None:
    """Names and arguments no world knows: hallucinated, and kept as they were claimed."""

    def claims(task: Task, tools: Toolbox, ctx: Context) -> Any:
        return Transcript(calls=(Call("", {}), Call("rm -rf", {"é": ["\u2028", None, 2**63]})))

    run = evaluate(write_suite(tmp_path, some(0)[:1]), claims, out=tmp_path / "run")
    (row,) = load_run(tmp_path / "run").product
    assert (row.verdict.outcome, row.produced.calls) == ("hallucinated_call", run.product[0].produced.calls)


HANGING = """
import asyncio, threading, time

def sleeps(task, tools, ctx):
    time.sleep(3600)

def loops(task, tools, ctx):
    while True:
        pass

async def waits(task, tools, ctx):
    await asyncio.sleep(3600)

async def waits_in_a_thread(task, tools, ctx):
    await asyncio.to_thread(time.sleep, 3600)

def leaves_a_thread(task, tools, ctx):
    threading.Thread(target=time.sleep, args=(3600,)).start()
    return {"refused": True}
"""


@pytest.mark.parametrize("name", ["sleeps", "loops", "waits", "waits_in_a_thread", "leaves_a_thread"])
def test_a_driver_that_hangs_does_not_keep_the_process(tmp_path: Path, name: str) -> None:
    """The command ends soon after the last limit, with a complete run: 0."""
    suite = write_suite(tmp_path, some(0))
    write_driver(tmp_path, HANGING)
    began = time.monotonic()
    done = lab(
        "run", str(suite), "--driver", f"mine:{name}", "--timeout", "0.5", "--out", "run", cwd=tmp_path
    )
    assert time.monotonic() - began < 20
    assert (done.returncode, done.stderr) == (0, "")
    run = load_run(tmp_path / "run")
    expected = "over_refusal" if name == "leaves_a_thread" else "timeout"
    assert [row.verdict.outcome for row in run.product] == [expected, expected]


def test_many_endless_loops_do_not_starve_the_others(tmp_path: Path) -> None:
    """Each is ended when its time is up; were they left running, every later trial would wait for all of them."""
    suite = write_suite(tmp_path, CASES[:1])
    run = evaluate(suite, [loops, knows], trials=12, workers=6, limits=Limits(wall_s=0.4), save_run=False)
    assert {row.verdict.outcome for row in rows_of(run, loops)} == {"timeout"}
    assert {row.verdict.outcome for row in rows_of(run, knows)} == {"correct_calls"}
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline and any(
        t.name == "agentbench-lab trial" for t in threading.enumerate()
    ):
        time.sleep(0.05)
    assert not [t for t in threading.enumerate() if t.name == "agentbench-lab trial"]


@pytest.mark.parametrize("scaffold", ["once", "linear", "durable:linear"])
@pytest.mark.parametrize(
    "figures",
    [
        {"cost_micros": 3100.0}, {"cost_micros": -100}, {"output": -5}, {"fresh_input": 1.5},
        {"fresh_input": float("nan")}, {"model_calls": True}, {"cost_micros": 10**30}, {"output": 2**62},
        {"output": "3"}, {"wall_s": float("inf")},
    ],
    ids=str,
)  # fmt: skip
def test_nonsense_that_is_spent_is_the_drivers_and_costs_no_run(
    tmp_path: Path, figures: dict[str, Any], scaffold: str
) -> None:
    """The trial is judged, the arm beside it too, and the run can be read again."""

    def spends(task: Task, tools: Toolbox, ctx: Context) -> Any:
        ctx.spend(Usage(fresh_input=1, output=1, cost_micros=5))
        ctx.spend(Usage(**figures))
        return knows(task, tools, ctx)

    suite = write_suite(tmp_path, some(0)[:1])
    run = evaluate(suite, [spends, knows], scaffolds=scaffold, out=tmp_path / "out")
    bad, good = load_run(tmp_path / "out").trials.to_pylist()
    assert (bad["outcome"], good["solved"]) == ("driver_error", True)
    (field,) = figures
    assert field in run.product[0].produced.why
    assert bad["cost_micros"] is None
