"""Tables: a number with its interval and n/of, escaped in HTML, and narrow enough for a terminal."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from agentbench_lab import tables
from agentbench_lab.results.run import ArmCard, Counts, Envelope, SuiteCard

from .drawing import NASTY, NASTY_ID, ladder, strip


class Cells(HTMLParser):
    """The tags of a table, and the text of its cells."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag in ("td", "th", "caption"):
            self.texts.append("")

    def handle_data(self, data: str) -> None:
        self.texts[-1] += data


def test_the_metric_pair_never_prints_a_number_alone() -> None:
    """Percent, interval and n/judged; what was judged of what was asked; the gate; and all rungs last."""
    table = tables.ladder(ladder(strip(excluded=1)))
    assert table.columns == ["rung", ">judged", ">passed", ">completed", ">hallucinated", "gate"]
    assert table.rows[0] == ["TOOL-0", "3/4", *["100% [44, 100] 3/3"] * 2, "0% [0, 56] 0/3", "shut"]
    assert table.rows[2] == ["TOOL-2", "4/4", *["75% [30, 95] 3/4"] * 2, "0% [0, 49] 0/4", "PASS"]
    assert table.rows[-1][:2] == ["all", "39/40"]
    assert table.rows[-1][-1] == ""


def test_a_result_column_only_where_it_says_more() -> None:
    """The composed result has its own column as soon as one rung differs."""
    frame = ladder(strip()).with_columns(
        pl.when(pl.col("metric") == "result_completed").then(0).otherwise(pl.col("n")).alias("n")
    )
    assert ">result" in tables.ladder(frame).columns
    assert max(map(len, str(tables.ladder(frame)).splitlines())) <= 100
    same = tables.ladder(ladder(strip()))
    assert same.notes[-1] == "result-completed equals completed on every rung"
    assert "result-completed equals completed on every rung" not in tables.ladder(frame).notes


def test_no_estimate_gives_its_reason() -> None:
    """A rung with nothing judged is neither 0 % nor blank."""
    table = tables.ladder(ladder(strip(excluded=4)))
    assert table.rows[0] == ["TOOL-0", "0/4", *["no trial was judged"] * 3, "shut"]
    assert str(table).count("no trial was judged") == 3
    assert max(map(len, str(table).splitlines())) <= 100


def test_arms_stand_under_their_names() -> None:
    """Several arms share one table; each has a heading over its rows."""
    rows = tables.ladder(ladder(strip(("stub", "mine")))).rows
    assert [row for row in rows if isinstance(row, str)] == ["stub", "mine"]


def gate_rows() -> pl.DataFrame:
    """A `metrics.gate` of a climb that stopped, with one rung asked above."""
    arm = {"driver": "stub", "model": None, "scaffold": "once", "reached": "TOOL-0"}
    counts = {"asked": 4, "judged": 4, "completed": 4, "hallucinated": 0}
    none = dict.fromkeys(counts, 0)
    skipped = "rung TOOL-2 skipped: gated by TOOL-1 completion 25% < 50%"
    rows: list[dict[str, Any]] = [
        arm | counts | {"group": "TOOL-0", "passes": True, "failure": None, "receipt": None},
        arm
        | counts
        | {
            "group": "TOOL-1",
            "completed": 1,
            "passes": False,
            "failure": "TOOL-1 completion 25% < 50%",
            "receipt": None,
        },
        arm | none | {"group": "TOOL-2", "passes": None, "failure": None, "receipt": skipped},
        arm | counts | {"group": "TOOL-3", "passes": True, "failure": None, "receipt": None},
    ]
    return pl.DataFrame(rows, schema_overrides={"model": pl.String})


def test_the_bands_are_illustrative_and_the_arms_are_measured() -> None:
    """Nobody reads an expectation as a result: each line says how it is known, the run's own with its evidence."""
    trials = pa.table(
        {
            "driver": ["stub"],
            "model": pa.nulls(1, pa.string()),
            "scaffold": ["once"],
            "evidence": ["simulated"],
        }
    )
    table = tables.bands(gate_rows(), trials)
    first, *others = table.rows
    assert first == ["stub", "no model", "TOOL-0", "measured in this run: simulated, 12 judged trials"]
    assert [row[-1] for row in others] == ["ILLUSTRATIVE, not run"] * 5
    assert "no score is claimed" in table.notes[0]
    levels = gate_rows().with_columns(group=pl.lit("level 1"))
    assert tables.bands(levels, trials).rows == []


