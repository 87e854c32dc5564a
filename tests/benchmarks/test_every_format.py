"""What holds for every format: any path to the same files gives the same run, and damage gives a run or one clear line."""

from __future__ import annotations

import copy
import csv
import json
import shutil
import tempfile
from collections.abc import Callable
from decimal import InvalidOperation
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentbench_lab.benchmarks import FORMATS, Options, _counted, load_results
from agentbench_lab.errors import LabError
from agentbench_lab.results.bench_io import bench_bytes
from agentbench_lab.results.imported import SourceTrial, imported_run
from agentbench_lab.results.run import Imported, Run

from . import test_bfcl as bfcl
from . import test_hal as hal
from . import test_harbor as harbor
from . import test_inspect as inspect
from . import test_mini_swe_agent as mini
from . import test_swe_bench as swe_bench
from . import test_tau2 as tau2
from . import test_tau_bench as tau_bench
from . import test_terminal_bench as terminal_bench
from .damage import damaged, places


class Example(NamedTuple):
    """A document of a format, and the way to lay it out as files below a folder, of which the path is given back."""

    form: str
    document: Any
    lay: Callable[[Path, Any], Path]
    options: Options = Options()


def one_file(name: str) -> Callable[[Path, Any], Path]:
    def lay(folder: Path, document: Any) -> Path:
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(document), encoding="utf-8")
        return file

    return lay


def several(**names: str) -> Callable[[Path, Any], Path]:
    """A folder with a file for each key of the document; a value that is a list stands there as JSON lines."""

    def lay(folder: Path, document: Any) -> Path:
        for part, name in names.items():
            if part in document:
                value = document[part]
                rows = value if isinstance(value, list) and "_lines" in part else [value]
                file = folder / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
        folder.mkdir(exist_ok=True)
        return folder

    return lay


def as_csv(folder: Path, rows: Any) -> Path:
    file = folder / "trials.csv"
    told = [row for row in rows if isinstance(row, dict)]
    names = list(dict.fromkeys(name for row in told for name in row))
    with file.open("w", encoding="utf-8", errors="replace", newline="") as out:
        writer = csv.DictWriter(out, names)
        writer.writeheader()
        writer.writerows(told)
    return file


def as_jsonl(folder: Path, rows: Any) -> Path:
    file = folder / "trials.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return file


def as_parquet(folder: Path, rows: Any) -> Path:
    """Cells as JSON text, since a column of Parquet has one type."""
    told = [row for row in rows if isinstance(row, dict)]
    names = list(dict.fromkeys(name for row in told for name in row))
    columns = {name: [json.dumps(row[name]) if name in row else None for row in told] for name in names}
    pq.write_table(pa.table(columns), folder / "trials.parquet")
    return folder / "trials.parquet"


