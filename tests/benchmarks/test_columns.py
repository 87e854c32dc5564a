"""Tables as runs: which column holds what, what is null, and that every mistake is told with its line."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from agentbench_lab.benchmarks import Options, load_results
from agentbench_lab.benchmarks.tables.cells import FALSE, TRUE
from agentbench_lab.benchmarks.tables.mapping import COLUMNS
from agentbench_lab.cli.exchange import import_
from agentbench_lab.errors import LabError
from agentbench_lab.results.bench_io import bench_bytes
from agentbench_lab.results.run import Run, load_run
from agentbench_lab.running.merge import save_new


def table(folder: Path, content: str | bytes, columns: dict[str, str] | None = None, **more: str) -> Run:
    file = folder / "trials.csv"
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return load_results("csv", file, Options(columns=columns or {}, **more))


def error(folder: Path, content: str | bytes, columns: dict[str, str] | None = None) -> str:
    """The error, without the folder's name."""
    with pytest.raises(LabError) as caught:
        table(folder, content, columns)
    return str(caught.value).replace(f"{folder}/", "")


def rows(run: Run) -> list[dict[str, Any]]:
    return run.trials.to_pylist()


def extra(row: dict[str, Any]) -> Any:
    return None if row["extra"] is None else json.loads(row["extra"])


def test_a_table_becomes_trials_by_the_names_of_its_columns(tmp_path: Path) -> None:
    """`task` and `resolved` are mapped; `trial`, `driver`, `model`, `wall_s` map themselves; `junk` is told as unread."""
    run = table(
        tmp_path,
        "task,trial,driver,model,resolved,wall_s,junk\n"
        "b,1,goose,opus,True,2.5,x\n"
        "a,1,goose,opus,False,,x\n"
        "b,2,goose,opus,0,3,x\n",
        {"case_id": "task", "solved": "resolved"},
        suite="core",
        name="mine",
    )
    assert [(r["case_id"], r["trial"], r["solved"], r["wall_s"]) for r in rows(run)] == [
        ("b", 1, True, 2.5),
        ("b", 2, False, 3.0),
        ("a", 1, False, None),
    ]
    assert {(r["suite"], r["driver"], r["model"], r["evidence"]) for r in rows(run)} == {
        ("core", "goose", "opus", "imported")
    }
    card = run.card
    assert (card.run, card.suites[0].name, card.counts.asked, card.counts.judged) == ("mine", "core", 3, 3)
    assert card.imported is not None
    assert card.imported.notes == ("Columns that were not read: junk.",)
    assert (card.imported.format, card.imported.file, len(card.imported.digest)) == ("csv", "trials.csv", 64)
    assert card.options == {"columns": {"case_id": "task", "solved": "resolved"}}


def test_what_a_table_does_not_say_stays_null(tmp_path: Path) -> None:
    run = table(tmp_path, "case_id,solved\na,1\n")
    row = rows(run)[0]
    nulls = [
        *(
            "model",
            "score",
            "stop",
            "steps",
            "tool_calls",
            "tool_errors",
            "model_calls",
            "tokens_fresh_input",
        ),
        *("tokens_cache_read", "tokens_cache_write", "tokens_output", "cost_micros", "wall_s", "working_s"),
        *("terminated", "refused", "hallucinated", "note", "extra"),
    ]
    assert {name: row[name] for name in nulls} == dict.fromkeys(nulls)
    assert (row["driver"], row["scaffold"], row["trial"], row["suite"]) == ("unknown", "once", 1, "trials")
    assert run.card.imported is not None
    assert run.card.imported.notes == (
        "Which agent it was is not said (--map driver=COLUMN, or --driver NAME).",
    )
    assert run.calls.num_rows == run.transcripts.num_rows == 0


