"""Calls that did not come back ok: by hand, by their laws, and from real tools."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from agentbench_lab import tables
from agentbench_lab.analysis import metrics
from agentbench_lab.analysis.metrics.failing_calls import ERRORS
from agentbench_lab.cases import Task
from agentbench_lab.drivers.context import Context
from agentbench_lab.running.runner import evaluate
from agentbench_lab.stats import wilson, wilson_over_cases
from agentbench_lab.transcripts import Transcript
from agentbench_lab.worlds.toolbox import Toolbox

from ..doing import call, case, write_suite
from .rows import calls, get, trial, trials

METRICS = [*ERRORS, "any"]
FEW: dict[str, Any] = {"resamples": 100}


def rate(found: pl.DataFrame, metric: str, arm: str = "a") -> tuple[Any, ...]:
    each = get(found, driver=arm, metric=metric)
    return each["n"], each["of"], each["estimate"]


def test_a_call_that_failed_is_no_success_and_no_exclusion() -> None:
    """Four answers, of which two are errors: one of the tool and one of the protocol. 2 of 4."""
    made = calls(("c1", "ok"), ("c1", "tool_error"), ("c2", "protocol_error"), ("c2", "ok"))
    found = metrics.tool_errors(
        trials(trial("c1", True, tool_calls=2), trial("c2", True, tool_calls=2)), made
    )
    assert found["metric"].to_list() == METRICS
    assert rate(found, "any") == (2, 4, 0.5)
    assert rate(found, "tool_error") == rate(found, "protocol_error") == (1, 4, 0.25)
    assert rate(found, "malformed") == rate(found, "undeclared") == rate(found, "schema_error") == (0, 4, 0.0)
    assert set(found["reason"]) == {None}


def test_the_interval_is_over_whole_cases_with_all_their_calls() -> None:
    made = calls(*[("c1", "tool_error")] * 3, ("c1", "ok"), ("c2", "ok"), *[("c3", "ok")] * 2)
    found = metrics.tool_errors(trials(*(trial(f"c{n}", True) for n in (1, 2, 3, 4))), made)
    each = get(found, metric="tool_error")
    ends = wilson_over_cases([3, 0, 0], [4, 1, 2])
    assert (each["n"], each["of"], (each["low"], each["high"])) == (3, 7, ends)
    assert each["estimator"] == "share, wilson over cases"


def test_no_error_in_any_call_is_not_known_for_sure() -> None:
    """At one call a case Wilson's interval; at more with each case as one observation."""
    table = trials(*(trial(f"c{n}", True) for n in range(10)))
    one = [(f"c{n}", "ok") for n in range(10)]
    single = get(metrics.tool_errors(table, calls(*one)), metric="any")
    assert (single["low"], single["high"], single["estimator"]) == (*(wilson(0, 10) or ()), "share, wilson")
    double = get(metrics.tool_errors(table, calls(*one, *one)), metric="any")
    assert (double["low"], double["high"]) == wilson(0, 10)
    assert (double["of"], double["estimator"]) == (20, "share, wilson over cases")


def test_one_case_with_several_calls_is_one_observation() -> None:
    """As in every share: half of one, which says next to nothing."""
    each = get(
        metrics.tool_errors(trials(trial("c", True)), calls(("c", "ok"), ("c", "malformed"))), metric="any"
    )
    assert (each["estimate"], each["low"], each["high"], each["reason"]) == (
        0.5,
        *(wilson(0.5, 1) or ()),
        None,
    )


def test_an_arm_that_called_nothing_has_no_rate() -> None:
    found = metrics.tool_errors(trials(trial("c", True), trial("c", False, arm="b")), calls(("c", "ok")))
    for metric in METRICS:
        each = get(found, driver="b", metric=metric)
        assert (each["n"], each["of"], each["estimate"], each["reason"]) == (0, 0, None, "no call was made")
    assert rate(found, "any") == (0, 1, 0.0)


def test_where_a_source_has_only_counts_the_kinds_are_unknown() -> None:
    """As of imported rows: 3 of 8 calls failed, nobody knows how; without counts of errors nothing is known."""
    table = trials(
        trial("c1", True, tool_calls=5, tool_errors=3),
        trial("c2", True, tool_calls=3, tool_errors=0),
        trial("c3", True, tool_calls=4, tool_errors=None),
        trial("c1", True, arm="b", tool_calls=4, tool_errors=None),
    )
    found = metrics.tool_errors(table, calls())
    assert rate(found, "any") == (3, 8, 3 / 8)
    assert get(found, driver="a", metric="any")["reason"] == "nothing is known of 4 of 12 calls"
    for metric in ERRORS:
        each = get(found, driver="a", metric=metric)
        assert (each["n"], each["estimate"]) == (None, None)
        assert each["reason"] == "the source does not tell the kinds of errors apart"
    for metric in METRICS:
        each = get(found, driver="b", metric=metric)
        assert (each["n"], each["of"], each["estimate"]) == (None, 0, None)
        assert each["reason"] == "nothing is known of 4 calls"