ROWS = [
    {"case_id": "a", "trial": 0, "driver": "d", "model": "m", "solved": True, "wall_s": 1.5, "cost_usd": 0.1},
    {"case_id": "a", "trial": 1, "driver": "d", "model": "m", "solved": False, "tokens_output": 7},
    {"case_id": "b", "trial": 0, "driver": "d", "model": "m", "solved": 0, "excluded": "broken"},
]
BENCH = json.loads(
    bench_bytes(
        imported_run(
            suite="s",
            trials=[SourceTrial("a", "d", True, steps=3), SourceTrial("a", "d", False, trial=2)],
            imported=Imported("csv", "f"),
        )
    )
)
SHORT = [tau2.GREETING, tau2.calls("assistant", ("c1", "find")), tau2.result("c1", "x")]
TAU2 = {
    **tau2.results(tau2.simulation("a", messages=SHORT), tau2.simulation("b", reward=0.0, messages=SHORT)),
    "tasks": [
        tau2.task("a", initial_state={"message_history": [{"role": "user", "content": "x"}]}),
        tau2.task("b"),
    ],
}
MINI = mini.trajectory("o__r-1", *mini.FENCED, {**mini.said(""), "tool_calls": [mini.tool_call("1", "{}")]})
EXAMPLES = {
    "bench-v1": Example("bench-v1", BENCH, one_file("bench.json")),
    "bfcl": Example(
        "bfcl",
        {
            "one_lines": bfcl.SIMPLE,
            "one_score_lines": bfcl.SIMPLE_SCORE,
            "two_lines": bfcl.TURNS,
            "two_score_lines": bfcl.TURNS_SCORE,
        },
        several(
            one_lines="result/m/non_live/BFCL_v4_simple_python_result.json",
            one_score_lines="score/m/non_live/BFCL_v4_simple_python_score.json",
            two_lines="result/m/BFCL_v4_multi_turn_base_result.json",
            two_score_lines="score/m/multi_turn/BFCL_v4_multi_turn_base_score.json",
        ),
    ),
    "hal": Example("hal", hal.WHOLE, one_file("gaia_1_UPLOAD.json")),
    "hal, calls": Example("hal", {"calls": hal.CALLS}, several(calls="gaia_1_UPLOAD.json")),
    "harbor": Example(
        "harbor",
        harbor.WHOLE,
        several(job="result.json", trial="a__1/result.json", trajectory="a__1/trajectory.json"),
    ),
    "harbor, a trial": Example("harbor", harbor.WHOLE["trial"], one_file("a__1/result.json")),
    "inspect": Example("inspect", inspect.RICH, one_file("a.json")),
    "inspect, a folder": Example("inspect", {"log": inspect.RICH}, several(log="a.json")),
    "mini-swe-agent": Example(
        "mini-swe-agent",
        {"trajectory": MINI, "report": {"resolved": True}},
        several(trajectory="trajs/o__r-1/o__r-1.traj.json", report="logs/o__r-1/report.json"),
    ),
    "mini-swe-agent, a file": Example(
        "mini-swe-agent",
        {"trajectory": MINI, "report": {"resolved": True}},
        lambda folder, document: (
            several(trajectory="o__r-1.traj.json", report="o__r-1/report.json")(folder, document)
            / "o__r-1.traj.json"
        ),
    ),
    "swe-bench, leaderboards": Example("swe-bench", swe_bench.BOARDS, one_file("leaderboards.json")),
    "swe-bench, a run": Example("swe-bench", swe_bench.REPORT, one_file("m.run.json")),
    "swe-bench, an instance": Example(
        "swe-bench", {"o__r-1": swe_bench.report(True)}, one_file("o__r-1/report.json")
    ),
    "swe-bench, a folder": Example(
        "swe-bench", {"one": swe_bench.report(True)}, several(one="run/o__r-1/report.json")
    ),
    "tau-bench": Example(
        "tau-bench",
        [tau_bench.episode(0), tau_bench.unfinished(1), tau_bench.failed(2)],
        one_file("airline.json"),
    ),
    "tau2": Example("tau2", TAU2, one_file("results.json")),
    "tau2, a folder": Example("tau2", {"one": TAU2}, several(one="below/results.json")),
    "terminal-bench": Example(
        "terminal-bench", terminal_bench.DOCUMENT, one_file("results.json"), Options(driver="x")
    ),
    "terminal-bench, a folder": Example(
        "terminal-bench", {"one": terminal_bench.DOCUMENT}, several(one="r/results.json"), Options(driver="x")
    ),
    "csv": Example("csv", ROWS, as_csv),
    "jsonl": Example("jsonl", ROWS, as_jsonl),
    "parquet": Example("parquet", [{"case_id": "a", "solved": 1, "steps": 3}], as_parquet),
}
EVERY = pytest.mark.parametrize("name", EXAMPLES)


def test_every_format_has_an_example() -> None:
    assert {example.form for example in EXAMPLES.values()} == set(FORMATS)


def same(one: Run, other: Run) -> bool:
    """All but the instant of the reading."""
    tables = ("cases", "trials", "attempts", "calls", "transcripts")
    return one.card == other.card and all(getattr(one, name).equals(getattr(other, name)) for name in tables)


