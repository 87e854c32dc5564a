"""Agent and simulated user take turns: who hears what, what ends it, whose fault and whose cost it is."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentbench_lab import conversation, tables
from agentbench_lab.cases import Case, Limits, Message, Task, parse_cases
from agentbench_lab.drivers.context import Context
from agentbench_lab.drivers.faults import InfrastructureError, OutOfTime
from agentbench_lab.errors import LabError
from agentbench_lab.results.run import Run, load_run
from agentbench_lab.running.runner import evaluate, prepare
from agentbench_lab.transcripts import Transcript, Usage
from agentbench_lab.users import STOP_TOKEN
from agentbench_lab.worlds.toolbox import Toolbox

from .doing import lab, write_driver
from .states import call, line, world

Side = Callable[..., Any]
HELLO = {"scenario": "You lost W77.", "script": ["W77, please.", "Thank you."]}


def cases(**keys: Any) -> list[Case]:
    found, problems = parse_cases(
        json.dumps(line(**{"user": HELLO, **keys})).encode(), name="desk", file="desk.jsonl"
    )
    assert problems == []
    return list(found)


def talk(agent: Side, player: Side | str = "", *, limits: Limits | None = None, **keys: Any) -> Run:
    """One conversation about W77, which has to be cancelled."""
    return evaluate(
        cases(**keys), agent, user=player, world=world(), save_run=False, retries=0,
        **({"limits": limits} if limits else {}),
    )  # fmt: skip


def row_of(run: Run) -> dict[str, Any]:
    (row,) = run.trials.to_pylist()
    return dict(row)


def extra(run: Run) -> dict[str, Any]:
    return dict(json.loads(row_of(run)["extra"]))


def dialogue(run: Run) -> list[tuple[str, str]]:
    """Role and words of each message; a call is its name with an arrow before it."""
    (row,) = run.transcripts.to_pylist()
    found = []
    for message in json.loads(row["messages"]):
        found += [(message["role"], f"→ {made['name']}") for made in message.get("tool_calls", ())]
        found += [(message["role"], message["content"])] if message["content"] else []
    return found


class Says:
    """A side that says these things, one a turn, and remembers what it was given."""

    def __init__(self, *words: Any, usage: Usage | None = None) -> None:
        self.words, self.usage = list(words), usage or Usage.zero()
        self.tasks: list[Task] = []
        self.tools: list[Any] = []
        self.seeds: list[str] = []

    def __call__(self, task: Task, tools: Toolbox, ctx: Context) -> Transcript:
        self.tasks.append(task)
        self.tools.append(tools.tools)
        self.seeds.append(ctx.seed)
        said = self.words[len(self.tasks) - 1]
        if isinstance(said, Exception):
            raise said
        if callable(said):
            said = said(tools)
        return said if isinstance(said, Transcript) else Transcript(text=said, usage=self.usage)


def cancels(tools: Toolbox) -> str:
    tools.call("cancel", {"id": "W77"})
    return "It is cancelled."


# -- who hears what


def test_each_side_hears_the_other_and_the_user_knows_what_no_agent_does() -> None:
    agent = Says("Which order?", cancels, "Goodbye.")
    user = Says("W77.", "Thanks.", f"Bye. {STOP_TOKEN}")
    run = talk(agent, user, policy="Be kind.")
    assert [task.request for task in agent.tasks] == ["Cancel W77", "W77.", "Thanks."]
    assert agent.tasks[2].history == (
        Message("user", "Cancel W77"),
        Message("assistant", "Which order?"),
        Message("user", "W77."),
        Message("assistant", "It is cancelled."),
    )
    assert {task.policy for task in agent.tasks} == {"Be kind."}
    assert not any("lost W77" in repr(task) for task in agent.tasks)
    assert {"cancel", "refuse", "answer"} <= {tool.name for tool in agent.tools[0]}
    # the user's side of it: its own words are those of an assistant, and it has no tool
    assert [task.request for task in user.tasks] == ["Which order?", "It is cancelled.", "Goodbye."]
    assert user.tasks[1].history == (
        Message("assistant", "Cancel W77"),
        Message("user", "Which order?"),
        Message("assistant", "W77."),
    )
    assert all("You lost W77." in task.policy and STOP_TOKEN in task.policy for task in user.tasks)
    assert user.tools == [(), (), ()] and all(task.tools == () for task in user.tasks)
    assert dialogue(run) == [
        ("user", "Cancel W77"),
        ("assistant", "Which order?"),
        ("user", "W77."),
        ("assistant", "→ cancel"),
        ("assistant", "It is cancelled."),
        ("user", "Thanks."),
        ("assistant", "Goodbye."),
        ("user", "Bye."),
    ]
    assert row_of(run)["outcome"] == "solved"
    assert extra(run)["ended_by"] == "user_stop"


def test_the_tools_of_a_user_do_nothing() -> None:
    def grabs(tools: Toolbox) -> str:
        seen = tools.call("cancel", {"id": "W77"})
        assert not seen.ok and tools.call("refuse").status == "undeclared"
        return STOP_TOKEN

    run = talk(Says("Hm?"), Says(grabs))
    assert (row_of(run)["outcome"], row_of(run)["tool_calls"]) == ("no_answer", 0)


def test_every_turn_has_random_numbers_of_its_own_and_the_same_each_time() -> None:
    def once() -> tuple[list[str], list[str]]:
        agent, user = Says("a", "b", "c"), Says("1", "2", STOP_TOKEN)
        talk(agent, user)
        return agent.seeds, user.seeds

    first = once()
    assert first == once()
    assert len({*first[0], *first[1]}) == 6


# -- what ends it


def says_and(tools: Toolbox, text: str, name: str, **input: Any) -> str:
    tools.call(name, input)
    return text


@pytest.mark.parametrize(
    ("last", "ended", "outcome"),
    [
        (f"I am through. {STOP_TOKEN}", "agent_stop", "no_answer"),
        ("", "no_words", "no_answer"),
        (lambda tools: says_and(tools, "No.", "refuse", reason="not allowed"), "ending", "over_refusal"),
        (lambda tools: says_and(tools, "", "answer", value=5), "ending", "unsolved"),
        (Transcript(refused=True, text="I will not."), "ending", "over_refusal"),
        (Transcript(answer=7), "ending", "unsolved"),
        (Transcript(answer="yes", text="The answer is yes."), "ending", "unsolved"),
        (Transcript(inferred_goal="cap:near"), "ending", "no_answer"),
        (Transcript(stop="budget", terminated=False, text="More!"), "budget", "budget"),
    ],
)
def test_the_agent_may_end_it(last: Any, ended: str, outcome: str) -> None:
    user = Says("W77.", "Are you there?")
    run = talk(Says("Which order?", last), user)
    assert (extra(run)["ended_by"], extra(run)["turns"]) == (ended, 2)
    assert row_of(run)["outcome"] == outcome
    assert len(user.tasks) == 1
    assert not any(STOP_TOKEN in words for _, words in dialogue(run))


def test_an_answer_that_is_text_is_what_the_user_reads() -> None:
    """As drivers give it that know nothing of conversations; the last one is the trial's answer."""
    user = Says("And now?", STOP_TOKEN)
    run = talk(
        Says(Transcript(answer="Let me see."), Transcript(answer="fine")), user,
        expect={"answer": {"exact": "fine"}}, gold=None,
    )  # fmt: skip
    assert [task.request for task in user.tasks] == ["Let me see.", "fine"]
    assert row_of(run)["solved"]


