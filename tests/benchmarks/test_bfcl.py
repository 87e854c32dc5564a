"""BFCL results as runs: small folders of the documented form, written here."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agentbench_lab.benchmarks import Options, load_results
from agentbench_lab.errors import LabError


def lines(path: Path, rows: Sequence[Any]) -> Path:
    """JSON lines despite the name, without a last newline: as the scorer writes them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    return path


def answer(id: str, **more: Any) -> dict[str, Any]:
    return {
        "id": id,
        "result": [{"f": "{}"}],
        "input_token_count": 100,
        "output_token_count": 7,
        "latency": 0.5,
        **more,
    }


def totals(correct: int, total: int) -> dict[str, Any]:
    return {
        "accuracy": correct / total if total else 0.0,
        "correct_count": correct,
        "total_count": total,
    }


SIMPLE = [answer(f"simple_python_{n}") for n in range(3)]
SIMPLE_SCORE = [
    totals(2, 3),
    {
        "id": "simple_python_1",
        "valid": False,
        "error": ["Invalid value"],
        "error_type": "value_error:others",
    },
]
TURNS = [
    answer(
        "multi_turn_base_0",
        result=[[[{"ls": "{}"}], "done"], [[{"cd": "{}"}]]],
        input_token_count=[[10, 20], [30]],
        output_token_count=[[1, 2], [3]],
        latency=[[0.1, 0.2], [0.3]],
        inference_log=[{"turn": 0}],
    ),
    answer(
        "multi_turn_base_1",
        result="Error during inference: timeout",
        input_token_count=[[10, None]],
        output_token_count=[[]],
        latency=None,
    ),
]
TURNS_SCORE = [
    totals(1, 2),
    {"id": "multi_turn_base_1", "error": {"error_type": "multi_turn:inference_error"}},
    {"id": "multi_turn_base_1", "error": {"error_type": "multi_turn:force_terminated"}},
]


def folder(root: Path, model: str = "lab_m-FC") -> Path:
    """One flat category, and one in the folder of its group, as v4 nests them."""
    lines(root / "result" / model / "non_live" / "BFCL_v4_simple_python_result.json", SIMPLE)
    lines(root / "score" / model / "non_live" / "BFCL_v4_simple_python_score.json", SIMPLE_SCORE)
    lines(root / "result" / model / "BFCL_v4_multi_turn_base_result.json", TURNS)
    lines(root / "score" / model / "multi_turn" / "BFCL_v4_multi_turn_base_score.json", TURNS_SCORE)
    return root


def test_answers_pass_that_are_not_among_the_failures(tmp_path: Path) -> None:
    run = load_results("bfcl", folder(tmp_path), Options(driver="vLLM 0.10"))
    found = {row["case_id"]: row for row in run.trials.to_pylist()}
    assert {case: (row["group"], row["solved"], row["reasons"]) for case, row in found.items()} == {
        "simple_python_0": ("simple_python", True, []),
        "simple_python_1": ("simple_python", False, ["value_error:others"]),
        "simple_python_2": ("simple_python", True, []),
        "multi_turn_base_0": ("multi_turn_base", True, []),
        "multi_turn_base_1": (
            "multi_turn_base",
            False,
            ["multi_turn:inference_error", "multi_turn:force_terminated"],
        ),
    }
    assert [(arm.driver, arm.model) for arm in run.card.arms] == [("vLLM 0.10", "lab_m-FC")]
    assert run.card.suites[0].name == "bfcl-v4"
    assert run.card.imported is not None
    assert [(p.metric, p.published, p.rows, p.follows) for p in run.card.imported.published] == [
        ("accuracy of multi_turn_base", 0.5, 0.5, True),
        ("accuracy of simple_python", 2 / 3, 2 / 3, True),
    ]


def test_tokens_and_seconds_are_numbers_or_nested_lists(tmp_path: Path) -> None:
    run = load_results("bfcl", folder(tmp_path))
    found = {row["case_id"]: row for row in run.trials.to_pylist()}
    flat, nested, failed = (
        found[case] for case in ("simple_python_0", "multi_turn_base_0", "multi_turn_base_1")
    )
    assert (flat["tokens_output"], flat["wall_s"], flat["model_calls"]) == (7, 0.5, 1)
    # whether input came from a cache is not told, so only its total is known
    assert (flat["tokens_fresh_input"], json.loads(flat["extra"])) == (None, {"input_tokens": 100})
    assert (nested["tokens_output"], nested["model_calls"]) == (6, 3)
    assert nested["wall_s"] == pytest.approx(0.6)
    assert json.loads(nested["extra"]) == {"input_tokens": 60}
    assert (failed["tokens_output"], failed["wall_s"], failed["model_calls"]) == (None, None, None)
    assert failed["extra"] is None
    transcripts = {row["case_id"]: row for row in run.transcripts.to_pylist()}
    assert json.loads(transcripts["simple_python_0"]["answer"]) == [{"f": "{}"}]
    assert json.loads(transcripts["multi_turn_base_0"]["messages"]) == [{"turn": 0}]


