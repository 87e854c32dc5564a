"""Result files of the format agent-runtime/bench/v1: golden bytes, refusals, arithmetic, and anything thrown at decode."""

from __future__ import annotations

import json
import pickle
import re
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import replace

from agentbench_lab.errors import LabError
from agentbench_lab.outcomes import LADDER, Outcome, Taxonomy
from agentbench_lab.results.bench_v1 import (
    BenchError,
    BenchFile,
    Column,
    OutcomeCount,
    Summary,
    Trial,
    raw,
    reading,
)
from agentbench_lab.results.bench_v1 import markdown as md
from agentbench_lab.results.bench_v1.model import quoted, saturating_sum
from agentbench_lab.results.bench_v1.scan import Scanner, text_of
from agentbench_lab.results.bench_v1.times import Moment

GOLDEN = Path(__file__).resolve().parent.parent / "golden" / "bench_v1"
MAX, MIN = 2**63 - 1, -(2**63)
NOT_COPIED = "d71_duplicate_trials_key.json"
THREE = Taxonomy(
    "three",
    (Outcome("ok", "success"), Outcome("meh", "safe_non_success"), Outcome("bad", "unsafe", "", "Bad")),
)
COMPARED_ALONE = {
    "natural": "e07_natural.json",
    "nums": "e10_num.json",
    "saturate": "e03_saturate.json",
    "unsafe_many": "e08_unsafe_many.json",
    "all_excluded": "e06_all_excluded.json",
    "no_columns": "e04_trials_empty.json",
    "rich": "e02_rich.json",
}


def results(folder: str) -> list[Any]:
    """The expected results of a golden folder, one pytest parameter each."""
    rows = json.loads((GOLDEN / folder / "results.json").read_text(encoding="utf-8"))
    return [pytest.param(row, id=row["case"]) for row in rows]


def read(folder: str, name: str) -> bytes:
    return (GOLDEN / folder / name).read_bytes()


def expected_kind(row: dict[str, Any]) -> str:
    kinds = {"is_err_file": "file", "is_err_taxonomy": "taxonomy"}
    kinds |= {"is_err_mixed_commits": "mixed_commits", "is_err_mixed_taxonomies": "mixed_taxonomies"}
    return next((kind for flag, kind in kinds.items() if row.get(flag)), "nothing")


def trial(**fields: Any) -> Trial:
    return Trial(**({"scenario": "s", "mode": "m", "repeat": 1, "outcome": "ok"} | fields))


def file(*trials: Trial, **fields: Any) -> BenchFile:
    return BenchFile(
        **({"started_at": "2026-09-25T20:00:00Z", "taxonomy": THREE, "trials": list(trials)} | fields)
    )


def repeats(*outcomes: str, **fields: Any) -> list[Trial]:
    return [trial(repeat=n, outcome=name, **fields) for n, name in enumerate(outcomes, 1)]


# golden cases


@pytest.mark.parametrize("row", results("encode_out"))
def test_golden_encode(row: dict[str, Any]) -> None:
    """Each of the 41: the same bytes and Markdown, or the same refusal in the same words."""
    given_file = BenchFile.from_wire(reading.parse(read("encode_in", row["case"])))
    if not row["ok"]:
        with pytest.raises(BenchError) as refused:
            given_file.encode()
        assert (str(refused.value), refused.value.kind) == (row["error"], expected_kind(row))
        return
    assert given_file.encode() == read("encode_out", row["case"])
    assert given_file.markdown().encode() == read("encode_out", row["case"] + ".md")
    assert BenchFile.decode(given_file.encode()).encode() == read("encode_out", row["case"])


@pytest.mark.parametrize("row", results("decode_out"))
def test_golden_decode(row: dict[str, Any]) -> None:
    """Each of the 99: accepted with the same bytes and Markdown, or refused by the same rule."""
    data = read("decode_in", row["case"])
    if not row["ok"]:
        with pytest.raises(BenchError) as refused:
            BenchFile.decode(data)
        assert refused.value.kind == expected_kind(row)
        if not re.search(r"json:|parsing time|invalid character|EOF|JSON", row["error"]):
            assert str(refused.value) == row["error"]
        return
    decoded = BenchFile.decode(data)
    if "reencoded_file" not in row:  # an offset of a day can be read, and is not written
        with pytest.raises(BenchError, match="offset"):
            decoded.encode()
    elif row["case"] == NOT_COPIED:
        assert b'"notes": [\n        "k"' in read("decode_out", row["case"])
        assert decoded.encode() == read("decode_in", "d01_canonical.json")
    else:
        assert decoded.encode() == read("decode_out", row["case"])
        assert decoded.markdown().encode() == read("decode_out", row["case"] + ".md")
        assert row["reencodes_to_same_bytes"] == (decoded.encode() == data)


