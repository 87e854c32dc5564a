"""Limits that workers side by side share: who meets one is decided by their order, whoever is the quicker."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from agentbench_lab.cases import Limits, Task
from agentbench_lab.drivers.context import Context
from agentbench_lab.results.run import Run
from agentbench_lab.running.runner import evaluate
from agentbench_lab.transcripts import Transcript, Usage
from agentbench_lab.worlds.toolbox import BudgetSpent, Toolbox

from .test_scaffolds import EACH, frame, lines_suite, workers

slow = 0
"""The part whose worker is the slower one."""


def pause(ctx: Context) -> float:
    return 0.05 if ctx.part == slow else 0.0


def add(task: Task, tools: Toolbox, n: int) -> None:
    tools.call("add", {"line": f"{task.parts[0][-2]}{n}"})


def tells_each_step(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
    """Tells what each step has used; one that stops says how far it has come."""
    done = 0
    try:
        for n in range(3 if ctx.role == "part" else 0):
            time.sleep(pause(ctx))
            ctx.spend(EACH)
            add(task, tools, n)
            done = n + 1
    except BudgetSpent as spent:
        return Transcript(terminated=False, stop="budget", notes=(str(spent),))
    return Transcript(text=f"{done} steps")


async def tells_each_step_waiting(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
    for n in range(3 if ctx.role == "part" else 0):
        await asyncio.sleep(pause(ctx))
        ctx.spend(EACH)
        add(task, tools, n)
    return Transcript(text="done")


def tells_at_its_end(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
    for n in range(2 if ctx.role == "part" else 0):
        time.sleep(pause(ctx))
        add(task, tools, n)
    return Transcript(text="done", usage=Usage(100, 0, 0, 10, 2, 7))


def seen(run: Run) -> list[Any]:
    """All that could tell who was the quicker: the rows, the ledger, and what each worker had and came to."""
    timeless = [[{**one, "usage": {**one["usage"], "wall_s": 0}} for one in crew] for crew in workers(run)]
    calls = frame(run, "calls").select("name", "input", "status", "worker").rows()
    trials = frame(run).select("outcome", "stop", "note", "tool_calls", "model_calls", "tokens_output").rows()
    return [trials, calls, timeless]


@pytest.mark.parametrize(
    ("driver", "limits", "stopped"),
    [
        (tells_each_step, Limits(steps=3), True),
        (tells_each_step, Limits(tokens=450), True),
        (tells_each_step, Limits(cost_micros=22), True),
        (tells_each_step, Limits(tool_calls=3), True),
        (tells_each_step_waiting, Limits(steps=3), True),
        (tells_each_step_waiting, Limits(tool_calls=5), True),
        (tells_at_its_end, Limits(steps=3), True),
        (tells_each_step, Limits(steps=100), False),
    ],
)
def test_who_meets_a_shared_limit_is_no_race(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, driver: Any, limits: Limits, stopped: bool
) -> None:
    suite = lines_suite(tmp_path, (2,), 3)
    found = []
    for at in (0, 1):
        monkeypatch.setitem(globals(), "slow", at)
        run = evaluate(suite, driver, scaffolds="fan_out_2", limits=limits, save_run=False)
        found.append(seen(run))
    assert found[0] == found[1]
    assert (found[0][0][0][1] == "budget") == stopped, "the limit is met"
