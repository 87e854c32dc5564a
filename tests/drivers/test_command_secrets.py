"""What a program is handed on in secret (`env=NAME`) is in nothing that is kept, wherever the program says it."""

from __future__ import annotations

import json
import os
import pickle
import re
import sys
import threading
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest

from agentbench_lab.cases import Limits
from agentbench_lab.drivers import keys
from agentbench_lab.drivers.command_said import KEPT, TAIL, Said
from agentbench_lab.drivers.loading import load_driver
from agentbench_lab.errors import LabError
from agentbench_lab.results.redaction import REDACTED, redact
from agentbench_lab.running.merge import regrade_run
from agentbench_lab.running.runner import evaluate, prepare

from ..doing import ROOT, lab, some, write_suite

TELLS = ROOT / "tests" / "agents" / "tells.py"
MARK = "mark7f3a"
SECRET = f"pa\"ss\\{MARK}\\n/é-日本 \U0001f600'x"
"""With all that JSON writes in two ways, and a part that it does not: where that is, the secret was."""
HOW = ("final", "control", "refuse", "crash", "failed", "nonsense", "misspelt", "broken")

PARTS = ["Say one.", "Say two."]
ECHO = {
    "name": "echo", "description": "keep", "effects": [{"set": "last", "value": "{query}"}],
    "input_schema": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
}  # fmt: skip


def cases(*how: str, parts: int = 0) -> list[dict[str, Any]]:
    return [
        {
            "id": each, "group": "g", "request": f"{' '.join(PARTS[:parts])} Say it and {each}", "tools": ["echo"],
            "parts": PARTS[:parts],
            "world": {"kind": "state", "state": {"last": None}, "tools": [ECHO]},
            "expect": {"state": {"last": "ping"}, "answer": {"exact": "ping"}},
        }
        for each in how
    ]  # fmt: skip


def suite_of(folder: Path, *how: str, parts: int = 0) -> Path:
    path = folder / "tells.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in cases(*how, parts=parts)), encoding="utf-8")
    return path


def tells(dialect: str, *options: str) -> str:
    return f"command[{','.join([dialect, 'env=MARKED', *options])}]:{sys.executable} -S {TELLS}"


def leaks(folder: Path) -> list[str]:
    """Every file with the secret: as bytes, and for compressed columns as values."""
    found = []
    for file in sorted(folder.rglob("*")):
        data = file.read_bytes() if file.is_file() else b""
        if file.suffix == ".parquet":
            data += repr(pq.read_table(file).to_pylist()).encode()
        if MARK.encode() in data:
            found.append(
                f"{file.relative_to(folder)}: {data[max(0, data.index(MARK.encode()) - 80) :][:160]!r}"
            )
    return found