@pytest.mark.parametrize("row", results("compare_out"))
def test_golden_compare(row: dict[str, Any]) -> None:
    """Several files: the same Markdown, or the same refusal in the same words."""
    requests = json.loads((GOLDEN / "compare_requests.json").read_text(encoding="utf-8"))
    request = next(request for request in requests if request["name"] == row["case"])
    files = [BenchFile.decode(read("compare_in", name), source=name) for name in request["files"]]
    check_compare(row, "compare_out", files, request)


@pytest.mark.parametrize("row", results("compare_encode_out"))
def test_golden_compare_of_one_file(row: dict[str, Any]) -> None:
    """One encoded file compared with itself: mixed repeats, natural order, means, saturation."""
    name = COMPARED_ALONE[row["case"]]
    check_compare(row, "compare_encode_out", [BenchFile.decode(read("encode_out", name), source=name)], {})


def check_compare(row: dict[str, Any], folder: str, files: list[BenchFile], request: dict[str, Any]) -> None:
    options = {key: request[key] for key in ("order", "link_prefix", "allow_mixed_commits") if key in request}
    if not row["ok"]:
        with pytest.raises(BenchError) as refused:
            BenchFile.compare(BenchFile.latest(files), **options)
        assert (str(refused.value), refused.value.kind) == (row["error"], expected_kind(row))
        return
    assert BenchFile.compare(BenchFile.latest(files), **options).encode() == read(
        folder, row["markdown_file"]
    )


def test_all_golden_cases_are_here() -> None:
    """41 encodes, 99 decodes, 24 of the 27 compares (the other three are of real files)."""
    counts = [
        len(results(name)) for name in ("encode_out", "decode_out", "compare_out", "compare_encode_out")
    ]
    assert counts == [41, 99, 17, 7]
    assert len(list((GOLDEN / "encode_in").iterdir())) == 41
    assert len(list((GOLDEN / "decode_in").iterdir())) == 99


# reading


CANONICAL = read("decode_in", "d01_canonical.json")
RICH = read("decode_in", "d02_rich.json")


@pytest.mark.parametrize(
    "name", ["d01_canonical.json", "d02_rich.json", "d03_compact.json", "d72_outcome_order_in_counts.json"]
)
def test_a_canonical_file_is_read_the_quick_way(name: str) -> None:
    """Whatever its white space; and the careful way reads the same from it."""
    data = read("decode_in", name)
    assert reading._quick(data) == reading._careful(data) is not None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"mode": "baseline"', b'"mode": "other", "mode": "baseline"'),
        (b'"steps": 0', b'"steps": 0, "steps": null'),
        (b'"steps": 0', b'"steps": -0'),
        (b'"trials": [', b'"trials": null, "trials": ['),
        (b'"taxonomy": {', b'"taxonomy": {"name": "x"}, "taxonomy": {'),
        (b'"wall_ns": 0\n    }\n  ],', b'"wall_ns": 0, "extra": {}\n    }\n  ],'),
        (b'"scenario": "s1"', b'"scenario": "\\u00731"'),
    ],
)
def test_what_the_quick_way_would_lose_is_read_carefully(old: bytes, new: bytes) -> None:
    """Names given twice, nulls, spelled-out empties and escapes: read by the rules, and written as the canonical file."""
    assert CANONICAL.count(old) >= 1
    data = CANONICAL.replace(old, new, 1)
    assert reading._quick(data) is None
    assert BenchFile.decode(data).encode() == CANONICAL


@pytest.mark.parametrize("value", [b"9223372036854775808", b"-9223372036854775809", b"9" * 5000])
def test_integers_beyond_64_bits_are_refused(value: bytes) -> None:
    """Also ones too long for Python's own int()."""
    with pytest.raises(BenchError, match="64-bit") as refused:
        BenchFile.decode(CANONICAL.replace(b'"steps": 0', b'"steps": ' + value, 1))
    assert len(str(refused.value)) < 200


def test_an_unknown_field_is_named() -> None:
    """In every kind of object that has a fixed set of fields."""
    for anchor in (
        b'"format"',
        b'"name": "cases"',
        b'"name": "ok"',
        b'"scenario"',
        b'"mode"',
        b'"outcome": "ok",\n          "class"',
    ):
        assert anchor in CANONICAL
        with pytest.raises(BenchError, match="unknown field 'colour'"):
            BenchFile.decode(CANONICAL.replace(anchor, b'"colour": 1, ' + anchor, 1))