def test_the_answer_that_ends_it_stands_before_what_was_said() -> None:
    def answers(tools: Toolbox) -> Transcript:
        tools.call("answer", {"value": 42})
        return Transcript(answer="I have answered.")

    asked: dict[str, Any] = {"expect": {"answer": {"number": 42}}, "gold": None}
    run = talk(Says("Hm?", answers), Says("Well?"), **asked)
    assert row_of(run)["solved"] and dialogue(run)[-1] == ("assistant", "I have answered.")


@pytest.mark.parametrize("most", [1, 2, 5])
def test_turns_are_those_of_the_agent(most: int) -> None:
    agent, user = Says(*["Hm?"] * 9), Says(*["Well?"] * 9)
    run = talk(agent, user, max_turns=most, user={"scenario": "s"})
    assert (len(agent.tasks), len(user.tasks)) == (most, most - 1)
    assert extra(run)["ended_by"] == "max_turns"
    assert row_of(run)["terminated"]


def test_the_scripted_user_is_there_unless_another_is_named() -> None:
    agent = Says("Which order?", cancels, "Goodbye.", "?")
    run = talk(agent)
    assert [task.request for task in agent.tasks] == ["Cancel W77", "W77, please.", "Thank you."]
    assert extra(run) == {
        "turns": 3,
        "ended_by": "user_stop",
        "user": {
            "driver": "scripted",
            "usage": {
                "fresh_input": 0, "cache_read": 0, "cache_write": 0, "output": 0, "model_calls": 0, "cost_micros": 0,
                "wall_s": 0.0,
            },
        },
    }  # fmt: skip
    assert run.card.options["user"] == "scripted"


