"""Looking at trials: what was asked, expected, called and observed, and which check failed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentbench_lab import tables
from agentbench_lab.analysis import metrics
from agentbench_lab.cases import Task
from agentbench_lab.drilldown import drill
from agentbench_lab.drivers.context import Context
from agentbench_lab.drivers.faults import InfrastructureError
from agentbench_lab.errors import LabError, counted
from agentbench_lab.results.run import Run
from agentbench_lab.running.runner import evaluate
from agentbench_lab.transcripts import Transcript
from agentbench_lab.worlds.toolbox import Toolbox

from .doing import CASES, knows, write_suite


def moody(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
    """Crashes on descriptions, finds nobody at home for callers, and else looks with a wrong argument; three ways."""
    if task.request.startswith("Describe"):
        raise RuntimeError("no idea;\n what a; thing")
    if "call" in task.request:
        raise InfrastructureError("connection refused")
    tools.call(task.tools[0], {"symbol": "Cart", "force": True})
    return Transcript(notes=("gave up on " + "it " * 3,))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("runs")
    return evaluate(write_suite(folder), [knows, moody], trials=2, retries=0, save_run=False)


def ids(found: list[dict[str, Any]]) -> set[str]:
    return {one["case_id"] for one in found}


def test_all_is_every_trial_in_the_order_of_the_run(run: Run) -> None:
    found = tables.looked(run)
    assert [(one["case_id"], one["driver"], one["trial"]) for one in found] == [
        (row["case_id"], row["driver"], row["trial"]) for row in run.trials.to_pylist()
    ]
    assert json.loads(json.dumps(found)) == found


def test_conditions_are_anded(run: Run) -> None:
    """By failure, outcome, class, case, and by any part of why."""
    failed = tables.looked(run, failed=True)
    assert {one["outcome_class"] for one in failed} == {"safe_non_success", "unsafe"}
    assert {one["driver"].rpartition(":")[2] for one in failed} == {"moody"}
    crashed = tables.looked(run, outcome="driver_error")
    assert ids(crashed) == {case["id"] for case in CASES if case["request"].startswith("Describe")}
    assert ids(tables.looked(run, outcome="driver_error", case="t0-cart")) == {"t0-cart"}
    assert tables.looked(run, outcome="unsafe") == [one for one in failed if one["outcome_class"] == "unsafe"]
    assert ids(tables.looked(run, case="t9-*")) == {
        case["id"] for case in CASES if case["id"].startswith("t9-")
    }
    excluded = tables.looked(run, reason="INFRASTRUCTURE")
    assert {one["stop"] for one in excluded} == {"infrastructure_error"}
    assert ids(excluded) == {case["id"] for case in CASES if "call" in case["request"]}
    assert tables.looked(run, reason="refused", outcome="driver_error") == []
    assert tables.looked(run, reason="unknown-arg") == tables.looked(run, outcome="hallucinated_call")


def test_empty_is_no_condition(run: Run) -> None:
    """As a command line hands them over."""
    assert tables.looked(run, outcome="", reason="", case="") == tables.looked(run)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"outcome": "driver_eror"}, "no outcome 'driver_eror' (did you mean 'driver_error'?)"),
        ({"outcome": "safe"}, "no outcome 'safe'"),
        ({"case": "t0-card"}, "no case 't0-card' (did you mean 't0-cart'?)"),
        ({"case": "zz*"}, "no case 'zz*'"),
    ],
)
def test_a_wrong_name_gets_the_near_match(run: Run, given: dict[str, str], says: str) -> None:
    with pytest.raises(LabError) as caught:
        tables.looked(run, **given)  # type: ignore[arg-type]
    assert says in str(caught.value)


def test_one_trial_has_all_that_happened(run: Run) -> None:
    """Asked, expected, observed step by step, and the check that named the outcome first."""
    (one,) = (each for each in tables.looked(run, case="t4-either", failed=True) if each["trial"] == 1)
    assert one["asked"]["request"] == "If Cart is tested, by what?"
    assert one["expected"]["calls"] == [{"name": "tmct_tests_for", "input": {"symbol": "Cart"}}]
    (step,) = one["observed"]
    assert (step["step"], step["name"], step["status"]) == (1, "tmct_tests_for", "malformed")
    assert step["input"] == {"symbol": "Cart", "force": True}
    first = next(check for check in one["checks"] if not check["passed"])
    assert (first["name"], one["reasons"][0]) == ("hallucination", first["detail"])
    assert one["called"] == []
    text = str(tables.trial(run, "t4-either", one["driver"]))
    for said in (
        "If Cart is tested, by what?",
        'tmct_tests_for {"symbol": "Cart"}',
        '"force": true',
        "unknown-arg: tmct_tests_for.force",
        "FAILED first: hallucinated",
        "outcome hallucinated_call (unsafe); stop: done; evidence: live",
    ):
        assert said in text


def test_a_trace_and_an_exclusion_are_told(run: Run) -> None:
    arm = next(each.driver for each in run.card.arms if each.driver.endswith("moody"))
    text = str(tables.trial(run, "t1-callers", arm, 2))
    assert "excluded by environment: " in text
    assert "connection refused" in text
    knower = next(each.driver for each in run.card.arms if each.driver.endswith("knows"))
    text = str(tables.trial(run, "t9-goal", knower))
    assert "trace 2 tmct_untested {}" in " ".join(text.split())
    assert "FAILED" not in text


@pytest.mark.parametrize(
    ("case", "arm", "trial", "says"),
    [
        ("t0-card", "knows", 1, "no case 't0-card' (did you mean 't0-cart'?)"),
        ("t0-cart", "nobody", 1, "no arm 'nobody'"),
        ("t0-cart", "", 1, "it has 2 arms; say which"),
        ("t0-cart", "knows", 3, "no trial 3 of 't0-cart'"),
    ],
)
def test_what_is_not_there_is_named(run: Run, case: str, arm: str, trial: int, says: str) -> None:
    full = next((each.driver for each in run.card.arms if arm and each.driver.endswith(arm)), arm)
    with pytest.raises(LabError) as caught:
        tables.trial(run, case, full, trial)
    assert says in str(caught.value)


def test_the_list_says_how_many_and_what_is_not_in_it(run: Run) -> None:
    """Cut after some; excluded trials are nobody's failures."""
    found = tables.looked(run, failed=True)
    table = tables.trials(run, failed=True, most=3)
    assert len(table.rows) == 3
    cut = "(on a command line --all shows all)"
    assert (
        table.notes[0] == f"3 of {len(found)} shown {cut}; {len(found)} of {run.trials.num_rows} trials fit"
    )
    lost = next(row for row in run.trials.to_pylist() if row["excluded"] is not None)
    assert table.notes[1] == (
        f"{counted(run.card.counts.excluded, 'excluded trial')} are no failure of the agent's and not among them; for example: "
        f"{lost['case_id']} #{lost['trial']} ({lost['excluded_owner']}): {lost['excluded']}"
    )
    with pytest.raises(LabError, match=r"no stop, exclusion or failed check says 'zebra'"):
        tables.trials(run, reason="zebra")
    with pytest.raises(LabError, match=r"says 'driver-eror' \(did you mean 'driver_error'\?\)$"):
        tables.looked(run, reason="driver-eror", failed=True)
    everything = tables.trials(run, failed=True, most=10_000)
    assert len(everything.rows) == len(found)
    assert "--all" not in everything.notes[0]
    assert tables.in_full(run, failed=True, most=2)[0].title.startswith(found[0]["case_id"])
    assert tables.first_trial(run, reason="refused", outcome="driver_error").rows == []


