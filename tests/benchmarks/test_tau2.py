"""tau2-bench: simulations as trials, the agent apart from the simulated user, one file, a folder, several files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentbench_lab.benchmarks import Options, load_results
from agentbench_lab.errors import LabError
from agentbench_lab.results.run import Run, load_run
from agentbench_lab.running.merge import save_new


def said(
    role: str, content: str, cost: float | None = 0.001, cached: int | None = 20, **more: Any
) -> dict[str, Any]:
    """A message that a model wrote: 100 tokens in, of which `cached` came from a cache, and 10 out."""
    usage = {"completion_tokens": 10, "prompt_tokens": 100}
    details = None if cached is None else {"cached_tokens": cached, "audio_tokens": 0}
    raw = {"id": "chat-1", "usage": {**usage, "total_tokens": 110, "prompt_tokens_details": details}}
    return {
        "role": role,
        "content": content,
        "tool_calls": None,
        "cost": cost,
        "usage": usage,
        "raw_data": raw,
        **more,
    }


GREETING = {
    "role": "assistant",
    "content": "Hi!",
    "tool_calls": None,
    "cost": 0.0,
    "usage": None,
    "raw_data": None,
}


def calls(role: str, *called: tuple[str, str], **more: Any) -> dict[str, Any]:
    listed = [{"id": i, "name": name, "arguments": {"n": 1}, "requestor": role} for i, name in called]
    return said(role, "", tool_calls=listed, **more)


def result(ident: str, content: str, requestor: str = "assistant", error: bool = False) -> dict[str, Any]:
    return {"id": ident, "role": "tool", "content": content, "requestor": requestor, "error": error}


MESSAGES = [
    GREETING,
    said("user", "My phone is dead", cost=0.5),
    calls("assistant", ("c1", "find"), ("c2", "reset")),
    result("c1", '{"line": 7}'),
    result("c2", "Error: no such line", error=True),
    said("assistant", "Please look at your phone"),
    calls("user", ("u1", "look"), cost=0.5),
    result("u1", "no service", requestor="user"),
    said("user", "###STOP###", cost=0.5),
]  # fmt: skip


def task(task_id: str = "t", **more: Any) -> dict[str, Any]:
    return {
        "id": task_id,
        "description": {"purpose": "none"},
        "user_scenario": {"persona": None, "instructions": "Your phone is dead."},
        "ticket": "A dead phone",
        "initial_state": None,
        "evaluation_criteria": {"actions": [{"name": "reset"}], "reward_basis": ["DB"]},
        **more,
    }


def simulation(
    task_id: str = "t", trial: int | None = 0, reward: float | None = 1.0, **more: Any
) -> dict[str, Any]:
    basis = {"reward_basis": ["DB", "COMMUNICATE"], "reward_breakdown": {"DB": 1.0, "COMMUNICATE": reward}}
    return {
        "id": f"{task_id}-{trial}",
        "task_id": task_id,
        "trial": trial,
        "seed": 5,
        "start_time": "2026-05-31T11:00:00.000000",
        "end_time": "2026-05-31T11:00:02.500000",
        "duration": 2.4,
        "termination_reason": "user_stop",
        "agent_cost": 0.002,
        "user_cost": 1.5,
        "reward_info": None
        if reward is None
        else {"reward": reward, "nl_assertions": None, "info": None, **basis},
        "messages": MESSAGES,
        **more,
    }


def results(
    *simulations: dict[str, Any], domain: str = "telecom", llm: str = "m", **more: Any
) -> dict[str, Any]:
    ids = dict.fromkeys(each["task_id"] for each in simulations)
    info = {
        "git_commit": "abc",
        "num_trials": 1,
        "max_steps": 30,
        "max_errors": 10,
        "seed": 300,
        "user_info": {"implementation": "user_simulator", "llm": "u", "llm_args": {"temperature": 0.0}},
        "agent_info": {"implementation": "llm_agent", "llm": llm, "llm_args": {"temperature": 0.0}},
        "environment_info": {"domain_name": domain, "policy": "# Policy", "tool_defs": None},
        **more.pop("info", {}),
    }
    return {
        "timestamp": "2026-05-31T11:00:03",
        "info": info,
        "tasks": [task(each) for each in ids],
        "simulations": list(simulations),
        **more,
    }


def write(file: Path, content: Any) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content), encoding="utf-8")
    return file


def load(folder: Path, content: Any, **options: str) -> Run:
    return load_results("tau2", write(folder / "results.json", content), Options(**options))


def refused(path: Path, root: Path) -> str:
    with pytest.raises(LabError) as caught:
        load_results("tau2", path)
    return str(caught.value).replace(f"{root}/", "")


def notes(run: Run) -> tuple[str, ...]:
    assert run.card.imported is not None
    return run.card.imported.notes


def test_a_simulation_becomes_a_trial(tmp_path: Path) -> None:
    """Two model calls of the agent (the greeting is the harness's): 200 in, 40 of them cached, 20 out. Its two calls
    count, the user's one does not."""
    run = load(tmp_path, results(simulation()), name="mine")
    row = run.trials.to_pylist()[0]
    want = {
        "suite": "tau2-telecom",
        "case_id": "t",
        "driver": "llm_agent",
        "model": "m",
        "trial": 1,
        "solved": True,
        "score": 1.0,
        "stop": "done",
        "terminated": True,
        "steps": 2,
        "model_calls": 2,
        "tool_calls": 2,
        "tool_errors": 1,
        "tokens_fresh_input": 160,
        "tokens_cache_read": 40,
        "tokens_cache_write": 0,
        "tokens_output": 20,
        "cost_micros": 2000,
        "wall_s": 2.5,
    }
    assert {name: row[name] for name in want} == want
    assert json.loads(row["extra"]) == {
        "ended_at": "2026-05-31T11:00:02.500000",
        "reward_basis": ["DB", "COMMUNICATE"],
        "reward_breakdown": {"DB": 1.0, "COMMUNICATE": 1.0},
        "seed": 5,
        "simulation_id": "t-0",
        "started_at": "2026-05-31T11:00:00.000000",
        "termination_reason": "user_stop",
        "tokens_input_total": 200,
        "user_cost_usd": 1.5,
        "user_tool_calls": 1,
    }
    assert [(c["name"], c["input"], c["status"], c["observed"]) for c in run.calls.to_pylist()] == [
        ("find", '{"n":1}', "ok", '{"line": 7}'),
        ("reset", '{"n":1}', "tool_error", "Error: no such line"),
    ]
    case = run.cases.to_pylist()[0]
    assert (case["request"], json.loads(case["expectation"])["reward_basis"]) == (
        "Your phone is dead.",
        ["DB"],
    )
    messages = json.loads(run.transcripts.to_pylist()[0]["messages"])
    assert len(messages) == len(MESSAGES)
    assert messages[4] == {
        "role": "tool",
        "content": "Error: no such line",
        "requestor": "assistant",
        "error": True,
    }
    assert (run.card.commit, run.card.run) == ("abc", "mine")
    assert run.card.options["max_steps"] == 30
    assert notes(run) == (
        "Cost, tokens and calls are the agent's; those of the simulated user are in extra.",
    )


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("user_stop", "done"),
        ("agent_stop", "done"),
        ("max_steps", "budget"),
        ("too_many_errors", "budget"),
        ("context_window_exceeded", "budget"),
        ("timeout", "timeout"),
        ("agent_error", "driver_error"),
        ("user_error", None),
        ("unexpected_error", None),
        ("a_new_reason", None),
    ],
)
def test_every_end_but_one_is_judged(tmp_path: Path, reason: str, stop: str | None) -> None:
    """Also without a reward: tau2 gives 0 to what did not come to a regular end."""
    ended = reason in ("user_stop", "agent_stop")
    run = load(tmp_path, results(simulation(reward=0.0 if ended else None, termination_reason=reason)))
    row = run.trials.to_pylist()[0]
    assert (row["solved"], row["stop"], row["excluded"], row["terminated"]) == (False, stop, None, ended)
    assert json.loads(row["extra"])["termination_reason"] == reason
    told = {
        "context_window_exceeded": "later versions of tau2 leave them out",
        "user_error": "an error of the simulated user",
    }
    assert any(told.get(reason, "Cost, tokens") in note for note in notes(run))