def test_kinds_that_a_source_does_not_tell_are_unknown_and_not_zero() -> None:
    """A source that names only errors of tools: 1 of 4, and of the other kinds nothing is known."""
    table = trials(trial("c1", True, tool_calls=2), trial("c2", True, tool_calls=2))
    made = calls(("c1", "ok"), ("c1", "tool_error"), ("c2", "ok"), ("c2", "ok"))
    told = SimpleNamespace(imported=SimpleNamespace(statuses=("tool_error",)))
    found = metrics.tool_errors(table, made, told)
    assert rate(found, "tool_error") == rate(found, "any") == (1, 4, 0.25)
    assert get(found, metric="any")["reason"] == "of failed calls the source tells only tool_error"
    for metric in ("malformed", "undeclared", "schema_error", "protocol_error"):
        each = get(found, metric=metric)
        assert (each["n"], each["of"], each["estimate"], each["low"]) == (None, 4, None, None)
        assert each["reason"] == "the source does not tell the kinds of errors apart"
    for all_told in (
        None,
        SimpleNamespace(imported=None),
        SimpleNamespace(imported=SimpleNamespace(statuses=())),
    ):
        assert rate(metrics.tool_errors(table, made, all_told), "malformed") == (0, 4, 0.0)
    shown = {row[3]: row[1:3] for row in tables.tool_errors(found).rows}
    assert shown["malformed"] == ["the source does not tell the kinds of errors apart", "–/4"]
    assert shown["tool_error"][1] == "1/4"


def test_calls_of_excluded_trials_count() -> None:
    found = metrics.tool_errors(
        trials(trial("c1", None), trial("c2", True)), calls(("c1", "ok"), ("c2", "ok"))
    )
    assert rate(found, "any") == (0, 2, 0.0)


def test_arms_differ_by_model_and_scaffold() -> None:
    table = trials(trial("c", True, model="m"), trial("c", True), trial("c", True, scaffold="linear"))
    made = calls(("c", "tool_error")).vstack(calls(("c", "ok")).with_columns(model=pl.lit("m")))
    found = metrics.tool_errors(table, made).filter(pl.col("metric") == "any")
    assert found.select("model", "scaffold", "n", "of").rows() == [
        ("m", "once", 0, 1),
        (None, "once", 1, 1),
        (None, "linear", 0, 0),
    ]


STATUS = st.sampled_from(["ok", *ERRORS])


@given(st.lists(st.tuples(st.sampled_from(["c1", "c2", "c3"]), STATUS), max_size=15))
def test_the_kinds_add_up_to_any(made: list[tuple[str, str]]) -> None:
    found = metrics.tool_errors(trials(*(trial(f"c{n}", True) for n in (1, 2, 3))), calls(*made), **FEW)
    bad = [status for _, status in made if status != "ok"]
    assert rate(found, "any")[:2] == (len(bad), len(made))
    assert [rate(found, metric)[0] for metric in ERRORS] == [bad.count(metric) for metric in ERRORS]
    for each in found.to_dicts():
        assert (each["estimate"] is None) == (not made)
        if each["low"] is not None:
            assert 0 <= each["low"] <= each["estimate"] + 1e-12
            assert each["estimate"] <= each["high"] + 1e-12 <= 1 + 1e-9


def test_real_tools_say_how_a_call_failed(tmp_path: Path) -> None:
    """One that works, a tool that was not offered, an argument that there is not, and a thing that there is not."""
    suite = write_suite(
        tmp_path, [case("A", "TOOL-0", "?", "describe", calls=[call("describe", symbol="Cart")])]
    )

    def clumsy(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
        tools.call("tmct_describe", {"symbol": "Cart"})
        tools.call("tmct_impact", {"module": "app/money.py"})
        tools.call("tmct_describe", {"symbol": "Cart", "force": True})
        tools.call("tmct_describe", {"symbol": "Nobody"})
        return Transcript()

    run = evaluate(suite, clumsy, save_run=False)
    found = metrics.tool_errors(run.trials, run.calls).with_columns(driver=pl.lit("a"))
    seen = {metric: rate(found, metric)[0] for metric in METRICS}
    assert seen["undeclared"] == seen["malformed"] == 1
    assert rate(found, "any")[:2] == (run.trials.column("tool_errors")[0].as_py(), 4)
    assert sum(seen[metric] for metric in ERRORS) == seen["any"]


def test_no_rows_give_no_rows() -> None:
    assert metrics.tool_errors(trials(), calls()).height == 0