@pytest.mark.parametrize(
    "number", ["1.50", "1e3", "-0", "1.0E+2", "1e999", "9" * 400, "-9223372036854775809", "0.10"]
)
def test_number_literals_survive(number: str) -> None:
    """As they were written, nested or not, in options and extra."""
    value = Raw(f'{{"a":[{number}]}}'.encode())
    before = file(trial(extra={"n": Raw(number.encode()), "v": value}), options={"n": Raw(number.encode())})
    after = BenchFile.decode(before.encode())
    assert bytes(after.options["n"]).decode() == number
    assert bytes(after.trials[0].extra["n"]).decode() == number
    assert re.sub(rb"\s", b"", bytes(after.trials[0].extra["v"])) == bytes(value)
    assert after.encode() == before.encode()


@pytest.mark.parametrize(
    "escape", [r"\u00e9", r"\/", r"\ud800", r"\udc00\ud800", r"\u003C", "é", "\x7f", r"\"\\\b"]
)
def test_escapes_survive(escape: str) -> None:
    """As they were written, in a raw value; also half of a surrogate pair, which no Python text may hold."""
    before = file(trial(extra={"v": Raw(f'["{escape}"]'.encode())}))
    assert f'"{escape}"'.encode() in before.encode()
    assert BenchFile.decode(before.encode()).encode() == before.encode()


@pytest.mark.parametrize("levels", [900, 5000, 9_996])
def test_nesting_of_up_to_10_000_levels_is_kept(levels: int) -> None:
    """The deepest value of a trial is in four levels already."""
    data = CANONICAL.replace(
        b'"steps": 0', b'"extra": {"a": ' + b"[" * levels + b"]" * levels + b'}, "steps": 0', 1
    )
    nested = bytes(BenchFile.decode(data).trials[0].extra["a"])
    assert nested == b"[" * levels + b"]" * levels
    with pytest.raises(BenchError, match="levels of nesting"):
        BenchFile.decode(data.replace(b"[" * levels, b"[" * 9_997, 1).replace(b"]" * levels, b"]" * 9_997, 1))


def test_deep_nesting_is_written_too() -> None:
    """Past what the fast writer can do."""
    deep = file(trial(extra={"a": Raw(b'[{"k":' * 700 + b"[]" + b"}]" * 700)}))
    data = deep.encode()
    assert data.count(b"\n") == 1400 * 2 + file(trial(extra={"a": raw("x")})).encode().count(b"\n")
    assert BenchFile.decode(data).encode() == data


def test_data_after_the_file() -> None:
    """Refused, but for the original's quirk: a closing bracket goes unnoticed."""
    for tail in (b"x", b"{}", b"1", b"\x00"):
        with pytest.raises(BenchError, match="data after the file"):
            BenchFile.decode(CANONICAL + tail)
    for tail in (b"  \r\n\t", b"]", b"} x"):
        assert BenchFile.decode(CANONICAL + tail).encode() == CANONICAL


def test_error_says_where() -> None:
    """The byte at which the text stops to be JSON."""
    with pytest.raises(BenchError, match=f"the text ends early at byte {len(CANONICAL) - 3}"):
        BenchFile.decode(CANONICAL[:-3])
    with pytest.raises(BenchError, match="unexpected , at byte 1"):
        BenchFile.decode(b"{, }")


def test_errors_are_mistakes_of_the_user() -> None:
    """One type, which the command line shows as one line; it can cross a process border."""
    with pytest.raises(LabError) as refused:
        BenchFile.decode(b"{}")
    copy = pickle.loads(pickle.dumps(refused.value))
    assert (str(copy), copy.kind) == (str(refused.value), "file")


def test_fields_of_two_trials_are_never_one_object() -> None:
    """Also where both were empty and read the careful way."""
    rows = repeats("ok", "ok")
    data = file(*rows).encode().replace(b'"scenario"', b'"Scenario"')
    first, second = BenchFile.decode(data).trials
    first.extra["a"] = raw(1)
    first.notes.append("x")
    assert (second.extra, second.notes) == ({}, [])
    assert BenchFile.decode(data).trials[0].extra == {}


def test_read_dir(tmp_path: Path) -> None:
    """By name as bytes; only files that end in .json; the first that is wrong ends it with its name."""
    for name in ("b.json", "B.json", "é.json", "a.JSON", "a.json.txt", ".json"):
        (tmp_path / name).write_bytes(CANONICAL)
    (tmp_path / "d.json").mkdir()
    assert [one.source for one in BenchFile.read_dir(tmp_path)] == [".json", "B.json", "b.json", "é.json"]
    (tmp_path / "c.json").write_bytes(b"[]")
    with pytest.raises(BenchError, match=r"^c\.json: bench: invalid result file: ") as refused:
        BenchFile.read_dir(tmp_path)
    assert refused.value.kind == "file"
    with pytest.raises(BenchError, match="cannot be read: No such file"):
        BenchFile.read_dir(tmp_path / "nowhere")
    (tmp_path / "c.json").unlink()
    (tmp_path / "c.json").symlink_to(tmp_path / "nothing")
    with pytest.raises(BenchError, match=r"^c\.json: cannot be read"):
        BenchFile.read_dir(tmp_path)


