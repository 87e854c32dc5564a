"""Files of HAL's harness: the source's own verdict, usage by task in every dialect, totals beside the rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentbench_lab.benchmarks import Options, load_results
from agentbench_lab.errors import LabError
from agentbench_lab.results.run import Run, load_run
from agentbench_lab.running.merge import save_new


def upload(raw: Any, results: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    config = {
        "agent_name": "generalist",
        "benchmark_name": "gaia",
        "date": "2025-06-01",
        "run_id": "gaia_generalist_1",
        "agent_args": {"model_name": "gpt-4o", "budget": 1},
        "run_command": "hal-eval",
        "prompt_sensitivity": False,
        **more.pop("config", {}),
    }
    return {
        "config": config,
        "results": {"total_cost": 1.25, "latencies": {}, **(results or {})},
        "raw_eval_results": raw,
        "raw_logging_results": {},
        "total_usage": {"gpt-4o": {"prompt_tokens": 10, "completion_tokens": 1}},
        "total_cost": 1.25,
        "git_info": {"commit": "abc"},
        "wall_clock_times": {},
        "task_step_counts": {},
        **more,
    }


def write(folder: Path, document: Any, name: str = "gaia_generalist_1") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}_UPLOAD.json"
    file.write_text(json.dumps(document), encoding="utf-8")
    return file


def trials(run: Run) -> list[dict[str, Any]]:
    return run.trials.to_pylist()


def notes(run: Run) -> tuple[str, ...]:
    assert run.card.imported is not None
    return run.card.imported.notes


def claims(run: Run) -> list[str]:
    assert run.card.imported is not None
    return [str(each) for each in run.card.imported.published]


def buckets(row: dict[str, Any]) -> list[int | None]:
    names = ("tokens_fresh_input", "tokens_cache_read", "tokens_cache_write", "tokens_output", "model_calls")
    return [row[name] for name in names]


GAIA = upload(
    {"t1": {"score": True, "explanation": "right"}, "t2": {"score": False}, "t3": {"score": 0}},
    {
        "accuracy": 1 / 3,
        "level_1_accuracy": 0.1,
        "level_2_accuracy": None,
        "successful_tasks": ["t1"],
        "failed_tasks": ["t2", "t3"],
        "latencies": {
            "t1": {"first_call_timestamp": "x", "last_call_timestamp": "y", "total_time": 12.5},
            "t2": {"total_time": 3},
        },
    },
    task_prompts={"t1": "Who?"},
    task_step_counts={"t1": 7},
    wall_clock_times={"t2": 30.0},
)


def test_a_file(tmp_path: Path) -> None:
    run = load_results("hal", write(tmp_path, GAIA))
    t1, t2, t3 = trials(run)
    assert (t1["suite"], t1["driver"], t1["model"], t1["evidence"]) == (
        "gaia",
        "generalist",
        "gpt-4o",
        "imported",
    )
    assert [(r["case_id"], r["trial"], r["solved"], r["score"]) for r in (t1, t2, t3)] == [
        ("t1", 1, True, None),
        ("t2", 1, False, None),
        ("t3", 1, False, 0.0),
    ]
    assert [(r["wall_s"], r["steps"]) for r in (t1, t2, t3)] == [(12.5, 7), (30.0, None), (None, None)]
    # The file has the cost and usage of the run as a whole, not of its tasks.
    assert {r["cost_micros"] for r in (t1, t2, t3)} == {None}
    assert buckets(t1) == [None] * 5
    assert run.cases.to_pylist()[0]["request"] == "Who?"
    assert (run.card.commit, run.card.counts.judged) == ("abc", 3)
    assert claims(run) == [
        "generalist gpt-4o: accuracy: published 33.33%, rows give 33.33% (follows)",
        "generalist gpt-4o: accuracy on level 1: published 10%, rows do not give it (of all tasks of the level, also"
        " those without an output)",
        "generalist gpt-4o: cost: published $1.25, rows do not give it (the file has no cost of single tasks)",
    ]
    save_new(run, tmp_path / "run")
    assert load_run(tmp_path / "run").trials.equals(run.trials)


def test_levels_where_the_tasks_name_theirs(tmp_path: Path) -> None:
    raw = {"a": {"score": 1, "level": 1}, "b": {"score": 0, "Level": "1"}, "c": {"score": 1, "level": 2}}
    run = load_results(
        "hal", write(tmp_path, upload(raw, {"level_1_accuracy": 0.5, "level_2_accuracy": 0.5}))
    )
    assert [r["group"] for r in trials(run)] == ["level 1", "level 1", "level 2"]
    first, second, _ = claims(run)
    assert "level 1: published 50%, rows give 50% (follows)" in first
    assert "level 2: published 50%, rows give 100% (of all tasks" in second


SHAPES: dict[str, tuple[Any, dict[str, Any], dict[str, tuple[bool, float | None]]]] = {
    "verdicts": ({"a": True, "b": False}, {}, {"a": (True, None), "b": (False, None)}),
    "numbers": (
        {"a": 1, "b": 0.5, "c": 0.9999999},
        {},
        {"a": (True, 1), "b": (False, 0.5), "c": (True, 0.9999999)},
    ),
    "rewards": ({"0": {"reward": 1.0}, "1": {"reward": 0}}, {}, {"0": (True, 1), "1": (False, 0)}),
    "an error's text, failed": (
        {"0": {"reward": 1.0}, "1": "ERROR: crashed"},
        {"successful_tasks": ["0"], "failed_tasks": ["1"]},
        {"0": (True, 1), "1": (False, None)},
    ),
    "USACO": (
        {
            "sdict": {
                "a": [{"result": {"fraction_passed": "1.0"}}],
                "b": [{"result": {"fraction_passed": 0.25}}],
            },
            "rs": [1],
        },
        {},
        {"a": (True, 1), "b": (False, 0.25)},
    ),
    "SciCode": (
        {"details": {"a": ["a.1", "a.2"], "b": []}},
        {"successful_tasks": ["a"], "failed_tasks": ["b"]},
        {"a": (True, None), "b": (False, None)},
    ),
    "a SWE-bench report": (
        {
            "total_instances": 3,
            "resolved_ids": ["a"],
            "unresolved_ids": ["b"],
            "error_ids": [],
            "resolved_instances": 1,
        },
        {"successful_tasks": ["a"], "failed_tasks": ["b"]},
        {"a": (True, None), "b": (False, None)},
    ),
    "CORE-Bench": (
        {
            "a": {"correct_written_answers": 2, "total_written_questions": 2},
            "b": {"correct_written_answers": 0},
        },
        {"successful_tasks": ["a"], "failed_tasks": ["b"]},
        {"a": (True, None), "b": (False, None)},
    ),
    "a log that is not by task": (
        {"status": "success", "version": 2},
        {"successful_tasks": [1], "failed_tasks": [2]},
        {"1": (True, None), "2": (False, None)},
    ),
    "a threshold of the source's own": (
        {"a": 0.85, "b": 0.7},
        {"successful_tasks": ["a"], "failed_tasks": ["b"]},
        {"a": (True, 0.85), "b": (False, 0.7)},
    ),
}


@pytest.mark.parametrize("name", SHAPES)
def test_shapes(tmp_path: Path, name: str) -> None:
    raw, results, expected = SHAPES[name]
    run = load_results("hal", write(tmp_path, upload(raw, results)))
    assert {r["case_id"]: (r["solved"], r["score"]) for r in trials(run)} == expected
    assert bool(notes(run)) is ("threshold" in name)


def test_prompt_variations_are_trials(tmp_path: Path) -> None:
    """The source's lists are of means over them, and say nothing of one; so do times and tokens."""
    raw = {"a": [{"score": 1}, {"score": 0, "reward": 1}, {"reward": 1}], "b": [{"score": 1}]}
    document = upload(raw, {"successful_tasks": ["a", "b"]}, wall_clock_times={"a": 9.0, "b": 4.0})
    run = load_results("hal", write(tmp_path, document))
    assert [(r["case_id"], r["trial"], r["solved"], r["wall_s"]) for r in trials(run)] == [
        ("a", 1, True, None),
        ("a", 2, False, None),
        ("a", 3, True, None),
        ("b", 1, True, 4.0),
    ]
    assert notes(run) == ("With several results (prompt variations), each a trial: 1 task.",)