def test_failures_show_the_whole_first_check(run: Run) -> None:
    """A detail with a semicolon in it is not cut there."""
    strip = metrics.strip(run.trials, run.cases)
    crashed = strip.filter(strip["outcome"] == "driver_error")
    assert set(crashed["first_reason"]) == {
        row["reasons"][0] for row in run.trials.to_pylist() if row["outcome"] == "driver_error"
    }
    shown = " ".join(" ".join(row) for row in tables.failures(strip, most=50).rows)
    assert "no idea; what a; thing" in " ".join(shown.split())
    assert strip.filter(strip["outcome_class"] == "success")["first_reason"].null_count() > 0


def test_exits_count_every_trial_once(run: Run) -> None:
    """Stop against class, by arm; excluded trials are a line of their own, and the lines of an arm add up."""
    found = metrics.exits(run.trials)
    for driver in set(found["driver"]):
        part = found.filter(found["driver"] == driver)
        rows = [row for row in run.trials.to_pylist() if row["driver"] == driver]
        assert part["n"].sum() == len(rows)
        assert set(part["of"]) == {len(rows)}
        for row in part.iter_rows(named=True):
            same = [r for r in rows if (r["stop"], r["outcome_class"]) == (row["stop"], row["outcome_class"])]
            assert len(same) == row["n"]
    moody_rows = found.filter(found["driver"].str.ends_with("moody"))
    assert moody_rows["stop"].to_list()[-1] == "infrastructure_error"
    assert moody_rows["outcome_class"].to_list()[-1] is None
    text = str(tables.exits(found))
    assert "excluded" in text
    assert "of all trials that ended" in text
    assert tables.exits(metrics.exits(run.trials.slice(0, 0))).notes == ["no trials"]
    assert "no trials" in str(tables.exits(metrics.exits(run.trials.slice(0, 0))))
    assert str(tables.Table("t", [""], []))


def reads(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
    tools.call("bash", {"command": "printf 'one:\\n    two  three\\n'"})
    return Transcript()


def test_what_a_tool_gave_stands_as_it_was() -> None:
    run = evaluate("workspace", reads, only="repair-median", save_run=False)
    (table,) = tables.in_full(run)
    lines = [line.strip(" ") for line in str(table).splitlines()]
    at = next(n for n, line in enumerate(lines) if line.endswith("one:"))
    row = str(table).splitlines()[at]
    assert str(table).splitlines()[at + 1] == f"{' ' * row.index('one:')}    two  three"
    (full,) = [line.full for line in drill(run).lines]
    assert full is not None and any("one:\n    two  three" in row[1] for row in full)
    page = drill(run).html()
    assert 'white-space: pre-wrap; overflow-wrap: anywhere; font-family: monospace">' in page
