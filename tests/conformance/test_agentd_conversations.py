"""agentd's conversation suites: agent and simulated user take turns, and grade and count as the reference scorecard says."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from agentbench_lab.benchmarks.agentd import load_cases
from agentbench_lab.cases import Task
from agentbench_lab.errors import LabError, ProblemsError
from agentbench_lab.running.runner import evaluate
from agentbench_lab.transcripts import Transcript, Usage


@pytest.fixture(scope="module")
def agentd(peers: Path) -> Path:
    return peers / "agentd"


def stand_in(task: Task, tools: Any, ctx: Any) -> Transcript:
    """The built-in model's script for one turn: call the one tool that is there, then say so. Eleven tokens go in at each
    of its two steps, seven come out with the call and five with the last words."""
    tools.call("bench_echo", {"query": "ping"})
    return Transcript(answer="bench tool called", usage=Usage(fresh_input=22, output=12, model_calls=2))


def idle(task: Task, tools: Any, ctx: Any) -> Transcript:
    """Says and does nothing."""
    return Transcript()


def final(task: Task, tools: Any, ctx: Any) -> Transcript:
    """The built-in model that plays the user: it says the same each time."""
    return Transcript(text="mock-llm done", usage=Usage(11, 0, 0, 5, 1))


def test_the_conversation_grades_and_counts_as_the_scorecard_says(agentd: Path) -> None:
    """The agent's steps and calls are its own; the tokens are of both sides together."""
    card = json.loads((agentd / "reference" / "scorecard.tau2_convo_smoke.json").read_text(encoding="utf-8"))
    (task,) = card["tasks"]
    suite = load_cases(agentd / "tau2_convo_smoke.jsonl", users=True)
    run = evaluate(suite, stand_in, user=final, trials=3, save_run=False)
    assert (task["pass_at_1"], task["pass_hat_k"], len(run.product)) == (True, True, 3)
    assert all(row.verdict.solved for row in run.product)
    for row in run.trials.to_pylist():
        assert (row["case_id"], row["tool_calls"]) == (task["id"], task["mean_tool_calls"])
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