def test_infrastructure_errors_are_excluded_as_tau2_does(tmp_path: Path) -> None:
    run = load(
        tmp_path,
        results(
            simulation("a", reward=0.0, termination_reason="infrastructure_error", messages=[]),
            simulation("b"),
        ),
    )
    first, second = run.trials.to_pylist()
    assert (first["excluded"], first["excluded_owner"]) == ("infrastructure_error", "environment")
    assert (first["solved"], first["score"]) == (None, None)
    assert (second["excluded"], second["solved"]) == (None, True)
    assert "telecom: excluded, infrastructure_error: 1 of 2 simulations." in notes(run)


@pytest.mark.parametrize("info", [None, {"reward": None}, {"reward": -1.0}])
def test_a_regular_end_without_a_reward_was_not_evaluated(tmp_path: Path, info: Any) -> None:
    """Also where a sentinel stands for it: -1 is no reward of tau2."""
    run = load(tmp_path, results(simulation(reward_info=info)))
    row = run.trials.to_pylist()[0]
    assert (row["solved"], row["score"], row["excluded"], row["excluded_owner"]) == (
        None,
        None,
        "not evaluated: no reward in the file",
        "grader",
    )


def test_unknown_stays_unknown(tmp_path: Path) -> None:
    """No cost, no usage of one message, no details of the cache, and voice, which has no messages at all."""
    no_usage = [*MESSAGES[:5], {**GREETING, "content": "Please look"}, *MESSAGES[6:]]
    no_details = [GREETING, said("assistant", "x", cached=None), said("assistant", "y")]
    run = load(
        tmp_path,
        results(
            simulation("a", messages=no_usage),
            simulation("b", messages=no_details, agent_cost=None),
            simulation("c", messages=None, ticks=[], start_time=None),
        ),
    )
    columns = [
        "tokens_fresh_input",
        "tokens_cache_read",
        "tokens_cache_write",
        "tokens_output",
        "cost_micros",
    ]
    rows = run.trials.to_pylist()
    assert [[row[name] for name in columns] for row in rows] == [
        [None, None, None, None, 2000],
        [None, None, None, 20, None],
        [None, None, None, None, 2000],
    ]
    assert [row["tool_calls"] for row in rows] == [2, 0, None]
    assert [row["model_calls"] for row in rows] == [2, 2, None]
    assert rows[2]["wall_s"] == 2.4
    assert [json.loads(row["extra"]).get("tokens_input_total") for row in rows] == [None, 200, None]
    assert notes(run)[1:] == (
        "telecom: without an agent cost in the source: 1 of 3 simulations.",
        "telecom: without messages (voice has ticks), so that calls and tokens stay unknown: 1 of 3 simulations.",
    )