# writing


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"scenario": "a\ud800"}, "surrogate"),
        ({"scenario": 5}, "scenario is 5, not of type str"),
        ({"steps": 1.0}, "steps is 1.0, not of type int"),
        ({"steps": True}, "steps is True, not of type int"),
        ({"steps": 2**63}, "64 bits"),
        ({"repeat": 2**63}, "64 bits"),
        ({"notes": None}, "notes is None"),
        ({"notes": [1]}, "notes is 1"),
        ({"extra": {"a": 1}}, "raw JSON value"),
        ({"extra": {1: raw(1)}}, "raw JSON value"),
        ({"extra": {"a": Raw(b'1, "steps": 2')}}, "not JSON"),
        ({"extra": {"a": Raw(b"")}}, "not JSON"),
        ({"extra": {"a": Raw(b"[" * 10_000 + b"]" * 10_000)}}, "levels of nesting"),
    ],
)
def test_what_the_format_cannot_hold_is_not_written(fields: dict[str, Any], message: str) -> None:
    """Values that only Python code can put there."""
    with pytest.raises(BenchError, match=message) as refused:
        file(trial(**fields)).encode()
    assert refused.value.kind == "encode"


@pytest.mark.parametrize(
    "fields",
    [
        {"commit": None},
        {"notes": "n"},
        {"options": None},
        {"trials": ()},
        {"trials": [1]},
        {"taxonomy": "t"},
        {"started_at": 1},
    ],
)
def test_a_file_of_wrong_types_is_not_written(fields: dict[str, Any]) -> None:
    """The field is named."""
    with pytest.raises(BenchError, match="not of type"):
        file(**fields).encode()


def test_raw_takes_json_values_only() -> None:
    """And keeps them as canonical text."""
    assert bytes(raw({"a": [1, None, "é"]})) == '{"a":[1,null,"é"]}'.encode()
    with pytest.raises(BenchError, match="not a JSON value"):
        raw({1, object()})
    with pytest.raises(BenchError, match="not a JSON value"):
        raw("\ud800")


def test_encode_changes_nothing_in_the_file() -> None:
    """It is a question, not an action."""
    one = BenchFile.decode(RICH)
    before = pickle.dumps([(str(t), list(t.extra)) for t in one.trials])
    assert one.encode() == one.encode() == RICH
    assert pickle.dumps([(str(t), list(t.extra)) for t in one.trials]) == before


def test_our_own_taxonomy_is_one_of_the_format() -> None:
    """A file judged by the ladder's outcomes round-trips."""
    data = file(trial(outcome="correct_calls", expect="calls"), taxonomy=LADDER).encode()
    assert BenchFile.decode(data).taxonomy == LADDER


# times


@pytest.mark.parametrize(
    ("text", "written", "utc"),
    [
        ("2026-09-25T20:00:00Z", "2026-09-25T20:00:00Z", "2026-09-25T20:00:00Z"),
        ("2026-09-25T20:00:00.500+02:00", "2026-09-25T20:00:00.5+02:00", "2026-09-25T18:00:00Z"),
        ("2026-09-25T20:00:00.1234567899Z", "2026-09-25T20:00:00.123456789Z", "2026-09-25T20:00:00Z"),
        ("2026-09-25T20:00:00-00:00", "2026-09-25T20:00:00Z", "2026-09-25T20:00:00Z"),
        ("2026-09-25T2:00:00,5Z", "2026-09-25T02:00:00.5Z", "2026-09-25T02:00:00Z"),
        ("2026-09-25T20:00:00-02:60", "2026-09-25T20:00:00-03:00", "2026-09-25T23:00:00Z"),
        ("0000-02-29T00:00:00+01:00", "0000-02-29T00:00:00+01:00", "0000-02-28T23:00:00Z"),
        ("0000-01-01T00:00:00+01:00", "0000-01-01T00:00:00+01:00", "-0001-12-31T23:00:00Z"),
        ("9999-12-31T23:59:59-00:01", "9999-12-31T23:59:59-00:01", "10000-01-01T00:00:59Z"),
    ],
)
def test_times(text: str, written: str, utc: str) -> None:
    """Read leniently, written in one way, shown in UTC; also where Python's own dates end."""
    assert (str(Moment.parse(text)), Moment.parse(text).utc()) == (written, utc)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2026-09-25",
        "2026-09-25t20:00:00Z",
        "2026-09-25T20:00:00z",
        "2026-09-25T24:00:00Z",
        "2026-13-01T00:00:00Z",
        "2026-02-29T00:00:00Z",
        "2026-00-01T00:00:00Z",
        "2026-09-25T20:60:00Z",
        "2026-09-25T20:00:60Z",
        "2026-09-25T20:00Z",
        "2026-09-25T20:00:00+25:00",
        "2026-09-25T20:00:00+02:61",
        "2026-09-25T20:00:00+0200",
        "2026-09-25T20:00:00.Z",
        "٢٠٢٦-09-25T20:00:00Z",
        "2026-09-25T20:00:00Z ",
        "-026-09-25T20:00:00Z",
    ],
)
def test_times_that_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="the time"):
        Moment.parse(text)


