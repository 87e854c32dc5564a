"""Jobs of Harbor: what has no reward is a 0 of the source's, subagents are counted in, totals stand beside the rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentbench_lab.benchmarks import Options, load_results
from agentbench_lab.benchmarks.harbor.atif import read_trajectory
from agentbench_lab.errors import LabError
from agentbench_lab.results.run import Run, load_run
from agentbench_lab.running.merge import save_new


def trial(task: str, name: str, reward: float | None, **more: Any) -> dict[str, Any]:
    """A trial's result.json."""
    return {
        "id": f"id-{name}",
        "task_name": task,
        "trial_name": name,
        "trial_uri": "file:///x",
        "task_id": {"path": task},
        "source": "terminal-bench@2.0",
        "task_checksum": "c" * 8,
        "config": {"agent": {"name": "terminus-2"}},
        "agent_info": {
            "name": "terminus-2",
            "version": "2.0.0",
            "model_info": {"name": "gpt-5", "provider": "openai"},
        },
        "agent_result": {
            "n_input_tokens": 1000,
            "n_cache_tokens": 600,
            "n_output_tokens": 50,
            "cost_usd": 0.25,
            "metadata": None,
        },
        "verifier_result": None if reward is None else {"rewards": {"reward": reward}},
        "exception_info": None,
        "started_at": "2026-01-01T00:00:00Z",
        "finished_at": "2026-01-01T00:10:00Z",
        "agent_execution": {"started_at": "2026-01-01T00:01:00Z", "finished_at": "2026-01-01T00:05:00.500Z"},
        **more,
    }


def failure(kind: str, message: str = "") -> dict[str, str]:
    return {
        "exception_type": kind,
        "exception_message": message,
        "exception_traceback": "Traceback",
        "occurred_at": "2026-01-01T00:00:00",
    }


def write_job(folder: Path, trials: list[dict[str, Any]], stats: dict[str, Any] | None, **more: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    if stats is not None:
        job = {
            "id": "job",
            "started_at": "2026-01-01T00:00:00",
            "finished_at": "2026-01-01T01:00:00",
            "n_total_trials": len(trials),
            "stats": stats,
            "trial_results": [],
            **more,
        }
        (folder / "result.json").write_text(json.dumps(job), encoding="utf-8")
    for each in trials:
        below = folder / each["trial_name"]
        below.mkdir()
        (below / "result.json").write_text(json.dumps(each), encoding="utf-8")
        (below / "config.json").write_text("{}", encoding="utf-8")
    return folder


def write_trajectory(folder: Path, document: dict[str, Any], name: str = "agent/trajectory.json") -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(document), encoding="utf-8")
    return file


def step(
    source: str = "agent", prompt: int | None = None, cost: float | None = None, **more: Any
) -> dict[str, Any]:
    """A step that read half of its prompt from a cache and wrote a tenth of it."""
    said: dict[str, Any] = {"step_id": 1, "source": source, "message": f"a {source}'s words", **more}
    if prompt is not None:
        said["metrics"] = {
            "prompt_tokens": prompt,
            "cached_tokens": prompt // 2,
            "completion_tokens": prompt // 10,
            "cost_usd": cost,
        }
    return said


def call(name: str, key: str = "c1") -> dict[str, Any]:
    return {"tool_call_id": key, "function_name": name, "arguments": {"cmd": "ls"}}


def trials(run: Run) -> list[dict[str, Any]]:
    return run.trials.to_pylist()


def notes(run: Run) -> tuple[str, ...]:
    assert run.card.imported is not None
    return run.card.imported.notes


def claims(run: Run) -> list[str]:
    assert run.card.imported is not None
    return [str(each) for each in run.card.imported.published]


STATS = {
    "n_completed_trials": 4,
    "n_errored_trials": 2,
    "n_running_trials": 0,
    "cost_usd": 1.0,
    "evals": {
        "terminus-2__gpt-5__terminal-bench@2.0": {
            "n_trials": 3,
            "n_errors": 2,
            "metrics": [{"mean": 0.5}],
            "pass_at_k": {"2": 1.0},
            "reward_stats": {"reward": {"1.0": ["a__1", "b__2"], "0.0": ["a__2"]}},
            "exception_stats": {"AgentTimeoutError": ["a__2"], "RuntimeError": ["b__1"]},
        }
    },
}