def test_a_category_that_is_not_scored_is_missing_and_a_score_alone_is_left_out(tmp_path: Path) -> None:
    root = folder(tmp_path)
    lines(root / "result" / "lab_m-FC" / "live" / "BFCL_v4_live_simple_result.json", [answer("l_0")])
    lines(root / "score" / "lab_m-FC" / "live" / "BFCL_v4_live_multiple_score.json", [totals(3, 4)])
    prerequisite = root / "result" / "lab_m-FC" / "agentic" / "memory" / "kv"
    lines(prerequisite / "BFCL_v4_memory_kv_prereq_result.json", [answer("p_0"), answer("p_1")])
    run = load_results("bfcl", root)
    assert (run.card.counts.asked, run.card.counts.judged, run.card.counts.missing) == (6, 5, 1)
    assert "live_simple" in run.card.suites[0].groups
    assert run.card.imported is not None
    assert set(run.card.imported.notes) == {
        "lab_m-FC memory_kv_prereq: only fills a memory, so left out: 2 conversations.",
        "lab_m-FC live_simple: no score file, so missing: 1 of the answers.",
        "lab_m-FC live_multiple: a score without its result file is left out; it does not name what passed.",
    }


def test_an_accuracy_that_does_not_follow_is_flagged(tmp_path: Path) -> None:
    root = folder(tmp_path)
    lines(
        root / "score" / "lab_m-FC" / "non_live" / "BFCL_v4_simple_python_score.json",
        [totals(1, 3), SIMPLE_SCORE[1]],
    )
    run = load_results("bfcl", root)
    assert run.card.imported is not None
    (wrong,) = [claim for claim in run.card.imported.published if not claim.follows]
    assert (wrong.published, wrong.rows) == (1 / 3, 2 / 3)
    assert wrong.note == "correct_count is 1, 2 pass"


def test_several_models_are_several_arms(tmp_path: Path) -> None:
    folder(folder(tmp_path), "other")
    run = load_results("bfcl", tmp_path)
    assert [arm.model for arm in run.card.arms] == ["lab_m-FC", "other"]
    assert run.card.counts.judged == 10


SCORE = ("score", "non_live", "BFCL_v4_simple_python_score.json")
RESULT = ("result", "non_live", "BFCL_v4_simple_python_result.json")


@pytest.mark.parametrize(
    ("file", "rows", "said"),
    [
        (SCORE, [totals(3, 4)], "scores 4 answers, .* has 3: which of them passed cannot be told"),
        (SCORE, [totals(2, 3), {"id": "x"}], r"_score\.json:2: x is not among the answers of"),
        (SCORE, [], "empty; the first line of a score file has its totals"),
        (SCORE, [{"id": "x"}], r"_score\.json:1: .*missing required field `accuracy`"),
        (RESULT, [*SIMPLE[:2], SIMPLE[0]], r"_result\.json:3: a second answer to simple_python_0"),
        (RESULT, [{"result": []}], r"_result\.json:1: .*missing required field `id`"),
        (
            RESULT,
            [*SIMPLE[:2], answer("simple_python_2", latency="long")],
            r'simple_python_2: latency: "long" is neither a number nor lists of numbers',
        ),
        (
            RESULT,
            [*SIMPLE[:2], answer("simple_python_2", output_token_count=1.5)],
            r"output_token_count: 1\.5 is no number of tokens",
        ),
        (
            RESULT,
            [*SIMPLE[:2], answer("multi_turn_base_0")],
            "multi_turn_base_0 is also a case of multi_turn_base",
        ),
    ],
)
def test_files_that_do_not_fit_together_are_refused(
    tmp_path: Path, file: tuple[str, str, str], rows: list[Any], said: str
) -> None:
    root = folder(tmp_path)
    lines(root / file[0] / "lab_m-FC" / file[1] / file[2], rows)
    with pytest.raises(LabError, match=said):
        load_results("bfcl", root)


def test_a_folder_that_is_no_bfcl_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="no folder result/ in it"):
        load_results("bfcl", tmp_path)
    lines(tmp_path / "result" / "m" / "BFCL_v4_simple_python_result.json", SIMPLE)
    with pytest.raises(LabError, match="no folder score/ in it"):
        load_results("bfcl", tmp_path)
    (tmp_path / "score").mkdir()
    with pytest.raises(LabError, match="no result file has its score file"):
        load_results("bfcl", tmp_path)
    lines(tmp_path / "result" / "BFCL_v4_simple_python_result.json", SIMPLE)
    with pytest.raises(LabError, match="not result/<model>/"):
        load_results("bfcl", tmp_path)


def test_a_category_that_comes_twice_is_refused(tmp_path: Path) -> None:
    root = folder(tmp_path)
    lines(root / "result" / "lab_m-FC" / "BFCL_v4_simple_python_result.json", SIMPLE)
    with pytest.raises(LabError, match="simple_python of lab_m-FC is also in"):
        load_results("bfcl", root)


def test_seconds_that_no_number_holds_are_refused(tmp_path: Path) -> None:
    root = folder(tmp_path)
    file = next(root.rglob("*simple_python_result.json"))
    lines(file, [{**row, "latency": [1.7e308, 1.7e308]} for row in SIMPLE])
    with pytest.raises(LabError, match="simple_python_0: latency: adds up to more seconds"):
        load_results("bfcl", root)
