"""Thirteen real submissions to Terminal-Bench core 0.1.1: the figures recomputed from their trials, and the published."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path

import pytest

from agentbench_lab.benchmarks import Options, load_results
from agentbench_lab.benchmarks.leaderboard import check_published
from agentbench_lab.benchmarks.totals import Tally, accuracy, pass_at_k, pass_hat_k, tally
from agentbench_lab.results.run import Run

PASS: dict[str, tuple[float, ...]] = {
    "20250923_droid_claude-4-1-opus": (0.5875, 0.5275, 0.4900, 0.4625, 0.4375, 0.6875),
    "ob1-09-10-25": (0.5675, 0.5338, 0.5112, 0.4925, 0.4750, 0.625),
    "20250924_droid_gpt-5": (0.5250, 0.4450, 0.3937, 0.3550, 0.3250, 0.6625),
    "20250923_droid_claude-4-sonnet": (0.5050, 0.4388, 0.4037, 0.3750, 0.3500, 0.65),
    "20250911_chaterm_claude-4-sonnet": (0.4925, 0.4213, 0.3837, 0.3575, 0.3375, 0.6375),
    "20250829_goose_claude-4-opus": (0.4525, 0.3988, 0.3688, 0.3450, 0.3250, 0.5625),
    "20250711_openhands_claude-4-sonnet": (0.4125, 0.3588, 0.3362, 0.3225, 0.3125, 0.5375),
    "20250829_goose_claude-4-sonnet": (0.4125, 0.3613, 0.3337, 0.3150, 0.3000, 0.5125),
    "20250906_orchestrator_claude-4.1-opus": (0.3975, 0.3088, 0.2662, 0.2425, 0.2250, 0.575),
    "20250902_orchestrator_claude-4-sonnet": (0.3600, 0.2575, 0.2062, 0.1725, 0.1500, 0.575),
    "20250811_cursor-cli_claude-4-sonnet": (0.2625, 0.1938, 0.1588, 0.1375, 0.1250, 0.40),
    "20250902_orchestrator_qwen-3-coder-480B": (0.1925, 0.1125, 0.0813, 0.0625, 0.0500, 0.3875),
}
"""pass^1 to pass^5, then pass@5, as recomputed from the submissions' own files."""
MINI = "20250825_swe-agent-mini_claude-4-sonnet"
OWN_PASS_AT_K = {
    "20250902_orchestrator_claude-4-sonnet": {2: 0.4625, 4: 0.5475, 5: 0.575},
    "20250902_orchestrator_qwen-3-coder-480B": {2: 0.2725, 4: 0.3575, 5: 0.3875},
    "20250906_orchestrator_claude-4.1-opus": {2: 0.48625, 4: 0.56, 5: 0.575},
}
FOLLOWING = {
    "20250711_openhands_claude-4-sonnet",
    "20250829_goose_claude-4-opus",
    "20250829_goose_claude-4-sonnet",
    "20250911_chaterm_claude-4-sonnet",
    "20250923_droid_claude-4-1-opus",
    "20250923_droid_claude-4-sonnet",
    "20250924_droid_gpt-5",
    "ob1-09-10-25",
}


@pytest.fixture(scope="module")
def folder(peers: Path) -> Path:
    return peers / "terminal-bench"


@pytest.fixture(scope="module")
def run(folder: Path) -> Run:
    columns = {
        "case_id": "task",
        "driver": "submission",
        "solved": "resolved",
        "null_solved": "failure",
        "note": "failure_mode",
        "tokens_output": "output_tokens",
        "tokens_input_total": "input_tokens",
        "started_at": "agent_started_at",
        "ended_at": "agent_ended_at",
    }
    options = Options(suite="terminal-bench-core", columns=columns)
    return load_results("csv", folder / "tb_core_0_1_1_trials.csv", options)


@pytest.fixture(scope="module")
def by_case(run: Run) -> dict[str, dict[object, Tally]]:
    rows = run.trials.select(["driver", "case_id", "solved"]).to_pylist()
    drivers = dict.fromkeys(row["driver"] for row in rows)
    return {
        driver: tally((row["case_id"], row["solved"]) for row in rows if row["driver"] == driver)
        for driver in drivers
    }


