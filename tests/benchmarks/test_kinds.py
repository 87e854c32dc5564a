"""A file that was given to the wrong format: the error names the format that it looks like."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from agentbench_lab.benchmarks import load_results
from agentbench_lab.benchmarks.kinds import looks_like
from agentbench_lab.errors import LabError

EPISODE = {"task_id": 0, "reward": 1.0, "info": {}, "traj": [], "trial": 0}


@pytest.mark.parametrize(
    ("content", "form"),
    [
        ({"info": {}, "tasks": [], "simulations": []}, "tau2"),
        ([EPISODE], "tau-bench"),
        ({"leaderboards": []}, "swe-bench"),
        ({"resolved_ids": [], "total_instances": 0}, "swe-bench"),
        ({"version": 2, "status": "success", "eval": {}}, "inspect"),
        ({"results": [], "n_resolved": 0, "accuracy": 0}, "terminal-bench"),
        ({"config": {}, "results": {}, "raw_eval_results": {}}, "hal"),
        ({"trial_name": "t", "task_name": "n", "agent_info": {}}, "harbor"),
        ({"info": {}, "messages": [], "trajectory_format": "1"}, "mini-swe-agent"),
        ({"format": "agent-runtime/bench/v1", "trials": []}, "bench-v1"),
        ({"something": "else"}, None),
        ([], None),
        ([1], None),
    ],
)
def test_a_shape_of_json_is_a_format(tmp_path: Path, content: Any, form: str | None) -> None:
    file = tmp_path / "file.json"
    file.write_text(json.dumps(content), encoding="utf-8")
    assert looks_like(file) == form


def test_tables_and_folders_are_known_too(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("case_id,solved\na,1\n", encoding="utf-8")
    (tmp_path / "b.txt").write_text('{"case_id": 1}\n{"case_id": 2}\n', encoding="utf-8")
    (tmp_path / "d.txt").write_text("{broken", encoding="utf-8")
    pq.write_table(pa.table({"a": [1]}), tmp_path / "c.txt")
    found = [looks_like(tmp_path / f"{name}.txt") for name in "abcd"]
    assert found == ["csv", "jsonl", "parquet", None]
    assert looks_like(tmp_path) is None
    for form, name in {
        "mini-swe-agent": "i/i.traj.json",
        "inspect": "x.eval",
        "hal": "r_UPLOAD.json",
    }.items():
        file = tmp_path / form / name
        file.parent.mkdir(parents=True)
        file.touch()
        assert looks_like(tmp_path / form) == form
    assert looks_like(tmp_path / "nothing") is None


@pytest.mark.parametrize(
    ("form", "content", "says"),
    [
        (
            "tau-bench",
            {"info": {}, "tasks": [], "simulations": []},
            "Expected `array`, got `object`; it looks like tau2: ",
        ),
        ("tau-bench", "case_id,solved\na,1\n", "; it looks like csv: agentbench-lab import csv "),
        ("tau2", [EPISODE], "; it looks like tau-bench: "),
        ("csv", [EPISODE], "; it looks like tau-bench: "),
        ("terminal-bench", {"resolved_ids": []}, "; it looks like swe-bench: "),
    ],
)
def test_the_error_names_the_format_that_was_meant(
    tmp_path: Path, form: str, content: Any, says: str
) -> None:
    file = tmp_path / "file.json"
    file.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    with pytest.raises(LabError) as caught:
        load_results(form, file)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("form", ["csv", "tau-bench"])
def test_a_folder_is_no_file(tmp_path: Path, form: str) -> None:
    with pytest.raises(LabError, match="is a folder; name the file in it"):
        load_results(form, tmp_path)


def test_a_file_of_its_format_gets_no_hint(tmp_path: Path) -> None:
    file = tmp_path / "trials.csv"
    file.write_text("task,solved\na,1\n", encoding="utf-8")
    with pytest.raises(LabError) as caught:
        load_results("csv", file)
    assert "looks like" not in str(caught.value)