def job(folder: Path) -> Path:
    """Two tasks, two trials each: a solved, a out of time; b crashed without a reward, b solved."""
    return write_job(
        folder / "job",
        [
            trial("a", "a__1", 1.0, started_at="2026-01-01T00:02:00Z"),
            trial(
                "a",
                "a__2",
                0.0,
                started_at="2026-01-01T00:01:00Z",
                exception_info=failure("AgentTimeoutError", "360 s\nmore"),
            ),
            trial("b", "b__1", None, exception_info=failure("RuntimeError")),
            trial(
                "b",
                "b__2",
                1,
                agent_info={
                    "name": "terminus-2",
                    "version": "2.0.0",
                    "model_info": {"name": "gpt-5", "provider": "openai"},
                },
            ),
        ],
        STATS,
    )


def test_a_job(tmp_path: Path) -> None:
    run = load_results("harbor", job(tmp_path))
    a1, a2, b1, b2 = trials(run)
    assert [(r["case_id"], r["trial"], r["solved"], r["score"], r["stop"]) for r in (a1, a2, b1, b2)] == [
        ("a", 1, False, 0.0, "timeout"),
        ("a", 2, True, 1.0, "done"),
        ("b", 1, False, None, None),
        ("b", 2, True, 1.0, "done"),
    ]
    assert (a1["driver"], a1["model"], a1["suite"]) == ("terminus-2", "gpt-5", "terminal-bench@2.0")
    assert [r["terminated"] for r in (a1, a2, b1)] == [False, True, None]
    assert (a1["note"], b1["note"]) == ("AgentTimeoutError: 360 s", "RuntimeError")
    assert b1["reasons"] == ["no reward; the source counts that as 0"]
    buckets = ("tokens_fresh_input", "tokens_cache_read", "tokens_cache_write", "tokens_output")
    assert [a1[name] for name in buckets] == [400, 600, 0, 50]
    assert (a1["cost_micros"], a1["wall_s"], a1["steps"], a1["tool_calls"]) == (250_000, 240.5, None, None)
    assert json.loads(b1["extra"]) == {
        "agent_version": "2.0.0",
        "exception": "RuntimeError",
        "provider": "openai",
        "trial_name": "b__1",
        "trial_wall_s": 600.0,
    }
    assert (run.card.counts.judged, run.card.counts.excluded, run.card.counts.missing) == (4, 0, 0)
    assert notes(run) == (
        "1 trial has no reward; the source counts that as 0, so it is judged as not solved.",
        "Input tokens are counted as cached or not; any that were written to a cache are among the fresh ones.",
    )
    assert claims(run) == [
        "terminus-2 gpt-5: mean reward: published 50%, rows give 50% (follows)",
        "terminus-2 gpt-5: pass@2: published 100%, rows give 100% (follows)",
        "trials with a result: published 4 trials, rows give 4 trials (follows)",
        "trials with an exception: published 2 trials, rows give 2 trials (follows)",
        "cost: published $1, rows give $1 (follows)",
    ]


def test_the_job_by_its_file_and_read_back(tmp_path: Path) -> None:
    run = load_results("harbor", job(tmp_path) / "result.json")
    assert run.trials.num_rows == 4
    save_new(run, tmp_path / "run")
    assert load_run(tmp_path / "run").trials.equals(run.trials)


def test_one_trial(tmp_path: Path) -> None:
    below = job(tmp_path) / "a__1"
    for path in (below, below / "result.json"):
        run = load_results("harbor", path)
        assert [(r["case_id"], r["trial"], r["solved"]) for r in trials(run)] == [("a", 1, True)]
        assert claims(run) == []


