"""The recordings that are kept still play, and come to what was measured."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import agentbench_lab as lab

KEPT = Path(__file__).resolve().parent.parent / "data" / "recordings"


def test_the_small_model_comes_to_what_was_measured() -> None:
    """Played back on today's world and judged by today's grader; its arm is the model's, its evidence says replayed."""
    run = lab.evaluate("ladder", "replay:smollm2", ladder=True, save_run=False)
    rows = run.trials.to_pylist()
    assert {(row["group"], row["model"], row["evidence"]) for row in rows} == {
        ("TOOL-0", "smollm2", "replayed")
    }
    assert Counter(row["outcome"] for row in rows) == {
        "budget": 14,
        "hallucinated_call": 1,
        "no_answer": 1,
        "over_refusal": 1,
        "false_success": 1,
    }
    assert sum(row["model_calls"] for row in rows) == 63
    assert sum(row["tokens_output"] for row in rows) == 2_448


def test_a_bare_name_is_one_of_those_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    named, given = lab.load_driver("replay:smollm2"), lab.load_driver(f"replay:{KEPT / 'smollm2.jsonl'}")
    assert named.version == given.version
    with pytest.raises(lab.LabError):
        lab.load_driver("replay:smollm3")


def test_recordings_hold_no_path_and_no_host_beyond_loopback() -> None:
    for file in KEPT.glob("*.jsonl"):
        text = file.read_text(encoding="utf-8")
        assert len(text) < 200_000
        assert "/home/" not in text and "/root/" not in text and "Bearer" not in text