def test_writes_to_a_cache_are_taken_out_of_the_prompt(tmp_path: Path) -> None:
    message = said("assistant", "x", cached=60)
    message["raw_data"]["usage"]["cache_creation_input_tokens"] = 30
    row = load(tmp_path, results(simulation(messages=[message]))).trials.to_pylist()[0]
    assert (row["tokens_fresh_input"], row["tokens_cache_read"], row["tokens_cache_write"]) == (10, 60, 30)


def test_dollars_below_a_micro_are_kept(tmp_path: Path) -> None:
    row = load(tmp_path, results(simulation(agent_cost=0.0004524))).trials.to_pylist()[0]
    assert (row["cost_micros"], json.loads(row["extra"])["cost_usd"]) == (452, 0.0004524)


def test_given_messages_are_not_the_agents(tmp_path: Path) -> None:
    """The task puts two messages and a result before the dialogue: their call and their tokens do not count."""
    history = [
        said("user", "before", cost=None),
        calls("assistant", ("c1", "find"), cost=None),
        result("c1", "old"),
    ]
    content = results(simulation(messages=[*history, *MESSAGES[1:]], agent_cost=None))
    content["tasks"] = [task(initial_state={"message_history": history})]
    run = load(tmp_path, content)
    row = run.trials.to_pylist()[0]
    assert (row["model_calls"], row["tool_calls"], row["tokens_output"]) == (2, 2, 20)
    assert json.loads(row["extra"])["given_messages"] == 3
    assert run.calls.to_pylist()[0]["observed"] == '{"line": 7}'
    assert (
        "telecom: going on from given messages, whose calls are not the agent's: 1 of 1 simulations."
        in notes(run)
    )


def test_a_call_without_a_result_did_not_reach_a_tool(tmp_path: Path) -> None:
    """Such as `done`, by which an agent that is alone ends; its task has a ticket and no user."""
    content = results(simulation(messages=[calls("assistant", ("c1", "find")), result("c1", "x"), calls("assistant", ("c2", "done"))]))  # fmt: skip
    content["tasks"] = [task(user_scenario=None)]
    run = load(tmp_path, content)
    row = run.trials.to_pylist()[0]
    assert (row["tool_calls"], json.loads(row["extra"])["calls_without_result"]) == (1, 1)
    assert run.cases.column("request").to_pylist() == ["A dead phone"]