def test_every_column_lands_in_its_place(tmp_path: Path) -> None:
    """One row with all that can be mapped; the exact dollars and what has no column of its own are in extra."""
    values = {
        "case_id": "a",
        "trial": "2",
        "driver": "d",
        "model": "m",
        "scaffold": "retry",
        "group": "g",
        "request": "do it",
        "solved": "yes",
        "score": "0.75",
        "outcome": "solved",
        "stop": "done",
        "terminated": "true",
        "refused": "false",
        "hallucinated": "no",
        "note": "well",
        "answer": "42",
        "steps": "7",
        "tool_calls": "5",
        "tool_errors": "1",
        "model_calls": "6",
        "tokens_input_total": "100",
        "tokens_cache_read": "70",
        "tokens_cache_write": "10",
        "tokens_output": "9",
        "cost_usd": "0.0000125",
        "working_s": "1.5",
        "started_at": "2026-01-01T00:00:00+00:00",
        "ended_at": "2026-01-01T00:01:00.5Z",
        "shell": "zsh",
    }
    run = table(tmp_path, f"{','.join(values)}\n{','.join(values.values())}\n", {"extra.shell": "shell"})
    row = rows(run)[0]
    want = {
        "trial": 2,
        "scaffold": "retry",
        "group": "g",
        "solved": True,
        "outcome": "solved",
        "score": 0.75,
        "stop": "done",
        "terminated": True,
        "refused": False,
        "hallucinated": False,
        "note": "well",
        "steps": 7,
        "tool_calls": 5,
        "tool_errors": 1,
        "model_calls": 6,
        "tokens_fresh_input": 20,
        "tokens_cache_read": 70,
        "tokens_cache_write": 10,
        "tokens_output": 9,
        "cost_micros": 12,
        "wall_s": 60.5,
        "working_s": 1.5,
    }
    assert {name: row[name] for name in want} == want
    assert extra(row) == {
        "cost_usd": 0.0000125,
        "ended_at": "2026-01-01T00:01:00.500000+00:00",
        "shell": "zsh",
        "started_at": "2026-01-01T00:00:00+00:00",
        "tokens_input_total": 100,
    }
    assert run.cases.to_pylist()[0]["request"] == "do it"
    assert run.transcripts.to_pylist()[0]["answer"] == '"42"'
    assert (run.card.started_at, run.card.finished_at) == (
        "2026-01-01T00:00:00+00:00",
        "2026-01-01T00:01:00.500000+00:00",
    )
    left = {"excluded", "excluded_owner", "tokens_fresh_input", "cost_micros", "wall_s"}
    assert set(COLUMNS) - set(values) == left


@pytest.mark.parametrize("word", sorted(TRUE | {"TRUE", "Pass", " yes ", "1.0"}))
def test_words_for_solved(tmp_path: Path, word: str) -> None:
    assert rows(table(tmp_path, f"case_id,solved\na,{word}\n"))[0]["solved"] is True


@pytest.mark.parametrize("word", sorted(FALSE | {"False", "0.0"}))
def test_words_for_not_solved(tmp_path: Path, word: str) -> None:
    assert rows(table(tmp_path, f"case_id,solved\na,{word}\n"))[0]["solved"] is False


def test_a_number_between_is_a_score_and_no_verdict(tmp_path: Path) -> None:
    assert error(tmp_path, "case_id,solved\na,1\nb,0.5\n") == (
        "trials.csv:3: solved: '0.5' is a number other than 0 and 1; a share is mapped as score"
    )
    assert error(tmp_path, "case_id,ok\na,1\nb,flase\n", {"solved": "ok"}) == (
        "trials.csv:3: solved (column 'ok'): 'flase' is neither true nor false (did you mean 'false'?)"
    )


def test_solved_follows_from_a_score_within_a_millionth_of_one(tmp_path: Path) -> None:
    run = table(tmp_path, "case_id,score\na,1\nb,0.9999995\nc,0.99\nd,0\ne,-1.5\n")
    assert [r["solved"] for r in rows(run)] == [True, True, False, False, False]
    assert [r["score"] for r in rows(run)] == [1.0, 0.9999995, 0.99, 0.0, -1.5]
    assert run.card.imported is not None
    assert "Solved is a score within 1e-6 of 1." in run.card.imported.notes


def test_an_empty_verdict_is_an_error_unless_something_is_said(tmp_path: Path) -> None:
    content = "case_id,solved\na,1\nb,\n"
    assert error(tmp_path, content) == (
        "trials.csv:3: whether it is solved is empty; map excluded=COLUMN where the source excludes such trials, "
        "or count them as failures with --map null_solved=failure"
    )
    run = table(tmp_path, content, {"null_solved": "failure"})
    assert [r["solved"] for r in rows(run)] == [True, False]
    assert run.card.imported is not None
    assert "Without a verdict, and not solved as asked for: 1 of 2 trials." in run.card.imported.notes
    assert error(tmp_path, content, {"null_solved": "success"}) == (
        "null_solved=success: it can only be failure"
    )