def test_an_accuracy_over_all_tasks_does_not_follow(tmp_path: Path) -> None:
    """50 tasks in the benchmark, 2 of them run."""
    document = upload({"0": {"reward": 1.0}, "1": {"reward": 0.0}}, {"accuracy": 1 / 50})
    run = load_results("hal", write(tmp_path, document))
    assert claims(run)[0] == (
        "generalist gpt-4o: accuracy: published 2%, rows give 50%"
        " (the source may divide by all tasks of the benchmark, or add up part scores)"
    )


# ---- usage ----------------------------------------------------------------------------------------------------------

OPENAI = {"prompt_tokens": 100, "completion_tokens": 10, "prompt_tokens_details": {"cached_tokens": 60}}
ANTHROPIC = {
    "input_tokens": 5,
    "cache_read_input_tokens": 50,
    "cache_creation_input_tokens": 20,
    "output_tokens": 7,
}
USAGES: dict[str, tuple[list[dict[str, Any]], list[int | None], int | None]] = {
    "OpenAI counts cached tokens within": ([OPENAI], [40, 60, 0, 10, 1], None),
    "Anthropic counts them beside": ([ANTHROPIC], [5, 50, 20, 7, 1], None),
    "a router that counts both within": (
        [
            {
                "prompt_tokens": 75,
                "completion_tokens": 7,
                "cache_read_input_tokens": 50,
                "cache_creation_input_tokens": 20,
            }
        ],
        [5, 50, 20, 7, 1],
        None,
    ),
    "Bedrock": (
        [{"inputTokens": 5, "cacheReadInputTokens": 1, "cacheWriteInputTokens": 2, "outputTokens": 3}],
        [5, 1, 2, 3, 1],
        None,
    ),
    "OpenAI's other interface": (
        [{"input_tokens": 9, "input_tokens_details": {"cached_tokens": 4}, "output_tokens": 1}],
        [5, 4, 0, 1, 1],
        None,
    ),
    "calls add up": ([OPENAI, ANTHROPIC], [45, 110, 20, 17, 2], None),
    "what was cached is not told": (
        [{"prompt_tokens": 8, "completion_tokens": 2}] * 2,
        [None, None, None, 4, 2],
        16,
    ),
    "one call does not tell of its output": (
        [OPENAI, {"prompt_tokens": 8}],
        [None, None, None, None, 2],
        108,
    ),
}