def test_results_within_one_message(tmp_path: Path) -> None:
    several = {"role": "tool", "tool_messages": [result("c1", "one"), result("c2", "Error: two", error=True)]}
    messages = [calls("assistant", ("c1", "find"), ("c2", "reset")), several]
    run = load(tmp_path, results(simulation(messages=messages)))
    assert [(c["status"], c["observed"]) for c in run.calls.to_pylist()] == [
        ("ok", "one"),
        ("tool_error", "Error: two"),
    ]


def test_trials_that_were_asked_for_and_are_not_there(tmp_path: Path) -> None:
    content = results(simulation("a", 0), simulation("a", 1), simulation("b", 0), info={"num_trials": 2})
    run = load(tmp_path, content)
    counts = run.card.counts
    assert (counts.asked, counts.judged, counts.missing) == (4, 3, 1)
    unnumbered = load(tmp_path, results(simulation("a", None), simulation("a", None, reward=0.0)))
    assert [(r["trial"], r["solved"]) for r in unnumbered.trials.to_pylist()] == [(1, True), (2, False)]


# A folder of one, a folder of several


def test_a_folder_with_its_simulations(tmp_path: Path) -> None:
    """The two forms of one result give the same rows, by the folder or by its results.json."""
    simulations = [simulation("a"), simulation("b", reward=0.0)]
    one = load(tmp_path / "one", results(*simulations), name="r")
    index = [{"id": each["id"], "task_id": each["task_id"], "trial": 0} for each in simulations]
    whole = results(*simulations)
    del whole["simulations"]
    write(tmp_path / "dir" / "results.json", {**whole, "simulation_index": index})
    for each in simulations:
        write(tmp_path / "dir" / "simulations" / f"{each['id']}.json", each)
    for path in (tmp_path / "dir", tmp_path / "dir" / "results.json"):
        run = load_results("tau2", path, Options(name="r"))
        assert run.trials.equals(one.trials)
        assert run.calls.equals(one.calls)
    (tmp_path / "dir" / "simulations" / "a-0.json").rename(tmp_path / "dir" / "simulations" / "z.json")
    assert refused(tmp_path / "dir", tmp_path) == "dir/results.json: simulation a-0 has no file"
    (tmp_path / "dir" / "simulations" / "z.json").rename(tmp_path / "dir" / "simulations" / "a-0.json")
    write(tmp_path / "dir" / "simulations" / "c.json", {"task_id": "c"})
    assert refused(tmp_path / "dir", tmp_path) == "dir/results.json: simulation c is not in the index"
    write(tmp_path / "dir" / "results.json", whole)
    assert refused(tmp_path / "dir", tmp_path) == (
        "dir/simulations/c.json: Object missing required field `termination_reason`"
    )
    write(tmp_path / "dir" / "results.json", results(*simulations))
    assert "there is a folder simulations beside it; which are meant?" in refused(tmp_path / "dir", tmp_path)


def test_several_files_become_one_run(tmp_path: Path) -> None:
    """Two domains are two suites; within one, parts of one configuration are put together, and models are arms."""
    write(tmp_path / "1" / "results.json", results(simulation("0"), domain="airline"))
    write(tmp_path / "2" / "x" / "results.json", results(simulation("1"), domain="airline"))
    write(tmp_path / "3" / "results.json", results(simulation("0", reward=0.0), domain="retail"))
    write(tmp_path / "4" / "results.json", results(simulation("0"), domain="airline", llm="n"))
    run = load_results("tau2", tmp_path, Options(name="all"))
    rows = [(r["suite"], r["case_id"], r["model"], r["solved"], r["run"]) for r in run.trials.to_pylist()]
    assert rows == [
        ("tau2-airline", "0", "m", True, "all"),
        ("tau2-airline", "0", "n", True, "all"),
        ("tau2-airline", "1", "m", True, "all"),
        ("tau2-retail", "0", "m", False, "all"),
    ]
    card = run.card
    assert [(suite.name, suite.cases) for suite in card.suites] == [("tau2-airline", 2), ("tau2-retail", 1)]
    assert [(arm.driver, arm.model) for arm in card.arms] == [("llm_agent", "m"), ("llm_agent", "n")]
    assert (card.counts.asked, card.counts.missing, card.commit) == (4, 0, "abc")
    save_new(run, tmp_path / "saved")
    assert load_run(tmp_path / "saved").trials.equals(run.trials)
    with pytest.raises(LabError, match=r"holds several domains \(airline, retail\); --suite names one"):
        load_results("tau2", tmp_path / ".", Options(suite="mine"))