def test_the_gate_keeps_its_receipts() -> None:
    """What shut it, what was not asked for that reason, and the rung reached (a pass above the gate earns nothing)."""
    table = tables.gate(gate_rows())
    assert table.rows[0] == ["TOOL-0", "4/4", "4/4", "0/4", "PASS", ""]
    assert table.rows[1][-2:] == ["shut", "completion 25% < 50%"]
    assert table.rows[2][-2:] == ["PASS", "asked, though the gate was shut below"]
    assert table.rows[3] == ["TOOL-2", "not asked", "", "", "", "gated by TOOL-1 completion 25% < 50%"]
    assert table.notes == ["stub: rung reached TOOL-0"]


def test_what_was_not_asked_is_one_line() -> None:
    """Six skipped rungs share one reason; nothing reached says so."""
    arm = {"driver": "stub", "model": None, "scaffold": "once", "reached": None}
    none = dict.fromkeys(("asked", "judged", "completed", "hallucinated"), 0)
    why = "TOOL-3 completion 0% < 50%"
    rows: list[dict[str, Any]] = [
        arm
        | {"group": f"TOOL-{n}", "asked": 2, "judged": 2, "completed": 0, "hallucinated": 0}
        | {"passes": n < 3, "failure": why if n == 3 else None, "receipt": None}
        for n in range(4)
    ]
    rows += [
        arm
        | none
        | {"group": f"TOOL-{n}", "passes": None, "failure": None}
        | {"receipt": f"rung TOOL-{n} skipped: gated by {why}"}
        for n in range(4, 10)
    ]
    frame = pl.DataFrame(rows, schema_overrides=dict.fromkeys(("model", "reached"), pl.String))
    table = tables.gate(frame)
    assert [row[0] for row in table.rows] == ["TOOL-0", "TOOL-1", "TOOL-2", "TOOL-3", "TOOL-4 to TOOL-9"]
    assert table.rows[4] == ["TOOL-4 to TOOL-9", "not asked", "", "", "", f"gated by {why}"]
    assert table.notes == ["stub: rung reached none"]


def test_groups_that_are_no_rungs_reach_nothing() -> None:
    """A suite of groups has a gate, but no line on rungs."""
    arm = {"driver": "stub", "model": None, "scaffold": "once", "reached": None, "receipt": None}
    counts = {"asked": 4, "judged": 4, "completed": 4, "hallucinated": 0, "passes": True, "failure": None}
    frame = pl.DataFrame([arm | counts | {"group": name} for name in ("billing", "travel")])
    table = tables.gate(frame.with_columns(pl.col("model", "failure", "receipt", "reached").cast(pl.String)))
    assert [row[0] for row in table.rows] == ["billing", "travel"]
    assert table.notes == []
    assert "reached" not in str(table)


def test_outcomes_have_their_own_denominators() -> None:
    """A success is shown even at zero, over the cases that expected it; a failure only when it came."""
    arm = {"driver": "stub", "model": None, "scaffold": "once", "evidence": "simulated"}
    frame = pl.DataFrame(
        [
            arm
            | {"outcome": name, "outcome_class": kind, "label": "", "n": n, "of": of, "over": over}
            | {"estimate": n / of if of else None, "low": 0.1, "high": 0.9}
            for name, kind, n, of, over in [
                ("correct_calls", "success", 3, 6, "calls"),
                ("correct_goal", "success", 0, 0, "goal"),
                ("timeout", "safe_non_success", 0, 9, "judged"),
                ("wrong_calls", "safe_non_success", 2, 9, "judged"),
            ]
        ]
    )
    rows = tables.outcomes(frame).rows
    assert [row[0] for row in rows] == ["correct_calls", "correct_goal", "wrong_calls"]
    assert [row[2] for row in rows] == ["50% [10, 90] 3/6", "– 0/0", "22% [10, 90] 2/9"]
    assert "never added together" in tables.outcomes(frame).notes[0]


def test_failures_name_the_first_check_and_their_number() -> None:
    """Cut after some, and it says how many there are."""
    frame = strip(trials=2)
    failed = frame.filter(pl.col("outcome_class") != "success").height
    table = tables.failures(frame, most=3)
    assert len(table.rows) == 3
    assert table.rows[0][1].endswith("#1")
    assert table.rows[0][3] == "0 calls where 1 is expected"
    assert table.notes == [
        f"3 of {failed} shown, unsafe ones first; {failed} of {frame.height} judged trials without success. "
        "All of them: agentbench-lab show RUN --failed --all"
    ]
    assert tables.failures(strip(groups=["TOOL-0"])).rows == []