@pytest.mark.parametrize("name", USAGES)
@pytest.mark.parametrize("form", ["by task", "calls"])
def test_usage(tmp_path: Path, name: str, form: str) -> None:
    usages, expected, total = USAGES[name]
    logs: Any
    if form == "by task":
        calls = [{"usage": usage, "started_at": None, "ended_at": None} for usage in usages]
        logs = {
            "t1": {"messages": [{"role": "user", "content": "Who?"}], "call_metadata": calls, "model": "m"}
        }
    else:
        logs = [
            {"id": f"c{n}", "parent_id": "p", "weave_task_id": "t1", "output": {"usage": usage}}
            for n, usage in enumerate(usages)
        ]
    run = load_results("hal", write(tmp_path, upload({"t1": True}, raw_logging_results=logs)))
    (row,) = trials(run)
    assert buckets(row) == expected
    assert json.loads(row["extra"]).get("tokens_input_total") == total
    assert len(notes(run)) == (total is not None)
    assert run.transcripts.num_rows == (form == "by task")


def test_nested_calls_are_counted_once(tmp_path: Path) -> None:
    """Weave sums up: the agent's call has the usage of the two below it, and a wrapper the same as what it wraps."""
    summed = {"summary": {"usage": {"m": {"prompt_tokens": 16, "completion_tokens": 4, "requests": 2}}}}
    one = {
        "m": {
            "prompt_tokens": 8,
            "completion_tokens": 2,
            "requests": 1,
            "prompt_tokens_details": {"cached_tokens": 0},
        }
    }
    calls = [
        {"id": "root", "parent_id": None, "attributes": {"weave_task_id": "t1"}, **summed},
        {
            "id": "wrap",
            "parent_id": "root",
            "attributes": {"weave_task_id": "t1"},
            "output": {"usage": one["m"]},
        },
        {
            "id": "leaf1",
            "parent_id": "wrap",
            "attributes": {"weave_task_id": "t1"},
            "summary": {"usage": one},
        },
        {
            "id": "leaf2",
            "parent_id": "root",
            "attributes": {"weave_task_id": "t1"},
            "output": {"usage": one["m"]},
        },
        {"id": "other", "parent_id": None, "attributes": {}, "summary": {"usage": one}},
        {"id": "silent", "parent_id": "leaf2", "attributes": {"weave_task_id": "t1"}, "summary": {}},
    ]
    document = upload(
        {"t1": True, "t2": False}, raw_logging_results=calls, total_usage=None, config={"agent_args": {}}
    )
    first, second = trials(load_results("hal", write(tmp_path, document)))
    assert (buckets(first), buckets(second)) == ([16, 0, 0, 4, 2], [None] * 5)
    assert first["model"] == "m"


def test_usage_that_is_no_count(tmp_path: Path) -> None:
    bad = {"t1": {"call_metadata": [{"usage": {"prompt_tokens": "8"}}]}}
    with pytest.raises(
        LabError, match=r"_UPLOAD.json: \$.raw_logging_results.t1: usage: prompt_tokens is '8'"
    ):
        load_results("hal", write(tmp_path, upload({"t1": True}, raw_logging_results=bad)))
    more = {"t1": {"call_metadata": [{"usage": {**OPENAI, "prompt_tokens": 8}}]}}
    with pytest.raises(LabError, match="60 cached tokens within an input of 8"):
        load_results("hal", write(tmp_path, upload({"t1": True}, raw_logging_results=more)))


# ---- folders --------------------------------------------------------------------------------------------------------