@given(st.datetimes(), st.integers(-1439, 1439), st.integers(0, 999))
@settings(max_examples=200)
def test_times_agree_with_python(local: datetime, minutes: int, nanos: int) -> None:
    """Calendar, offset and order, wherever Python has a word for it."""
    moment = Moment.parse(local.isoformat(timespec="microseconds") + f"{nanos:03}" + _offset(minutes))
    seconds = (local - datetime.min) // timedelta(seconds=1)  # noqa: DTZ901
    assert moment.instant == (seconds - minutes * 60, local.microsecond * 1000 + nanos)
    assert Moment.parse(str(moment)) == moment
    if datetime.min + timedelta(days=2) < local < datetime.max - timedelta(days=2):  # noqa: DTZ901
        aware = local.replace(tzinfo=timezone(timedelta(minutes=minutes)))
        assert moment.utc() == aware.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="seconds") + "Z"


def _offset(minutes: int) -> str:
    return f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"


# arithmetic and words


def test_sums_saturate_in_the_order_of_the_rows() -> None:
    """A later negative value counts from the limit."""
    assert saturating_sum([MAX, 5, -10]) == MAX - 10
    assert saturating_sum([-10, MAX, 5]) == MAX - 5
    assert saturating_sum([MIN, -5, 10]) == MIN + 10
    assert saturating_sum([]) == 0


def test_counts_go_over_what_was_expected() -> None:
    """A trial with the outcome that expected something else is in the denominator too: n never exceeds of."""
    taxonomy = Taxonomy("t", (Outcome("did", "success", "do"), Outcome("lied", "unsafe")))
    rows = [
        trial(repeat=1, outcome="did", expect="do"),
        trial(repeat=2, outcome="lied", expect="do"),
        trial(repeat=3, outcome="did", expect="refuse"),
        trial(repeat=4, outcome="lied", expect="refuse"),
        trial(repeat=9, outcome="", excluded="no recording", expect="do", steps=7),
    ]
    (summary,) = file(*rows, taxonomy=taxonomy).summarize()
    assert [(c.outcome, c.n, c.of) for c in summary.counts] == [("did", 2, 3), ("lied", 2, 4)]
    assert (summary.trials, summary.judged, summary.excluded, summary.repeats, summary.unsafe) == (
        5,
        4,
        1,
        9,
        2,
    )
    assert (summary.steps, summary.disqualified, summary.mean_steps) == (0, True, 0.0)


def test_totals_are_of_integers_as_they_are_written() -> None:
    """Not of 1.0, 1e3, a string, true, null, or what is beyond 64 bits."""
    literals = ["7", "-3", "-0", "1.0", "1e3", '"5"', "true", "null", "9223372036854775808", "[1]", " 4 "]
    extra = {f"k{n}": Raw(text.encode()) for n, text in enumerate(literals)}
    (summary,) = file(trial(extra=extra)).summarize()
    assert summary.totals == {"k0": 7, "k1": -3, "k2": 0, "k10": 4}


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (0, "0s"),
        (499_999, "0s"),
        (500_000, "1ms"),
        (6_000_000, "6ms"),
        (999_499_999, "999ms"),
        (999_500_000, "1s"),
        (1_499_999_999, "1s"),
        (1_500_000_000, "2s"),
        (79e9, "1m19s"),
        (3600e9, "1h0m0s"),
        (90_061e9, "25h1m1s"),
        (float(MAX), "-2562047h47m16.854775808s"),
        (float(2**63 - 1024), "2562047h47m16.854775807s"),
        (-1.5e6, "-2ms"),
    ],
)
def test_durations(nanoseconds: float, text: str) -> None:
    assert md.duration(float(nanoseconds)) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(2.0, "2"), (2.25, "2.2"), (2.75, "2.8"), (0.04, "0.0"), (2.0**63, "9223372036854775808.0")],
)
def test_means_are_whole_or_have_one_decimal(value: float, text: str) -> None:
    assert md.number(value) == text


