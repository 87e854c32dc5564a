"""tau-bench: episodes as trials, the three ways they end, calls with what came back, text calls of act and react."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentbench_lab.benchmarks import Options, load_results
from agentbench_lab.errors import LabError
from agentbench_lab.results.run import Run, load_run
from agentbench_lab.running.merge import save_new

TASK = {
    "user_id": "ann",
    "actions": [{"name": "book", "kwargs": {"seat": "1a"}}],
    "instruction": "Book seat 1a.",
    "outputs": ["12"],
}


def call(name: str, arguments: str, ident: str = "c1") -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": ident, "type": "function", "function": function}],
    }


def result(content: str, ident: str = "c1") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": ident, "name": "any", "content": content}


def dialogue(*middle: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"role": "system", "content": "# Airline Agent Policy\n\nBe kind."},
        {"role": "user", "content": "Hello"},
        *middle,
    ]


def episode(task_id: int = 0, trial: int = 0, reward: float = 1.0, **more: Any) -> dict[str, Any]:
    info = {
        "task": TASK,
        "source": "user",
        "user_cost": 0.25,
        "reward_info": {"reward": reward, "info": {"r_actions": reward, "gt_data_hash": "0"}, "actions": []},
    }
    messages = dialogue(
        call("find", '{"seat": "1a"}'),
        result("Error: taken"),
        call("book", '{"seat": "1b"}'),
        result('{"ok": true}'),
        {"role": "assistant", "content": "Done"},
        {"role": "user", "content": "###STOP###"},
    )
    return {"task_id": task_id, "reward": reward, "info": info, "traj": messages, "trial": trial, **more}


def unfinished(task_id: int = 0, trial: int = 0) -> dict[str, Any]:
    info = {"task": TASK, "source": "user", "user_cost": None, "reward_info": None}
    return episode(task_id, trial, 0.0, info=info)


def failed(task_id: int = 0, trial: int = 0) -> dict[str, Any]:
    return episode(task_id, trial, 0.0, info={"error": "rate limit", "traceback": "Traceback ..."}, traj=[])


def load(folder: Path, episodes: Any, **options: str) -> Run:
    file = folder / "airline.json"
    file.write_text(json.dumps(episodes), encoding="utf-8")
    return load_results("tau-bench", file, Options(**options))


def refused(folder: Path, episodes: Any) -> str:
    with pytest.raises(LabError) as caught:
        load(folder, episodes)
    return str(caught.value).replace(f"{folder}/", "")


def notes(run: Run) -> tuple[str, ...]:
    assert run.card.imported is not None
    return run.card.imported.notes


def test_an_episode_becomes_a_trial(tmp_path: Path) -> None:
    """One call of two came back as an error; the user's cost is not the agent's; trials count from 1."""
    run = load(tmp_path, [episode()], driver="tool-calling", model="gpt-4o")
    row = run.trials.to_pylist()[0]
    want = {
        "suite": "tau-bench-airline",
        "case_id": "0",
        "driver": "tool-calling",
        "model": "gpt-4o",
        "trial": 1,
        "evidence": "imported",
        "solved": True,
        "score": 1.0,
        "stop": "done",
        "terminated": True,
        "steps": 3,
        "model_calls": 3,
        "tool_calls": 2,
        "tool_errors": 1,
        "cost_micros": None,
        "tokens_output": None,
        "wall_s": None,
        "note": None,
        "extra": '{"ended_by":"user","user_cost_usd":0.25}',
    }
    assert {name: row[name] for name in want} == want
    calls = run.calls.to_pylist()
    assert [(c["step"], c["name"], c["input"], c["status"], c["observed"]) for c in calls] == [
        (1, "find", '{"seat":"1a"}', "tool_error", "Error: taken"),
        (2, "book", '{"seat":"1b"}', "ok", '{"ok": true}'),
    ]
    case = run.cases.to_pylist()[0]
    assert case["request"] == "Book seat 1a."
    assert json.loads(case["expectation"]) == {"actions": TASK["actions"], "outputs": ["12"]}
    messages = json.loads(run.transcripts.to_pylist()[0]["messages"])
    assert [message["role"] for message in messages] == [
        *("system", "user", "assistant", "tool", "assistant", "tool", "assistant", "user")
    ]
    assert messages[2]["tool_calls"][0]["function"]["name"] == "find"
    assert notes(run) == (
        "The cost of the agent is not in the file; that of the simulated user is in extra, user_cost_usd.",
    )


def test_unfinished_and_failed_episodes_are_not_solved(tmp_path: Path) -> None:
    """Neither is excluded by tau-bench, so neither is here; of a failed one nothing is known but the error."""
    run = load(tmp_path, [episode(), unfinished(0, 1), failed(1, 0), failed(1, 1)])
    rows = run.trials.to_pylist()
    assert [(r["solved"], r["stop"], r["terminated"], r["excluded"]) for r in rows] == [
        (True, "done", True, None),
        (False, "budget", False, None),
        (False, None, None, None),
        (False, None, None, None),
    ]
    assert rows[1]["note"] == "out of steps: the dialogue was not finished, so that nothing was rewarded"
    assert rows[2]["note"] == "the harness failed: rate limit"
    assert (rows[2]["tool_calls"], rows[2]["steps"], rows[2]["model_calls"]) == (None, None, None)
    assert run.cases.column("request").to_pylist() == ["Book seat 1a.", ""]
    assert notes(run) == (
        "The file names neither agent nor model (--driver NAME, --model NAME).",
        "The cost of the agent is not in the file; that of the simulated user is in extra, user_cost_usd.",
        "Out of steps, and not solved as tau-bench counts: 1 of 4 episodes.",
        "An error of the harness, and not solved as tau-bench counts: 2 of 4 episodes.",
    )


@pytest.mark.parametrize(
    ("reward", "solved"),
    [(1.0, True), (1, True), (0.9999995, True), (0.999, False), (0.5, False), (2.0, False)],
)
def test_a_reward_within_a_millionth_of_one_is_a_success(tmp_path: Path, reward: float, solved: bool) -> None:
    row = load(tmp_path, [episode(reward=reward)]).trials.to_pylist()[0]
    assert (row["solved"], row["score"]) == (solved, float(reward))


def test_calls_and_their_results(tmp_path: Path) -> None:
    """Unknown tools, arguments that are no JSON, several calls in one message, a call that nothing answers."""
    two = call("a", "{}")
    two["tool_calls"] += call("b", "{}", "c2")["tool_calls"]
    messages = dialogue(
        call("fly", "{}"),
        result("Unknown action fly"),
        call("book", '{"seat": '),
        result("Error: bad arguments"),
        two,
        result("first"),
        result("Error: second", "c2"),
        {"role": "assistant", "content": "API output: is no call of mine"},
        {"role": "user", "content": "ok"},
        call("late", "{}"),
    )
    run = load(tmp_path, [episode(traj=messages)])
    assert [(c["name"], c["input"], c["status"]) for c in run.calls.to_pylist()] == [
        ("fly", "{}", "undeclared"),
        ("book", '"{\\"seat\\": "', "malformed"),
        ("a", "{}", "ok"),
        ("b", "{}", "tool_error"),
    ]
    row = run.trials.to_pylist()[0]
    assert (row["tool_calls"], row["tool_errors"]) == (4, 3)
    assert json.loads(row["extra"])["calls_without_result"] == 1
    assert "Calls that have no result in their dialogue, and are not counted: 1." in notes(run)


def test_calls_written_as_text(tmp_path: Path) -> None:
    """The strategies act and react: the action stands in the reply, its output in the next message."""

    def says(content: str) -> dict[str, Any]:
        return {"role": "assistant", "content": content}

    def hears(content: str) -> dict[str, Any]:
        return {"role": "user", "content": content}

    messages = dialogue(
        says('Thought:\nlook\nAction:\n{"name": "find", "arguments": {"seat": "1a"}}'),
        hears('API output: {"free": true}'),
        says('Action:\n{"name": "book", "arguments": {}}'),
        hears("API output: Error: seat is missing"),
        says('Action:\n{"name": "respond", "arguments": {"content": "Sorry"}}'),
        hears("Why?"),
        says("Action:\nno JSON, so it is said to the user"),
        hears("###STOP###"),
    )
    run = load(tmp_path, [episode(traj=messages)])
    assert [(c["name"], c["input"], c["status"], c["observed"]) for c in run.calls.to_pylist()] == [
        ("find", '{"seat":"1a"}', "ok", '{"free": true}'),
        ("book", "{}", "tool_error", "Error: seat is missing"),
    ]
    assert run.trials.column("steps").to_pylist() == [4]


def test_the_domain_is_read_off_the_policy(tmp_path: Path) -> None:
    def opening(content: Any) -> dict[str, Any]:
        return episode(traj=[{"role": "system", "content": content}])

    def suite(*episodes: dict[str, Any], **options: str) -> str:
        numbered = [{**each, "trial": at} for at, each in enumerate(episodes)]
        return load(tmp_path, numbered, **options).card.suites[0].name

    assert suite(opening("# Retail agent policy\nAs a ...")) == "tau-bench-retail"
    assert suite(opening("# Retail agent policy"), opening("# Airline Agent Policy")) == "tau-bench"
    assert suite(opening("You are helpful"), failed()) == "tau-bench"
    assert suite(opening("# Airline Agent Policy"), failed()) == "tau-bench-airline"
    assert suite(opening(None)) == "tau-bench"
    assert suite(opening("# Airline Agent Policy"), suite="mine") == "mine"


def test_trials_that_are_not_there_are_missing(tmp_path: Path) -> None:
    """A run that was cut short: task 1 has one of two trials."""
    run = load(tmp_path, [episode(0, 0), episode(1, 0), episode(0, 1)], name="r")
    counts = run.card.counts
    assert (counts.asked, counts.judged, counts.missing) == (4, 3, 1)
    assert any(
        note.startswith("Some tasks have fewer trials than others; missing: 1.") for note in notes(run)
    )
    assert run.trials.column("case_id").to_pylist() == ["0", "0", "1"]
    save_new(run, tmp_path / "r")
    assert load_run(tmp_path / "r").trials.equals(run.trials)


def without(key: str) -> dict[str, Any]:
    return {name: value for name, value in episode().items() if name != key}


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ([], "airline.json: holds no episodes"),
        ({}, "airline.json: Expected `array`, got `object`"),
        ([without("reward")], "airline.json: Object missing required field `reward` - at `$[0]`"),
        ([episode(), without("traj")], "airline.json: Object missing required field `traj` - at `$[1]`"),
        ([episode(), episode()], "airline.json: trial 1 of '0' by unknown comes 2 times"),
        ([episode(trial=-1)], "airline.json: $[0].trial is -1; trials count from 0 there"),
        ([episode(trial=2**40)], "airline.json: trials: Value 1099511627777 too large to fit in C integer type"),
        (
            [episode(), episode(trial=1, info={**episode()["info"], "task": {**TASK, "outputs": []}})],
            "airline.json: $[1].info.task is another than that of task 0 before",
        ),
    ],
)  # fmt: skip
def test_files_that_are_none(tmp_path: Path, content: Any, why: str) -> None:
    assert refused(tmp_path, content) == why


def test_a_file_that_is_cut_off(tmp_path: Path) -> None:
    (tmp_path / "airline.json").write_text('[\n{"task_id": 0,\n', encoding="utf-8")
    with pytest.raises(LabError, match=r"airline\.json: Input data was truncated"):
        load_results("tau-bench", tmp_path / "airline.json")
    (tmp_path / "airline.json").write_text('[\n{"task_id": 0,,\n', encoding="utf-8")
    with pytest.raises(LabError, match=r"airline\.json:2: JSON is malformed"):
        load_results("tau-bench", tmp_path / "airline.json")
    with pytest.raises(LabError, match="is a folder; name the file in it"):
        load_results("tau-bench", tmp_path)


def test_columns_are_named_for_tables_only(tmp_path: Path) -> None:
    file = tmp_path / "airline.json"
    file.write_text(json.dumps([episode()]), encoding="utf-8")
    with pytest.raises(
        LabError, match=r"--map names columns for tables \(csv, jsonl, parquet\), and for inspect the scorer"
    ):
        load_results("tau-bench", file, Options(columns={"solved": "reward"}))


def test_the_card_says_which_kinds_of_failed_calls_are_told(tmp_path: Path) -> None:
    """Of wrong arguments tau-bench says no more than of any error; a kind that is met all the same is told."""
    run = load(tmp_path, [episode()])
    assert run.card.imported is not None
    assert run.card.imported.statuses == ("tool_error", "undeclared")
    run = load(tmp_path, [episode(traj=dialogue(call("find", "{"), result("x")))])
    assert run.card.imported is not None
    assert run.card.imported.statuses == ("tool_error", "undeclared", "malformed")