def test_repetitions_are_trials(tmp_path: Path) -> None:
    for k in (2, 10, 1):
        config = {"agent_name": f"generalist_rep{k}", "run_id": f"r{k}"}
        write(tmp_path, upload({"t1": k != 2, "t2": True}, {"accuracy": 1.0}, config=config), f"r{k}")
    run = load_results("hal", tmp_path)
    assert [(r["case_id"], r["driver"], r["trial"], r["solved"]) for r in trials(run)] == [
        ("t1", "generalist", 1, True),
        ("t1", "generalist", 2, False),
        ("t1", "generalist", 10, True),
        ("t2", "generalist", 1, True),
        ("t2", "generalist", 2, True),
        ("t2", "generalist", 10, True),
    ]
    assert "generalist gpt-4o: accuracy of r2: published 100%, rows give 50% (the source may" in " ".join(
        claims(run)
    )


def test_further_files_of_one_agent_continue_its_trials(tmp_path: Path) -> None:
    write(tmp_path, upload({"t1": True}, config={"run_id": "b"}), "b")
    write(tmp_path, upload({"t1": False}, config={"run_id": "a"}), "a")
    write(tmp_path, upload({"t1": False}, config={"run_id": "a"}), "copy")
    run = load_results("hal", tmp_path)
    assert [(r["trial"], r["solved"]) for r in trials(run)] == [(1, False), (2, True)]
    assert notes(run) == ("copy_UPLOAD.json is a second copy of a_UPLOAD.json and was not read.",)


def test_a_task_that_a_further_file_lacks_is_missing(tmp_path: Path) -> None:
    """Three tasks in two files are six trials; the second file has one of them."""
    write(tmp_path, GAIA, "one")
    again = {"run_id": "two"}
    write(tmp_path, upload({"t1": {"score": True}}, config={**GAIA["config"], **again}), "two")
    run = load_results("hal", tmp_path)
    counts = run.card.counts
    assert (counts.asked, counts.judged, counts.missing) == (6, 4, 2)
    assert (
        "generalist gpt-4o: some of its runs lack tasks that others have, or attempts; missing: 2."
        in notes(run)
    )


def test_what_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"no \*_UPLOAD.json in it"):
        load_results("hal", tmp_path)
    write(tmp_path / "mixed", upload({"t1": True}), "a")
    write(tmp_path / "mixed", upload({"t1": True}, config={"run_id": "b", "benchmark_name": "usaco"}), "b")
    with pytest.raises(LabError, match="several benchmarks"):
        load_results("hal", tmp_path / "mixed")
    write(tmp_path / "torn", upload({"t1": True}), "a")
    write(tmp_path / "torn", upload({"t1": False}), "b")
    with pytest.raises(LabError, match=r"is in a_UPLOAD.json too, with other results"):
        load_results("hal", tmp_path / "torn")


BAD: dict[str, tuple[Any, str]] = {
    "another document": ({"a": 1}, "missing required field `config`"),
    "scores of no tasks": (
        upload({"scores": [1, 0], "answers": [1, 1]}),
        "a list of scores that names no tasks",
    ),
    "nothing": (upload({}), "names no tasks"),
    "a list": (upload([1, 2]), "names no tasks"),
    "neither score nor verdict": (upload({"t1": {"text": "x"}}), r"\$.raw_eval_results.t1: neither a score"),
    "an error's text and no lists": (upload({"t1": "ERROR"}), "neither a score"),
    "in both lists": (
        upload({"t1": True}, {"successful_tasks": ["t1"], "failed_tasks": ["t1"]}),
        "among both the successful and the failed",
    ),
    "an accuracy that is none": (upload({"t1": True}, {"accuracy": "high"}), r"\$.results: .*accuracy"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files(tmp_path: Path, name: str) -> None:
    document, message = BAD[name]
    with pytest.raises(LabError, match=message) as caught:
        load_results("hal", write(tmp_path, document))
    assert "_UPLOAD.json" in str(caught.value)


def test_who_it_was(tmp_path: Path) -> None:
    document = upload({"t1": True}, config={"agent_args": None}, total_usage={})
    (row,) = trials(
        load_results("hal", write(tmp_path, document), Options(model="mine", driver="no", suite="own"))
    )
    assert (row["driver"], row["model"], row["suite"]) == ("generalist", "mine", "own")


WHOLE = {
    **GAIA,
    "raw_eval_results": {"t1": [{"score": 1}], "t2": {"reward": 0, "level": 1}, "t3": "text"},
    "raw_logging_results": {
        "t1": {"messages": [{"role": "user"}], "call_metadata": [{"usage": OPENAI}], "model": "m"}
    },
}
CALLS = {
    **GAIA,
    "raw_logging_results": [
        {
            "id": "a",
            "parent_id": None,
            "attributes": {"weave_task_id": "t1"},
            "summary": {"usage": {"m": ANTHROPIC}},
        }
    ],
}