def test_totals_that_do_not_follow(tmp_path: Path) -> None:
    """A mean without the trial that has no reward would be 2 of 3."""
    folder = job(tmp_path)
    stats = json.loads(json.dumps(STATS))
    stats["evals"]["terminus-2__gpt-5__terminal-bench@2.0"]["metrics"] = [{"mean": 2 / 3}]
    stats["evals"]["other__adhoc"] = {"metrics": [{"mean": 1}, {"custom": "x"}]}
    stats["n_errored_trials"] = 3
    (folder / "result.json").write_text(json.dumps({"n_total_trials": 6, "stats": stats}), encoding="utf-8")
    run = load_results("harbor", folder)
    assert claims(run)[0] == "terminus-2 gpt-5: mean reward: published 66.67%, rows give 50%"
    assert "mean reward of other__adhoc: published 100%, rows do not give it" in claims(run)
    assert "trials with an exception: published 3 trials, rows give 2 trials" in claims(run)
    assert run.card.counts.missing == 2
    assert "4 of 6 trials have a result; the others are missing." in notes(run)


def test_older_counts_and_a_job_that_did_not_end(tmp_path: Path) -> None:
    old = write_job(tmp_path / "old", [trial("a", "a__1", 1.0)], {"n_trials": 1, "n_errors": 0, "evals": {}})
    assert claims(load_results("harbor", old)) == [
        "trials with a result: published 1 trials, rows give 1 trials (follows)",
        "trials with an exception: published 0 trials, rows give 0 trials (follows)",
    ]
    torn = write_job(tmp_path / "torn", [trial("a", "a__1", 1.0)], None)
    (torn / "a__2").mkdir()
    (torn / "a__2" / "config.json").write_text("{}", encoding="utf-8")
    run = load_results("harbor", torn)
    assert run.card.counts.missing == 1
    assert notes(run)[0] == "The job has no result.json of its own: it did not end, and publishes no totals."


def test_trials_within_the_jobs_file(tmp_path: Path) -> None:
    folder = write_job(tmp_path / "job", [], {"evals": {}}, trial_results=[trial("a", "a__1", 0.5)])
    (row,) = trials(load_results("harbor", folder))
    assert (row["solved"], row["score"]) == (False, 0.5)


def test_rewards(tmp_path: Path) -> None:
    rewards: list[tuple[dict[str, float], bool, float]] = [
        ({"reward": 1 - 1e-7}, True, 1 - 1e-7),
        ({"reward": 0.999}, False, 0.999),
        ({"tests": 1.0}, True, 1.0),  # the only one, whatever its name
        ({"style": 0.0, "reward": 1.0}, True, 1.0),
        ({"reward": -1.0}, False, -1.0),
    ]
    rows = [
        trial("a", f"a__{n}", 0, verifier_result={"rewards": each}) for n, (each, _, _) in enumerate(rewards)
    ]
    run = load_results("harbor", write_job(tmp_path / "job", rows, {"evals": {}}))
    assert [(r["solved"], r["score"]) for r in trials(run)] == [
        (solved, score) for _, solved, score in rewards
    ]
    assert json.loads(trials(run)[3]["extra"])["rewards"] == {"style": 0.0, "reward": 1.0}
    several = trial("a", "x", 0, verifier_result={"rewards": {"b": 1.0, "a": 0.0}})
    with pytest.raises(LabError, match=r"several \(a, b\), and none is named reward"):
        load_results("harbor", write_job(tmp_path / "other", [several], {"evals": {}}))


def test_unknown_stays_null(tmp_path: Path) -> None:
    bare = {
        "agent_result": None,
        "agent_execution": None,
        "agent_info": {"name": "nop", "version": "1"},
        "source": None,
    }
    half = {"agent_result": {"n_input_tokens": 10, "n_output_tokens": 1, "cost_usd": 0.0000015}}
    folder = write_job(tmp_path / "job", [trial("a", "a__1", 0, **bare)], {"evals": {}})
    (row,) = trials(load_results("harbor", folder, Options(model="known")))
    assert (row["model"], row["suite"], row["wall_s"], row["stop"]) == ("known", "harbor", None, None)
    assert {row[name] for name in row if name.startswith("tokens_") and name != "tokens_estimated"} == {None}
    assert (row["cost_micros"], row["model_calls"]) == (None, None)
    folder = write_job(tmp_path / "half", [trial("a", "a__1", 0, **half)], {"evals": {}})
    run = load_results("harbor", folder)
    assert [note[:40] for note in notes(run)] == ["1 trial tells its input tokens only as a"]
    (row,) = trials(run)
    # Which of the 10 came from a cache is not told; 1.5 micros of a dollar are no whole number.
    assert (row["tokens_fresh_input"], row["tokens_cache_read"], row["tokens_output"]) == (None, None, 1)
    extra = json.loads(row["extra"])
    assert (extra["tokens_input_total"], extra["cost_usd"], row["cost_micros"]) == (10, 0.0000015, 2)