@pytest.fixture
def marked(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("MARKED", SECRET)
    return SECRET


@pytest.mark.parametrize(
    ("dialect", "executor"),
    [
        ("jsonl", "threads"),
        ("jsonl", "processes"),
        pytest.param("jsonl", "dask", marks=pytest.mark.long),
        pytest.param("spawn", "threads", marks=pytest.mark.long),
        pytest.param("agentd", "threads", marks=pytest.mark.long),
        pytest.param("agentd", "processes", marks=pytest.mark.long),
    ],
)
def test_nothing_that_a_run_writes_or_prints_holds_it(
    tmp_path: Path, marked: str, dialect: str, executor: str
) -> None:
    if executor == "dask":
        pytest.importorskip("distributed")
    if dialect == "agentd":
        pytest.importorskip("mcp")
    suite = suite_of(tmp_path, *HOW)
    run = lab(
        *("run", str(suite), "--driver", tells(dialect), "--retries", "1", "--record", "tape.jsonl"),
        *("--executor", executor, "--workers", "2", "--out", "out", "--json"),
        cwd=tmp_path,
        timeout=120,
    )
    assert run.returncode == 0, run.stderr
    for more in (
        ("show", "out", "--json"),
        ("show", "out", "--failed"),
        ("export", "out", "--out", "bench.json"),
        ("run", str(suite), "--driver", "replay:tape.jsonl", "--out", "again"),
    ):
        done = lab(*more, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert MARK not in done.stdout + done.stderr
    assert MARK not in run.stdout + run.stderr
    assert leaks(tmp_path) == []
    # it did come, everywhere
    rows = [json.loads(line) for line in (tmp_path / "out" / "product.jsonl").read_text().splitlines()]
    for row in rows:
        assert [entry["input"] for entry in row["produced"]["ledger"]][:3] == [
            {"query": REDACTED},
            {"query": json.dumps({REDACTED: REDACTED}, ensure_ascii=False)},
            {REDACTED: {REDACTED: [REDACTED]}},
        ]
        assert REDACTED in [entry["name"] for entry in row["produced"]["ledger"]]
    said = pq.read_table(tmp_path / "out" / "transcripts.parquet").to_pylist()
    assert all(each["stderr"].startswith(f"{REDACTED}\n") for each in said if each["stderr"])
    assert any(each["stderr"] for each in said)
    assert len((tmp_path / "tape.jsonl").read_text().splitlines()) >= len(HOW)


@pytest.mark.long
def test_nor_a_report(tmp_path: Path, marked: str) -> None:
    done = lab(
        *("report", "run_ladder", "-p", "suite", str(suite_of(tmp_path, "final", "crash"))),
        *("-p", "driver", tells("jsonl"), "-p", "out", str(tmp_path / "out"), "--out", "report.html"),
        cwd=tmp_path,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert MARK not in done.stdout + done.stderr
    assert (tmp_path / "report.html").exists() and leaks(tmp_path) == []


def test_nor_what_lies_there_while_it_runs(tmp_path: Path, marked: str) -> None:
    """The journal, the recording and the checkpoints, taken by the agent itself in the middle of the run."""
    suite = suite_of(tmp_path, "final", parts=2)
    done = lab(
        *("run", str(suite), "--driver", tells("jsonl", "here"), "--scaffold", "durable:linear"),
        *("--out", "out", "--record", "tape.jsonl"),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    points = [file.read_text() for file in tmp_path.glob("midway-*/checkpoints/*")]
    assert any(REDACTED in point for point in points), "steps that were finished"
    assert leaks(tmp_path) == []


def test_nor_a_checkpoint_of_a_driver_of_ones_own(tmp_path: Path, marked: str) -> None:
    """Whoever says it: what this process knows as handed on is in no checkpoint, and the names of steps stay."""
    from agentbench_lab.drivers.context import Step
    from agentbench_lab.running.checkpoint import Checkpoint, _without_secrets
    from agentbench_lab.transcripts import Transcript
    from agentbench_lab.worlds.toolbox import LedgerRow

    os.environ["A_WORD"] = "timeout"
    keys.remember("MARKED", "A_WORD")
    step = Step((Transcript(answer={SECRET: [SECRET]}, stop="timeout", terminated=False),), True, 0, 0)
    point = Checkpoint("r", (), {"timeout": step}, (LedgerRow("echo", {"a": SECRET}, "ok", text=SECRET),))
    clean = _without_secrets(point)
    text = msgspec.json.encode(clean).decode()
    assert MARK not in text and "timeout" in clean.steps
    assert msgspec.json.decode(text, type=Checkpoint).steps["timeout"].came[0].answer == {
        REDACTED: [REDACTED]
    }
    del os.environ["A_WORD"]


def test_a_trial_that_is_cut_off_keeps_none(tmp_path: Path, marked: str) -> None:
    run = evaluate(
        suite_of(tmp_path, "hang"), tells("jsonl"), limits=Limits(wall_s=1.5), out=tmp_path / "out"
    )
    assert run.product[0].produced.stop == "timeout"
    assert leaks(tmp_path) == []
    (kept,) = run.transcripts.to_pylist()
    assert kept["stderr"].startswith(f"{REDACTED}\n") and REDACTED in kept["stdout"]


# ---- the one cleaner


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """No secret is known but those of the test."""
    monkeypatch.setattr(keys, "_known", ())
    for name in keys.NAMES:
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def known(patch: pytest.MonkeyPatch, *values: str) -> None:
    names = [f"HANDED_ON_{number}" for number in range(len(values))]
    for name, value in zip(names, values, strict=True):
        patch.setenv(name, value)
    keys.remember(*names)


def written(text: str) -> list[str]:
    """As it stands, and as JSON in its ways writes it, up to four deep."""
    found = [
        text,
        repr(text)[1:-1],
        text.replace("/", "\\/"),
        "".join(f"\\u{ord(c):04X}" for c in text if ord(c) < 65536),
    ]
    for ascii in (True, False):
        deeper = text
        for _ in range(4):
            deeper = json.dumps(deeper, ensure_ascii=ascii)[1:-1]
            found += [deeper, deeper.replace("/", "\\/")]
    return found


def test_every_way_in_which_it_is_written(alone: pytest.MonkeyPatch) -> None:
    plane = SECRET.replace("\U0001f600", "")
    known(alone, SECRET, plane)
    for form in {*written(SECRET), *written(plane)}:
        if MARK in form or "\\u006D" in form:
            assert keys.without(f"a {form} b") == f"a {REDACTED} b"
        for ascii in (True, False):
            text = json.dumps([{f"x {form} y": f"\n{form}\\"}], ensure_ascii=ascii)
            assert MARK not in json.dumps(json.loads(keys.without(text)))


def test_an_escape_before_it_stays_json(alone: pytest.MonkeyPatch) -> None:
    """In `\\nice` there is a new line and no letter n: what is taken out must not leave half an escape."""
    known(alone, "nice-one-123")
    assert json.loads(keys.without('{"a": "x\\nice-one-123"}')) == {"a": f"x\\{REDACTED}"}
    assert json.loads(keys.without('{"a": "x\\\\nice-one-123"}')) == {"a": f"x\\{REDACTED}"}


def test_one_within_another(alone: pytest.MonkeyPatch) -> None:
    known(alone, "inner-1", "outer-inner-1-outer")
    assert keys.without("outer-inner-1-outer, inner-1") == f"{REDACTED}, {REDACTED}"


def test_what_is_too_short_stays(alone: pytest.MonkeyPatch) -> None:
    known(alone, "12345", "abcde", "abcdef", "123456789", "1234567890")
    assert keys.without("12345 abcde 123456789") == "12345 abcde 123456789"
    assert keys.without("abcdef 1234567890") == f"{REDACTED} {REDACTED}"
    assert keys.without_in({"n": [1234567890, 123456789, 0.5]}) == {"n": [REDACTED, 123456789, 0.5]}
    assert (keys.SHORTEST_HANDED_ON, keys.SHORTEST_NUMBER) == (6, 10)
    page = " ".join((ROOT / "docs" / "drivers.md").read_text(encoding="utf-8").split())
    assert "fewer than 6 characters" in page and "fewer than 10" in page


def test_of_several_lines_each_long_one(alone: pytest.MonkeyPatch) -> None:
    value = "-----BEGIN-----\nthe-first-line-of-it\n  the-second-line-of-it \nstage: testing\n"
    known(alone, value)
    assert keys.without("x the-first-line-of-it y") == f"x {REDACTED} y"
    said = Said()
    said.hear(b"log: the-first-line-of-it\nlog: the-second-line-of-it\n")
    assert said.stderr() == f"log: {REDACTED}\nlog: {REDACTED}\n"
    assert said.with_last("it failed") == f"it failed; its last words: log: {REDACTED}"
    assert keys.without(f"<{value}>") == f"<{REDACTED}>"
    # a line of a configuration is an everyday word
    assert keys.without("stage: testing") == "stage: testing"
    known(alone, f"{'a' * 15}\n{'b' * 16}")
    assert keys.without(f"{'a' * 15} {'b' * 16}") == f"{'a' * 15} {REDACTED}"
    assert keys.SHORTEST_LINE == 16
    page = " ".join((ROOT / "docs" / "drivers.md").read_text(encoding="utf-8").split())
    assert "each line of it that has at least 16" in page


BACKSLASHES = "\\" * 3_000


@pytest.mark.parametrize("secret", ['\\"abcdefgh', '\\"\\"\\"\\"abcd', "\\\\\\abcdefgh", "abcdefgh"])
def test_a_text_of_backslashes_is_searched_once(alone: pytest.MonkeyPatch, secret: str) -> None:
    """Counted, not timed: no part of a pattern that may take several backslashes ever gives one back."""
    known(alone, secret)
    (known_one,) = keys._known
    repeats = re.findall(r"\\\\\{\d+,\d+\}(\+?)", known_one.pattern.pattern)
    assert repeats and set(repeats) == {"+"}
    text = f"{BACKSLASHES}x {json.dumps({secret: BACKSLASHES})}"
    assert secret not in keys.without(text) and keys.without(BACKSLASHES) == BACKSLASHES


@pytest.mark.parametrize(
    "secret", ['\\"abcdefgh', 'abcd\\\\"efgh', "\\nabcdefgh", "ab\\\ncdefgh", "\\u0041bcdef"]
)
def test_backslashes_of_its_own(alone: pytest.MonkeyPatch, secret: str) -> None:
    known(alone, secret)
    for form in written(secret):
        assert "efgh" not in keys.without(f"a {form} b") and "bcdef" not in keys.without(f"a {form} b")
        text = json.dumps({"a": f"{form}\\", "b": [form]})
        assert "efgh" not in json.dumps(json.loads(keys.without(text)))


def test_bytes_that_are_no_text(alone: pytest.MonkeyPatch) -> None:
    alone.setitem(os.environb, b"HANDED_ON", b"secret-\xff\xfe-end")  # type: ignore[arg-type]
    keys.remember("HANDED_ON")
    said = Said()
    said.hear(b"it is secret-\xff\xfe-end\n")
    assert said.stderr() == f"it is {REDACTED}\n"


@pytest.mark.parametrize("before", range(12))
def test_what_is_cut_off_begins_none(alone: pytest.MonkeyPatch, before: int) -> None:
    """Wherever the end of what is kept falls in it, and wherever its beginning."""
    known(alone, "marked-secret")
    said = Said()
    line = b"x" * (KEPT - before) + b"marked-secret" + b"y" * 2 * KEPT
    said.hear(line)
    said.noise(line)
    for kept in (said.stderr(), said.stdout()):
        assert "ma" not in kept and len(kept) > KEPT - 2 * keys.room()
    said = Said()
    said.hear(b"marked-secret" + b"z" * (TAIL + keys.room() - before))
    assert "secret"[-1] not in said.with_last("").removeprefix("; its last words: ")


@pytest.mark.parametrize("letter", ["x", "é", "错", "🙂"])
def test_the_last_words_are_there_however_long_a_secret_is(alone: pytest.MonkeyPatch, letter: str) -> None:
    """Its room is cut off in bytes, whatever the letters are."""
    known(alone, "abcdefgh" * 13)
    assert keys.room() > TAIL / 2
    said = Said()
    said.hear((letter * TAIL + "\nlast line: 端口被占用\n").encode())
    assert said.with_last("exit 1") == "exit 1; its last words: last line: 端口被占用"


def test_nor_does_what_is_cut_off_of_a_driver_in_python(alone: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its output is cut at its end, its traceback at its beginning."""
    known(alone, "marked-secret")

    def prints(task: Any, tools: Any, ctx: Any) -> None:
        at = ctx.trial
        print("x" * (20_000 - at), end="marked-secret" + "y" * 500)
        raise RuntimeError("marked-secret" + "z" * (8_000 - at))

    run = evaluate(write_suite(tmp_path, some(0)[:1]), prints, trials=14, save_run=False)
    for kept in run.transcripts.to_pylist():
        assert "m" not in kept["stdout"] and len(kept["stdout"]) > 19_980
        assert "cret" not in kept["traceback"] and kept["traceback"].endswith("zz\n")


def test_it_is_known_wherever_the_driver_is(alone: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In every process that the driver is sent to, and when the variable has another value by then."""
    alone.setenv("MARKED", "first-value")
    driver = load_driver(f"command[env=MARKED]:{TELLS}")
    assert redact("a first-value") == f"a {REDACTED}"
    sent = pickle.dumps(driver)
    assert b"first-value" not in sent
    alone.setattr(keys, "_known", ())
    alone.setenv("MARKED", "second-value")
    pickle.loads(sent)
    assert redact("first-value second-value") == f"first-value {REDACTED}"


def test_a_word_of_ours_breaks_no_recording(tmp_path: Path, alone: pytest.MonkeyPatch) -> None:
    """A variable may hold `timeout` or `messages`: what the formats themselves say is left."""
    for word in ("messages", "timeout", "transcript", "scaffold", "refused"):
        alone.setenv("MARKED", word)
        suite, tape = write_suite(tmp_path, some(0)[:1]), tmp_path / f"{word}.jsonl"
        mood = ROOT / "tests" / "agents" / "moody.py"
        driver = f"command[env=MARKED]:{sys.executable} -I -S {mood} good"
        (row,) = evaluate(suite, driver, record=tape, save_run=False).product
        (again,) = evaluate(suite, f"replay:{tape}", save_run=False).product
        assert row.verdict.outcome == again.verdict.outcome == "correct_calls"


def test_threads_may_learn_at_once(alone: pytest.MonkeyPatch) -> None:
    names = [f"HANDED_{number}" for number in range(40)]
    for name in names:
        alone.setenv(name, f"secret-of-{name}-end")
    threads = [threading.Thread(target=keys.remember, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(keys.without(os.environ[name]) == REDACTED for name in names)


# ---- what is graded

SAYS = """
import json, sys
for line in sys.stdin:
    id = json.loads(line)["id"]
    print(json.dumps({"id": id, "call": {"name": "echo", "input": {"query": "hello-from-here"}}}), flush=True)
    sys.stdin.readline()
    print(json.dumps({"id": id, "final": {"answer": "hello-from-here"}}), flush=True)
"""


def hello(folder: Path, **more: Any) -> Path:
    (folder / "says.py").write_text(SAYS, encoding="utf-8")
    (each,) = cases("final")
    case = {**each, "request": "Greet.", "expect": {"answer": {"contains": "hello"}}, **more}
    path = folder / "greets.jsonl"
    path.write_text(json.dumps(case) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("executor", ["threads", pytest.param("processes", marks=pytest.mark.long)])
def test_what_one_arm_is_handed_on_changes_no_grade_of_another(
    tmp_path: Path, alone: pytest.MonkeyPatch, executor: str
) -> None:
    """Neither beside it nor in a later run of the process; and what is kept is judged again alike."""
    alone.setenv("GREETING", "hello-from-here")
    suite = hello(tmp_path)
    program = f"{sys.executable} -I -S {tmp_path / 'says.py'}"
    plain, secret = f"command:{program}", f"command[env=GREETING]:{program}"
    (first,) = evaluate(suite, plain, save_run=False).product
    run = evaluate(suite, [secret, plain], executor=executor, out=tmp_path / "out")
    (later,) = evaluate(suite, plain, save_run=False).product
    by_arm = {row.arm.driver: row for row in run.product}
    assert [row.verdict.outcome for row in (first, by_arm[plain], later)] == ["solved"] * 3
    assert by_arm[plain].produced.ledger[0].input == {"query": "hello-from-here"}
    # its own is a secret to it
    assert by_arm[secret].produced.ledger[0].input == {"query": REDACTED}
    assert by_arm[secret].verdict.outcome == "unsolved"
    _, changed = regrade_run(tmp_path / "out", tmp_path / "again")
    assert not changed


@pytest.mark.parametrize(
    "more",
    [
        {"request": "Greet: hello-from-here"},
        {"expect": {"answer": {"exact": "hello-from-here"}}},
        {"gold": {"answer": "so: hello-from-here!"}},
        {"policy": "hello-from-here"},
        {"world": {"kind": "state", "state": {"last": "hello-from-here"}, "tools": [ECHO]}},
        {"world": {"kind": "state", "state": {"hello-from-here": None, "last": 1}, "tools": [ECHO]}},
        {
            "tools": ["hello-from-here"],
            "world": {
                "kind": "state",
                "state": {"last": None},
                "tools": [{**ECHO, "name": "hello-from-here"}],
            },
        },
    ],
)
def test_a_value_that_stands_in_a_case_is_refused(
    tmp_path: Path, alone: pytest.MonkeyPatch, more: dict[str, Any]
) -> None:
    alone.setenv("GREETING", "hello-from-here")
    suite = hello(tmp_path, **more)
    driver = f"command[env=GREETING]:{sys.executable} -I -S {tmp_path / 'says.py'}"
    for scaffold in ("once", "durable:linear"):
        with pytest.raises(LabError) as error:
            prepare(suite, [f"command:{driver.partition(':')[2]}", driver], scaffolds=scaffold)
        said = str(error.value)
        assert "command[env=GREETING]: its value stands in case " in said and ": final, where" in said
        assert "hello-from-here" not in said and "\n" not in said


def test_a_value_that_is_a_tool_of_every_trial_is_refused(tmp_path: Path, alone: pytest.MonkeyPatch) -> None:
    alone.setenv("GREETING", "answer")
    driver = f"command[env=GREETING]:{sys.executable} -I -S {tmp_path / 'says.py'}"
    suite = hello(tmp_path)
    with pytest.raises(LabError, match=r"command\[env=GREETING\]: its value stands in case"):
        prepare(suite, driver)
    # what is too short to be a secret is taken out of nothing
    alone.setenv("GREETING", "hello")
    prepare(suite, driver)


def test_openly_handed_on_as_the_refusal_says(tmp_path: Path, alone: pytest.MonkeyPatch) -> None:
    suite = hello(tmp_path, expect={"answer": {"exact": "hello-from-here"}})
    program = f"env GREETING=hello-from-here {sys.executable} -I -S {tmp_path / 'says.py'}"
    (row,) = evaluate(suite, f"command:{program}", save_run=False).product
    assert row.verdict.outcome == "solved"


def test_the_answer_is_cut_alike_whatever_else_is_known(alone: pytest.MonkeyPatch) -> None:
    """A long secret of another arm moves no end of an answer."""
    data = b"x" * 50
    before = Said().begun(data, 20, graded=True)
    known(alone, "a-long-secret-of-another-arm" * 4)
    assert Said().begun(data[: Said().limit(20, graded=True)], 20, graded=True) == before == "x" * 20
    own = keys.of_variables("HANDED_ON_0")
    assert Said(own).without_own(os.environ["HANDED_ON_0"]) == REDACTED
    assert Said().without_own(os.environ["HANDED_ON_0"]) == os.environ["HANDED_ON_0"]