def test_what_the_source_excludes_is_excluded_and_nothing_else(tmp_path: Path) -> None:
    run = table(
        tmp_path,
        "case_id,solved,excluded,excluded_owner\na,1,,\nb,,out of disk,environment\nc,0,true,\nd,0,no,harness\n",
    )
    assert [(r["solved"], r["excluded"], r["excluded_owner"]) for r in rows(run)] == [
        (True, None, None),
        (None, "out of disk", "environment"),
        (None, "excluded by the source", None),
        (False, None, None),
    ]
    assert (run.card.counts.judged, run.card.counts.excluded) == (2, 2)
    still = error(tmp_path, "case_id,solved,excluded\na,,\n")
    assert still.startswith("trials.csv:2: whether it is solved is empty")


def test_outcomes_are_those_of_imported_runs(tmp_path: Path) -> None:
    run = table(tmp_path, "case_id,outcome\na,solved\nb,unsolved\nc,reported_unsafe\n")
    assert [(r["outcome"], r["outcome_class"], r["solved"]) for r in rows(run)] == [
        ("solved", "success", True),
        ("unsolved", "safe_non_success", False),
        ("reported_unsafe", "unsafe", False),
    ]
    assert error(tmp_path, "case_id,outcome,solved\na,unsolved,1\n") == (
        "trials.csv:2: outcome is unsolved, but solved is true"
    )
    assert error(tmp_path, "case_id,outcome\na,unsafe\n") == (
        "trials.csv:2: outcome: 'unsafe' is none of ours (there is: reported_unsafe, solved, unsolved)"
    )
    assert error(tmp_path, "case_id,solved,stop\na,1,agent_timeout\n") == (
        "trials.csv:2: stop: 'agent_timeout' is none of ours (did you mean 'timeout'?)"
    )


def test_trials_are_numbered_on_request_only(tmp_path: Path) -> None:
    content = "case_id,driver,solved\na,x,1\na,y,0\na,x,0\nb,x,1\na,x,1\n"
    assert error(tmp_path, content) == (
        "trials.csv:4: trial 1 of 'a' by x again, as on line 2; if these are further trials, "
        "--map trial=# numbers them in their order"
    )
    run = table(tmp_path, content, {"trial": "#"})
    assert [(r["case_id"], r["driver"], r["trial"], r["solved"]) for r in rows(run)] == [
        ("a", "x", 1, True),
        ("a", "x", 2, False),
        ("a", "x", 3, True),
        ("a", "y", 1, False),
        ("b", "x", 1, True),
    ]


def test_trials_that_count_from_zero_are_told(tmp_path: Path) -> None:
    run = table(tmp_path, "case_id,trial,solved\na,0,1\na,1,1\n", driver="d")
    assert [r["trial"] for r in rows(run)] == [1, 2]
    assert run.card.imported is not None
    assert run.card.imported.notes == ("Trials count from 0 in the source; here from 1.",)
    assert "trials.csv:3: trial: 'x' is no number" in error(tmp_path, "case_id,trial,solved\na,1,1\na,x,1\n")
    assert error(tmp_path, "case_id,trial,solved\na,1,1\na,,1\n").startswith("trials.csv:3: trial is empty")


@pytest.mark.parametrize("word", ["nan", "NaN", "None", "null", " None "])
def test_words_for_nothing_are_empty_where_text_names_something(tmp_path: Path, word: str) -> None:
    """They exclude no trial and are no model; an answer and a case may well be called so."""
    text = (
        "case_id,solved,excluded,model,stop,answer,steps\n"
        + f"{word.strip()},1,{word},{word},{word},{word},{word}\n"
    )
    run = table(tmp_path, text)
    row = rows(run)[0]
    assert run.card.counts.judged == 1
    assert (row["excluded"], row["model"], row["stop"], row["steps"]) == (None, None, None, None)
    assert row["case_id"] == word.strip()
    assert json.loads(run.transcripts.column("answer")[0].as_py()) == word


def test_only_the_arm_that_counts_from_0_is_shifted(tmp_path: Path) -> None:
    run = table(tmp_path, "case_id,driver,trial,solved\na,x,0,1\na,x,1,1\na,y,1,1\na,y,2,0\n")
    assert [(r["driver"], r["trial"]) for r in rows(run)] == [("x", 1), ("x", 2), ("y", 1), ("y", 2)]
    assert run.card.imported is not None
    assert "Trials count from 0 in the source for 1 of 2 arms; here from 1." in run.card.imported.notes


