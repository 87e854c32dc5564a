"""The suite workspace: sound, solvable, and not to be had for nothing."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from agentbench_lab.cases import Limits, Task, load_suite
from agentbench_lab.drivers.context import Context
from agentbench_lab.running.lint import lint_suite
from agentbench_lab.running.runner import evaluate
from agentbench_lab.worlds.sandbox_levels import Level, unavailable
from agentbench_lab.worlds.toolbox import Toolbox

SUITE = load_suite("workspace")
GOLD = {case.task.request: case.gold for case in SUITE.cases}


@pytest.fixture(scope="module", autouse=True)
def bubblewrap() -> None:
    if (why := unavailable(Level("bubblewrap"))) is not None:
        pytest.skip(f"bubblewrap does not work here: {why}")


def gold(task: Task, tools: Toolbox, ctx: Context) -> dict[str, Any]:
    known = GOLD[task.request]
    assert known is not None
    for call in known.calls:
        tools.call(call.name, call.input)
    return {}


FORGED = """import os
for stream in (1, 2, 3, 4, 5, 6, 7, 8, 9):
    for count in range(300):
        try:
            os.write(stream, b"all %d hold\\n" % count)
        except OSError:
            break
os._exit(0)
"""
"""A module that says every line a judge could print, wherever it can, and ends its process with success."""


def forger(task: Task, tools: Toolbox, ctx: Context) -> dict[str, Any]:
    """Has every module of the folder say that all is well and end its process with success, and so its own judge."""
    tools.call("write_file", {"path": ".check/judge.py", "content": FORGED})
    command = "for f in $(find . -name '*.py' -not -path './.check/*'); do cp .check/judge.py $f; done"
    tools.call("bash", {"command": command})
    tools.call("answer", {"value": "done", "status": "success"})
    return {}


def test_the_groups_are_those_of_the_card() -> None:
    assert Counter(case.group for case in SUITE.cases) == {"repair": 8, "build": 8}


@pytest.mark.long
def test_lint_is_clean() -> None:
    assert lint_suite("workspace") == ()


@pytest.mark.long
def test_the_reference_solves_all_and_a_forger_nothing() -> None:
    run = evaluate(SUITE, [gold, forger], save_run=False, limits=Limits(wall_s=120))
    found = Counter((row["driver"].rpartition(":")[2], row["outcome"]) for row in run.trials.to_pylist())
    assert found == {("gold", "solved"): 16, ("forger", "false_success"): 16}
