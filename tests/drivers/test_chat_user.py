"""Chat models on both sides of a conversation, over real HTTP: what each of them is told, and what each of them cost."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentbench_lab.cases import Task, load_suite, select
from agentbench_lab.drivers.context import Context
from agentbench_lab.drivers.faults import Misconfigured
from agentbench_lab.results.run import Run
from agentbench_lab.running.runner import evaluate
from agentbench_lab.transcripts import Transcript
from agentbench_lab.worlds.toolbox import Toolbox

from ..agents.openai_server import Answer, Server, calls, fails, says, serving

CASE = select(load_suite("support").cases, only="cancel-shipped")


def answers(number: int, body: dict[str, Any]) -> Answer:
    """The agent looks at the order, says no, and refuses once the customer insists; the customer insists once."""
    heard = body["messages"][-1]
    if body["model"] == "clerk":
        if heard["role"] == "tool":
            return says("It has left already, I cannot stop it.", model="clerk")
        if "insist" in heard["content"]:
            return calls(("refuse", {"reason": "shipped"}))
        return calls(("get_order", {"order_id": "A-2198"}))
    return says("I insist!", usage={"prompt_tokens": 40, "completion_tokens": 4}, model="customer")


def talk(script: Any, user: str = "", agent: str = "") -> tuple[Run, Server]:
    with serving(script) as server:
        run = evaluate(
            CASE, f"chat:clerk@{server.url}{agent}", user=f"chat:customer@{server.url}{user}",
            save_run=False, retries=0,
        )  # fmt: skip
        return run, server


@pytest.mark.parametrize("way", ["", "?calls=schema"])
def test_a_model_plays_the_user(way: str) -> None:
    run, server = talk(answers, user=way)
    (row,) = run.trials.to_pylist()
    assert (row["outcome"], row["model_calls"], row["tool_calls"]) == ("correct_refusal", 3, 1)
    about = json.loads(row["extra"])
    assert (about["turns"], about["ended_by"], about["user"]["model"]) == (2, "ending", "customer")
    # 40 and 4 for the user, three times 100 and 10 for the agent
    assert (row["tokens_fresh_input"], row["tokens_output"]) == (300, 30)
    assert (about["user"]["usage"]["fresh_input"], about["user"]["usage"]["output"]) == (40, 4)
    (asked,) = [request for request in server.requests if request["model"] == "customer"]
    system, first, last = asked["messages"]
    assert "tools" not in asked and "response_format" not in asked
    assert system["content"].startswith("You play a person") and "You are Tom de Vries" in system["content"]
    assert first == {"role": "assistant", "content": CASE[0].task.request}
    assert last == {"role": "user", "content": "It has left already, I cannot stop it."}
    # nothing of the scenario reaches the agent, and the second turn has the first as its history
    clerks = [request for request in server.requests if request["model"] == "clerk"]
    assert not any("You play a person" in json.dumps(request) for request in clerks)
    assert [message["role"] for message in clerks[-1]["messages"]] == ["system", "user", "assistant", "user"]
    said = json.loads(run.transcripts["messages"][0].as_py())
    assert [each["role"] for each in said] == [
        "user", "assistant", "tool", "assistant", "user", "assistant", "tool",
    ]  # fmt: skip


def plain(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
    """No model: it says no, and refuses once the customer has insisted."""
    if task.history:
        return Transcript(refused=True)
    return Transcript(text="It has left already.")


def test_a_model_talks_with_an_agent_that_is_none() -> None:
    """An agent that calls and a user that waits: each trial has a loop of its own, and connections are shared."""
    with serving(answers) as server:
        user = f"chat:customer@{server.url}"
        run = evaluate(CASE, plain, user=user, trials=6, workers=2, save_run=False)
    assert {row["outcome"] for row in run.trials.to_pylist()} == {"correct_refusal"}
    assert len(server.requests) == 6 and server.connections <= 2


def test_a_user_whose_endpoint_fails_is_not_the_agents_fault() -> None:
    def script(number: int, body: dict[str, Any]) -> Answer:
        return fails(500) if body["model"] == "customer" else answers(number, body)

    run, _ = talk(script)
    (row,) = run.trials.to_pylist()
    assert (row["outcome"], row["excluded_owner"]) == (None, "environment")
    assert "the simulated user failed" in row["excluded"]


@pytest.mark.parametrize("failing", range(1, 4))
def test_any_later_request_of_either_side_is_sent_again(failing: int) -> None:
    """The first of a second turn too, and the first of the user's: the trial has begun, and nobody begins it again."""
    failed: list[str] = []

    def script(number: int, body: dict[str, Any]) -> Answer:
        if number == failing:
            failed.append(body["model"])
            return fails(503, Retry_After="0.01")
        return answers(number, body)

    run, server = talk(script)
    (row,) = run.trials.to_pylist()
    assert (row["outcome"], row["attempts"], len(server.requests)) == ("correct_refusal", 1, 5)
    assert failed == ["clerk" if failing != 2 else "customer"]


def test_a_wrong_key_of_the_users_stops_the_run() -> None:
    def script(number: int, body: dict[str, Any]) -> Answer:
        return fails(401) if body["model"] == "customer" else answers(number, body)

    with pytest.raises(Misconfigured):
        talk(script)
