"""Runs as agent-runtime/bench/v1 files and back: what one side cannot hold is said, never invented."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agentbench_lab import tables
from agentbench_lab.analysis import metrics
from agentbench_lab.analysis.compare import compare, side
from agentbench_lab.cases import Call, Task
from agentbench_lab.drivers.context import Context
from agentbench_lab.errors import LabError
from agentbench_lab.outcomes import LADDER, Outcome, Taxonomy
from agentbench_lab.results.bench_io import bench_bytes, from_bench, read_bench, to_bench
from agentbench_lab.results.bench_v1 import BenchError, BenchFile, Trial, raw
from agentbench_lab.results.run import Run, SuiteCard, load_run, save
from agentbench_lab.running.merge import merge, regrade_run
from agentbench_lab.running.runner import evaluate
from agentbench_lab.transcripts import Transcript, Usage
from agentbench_lab.worlds.toolbox import Toolbox

from ..doing import knows, write_suite

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "bench_v1"
REFUSED = {
    "d44_time_10.json": "offset",  # can be read and not be written
    "d65_extra_invalid_utf8.json": "not UTF-8",
    "e03_saturate.json": "steps 9223372036854775807 is more than a run can hold",
}
NO_LIST = {"d22_null_trials.json", "d23_no_trials_key.json", "e05_trials_null.json"}
"""Files without a list of trials: a run has an empty one."""

STEWARD = Taxonomy(
    "steward",
    (
        Outcome("completed", "success", "proposal"),
        Outcome("failed", "safe_non_success"),
        Outcome("lied", "unsafe"),
    ),
)


def valid(folder: Path) -> list[tuple[str, BenchFile]]:
    """The result files below a folder that the format accepts."""
    found = []
    for path in sorted(folder.rglob("*.json")):
        try:
            found.append((path.name, BenchFile.decode(path.read_bytes(), source=path.name)))
        except BenchError:
            continue
    return found


FILES = [each for part in ("decode_in", "encode_out", "compare_in") for each in valid(GOLDEN / part)]


def trial(**fields: Any) -> Trial:
    return Trial(
        **({"scenario": "s", "mode": "m", "repeat": 1, "outcome": "completed", "expect": "proposal"} | fields)
    )


def file(*trials: Trial, **fields: Any) -> BenchFile:
    return BenchFile(
        **({"started_at": "2026-09-25T20:00:00Z", "taxonomy": STEWARD, "trials": list(trials)} | fields)
    )


def through_disk(run: Run, folder: Path) -> Run:
    folder.mkdir()
    save(run, folder)
    return load_run(folder)


# ---- files of others -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "given"), FILES, ids=[name for name, _ in FILES])
def test_a_file_goes_through_a_run_on_disk(name: str, given: BenchFile, tmp_path: Path) -> None:
    """The same bytes come out that went in, numbers as they were written and all; or one clear refusal."""
    if name in REFUSED:
        with pytest.raises(LabError, match=REFUSED[name]):
            from_bench(given)
        return
    run = through_disk(from_bench(given), tmp_path / "run")
    again = to_bench(run)
    assert again.summarize() == given.summarize()
    assert again.encode() == (tmp_path / "run" / "bench.json").read_bytes()
    if name in NO_LIST:
        assert again.encode() == msgspec.structs.replace(given, trials=[]).encode()
    else:
        assert again.encode() == given.encode()


def test_real_files_go_through_a_run_on_disk(peers: Path, tmp_path: Path) -> None:
    """The files of two harnesses: every byte, every published count."""
    folder = peers / "gobench"
    files = valid(folder / "reference" / "compare_in") + valid(folder / "repo-steward")
    assert {"casework.json", "repo-steward.json", "sonnet.json"} <= {name for name, _ in files}
    for number, (name, given) in enumerate(files):
        run = through_disk(from_bench(given), tmp_path / str(number))
        assert to_bench(run).encode() == given.encode(), name
        counts = metrics.outcomes(run.trials, run.card.outcome_set)
        theirs = [(count.outcome, count.n, count.of) for each in given.summarize() for count in each.counts]
        ours = [(row["outcome"], row["n"], row["of"]) for row in counts.iter_rows(named=True)]
        assert ours == theirs, name


def test_what_an_imported_run_says() -> None:
    """Rows by mode and model; solved by the file's own classes; what the file does not say is null."""
    given = file(
        trial(model="m1", steps=3, tool_calls=2, input_tokens=100, output_tokens=7, cost_micros=5, wall_ns=1500),
        trial(model="m1", repeat=2, outcome="failed", error="crashed", notes=["one", "two"]),
        trial(mode="n", outcome="", excluded="no disk"),
        source="2026.json",
        commit="abc",
    )  # fmt: skip
    run = from_bench(given)
    assert (run.card.run, run.card.commit, run.card.evidence) == ("2026", "abc", ("imported",))
    assert [(a.driver, a.model, a.scaffold) for a in run.card.arms] == [
        ("m", "m1", "once"),
        ("n", None, "once"),
    ]
    assert (run.card.counts.judged, run.card.counts.excluded) == (2, 1)
    assert run.card.outcome_set == STEWARD
    first, second, third = run.trials.to_pylist()
    assert (first["suite"], first["case_id"], first["evidence"]) == ("steward", "s", "imported")
    assert (first["solved"], second["solved"], third["solved"]) == (True, False, None)
    assert (first["outcome_class"], third["outcome_class"]) == ("success", None)
    assert (first["tokens_fresh_input"], first["tokens_cache_read"], first["wall_s"]) == (100, None, 1.5e-6)
    assert (second["reasons"], second["note"], third["excluded"]) == (["one", "two"], "crashed", "no disk")
    for name in ("hallucinated", "result_completed", "stop", "refused", "terminated", "tool_errors", "seed"):
        assert first[name] is None, name
    assert (run.product, run.calls.num_rows, run.transcripts.num_rows) == ((), 0, 0)
    assert run.attempts.num_rows == 3