@EVERY
def test_every_path_to_the_same_files_gives_the_same_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Absolute, relative, `.` from within, and by way of another folder."""
    example = EXAMPLES[name]
    root = tmp_path / "results"
    root.mkdir()
    path = example.lay(root, example.document)
    whole = load_results(example.form, path, example.options)
    assert whole.trials.num_rows
    monkeypatch.chdir(tmp_path)
    relative = path.relative_to(tmp_path)
    assert same(load_results(example.form, relative, example.options), whole)
    monkeypatch.chdir(path if path.is_dir() else path.parent)
    within = Path("." if path.is_dir() else path.name)
    assert same(load_results(example.form, within, example.options), whole)
    (path.parent / "other").mkdir()
    if path.is_file() or path == root:
        around = path.parent / "other" / ".." / path.name
        assert same(load_results(example.form, around, example.options), whole)


@EVERY
def test_an_error_names_the_path_as_it_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    example = EXAMPLES[name]
    root = tmp_path / "results"
    root.mkdir()
    path = example.lay(root, example.document)
    for file in root.rglob("*"):
        if file.is_file():
            file.write_bytes(b"\xff\xfe nothing of the kind")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LabError) as caught:
        load_results(example.form, path.relative_to(tmp_path), example.options)
    assert str(caught.value).startswith("results")
    assert str(tmp_path) not in str(caught.value)


def read_or_refuse(example: Example, document: Any) -> None:
    """A run that can be written, or a LabError of one line that names the place; anything else fails."""
    folder = Path(tempfile.mkdtemp())
    try:
        path = example.lay(folder, document)
        try:
            run = load_results(example.form, path, example.options)
        except LabError as error:
            assert str(error)
            assert str(folder) in str(error) or path.name in str(error)
        else:
            counts = run.card.counts
            assert counts.judged + counts.excluded + counts.missing == counts.asked
            assert bench_bytes(run)
    finally:
        shutil.rmtree(folder)


@EVERY
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_damage_is_a_run_or_one_clear_line(name: str, data: st.DataObject) -> None:
    read_or_refuse(EXAMPLES[name], data.draw(damaged(EXAMPLES[name].document)))


@pytest.mark.long
@EVERY
@settings(max_examples=400, deadline=None)
@given(data=st.data())
def test_much_damage_is_a_run_or_one_clear_line(name: str, data: st.DataObject) -> None:
    read_or_refuse(EXAMPLES[name], data.draw(damaged(EXAMPLES[name].document)))


FAR = [2**63, 10**400, -(10**400), 1.7e308, -1.7e308, 5e-324, "1e400", "0e999"]
"""Figures that JSON and tables can hold, and that some arithmetic cannot: no int64, no finite sum, no fraction."""


def alike(document: Any) -> list[list[tuple[Any, ...]]]:
    """The places of all plain values: each for itself, and all of one key together, as sums meet them."""
    by_key: dict[Any, list[tuple[Any, ...]]] = {}
    for place in places(document):
        if not isinstance(at(document, place), dict | list):
            by_key.setdefault(place[-1], []).append(place)
    each = [[place] for found in by_key.values() for place in found]
    return each + [found for found in by_key.values() if len(found) > 1]


def at(document: Any, place: tuple[Any, ...]) -> Any:
    for key in place:
        document = document[key]
    return document


@pytest.mark.long
@EVERY
def test_no_figure_is_too_far_to_be_read_or_refused(name: str) -> None:
    example = EXAMPLES[name]
    for found in alike(example.document):
        for figure in FAR:
            document = copy.deepcopy(example.document)
            for place in found:
                at(document, place[:-1])[place[-1]] = figure
            read_or_refuse(example, document)


@pytest.mark.parametrize("error", [OverflowError, InvalidOperation])
def test_arithmetic_that_gives_up_is_one_line_and_what_is_wrong_with_us_is_none(
    error: type[Exception],
) -> None:
    """The last resort behind all importers, which hides no mistake of theirs."""

    def read(path: Path, options: Options) -> Run:
        raise error

    with pytest.raises(LabError, match="x: holds a number that is too large to be counted with"):
        _counted(read, Path("x"), Options())
    with pytest.raises(ZeroDivisionError):
        _counted(lambda path, options: 1 // 0, Path("x"), Options())  # type: ignore[arg-type, return-value]
