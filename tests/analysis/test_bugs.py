"""Faults that other tools were reported to have: none of them is here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from agentbench_lab import tables
from agentbench_lab.analysis import metrics
from agentbench_lab.cases import Call, Task
from agentbench_lab.drivers.context import Context
from agentbench_lab.drivers.faults import InfrastructureError
from agentbench_lab.results.bench_io import to_bench
from agentbench_lab.results.product import read_product
from agentbench_lab.results.run import Run, load_run
from agentbench_lab.results.schema import SCHEMAS, table
from agentbench_lab.running.runner import evaluate
from agentbench_lab.transcripts import Transcript
from agentbench_lab.values import canonical
from agentbench_lab.worlds.toolbox import Toolbox

from ..doing import call, case, write_suite

# ---- 100 % from one surviving trial ----------------------------------------------------------------------------


def goes_down(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
    """Answers the first trial of the first case; then nobody is there."""
    if task.request != "Describe A" or ctx.trial != 1:
        raise InfrastructureError("connection refused")
    done = Call("tmct_describe", {"symbol": "Cart"})
    tools.call(done.name, done.input)
    return Transcript(calls=(done,))


@pytest.fixture(scope="module")
def survivor(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Three cases, two trials each: one success and five exclusions."""
    folder = tmp_path_factory.mktemp("survivor")
    cases = [
        case(name, "TOOL-0", f"Describe {name}", "describe", calls=[call("describe", symbol="Cart")])
        for name in "ABC"
    ]
    suite = write_suite(folder, cases)
    return evaluate(suite, goes_down, trials=2, retries=0, out=folder / "run")


def test_b05_one_surviving_trial_is_counted_over_what_was_asked(survivor: Run) -> None:
    """The rate is 1 of 1, and says that 6 were asked and 1 case is behind it; the interval is as wide as that is."""
    counts = survivor.card.counts
    assert (counts.asked, counts.judged, counts.excluded, counts.missing) == (6, 1, 5, 0)
    rows = metrics.ladder(survivor.trials).filter(pl.col("group") == "TOOL-0")
    (passed,) = rows.filter(pl.col("metric") == "passed").iter_rows(named=True)
    assert (passed["n"], passed["of"], passed["asked"], passed["cases"]) == (1, 1, 6, 1)
    assert passed["low"] < 0.25


def test_b05_the_gate_fails_because_trials_were_not_judged(survivor: Run) -> None:
    (gate,) = metrics.gate(survivor.trials, survivor.card).iter_rows(named=True)
    assert (gate["passes"], gate["failure"]) == (False, "TOOL-0 incomplete: 1 of 6 trials judged")
    (arm,) = survivor.card.envelope
    assert arm.reached is None


def test_b05_no_table_shows_the_rate_without_its_counts(survivor: Run) -> None:
    """Wherever 100 % stands, 1/1 stands beside it, and how many were asked in the same row; the rung does not pass."""
    text = str(tables.ladder(metrics.ladder(survivor.trials)))
    (line,) = (line for line in text.splitlines() if line.startswith("TOOL-0"))
    assert "1/6" in line
    assert "100% [" in line
    assert "1/1" in line
    assert "PASS" not in line


def test_b05_pass_k_says_over_how_many_cases_it_is_and_how_far_it_may_be_off(survivor: Run) -> None:
    """pass^1 is 1.0 over 1 of 3 cases, and between 1/6 and 1; pass^2 is unknown, not 0 or 1."""
    found = metrics.reliability(survivor.trials)
    one, two = found.filter(pl.col("metric") == "pass_hat_k").iter_rows(named=True)
    assert (one["estimate"], one["n"], one["of"], one["short"]) == (1.0, 1, 3, ["B", "C"])
    assert (one["worst"], one["best"]) == (pytest.approx(1 / 6), 1.0)
    assert (one["judged"], one["asked"], one["complete"]) == (1, 6, False)
    assert (two["estimate"], two["reason"]) == (None, "no case has 2 judged trials")
    text = str(tables.reliability(found))
    assert "1 of 3 cases" in text
    cells = [cell for row in tables.reliability(found).rows for cell in row]
    assert "no case has 2 judged trials" in cells  # on a narrow screen the cell has several lines


