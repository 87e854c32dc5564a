"""agentd's own suites: they load, and those whose worlds are here grade as its reference scorecards say."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from agentbench_lab.benchmarks.agentd import load_cases, naive_spots, read_tasks
from agentbench_lab.cases import Task
from agentbench_lab.errors import LabError, ProblemsError
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


def final(task: Task, tools: Any, ctx: Any) -> Transcript:
    """The built-in model that plays the user: it says the same each time."""
    return Transcript(text="mock-llm done", usage=Usage(11, 0, 0, 5, 1))


def test_the_conversation_grades_and_counts_as_the_scorecard_says(agentd: Path) -> None:
    """The agent's steps and calls are its own; the tokens are of both sides together."""
    card = json.loads((agentd / "reference" / "scorecard.tau2_convo_smoke.json").read_text(encoding="utf-8"))
    (task,) = card["tasks"]
    suite = load_cases(agentd / "tau2_convo_smoke.jsonl", users=True)
    run = evaluate(suite, stand_in, user=final, trials=3, save_run=False)
    assert told(run) == {task["id"]: (task["pass_at_1"], task["pass_hat_k"], task["mean_tool_calls"])}
    for row in run.trials.to_pylist():
        talk = json.loads(row["extra"])
        assert (talk["turns"], talk["ended_by"]) == (2, "max_turns")
        assert row["model_calls"] == task["mean_steps"]
        agents = row["tokens_fresh_input"] + row["tokens_output"]
        users = talk["user"]["usage"]["fresh_input"] + talk["user"]["usage"]["output"]
        assert (agents, users, agents + users) == (68, 16, task["mean_tokens"])
    assert [[check.name for check in row.verdict.checks if check.gates] for row in run.product] == [
        ["agentd.state"]
    ] * 3


def clerk(task: Task, tools: Any, ctx: Any) -> Transcript:
    """Asks back once, then does what the policy of the retail tasks allows, and refuses the rest in words."""
    if not task.history:
        return Transcript(text="Let me check. Which order is it about?")
    wish = " ".join([*(said.text for said in task.history), task.request])
    if "A1" in wish and "cancel" in wish:
        tools.call("cancel_order", {"order_id": "A1"})
    elif "A1" in wish:
        tools.call("update_address", {"order_id": "A1", "address": "42 New Street"})
    elif "refund" in wish:
        tools.call("refund_order", {"order_id": "A2"})
    else:
        return Transcript(text="I am afraid that is not possible any more.")
    return Transcript(text="That is done.")


def customer(task: Task, tools: Any, ctx: Any) -> Transcript:
    """Stands in for the model that plays the user: reads its scenario, and stops when it has heard enough."""
    order = re.search(r"order (A\d)", task.policy)
    assert order is not None
    asked = "?" in task.request
    return Transcript(text=f"It is {order[1]}." if asked else "Thank you. ###STOP###", usage=Usage.zero())


def test_the_retail_conversations_run_to_their_end(agentd: Path) -> None:
    with pytest.raises(ProblemsError, match="has a simulated user"):
        load_cases(agentd / "tau2_retail.jsonl")
    retail = load_cases(agentd / "tau2_retail.jsonl", users=True)
    assert {case.max_turns for case in retail.cases} == {4}
    with pytest.raises(LabError, match="cancel-allowed: its user has a scenario and no script"):
        evaluate(retail, clerk, save_run=False)
    run = evaluate(retail, clerk, user=customer, save_run=False)
    assert {row.case_id: row.verdict.solved for row in run.product} == dict.fromkeys(
        (case.id for case in retail.cases), True
    )
    talks = [json.loads(row["extra"]) for row in run.trials.to_pylist()]
    assert {(talk["turns"], talk["ended_by"]) for talk in talks} == {(2, "user_stop")}
    passed = {
        row.case_id: row.verdict.solved
        for row in evaluate(retail, idle, user=customer, save_run=False).product
    }
    assert passed == {
        "cancel-allowed": False,
        "cancel-refused": True,
        "refund-allowed": False,
        "address-allowed": False,
        "address-refused": True,
    }