# -- one world, one ledger


def test_claims_of_all_turns_are_borne_out_in_their_order() -> None:
    def claims(name: str) -> Callable[[Toolbox], Transcript]:
        def turn(tools: Toolbox) -> Transcript:
            tools.call(name, {"id": "W77"})
            return Transcript(text=f"{name}: done", calls=(call(name, id="W77"),))

        return turn

    run = talk(Says(claims("get"), claims("cancel"), claims("get")), Says("Go on.", "And?", STOP_TOKEN))
    (row,) = run.product
    assert [each.name for each in row.produced.calls] == ["get", "cancel", "get"]
    assert row.verdict.solved
    assert [(each["name"], each["worker"]) for each in run.calls.to_pylist()] == [
        ("get", 1),
        ("cancel", 2),
        ("get", 3),
    ]


def test_a_claim_of_an_early_turn_that_did_not_happen_is_false() -> None:
    run = talk(Says(Transcript(text="Cancelled!", calls=(call("cancel", id="W77"),)), ""), Says("Really?"))
    assert row_of(run)["outcome"] == "false_success"


def test_what_a_turn_left_behind_calls_nothing_later() -> None:
    kept: list[Toolbox] = []

    def later(tools: Toolbox) -> str:
        with pytest.raises(Exception, match="over"):
            kept[0].call("cancel", {"id": "W77"})
        return ""

    def first(tools: Toolbox) -> str:
        kept.append(tools)
        return "One moment."

    assert row_of(talk(Says(first, later), Says("Yes?")))["tool_calls"] == 0


# -- whose cost


def test_the_sides_costs_are_kept_apart() -> None:
    agent = Says("a", "b", "c", usage=Usage(30, 0, 0, 4, 2, 100))
    user = Says("1", "2", STOP_TOKEN, usage=Usage(11, 0, 0, 5, 1, 7))
    run = talk(agent, user)
    row = row_of(run)
    assert (row["tokens_fresh_input"], row["tokens_output"], row["model_calls"], row["cost_micros"]) == (
        90, 12, 6, 300,
    )  # fmt: skip
    used = extra(run)["user"]["usage"]
    assert (used["fresh_input"], used["output"], used["model_calls"], used["cost_micros"]) == (33, 15, 3, 21)
    (attempt,) = run.attempts.to_pylist()
    assert [worker["name"] for worker in json.loads(attempt["workers"])] == ["turn 1", "turn 2", "turn 3"]


def test_a_user_that_does_not_say_has_used_nobody_knows_what() -> None:
    def silent(task: Task, tools: Toolbox, ctx: Context) -> dict[str, Any]:
        return {"text": "Go on."}

    used = extra(talk(Says(*"abcd"), silent))["user"].get("usage", {})
    assert not used.get("fresh_input") and "output" not in used


def test_a_limit_holds_over_all_turns() -> None:
    agent = Says(*["Hm?"] * 4, usage=Usage(10, 0, 0, 0, 1))
    run = talk(agent, Says(*["Well?"] * 4, usage=Usage(10_000, 0, 0, 0, 50)), limits=Limits(tokens=25))
    assert (row_of(run)["outcome"], len(agent.tasks)) == ("budget", 3)
    # the dialogue until then is kept
    assert dialogue(run)[-1] == ("assistant", "Hm?")