def test_steps_of_a_task_are_summed(tmp_path: Path) -> None:
    parts = [
        {"agent_result": {"n_input_tokens": 10, "n_cache_tokens": n, "n_output_tokens": 1}} for n in (4, 5)
    ]
    rows = [
        trial("a", "a__1", 1, agent_result=None, step_results=parts),
        trial("a", "a__2", 1, agent_result=None, step_results=[*parts, {"agent_result": None}]),
    ]
    first, second = trials(load_results("harbor", write_job(tmp_path / "job", rows, {"evals": {}})))
    assert (first["tokens_fresh_input"], first["tokens_cache_read"], first["tokens_output"]) == (11, 9, 2)
    assert (second["tokens_fresh_input"], second["tokens_output"]) == (None, None)


def test_several_data_sets_and_agents(tmp_path: Path) -> None:
    other = {"name": "codex", "version": "1", "model_info": {"name": "openai/gpt-5", "provider": "x"}}
    rows = [
        trial("a", "a__1", 1),
        trial("a", "a__2", 0, source="other"),
        trial("a", "a__3", 1, agent_info=other),
        trial("b", "b__1", 1, config={"agent": {"name": "terminus-2", "kwargs": {"x": 1}}}),
    ]
    stats = {"evals": {"codex__openai/gpt-5__terminal-bench@2.0": {"metrics": [{"mean": 1.0}]}}}
    run = load_results("harbor", write_job(tmp_path / "job", rows, stats))
    assert [(r["case_id"], r["group"], r["driver"], r["trial"]) for r in trials(run)] == [
        ("terminal-bench@2.0/a", "terminal-bench@2.0", "terminus-2", 1),
        ("terminal-bench@2.0/a", "terminal-bench@2.0", "codex", 1),
        ("other/a", "other", "terminus-2", 1),
        ("terminal-bench@2.0/b", "terminal-bench@2.0", "terminus-2", 1),
    ]
    assert "terminus-2 gpt-5 ran with 2 different configurations; they are one arm here." in notes(run)
    assert claims(run) == [
        "codex openai/gpt-5: mean reward on terminal-bench@2.0: published 100%, rows give 100% (follows)"
    ]


# ---- trajectories ---------------------------------------------------------------------------------------------------


def test_a_trajectory_gives_what_the_result_leaves_out(tmp_path: Path) -> None:
    folder = write_job(tmp_path / "job", [trial("a", "a__1", 1, agent_result=None)], {"evals": {}})
    seen = {"results": [{"source_call_id": "c1", "content": "file"}]}
    steps = [
        step("user"),
        step(prompt=100, cost=0.1, tool_calls=[call("bash"), call("bash", "c2")], observation=seen),
        step(prompt=200, cost=0.2),
    ]
    write_trajectory(folder / "a__1", {"schema_version": "ATIF-v1.6", "steps": steps})
    run = load_results("harbor", folder)
    (row,) = trials(run)
    assert (row["steps"], row["model_calls"], row["tool_calls"], row["tool_errors"]) == (2, 2, 2, None)
    assert (row["tokens_fresh_input"], row["tokens_cache_read"], row["tokens_output"]) == (150, 150, 30)
    assert row["cost_micros"] == 300_000
    assert run.calls.num_rows == 0  # ATIF does not say which calls failed
    (said,) = run.transcripts.to_pylist()
    messages = json.loads(said["messages"])
    assert [m["role"] for m in messages] == ["user", "agent", "agent"]
    assert messages[1]["tool_calls"][0] == {"id": "c1", "name": "bash", "arguments": {"cmd": "ls"}}
    assert messages[1]["observed"] == [{"id": "c1", "content": "file"}]