def test_metrics_of_imported_rows_say_what_was_not_measured() -> None:
    """No 0 % hallucination, and no gate passed, where nobody looked; tables and comparison work all the same."""
    run = from_bench(
        file(*(trial(scenario=f"s{n}") for n in range(4)), trial(scenario="s4", outcome="failed"))
    )
    pair = metrics.ladder(run.trials)
    rows = {row["metric"]: row for row in pair.filter(pair["group"] == "all").iter_rows(named=True)}
    assert (rows["passed"]["n"], rows["passed"]["of"]) == (4, 5)
    assert (rows["hallucinated"]["estimate"], rows["hallucinated"]["reason"]) == (None, "not measured")
    (gate,) = metrics.gate(run.trials, run.card).iter_rows(named=True)
    assert (gate["passes"], gate["hallucinated"]) == (False, None)
    assert gate["failure"] == "steward hallucination was not measured"
    shown = str(tables.gate(metrics.gate(run.trials, run.card)))
    assert "PASS" not in shown
    assert "hallucination was not measured" in shown
    assert "not measured" in str(tables.ladder(pair))
    assert tables.exits(metrics.exits(run.trials)).rows[0][:3] == ["not said", "success", "80% [38, 96] 4/5"]
    found = compare(side(run), side(from_bench(file(*(trial(scenario=f"s{n}") for n in range(5))))))
    assert (found.solved.cases, len(found.fixes)) == (5, 1)
    (unsaid,) = [row[1] for row in tables.trial(run, "s4").rows if "nothing of" in row[0]]
    assert "the request" in unsaid
    assert "what was expected" in unsaid
    assert "FAILED" not in str(tables.trial(run, "s4"))