def test_b05_an_exclusion_is_nobodys_failure(survivor: Run) -> None:
    """No outcome counts it, nor does the file for other harnesses; its owner is named."""
    counts = metrics.outcomes(survivor.trials)
    assert counts.filter(pl.col("over") == "judged")["of"].unique().to_list() == [1]
    assert counts["n"].sum() == 1
    (summary,) = to_bench(survivor).summarize()
    assert (summary.trials, summary.judged, summary.excluded) == (6, 1, 5)
    owners = set(survivor.trials.column("excluded_owner").to_pylist())
    assert owners == {None, "environment"}


# ---- arguments that do not survive the round trip --------------------------------------------------------------

ARGUMENTS: list[tuple[str, dict[str, Any]]] = [
    ("ping", {}),
    ("find", {"city": "Oslo"}),
    ("page", {"n": 3, "ids": []}),
    ("page", {"n": None}),
]
"""Four calls of three tools: no arguments, some, an empty list, and a null that is not an absence."""


def calls_table(*made: tuple[str, dict[str, Any]]) -> pa.Table:
    """Rows of `calls` as the runner writes them."""
    rows = [
        ("s", "c", "d", None, "once", 1, 1, step, 0, name, canonical(given).decode(), "ok", "", None)
        for step, (name, given) in enumerate(made, start=1)
    ]
    return table("calls", rows)


def arguments(found: pa.Table) -> list[tuple[str, Any]]:
    return [(row["name"], json.loads(row["input"])) for row in found.to_pylist()]


def test_b07_arguments_of_different_tools_come_back_as_they_were(tmp_path: Path) -> None:
    """Through Parquet: {} stays {}, null is no absence, [] stays [], and no call gains another's keys."""
    pq.write_table(calls_table(*ARGUMENTS), tmp_path / "calls.parquet")
    assert arguments(pq.read_table(tmp_path / "calls.parquet")) == ARGUMENTS
    assert pl.read_parquet(tmp_path / "calls.parquet")["input"].to_list()[3] == '{"n":null}'


def test_b07_files_of_different_calls_are_one_table(tmp_path: Path) -> None:
    """Also when one file has only calls without arguments."""
    for number in (0, 2):
        pq.write_table(calls_table(ARGUMENTS[number]), tmp_path / f"{number}.parquet")
    parts = [pq.read_table(tmp_path / f"{number}.parquet") for number in (0, 2)]
    assert arguments(pa.concat_tables(parts)) == [ARGUMENTS[0], ARGUMENTS[2]]


def test_b07_a_late_key_is_never_dropped_in_silence() -> None:
    """A row with one value more is refused with its number; the columns are the declared ones, whatever comes first."""
    width = len(SCHEMAS["calls"])
    rows = [("s", "c", "d", None, "once", 1, 1, step, 0, "ping", "{}", "ok", "", None) for step in (1, 2, 3)]
    rows.append((*rows[0], "late key"))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=f"calls, row 4: {width + 1} values for {width} columns"):
        table("calls", rows)


def sends_all(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
    """Claims and makes calls with all kinds of arguments, fit or not."""
    made = tuple(
        Call("tmct_describe", {**given, "symbol": "Cart"} if given else {}) for _, given in ARGUMENTS
    )
    for one in made:
        tools.call(one.name, one.input)
    return Transcript(calls=made, answer={"n": None, "ids": []})


def test_b07_arguments_survive_a_whole_run(tmp_path: Path) -> None:
    """Claims and ledger in product.jsonl, calls and the answer in Parquet: the same four objects everywhere."""
    suite = write_suite(
        tmp_path, [case("A", "TOOL-0", "?", "describe", calls=[call("describe", symbol="Cart")])]
    )
    evaluate(suite, sends_all, out=tmp_path / "run")
    given = [{}, *({**each, "symbol": "Cart"} for _, each in ARGUMENTS[1:])]
    (row,) = read_product(tmp_path / "run" / "product.jsonl")
    assert [one.input for one in row.produced.calls] == given
    assert [one.input for one in row.produced.ledger] == given
    read = load_run(tmp_path / "run")
    assert [json.loads(text) for text in read.calls.column("input").to_pylist()] == given
    assert json.loads(read.transcripts.column("answer")[0].as_py()) == {"n": None, "ids": []}
    assert msgspec.to_builtins(row.produced.answer) == {"n": None, "ids": []}