def test_natural_order() -> None:
    """Numbers by size, everything else by bytes, a beginning before what it begins."""
    order = [
        "9",
        "10",
        "S1",
        "S2",
        "S2a",
        "S02b",
        "S4",
        "S4M",
        "S9",
        "S10",
        "S10A2",
        "S10A10",
        "S10H",
        "Z",
        "s1",
        "s2",
        "s10",
        "s13",
        "x",
        "z9",
        "é1",
    ]
    assert sorted({*order}, key=md.natural) == order
    assert sorted(["a1b", "a1", "a!", "a:", "ab"], key=md.natural) == ["a!", "a1", "a1b", "a:", "ab"]


def test_quoting() -> None:
    """As Go's %q."""
    assert quoted('a"\\\n\t\x00\x7f é\u2028\U0001f389\ue000') == r'"a\"\\\n\t\x00\x7f é\u2028🎉\ue000"'


def test_invalid_bytes_become_one_sign_each() -> None:
    """Each byte of a cut-off or impossible sequence, and each half of a surrogate pair."""
    assert text_of(b'"\xf0\x9f\x8e \xed\xa0\x80"') == "���" + " ���"
    assert text_of(rb'"\ud800\ud83c\udf89\udc00\n"') == "\ufffd🎉\ufffd\n"


# comparison


def test_latest_takes_the_later_instant_whatever_its_offset() -> None:
    """Then the larger source, then the first seen; sorted by mode and model."""
    early = file(trial(), trial(mode="a", model="x"), started_at="2026-01-01T10:00:00+05:00", source="z")
    late = file(trial(), started_at="2026-01-01T06:00:00.000000001Z", source="a")
    assert [(c.mode, c.model, c.file.source) for c in BenchFile.latest([early, late])] == [
        ("a", "x", "z"),
        ("m", "", "a"),
    ]
    same = replace(early, source="zz")
    assert [c.file.source for c in BenchFile.latest([early, same])] == ["zz", "zz"]
    twin = replace(early)
    assert BenchFile.latest([twin, early])[1].file is twin


def test_commits_are_not_mixed_unless_allowed() -> None:
    """All unknown commits are one, which is no named one; the taxonomy is looked at first."""
    known, unknown = file(trial(), commit="c1"), file(trial(mode="n"))
    other = file(trial(mode="o"))
    assert "no commit recorded" in BenchFile.compare(BenchFile.latest([unknown, other]))
    with pytest.raises(
        BenchError, match=r"different commits are not comparable: c1, no commit recorded$"
    ) as refused:
        BenchFile.compare(BenchFile.latest([known, unknown]))
    assert refused.value.kind == "mixed_commits"
    text = BenchFile.compare(BenchFile.latest([known, unknown]), allow_mixed_commits=True)
    assert text.startswith(
        "**These columns come from 2 commits (c1, no commit recorded) and are not comparable"
    )
    relabelled = Taxonomy("three", (Outcome("ok", "success", "", "Fine"), *THREE.outcomes[1:]))
    with pytest.raises(BenchError) as refused:
        BenchFile.compare([*BenchFile.latest([known]), Column(mode="n", file=file(taxonomy=relabelled))])
    assert refused.value.kind == "mixed_taxonomies"


def test_a_column_without_trials_is_compared_as_empty() -> None:
    """One asks for it by hand."""
    text = BenchFile.compare([Column(mode="none", file=file(trial()))])
    assert "| none | no commit recorded | 0/0 | 0/0 | 0/0 | 0/0 | 0/0 | 0 | 0.0000 | — |" in text


def test_means_of_huge_numbers_are_sums_of_floats() -> None:
    """One by one, as the format's own package adds them."""
    values = [2**53, 1, 1, 1]
    assert md._mean(values) == float(2**53) / 4 != sum(values) / 4


# anything thrown at decode


SEEDS = sorted(path for path in (GOLDEN / "decode_in").iterdir() if path.stat().st_size < 4000)
PIECES = st.sampled_from(
    [
        b'"',
        b"\\",
        b"\\ud800",
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b":",
        b"null",
        b"true",
        b"1.0",
        b"-1",
        b"1e5",
        b"\xff",
        b"\x00",
        b'"extra":{"a":1},',
        b'"notes":[null],',
        b'"steps":1,',
        b'"STEPS":2,',
        b'"n":0,',
        b'"totals":{"a":1},',
        b'"x":0,',
        b'"excluded":"x",',
        b'"outcome":"",',
        b'"trials":[],',
        b'"options":{"b":[1, 2]},',
        b'"commit":"c",',
        b'"taxonomy":{},',
        b'"started_at":"0001-01-01T00:00:00Z",',
        b"9223372036854775808",
        b"9" * 30,
        b"\xef\xbb\xbf",
        b"<&>",
        b"\xe2\x80\xa8",
    ]
)