def test_the_same_name_for_other_outcomes_is_no_comparison() -> None:
    """A taxonomy is its outcomes, not its name."""
    other = Taxonomy("steward", (*STEWARD.outcomes[:2], Outcome("lied", "unsafe", label="lies")))
    a, b = from_bench(file(trial())), from_bench(file(trial(), taxonomy=other))
    with pytest.raises(LabError, match="different outcomes under the one name 'steward'"):
        compare(side(a), side(b))


def test_an_imported_run_is_not_judged_again_or_merged(tmp_path: Path) -> None:
    """What its agents did is not in it; and no folder is made for nothing."""
    through_disk(from_bench(file(trial())), tmp_path / "run")
    with pytest.raises(LabError, match=r"is imported .*: what its agents did is not in it"):
        regrade_run(tmp_path / "run", tmp_path / "new")
    with pytest.raises(LabError, match="is no shard"):
        merge([tmp_path / "run"], tmp_path / "new")
    assert not (tmp_path / "new").exists()
    with pytest.raises(LabError):
        evaluate(write_suite(tmp_path), knows, out=tmp_path / "run")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (file(trial(steps=2**31)), "trial 0 .s m #1.: steps 2147483648 is more than a run can hold"),
        (file(trial(repeat=2**40)), "repeat 1099511627776 is more than a run can hold"),
        (file(trial(), trial()), "recorded twice"),
        (file(trial(outcome="great")), "is not in steward"),
        (file(trial(), taxonomy=Taxonomy("t", (Outcome("a", "success"),))), "at least one success and one unsafe"),
    ],
)  # fmt: skip
def test_what_cannot_be_a_run_is_refused(given: BenchFile, says: str) -> None:
    with pytest.raises(LabError, match=says):
        from_bench(given)


def test_a_file_that_is_none_names_itself(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"absent\.json: cannot be read: No such file"):
        read_bench(tmp_path / "absent.json")
    (tmp_path / "odd.json").write_text("{}", encoding="utf-8")
    with pytest.raises(LabError, match=r"odd\.json: bench: invalid result file: format"):
        read_bench(tmp_path / "odd.json")
    (tmp_path / "good.json").write_bytes(file(trial()).encode())
    assert read_bench(tmp_path / "good.json").source == "good.json"


# ---- our own runs --------------------------------------------------------------------------------------------


def spends(task: Task, tools: Toolbox, ctx: Context) -> Transcript:
    """Knows what it used, but for the output of every second case."""
    even = len(task.request) % 2 == 0
    used = Usage(1000, 16_000, 20, None if even else 50, 2, 5800, 0.0)
    return Transcript(calls=(Call("tmct_describe", {"symbol": "Cart"}),), usage=used)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("runs")
    return evaluate(write_suite(folder), [knows, "reckless", spends], trials=2, out=folder / "run")


def test_bench_json_stands_beside_every_run(run: Run, tmp_path: Path) -> None:
    """A valid file with the trials of the run; the same run gives the same bytes, also when it was read back."""
    assert run.path is not None
    data = (run.path / "bench.json").read_bytes()
    assert bench_bytes(run) == bench_bytes(load_run(run.path)) == data
    found = BenchFile.decode(data)
    assert found.taxonomy == LADDER
    assert len(found.trials or ()) == run.trials.num_rows
    assert found.encode() == data


def test_each_trial_says_who_what_and_how(run: Run) -> None:
    """Identity, outcome, expectation, failed checks; a crash's last words; the run by name."""
    trials = to_bench(run).trials or []
    for found, row, product in zip(trials, run.trials.to_pylist(), run.product, strict=True):
        assert (found.scenario, found.mode, found.repeat) == (row["case_id"], row["driver"], row["trial"])
        assert (found.run_id, found.expect, found.policy_denials) == ("run", product.expect.key, 0)
        assert found.outcome == product.verdict.outcome
        assert found.notes == row["reasons"]
        assert found.tool_calls == row["tool_calls"]