def test_thirteen_configurations_of_eighty_tasks_five_times(
    run: Run, by_case: dict[str, dict[object, Tally]]
) -> None:
    assert run.trials.num_rows == 5200
    assert by_case.keys() == PASS.keys() | {MINI}
    assert {len(cases) for cases in by_case.values()} == {80}
    assert {each.judged for cases in by_case.values() for each in cases.values()} == {5}


@pytest.mark.parametrize("submission", PASS)
def test_pass_hat_k_and_pass_at_5(submission: str, by_case: dict[str, dict[object, Tally]]) -> None:
    found = [pass_hat_k(by_case[submission], k) for k in range(1, 6)]
    assert [*found, pass_at_k(by_case[submission], 5)] == pytest.approx(PASS[submission], abs=0.51e-4)
    assert accuracy(by_case[submission]) == pytest.approx(PASS[submission][0])


def test_the_pass_at_k_that_three_files_print_themselves(by_case: dict[str, dict[object, Tally]]) -> None:
    assert accuracy(by_case[MINI]) == pytest.approx(0.1275)
    for submission, printed in OWN_PASS_AT_K.items():
        assert {k: pass_at_k(by_case[submission], k) for k in printed} == pytest.approx(printed)


def test_tokens_are_known_of_four_configurations(run: Run) -> None:
    """183.0, 91.0, 13.2 and 9.0 million tokens in; the others' are unknown, not free."""
    total: Counter[str] = Counter()
    known: Counter[str] = Counter()
    for row in run.trials.select(["driver", "tokens_output", "extra"]).to_pylist():
        told = json.loads(row["extra"] or "{}").get("tokens_input_total")
        total[row["driver"]] += told or 0
        known[row["driver"]] += row["tokens_output"] is not None
    assert {driver: round(total[driver] / 1e6, 1) for driver in total if total[driver]} == {
        "20250911_chaterm_claude-4-sonnet": 183.0,
        "20250902_orchestrator_claude-4-sonnet": 91.0,
        "20250902_orchestrator_qwen-3-coder-480B": 13.2,
        "20250906_orchestrator_claude-4.1-opus": 9.0,
    }
    assert {driver for driver in known if known[driver]} == {driver for driver in total if total[driver]}


def test_two_curves_cross(by_case: dict[str, dict[object, Tally]]) -> None:
    gpt, sonnet = (by_case[name] for name in ("20250924_droid_gpt-5", "20250923_droid_claude-4-sonnet"))
    ahead = [(pass_hat_k(gpt, k) or 0) - (pass_hat_k(sonnet, k) or 0) for k in (1, 5)]
    assert ahead == pytest.approx([0.02, -0.025])


def test_the_published_leaderboard(run: Run, folder: Path) -> None:
    """Eight submissions follow in accuracy and standard error; of the other four published, none in both."""
    board = folder / "published_leaderboard_core_0.1.1.csv"
    columns = {"driver": "submission_dir", "accuracy": "published_accuracy", "stderr": "published_stderr"}
    claims = check_published(run, board, columns)
    assert len(claims) == 24  # Cursor's has no published figures
    follows = {
        driver: [c.follows for c in claims if c.driver == driver] for driver in {c.driver for c in claims}
    }
    assert {driver for driver, found in follows.items() if found == [True, True]} == FOLLOWING
    assert follows[MINI] == [True, False]  # printed ten times too small
    assert [follows[driver] for driver in OWN_PASS_AT_K] == [[False, False]] * 3
    noted = {(c.driver, c.metric): c.note for c in claims if c.note}
    assert noted == {
        ("20250829_goose_claude-4-opus", "stderr"): "rounded down",
        ("20250923_droid_claude-4-1-opus", "stderr"): "rounded up",
    }


def test_the_standard_errors_by_another_hand(run: Run, folder: Path) -> None:
    """The corpus recomputed them too, by itself; those of several runs are the same."""
    with (folder / "published_leaderboard_core_0.1.1.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["recomputed_stderr_sample_sd_over_sqrt5"]]
    claims = check_published(
        run,
        [
            {"driver": row["submission_dir"], "stderr": row["recomputed_stderr_sample_sd_over_sqrt5"]}
            for row in rows
        ],
    )
    assert len(claims) == 10
    assert [c.rows for c in claims] == pytest.approx([c.published for c in claims], abs=0.51e-5)
