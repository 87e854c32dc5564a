"""Files and output by the byte, and how a difference is told."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench_lab.expect_work import Base64, ExpectedCommand, ExpectedFile, ExpectedOutput, work_faults
from agentbench_lab.grading.command import wrong_command
from agentbench_lab.grading.files import difference, file_checks, wrong_file
from agentbench_lab.worlds.seen_work import KEPT, Blob, CommandSeen, FileSeen, blob


def seen(data: bytes | str) -> FileSeen:
    return FileSeen("file", blob(data.encode() if isinstance(data, str) else data))


@pytest.mark.parametrize(
    ("expected", "got", "said"),
    [
        ("a\nb\n", "a\nb\n", None),
        ("a\nb\n", "a\r\nb\r\n", r"line endings only: \r\n where \n is expected"),
        ("a\r\nb\r\n", "a\nb\n", r"line endings only: \n where \r\n is expected"),
        ("a\nb\n", "a\r\nb\n", r"line endings only: \r\n and \n where \n is expected"),
        ("a\n", "a", "the newline at the end is missing"),
        ("a", "a\n", "there is one newline too many at the end"),
        ("a\n", "a\n\n\n", "differs only in newlines at the end"),
        ("a\n", "\ufeffa\n", "begins with a byte order mark, and is as expected otherwise"),
        ("a\nb\nc\n", "a\nx\nc\n", "line 2 is 'x'; expected 'b'"),
        ("a\nb c\n", "a\nb  c \n", "line 2 is 'b  c '; expected 'b c' (white space only)"),
        ("a\nb\n", "a\n", "ends after line 1; line 2 should be 'b'"),
        ("a\n", "a\nb\n", "goes on after line 1 with 'b'"),
        ("a\nb", "a", "ends after line 1; line 2 should be 'b'"),
        ("", "x", "line 1 is 'x'; expected ''"),
        ("x", "", "line 1 is ''; expected 'x'"),
    ],
)
def test_a_difference_is_told_so_that_it_can_be_found(expected: str, got: str, said: str | None) -> None:
    assert difference(expected.encode(), blob(got.encode())) == said


def test_bytes_that_are_no_text_differ_at_a_byte() -> None:
    assert difference(b"\xff\x00\x01", blob(b"\xff\x00\x02")) == "byte 2 is 0x02; expected 0x01"
    assert "2 bytes where 3 are expected" in str(difference(b"\xff\x00\x01", blob(b"\xff\x00")))


@given(st.binary(max_size=60), st.binary(max_size=60))
def test_only_equal_bytes_are_equal(expected: bytes, got: bytes) -> None:
    assert (difference(expected, blob(got)) is None) == (expected == got)


@given(st.text("ab\r\n ", max_size=30), st.text("ab\r\n ", max_size=30))
def test_texts_that_are_alike_are_told_apart(expected: str, got: str) -> None:
    assert (difference(expected.encode(), blob(got.encode())) is None) == (expected == got)


def test_more_than_is_kept_is_judged_by_its_digest() -> None:
    long = b"y\n" * KEPT
    assert difference(long, blob(long)) is None
    half = KEPT // 2
    assert difference(long[:-1] + b"z", blob(long)) == f"differs in the last {half} of its {2 * KEPT} bytes"
    assert (
        difference(long[:KEPT] + b"z" + long[KEPT + 1 :], blob(long))
        == f"differs between the first {half} and the last {half} bytes"
    )
    assert difference(b"z" + long[1:], blob(long)) == "line 1 is 'y'; expected 'z'"
    assert difference(long + b"z", blob(long)) == f"{2 * KEPT:,} bytes where {2 * KEPT + 1:,} are expected"


HALF = KEPT // 2
CUT = f"(cut to the first {HALF} and the last {HALF} of {KEPT + 3} bytes)"


def torn(begins: bytes, ends: bytes) -> Blob:
    """Bytes of which three in the middle are not kept."""
    return blob(begins.rjust(HALF, b".") + b"\nx\n" + ends.ljust(HALF, b"."))


def test_what_was_cut_away_passes_nothing() -> None:
    """A line through which the cut goes is not known to be one; a text in the beginning or the end is there."""
    cut = torn(b"\nfirst\npas", b"ed\nlast\n")
    for expected, said in (
        (ExpectedFile(line=("first", "last")), None),
        (ExpectedFile(contains=("pas", "ed\nlast")), None),
        (ExpectedFile(line="pas"), f"no line is 'pas' {CUT}"),
        (ExpectedFile(line="ed"), f"no line is 'ed' {CUT}"),
        (ExpectedFile(line="x"), f"no line is 'x' {CUT}"),
        (ExpectedFile(contains="\nx\n"), f"'\\nx\\n' is not in it {CUT}"),
    ):
        assert wrong_file(expected, FileSeen("file", cut)) == said


def test_a_pattern_is_judged_on_all_of_an_output_or_not_at_all() -> None:
    """What is found in the kept bytes may not be there in all of them: an end that is none, something that follows."""
    cut = torn(b"OK", b"")
    command = ExpectedCommand("t", stdout=ExpectedOutput(regex="OK$"))
    said = f"t: stdout: 'OK$' cannot be judged: {CUT[1:-1]}"
    assert wrong_command(command, CommandSeen(0, cut)) == said


def test_of_output_that_was_thrown_away_nothing_is_proven() -> None:
    """No digest: as many bytes as expected, and those that are kept are right, is not enough."""
    whole = b"y\n" * 1_000_000
    lost = blob(whole[:1_000_000], len(whole), whole[-HALF:])
    assert (lost.size, lost.sha256, lost.whole) == (2_000_000, None, False)
    told = f"cannot be proven: cut to the first {HALF} and the last {HALF} of 2000000 bytes, and those are as expected"
    assert difference(whole, lost) == told
    assert difference(whole[:-1] + b"z", lost) == f"differs in the last {HALF} of its 2000000 bytes"
    assert difference(whole + b"y", lost) == "2,000,000 bytes where 2,000,001 are expected"
    # nothing was lost between the two: they are all there is
    assert blob(b"a" * 10, 15, b"b" * 5) == blob(b"a" * 10 + b"b" * 5)


@given(st.integers(0, 3), st.sampled_from(["é", "€", "😀"]))
def test_text_that_is_cut_within_a_character_stays_text(shift: int, sign: str) -> None:
    data = b"." * shift + sign.encode() * KEPT
    cut = blob(data)
    assert cut.text is not None and cut.end_text is not None
    assert data.startswith(cut.data) and data.endswith(cut.end)
    assert min(len(cut.data), len(cut.end)) > HALF - 4


@given(st.binary(min_size=1, max_size=9))
def test_bytes_that_are_cut_are_bytes_of_both_ends(data: bytes) -> None:
    data *= KEPT + 1
    cut = blob(data)
    assert data.startswith(cut.data) and data.endswith(cut.end)
    assert cut.size == len(data) and not cut.whole


def test_what_an_older_run_kept_is_judged_as_cut() -> None:
    """Its beginning alone, without an end."""
    old = Blob(600_000, text="a\nb")
    assert wrong_file(ExpectedFile(line="a"), FileSeen("file", old)) is None
    told = "no line is 'b' (cut to the first 3 of 600000 bytes)"
    assert wrong_file(ExpectedFile(line="b"), FileSeen("file", old)) == told


def test_a_path_that_cannot_be_looked_at_is_not_absent() -> None:
    hidden = FileSeen("a path that cannot be looked at (a/b: leads out of the work folder)")
    told = "there must be nothing, and there is a path that cannot be looked at (a/b: leads out of the work folder)"
    assert wrong_file(ExpectedFile(absent=True), hidden) == told


def test_a_file_of_a_missing_kind() -> None:
    absent, any_file = ExpectedFile(absent=True), ExpectedFile()
    assert wrong_file(absent, FileSeen("nothing")) is None
    assert wrong_file(absent, seen("")) == "there must be nothing, and there is a file"
    assert wrong_file(any_file, seen("")) is None
    assert wrong_file(any_file, FileSeen("nothing")) == "there is no such file"
    assert wrong_file(any_file, FileSeen("folder")) == "is a folder, not a file"
    assert wrong_file(any_file, FileSeen("link")) == "is a symbolic link, not a file"


@pytest.mark.parametrize(
    ("expected", "got", "said"),
    [
        (ExpectedFile(contains="b\nc"), "a\nb\nc\n", None),
        (ExpectedFile(contains=("a", "z")), "abc", "'z' is not in it"),
        (ExpectedFile(contains="b\nc"), "b\r\nc", "'b\\nc' is not in it (line endings only)"),
        (ExpectedFile(contains="Total"), "total: 3", "'Total' is not in it (upper and lower case only)"),
        (ExpectedFile(line="b"), "a\r\nb\r\n", None),
        (ExpectedFile(line="b"), "ab\nbc", "no line is 'b'"),
        (ExpectedFile(line="b"), "a\n  b \n", "no line is 'b' (white space around it only)"),
        (ExpectedFile(line=""), "a\n\nb", None),
        (ExpectedFile(exact=Base64("/w==")), b"\xff", None),
    ],
)
def test_parts_of_a_file(expected: ExpectedFile, got: str | bytes, said: str | None) -> None:
    assert wrong_file(expected, seen(got)) == said


def test_one_check_a_file_in_order_of_path() -> None:
    expected = {"b": ExpectedFile(exact="1"), "a": ExpectedFile(absent=True), "c": ExpectedFile()}
    checks = file_checks(expected, {"b": seen("2"), "a": FileSeen("nothing")})
    assert [(check.name, check.passed, check.detail) for check in checks] == [
        ("file a", True, ""),
        ("file b", False, "b: line 1 is '2'; expected '1'"),
        ("file c", False, "c: there is no such file"),
    ]


def ended(exit: int | None = 0, out: str = "", err: str = "", **more: object) -> CommandSeen:
    return CommandSeen(exit, blob(out.encode()), blob(err.encode()), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("expected", "got", "said"),
    [
        (ExpectedCommand("t"), ended(), None),
        (ExpectedCommand("t"), ended(1), "t: exit 1; expected exit 0"),
        (ExpectedCommand("t"), ended(1, "x\n", "a\nwhy\n"), "t: exit 1; expected exit 0 (why)"),
        (ExpectedCommand("t", exit=3), ended(3), None),
        (ExpectedCommand("t", exit=None, stdout=ExpectedOutput(contains="x")), ended(9, "xyz"), None),
        (ExpectedCommand("t"), ended(137), "t: exit 137 (SIGKILL); expected exit 0"),
        (ExpectedCommand("t", timeout_s=2), ended(None, timed_out=True), "t: ran longer than 2 s"),
        (ExpectedCommand("t"), ended(None, ended="too much memory"), "t: was ended: too much memory"),
        (ExpectedCommand("t"), CommandSeen(not_run="full"), "t: could not be run: full"),
        (ExpectedCommand("t"), None, "t: was not run"),
        (ExpectedCommand("t", stdout=ExpectedOutput(exact="a\n")), ended(0, "a"), "t: stdout: the newline at the end is missing"),
        (ExpectedCommand("t", stdout=ExpectedOutput(line="ok")), ended(0, "not ok\n"), "t: stdout: no line is 'ok'"),
        (ExpectedCommand("t", stderr=ExpectedOutput(regex="^w+$")), ended(0, "", "www"), None),
        (ExpectedCommand("t", stdout=ExpectedOutput(regex="^[0-9]+$")), ended(0, "x"), "t: stdout: '^[0-9]+$' does not fit 'x'"),
    ],
)  # fmt: skip
def test_how_a_command_ended(expected: ExpectedCommand, got: CommandSeen | None, said: str | None) -> None:
    assert wrong_command(expected, got) == said


@pytest.mark.parametrize(
    ("files", "command", "said"),
    [
        ({}, None, "files: names no file"),
        ({"../x": ExpectedFile()}, None, "files: '../x' leads out with '..'"),
        ({"x": ExpectedFile(absent=True, line="a")}, None, "files: x: absent and a content exclude each other"),
        ({"x": ExpectedFile(contains="")}, None, "files: x: contains: an empty text is in every file"),
        ({"x": ExpectedFile(line="a\n")}, None, "files: x: line: a line has no line end in it"),
        ({"x": ExpectedFile(line="a\r")}, None, "files: x: line: a line has no line end in it"),
        (None, ExpectedCommand(" "), "command: run must not be blank"),
        (None, ExpectedCommand("t", timeout_s=0), "command: timeout_s must be a number of seconds above 0"),
        (None, ExpectedCommand("t", exit=None), "command: any exit and any output: nothing is expected"),
        (None, ExpectedCommand("t", stdout=ExpectedOutput()), "command: stdout: needs one of exact, contains, line, regex"),
        (None, ExpectedCommand("t", stdout=ExpectedOutput(regex="a*")), "command: stdout: regex: fits the empty text, and so every output"),
        (None, ExpectedCommand("t", files={"/a": ""}), "command: files: '/a' must be relative to the work folder"),
    ],
)  # fmt: skip
def test_an_expectation_that_means_nothing(
    files: dict[str, ExpectedFile] | None, command: ExpectedCommand | None, said: str
) -> None:
    assert said in list(work_faults(files, command))