def test_subagents_are_counted_in_once(tmp_path: Path) -> None:
    """Tokens of a total are those of its own steps; its cost has the subagents in it."""
    inner = {"steps": [step(prompt=40, cost=0.04)]}
    child = {
        "steps": [step(prompt=20, cost=0.02, tool_calls=[call("grep")])],
        "subagent_trajectories": [inner],
    }
    told = {
        "total_prompt_tokens": 100,
        "total_cached_tokens": 50,
        "total_completion_tokens": 10,
        "total_cost_usd": 0.16,
    }
    by_steps = {
        "steps": [step(prompt=100, cost=0.1)],
        "final_metrics": told,
        "subagent_trajectories": [child],
    }
    by_total = {"steps": [step()], "final_metrics": told, "subagent_trajectories": [child]}
    for number, document in enumerate((by_steps, by_total)):
        found = read_trajectory(write_trajectory(tmp_path / str(number), document))
        counts = found.counts
        assert (counts.prompt, counts.cached, counts.completion) == (160, 80, 16)
        assert counts.cost == pytest.approx(0.16)
        assert (found.trajectories, found.tool_calls) == (3, 1)
    assert found.model_calls is None  # the step without metrics does not say whether it asked a model


def test_subagents_that_the_result_leaves_out(tmp_path: Path) -> None:
    folder = write_job(
        tmp_path / "job", [trial("a", "a__1", 1), trial("b", "b__1", 1)], {"evals": {}, "cost_usd": 0.5}
    )
    child = {"steps": [step(prompt=500, cost=0.05)]}
    document = {"steps": [step(prompt=1000, cost=0.25)], "subagent_trajectories": [child]}
    write_trajectory(folder / "a__1", document, "trajectory.json")
    write_trajectory(folder / "b__1", {"steps": [step(prompt=900, cost=0.2)]})
    run = load_results("harbor", folder)
    a, b = trials(run)
    # b has no subagents: its own result stands, whatever its trajectory adds up to.
    assert (a["cost_micros"], b["cost_micros"]) == (300_000, 250_000)
    assert (a["tokens_fresh_input"] + a["tokens_cache_read"], a["tokens_output"]) == (1500, 150)
    assert (b["tokens_fresh_input"], b["tokens_output"]) == (400, 50)
    assert "1 of the trials count in tokens or cost of subagents that their own result leaves out." in notes(
        run
    )
    assert claims(run) == ["cost: published $0.5, rows give $0.5 (follows)"]


def test_copied_context_is_not_counted_again(tmp_path: Path) -> None:
    copied = [
        step("user", is_copied_context=True),
        step(prompt=100, cost=0.1, is_copied_context=True, tool_calls=[call("x")]),
    ]
    found = read_trajectory(write_trajectory(tmp_path, {"steps": [*copied, step(prompt=30, cost=0.03)]}))
    assert (found.counts.prompt, found.counts.cost, found.steps, found.model_calls, found.tool_calls) == (
        30,
        0.03,
        1,
        1,
        0,
    )


def test_files_beside_a_trajectory(tmp_path: Path) -> None:
    ref = {"results": [{"subagent_trajectory_ref": [{"trajectory_path": "trajectory.helper.json"}]}]}
    root = {
        "steps": [step(prompt=100, cost=0.1, observation=ref)],
        "continued_trajectory_ref": "trajectory.cont-1.json",
    }
    again = {"steps": [step(prompt=100, cost=0.1, is_copied_context=True), step(prompt=10, cost=0.01)]}
    file = write_trajectory(tmp_path, root)
    torn = read_trajectory(file)
    assert (torn.whole, torn.counts.prompt, torn.model_calls) == (False, None, None)
    write_trajectory(tmp_path, again, "agent/trajectory.cont-1.json")
    write_trajectory(tmp_path, {"steps": [step(prompt=7, cost=0.007)]}, "agent/trajectory.helper.json")
    found = read_trajectory(file)
    assert (found.whole, found.counts.prompt, found.model_calls, found.steps) == (True, 117, 3, 2)
    assert found.counts.cost == pytest.approx(0.117)
    assert len(found.files) == 3
    # One that names itself is read once.
    loop = write_trajectory(tmp_path, {**root, "continued_trajectory_ref": "trajectory.json"})
    assert read_trajectory(loop).counts.prompt == 107


