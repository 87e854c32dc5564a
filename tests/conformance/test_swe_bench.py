"""Real SWE-bench results: the bash-only leaderboard, reports of one run of 500 instances, ten of its trajectories."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from agentbench_lab.benchmarks import Options, load_results
from agentbench_lab.results.run import Published, Run

GEMINI = "Gemini 3 Pro Preview (2025-11-18)"
CHECKED = {
    # model: resolved of 500, dollars, calls per instance, dollars per solved
    "Claude 4.5 Opus medium (20251101)": (372, 360.62, 38.042, 0.969),
    GEMINI: (371, 229.978759475, 40.326, 0.620),
    "Claude 4.5 Sonnet (20250929)": (353, 279.167, 50.988, 0.791),
    "Claude 4 Opus (20250514)": (338, 565.635, None, 1.673),
    "GPT-5 (2025-08-07) (medium reasoning)": (325, 140.19150875, 13.208, 0.4314),
    "GPT-5 mini (2025-08-07) (medium reasoning)": (299, 17.7385, 14.466, 0.0593),
    "DeepSeek V3.2 Reasoner": (300, 14.038, None, 0.0468),
    "GPT-5 nano (2025-08-07) (medium reasoning)": (174, 19.04, None, None),
    "Claude 4 Sonnet (20250514)": (324, None, None, 0.573),
}
"""As the site's file has them; a figure is checked to the digits that are given here."""

PER_REPOSITORY = {
    "django/django": (179, 231),
    "sympy/sympy": (54, 75),
    "sphinx-doc/sphinx": (30, 44),
    "scikit-learn/scikit-learn": (29, 32),
    "matplotlib/matplotlib": (25, 34),
    "pydata/xarray": (18, 22),
    "pytest-dev/pytest": (15, 19),
    "astropy/astropy": (13, 22),
    "psf/requests": (5, 8),
    "pylint-dev/pylint": (2, 10),
    "pallets/flask": (1, 1),
    "mwaskom/seaborn": (0, 2),
}


@pytest.fixture(scope="module")
def swe_bench(peers: Path) -> Path:
    return peers / "swe-bench"


@pytest.fixture(scope="module")
def gemini(swe_bench: Path) -> Path:
    return swe_bench / "gruckion_mini-swe-agent" / "swebench_results" / "20251118_gemini-3-pro-74pct"


@pytest.fixture(scope="module")
def board(swe_bench: Path) -> Run:
    return load_results("swe-bench", swe_bench / "swe-bench.github.io" / "leaderboards.bash-only.json")


def published(run: Run) -> tuple[Published, ...]:
    assert run.card.imported is not None
    return run.card.imported.published


def dollars(row: dict[str, Any]) -> float | None:
    """The trial's cost as its source prints it."""
    exact = json.loads(row["extra"]).get("cost_usd") if row["extra"] else None
    if exact is not None:
        return float(exact)
    return None if row["cost_micros"] is None else row["cost_micros"] / 1_000_000


def digits(figure: float) -> float:
    """Half of the last digit that a figure is given with."""
    return 0.5 * 10.0 ** -len(str(figure).partition(".")[2]) + 1e-9


def test_the_leaderboard_has_25_models_of_500_trials(board: Run) -> None:
    found = Counter(board.trials.column("model").to_pylist())
    assert set(found.values()) == {500}
    assert len(found) == len(board.card.arms) == 25
    assert {arm.driver for arm in board.card.arms} == {"mini-swe-agent"}
    assert (board.card.counts.asked, board.card.counts.excluded, board.card.counts.missing) == (12_500, 0, 0)
    assert board.card.imported is not None
    (note,) = board.card.imported.notes
    assert note.startswith("Without details, and so left out: 6 of 31 entries (GPT-4.1 (2025-04-14), ")


@pytest.mark.parametrize("model", CHECKED)
def test_resolved_cost_and_calls_of_a_model(board: Run, model: str) -> None:
    resolved, cost, calls, per_solved = CHECKED[model]
    rows = [row for row in board.trials.to_pylist() if row["model"] == model]
    spent = sum(dollars(row) or 0.0 for row in rows)
    assert sum(row["solved"] for row in rows) == resolved
    if cost is not None:
        assert spent == pytest.approx(cost, abs=digits(cost))
    if calls is not None:
        assert sum(row["model_calls"] for row in rows) / 500 == calls
    if per_solved is not None:
        assert spent / resolved == pytest.approx(per_solved, abs=digits(per_solved))


def test_micros_lose_less_than_a_ten_thousandth_of_a_dollar(board: Run) -> None:
    rows = [row for row in board.trials.to_pylist() if row["model"] == GEMINI]
    assert sum(row["cost_micros"] for row in rows) == pytest.approx(229_978_759.475, abs=100)
    assert sum(dollars(row) or 0 for row in rows) == pytest.approx(229.97875947500023, abs=1e-12)


