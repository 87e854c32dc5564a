"""No key in any file, name, output, notebook or traceback, though the endpoint sends it back wherever it can."""

from __future__ import annotations

import base64
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import msgspec
import pyarrow.parquet as pq
import pytest

from agentbench_lab.drivers import keys
from agentbench_lab.drivers.chat_http import _clean
from agentbench_lab.drivers.loading import load_driver
from agentbench_lab.errors import LabError
from agentbench_lab.results.redaction import REDACTED, redact
from agentbench_lab.running.runner import evaluate

from ..agents.openai_server import Answer, Server, calls, completion, fails, serving
from ..doing import ROOT, environment, lab, some, write_suite

KEY = "marked/key+5f3a~\\of-no-known-shape"
"""No provider's shape, and with what JSON writes in two ways."""
FORMS = (
    KEY,
    json.dumps(KEY)[1:-1],
    json.dumps(json.dumps(KEY)[1:-1])[1:-1],
    KEY.replace("/", "\\/"),
    base64.b64encode(KEY.encode()).decode(),
)


@pytest.fixture
def marked(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("AGENTBENCH_LAB_API_KEY", KEY)
    return KEY


def found_in(data: bytes) -> list[str]:
    return [form for form in FORMS if form.encode() in data]


def files_with_key(folder: Path) -> list[str]:
    """Every file that holds the key: as bytes, and for compressed columns as values."""
    wrong = []
    for file in sorted(folder.rglob("*")):
        if not file.is_file():
            continue
        data = file.read_bytes()
        if file.suffix == ".parquet":
            data += repr(pq.read_table(file).to_pylist()).encode()
        if found_in(data):
            wrong.append(file.name)
    return wrong


def leaks(number: int, body: dict[str, object]) -> Answer:
    """Sends the key back in every part of an answer that is read, kept or shown."""
    escaped = "".join(f"\\u{ord(letter):04x}" for letter in KEY)
    texts = json.dumps({"symbol": KEY})
    answers = [
        fails(429, f"key {KEY} is too fast", Retry_After="0"),
        calls(("tmct_describe", texts), (KEY, "{}"), ("tmct_describe", f'{{"symbol": {KEY}')),
        fails(500, f"key {KEY} crashed"),
        Answer(b'{"choices": [{"message": {"content": "%s"}}]}' % escaped.encode()),
        fails(400, f"Authorization: Bearer {KEY}"),
        completion({"content": f"Your key is {KEY}"}, finish=KEY, model=KEY),
        Answer(f"<html>{KEY}</html>".encode(), kind="text/html"),
        Answer({"error": KEY}),
        Answer({"usage": {"prompt_tokens": KEY}, "choices": KEY}),
    ]
    return answers[number % len(answers)]


def test_no_file_of_a_run_holds_the_key(tmp_path: Path, marked: str) -> None:
    suite = write_suite(tmp_path, some(0, 1, 2))
    with serving(leaks) as server:
        done = lab(
            *(
                "run",
                str(suite),
                "--driver",
                f"chat:m@{server.url}",
                "--trials",
                "3",
                "--retries",
                "0",
                "--out",
                "run",
            ),
            cwd=tmp_path,
        )
    assert done.returncode == 0, done.stderr
    assert server.headers[0]["Authorization"] == f"Bearer {marked}", "it was sent, and comes back"
    assert not found_in(done.stdout.encode() + done.stderr.encode())
    assert not files_with_key(tmp_path)
    assert REDACTED.encode() in (tmp_path / "run" / "product.jsonl").read_bytes(), "it did come back"


def test_nor_the_line_that_stops_a_run(tmp_path: Path, marked: str) -> None:
    suite = write_suite(tmp_path, some(0))
    with serving(lambda number, body: fails(401, f"Incorrect API key provided: {KEY}")) as server:
        name = f"chat:m@{server.url}"
        done = lab("run", str(suite), "--driver", name, "--out", "run", cwd=tmp_path)
        with pytest.raises(LabError) as error:
            evaluate(suite, name, save_run=False)
    assert f"Incorrect API key provided: {REDACTED}" in done.stderr
    assert not found_in(done.stdout.encode() + done.stderr.encode()) and not files_with_key(tmp_path)
    assert not found_in(str(error.value).encode())


def test_nor_a_driver_of_ones_own_that_prints_it(tmp_path: Path, marked: str) -> None:
    """Whoever reads the environment: what the run keeps of a driver's output and traceback is without the key."""
    suite = write_suite(tmp_path, some(0))
    (tmp_path / "mine.py").write_text(
        "import os, sys\n"
        "def blabs(task, tools, ctx):\n"
        "    key = os.environ['AGENTBENCH_LAB_API_KEY']\n"
        "    print(key); print(key, file=sys.stderr)\n"
        "    raise RuntimeError(key)\n",
        encoding="utf-8",
    )
    for executor in ("threads", "processes"):
        out = tmp_path / executor
        done = lab(
            *("run", str(suite), "--driver", "mine:blabs", "--executor", executor, "--out", str(out)),
            cwd=tmp_path,
        )
        assert done.returncode == 0, done.stderr
        assert not files_with_key(out)
        assert REDACTED in repr(pq.read_table(out / "transcripts.parquet").to_pylist())


@pytest.mark.long
def test_nor_an_executed_notebook(tmp_path: Path, marked: str) -> None:
    """run_ladder by papermill, its report, and a notebook that fails with the driver in its hands."""
    with serving(leaks) as server:
        name = f"chat:m@{server.url}"
        done = run_papermill(tmp_path, name)
    assert done.returncode == 0, done.stderr[-2_000:]
    report = lab("report", "--executed", "out.ipynb", "--out", "report.html", cwd=tmp_path)
    with serving(lambda number, body: fails(403, f"no {KEY}")) as server:
        failed = run_papermill(tmp_path, f"chat:m@{server.url}", name="failed.ipynb")
    assert failed.returncode != 0 and "the endpoint answers 403" in failed.stderr
    for each in (done, report, failed):
        assert not found_in((each.stdout + each.stderr).encode())
    assert not files_with_key(tmp_path)
    assert (tmp_path / "failed.ipynb").exists()


def run_papermill(folder: Path, driver: str, name: str = "out.ipynb") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            *(sys.executable, "-m", "papermill", str(ROOT / "notebooks" / "run_ladder.ipynb"), name),
            *("-p", "driver", driver, "--cwd", str(ROOT / "notebooks"), "--no-progress-bar"),
            *("-p", "out", str(folder / f"{name}-run"), "-p", "group", "TOOL-0"),
        ],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
    )


