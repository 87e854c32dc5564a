"""The fast summary is the slow metrics, on every input and from every kind of file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentbench_lab.analysis import metrics
from agentbench_lab.analysis.metrics import summaries
from agentbench_lab.errors import LabError
from agentbench_lab.results.schema import TRIALS, table
from agentbench_lab.running.runner import evaluate

from ..doing import knows, write_suite

SCHEMA: dict[str, Any] = {
    **dict.fromkeys(("suite", "case_id", "driver", "model", "scaffold", "excluded"), pl.String),
    "solved": pl.Boolean,
    "cost_micros": pl.Int64,
}
one_trial = st.fixed_dictionaries(
    {
        "suite": st.sampled_from(["s", "t"]),
        "case_id": st.sampled_from(["c1", "c2", "c3", "ü"]),
        "driver": st.sampled_from(["a", "b"]),
        "model": st.sampled_from([None, "m"]),
        "scaffold": st.sampled_from(["once", "linear"]),
        "excluded": st.sampled_from([None, None, None, "down"]),
        "solved": st.sampled_from([True, False, False, None]),
        "cost_micros": st.sampled_from([None, 0, 1, 250_000, 2**53 + 1]),
    }
)
some_trials = st.lists(one_trial, max_size=60)


def frame(rows: list[dict[str, Any]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=SCHEMA)


def slowly(trials: pl.DataFrame) -> list[dict[str, Any]]:
    """The same figures from `reliability` and from plain Python over the rows."""
    whole = trials.with_columns(pl.lit("live").alias("evidence"), pl.lit("g").alias("group"))
    hats = metrics.reliability(whole).filter(metric="pass_hat_k")
    cases = metrics.per_case(whole)
    most = int(hats["k"].max() or 0)  # type: ignore[arg-type]
    told = []
    for (driver, model, scaffold), part in cases.group_by("driver", "model", "scaffold", maintain_order=True):
        mine = [pl.col("driver") == driver, pl.col("model").eq_missing(pl.lit(model, pl.String))]
        mine.append(pl.col("scaffold") == scaffold)
        costs = trials.filter(mine)["cost_micros"].to_list()
        untold = trials.filter(mine, pl.col("solved").is_null(), pl.col("excluded").is_null()).height
        known = [cost for cost in costs if cost is not None]
        solved, judged, asked = (sum(part[name]) for name in ("solved", "judged", "asked"))
        priced = bool(known) and solved > 0 and not untold
        by_k = dict(hats.filter(mine).select("k", "estimate").iter_rows())
        told.append(
            {
                "driver": driver,
                "model": model,
                "scaffold": scaffold,
                "n": judged,
                "of": asked,
                "cases": part.height,
                "solved": solved,
                "complete": judged == asked,
                **{f"pass_hat_{k}": by_k.get(k) for k in range(1, most + 1)},
                "cost_per_solved": sum(known) / 1e6 / solved if priced else None,
                "lower_bound": priced and len(known) < len(costs),
            }
        )
    return told


def same(found: pl.DataFrame, wanted: list[dict[str, Any]]) -> None:
    assert found.height == len(wanted)
    for mine, theirs in zip(found.to_dicts(), wanted, strict=True):
        floats = {name: value for name, value in theirs.items() if isinstance(value, float)}
        assert {name: mine[name] for name in floats} == pytest.approx(floats, rel=1e-12)
        assert mine == theirs | {name: mine[name] for name in floats}


HAND = frame(
    [
        dict(zip(SCHEMA, row, strict=True))
        for row in (
            ("s", "c1", "a", None, "once", None, True, 500_000),
            ("s", "c1", "a", None, "once", None, False, 250_000),
            ("s", "c2", "a", None, "once", None, True, None),
            ("s", "c2", "a", None, "once", "down", None, 250_000),
            ("s", "c1", "b", "m", "once", None, False, 7),
        )
    ]
)


def test_by_hand() -> None:
    """a: 2 solved of 3 judged of 4, pass^1 (1/2 + 1) / 2, pass^2 over c1 alone; a dollar, of one trial unknown."""
    a, b = metrics.summary(HAND).to_dicts()
    assert a == {
        "driver": "a",
        "model": None,
        "scaffold": "once",
        "n": 3,
        "of": 4,
        "cases": 2,
        "solved": 2,
        "complete": False,
        "pass_hat_1": 0.75,
        "pass_hat_2": 0.0,
        "cost_per_solved": 0.5,
        "lower_bound": True,
    }
    assert (b["n"], b["pass_hat_1"], b["pass_hat_2"]) == (1, 0.0, None)
    assert (b["cost_per_solved"], b["lower_bound"]) == (None, False)


@settings(max_examples=80, deadline=None)
@given(some_trials, st.randoms())
def test_it_is_the_slow_metrics(rows: list[dict[str, Any]], random: Any) -> None:
    """Unequal trials, exclusions, unknown marks, costs and models, cases of one name in two suites."""
    trials = frame(rows)
    wanted = slowly(trials)
    same(metrics.summary(trials), wanted)
    arrow = trials.to_arrow()
    names = ["suite", "case_id", "driver", "model", "scaffold", "excluded"]
    coded = pa.table({name: arrow.column(name).combine_chunks() for name in arrow.column_names})
    for name in names:
        place = coded.column_names.index(name)
        column = coded.column(name).cast(pa.string()).combine_chunks().dictionary_encode()
        coded = coded.set_column(place, name, column)
    same(metrics.summary(coded), wanted)
    # batches with dictionaries and offsets of their own, and an empty one among them
    cuts = sorted(random.randint(0, len(rows)) for _ in range(3))
    parts = [arrow.slice(a, b - a) for a, b in zip([0, *cuts], [*cuts, len(rows)], strict=True)]
    same(metrics.summary(pa.concat_tables([part.cast(arrow.schema) for part in parts])), wanted)
    same(metrics.summary(coded.slice(0, cuts[0])), slowly(trials.head(cuts[0])))
    same(metrics.summary(coded.slice(cuts[1])), slowly(trials.slice(cuts[1])))


@settings(max_examples=40, deadline=None)
@given(some_trials, st.sampled_from([1, 2, 7]))
def test_no_shortcut_changes_a_number(rows: list[dict[str, Any]], chunk: int) -> None:
    """Small chunks, no table of codes, and no dense counters: each alone."""
    trials = frame(rows)
    wanted = slowly(trials)
    for name, value in (("_CHUNK", chunk), ("_MOST_CODES", 0), ("_MOST_CELLS", 0)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(summaries, name, value)
            same(metrics.summary(trials), wanted)


def test_more_trials_of_a_case_than_a_counter_holds() -> None:
    """600 solved trials of one case beside three of another."""
    often = HAND.head(1).select(pl.all().repeat_by(600).explode(empty_as_null=False, keep_nulls=True))
    trials = pl.concat([often, HAND])
    same(metrics.summary(trials), slowly(trials))
    assert metrics.summary(trials)["solved"].to_list() == [602, 0]


KINDS = ["ipc", "ipc zstd", "parquet", "parquet by polars", "ipc by polars", "categorical ipc by polars"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_file_gives_the_same(tmp_path: Path, kind: str) -> None:
    """However it was written: by Arrow or polars, in several batches, compressed, with categories."""
    trials = pl.concat([HAND, HAND.reverse(), HAND.tail(2)])
    path, arrow = tmp_path / "trials", trials.to_arrow()
    if kind.startswith("ipc") and "polars" not in kind:
        packed = pa.ipc.IpcWriteOptions(compression="zstd" if "zstd" in kind else None)
        with pa.ipc.new_file(path, arrow.schema, options=packed) as writer:
            writer.write_table(arrow, max_chunksize=4)
    elif kind == "parquet":
        pq.write_table(arrow, path, row_group_size=5)
    elif kind == "parquet by polars":
        trials.write_parquet(path, row_group_size=5)
    else:
        texts = pl.col("suite", "case_id", "driver", "model")
        made = trials.with_columns(texts.cast(pl.Categorical)) if "categorical" in kind else trials
        made.write_ipc(path)
    same(metrics.summary(path), slowly(trials))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(summaries, "_MOST_CELLS", 0)
        same(metrics.summary(str(path)), slowly(trials))


def test_a_cost_of_which_a_part_was_lost_is_a_lower_bound() -> None:
    costly = HAND.filter(pl.col("cost_micros").is_not_null())
    marks = pl.Series("usage_lost", [n == 0 for n in range(costly.height)])
    before, after = metrics.summary(costly), metrics.summary(costly.with_columns(marks))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(summaries, "_MOST_CELLS", 0)
        same(metrics.summary(costly.with_columns(marks)), after.to_dicts())
    estimated = costly.with_columns(marks.alias("tokens_estimated"))
    assert metrics.summary(estimated).equals(before)
    hit = costly.row(0, named=True)["driver"]
    assert after["cost_per_solved"].equals(before["cost_per_solved"])
    assert (
        after.filter(driver=hit)["lower_bound"].all() and not before.filter(driver=hit)["lower_bound"].any()
    )
    assert after.filter(pl.col("driver") != hit).equals(before.filter(pl.col("driver") != hit))


def test_a_real_run(tmp_path: Path) -> None:
    """From its table, and from the Parquet file it leaves."""
    run = evaluate(write_suite(tmp_path), [knows, "stub"], trials=2, out=tmp_path / "run")
    found = metrics.summary(run.trials)
    same(found, slowly(pl.DataFrame(run.trials)))
    assert metrics.summary(tmp_path / "run" / "trials.parquet").equals(found)
    assert metrics.summary(table("trials", [])).is_empty()


def test_without_costs_there_is_no_cost() -> None:
    """The column may be missing, or know nothing."""
    for trials in (HAND.drop("cost_micros"), HAND.with_columns(cost_micros=pl.lit(None))):
        found = metrics.summary(trials)
        assert found["cost_per_solved"].to_list() == [None, None]
        assert found["lower_bound"].to_list() == [False, False]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(summaries, "_MOST_CELLS", 0)
            assert metrics.summary(trials).equals(found)


def test_what_is_no_table_of_trials_is_said_in_a_line(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="the table: no column case_id, solved: not a table of trials"):
        metrics.summary(HAND.drop("case_id", "solved"))
    path = tmp_path / "x.csv"
    path.write_text("suite,case_id\n", encoding="utf-8")
    with pytest.raises(LabError, match=r"x\.csv: neither an Arrow IPC file nor a Parquet file"):
        metrics.summary(path)
    with pytest.raises(LabError, match="No such file"):
        metrics.summary(tmp_path / "none.arrow")
    whole = tmp_path / "whole.arrow"
    HAND.write_ipc(whole)
    for name, written in (("half.arrow", whole.read_bytes()[:-20]), ("half.parquet", b"PAR1 and no more")):
        (tmp_path / name).write_bytes(written)
        with pytest.raises(LabError, match=f"{name}: damaged, or not written to its end"):
            metrics.summary(tmp_path / name)
    pq.write_table(pa.table({"suite": ["s"]}), tmp_path / "other.parquet")
    with pytest.raises(LabError, match=r"other\.parquet: no column driver, model"):
        metrics.summary(tmp_path / "other.parquet")


def test_its_columns_are_in_the_schema() -> None:
    assert set(SCHEMA) <= set(TRIALS.names)
