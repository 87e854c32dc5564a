"""The comparison drawn and tabled: what it claims, what stands above it, and that names cannot break out of it."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
import vl_convert

from agentbench_lab import charts, tables
from agentbench_lab.analysis.compare import Comparison, Side, compare, compare_many, detect, spread

from .analysis.test_compare import SHA, made
from .drawing import NASTY


def grouped(name: str, *, commit: str = SHA, **results: str) -> Side:
    """A side with a case a letter in each group; groups are given as TOOL_0."""
    parts = [
        made(
            name, {f"{group}-{n}": letter for n, letter in enumerate(letters)}, group=group.replace("_", "-")
        )
        for group, letters in results.items()
    ]
    trials, cases = (pl.concat([getattr(part, grain) for part in parts]) for grain in ("trials", "cases"))
    return Side(name, trials, cases, "ladder", "strict", commit)


def found(names: tuple[str, str] = ("old", "new"), *, commit: str = SHA) -> Comparison:
    """Ten of twelve better on the first rung, nothing on the second, one worse and unsafe on the third."""
    a = grouped(names[0], TOOL_0="0" * 12, TOOL_1="10", TOOL_2="11")
    b = grouped(names[1], TOOL_0="1" * 10 + "00", TOOL_1="10", TOOL_2="1u", commit=commit)
    return compare(a, b, allow_mixed_commits=True)


def rows(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """All rows that the chart holds."""
    return [row for data in spec["datasets"].values() for row in data]


def test_the_chart_states_its_claim_and_its_evidence() -> None:
    """Title: who solves more, and what is newly unsafe. Subtitle: rates, interval, test, evidence."""
    spec = charts.compare(found()).to_dict()
    assert spec["title"]["text"] == [
        "new solves 56.2 points more than old.",
        "new is newly unsafe on 1 case.",
    ]
    subtitle = " ".join(spec["title"]["subtitle"])
    for said in (
        "new 75%, old 18.8% of 16 paired cases",
        "95% interval [",
        "exact McNemar p = 0.012",
        "Evidence: live",
    ):
        assert said in subtitle
    assert "bootstrap over paired cases, widened for few of them" in subtitle
    assert spec["description"].startswith("new solves 56.2 points more than old (new 75%")
    assert "TOOL-1: +0.0 [−49.0, +49.0] points, 0 more often, 0 less often, of 2." in spec["description"]


def test_the_chart_shows_every_case_that_changed_on_one_fixed_scale() -> None:
    """From -100 to +100 points whatever the data; fixes and regressions differ in shape too."""
    spec = charts.compare(found()).to_dict()
    changed = [row for row in rows(spec) if "case_id" in row]
    assert len(changed) == 11
    assert [row["difference"] for row in changed if row["group"] == "TOOL-2"] == [-1.0]
    assert len({(row["group"], row["difference"], row["at"]) for row in changed}) == 11
    plot = spec["vconcat"][0]
    domains = [
        part["encoding"]["y"]["scale"]["domain"] for part in plot["layer"] if "scale" in part["encoding"]["y"]
    ]
    assert domains
    assert all(domain == [-1, 1] for domain in domains)
    shapes = [
        part["encoding"]["shape"]["scale"]["range"] for part in plot["layer"] if "shape" in part["encoding"]
    ]
    assert shapes[0] == ["triangle-up", "triangle-down", "diamond"]
    by_group = {row["group"]: row for row in rows(spec) if "changes" in row}
    assert {group: (row["changes"], row["of"], row["unsafe"]) for group, row in by_group.items()} == {
        "TOOL-0": ("+10 −0", "of 12", ""),
        "TOOL-1": ("+0 −0", "of 2", ""),
        "TOOL-2": ("+0 −1", "of 2", "1 unsafe"),
        "all": ("+10 −1", "of 16", "1 unsafe"),
    }


def test_a_chart_of_one_group_has_no_second_total() -> None:
    """With one group its mean is the mean of all."""
    spec = charts.compare(compare(made("a", {"c1": "0"}), made("b", {"c1": "1"}))).to_dict()
    assert {row["group"] for row in rows(spec) if "changes" in row} == {"TOOL-0"}
    assert spec["title"]["text"] == ["The difference between a and b is not decisive"]


def test_no_chart_holds_more_marks_than_it_may() -> None:
    """Beyond the limit, cases with the same difference are one mark, and the subtitle counts both."""
    many = charts.MOST_MARKS + 10
    a, b = (made(name, {f"c{n}": letter for n in range(many)}) for name, letter in (("a", "0"), ("b", "1")))
    spec = charts.compare(compare(a, b)).to_dict()
    assert [(row["difference"], row["case_id"]) for row in rows(spec) if "case_id" in row] == [
        (1.0, "5010 cases")
    ]
    assert "5,010 rows in, 1 points drawn." in " ".join(spec["title"]["subtitle"])


@pytest.mark.parametrize("commit", ["unknown", f"dirty: {SHA}+{'0' * 16}"])
def test_mixed_commits_stand_above_everything(commit: str) -> None:
    """They open the title of each table with numbers, and the chart's subtitle."""
    mixed = found(commit=commit)
    note = f"These runs come from 2 commits ({SHA}, {commit}) and are not comparable as like for like."
    several = compare_many(
        grouped("old", TOOL_0="0"), [grouped("new", TOOL_0="1", commit=commit)], allow_mixed_commits=True
    )
    for table in (
        tables.compare(mixed),
        tables.changes(mixed),
        tables.compare_many(several),
    ):
        assert table.title.startswith(note)
    assert " ".join(charts.compare(mixed).to_dict()["title"]["subtitle"]).startswith(note)