def test_what_a_user_used_counts_for_the_cap_of_a_run() -> None:
    from agentbench_lab.running.runner import Caps

    user = Says(*["Well?"] * 40, usage=Usage(1000, 0, 0, 0, 1))
    run = evaluate(
        cases(), Says(*["Hm?"] * 40), user=user, world=world(), save_run=False, trials=9,
        caps=Caps(tokens=5000),
    )  # fmt: skip
    assert run.trials.num_rows == 2 and not run.card.complete


# -- whose fault


class Broken(Exception):
    pass


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (Broken("no line"), "Broken: no line"),
        (InfrastructureError("429", retry_after=0.0), "429"),
        (lambda tools: 5, "text is an int, not text"),
        (Transcript(), "it said nothing"),
        (Transcript(stop="driver_error", terminated=False, text="x"), "it stopped with driver_error"),
    ],
    ids=["raises", "infrastructure", "nonsense", "nothing", "stops"],
)
def test_a_user_that_fails_is_nobody_elses_fault(fault: Any, says: str) -> None:
    run = talk(Says(cancels, "?"), Says(fault))
    row = row_of(run)
    assert (row["outcome"], row["stop"], row["excluded_owner"]) == (
        None,
        "infrastructure_error",
        "environment",
    )
    assert "the simulated user failed" in row["excluded"] and says in row["excluded"]
    # what had been said is kept
    assert dialogue(run)[-1] == ("assistant", "It is cancelled.")


def test_an_agent_that_fails_in_a_later_turn_is_judged() -> None:
    run = talk(Says("Which order?", Broken("oh")), Says("W77."))
    assert (row_of(run)["outcome"], row_of(run)["excluded"]) == ("driver_error", None)
    assert dialogue(run) == [
        ("user", "Cancel W77"),
        ("assistant", "Which order?"),
        ("user", "W77."),
    ]
    assert "Broken: oh" in run.transcripts.to_pylist()[0]["traceback"]


def test_what_a_failed_turn_has_cost_is_counted() -> None:
    run = talk(
        Says("Which?", InfrastructureError("503", usage=Usage(7, 0, 0, 1, 1)), usage=Usage(30, 0, 0, 4, 1)),
        Says("W77."),
    )
    row = row_of(run)
    assert (row["excluded_owner"], row["tokens_fresh_input"], row["tokens_output"]) == ("environment", 37, 5)