def test_names_are_given_from_outside_only_where_the_source_has_none(tmp_path: Path) -> None:
    run = table(tmp_path, "case_id,driver,solved\na,goose,1\nb,,1\n", driver="other", model="m")
    assert [(r["driver"], r["model"]) for r in rows(run)] == [("goose", "m"), ("other", "m")]


def test_a_value_for_every_row(tmp_path: Path) -> None:
    run = table(
        tmp_path,
        "case_id,solved,input\na,1,12\n",
        {
            "tokens_input_total": "input",
            "tokens_cache_read": "=0",
            "tokens_cache_write": "=0",
            "driver": "=goose",
        },
    )
    row = rows(run)[0]
    assert (row["tokens_fresh_input"], row["tokens_cache_read"], row["driver"]) == (12, 0, "goose")
    assert error(tmp_path, "case_id,solved\na,1\n", {"steps": "=many"}) == "steps==many: 'many' is no number"


def test_a_total_of_input_tokens_alone_tells_no_bucket(tmp_path: Path) -> None:
    """Which of them came from a cache is unknown: the buckets stay null, and nothing is lost."""
    run = table(tmp_path, "case_id,solved,tokens_input_total\na,1,12\n")
    row = rows(run)[0]
    assert (row["tokens_fresh_input"], row["tokens_cache_read"], extra(row)) == (
        None,
        None,
        {"tokens_input_total": 12},
    )
    assert run.card.imported is not None
    assert any(note.endswith("there was no cache): 1 of 1 trials.") for note in run.card.imported.notes)
    wrong = "case_id,solved,tokens_input_total,tokens_cache_read\na,1,12,13\n"
    assert error(tmp_path, wrong) == "trials.csv:2: 13 cached tokens within an input of 12"


@pytest.mark.parametrize(
    ("text", "micros", "kept"),
    [
        ("0.25", 250_000, None),
        ("1e-6", 1, None),
        ("0.0000005", 0, {"cost_usd": 5e-07}),
        ("0", 0, None),
        ("0.23051419999999997", 230_514, {"cost_usd": 0.23051419999999997}),
    ],
)
def test_dollars(tmp_path: Path, text: str, micros: int, kept: Any) -> None:
    row = rows(table(tmp_path, f"case_id,solved,cost_usd\na,1,{text}\n"))[0]
    assert (row["cost_micros"], extra(row)) == (micros, kept)


@pytest.mark.parametrize(
    ("column", "value", "why"),
    [
        ("steps", "1.5", "is no whole number"),
        ("steps", "-1", "is negative; what is unknown is left empty"),
        ("steps", "2147483648", "is too large"),
        ("tokens_output", str(2**63), "is too large"),
        ("tokens_output", "1_000", "is no number"),
        ("tokens_output", "many", "is no number"),
        ("cost_usd", "$1", "is no number"),
        ("cost_usd", "-1", "-1 is no amount of money"),
        ("cost_usd", "1e20", "is too large"),
        ("cost_usd", "1e999999999", "is no finite number"),
        ("score", "inf", "is no finite number"),
        ("wall_s", "-0.5", "is negative; what is unknown is left empty"),
        ("started_at", "yesterday", "is no instant in ISO form"),
        ("excluded_owner", "me", "is none of ours (there is: case, environment, grader, harness)"),
        ("terminated", "2", "is a number other than 0 and 1; a share is mapped as score"),
    ],
)
def test_cells_that_cannot_be_meant(tmp_path: Path, column: str, value: str, why: str) -> None:
    content = f"case_id,solved,{column}\na,1,\nb,1,{value}\n"
    assert error(tmp_path, content) == f"trials.csv:3: {column}: {value!r} {why}"


def test_numbers_as_tables_with_nulls_write_them(tmp_path: Path) -> None:
    run = table(tmp_path, "case_id,solved,steps,score\na,1,12.0,nan\nb,1,NaN,1e0\n")
    assert [(r["steps"], r["score"]) for r in rows(run)] == [(12, None), (None, 1.0)]


