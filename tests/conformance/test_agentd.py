"""agentd's own suites: they load, and they grade as its reference scorecards say.

The agent is a program of its own, which speaks MCP to our bridge and knows no more than a task's instruction.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agentbench_lab.benchmarks.agentd import load_cases, naive_spots, read_tasks
from agentbench_lab.cases import Suite, Task
from agentbench_lab.results.product import regrade
from agentbench_lab.results.run import Run
from agentbench_lab.running.runner import evaluate
from agentbench_lab.transcripts import Transcript
from agentbench_lab.worlds.mcp_server import HttpBridge
from agentbench_lab.worlds.sandbox_levels import Level, unavailable

from ..agents.played import Job, agent, driver

SUITES = {
    "smoke": 2, "bfcl_smoke": 1, "tau2_smoke": 1, "tau2_convo_smoke": 1, "swe_smoke": 1, "ablation_smoke": 1,
    "code_tasks": 5, "tau2_retail": 5,
}  # fmt: skip
FIXED = {
    "mathutils.py": "def add(a, b):\n    return a + b\n",
    "strings.py": "def reverse_words(s):\n    return ' '.join(reversed(s.split()))\n",
    "fib.py": "def fib(n):\n    a, b = 0, 1\n    for _ in range(n):\n        a, b = b, a + b\n    return a\n",
    "stack.py": (
        "class Stack:\n"
        "    def __init__(self):\n        self._items = []\n"
        "    def push(self, x):\n        self._items.append(x)\n"
        "    def pop(self):\n        return self._items.pop()\n"
        "    def peek(self):\n        return self._items[-1]\n"
        "    def is_empty(self):\n        return not self._items\n"
    ),
    "parse.py": "def parse_int(s):\n    return int(s) if s and s.strip() else 0\n",
}
"""The modules of the code tasks, put right."""


@pytest.fixture(scope="module")
def agentd(peers: Path) -> Path:
    return peers / "agentd"


def level() -> str:
    """Where bubblewrap does not work, local will do: what the agent runs is ours."""
    return "bubblewrap" if unavailable(Level("bubblewrap")) is None else "local"


@pytest.fixture(scope="module")
def played() -> Iterator[Any]:
    """`played(suite, job_of, trials)`: the run of the agent on a suite, and its replies."""
    with HttpBridge() as bridge, agent() as play:

        def run(suite: Suite, job_of: Callable[[Task], Job], trials: int = 1) -> tuple[Run, list[Any]]:
            replies: list[Any] = []
            made = driver(bridge, play, job_of, replies)
            return evaluate(suite, made, trials=trials, sandbox=level(), save_run=False), replies

        yield run


def as_scripted(file: Path) -> Callable[[Task], Job]:
    """What the built-in model that a task names does, told from the task's instruction."""
    scripts = {line.task.instruction: line.task.mock_llm for line in read_tasks(file)}
    return lambda task: {"script": scripts[task.request]}


def idle(task: Task, tools: Any, ctx: Any) -> Transcript:
    """Says and does nothing."""
    return Transcript()


def told(run: Run) -> dict[str, tuple[bool, bool, float]]:
    """For each task whether its first trial passed, whether all did, and how many calls a trial made."""
    found: dict[str, list[tuple[bool, int]]] = {}
    for row in run.trials.to_pylist():
        found.setdefault(row["case_id"], []).append((row["solved"], row["tool_calls"]))
    return {
        name: (trials[0][0], all(passed for passed, _ in trials), sum(n for _, n in trials) / len(trials))
        for name, trials in found.items()
    }


@pytest.mark.parametrize("name", SUITES)
def test_it_loads_unchanged(agentd: Path, name: str) -> None:
    file = agentd / f"{name}.jsonl"
    lines = read_tasks(file)
    assert len(lines) == SUITES[name]
    assert naive_spots(lines, name) == []
    text = file.read_text(encoding="utf-8").split("\n")
    assert [json.loads(text[line.number - 1]) for line in lines] == [line.raw for line in lines]


@pytest.mark.parametrize("name", ["smoke", "bfcl_smoke", "tau2_smoke", "swe_smoke"])
def test_it_grades_as_the_scorecard_says(agentd: Path, played: Any, name: str) -> None:
    card = json.loads((agentd / "reference" / f"scorecard.{name}.json").read_text(encoding="utf-8"))
    file = agentd / f"{name}.jsonl"
    run, _ = played(load_cases(file), as_scripted(file), card["stamp"]["repeats_k"])
    assert told(run) == {
        task["id"]: (task["pass_at_1"], task["pass_hat_k"], task["mean_tool_calls"]) for task in card["tasks"]
    }
    tokens = {
        row["case_id"]: row["tokens_fresh_input"] + row["tokens_output"] for row in run.trials.to_pylist()
    }
    assert tokens == {task["id"]: task["mean_tokens"] for task in card["tasks"]}
    assert run.card.options["mode"] == "agentd"
    assert all(regrade(row).checks == row.verdict.checks for row in run.product)
    nothing = evaluate(load_cases(file), idle, sandbox=level(), save_run=False)
    assert not any(row.verdict.solved for row in nothing.product)


def test_the_ablation_task_grades_as_its_file_says(agentd: Path, played: Any) -> None:
    """Its one configuration that is no workflow."""
    reference = json.loads((agentd / "reference" / "ablation.json").read_text(encoding="utf-8"))
    file = agentd / "ablation_smoke.jsonl"
    run, _ = played(load_cases(file), as_scripted(file), reference["stamp"]["repeats_k"])
    (task,) = reference["per_task"]["once"]
    whole = reference["configs"]["once"]["pass_hat_k"] == 1.0
    assert told(run) == {task["id"]: (task["pass_at_1"], whole, 1.0)}


CHECK = ["bash", {"command": "python3 check.py"}]
EDITS = ["bash", {"command": "echo 'print(\"ok\")' > check.py"}]


def test_code_tasks_are_solved_by_who_mends_the_module(agentd: Path, played: Any) -> None:
    suite = load_cases(agentd / "code_tasks.jsonl")
    job = {"mend": FIXED, "calls": [CHECK], "answer": "done"}
    run, replies = played(suite, lambda task: job)
    assert [row.verdict.solved for row in run.product] == [True] * 5
    assert [reply["seen"][-1] for reply in replies] == [[False, "ok"]] * 5
    assert {row["expect"] for row in run.trials.to_pylist()} == {"command"}
    assert all(regrade(row).checks == row.verdict.checks for row in run.product)


def test_code_tasks_fail_when_nothing_is_done_and_when_the_check_is_edited(agentd: Path, played: Any) -> None:
    """The one who edits the check sees it pass in the folder; it is judged by the check that the task has."""
    suite = load_cases(agentd / "code_tasks.jsonl")
    jobs = {"nothing": {"calls": []}, "edited": {"calls": [EDITS, CHECK], "answer": "done"}}
    for what, job in jobs.items():
        run, replies = played(suite, lambda task, job=job: job)
        assert [row.verdict.solved for row in run.product] == [False] * 5
        assert {name for reply in replies for name in reply["shown"]} >= {"bash", "read_file", "write_file"}
        details = [check.detail for row in run.product for check in row.verdict.checks if check.gates]
        assert all(detail.startswith("python3 check.py: exit 1; expected exit 0") for detail in details)
        if what == "edited":
            assert [reply["seen"][-1] for reply in replies] == [[False, "ok"]] * 5