def test_a_name_that_no_file_can_have_is_not_there(tmp_path: Path) -> None:
    found = read_trajectory(
        write_trajectory(tmp_path, {"steps": [step(prompt=1)], "continued_trajectory_ref": "x" * 400})
    )
    assert not found.whole


def test_subagents_of_subagents_lie_as_deep_as_they_like(tmp_path: Path) -> None:
    """1,500 files, each naming the next, of 1 token and $0.001 each."""
    for number in range(1_500):
        ref = {"subagent_trajectory_ref": [{"trajectory_path": f"t{number + 1}.json"}]}
        last = {} if number == 1_499 else {"observation": {"results": [ref]}}
        write_trajectory(tmp_path, {"steps": [{**step(prompt=1, cost=0.001), **last}]}, f"t{number}.json")
    counts = read_trajectory(tmp_path / "t0.json").counts
    assert counts.prompt == 1_500
    assert counts.cost == pytest.approx(1.5)


def test_a_trajectory_that_is_torn_leaves_counts_unknown(tmp_path: Path) -> None:
    folder = write_job(tmp_path / "job", [trial("a", "a__1", 1, agent_result=None)], {"evals": {}})
    write_trajectory(folder / "a__1", {"steps": [step(prompt=1)], "continued_trajectory_ref": "gone.json"})
    run = load_results("harbor", folder)
    assert [trials(run)[0][name] for name in ("tokens_output", "tool_calls", "model_calls")] == [None] * 3
    assert "1 trajectories name files that are not there; their counts are left unknown." in notes(run)


# ---- what is refused ------------------------------------------------------------------------------------------------


def test_bad_folders(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(LabError, match="neither a job of Harbor nor a trial"):
        load_results("harbor", tmp_path / "empty")
    job(tmp_path / "jobs")
    with pytest.raises(LabError, match=r"holds jobs \(job\); import each by itself"):
        load_results("harbor", tmp_path / "jobs")
    twice = write_job(
        tmp_path / "twice", [trial("a", "a__1", 1), trial("a", "a__2", 1, id="id-a__1")], {"evals": {}}
    )
    with pytest.raises(LabError, match="trial id-a__1 is there 2 times"):
        load_results("harbor", twice)


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no agent": ({"agent_info": None}, r"\$.agent_info"),
    "negative tokens": ({"agent_result": {"n_input_tokens": -1}}, "n_input_tokens"),
    "more cached than input": (
        {"agent_result": {"n_input_tokens": 1, "n_cache_tokens": 2}},
        "2 cached tokens within an input of 1",
    ),
    "negative cost": ({"agent_result": {"cost_usd": -0.1}}, "cost_usd"),
    "a reward that is no number": ({"verifier_result": {"rewards": {"reward": "1"}}}, "rewards"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_trials(tmp_path: Path, name: str) -> None:
    more, message = BAD[name]
    folder = write_job(tmp_path / "job", [trial("a", "a__1", 1) | more], {"evals": {}})
    with pytest.raises(LabError, match=message) as caught:
        load_results("harbor", folder)
    assert "a__1/result.json" in str(caught.value)


def test_a_bad_trajectory(tmp_path: Path) -> None:
    folder = write_job(tmp_path / "job", [trial("a", "a__1", 1)], {"evals": {}})
    write_trajectory(folder / "a__1", {"steps": [{"message": "no source"}]})
    with pytest.raises(LabError, match=r"trajectory.json: .*source.* at `\$.steps\[0\]`"):
        load_results("harbor", folder)


WHOLE = {
    "job": {"n_total_trials": 1, "started_at": "x", "stats": STATS, "trial_results": []},
    "trial": trial("a", "a__1", 1.0, step_results=[], exception_info=failure("X", "y")),
    "trajectory": {
        "steps": [
            step(prompt=10, cost=0.1, tool_calls=[call("x")], observation={"results": [{"content": "x"}]})
        ],
        "final_metrics": {"total_prompt_tokens": 1, "total_cost_usd": 0.5},
        "subagent_trajectories": [{"steps": [step(prompt=10, cost=0.1)]}],
    },
}