def test_instants_have_to_fit_together(tmp_path: Path) -> None:
    head = "case_id,solved,started_at,ended_at\n"
    assert error(tmp_path, f"{head}a,1,2026-01-02,2026-01-01\n") == (
        "trials.csv:2: ended_at: '2026-01-01T00:00:00' lies before the start (2026-01-02T00:00:00)"
    )
    assert error(tmp_path, f"{head}a,1,2026-01-01T00:00:00,2026-01-01T00:00:01Z\n").endswith(
        "names a time zone where the other end names none"
    )
    run = table(tmp_path, f"{head}a,1,2026-01-01T00:00:00+02:00,2026-01-01T00:00:00+01:00\nb,1,,\n")
    assert [r["wall_s"] for r in rows(run)] == [3600.0, None]


def test_unknown_names_are_told_with_the_nearest(tmp_path: Path) -> None:
    content = "case_id,solved,resolved\na,1,1\n"
    assert error(tmp_path, content, {"sloved": "resolved"}).startswith(
        "'sloved' is none of our columns (did you mean 'solved'?); there is: case_id, trial, driver"
    )
    assert error(tmp_path, content, {"solved": "resolvd"}) == (
        "trials.csv: no column 'resolvd' (did you mean 'resolved'?)"
    )
    assert "a name under extra is of a-z, 0-9 and _" in error(tmp_path, content, {"extra.A": "resolved"})
    assert error(tmp_path, "task,ok\na,1\n") == (
        "trials.csv: which column is case_id? --map case_id=COLUMN (there is: task, ok)"
    )
    assert error(tmp_path, "task,ok\na,1\n", {"case_id": "task"}) == (
        "trials.csv: which column says whether a trial is solved? "
        "--map solved=COLUMN, or score=COLUMN (solved is a score of 1) (there is: task, ok)"
    )


def test_a_column_named_like_ours_can_be_mapped_otherwise(tmp_path: Path) -> None:
    """`stop` holds words of its own: kept as an extra, it is not read as ours."""
    run = table(tmp_path, "case_id,solved,stop\na,1,unset\n", {"extra.failure_mode": "stop"})
    assert (rows(run)[0]["stop"], extra(rows(run)[0])) == (None, {"failure_mode": "unset"})


def test_two_columns_for_one_thing_are_refused(tmp_path: Path) -> None:
    assert "cost_usd and cost_micros are both mapped" in error(
        tmp_path, "case_id,solved,cost_usd,cost_micros\na,1,1,1\n"
    )
    assert "tokens_fresh_input and tokens_input_total are both mapped" in error(
        tmp_path, "case_id,solved,tokens_fresh_input,tokens_input_total\na,1,1,1\n"
    )


def test_a_case_has_one_group_and_one_request(tmp_path: Path) -> None:
    head = "case_id,trial,solved,group,request\na,1,1,hard,x\n"
    assert error(tmp_path, f"{head}a,2,1,easy,x\n") == (
        "trials.csv:3: the group of 'a' is 'easy', before 'hard' (keep it with --map extra.group=COLUMN)"
    )
    assert error(tmp_path, f"{head}a,2,1,hard,y\n").startswith(
        "trials.csv:3: the request of 'a' is another than before"
    )
    assert table(tmp_path, f"{head}a,2,1,,\n").cases.to_pylist()[0]["group"] == "hard"


# The file itself


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_end_as_they_like(tmp_path: Path, end: str) -> None:
    content = end.join(["\ufeffcase_id, solved ", "", "a,1", f'"b{end}c",0', 'd,"x"', ""])
    assert error(tmp_path, content) == "trials.csv:6: solved: 'x' is neither true nor false"


def test_quotes_commas_and_odd_line_ends_within_a_cell(tmp_path: Path) -> None:
    """U+2028 and form feeds are text; so is a line end between quotes. Lines are counted as an editor counts them."""
    note = "one\u2028two\x0cthree\x1e\x85four"
    run = table(tmp_path, f'case_id,solved,note\na,1,"said ""no"",\nleft"\nb,1,{note}\n')
    assert [r["note"] for r in rows(run)] == ['said "no",\nleft', note]
    wrong = f'case_id,solved,note\na,1,"x\n\ny"\nb,1,{note}\nc,perhaps,\n'
    assert error(tmp_path, wrong) == "trials.csv:6: solved: 'perhaps' is neither true nor false"


