"""SWE-bench results as runs: small files of the documented forms, written here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from agentbench_lab.benchmarks import Options, load_results
from agentbench_lab.benchmarks.swe_bench.reports import repository
from agentbench_lab.cli import cli
from agentbench_lab.errors import LabError
from agentbench_lab.results.run import Run, load_run
from agentbench_lab.running.merge import save_new


def write(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def rows(run: Run) -> dict[tuple[str, str | None, str], dict[str, Any]]:
    return {(row["driver"], row["model"], row["case_id"]): row for row in run.trials.to_pylist()}


def entry(name: str, resolved: float, details: dict[str, Any] | None, **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "resolved": resolved,
        "folder": f"f-{name}",
        "per_instance_details": details,
        **more,
    }


def detail(resolved: bool, cost: float | None = 0.25, api_calls: int | None = 4) -> dict[str, Any]:
    return {"resolved": resolved, "cost": cost, "api_calls": api_calls}


def board(name: str, *entries: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "results": list(entries)}


BOARDS = {
    "leaderboards": [
        board("Lite", entry("old", 3.0, None)),
        board(
            "bash-only",
            entry(
                "A 1",
                50.0,
                {"o__r-1": detail(True), "o__r-2": detail(False, 0.1000005, 7)},
                cost=0.3500005,
                instance_cost=0.17500025,
                instance_calls=5.5,
            ),
            entry("B 2", 100.0, {"o__r-1": detail(True, 0, 3), "o__r-2": detail(False, 0, 0)}),
            entry("C 3", 12.5, None),
        ),
    ]
}


# ---- leaderboards --------------------------------------------------------------------------------------------


def test_a_leaderboard_is_one_run_with_an_arm_for_each_entry_that_has_details(tmp_path: Path) -> None:
    run = load_results("swe-bench", write(tmp_path / "leaderboards.json", BOARDS))
    found = rows(run)
    assert [(arm.driver, arm.model) for arm in run.card.arms] == [
        ("mini-swe-agent", "A 1"),
        ("mini-swe-agent", "B 2"),
    ]
    assert run.card.suites[0].name == "swe-bench-bash-only"
    assert (run.card.counts.asked, run.card.counts.judged, run.card.counts.missing) == (4, 4, 0)
    one = found["mini-swe-agent", "A 1", "o__r-1"]
    assert (one["solved"], one["model_calls"], one["cost_micros"], one["group"]) == (True, 4, 250_000, "o/r")
    assert one["extra"] is None
    assert one["evidence"] == "imported"


def test_a_cost_that_micros_do_not_hold_is_kept_exactly(tmp_path: Path) -> None:
    found = rows(load_results("swe-bench", write(tmp_path / "b.json", BOARDS)))
    odd = found["mini-swe-agent", "A 1", "o__r-2"]
    assert odd["cost_micros"] == 100_000  # 100,000.5, half to even
    assert json.loads(odd["extra"]) == {"cost_usd": 0.1000005}


def test_no_cost_is_unknown_unless_nothing_was_called(tmp_path: Path) -> None:
    found = rows(load_results("swe-bench", write(tmp_path / "b.json", BOARDS)))
    assert found["mini-swe-agent", "B 2", "o__r-1"]["cost_micros"] is None
    assert found["mini-swe-agent", "B 2", "o__r-2"]["cost_micros"] == 0


def test_a_published_cost_stands_beside_that_of_the_trials(tmp_path: Path) -> None:
    """A cost of 0 for three calls is unknown for the trial, so that the rows give no sum for the published 0.25."""
    details = {"o__r-1": detail(True), "o__r-2": detail(False, 0, 3)}
    boards = {"leaderboards": [board("bash-only", entry("A", 50.0, details, cost=0.25))]}
    run = load_results("swe-bench", write(tmp_path / "b.json", boards))
    assert run.card.imported is not None
    claim = next(one for one in run.card.imported.published if one.metric == "cost")
    assert (claim.published, claim.rows, claim.follows) == (0.25, None, False)


def test_a_cost_beyond_all_numbers_is_refused(tmp_path: Path) -> None:
    boards = {"leaderboards": [board("bash-only", entry("A", 50.0, {"o__r-1": detail(True, 1.7e308)}))]}
    with pytest.raises(LabError, match=r"A: o__r-1: 1\.7e\+308 is too much money"):
        load_results("swe-bench", write(tmp_path / "b.json", boards))


@pytest.mark.parametrize("percent", [1.7e308, -1.7e308, 101.0])
def test_a_percentage_that_is_no_share_is_told_as_such(tmp_path: Path, percent: float) -> None:
    boards = {"leaderboards": [board("bash-only", entry("A", percent, {"o__r-1": detail(True)}))]}
    run = load_results("swe-bench", write(tmp_path / "b.json", boards))
    assert run.card.imported is not None
    assert [claim.note for claim in run.card.imported.published] == [
        f"the rows have 1 of 1 resolved; {percent} % is no share"
    ]


@pytest.mark.parametrize("calls", [-1, 2**63, 10**400], ids=["negative", "no int64", "no float"])
def test_a_number_of_model_calls_that_cannot_be_is_refused(tmp_path: Path, calls: int) -> None:
    details = {"o__r-1": detail(True, api_calls=calls)}
    boards = {"leaderboards": [board("bash-only", entry("A", 50.0, details, instance_calls=3.0))]}
    with pytest.raises(LabError, match="A: o__r-1: api_calls is no number of model calls"):
        load_results("swe-bench", write(tmp_path / "b.json", boards))


@pytest.mark.parametrize("count", [10**12, -1])
def test_a_number_of_instances_that_cannot_be_is_refused(tmp_path: Path, count: int) -> None:
    path = write(tmp_path / "m.run.json", {"resolved_ids": ["o__r-1"], "total_instances": count})
    with pytest.raises(LabError, match=r"m\.run\.json.*total_instances"):
        load_results("swe-bench", path)


def test_published_figures_stand_beside_what_the_rows_give(tmp_path: Path) -> None:
    run = load_results("swe-bench", write(tmp_path / "b.json", BOARDS))
    assert run.card.imported is not None
    told = {(claim.model, claim.metric): claim for claim in run.card.imported.published}
    assert {key: claim.follows for key, claim in told.items()} == {
        ("A 1", "resolved"): True,
        ("A 1", "cost"): True,
        ("A 1", "cost per instance"): True,
        ("A 1", "calls per instance"): True,
        ("B 2", "resolved"): False,
    }
    wrong = told["B 2", "resolved"]
    assert (wrong.published, wrong.rows) == (1.0, 0.5)
    assert wrong.note == "1 of 1 would give it; there are 2 rows"
    assert "Without details, and so left out: 1 of 3 entries (C 3)." in run.card.imported.notes
    assert "Other leaderboards of the file are left out: Lite." in run.card.imported.notes


def test_a_share_that_no_denominator_close_by_explains_says_what_it_would_take(tmp_path: Path) -> None:
    details = {f"o__r-{n}": detail(n < 2) for n in range(20)}  # 2 of 20
    run = load_results(
        "swe-bench",
        write(tmp_path / "b.json", {"leaderboards": [board("bash-only", entry("A", 55.0, details))]}),
    )
    assert run.card.imported is not None
    assert [claim.note for claim in run.card.imported.published] == [
        "the rows have 2 of 20 resolved; 55.0 % of 20 would be 11"
    ]


def test_an_instance_that_another_entry_has_is_missing_where_it_has_no_row(tmp_path: Path) -> None:
    file = {
        "leaderboards": [
            board(
                "bash-only",
                entry("A", 100.0, {"o__r-1": detail(True)}),
                entry("B", 50.0, {"o__r-1": detail(True), "o__r-2": detail(False)}),
            )
        ]
    }
    run = load_results("swe-bench", write(tmp_path / "b.json", file))
    assert (run.card.counts.asked, run.card.counts.missing) == (4, 1)
    assert run.card.imported is not None
    assert "A: 1 of 2 instances have no row." in run.card.imported.notes


def test_on_other_boards_an_entry_is_the_agent_and_a_tag_its_model(tmp_path: Path) -> None:
    details = {"o__r-1": detail(True)}
    file = {
        "leaderboards": [
            board(
                "Verified",
                entry("Tool", 100.0, details, tags=["Model: m-1", "Org: x"]),
                entry("Two", 100.0, details, tags=["Model: m-1", "Model: m-2"]),
            ),
            board("bash-only", entry("A", 100.0, details)),
        ]
    }
    path = write(tmp_path / "b.json", file)
    run = load_results("swe-bench", path, Options(suite="Verified"))
    assert [(arm.driver, arm.model) for arm in run.card.arms] == [("Tool", "m-1"), ("Two", None)]
    assert run.card.suites[0].name == "swe-bench-verified"
    with pytest.raises(LabError, match=r"several leaderboards have details \(Verified, bash-only\)"):
        load_results("swe-bench", path)


def test_two_entries_of_one_name_are_told_apart_by_their_folders(tmp_path: Path) -> None:
    details = {"o__r-1": detail(True)}
    twins = [entry("A", 100.0, details, folder=f"f{n}") for n in (1, 2)]
    path = write(tmp_path / "b.json", {"leaderboards": [board("bash-only", *twins)]})
    assert [arm.model for arm in load_results("swe-bench", path).card.arms] == ["A (f1)", "A (f2)"]
    twins[1]["folder"] = "f1"
    with pytest.raises(LabError, match=r"2 entries are called 'A \(f1\)'"):
        load_results("swe-bench", write(tmp_path / "c.json", {"leaderboards": [board("bash-only", *twins)]}))


def test_a_board_without_details_holds_no_trials(tmp_path: Path) -> None:
    path = write(tmp_path / "b.json", {"leaderboards": [board("Lite", entry("A", 3.0, None))]})
    with pytest.raises(LabError, match="no entry has per_instance_details"):
        load_results("swe-bench", path)


def test_a_wrong_type_is_told_with_its_place(tmp_path: Path) -> None:
    file = {"leaderboards": [board("bash-only", entry("A", 3.0, {"o__r-1": {"resolved": "yes"}}))]}
    with pytest.raises(LabError, match=r"b\.json: Expected `bool`, got `str` - at `\$\.leaderboards\[0\]"):
        load_results("swe-bench", write(tmp_path / "b.json", file))
    with pytest.raises(LabError, match=r"o__r-1: -1\.0 is no amount of money"):
        file = {"leaderboards": [board("bash-only", entry("A", 3.0, {"o__r-1": detail(True, -1)}))]}
        load_results("swe-bench", write(tmp_path / "c.json", file))


# ---- run reports ---------------------------------------------------------------------------------------------

REPORT = {
    "total_instances": 8,
    "submitted_instances": 7,
    "completed_instances": 3,
    "resolved_instances": 2,
    "unresolved_instances": 1,
    "empty_patch_instances": 1,
    "error_instances": 1,
    "infra_failure_instances": 1,
    "completed_ids": ["o__r-1", "o__r-2", "o__r-3"],
    "incomplete_ids": ["o__r-8"],
    "submitted_ids": ["o__r-1", "o__r-2", "o__r-3", "o__r-4", "o__r-5", "o__r-6", "o__s-9"],
    "resolved_ids": ["o__r-1", "o__r-2"],
    "unresolved_ids": ["o__r-3"],
    "empty_patch_ids": ["o__r-4"],
    "error_ids": ["o__r-5"],
    "infra_failure_ids": ["o__r-6"],
    "ambiguous_failure_ids": ["o__r-3"],
    "failure_reasons": {"o__r-6": "no space left", "o__r-3": "missing_module"},
    "schema_version": 2,
}


def test_a_run_report_follows_the_harness_nothing_is_excluded(tmp_path: Path) -> None:
    run = load_results("swe-bench", write(tmp_path / "model-x.run1.json", REPORT))
    found = {row["case_id"]: row for row in run.trials.to_pylist()}
    assert {case: row["solved"] for case, row in found.items()} == {
        "o__r-1": True,
        "o__r-2": True,
        "o__r-3": False,
        "o__r-4": False,
        "o__r-5": False,
        "o__r-6": False,
    }
    assert found["o__r-3"]["reasons"] == ["the failure may be the infrastructure's: missing_module"]
    assert found["o__r-4"]["reasons"] == ["the patch is empty"]
    assert found["o__r-5"]["reasons"] == ["the evaluation ended in an error"]
    assert found["o__r-6"]["reasons"] == ["the infrastructure of the evaluation failed: no space left"]
    counts = run.card.counts
    assert (counts.asked, counts.judged, counts.excluded, counts.missing) == (8, 6, 0, 2)
    assert run.card.suites[0].name == "swe-bench"
    assert run.card.arms[0].driver == "model-x.run1"
    assert run.card.imported is not None
    assert all(claim.follows for claim in run.card.imported.published)
    assert run.card.imported.notes == (
        "Submitted, and in no list of outcomes: 1 (o__s-9).",
        "Not resolved because the evaluation's infrastructure failed, as the source counts: 1 (o__r-6).",
    )


def test_a_report_of_sb_cli_names_its_suite_and_submission_in_its_file_name(tmp_path: Path) -> None:
    report = {
        "total_instances": 4,
        "resolved_ids": ["o__r-1"],
        "unresolved_ids": ["o__r-2"],
        "failed_ids": ["o__r-3"],
        "error_ids": ["o__r-3"],
        "pending_ids": ["o__r-4"],
        "pending_instances": 1,
        "resolved_instances": 3,
        "schema_version": 2,
    }
    path = write(tmp_path / "swe-bench_verified__test__me__two.json", report)
    run = load_results("swe-bench", path, Options(model="m"))
    assert (run.card.suites[0].name, run.card.arms[0].driver, run.card.arms[0].model) == (
        "swe-bench-verified",
        "me__two",
        "m",
    )
    assert (run.card.counts.judged, run.card.counts.missing) == (3, 1)
    assert run.card.imported is not None
    assert run.card.imported.notes == ("Submitted and still pending, so missing: 1 (o__r-4).",)
    wrong = [claim for claim in run.card.imported.published if not claim.follows]
    assert [(claim.metric, claim.published, claim.rows) for claim in wrong] == [("resolved_instances", 3, 1)]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"unresolved_ids": ["o__r-1"]}, "o__r-1 is both in resolved_ids and in unresolved_ids"),
        ({"resolved_ids": ["o__r-1", "o__r-1"]}, "o__r-1 is both in resolved_ids and in resolved_ids"),
        ({"incomplete_ids": ["o__r-1"]}, "o__r-1 is in resolved_ids, yet incomplete or pending"),
        ({"total_instances": 3}, "total_instances is 3, but 6 are listed"),
        ({"schema_version": 3}, "schema_version 3 is not 2"),
        ({"total_instances": None}, "Expected `int`, got `null`"),
    ],
)
def test_a_report_that_contradicts_itself_is_refused(
    tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    with pytest.raises(LabError, match=said):
        load_results("swe-bench", write(tmp_path / "r.json", {**REPORT, **change}))


# ---- per-instance reports ------------------------------------------------------------------------------------


def report(resolved: bool, **more: Any) -> dict[str, Any]:
    status = {
        "FAIL_TO_PASS": {"success": ["a"] if resolved else [], "failure": [] if resolved else ["a"]},
        "PASS_TO_PASS": {"success": ["b", "c"], "failure": []},
        "FAIL_TO_FAIL": {"success": [], "failure": []},
    }
    return {"patch_exists": True, "resolved": resolved, "tests_status": status, **more}


def test_a_folder_of_reports_with_and_without_their_ids(tmp_path: Path) -> None:
    write(tmp_path / "sub" / "logs" / "o__r-1" / "report.json", report(True))
    write(tmp_path / "sub" / "logs" / "o__r-2" / "report.json", {"o__r-2": report(False)})
    write(
        tmp_path / "sub" / "logs" / "o__r-3" / "report.json",
        {"o__r-3": report(False, patch_successfully_applied=False, tests_status=None)},
    )
    for path in (tmp_path / "sub", tmp_path / "sub" / "logs"):
        run = load_results("swe-bench", path)
        assert run.card.arms[0].driver == "sub"
        found = {row["case_id"]: row for row in run.trials.to_pylist()}
        assert {case: row["solved"] for case, row in found.items()} == {
            "o__r-1": True,
            "o__r-2": False,
            "o__r-3": False,
        }
        assert json.loads(found["o__r-1"]["extra"]) == {
            "fail_to_pass_passed": 1,
            "fail_to_pass_failed": 0,
            "pass_to_pass_passed": 2,
            "pass_to_pass_failed": 0,
        }
        assert found["o__r-2"]["reasons"] == ["1 of 1 FAIL_TO_PASS tests fail"]
        assert found["o__r-3"]["reasons"] == ["the patch does not apply"]


def test_the_harness_own_tree_has_a_model_in_every_run(tmp_path: Path) -> None:
    for model in ("m1", "m2"):
        for n in (1, 2):
            write(
                tmp_path / "run_evaluation" / "r" / model / f"o__r-{n}" / "report.json",
                {f"o__r-{n}": report(n == 1)},
            )
    run = load_results("swe-bench", tmp_path / "run_evaluation")
    assert [arm.driver for arm in run.card.arms] == ["m1", "m2"]
    assert run.card.counts.judged == 4
    one = load_results("swe-bench", tmp_path / "run_evaluation" / "r" / "m1" / "o__r-1" / "report.json")
    assert (one.card.arms[0].driver, one.card.counts.judged) == ("m1", 1)


def test_an_instance_that_comes_twice_is_refused(tmp_path: Path) -> None:
    for run in ("a", "b"):
        write(tmp_path / run / "m" / "o__r-1" / "report.json", report(True))
    with pytest.raises(LabError, match=r"o__r-1 of m is also in .*; import one run at a time"):
        load_results("swe-bench", tmp_path)


def test_what_is_no_report_is_refused_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(LabError, match=r"no report\.json in it"):
        load_results("swe-bench", tmp_path / "empty")
    with pytest.raises(LabError, match=r"x\.json: neither leaderboards"):
        load_results("swe-bench", write(tmp_path / "x.json", {"results": []}))
    with pytest.raises(LabError, match=r"y\.json: Expected `object`, got `array`"):
        load_results("swe-bench", write(tmp_path / "y.json", []))
    (tmp_path / "o__r-1").mkdir()
    (tmp_path / "o__r-1" / "report.json").write_text("", encoding="utf-8")
    with pytest.raises(LabError, match=r"report\.json: Input data was truncated"):
        load_results("swe-bench", tmp_path)


def test_the_repository_is_in_the_id() -> None:
    assert repository("scikit-learn__scikit-learn-12345") == "scikit-learn/scikit-learn"
    assert repository("mui__material-ui-9") == "mui/material-ui"
    assert repository("task-9") == repository("plain") == ""


def test_an_imported_run_without_times_is_saved_and_read_back(tmp_path: Path) -> None:
    run = load_results("swe-bench", write(tmp_path / "b.json", BOARDS), Options(name="saved"))
    save_new(run, tmp_path / "saved")
    again = load_run(tmp_path / "saved")
    assert again.trials.equals(run.trials)
    assert again.card.imported == run.card.imported
    bench = json.loads((tmp_path / "saved" / "bench.json").read_text(encoding="utf-8"))
    assert bench["started_at"] == "1970-01-01T00:00:00Z"
    assert "the start is unknown; 1970-01-01T00:00:00Z stands for it" in bench["notes"]


def test_of_many_published_figures_the_import_tells_those_that_do_not_follow(tmp_path: Path) -> None:
    details = {"o__r-1": detail(True), "o__r-2": detail(False)}
    entries = [entry(f"M{n}", 50.0 if n else 70.0, details, cost=0.5) for n in range(6)]
    path = write(tmp_path / "b.json", {"leaderboards": [board("bash-only", *entries)]})
    done = CliRunner().invoke(cli, ["import", "swe-bench", str(path), "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    said = done.output.replace("\n", " ")
    assert "M0: resolved: published 70%, rows give 50% (the rows have 1 of 2 resolved" in said
    assert said.count(": published ") == 1
    assert "11 of 12 published figures follow from the rows" in said