@pytest.mark.parametrize("usage", [None, Usage(cost_micros=0)], ids=["without", "in part unknown"])
@pytest.mark.parametrize("native", [False, True], ids=["plain", "async"])
def test_a_turn_that_fails_after_output_is_not_drawn_again(usage: Usage | None, native: bool) -> None:
    tries = []

    def speaks_and_fails(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
        tries.append(ctx.attempt)
        ctx.spend(Usage(output=3, cost_micros=70))
        with ctx.waiting():
            pass
        raise InfrastructureError("broken off", retry_after=0, usage=usage)

    async def waits_and_fails(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
        return speaks_and_fails(task, tools, ctx)

    agent = waits_and_fails if native else speaks_and_fails
    run = evaluate(cases(), agent, world=world(), save_run=False, retries=3)
    row = row_of(run)
    assert (len(tries), row["attempts"], row["excluded_owner"], row["cost_micros"]) == (
        1,
        1,
        "environment",
        70,
    )
    # the turn has ended: what it waited is no work, and its own figures say how it ended
    assert row["working_s"] < row["wall_s"]
    (turn,) = json.loads(run.attempts.to_pylist()[0]["workers"])
    assert (turn["stop"], turn["usage"]["cost_micros"]) == ("infrastructure_error", 70)


def test_what_a_turn_used_that_ran_out_of_time_is_counted() -> None:
    late = OutOfTime("stopped", usage=Usage(7, 0, 0, 1, 1))
    row = row_of(talk(Says("Which?", late, usage=Usage(30, 0, 0, 4, 1)), Says("W77.")))
    assert (row["stop"], row["tokens_fresh_input"], row["tokens_output"]) == ("timeout", 37, 5)


def test_a_turn_that_is_no_transcript_is_the_agents_error() -> None:
    assert row_of(talk(Says("Which?", lambda tools: 5), Says("W77.")))["outcome"] == "driver_error"


def hangs(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
    time.sleep(30)
    return Transcript(text="?")


async def hangs_too(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
    await asyncio.sleep(30)
    return Transcript(text="?")


async def speaks(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
    await asyncio.sleep(0)
    return Transcript(text=f"You said {task.request}")


@pytest.mark.parametrize("agent", [Says("Which order?", "?"), speaks], ids=["sync", "async"])
@pytest.mark.parametrize("user", [hangs, hangs_too])
def test_a_user_that_hangs_is_not_the_agents_timeout(agent: Side, user: Side) -> None:
    row = row_of(talk(agent, user, limits=Limits(wall_s=0.2)))
    assert (row["outcome"], row["excluded_owner"]) == (None, "environment")
    assert "the simulated user" in row["excluded"]


def test_each_side_reads_until_when_its_time_is() -> None:
    until: dict[str, list[float]] = {"agent": [], "user": []}

    def side(name: str, text: str) -> Side:
        def speak(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
            until[name].append(ctx.deadline - time.monotonic())
            return Transcript(text=text)

        return speak

    talk(side("agent", "a"), side("user", "u"), limits=Limits(wall_s=50.0))
    # the user has a limit of its own each time; the agent goes on with what it has left
    assert all(left <= 50.0 for side in until.values() for left in side)
    assert sorted(until["agent"], reverse=True) == until["agent"] and len(until["user"]) == 3


@pytest.mark.parametrize("agent", [hangs, hangs_too])
def test_an_agent_that_hangs_is(agent: Side) -> None:
    run = talk(agent, "scripted", limits=Limits(wall_s=0.2))
    assert row_of(run)["outcome"] == "timeout"
    assert dialogue(run) == [("user", "Cancel W77")]


# -- sync and async


@pytest.mark.parametrize("agent", [Says("a", "b", "c", "d"), speaks], ids=["sync", "async"])
@pytest.mark.parametrize("user", ["scripted", speaks], ids=["sync", "async"])
def test_either_side_may_be_async(agent: Side, user: Side | str) -> None:
    if isinstance(agent, Says):
        agent.tasks.clear()
    run = talk(agent, user)
    assert extra(run)["turns"] == (3 if user == "scripted" else 4)
    told = dialogue(run)
    assert [who for who, _ in told] == [("user", "assistant")[at % 2] for at in range(len(told))]
    assert told[2] == ("user", "W77, please." if user == "scripted" else f"You said {told[1][1]}")


def test_many_conversations_side_by_side_do_not_mix() -> None:
    async def agent(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
        await asyncio.sleep(ctx.random.random() / 100)
        return Transcript(text=f"{ctx.trial}: {len(task.history)}")

    async def user(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
        await asyncio.sleep(ctx.random.random() / 100)
        assert task.request.startswith(f"{ctx.trial}: ")
        return Transcript(text=f"user of {ctx.trial}")

    run = evaluate(cases(), agent, user=user, world=world(), save_run=False, trials=12, workers=6)
    for trial, row in enumerate(run.transcripts.to_pylist(), start=1):
        told = [message["content"] for message in json.loads(row["messages"])]
        assert told[1::2] == [f"{trial}: {n}" for n in (0, 2, 4, 6)]
        assert set(told[2::2]) == {f"user of {trial}"}


def refuses(tools: Toolbox) -> str:
    tools.call("refuse", {"reason": "no"})
    return "No."


AGENT: dict[str, Any] = {
    "speaks": "Hm?", "acts": cancels, "refuses": refuses, "stops": f"Bye {STOP_TOKEN}", "silent": "",
    "answers": Transcript(answer=3), "raises": Broken("a"), "nonsense": lambda tools: 5,
}  # fmt: skip
USER: dict[str, Any] = {
    "speaks": "Well?", "stops": STOP_TOKEN, "silent": "", "raises": Broken("u"), "nonsense": lambda tools: {5},
}  # fmt: skip


@given(
    st.lists(st.sampled_from(list(AGENT)), min_size=4, max_size=4),
    st.lists(st.sampled_from(list(USER)), min_size=3, max_size=3),
    st.integers(1, 4),
)
@settings(max_examples=60, deadline=None)
def test_whatever_is_said_has_one_end_and_one_owner(agents: list[str], users: list[str], most: int) -> None:
    """Worked out turn by turn: who spoke how often, what ended it, and whose fault it was."""
    turns, end, fault = 0, "", ""
    for at in range(most):
        turns, mine = at + 1, agents[at]
        if mine in ("raises", "nonsense"):
            fault = "agent"
        elif mine in ("refuses", "answers"):
            end = "ending"
        elif mine in ("stops", "silent"):
            end = "agent_stop" if mine == "stops" else "no_words"
        elif turns == most:
            end = "max_turns"
        elif users[at] == "stops":
            end = "user_stop"
        elif users[at] != "speaks":
            fault = "user"
        if end or fault:
            break
    run = talk(
        Says(*[AGENT[each] for each in agents]), Says(*[USER[each] for each in users]), max_turns=most,
        user={"scenario": "s"},
    )  # fmt: skip
    row, about = row_of(run), extra(run)
    assert about["turns"] == turns and about.get("ended_by", "") == end
    assert row["excluded_owner"] == ("environment" if fault == "user" else None)
    assert (row["outcome"] is None) == (fault == "user")
    assert (row["outcome"] == "driver_error") == (fault == "agent")
    told = dialogue(run)
    assert not any(STOP_TOKEN in words for _, words in told)
    assert sum(who == "user" for who, _ in told) == turns
    acted = "acts" in agents[: turns - (fault == "agent")]
    assert (row["tool_calls"] > 0) == acted


# -- a driver's own messages


def test_of_a_drivers_own_messages_those_of_the_turn_are_kept() -> None:
    def chats(tools: Toolbox) -> Transcript:
        tools.call("get", {"id": "W77"})
        return Transcript(
            text="It is pending.",
            messages=(
                {"role": "system", "content": "policy"},
                {"role": "user", "content": "Cancel W77"},
                {
                    "role": "assistant",
                    "tool_calls": [{"name": "get", "arguments": {"id": "W77"}}],
                    "content": None,
                },
                {"role": "user", "content": "get: pending"},
                {"role": "assistant", "content": "It is pending."},
            ),
        )

    assert dialogue(talk(Says(chats), Says(STOP_TOKEN))) == [
        ("user", "Cancel W77"),
        ("assistant", "→ get"),
        ("tool", "get: pending"),
        ("assistant", "It is pending."),
    ]


def test_a_key_that_is_said_is_in_no_dialogue() -> None:
    key = "sk-" + "a1b2c3d4" * 6
    run = talk(Says(f"Use {key}.", ""), Says(f"I have {key} too."))
    assert key not in json.dumps(run.transcripts.to_pylist())
    assert "redacted" in dialogue(run)[1][1]


def test_the_examples_of_the_page_work() -> None:
    import agentbench_lab
    from agentbench_lab.worlds.statestore import StateWorld

    page = (Path(__file__).resolve().parent.parent / "docs" / "drivers.md").read_text(encoding="utf-8")
    shown = re.findall(r"```python\n(.*?)```", page[page.index("## Conversations") :], re.DOTALL)[:2]
    names: dict[str, Any] = {"lab": agentbench_lab}
    for text in shown:
        exec(text, names)
    schema = {"type": "object", "properties": {"order_id": {"type": "string"}}, "required": ["order_id"]}
    cancel = {
        "name": "cancel_order",
        "input_schema": schema,
        "effects": [{"set": "gone", "value": "{order_id}"}],
    }
    shop = StateWorld("shop", {"gone": None}, [cancel])
    asked = {"tools": ["cancel_order"], "expect": {"state": {"gone": "Please go on."}}, "gold": None}
    run = evaluate(cases(**asked), names["agent"], user=names["patient"], world=shop, save_run=False)
    assert row_of(run)["solved"] and extra(run)["ended_by"] == "user_stop"


# -- the run


def test_the_user_is_part_of_the_runs_key(tmp_path: Path) -> None:
    def run(user: Side | str, **more: Any) -> Run:
        return evaluate(cases(), "refuse_all", user=user, world=world(), out=tmp_path / "run", **more)

    whole = run("scripted", stamp="s")
    assert whole.card.options["user"] == "scripted"
    with pytest.raises(LabError, match=r"user: 'scripted .* is now"):
        run(speaks, stamp="s")
    longer = run("", stamp="s", trials=3)
    assert longer.trials.num_rows == 3
    # what was said of the first trial is what is said of it now
    assert [json.loads(row["extra"])["turns"] for row in longer.trials.to_pylist()] == [1, 1, 1]
    assert load_run(tmp_path / "run").card.counts.judged == 3


def test_what_a_user_is_told_around_its_scenario_is_part_of_the_runs_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A script has no use for it, and keeps its key."""

    def run(user: Side | str, name: str, trials: int) -> Run:
        return evaluate(
            cases(), "refuse_all", user=user, world=world(), out=tmp_path / name, stamp="s", trials=trials
        )

    run(speaks, "spoken", 1), run("scripted", "scripted", 1)
    monkeypatch.setattr(conversation, "ROLE", "You play somebody else.")
    with pytest.raises(LabError, match=r"user: '.*speaks .* is now"):
        run(speaks, "spoken", 2)
    assert run("scripted", "scripted", 2).trials.num_rows == 2


@pytest.mark.parametrize(
    ("keys", "more", "says"),
    [
        ({"user": None}, {"user": "scripted"}, "user 'scripted' speaks in no case: desk has no conversation"),
        ({"user": {"scenario": "s"}}, {}, "c: its user has a scenario and no script: name who plays it"),
        ({}, {"user": "scriptd"}, "unknown driver 'scriptd' (did you mean 'scripted'?)"),
        ({}, {"scaffolds": "linear"}, "scaffold 'linear': desk has conversations, which run under once"),
    ],
)
def test_what_cannot_be_talked_is_one_clear_line(
    keys: dict[str, Any], more: dict[str, Any], says: str
) -> None:
    with pytest.raises(LabError) as caught:
        prepare(cases(**keys), "refuse_all", world=world(), save_run=False, **more)
    assert says in str(caught.value) and "\n" not in str(caught.value)


def test_a_process_gives_the_same_bytes(tmp_path: Path) -> None:
    """Also of what stands beside the product: the turns, and what the user used."""
    given: dict[str, Any] = {"stamp": "s", "trials": 2}
    here = evaluate("support", "refuse_all", out=tmp_path / "a", **given)
    there = evaluate("support", "refuse_all", out=tmp_path / "b", executor="processes", **given)
    assert (tmp_path / "a" / "product.jsonl").read_bytes() == (tmp_path / "b" / "product.jsonl").read_bytes()
    assert here.trials.column("extra").to_pylist() == there.trials.column("extra").to_pylist()


def test_the_command_line_names_the_user(tmp_path: Path) -> None:
    write_driver(
        tmp_path,
        "from agentbench_lab import Transcript\n\n\n"
        "def agent(task, tools, ctx):\n    return Transcript(text='Are you sure?')\n\n\n"
        "def user(task, tools, ctx):\n    return Transcript(text='Quite sure. ###STOP###')\n",
    )
    out = str(tmp_path / "run")
    asked = ["run", "support", "--only", "cancel-shipped", "--driver", "mine:agent", "--user", "mine:user"]
    done = lab(*asked, "--out", out, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    shown = lab("show", out, "--case", "cancel-shipped", cwd=tmp_path)
    assert "Quite sure." in shown.stdout and "###" not in shown.stdout
    assert "mine:user" in shown.stdout


def unsure(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
    """A side that no two runs make alike, as a model is."""
    return Transcript(text=f"{os.urandom(4).hex()}?", usage=Usage(5, 0, 0, 1, 1))


def unsure_user(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
    return unsure(task, tools, ctx)


@pytest.mark.parametrize("user", [unsure_user, "scripted", unsure])
def test_a_conversation_is_recorded_and_played_back(tmp_path: Path, user: Side | str) -> None:
    """Both sides of it, to the word; a scripted user is asked again, and says the same."""
    file = tmp_path / "talks.jsonl"
    given: dict[str, Any] = {"world": world(), "save_run": False, "trials": 3}
    live = evaluate(cases(), unsure, user=user, record=file, **given)
    name = f"{__name__}:unsure"
    agent = f"replay:{file}#{name}"
    again = user if user == "scripted" else f"replay:{file}#{name}{'_user' if user is unsure_user else ''}"
    played = evaluate(cases(), agent, user=again, **given)
    assert played.transcripts["messages"].to_pylist() == live.transcripts["messages"].to_pylist()
    for one, other in zip(live.trials.to_pylist(), played.trials.to_pylist(), strict=True):
        assert (other["outcome"], other["tokens_fresh_input"]) == (one["outcome"], one["tokens_fresh_input"])
        talks = [json.loads(row["extra"]) for row in (one, other)]
        assert talks[0]["turns"] == talks[1]["turns"]
        assert talks[0]["user"]["usage"]["fresh_input"] == talks[1]["user"]["usage"]["fresh_input"]
    assert len({*live.transcripts["messages"].to_pylist()}) == 3


def test_a_program_plays_the_user_and_is_closed_with_the_run(tmp_path: Path) -> None:
    """One process for all turns of all trials, which is gone when the run is there."""
    program = tmp_path / "user.py"
    program.write_text(
        "import json, os, sys\n"
        "for line in sys.stdin:\n"
        "    asked = json.loads(line)\n"
        "    said = f\"{os.getpid()} heard {asked['task']['request']}\"\n"
        "    print(json.dumps({'id': asked['id'], 'final': {'text': said}}), flush=True)\n",
        encoding="utf-8",
    )
    run = evaluate(
        cases(), Says(*"abcdefgh"), user=f"command:{sys.executable} {program}", world=world(), trials=2, save_run=False
    )  # fmt: skip
    said = [
        message["content"].split()
        for text in run.transcripts["messages"].to_pylist()
        for message in json.loads(text)
        if message["role"] == "user" and "heard" in message["content"]
    ]
    assert [words[1:] for words in said] == [["heard", letter] for letter in "abcefg"]
    (pid,) = {int(words[0]) for words in said}
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


# -- how it reads


def test_a_trial_shows_its_dialogue_as_turns() -> None:
    run = talk(Says("Which order?", cancels, "Goodbye."), Says("W77.", "Thanks.", STOP_TOKEN))
    (table,) = tables.in_full(run)
    rows = [row if isinstance(row, str) else tuple(row) for row in table.rows]
    told = rows[rows.index("what was said") + 1 :]
    assert told == [
        ("user, turn 1", "Cancel W77"),
        ("assistant", "Which order?"),
        ("user, turn 2", "W77."),
        ("assistant", '→ cancel {"id": "W77"}'),
        ("assistant", "It is cancelled."),
        ("user, turn 3", "Thanks."),
        ("assistant", "Goodbye."),
    ]
    assert ("ended by", "user_stop") in rows and ("turns of the agent", "3") in rows
    (one,) = tables.looked(run)
    assert one["talk"]["turns"] == 3 and one["messages"][0] == {"role": "user", "content": "Cancel W77"}


def test_the_drill_down_shows_it_once() -> None:
    from agentbench_lab.drilldown import drill

    html = drill(talk(Says("Which order?", ""), Says("The one I lost."))).html()
    assert html.count("The one I lost.") == 1 and "user, turn 2" in html


def test_a_pattern_that_runs_away_is_the_users_failure(tmp_path: Path) -> None:
    """The agent's words were made for it; the trial is nobody's failure, and the run ends."""
    from agentbench_lab.users import Line, RanAway, When, next_line

    with pytest.raises(RanAway, match="took more than 1 s"):
        next_line([Line(When(regex="(a+)+$"), "hm")], ["a" * 40 + "!"])