def test_records_that_are_no_records(tmp_path: Path) -> None:
    head = "case_id,solved,note\n"
    assert error(tmp_path, f'{head}a,1,"x\ny"\nb,1\n') == "trials.csv:4: 2 fields under a heading of 3"
    assert error(tmp_path, f"{head}a,1,x,y\n") == "trials.csv:2: 4 fields under a heading of 3"
    assert error(tmp_path, f"{head}a\n") == "trials.csv:2: 1 field under a heading of 3"
    assert error(tmp_path, f'{head}a,1,x\nb,1,"open\n\n').startswith("trials.csv:3: unexpected end of data")
    assert error(tmp_path, f'{head}a,1,"x"y\n').startswith("trials.csv:2: ',' expected after '\"'")
    assert error(tmp_path, "") == "trials.csv: is empty: no heading"
    assert error(tmp_path, "\n\n") == "trials.csv: is empty: no heading"
    assert error(tmp_path, b"case_id,solved\na\xff,1\n") == "trials.csv:2: is no UTF-8 (byte 0xff)"
    assert error(tmp_path, "case_id,solved\n".encode("utf-16")) == "trials.csv: is UTF-16; save it as UTF-8"
    assert error(tmp_path, "\ncase_id;solved\na,b;1\n") == (
        "trials.csv:2: the heading is one field; it looks separated by semicolons: save it with commas"
    )
    assert error(tmp_path, f"{head},1,\n") == "trials.csv:2: case_id is empty"


def test_a_heading_with_a_name_twice(tmp_path: Path) -> None:
    """Only a column that is read has to be the only one of its name."""
    assert error(tmp_path, "case_id,solved,solved\na,1,0\n") == (
        "trials.csv: solved is mapped to 'solved', and several columns are called so"
    )
    assert table(tmp_path, "case_id,solved,x,x\na,1,0,0\n").trials.num_rows == 1


def test_a_cell_may_be_long(tmp_path: Path) -> None:
    """Longer than the limit of Python's own reader, which stays as it was."""
    import csv

    before = csv.field_size_limit()
    run = table(tmp_path, f"case_id,solved,note\na,1,{'x' * 300_000}\n")
    assert len(rows(run)[0]["note"]) == 300_000
    assert csv.field_size_limit() == before


def test_what_was_read_can_be_saved_and_read_back(tmp_path: Path) -> None:
    run = table(tmp_path, "case_id,solved,cost_usd\na,1,0.5\nb,,\n", {"null_solved": "failure"})
    save_new(run, tmp_path / "run")
    again = load_run(tmp_path / "run")
    assert again.trials.equals(run.trials)
    assert again.card.imported == run.card.imported


def test_the_command_maps_and_tells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`OURS==VALUE` is one value for every row; what is told is told in the order of the import."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("task,ok,more\na,1,x\nb,,x\n", encoding="utf-8")
    asked = ["--map", "case_id=task", "--map", "solved=ok", "--map", "driver==goose"]
    asked += ["--map", "null_solved=failure"]
    done = CliRunner().invoke(import_, ["csv", "t.csv", "--out", "run", *asked], catch_exceptions=False)
    assert done.exit_code == 0
    lines = done.output.splitlines()
    assert "imported 2, judged 2, excluded 0, missing 0" in lines
    assert lines[-3:-1] == [
        "Without a verdict, and not solved as asked for: 1 of 2 trials.",
        "Columns that were not read: more.",
    ]
    assert lines[-1].startswith("run: ")
    assert {row["driver"] for row in rows(load_run("run"))} == {"goose"}
    twice = CliRunner().invoke(import_, ["csv", "t.csv", "--out", "two", *asked, "--map", "solved=more"])
    assert str(twice.exception) == "--map 'solved=more': solved is mapped already, to ok"


# JSON lines and Parquet


def jsonl(folder: Path, content: str, columns: dict[str, str] | None = None) -> Run:
    (folder / "trials.jsonl").write_text(content, encoding="utf-8")
    return load_results("jsonl", folder / "trials.jsonl", Options(columns=columns or {}))


def jsonl_error(folder: Path, content: str, columns: dict[str, str] | None = None) -> str:
    with pytest.raises(LabError) as caught:
        jsonl(folder, content, columns)
    return str(caught.value).replace(f"{folder}/", "")