def test_files_that_do_not_fit_together(tmp_path: Path) -> None:
    write(tmp_path / "1" / "results.json", results(simulation("0")))
    second = tmp_path / "2" / "results.json"
    write(second, results(simulation("0")))
    assert refused(tmp_path, tmp_path) == (
        "2/results.json: trial 1 of task '0' (telecom by llm_agent m) is in 1/results.json too; import them apart"
    )
    write(second, results(simulation("1"), info={"max_steps": 6}))
    assert refused(tmp_path, tmp_path) == (
        "2/results.json: telecom by llm_agent m with max_steps 6, where 1/results.json has 30; import them apart"
    )
    content = results(simulation("0", 1))
    content["tasks"] = [task("0", ticket="Another")]
    write(second, content)
    assert (
        refused(tmp_path, tmp_path) == "2/results.json: task '0' of telecom is another than in a file before"
    )
    write(second, results(simulation("1"), info={"git_commit": "def"}))
    run = load_results("tau2", tmp_path)
    assert run.card.commit == "unknown"
    assert [json.loads(r["extra"])["git_commit"] for r in run.trials.to_pylist()] == ["abc", "def"]
    assert (
        "telecom: the files name several commits of the harness, or none; git_commit is in extra."
        in notes(run)
    )


def test_files_that_are_none(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    assert refused(tmp_path, tmp_path).endswith("holds no results.json, not in its folders either")
    write(file, results())
    assert refused(file, tmp_path) == "results.json: holds no simulations"
    content = results(simulation())
    del content["simulations"]
    write(file, content)
    assert refused(file, tmp_path) == (
        "results.json: has no simulations, and there is no folder simulations beside it"
    )
    write(file, results(simulation(), simulation()))
    assert refused(file, tmp_path) == "results.json: trial 1 of 't' by llm_agent m comes 2 times"
    write(file, results(simulation(agent_cost=-1.0)))
    assert refused(file, tmp_path) == "results.json: task 't', trial 1: -1.0 is no amount of money"
    write(file, results(simulation(messages=[said("assistant", "x", cached=101)])))
    assert (
        refused(file, tmp_path) == "results.json: task 't', trial 1: 101 cached tokens within an input of 100"
    )
    write(file, results({"task_id": "t", "reward_info": None}))
    assert refused(file, tmp_path) == (
        "results.json: Object missing required field `termination_reason` - at `$.simulations[0]`"
    )
    write(file, results(simulation(messages=[{"content": "x"}])))
    assert refused(file, tmp_path) == (
        "results.json: Object missing required field `role` - at `$.simulations[0].messages[0]`"
    )
    file.write_bytes(b'{"info": {}')
    assert refused(file, tmp_path).startswith("results.json: ")


def test_a_model_that_the_caller_names_has_its_trials(tmp_path: Path) -> None:
    """Two simulations of two that were asked for: none is missing because the file does not name the model."""
    content = results(simulation("a"), simulation("b"))
    content["info"]["agent_info"] |= {"llm": None, "implementation": ""}
    run = load(tmp_path, content, model="gpt-4o", driver="mine")
    assert (run.card.counts.asked, run.card.counts.missing) == (2, 0)
    assert {(row["driver"], row["model"]) for row in run.trials.to_pylist()} == {("mine", "gpt-4o")}


def test_the_card_says_that_only_the_failure_of_a_call_is_told(tmp_path: Path) -> None:
    """Also where files of two domains became one run, and after it was written and read back."""
    two = tmp_path / "two"
    write(two / "a" / "results.json", results(simulation(), domain="telecom"))
    write(two / "b" / "results.json", results(simulation(), domain="retail"))
    saved = save_new(load_results("tau2", two, Options(name="new")), tmp_path / "new")
    assert saved.path is not None
    for run in (load(tmp_path, results(simulation())), load_run(saved.path)):
        assert run.card.imported is not None
        assert run.card.imported.statuses == ("tool_error",)