def test_the_table_by_rung() -> None:
    """Both rates, the difference with its interval, and counts of what changed; the sentence below."""
    table = tables.compare(found())
    assert table.title == "new solves 56.2 points more than old"
    by_rung = {row[0]: row[1:] for row in table.rows}
    assert by_rung["TOOL-1"] == ["2", "50%", "50%", "+0.0 [−49.0, +49.0]", "0", "0", "0"]
    assert by_rung["TOOL-2"][:3] == ["2", "100%", "50%"]
    assert by_rung["TOOL-2"][3].startswith("−50.0 [−100.0, +")
    assert by_rung["all"][4:] == ["10", "1", "1"]
    assert table.notes[0] == found().sentence


def test_what_changed_is_named_losses_first() -> None:
    """Newly unsafe, then worse, then better; a long list says how much of it is shown."""
    table = tables.changes(found(), most=3)
    heads = [row for row in table.rows if isinstance(row, str)]
    assert heads == ["newly unsafe: 1", "less often: 1", "more often: 10, 3 shown"]
    assert table.rows[1] == ["TOOL-2", "TOOL_2-1", "1/1", "0/1", "hallucinated_call"]
    assert table.notes == ["solved of judged trials; 5 of 16 paired cases were solved equally often"]


def test_cases_without_a_counterpart_are_listed() -> None:
    """Who judged them, and why the other did not."""
    a, b = made("a", {"c1": "1", "c2": "1"}), made("b", {"c1": "1", "c2": "x", "c3": "u"})
    table = tables.unmatched(compare(a, b))
    assert table.rows == [
        ["TOOL-0", "c2", "a", "no judged trial there (1 excluded)", ""],
        ["TOOL-0", "c3", "b", "not asked there", "hallucinated_call"],
    ]
    assert tables.unmatched(compare(a, a)).notes == ["every case has one"]


def test_several_arms_share_a_table() -> None:
    """Verdicts by the corrected p-value, and the test that it comes from."""
    base = made("base", {f"c{n:02}": "0" for n in range(20)})
    arms = [made(f"m{k}", {f"c{n:02}": "1" if n < k else "0" for n in range(20)}) for k in (6, 12)]
    table = tables.compare_many(compare_many(base, arms))
    assert [(row[0], row[3], row[4], row[5]) for row in table.rows] == [
        ("m6", "0.031", "exact McNemar", "better"),
        ("m12", "< 0.001", "exact McNemar", "better"),
    ]
    assert "Holm's correction for 2 arms" in table.notes[0]


def test_the_plan_is_a_table() -> None:
    """Trials a case, cases, and what that is in trials."""
    table = tables.detect(detect(spread(), 0.05), 0.05)
    assert table.rows[0] == ["1", "1,570", "1,570"]
    assert "5 points" in table.title


def test_names_are_data() -> None:
    """A hostile or a very long arm's name is escaped in tables, drawn in charts, and breaks neither."""
    nasty = found((NASTY, "chat:large-model-of-somebody@http://localhost:8000/v1/" + "x" * 80))
    html = tables.compare(nasty)._repr_html_() + tables.changes(nasty)._repr_html_()
    assert "<img" not in html
    assert "</script" not in html
    svg = vl_convert.vegalite_to_svg(charts.compare(nasty).to_dict())
    assert "<img" not in svg
    assert max(map(len, str(tables.compare(nasty)).splitlines())) <= 100