def test_json_lines(tmp_path: Path) -> None:
    """Values keep their types; a key that is missing is null; U+2028 ends no line; case ids become text."""
    run = jsonl(
        tmp_path,
        '\ufeff{"case_id": 7, "solved": true, "steps": 3, "more": {"a": [1, null]}}\r\n\n'
        '{"case_id": "x", "solved": "fail", "note": "one\u2028two"}\n',
        {"extra.more": "more"},
    )
    first, second = rows(run)
    assert (first["case_id"], first["solved"], first["steps"], extra(first)) == (
        "7",
        True,
        3,
        {"more": {"a": [1, None]}},
    )
    assert (second["solved"], second["steps"], second["note"], second["extra"]) == (
        False,
        None,
        "one\u2028two",
        None,
    )


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("[1]", "Expected `object`, got `array`"),
        ('{"case_id": "b"', "Input data was truncated"),
        ('{"case_id": [1], "solved": 1}', "case_id: '[1]' is a list, not text"),
        ('{"case_id": "b", "solved": {}}', "solved: '{}' is neither true nor false"),
        ('{"case_id": "b", "solved": 2}', "solved: '2' is a number other than 0 and 1; a share is mapped as score"),
        ('{"case_id": "b", "solved": 1, "steps": true}', "steps: 'True' is no number"),
        ('{"case_id": "b", "solved": 1, "steps": 2e9999}', "Number out of range - at `$[...]`"),
    ],
)  # fmt: skip
def test_json_lines_that_cannot_be_meant(tmp_path: Path, line: str, why: str) -> None:
    content = f'{{"case_id": "a", "solved": 1}}\n\n{line}\n'
    assert jsonl_error(tmp_path, content) == f"trials.jsonl:3: {why}"


def test_empty_json_lines(tmp_path: Path) -> None:
    assert jsonl_error(tmp_path, "\n") == "trials.jsonl: is empty: no rows"


def parquet(folder: Path, columns: dict[str, Any], asked: dict[str, str] | None = None) -> Run:
    pq.write_table(pa.table(columns), folder / "trials.parquet")
    return load_results("parquet", folder / "trials.parquet", Options(columns=asked or {}))


def test_parquet(tmp_path: Path) -> None:
    """Types as other tools write them: floats for integers with nulls, categories, instants, decimals."""
    when = datetime(2026, 1, 1, tzinfo=UTC)
    run = parquet(
        tmp_path,
        {
            "case_id": pa.array(["a", "b"]).dictionary_encode(),
            "solved": pa.array([1.0, math.nan]),
            "excluded": pa.array([None, "lost"]),
            "steps": pa.array([3.0, math.nan]),
            "cost_usd": pa.array([Decimal("0.10"), None], pa.decimal128(6, 2)),
            "started_at": pa.array([when, None]),
            "unread": pa.array([[1], [2]]),
        },
    )
    first, second = rows(run)
    assert (first["solved"], first["steps"], first["cost_micros"]) == (True, 3, 100_000)
    assert (second["solved"], second["excluded"], second["steps"]) == (None, "lost", None)
    assert extra(first) == {"started_at": "2026-01-01T00:00:00+00:00"}
    with pytest.raises(LabError, match=r"trials\.parquet: row 2: solved: '2' is a number other than 0 and 1"):
        parquet(tmp_path, {"case_id": ["a", "b"], "solved": [1, 2]})
    with pytest.raises(LabError, match=r"row 2: trial 1 of 'a' by unknown again, as on row 1"):
        parquet(tmp_path, {"case_id": ["a", "a"], "solved": [1, 1]})
    with pytest.raises(LabError, match=r"row 1: case_id: .* is a bytes, not text"):
        parquet(tmp_path, {"case_id": [b"a"], "solved": [1]})
    (tmp_path / "trials.parquet").write_bytes(b"PAR1 no parquet PAR1")
    with pytest.raises(LabError, match=r"trials\.parquet: "):
        load_results("parquet", tmp_path / "trials.parquet")