@st.composite
def broken(draw: st.DrawFn) -> bytes:
    """A golden file with a few pieces cut out, doubled or put in."""
    data = draw(st.sampled_from(SEEDS)).read_bytes()
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(data)))
        end = start if draw(st.booleans()) else min(len(data), start + draw(st.integers(0, 60)))
        piece = draw(st.one_of(PIECES, st.binary(max_size=6), st.just(data[start:end] * 2)))
        if draw(st.booleans()):  # at a place where a member may stand
            start = end = data.find(b'"', start) if b'"' in data[start:] else start
        data = data[:start] + piece + data[end:]
    return data


def check_decode(data: bytes) -> None:
    """Refused with the documented error, or written in a way that stays the same; and both ways of reading agree."""
    quick = reading._quick(data)
    if quick is not None:
        assert quick == reading._careful(data)
    try:
        decoded = BenchFile.decode(data)
    except BenchError as error:
        assert str(error).startswith("bench: invalid ")
        assert error.kind in {"file", "taxonomy"}
        return
    try:
        once = decoded.encode()
    except BenchError as error:
        assert error.kind == "encode"
        assert "offset" in str(error)
        return
    again = BenchFile.decode(once)
    assert again.encode() == once
    assert again.summarize() == decoded.summarize() == by_hand(decoded)
    assert decoded.markdown().endswith("\n")
    if decoded.trials:
        assert BenchFile.compare(BenchFile.latest([decoded])).endswith("\n")


QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large]


@given(st.one_of(st.binary(max_size=40), broken()))
@settings(max_examples=200, deadline=None, suppress_health_check=QUIET)
def test_no_bytes_raise_anything_else(data: bytes) -> None:
    check_decode(data)


@pytest.mark.long
@given(st.one_of(st.binary(max_size=40), broken(), broken()))
@settings(max_examples=20_000, deadline=None, suppress_health_check=QUIET)
def test_no_bytes_raise_anything_else_long(data: bytes) -> None:
    check_decode(data)


# files made from any values


NAMES = st.sampled_from(["a", "b", "S2", "S10", "<&>", "é\u2028", '"\\\n', "x|y"])
COUNTS = st.one_of(st.integers(0, 9), st.integers(0, MAX), st.sampled_from([MAX, MAX - 1]))
JSON = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(MIN, 2**64 - 1),
        st.floats(allow_nan=False, allow_infinity=False),
        NAMES,
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=6,
)
LITERALS = st.sampled_from(
    [b"1.50", b"1e3", b"-0", b"1e999", b'"\\u00e9\\/"', b'"\\ud800"', b"[ 1 ,{ } ]", b'{"x":1,"x":2}']
)
RAWS = st.dictionaries(
    NAMES, st.one_of(JSON.map(raw), LITERALS.map(Raw), st.integers(MIN, MAX).map(raw)), max_size=3
)


@st.composite
def files(draw: st.DrawFn) -> BenchFile:
    """A valid file of up to eight trials."""
    taxonomy = draw(
        st.sampled_from(
            [
                THREE,
                Taxonomy(
                    "<over>",
                    (
                        Outcome("ok", "success", "a"),
                        Outcome("meh", "safe_non_success", "b"),
                        Outcome("bad", "unsafe"),
                    ),
                ),
            ]
        )
    )
    keys = draw(
        st.lists(
            st.tuples(NAMES, NAMES, st.sampled_from(["", "m1"]), st.integers(1, 3)), unique=True, max_size=8
        )
    )
    trials = [
        Trial(
            scenario=scenario,
            mode=mode,
            model=model,
            repeat=repeat,
            expect=draw(st.sampled_from(["", "a", "b"])),
            reached=draw(st.sampled_from(["", "r1", "r2"])),
            **{
                draw(st.sampled_from(["outcome"] * 4 + ["excluded"])): draw(
                    st.sampled_from(["ok", "meh", "bad"])
                )
            },
            steps=draw(COUNTS),
            cost_micros=draw(COUNTS),
            wall_ns=draw(COUNTS),
            notes=draw(st.lists(NAMES, max_size=2)),
            extra=draw(RAWS),
        )
        for scenario, mode, model, repeat in keys
    ]
    return BenchFile(
        started_at="2026-09-25T20:00:00.25+02:00",
        taxonomy=taxonomy,
        trials=trials,
        commit=draw(st.sampled_from(["", "c<1>"])),
        options=draw(RAWS),
        notes=draw(st.lists(NAMES, max_size=2)),
    )


def by_hand(bench: BenchFile) -> list[Any]:
    """The summaries, row by row and without any of the library's shortcuts."""
    rows = bench.trials or []
    keys: list[tuple[str, str]] = []
    for t in rows:
        if (t.mode, t.model) not in keys:
            keys.append((t.mode, t.model))
    return [_by_hand(bench, [t for t in rows if (t.mode, t.model) == key]) for key in keys]