def test_what_is_unsafe_comes_first() -> None:
    """The one unsafe trial of the second arm stands above all that merely failed, and survives the cut."""
    frame = strip(("a", "b"), cases=6)
    (unsafe,) = frame.filter(pl.col("outcome_class") == "unsafe")["case_id"]
    table = tables.failures(frame, most=1)
    assert [row[:4] for row in table.rows] == [["TOOL-5", unsafe, "b", "hallucinated_call"]]
    others = [row[0] for row in tables.failures(frame, most=1000).rows[1:]]
    assert others[: others.index("TOOL-9") + 1] == sorted(others[: others.index("TOOL-9") + 1])


def test_the_first_check_is_its_own_text() -> None:
    """A reason may hold a semicolon; it is not cut there."""
    frame = strip().with_columns(pl.lit("a; b").alias("first_reason"))
    assert {row[3] for row in tables.failures(frame).rows} == {"a; b"}


def test_text_cannot_leave_its_cell() -> None:
    """Case text is text in HTML, and one printable line in a terminal."""
    frame = strip(request=NASTY + "\x1b[2J\nnext", case_id=NASTY_ID)
    table = tables.failures(frame)
    parsed = Cells(table._repr_html_())
    assert NASTY_ID in parsed.texts
    assert any(text.startswith(NASTY) for text in parsed.texts)
    assert {tag for tag, _ in parsed.tags} == {
        "table",
        "caption",
        "thead",
        "tbody",
        "tfoot",
        "tr",
        "th",
        "td",
        "div",
    }
    assert "\x1b" not in str(table)


def test_headers_say_what_they_head() -> None:
    """A caption, a scope on every header cell, and headings over all columns."""
    parsed = Cells(tables.ladder(ladder(strip(("a", "b"))))._repr_html_())
    heads = [said for tag, said in parsed.tags if tag == "th"]
    assert {said["scope"] for said in heads} == {"col", "row", "colgroup"}
    assert parsed.texts[0] == "The metric pair by rung"
    assert [said["colspan"] for said in heads if said["scope"] == "colgroup"] == ["6", "6"]


def test_a_terminal_has_a_hundred_columns() -> None:
    """Too wide a table breaks its cells and loses no word; columns stay aligned."""
    words = " ".join(f"word{n}" for n in range(40))
    table = tables.Table("T" * 120, ["a", ">number", "text", "more"], [["x", "7", words, words], "half way"])
    text = str(table)
    assert max(map(len, text.splitlines())) <= 100
    assert all(f"word{n}" in text for n in range(40))
    assert "half way" in text.splitlines()


@pytest.mark.parametrize(("columns", "most"), [(60, 60), (100, 100), (250, 100), (5, 40)])
def test_a_table_is_as_wide_as_the_terminal(monkeypatch: pytest.MonkeyPatch, columns: int, most: int) -> None:
    """At most a hundred columns, at least forty; numbers and words are all there."""
    monkeypatch.setenv("COLUMNS", str(columns))
    words = " ".join(f"word{n}" for n in range(30))
    text = str(tables.Table("T", ["rung", ">n", "text"], [["TOOL-0", "7/8", words]], [words]))
    assert most - 6 <= max(map(len, text.splitlines())) <= most
    assert [word for n in range(30) if (word := f"word{n}") not in text] == []
    assert "7/8" in text


def test_a_long_word_may_be_broken_on_a_page() -> None:
    """A path or an argument list must not push the last column off the paper; names of outcomes stay whole."""
    table = tables.Table(
        "T", ["a", "b", "c"], [["TOOL-0", "hallucinated_call", "src/a_very_long/path/of.py"]]
    )
    classes = [said.get("class") for tag, said in Cells(table._repr_html_()).tags if tag in ("th", "td")]
    assert classes == [None, None, None, None, None, "long"]


def fake_run(evidence: str = "simulated", banner: str = "") -> Any:
    """As much of a run as a card needs."""
    arm = ArmCard("stub", None, "once", evidence, "1.0", banner)
    card = SimpleNamespace(
        stamp="s1",
        commit="dirty: abc+def",
        suites=(SuiteCard("ladder", "f" * 64, "1", "2026-11-01", 40),),
        arms=(arm,),
        options={"group": [], "trials": 2, "world": ""},
        seed=7,
        evidence=(evidence,),
        counts=Counts(80, 78, 1, 1),
        envelope=(Envelope("stub", None, "once", None, "TOOL-0 hallucination 5%", ()),),
        versions={"polars": "2.1.0"},
        started_at="2026-11-29T21:00:00Z",
    )
    return SimpleNamespace(card=card, trials=pl.DataFrame(), path=Path("data/results/ladder-s1-1a2b"))