def test_the_three_forms_tell_the_same(tmp_path: Path) -> None:
    frame = pl.DataFrame({
        "case_id": ["a", "b", "c"],
        "solved": [True, False, True],
        "steps": [1, None, 3],
        "score": [0.25, 1.0, None],
        "note": ["x, y", None, "z"],
    })  # fmt: skip
    frame.write_csv(tmp_path / "t.csv")
    frame.write_ndjson(tmp_path / "t.jsonl")
    frame.write_parquet(tmp_path / "t.parquet")
    runs = [
        load_results(form, tmp_path / f"t.{form}", Options(name="t")) for form in ("csv", "jsonl", "parquet")
    ]
    assert runs[0].trials.equals(runs[1].trials)
    assert runs[0].trials.equals(runs[2].trials)
    assert [r["solved"] for r in rows(runs[0])] == [True, False, True]


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_a_folder_is_no_table(tmp_path: Path, form: str) -> None:
    with pytest.raises(LabError):
        load_results(form, tmp_path)


# Whatever a file holds, it is a run or one clear line


NAMES = [*COLUMNS, "junk"]
CELLS = st.sampled_from(
    [
        "",
        "1",
        "0",
        "-1",
        "true",
        "x",
        "1e400",
        "nan",
        "2026-01-01",
        "2026-01-01T00:00Z",
        "done",
        '"',
        "é",
        str(2**70),
    ]
)


@settings(deadline=None)
@given(
    st.lists(st.sampled_from(NAMES), min_size=1, max_size=6),
    st.lists(st.lists(CELLS, min_size=1, max_size=6), max_size=3),
)
def test_any_table_is_a_run_or_an_error(
    tmp_path_factory: pytest.TempPathFactory, names: list[str], cells: list[list[str]]
) -> None:
    folder = tmp_path_factory.mktemp("any")
    width = 2 + len(names)
    lines = [",".join(["case_id", "solved", *names])]
    lines += [",".join([f"c{at}", "1", *row, *[""] * width][:width]) for at, row in enumerate(cells)]
    try:
        run = table(folder, "\n".join(lines))
    except LabError as wrong:
        assert str(wrong)
    else:
        quotes = sum(cell == '"' for row in cells for cell in row)  # two of them hold their lines together
        assert len(cells) - quotes // 2 <= run.trials.num_rows <= len(cells)
        assert bench_bytes(run)


@settings(deadline=None)
@given(st.binary(max_size=80))
def test_any_bytes_are_a_run_or_an_error(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    folder = tmp_path_factory.mktemp("bytes")
    for form in ("csv", "jsonl", "parquet"):
        (folder / "t").write_bytes(b"case_id,solved\n" + data if form == "csv" else data)
        try:
            load_results(form, folder / "t")
        except LabError as wrong:
            assert str(wrong)


@pytest.mark.parametrize(("sign", "said"), [(";", "semicolons"), ("\t", "tabs")])
def test_a_table_with_other_separators_says_which(tmp_path: Path, sign: str, said: str) -> None:
    content = f"case_id{sign}solved\na{sign}1\n"
    expected = f"trials.csv:1: the heading is one field; it looks separated by {said}: save it with commas"
    assert error(tmp_path, content) == expected


def test_scores_up_to_100_are_not_all_failures(tmp_path: Path) -> None:
    """Where a score is all that tells the verdict; beside a verdict, or with an outcome, it may be anything."""
    said = error(tmp_path, "case_id,score\na,0.5\nb,100\n")
    assert said.startswith("trials.csv:3: score is 100, and solved would be a score of 1; ")
    assert "--map solved=COLUMN" in said
    run = table(tmp_path, "case_id,score,solved\na,50,0\nb,100,1\n")
    assert [(row["score"], row["solved"]) for row in rows(run)] == [(50.0, False), (100.0, True)]


def test_a_heading_alone_is_no_run(tmp_path: Path) -> None:
    assert error(tmp_path, "case_id,solved\n") == "trials.csv: has columns and no row below them: no trials"


def test_gaps_in_trial_numbers_are_told(tmp_path: Path) -> None:
    """Case a has 1 and 3, case b 1 to 3, case c only 2: two trials between 1 and the largest are not there."""
    run = table(tmp_path, "case_id,trial,solved\na,1,1\na,3,1\nb,1,1\nb,2,1\nb,3,0\nc,2,1\n")
    assert run.card.imported is not None
    assert run.card.imported.notes[-1] == (
        "Trial numbers have gaps: 2 between 1 and the largest are not in the file, of 2 of 3 cases by their arms "
        "(first 'a', which has 1, 3)."
    )
    assert (
        table(tmp_path, "case_id,trial,solved\na,0,1\na,1,1\n")
        .card.imported.notes[-1]
        .startswith("Trials count")
    )  # type: ignore[union-attr]