def test_a_driver_holds_no_key(marked: str) -> None:
    driver = load_driver("chat:m@http://127.0.0.1:9/v1")
    assert not found_in(pickle.dumps(driver) + repr(driver).encode() + str(vars(driver.function)).encode())


@pytest.mark.parametrize(
    "text",
    [
        f"m@http://user:{KEY}@host/v1",
        f"m@https://{KEY.replace('/', '')}@host/v1",
        f"m@http://host/v1?key={KEY}",
        f"m@http://host/v1?api_key={KEY}",
        f"m@http://host/v1?Authorization={KEY}",
        f"m@http://host/v1?api-key={KEY}&temperature=0",
    ],
)
def test_a_key_in_a_name_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(LabError) as error:
        load_driver(f"chat:{text}")
    assert "marked" not in str(error.value)


def test_which_key_is_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    suite = write_suite(tmp_path, some(0)[:1])

    def sent() -> str | None:
        with serving([calls(("refuse", {}))]) as server:
            evaluate(suite, f"chat:m@{server.url}", save_run=False)
        return header(server)

    for name in keys.NAMES:
        monkeypatch.delenv(name, raising=False)
    assert sent() is None
    monkeypatch.setenv("OPENAI_API_KEY", "the-second-one")
    assert sent() == "Bearer the-second-one"
    monkeypatch.setenv("AGENTBENCH_LAB_API_KEY", " the-first-one\n")
    assert sent() == "Bearer the-first-one"
    monkeypatch.setenv("AGENTBENCH_LAB_API_KEY", "in two\nlines-of-it")
    with pytest.raises(LabError) as error:
        sent()
    assert "AGENTBENCH_LAB_API_KEY holds what no key can" in str(error.value) and "lines" not in str(
        error.value
    )


def header(server: Server) -> str | None:
    return server.headers[0].get("Authorization")


def test_keys_that_were_read_are_taken_out_of_any_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    assert keys.api_key() in (KEY, os.environ.get("AGENTBENCH_LAB_API_KEY"))
    keys.remember()
    assert redact(f"a {KEY} b") == f"a {REDACTED} b"
    written = msgspec.json.encode({"a": KEY}).decode()
    assert json.loads(redact(written)) == {"a": REDACTED}
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    keys.remember()
    assert redact("none of it") == "none of it", "what is so short is no secret"


def test_an_escape_hides_no_letter_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    keys.remember()
    hidden = "".join(f"\\u{ord(letter):04x}" for letter in KEY)
    assert json.loads(_clean(f'{{"a": "{hidden}"}}'.encode())) == {"a": REDACTED}
    assert _clean(b'{"a": "\\n"}') == b'{"a": "\\n"}'


def test_what_a_program_beside_it_is_handed_on_changes_no_grade(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A chat arm takes the keys of endpoints out of what is graded, and nothing else."""
    symbol = some(0)[0]["expect"]["calls"][0]["input"]["symbol"]
    monkeypatch.setenv("GREETING", f'x": "{symbol}-of-something-else')
    suite = write_suite(tmp_path, some(0)[:1])
    telling = json.dumps({"symbol": os.environ["GREETING"]})

    def script(number: int, body: dict[str, object]) -> Answer:
        return calls(("tmct_describe", telling)) if number % 2 == 0 else completion({"content": "done"})

    with serving(script) as server:
        program = f"command[env=GREETING]:{sys.executable} -c pass"
        rows = evaluate(suite, [program, f"chat:m@{server.url}"], save_run=False).product
    (row,) = [row for row in rows if row.arm.driver.startswith("chat")]
    assert row.produced.ledger[0].input == {"symbol": os.environ["GREETING"]}