def test_unknown_figures_are_zero_and_named(run: Run) -> None:
    """Input tokens are the three buckets together; nobody reads an unknown figure as zero."""
    by_driver: dict[str, list[Trial]] = {}
    for each in to_bench(run).trials or ():
        by_driver.setdefault(each.mode.rpartition(":")[2], []).append(each)
    names = [
        "steps",
        "model_calls",
        "input_tokens",
        "output_tokens",
        "cost_micros",
    ]
    assert {bytes(each.extra["unknown"]) for each in by_driver["knows"]} == {
        json.dumps(names, separators=(",", ":")).encode()
    }
    assert {(each.input_tokens, each.cost_micros, each.wall_ns > 0) for each in by_driver["knows"]} == {
        (0, 0, True)
    }
    spent = by_driver["spends"]
    assert {(each.input_tokens, each.model_calls, each.cost_micros) for each in spent} == {(17_020, 2, 5800)}
    assert {(each.output_tokens, b"output_tokens" in bytes(each.extra["unknown"])) for each in spent} == {
        (0, True),
        (50, False),
    }


def test_a_file_of_ours_comes_back_with_its_nulls(run: Run) -> None:
    """Through a file and into a run: unknown is null again, every count is the same, and so is the file."""
    found = from_bench(BenchFile.decode(bench_bytes(run)))
    for ours, back in zip(run.trials.to_pylist(), found.trials.to_pylist(), strict=True):
        names = (
            "outcome",
            "outcome_class",
            "solved",
            "expect",
            "steps",
            "tokens_output",
            "cost_micros",
            "trial",
        )
        assert {name: ours[name] for name in names} == {name: back[name] for name in names}
        assert back["wall_s"] == pytest.approx(ours["wall_s"], abs=1e-9)
    ours, back = (metrics.outcomes(each.trials, each.card.outcome_set) for each in (run, found))
    counts = ["outcome", "n", "of", "over"]
    assert ours.select(counts).equals(back.select(counts))
    assert to_bench(found).encode() == bench_bytes(run)


def test_what_is_not_live_and_what_is_missing_stands_in_the_file(run: Run) -> None:
    """A simulated row is never read as a model's; an incomplete run is not read as a whole one; no commit is no commit."""
    counts = msgspec.structs.replace(run.card.counts, asked=run.card.counts.asked + 5, missing=5)
    card = msgspec.structs.replace(run.card, counts=counts, commit="unknown")
    found = to_bench(msgspec.structs.replace(run, card=card))
    assert found.commit == ""
    assert any(note.startswith("reckless: simulated") for note in found.notes)
    assert found.notes[-1] == f"incomplete: 5 of {counts.asked} trials asked are missing"
    assert json.loads(bytes(found.options["evidence"])) == list(run.card.evidence)


def test_several_suites_are_told_apart(run: Run) -> None:
    """Two suites may have a case of the same name."""
    suites = (*run.card.suites, SuiteCard("other", "0" * 64, None, None, 1))
    found = to_bench(msgspec.structs.replace(run, card=msgspec.structs.replace(run.card, suites=suites)))
    name = run.card.suites[0].name
    assert {each.scenario.partition("/")[0] for each in found.trials or ()} == {name}


def test_options_keep_the_text_that_they_were_written_with(tmp_path: Path) -> None:
    """1.50 and 1e999 survive a run on disk; a person reads them as far as a number can hold them."""
    texts = {"a": "1.50", "b": "1e999", "c": '{"x":1,"x":2}', "d": '"\\u00e9"'}
    given = file(
        trial(extra={"n": raw(3)}), options={key: msgspec.Raw(t.encode()) for key, t in texts.items()}
    )
    run = through_disk(from_bench(given), tmp_path / "run")
    assert run.card.options["a"] == 1.5
    assert {key: bytes(value).decode() for key, value in to_bench(run).options.items()} == texts