def test_the_run_card_says_where_numbers_come_from() -> None:
    """Digest, counts, evidence and rung; and the same as JSON, with the way back to the run's folder."""
    table = tables.run_card(fake_run())
    text = str(table)
    for said in (
        "dirty: abc+def",
        "f" * 16,
        "80 asked, 78 judged, 1 excluded, 1 missing",
        "stub + once: none",
    ):
        assert said in text
    kept = table._repr_mimebundle_()[tables.RUN_MIME]
    assert kept["path"] == str(Path("data/results/ladder-s1-1a2b").resolve())
    assert kept["counts"] == {"asked": 80, "judged": 78, "excluded": 1, "missing": 1}
    assert kept["parameters"] == {"trials": "2"}


def test_the_banner_is_loud_only_when_no_model_was_asked() -> None:
    """Simulated and replayed rows are never read as a model's; live ones need no banner."""
    assert str(tables.banner(fake_run(banner="stub-floor"))) == "SIMULATED: driver stub is stub-floor"
    assert str(tables.banner(fake_run("replayed"))).startswith("REPLAYED: driver stub is")
    assert 'role="note"' in tables.banner(fake_run())._repr_html_()
    assert tables.banner(fake_run("live"))._repr_html_() == ""


def test_nothing_is_called_safe_where_safety_was_not_measured() -> None:
    """Imported rows say nothing of safety, unless their source reports something as unsafe."""
    row = {
        "driver": "agent",
        "model": None,
        "scaffold": "once",
        "evidence": "imported",
        "stop": None,
        "of": 4,
        "estimate": 0.25,
        "low": 0.05,
        "high": 0.7,
    }
    quiet = [row | {"outcome_class": "success", "n": 1}, row | {"outcome_class": "safe_non_success", "n": 3}]
    found = tables.exits(pl.DataFrame(quiet))
    assert [line[1] for line in found.rows] == ["success", "no success"]
    assert found.notes[-1] == "imported: safety was not measured"
    loud = [*quiet, row | {"outcome_class": "unsafe", "n": 1}]
    assert [line[1] for line in tables.exits(pl.DataFrame(loud)).rows] == [
        "success",
        "safe, no success",
        "unsafe",
    ]


CODE = "def add(a, b):\n    return a - b\n\n\tif a  > 1:\n\x1b[2Jred \u202e end\r\n"


def test_evidence_keeps_its_lines_and_its_indentation() -> None:
    """On a page and in a terminal, which it steers no more than any other text."""
    table = tables.Table("Evidence", ["what", "how it was"], [["file", CODE]], verbatim=True)
    lines = str(table).splitlines()[3:]
    column = lines[0].index("def")
    assert [line[column:] for line in lines] == [
        "def add(a, b):",
        "    return a - b",
        "",
        "        if a  > 1:",
        "\N{REPLACEMENT CHARACTER}[2Jred \N{REPLACEMENT CHARACTER} end",
    ]
    assert all(line[:column].isspace() or not line for line in lines[1:])  # no line passes for a row
    read = Cells(table._repr_html_())
    assert read.texts[-1] == CODE
    (cell,) = [attrs for tag, attrs in read.tags if tag == "td"]
    assert cell["class"] == "verbatim" and "pre-wrap" in str(cell["style"])


def test_long_lines_of_evidence_are_broken_and_nothing_is_lost() -> None:
    text = "    " + "x" * 150 + "\n  y"
    lines = str(tables.Table("Evidence", ["what", "how"], [["file", text]], verbatim=True)).splitlines()[3:]
    column = lines[0].index("x") - 4
    assert max(map(len, lines)) <= 100 and lines[-1][column:] == "  y"
    assert "".join(line[column:] for line in lines[:-1]) == text.split("\n")[0]


def test_a_table_without_rows_is_its_one_sentence() -> None:
    html = tables.Table(
        "Solved by group", ["group", ">solved"], [], ["1 group: not told <apart>"]
    )._repr_html_()
    assert html == "<p><strong>Solved by group</strong>: 1 group: not told &lt;apart&gt;</p>"