def test_all_published_figures_follow_but_three_shares(board: Run) -> None:
    claims = published(board)
    assert len(claims) == 4 * 25
    wrong = {claim.model: claim for claim in claims if not claim.follows}
    assert {(claim.metric, claim.unit) for claim in wrong.values()} == {("resolved", "share")}
    assert {model: (claim.published, claim.rows) for model, claim in wrong.items()} == {
        "Claude 4 Sonnet (20250514)": (pytest.approx(0.6493), 0.648),
        "Llama 4 Maverick Instruct": (pytest.approx(0.2104), 0.21),
        "Claude 3.7 Sonnet (20250219)": (pytest.approx(0.528), 0.102),
    }
    assert {model: claim.note for model, claim in wrong.items()} == {
        "Claude 4 Sonnet (20250514)": "324 of 499 would give it; there are 500 rows",
        "Llama 4 Maverick Instruct": "105 of 499 would give it; there are 500 rows",
        "Claude 3.7 Sonnet (20250219)": "the rows have 51 of 500 resolved; 52.8 % of 500 would be 264",
    }


# ---- one run, from its report, its trajectories, and a table of it --------------------------------------------


def per_group(run: Run) -> dict[str, tuple[int, int]]:
    frame = pl.from_arrow(run.trials)
    assert isinstance(frame, pl.DataFrame)
    counted = frame.group_by("group").agg(pl.col("solved").sum(), pl.len())
    return {group: (solved, n) for group, solved, n in counted.rows()}


def test_the_report_of_sb_cli(gemini: Path) -> None:
    (path,) = (gemini / "trajs" / "sb-cli-reports").iterdir()
    run = load_results("swe-bench", path, Options(driver="mini-swe-agent", model="gemini-3-pro"))
    assert per_group(run) == PER_REPOSITORY
    assert (run.card.counts.asked, run.card.counts.judged) == (500, 500)
    assert run.card.suites[0].name == "swe-bench-verified"
    assert all(claim.follows for claim in published(run))


def test_the_reports_of_single_instances_agree_with_it(gemini: Path) -> None:
    run = load_results("swe-bench", gemini / "logs")
    (path,) = (gemini / "trajs" / "sb-cli-reports").iterdir()
    whole = {row["case_id"]: row["solved"] for row in load_results("swe-bench", path).trials.to_pylist()}
    rows = run.trials.to_pylist()
    assert len(rows) == 10
    assert all(row["solved"] == whole[row["case_id"]] for row in rows)
    assert all(json.loads(row["extra"])["fail_to_pass_passed"] > 0 for row in rows if row["solved"])


def test_the_trajectories_equal_the_rows_of_the_table(swe_bench: Path, gemini: Path) -> None:
    table = pl.read_csv(swe_bench / "derived_gemini3pro_instances.csv")
    told = {row["instance_id"]: row for row in table.to_dicts()}
    run = load_results("mini-swe-agent", gemini)
    assert per_group(run) == PER_REPOSITORY
    assert [arm.model for arm in run.card.arms] == ["google/gemini-3-pro-preview"]
    known = [row for row in run.trials.to_pylist() if row["model_calls"] is not None]
    assert len(known) == 10
    for row in known:
        right, extra = told[row["case_id"]], json.loads(row["extra"])
        assert row["solved"] == bool(right["resolved"])
        assert dollars(row) == right["instance_cost"]
        assert row["model_calls"] == row["steps"] == right["api_calls"]
        assert row["tokens_fresh_input"] + row["tokens_cache_read"] == right["prompt_tokens"]
        assert row["tokens_cache_read"] == right["cached_tokens"]
        assert row["tokens_output"] == right["completion_tokens"]
        assert extra["first_to_last_call_s"] == right["first_to_last_call_s"]
        assert extra["exit_status"] == right["exit_status"]
        assert (row["stop"], row["terminated"]) == ("done", True)
        assert row["tool_calls"] == row["model_calls"]  # one command an answer
    lengths = {row["case_id"]: len(json.loads(row["messages"])) for row in run.transcripts.to_pylist()}
    assert lengths == {row["case_id"]: told[row["case_id"]]["n_messages"] for row in known}
    assert Counter(run.calls.column("status").to_pylist()) == {"ok": 170, "tool_error": 8}
    assert all(claim.follows for claim in published(run))


def test_trajectories_from_before_the_formats_are_read(swe_bench: Path, tmp_path: Path) -> None:
    source = swe_bench / "mini-swe-agent" / "tests" / "test_data"
    for name in ("github_issue", "local"):
        (tmp_path / f"{name}.traj.json").write_bytes((source / f"{name}.traj.json").read_bytes())
    report = {"total_instances": 2, "resolved_ids": ["github_issue"], "unresolved_ids": ["local"]}
    (tmp_path / "report-of-run.json").write_text(json.dumps(report), encoding="utf-8")
    run = load_results("mini-swe-agent", tmp_path)
    # 10 answers with one command each, two of which fail; then 2 answers with one command each
    assert Counter(row["case_id"] for row in run.calls.to_pylist()) == {"github_issue": 10, "local": 2}
    assert Counter(run.calls.column("status").to_pylist()) == {"ok": 10, "tool_error": 2}
    assert run.trials.column("cost_micros").null_count == 2
