"""Runs of Terminal-Bench's harness: null is a failure, zero tokens are unknown, copies are left out aloud."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from agentbench_lab.benchmarks import Options, load_results
from agentbench_lab.errors import LabError
from agentbench_lab.results.run import Run, load_run
from agentbench_lab.running.merge import save_new

from ..doing import lab


def result(task: str, name: str, resolved: bool | None, **more: Any) -> dict[str, Any]:
    """One entry of a run's results, as the harness writes it."""
    return {
        "id": f"id-{name}-{task}",
        "trial_name": f"{task}.{name}",
        "task_id": task,
        "instruction": f"Do {task}.",
        "is_resolved": resolved,
        "failure_mode": "unset",
        "parser_results": {"test_a": "passed", "test_b": "passed" if resolved else "failed"},
        "recording_path": None,
        "total_input_tokens": 0,
        "total_output_tokens": 0,
        "trial_started_at": "2025-09-05T10:00:00+00:00",
        "trial_ended_at": "2025-09-05T10:02:00+00:00",
        "agent_started_at": "2025-09-05T10:00:30+00:00",
        "agent_ended_at": "2025-09-05T10:01:30.500000+00:00",
        **more,
    }


def write_run(
    folder: Path,
    results: list[dict[str, Any]],
    *,
    start: str = "2025-09-05T10:00:00+00:00",
    about: dict[str, Any] | None = None,
    **totals: Any,
) -> Path:
    """A run's folder: results.json, run_metadata.json, and the folder of each trial with a results.json of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    solved = [each["task_id"] for each in results if each["is_resolved"]]
    document = {
        "id": f"run-{folder.name}",
        "results": results,
        "pass_at_k": {},
        "n_resolved": len(solved),
        "n_unresolved": len(results) - len(solved),
        "resolved_ids": solved,
        "unresolved_ids": [each["task_id"] for each in results if not each["is_resolved"]],
        "accuracy": len(solved) / len(results) if results else 0.0,
        **totals,
    }
    (folder / "results.json").write_text(json.dumps(document), encoding="utf-8")
    metadata = {
        "run_id": folder.name,
        "dataset_name": "terminal-bench-core",
        "dataset_version": "0.1.1",
        "agent_name": "goose",
        "model_name": "claude-opus-4",
        "n_attempts": 1,
        "start_time": start,
        "end_time": "2025-09-05T12:00:00+00:00",
        "commit_hash": "abc123",
        **(about or {}),
    }
    (folder / "run_metadata.json").write_text(json.dumps(metadata), encoding="utf-8")
    for each in results:
        trial = folder / each["task_id"] / each["trial_name"]
        trial.mkdir(parents=True)
        (trial / "results.json").write_text(json.dumps(each), encoding="utf-8")
    return folder


def trials(run: Run) -> list[dict[str, Any]]:
    return run.trials.to_pylist()


def claims(run: Run) -> list[str]:
    assert run.card.imported is not None
    return [str(each) for each in run.card.imported.published]


def test_a_run(tmp_path: Path) -> None:
    folder = write_run(
        tmp_path / "one",
        [
            result("a", "1-of-1.x", True, total_input_tokens=1000, total_output_tokens=50),
            result("b", "1-of-1.x", False, failure_mode="agent_timeout"),
            result("c", "1-of-1.x", None, failure_mode="test_timeout", parser_results=None),
            result("d", "1-of-1.x", False, failure_mode="context_length_exceeded"),
            result("e", "1-of-1.x", False, failure_mode="something_new"),
        ],
    )
    run = load_results("terminal-bench", folder / "results.json")
    a, b, c, d, e = trials(run)
    assert (a["driver"], a["model"], a["suite"], a["evidence"]) == (
        "goose",
        "claude-opus-4",
        "terminal-bench-core",
        "imported",
    )
    assert [row["solved"] for row in (a, b, c, d, e)] == [True, False, False, False, False]
    assert [row["outcome"] for row in (a, b)] == ["solved", "unsolved"]
    assert [row["stop"] for row in (a, b, c, d, e)] == [None, "timeout", None, "budget", None]
    assert [row["terminated"] for row in (a, b)] == [None, False]
    assert [row["note"] for row in (a, c, e)] == [None, "test_timeout", "something_new"]
    assert a["wall_s"] == 60.5
    # Of input tokens only the sum is told, cached or not; 0 is unknown.
    assert (a["tokens_fresh_input"], a["tokens_output"], b["tokens_output"]) == (None, 50, None)
    assert json.loads(a["extra"])["tokens_input_total"] == 1000
    assert "tokens_input_total" not in json.loads(b["extra"])
    assert (a["tool_calls"], a["cost_micros"], a["score"]) == (None, None, None)
    assert (a["reasons"], b["reasons"]) == ([], ["test_b failed"])
    assert [row["request"] for row in run.cases.to_pylist()] == [f"Do {task}." for task in "abcde"]
    card = run.card
    assert (card.counts.asked, card.counts.judged, card.counts.excluded) == (5, 5, 0)
    assert (card.commit, card.suites[0].version) == ("abc123", "0.1.1")
    assert card.imported is not None
    assert card.imported.notes == (
        "1 trial has no verdict (is_resolved is null); the source counts that as a failure.",
        "1 trial tells its input tokens only as a total, cached or not: the buckets stay unknown, the total is in extra.",
    )
    assert len(card.imported.digest) == 64
    assert claims(run) == [
        "goose claude-opus-4: accuracy: published 20%, rows give 20% (follows)",
        "goose claude-opus-4: solved: published 1 trials, rows give 1 trials (follows)",
    ]


def test_attempts_of_one_run_count_by_their_number(tmp_path: Path) -> None:
    """They end in another order than they have; the first of `a` failed."""
    folder = write_run(
        tmp_path / "one",
        [
            result("a", "3-of-3.x", True),
            result("a", "1-of-3.x", False),
            result("a", "2-of-3.x", True),
            result("b", "first", True),
            result("b", "second", False),
            result("b", "third", False),
        ],
        pass_at_k={"2": (1 + 2 / 3) / 2, "5": None},
    )
    run = load_results("terminal-bench", folder)
    assert [(row["case_id"], row["trial"], row["solved"]) for row in trials(run)] == [
        ("a", 1, False),
        ("a", 2, True),
        ("a", 3, True),
        ("b", 1, True),
        ("b", 2, False),
        ("b", 3, False),
    ]
    # a: 2 of 3, so every pair has one; b: 1 of 3, so 2 of the 3 pairs.
    assert "goose claude-opus-4: pass@2: published 83.33%, rows give 83.33% (follows)" in claims(run)


def test_runs_of_one_agent_continue_each_other_in_the_order_of_their_start(tmp_path: Path) -> None:
    write_run(tmp_path / "z", [result("a", "z", True)], start="2025-09-01T00:00:00+00:00")
    write_run(tmp_path / "a", [result("a", "a", False)], start="2025-09-02T00:00:00+00:00")
    write_run(tmp_path / "m", [result("a", "m", True)], about={"agent_name": "droid"})
    run = load_results("terminal-bench", tmp_path)
    assert [(row["driver"], row["trial"], json.loads(row["extra"])["run_id"]) for row in trials(run)] == [
        ("goose", 1, "z"),
        ("goose", 2, "a"),
        ("droid", 1, "m"),
    ]
    assert "goose claude-opus-4: accuracy of run z: published 100%, rows give 100% (follows)" in claims(run)


def test_what_a_run_of_an_arm_lacks_is_missing(tmp_path: Path) -> None:
    """Three tasks by two runs are six trials: the second run has one of them, so two of six are missing."""
    first = [result(task, "1-of-1.x", True) for task in "abc"]
    write_run(tmp_path / "one", first)
    write_run(tmp_path / "two", [result("a", "1-of-1.y", False)], start="2025-09-05T11:00:00+00:00")
    run = load_results("terminal-bench", tmp_path)
    counts = run.card.counts
    assert (counts.asked, counts.judged, counts.missing) == (6, 4, 2)
    assert run.card.imported is not None
    assert (
        "goose claude-opus-4: some of its runs lack tasks that others have, or attempts; missing: 2."
        in run.card.imported.notes
    )


def test_an_attempt_that_is_not_there_is_missing(tmp_path: Path) -> None:
    """Two attempts at two tasks are four trials, of which b has one: by its other task, or by what the run says."""
    tries = [result("a", "1-of-2.x", True), result("a", "2-of-2.x", True), result("b", "1-of-2.x", True)]
    assert load_results("terminal-bench", write_run(tmp_path / "one", tries)).card.counts.missing == 1
    about = {"n_attempts": 3}
    run = load_results("terminal-bench", write_run(tmp_path / "two", tries, about=about))
    assert (run.card.counts.asked, run.card.counts.missing) == (6, 3)


def test_another_arm_may_have_other_tasks(tmp_path: Path) -> None:
    write_run(tmp_path / "one", [result("a", "1-of-1.x", True), result("b", "1-of-1.x", True)])
    write_run(tmp_path / "two", [result("c", "1-of-1.y", True)], about={"model_name": "other"})
    assert load_results("terminal-bench", tmp_path).card.counts.missing == 0


def test_a_nested_second_copy_is_left_out_aloud(tmp_path: Path) -> None:
    first = write_run(tmp_path / "runs" / "one", [result("a", "x", True)])
    write_run(tmp_path / "runs" / "two", [result("a", "y", False)])
    shutil.copytree(first, first / "copy" / "one")
    run = load_results("terminal-bench", tmp_path / "runs")
    assert len(trials(run)) == 2
    assert run.card.imported is not None
    assert run.card.imported.notes == (
        "one/copy/one/results.json is a second copy of one/results.json and was not read.",
    )


def test_runs_that_share_trials_and_are_no_copies_are_refused(tmp_path: Path) -> None:
    write_run(tmp_path / "one", [result("a", "x", True)])
    write_run(tmp_path / "two", [result("a", "x", True), result("b", "x", True)])
    with pytest.raises(LabError, match=r"shares 1 trial with one/results.json, and is no copy of it"):
        load_results("terminal-bench", tmp_path)


def test_a_total_that_does_not_follow_is_reported(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "one", [result("a", "x", True), result("b", "x", False)], accuracy=0.3696)
    run = load_results("terminal-bench", folder)
    assert claims(run)[0] == "goose claude-opus-4: accuracy: published 36.96%, rows give 50%"
    assert [row["solved"] for row in trials(run)] == [True, False]


def test_who_it_was(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "one", [result("a", "x", True)], about={"agent_name": None})
    with pytest.raises(
        LabError, match=r"run_metadata.json names no agent; say which agent it was with --driver NAME"
    ):
        load_results("terminal-bench", folder)
    run = load_results("terminal-bench", folder, Options(driver="mine", model="other", suite="tb"))
    assert [(row["driver"], row["model"], row["suite"]) for row in trials(run)] == [
        ("mine", "claude-opus-4", "tb")
    ]
    (folder / "run_metadata.json").unlink()
    with pytest.raises(LabError, match=r"no run_metadata.json beside it"):
        load_results("terminal-bench", folder)


BAD: dict[str, tuple[str, str]] = {
    "empty": ("", "truncated"),
    "not json": ("{]", "results.json"),
    "no results": ("{}", "missing required field `results`"),
    "a result without a task": ('{"results": [{"is_resolved": true}]}', r"\$.results\[0\]"),
    "a verdict that is none": ('{"results": [{"task_id": "a", "is_resolved": "yes"}]}', r"is_resolved"),
    "negative tokens": ('{"results": [{"task_id": "a", "total_output_tokens": -1}]}', "total_output_tokens"),
    "one trial": ('{"task_id": "a", "is_resolved": true}', "the results of one trial"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files(tmp_path: Path, name: str) -> None:
    text, message = BAD[name]
    (tmp_path / "results.json").write_text(text, encoding="utf-8")
    with pytest.raises(LabError, match=message):
        load_results("terminal-bench", tmp_path / "results.json", Options(driver="x"))


def test_folders_without_a_run(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"no run's results.json here or below$"):
        load_results("terminal-bench", tmp_path)
    folder = write_run(tmp_path / "one", [result("a", "x", True)])
    (folder / "results.json").unlink()
    with pytest.raises(LabError, match="1 trial has one, their run has none"):
        load_results("terminal-bench", tmp_path)


def test_different_data_sets_are_refused(tmp_path: Path) -> None:
    write_run(tmp_path / "one", [result("a", "x", True)])
    write_run(tmp_path / "two", [result("a", "y", True)], about={"dataset_version": "0.2.0"})
    with pytest.raises(LabError, match=r"terminal-bench-core 0.1.1, terminal-bench-core 0.2.0"):
        load_results("terminal-bench", tmp_path)


def test_saved_and_read_back(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "one", [result("a", "1-of-1.x", True), result("b", "1-of-1.x", None)])
    save_new(load_results("terminal-bench", folder), tmp_path / "run")
    back = load_run(tmp_path / "run")
    frame = pl.from_arrow(back.trials)
    assert isinstance(frame, pl.DataFrame)
    assert frame["solved"].to_list() == [True, False]


def test_the_command(tmp_path: Path) -> None:
    write_run(tmp_path / "one", [result("a", "x", True), result("b", "x", False)])
    (tmp_path / "board.csv").write_text("agent,accuracy,stderr\ngoose,51 %,\n", encoding="utf-8")
    done = lab(
        *("import", "terminal-bench", "one", "--out", "run"),
        *("--published", "board.csv", "--published-map", "driver=agent"),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert "goose claude-opus-4: accuracy: published 51%, rows give 50%" in done.stdout
    card = load_run(tmp_path / "run").card
    assert card.imported is not None
    assert [each.published for each in card.imported.published] == [0.5, 1.0, 0.51]
    stray = lab(
        "import", "terminal-bench", "one", "--out", "r2", "--published-map", "driver=agent", cwd=tmp_path
    )
    assert stray.stderr == "error: --published-map is for the columns of a --published FILE\n"


DOCUMENT = {
    "id": "r",
    "results": [result("a", "1-of-2.x", True, total_input_tokens=10), result("a", "2-of-2.x", None)],
    "pass_at_k": {"2": 1.0},
    "n_resolved": 1,
    "accuracy": 0.5,
}
