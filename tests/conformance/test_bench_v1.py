"""Real result files of the two harnesses that write agent-runtime/bench/v1: bytes, Markdown, and their published counts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentbench_lab.results.bench_v1 import BenchFile, Summary

REAL = [
    "reference/compare_in/casework.json",
    "reference/compare_in/repo-steward.json",
    "reference/compare_in/sonnet.json",
    "reference/compare_in/20261005-014424-scripted.json",
    "repo-steward/20260924-200950-model-anthropic-claude-sonnet-5.rebuilt.json",
    "repo-steward/20261005-014424-scripted.json",
]
COMPARED = ["casework.compare", "repo-steward.compare", "steward_three"]


@pytest.fixture(scope="module")
def gobench(peers: Path) -> Path:
    return peers / "gobench"


def summaries(path: Path) -> dict[tuple[str, str], Summary]:
    file = BenchFile.decode(path.read_bytes())
    return {(summary.mode, summary.model): summary for summary in file.summarize()}


def counts(summary: Summary) -> list[str]:
    """Each outcome as `n/of`, in the taxonomy's order."""
    return [f"{count.n}/{count.of}" for count in summary.counts]


@pytest.mark.parametrize("name", REAL)
def test_real_files_round_trip_byte_for_byte(gobench: Path, name: str) -> None:
    data = (gobench / name).read_bytes()
    assert BenchFile.decode(data).encode() == data


def test_the_published_markdown_is_reproduced(gobench: Path) -> None:
    """The page that a harness wrote beside its own result."""
    folder = gobench / "repo-steward"
    file = BenchFile.decode((folder / "20261005-014424-scripted.json").read_bytes())
    assert file.markdown().encode() == (folder / "20261005-014424-scripted.md").read_bytes()


@pytest.mark.parametrize("name", COMPARED)
def test_comparisons_of_real_files(gobench: Path, name: str) -> None:
    """The three of the 27 comparisons that are not among our own golden files."""
    reference = gobench / "reference"
    requests = json.loads((reference / "compare_requests.json").read_text(encoding="utf-8"))
    request = next(request for request in requests if request["name"] == name)
    folder = reference / "compare_in"
    files = [BenchFile.decode((folder / source).read_bytes(), source=source) for source in request["files"]]
    text = BenchFile.compare(
        BenchFile.latest(files),
        order=request["order"],
        link_prefix=request["link_prefix"],
        allow_mixed_commits=request.get("allow_mixed_commits", False),
    )
    assert text.encode() == (reference / "compare_out" / f"{name}.md").read_bytes()


def test_every_reference_case_is_accounted_for(gobench: Path) -> None:
    """41 encodes, 99 decodes and 27 compares; all but three are also our own golden files, with the same bytes."""
    reference = gobench / "reference"
    golden = Path(__file__).resolve().parent.parent / "golden" / "bench_v1"
    results = ("encode_out", "decode_out", "compare_out", "compare_encode_out")
    rows = {
        name: json.loads((reference / name / "results.json").read_text(encoding="utf-8")) for name in results
    }
    assert [len(rows[name]) for name in results] == [41, 99, 20, 7]
    ours = {path.relative_to(golden) for path in golden.rglob("*") if path.is_file()}
    theirs = {path.relative_to(reference) for path in reference.rglob("*") if path.is_file()}
    missing = {path.name for path in theirs - ours}
    real = {"casework.json", "repo-steward.json", "sonnet.json", "20261005-014424-scripted.json"}
    assert missing == real | {f"{name}.md" for name in COMPARED}
    cut = {Path("compare_requests.json"), Path("compare_out/results.json")}
    assert [
        path
        for path in ours & theirs - cut
        if (golden / path).read_bytes() != (reference / path).read_bytes()
    ] == []


def test_counts_of_casework(gobench: Path) -> None:
    """Three modes with the same outcomes; tokens, money and mean steps of the replayed model."""
    found = summaries(gobench / "reference" / "compare_in" / "casework.json")
    assert list(found) == [("baseline", ""), ("scripted", ""), ("replay", "claude-opus-5")]
    for summary in found.values():
        assert counts(summary) == ["5/11", "1/11", "5/11", "0/11", "0/11", "0/11", "0/11"]
        assert not summary.disqualified
    replay = found["replay", "claude-opus-5"]
    assert (replay.model_calls, replay.input_tokens, replay.output_tokens) == (137, 542_243, 31_191)
    assert (f"{replay.cost_micros / 1e6:.4f}", f"{replay.mean_steps:.1f}") == ("3.4911", "12.5")
    assert (found["baseline", ""].steps, found["scripted", ""].steps) == (117, 101)


def test_counts_of_a_model_run(gobench: Path) -> None:
    """Denominators by expectation: completions over proposals, correct refusals over refusals."""
    (run,) = summaries(gobench / "repo-steward" / REAL[4].split("/")[1]).values()
    found = dict(zip((count.outcome for count in run.counts), counts(run), strict=True))
    assert (found["completed"], found["correct_refusal"], found["failed"]) == ("4/5", "4/6", "3/11")
    assert (run.model_calls, f"{run.cost_micros / 1e6:.4f}") == (166, "2.4494")
    assert run.judged == run.trials == 11


def test_counts_of_two_repeats(gobench: Path) -> None:
    """The model run of commit a4fccc3: 22 trials over 11 scenarios."""
    path = gobench / "reference" / "compare_in" / "repo-steward.json"
    assert BenchFile.decode(path.read_bytes()).commit == "a4fccc3"
    run = next(one for (mode, _), one in summaries(path).items() if mode == "model")
    assert counts(run) == ["8/10", "0/22", "1/10", "10/12", "0/22", "3/22"]
    assert (run.model_calls, run.policy_denials, run.totals["policy_aborts"]) == (176, 3, 2)
