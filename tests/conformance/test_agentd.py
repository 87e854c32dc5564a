"""agentd's own suites: they load, and those whose worlds are here grade as its reference scorecards say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentbench_lab.benchmarks.agentd import load_cases, naive_spots, read_tasks
from agentbench_lab.cases import Task
from agentbench_lab.errors import ProblemsError
from agentbench_lab.results.run import Run
from agentbench_lab.running.runner import evaluate
from agentbench_lab.transcripts import Transcript, Usage

SUITES = {
    "smoke": 2, "bfcl_smoke": 1, "tau2_smoke": 1, "tau2_convo_smoke": 1, "swe_smoke": 1, "ablation_smoke": 1,
    "code_tasks": 5, "tau2_retail": 5,
}  # fmt: skip


@pytest.fixture(scope="module")
def agentd(peers: Path) -> Path:
    return peers / "agentd"


def stand_in(task: Task, tools: Any, ctx: Any) -> Transcript:
    """The built-in model's scripts: call the one tool that is there, then say so. Eleven tokens go in each turn, seven
    come out with a call and five with the last words."""
    if "resource.read" in task.tools:
        tools.call("resource.read", {"uri": "file:///in.json"})
        answer = "read complete"
    elif "bench_echo" in task.tools:
        tools.call("bench_echo", {"query": "ping"})
        answer = "bench tool called"
    else:
        answer = "mock-llm done"
    turns = 1 + bool(task.tools)
    usage = Usage(fresh_input=11 * turns, output=5 + 7 * bool(task.tools), model_calls=turns)
    return Transcript(answer=answer, usage=usage)


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


@pytest.mark.parametrize("name", ["smoke", "bfcl_smoke", "tau2_smoke"])
def test_it_grades_as_the_scorecard_says(agentd: Path, name: str) -> None:
    card = json.loads((agentd / "reference" / f"scorecard.{name}.json").read_text(encoding="utf-8"))
    run = evaluate(load_cases(agentd / f"{name}.jsonl"), stand_in, trials=3, save_run=False)
    assert told(run) == {
        task["id"]: (task["pass_at_1"], task["pass_hat_k"], task["mean_tool_calls"]) for task in card["tasks"]
    }
    tokens = {
        row["case_id"]: row["tokens_fresh_input"] + row["tokens_output"] for row in run.trials.to_pylist()
    }
    assert tokens == {task["id"]: task["mean_tokens"] for task in card["tasks"]}
    assert run.card.options["mode"] == "agentd"
    nothing = evaluate(load_cases(agentd / f"{name}.jsonl"), idle, save_run=False)
    assert not any(row.verdict.solved for row in nothing.product)


def test_the_ablation_task_grades_as_its_file_says(agentd: Path) -> None:
    """Its one configuration that is no workflow."""
    file = json.loads((agentd / "reference" / "ablation.json").read_text(encoding="utf-8"))
    run = evaluate(load_cases(agentd / "ablation_smoke.jsonl"), stand_in, trials=2, save_run=False)
    (task,) = file["per_task"]["once"]
    assert told(run) == {task["id"]: (task["pass_at_1"], file["configs"]["once"]["pass_hat_k"] == 1.0, 1.0)}


@pytest.mark.parametrize(("name", "said"), [("swe_smoke", "grade.files"), ("code_tasks", "grade.command")])
def test_a_work_folder_is_refused_by_name(agentd: Path, name: str, said: str) -> None:
    with pytest.raises(ProblemsError) as raised:
        load_cases(agentd / f"{name}.jsonl")
    assert len(raised.value.problems) == SUITES[name]
    assert f"{said} needs a work folder" in str(raised.value)