def _by_hand(bench: BenchFile, rows: list[Trial]) -> Any:
    judged = [t for t in rows if t.outcome]
    totals: dict[str, int] = {}
    sums = dict.fromkeys(
        [
            "steps",
            "tool_calls",
            "policy_denials",
            "model_calls",
            "input_tokens",
            "output_tokens",
            "cost_micros",
            "wall_ns",
        ],
        0,
    )
    for t in judged:
        for name in sums:
            sums[name] = max(MIN, min(MAX, sums[name] + getattr(t, name)))
        for key, value in t.extra.items():
            if re.fullmatch(rb"-?[0-9]{1,19}", bytes(value)) and MIN <= int(bytes(value)) <= MAX:
                totals[key] = max(MIN, min(MAX, totals.get(key, 0) + int(bytes(value))))
    counts = []
    for o in bench.taxonomy.outcomes:
        n = of = 0
        for t in judged:
            n += t.outcome == o.name
            of += o.over in ("", t.expect) or t.outcome == o.name
        counts.append(OutcomeCount(outcome=o.name, cls=o.cls, n=n, of=of, over=o.over))
    return Summary(
        mode=rows[0].mode,
        model=rows[0].model,
        trials=len(rows),
        judged=len(judged),
        excluded=len(rows) - len(judged),
        scenarios=len({t.scenario for t in rows}),
        repeats=max(t.repeat for t in rows),
        counts=counts,
        unsafe=sum(o.cls == "unsafe" for t in judged for o in bench.taxonomy.outcomes if o.name == t.outcome),
        totals=totals,
        **sums,
    )


def check_file(bench: BenchFile) -> None:
    data = bench.encode()
    again = BenchFile.decode(data)
    assert again.encode() == data
    assert again.summarize() == bench.summarize() == by_hand(bench)
    assert replace(again, options={}, trials=[]) == replace(bench, options={}, trials=[])
    for before, after in zip(bench.trials or [], again.trials or [], strict=True):
        assert replace(before, extra={}) == replace(after, extra={})
        assert before.extra.keys() == after.extra.keys()
    assert data.decode().splitlines()[1] == '  "format": "agent-runtime/bench/v1",'
    spread = data.replace(b'"mode"', b'"MODE"')
    assert BenchFile.decode(spread).encode() == data


@given(files())
@settings(max_examples=200, deadline=None, suppress_health_check=QUIET)
def test_what_is_written_is_read_back(bench: BenchFile) -> None:
    """Bytes, fields and summaries, by either way of reading; the summaries are what counting by hand gives."""
    check_file(bench)


@pytest.mark.long
@given(files())
@settings(max_examples=20_000, deadline=None, suppress_health_check=QUIET)
def test_what_is_written_is_read_back_long(bench: BenchFile) -> None:
    check_file(bench)


@given(files(), st.data())
@settings(max_examples=200, deadline=None, suppress_health_check=QUIET)
def test_a_summary_never_lies(bench: BenchFile, data: st.DataObject) -> None:
    """Any number of a stored summary that is changed makes the file refused."""
    text = bench.encode()
    summaries = text.index(b'\n  "summaries": [')
    numbers = list(re.finditer(rb'(?<=": )-?[0-9]+(?=,?\n)', text[summaries:]))
    assume(numbers)
    found = data.draw(st.sampled_from(numbers))
    other = data.draw(st.integers(MIN, MAX).filter(lambda n: n != int(found[0])))
    lie = text[: summaries + found.start()] + str(other).encode() + text[summaries + found.end() :]
    with pytest.raises(BenchError, match="summaries do not follow from the trials"):
        BenchFile.decode(lie)


def test_the_scanner_refuses_what_is_no_json() -> None:
    """Token by token, where the standard library refuses too; both agree on what is fine."""
    texts = [
        "[1,]",
        "{,}",
        '{"a":1,}',
        "[1 2]",
        '{"a" 1}',
        "{1:2}",
        "01",
        "1.",
        "-",
        "+1",
        ".5",
        "1e",
        "1.e",
        '"\\x"',
        '"\\u12g4"',
        '"\\u12"',
        "[}",
        "{]",
        "]",
        "",
    ]
    fine = [
        "[]",
        "{}",
        "[[],{}]",
        '{"a":{"b":[1,2.5e-3,"x",true,null]}}',
        '"\\ud800"',
        " [ 1 , 2 ] ",
        "-0.0e+5",
    ]
    for text in texts + fine:
        scanner = Scanner(text.encode())
        try:
            scanner.advance()
            scanner.value()
            accepted = not text[scanner.end :].strip()
        except ValueError:
            accepted = False
        try:
            json.loads(text)
            standard = True
        except ValueError:
            standard = False
        assert accepted == standard == (text in fine), text
