"""Real logs of Inspect AI, old and new: each gives the figures that stand in it, or one clear reason."""

from __future__ import annotations

import json
import zipfile
from math import comb
from pathlib import Path
from typing import Any

import pytest

from agentbench_lab.benchmarks import load_results
from agentbench_lab.errors import LabError
from agentbench_lab.results.run import Run

GENERATED = "generated-here/arith_mockllm_6x4epochs_inspect-0.3.285"
UNSCORED = "tests/scorer/logs/2025-02-11T15-17-00-05-00_popularity_dPiJifoWeEQBrfWsAopzWr.eval"
REAL = {
    "2025-05-12T20-27-36-04-00_browser.json": 1,
    "2025-05-12T20-28-13-04-00_popularity.json": 3,
    "2025-05-12T20-28-26-04-00_security-guide.json": 3,
    "log_formats.eval": 1,
    "log_formats.json": 1,
    "log_read_sample.eval": 1,
    "tests/analysis/test_logs_choices/mmlu-no-summary-choices.eval": 1,
    "tests/analysis/test_logs_choices/mmlu-summary-choices.eval": 1,
    "tests/scorer/logs/2025-02-11T15-18-04-05-00_popularity_mj7khqpMM4GBCfVQozKgzB.eval": 10,
    f"{GENERATED}.eval": 24,
    f"{GENERATED}.json": 24,
}


@pytest.fixture(scope="module")
def logs(peers: Path) -> Path:
    return peers / "inspect"


def solved(run: Run) -> dict[str, list[bool]]:
    found: dict[str, list[bool]] = {}
    for trial in run.trials.select(["case_id", "solved"]).to_pylist():
        found.setdefault(trial["case_id"], []).append(trial["solved"])
    return found


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def published(run: Run) -> dict[str, float]:
    assert run.card.imported is not None
    return {claim.metric: claim.published for claim in run.card.imported.published}


@pytest.mark.parametrize(
    ("ending", "figures"),
    [("eval", (0.16667, 0.30556, 0.02778)), ("json", (0.25, 0.41667, 0.08333))],
)
def test_the_generated_logs_give_their_own_results(
    logs: Path, ending: str, figures: tuple[float, ...]
) -> None:
    """Six cases by four epochs, computed here from the trials, against known figures and the log's own."""
    run = load_results("inspect", logs / f"{GENERATED}.{ending}")
    cases = solved(run).values()
    assert [len(case) for case in cases] == [4] * 6
    computed = (
        mean([mean(list(map(float, case))) for case in cases]),
        mean([1 - comb(4 - sum(case), 2) / comb(4, 2) for case in cases]),
        mean([comb(sum(case), 2) / comb(4, 2) for case in cases]),
    )
    assert computed == pytest.approx(figures, abs=5e-6)
    own = published(run)
    for name, value in zip(("mean", "pass_at_2", "pass_k_2"), computed, strict=True):
        assert own[f"match accuracy ({name})"] == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize("name", REAL)
def test_every_published_figure_follows(logs: Path, name: str) -> None:
    run = load_results("inspect", logs / name)
    assert run.card.counts.judged == run.card.counts.asked == REAL[name]
    assert run.card.imported is not None
    for claim in run.card.imported.published:
        if claim.metric == "tokens" and name.startswith("log_formats"):
            assert claim.rows is None  # of 2024: the samples do not say what they used
        else:
            assert claim.follows, str(claim)


def samples(path: Path) -> list[dict[str, Any]]:
    """The samples by the standard library alone, which reads the deflated logs."""
    if path.suffix == ".json":
        return json.loads(path.read_text(encoding="utf-8"))["samples"]
    with zipfile.ZipFile(path) as found:
        return [json.loads(found.read(name)) for name in found.namelist() if name.startswith("samples/")]


@pytest.mark.parametrize("name", [name for name in REAL if not name.endswith("0.3.285.eval")])
def test_trials_are_those_of_the_samples(logs: Path, name: str) -> None:
    wanted = {(str(s["id"]), s["epoch"]): s for s in samples(logs / name)}
    run = load_results("inspect", logs / name)
    trials = {(t["case_id"], t["trial"]): t for t in run.trials.to_pylist()}
    assert trials.keys() == wanted.keys()
    for key, trial in trials.items():
        sample = wanted[key]
        (score,) = sample["scores"].values()
        assert trial["solved"] == (score["value"] == "C")
        assert trial["wall_s"] == sample.get("total_time")
        tokens = [trial[f"tokens_{each}"] for each in ("fresh_input", "cache_read", "cache_write", "output")]
        total = sum(usage["total_tokens"] for usage in sample.get("model_usage", {}).values())
        assert (tokens == [None] * 4) if not total else (sum(tokens) == total)
        asked = sum(len(message.get("tool_calls") or ()) for message in sample["messages"])
        assert trial["tool_calls"] == asked


def test_cached_tokens_that_an_older_log_counted_within_its_input(logs: Path) -> None:
    """15,516 in all = 15,235 in + 281 out, of which 9,088 from a cache: 6,147 were fresh."""
    run = load_results("inspect", logs / "2025-05-12T20-27-36-04-00_browser.json")
    (trial,) = run.trials.to_pylist()
    assert (trial["tokens_fresh_input"], trial["tokens_cache_read"], trial["tokens_output"]) == (
        6147,
        9088,
        281,
    )
    assert [call["name"] for call in run.calls.to_pylist()] == ["web_browser_go"] + ["web_browser_click"] * 3


def test_attachments_of_real_logs_are_resolved(logs: Path) -> None:
    for name in REAL:
        run = load_results("inspect", logs / name)
        texts = [*run.cases.column("request").to_pylist(), *run.transcripts.column("messages").to_pylist()]
        assert not any("attachment://" in text or "tc://" in text for text in texts)


def test_a_log_that_was_not_scored_is_refused_with_the_reason(logs: Path) -> None:
    with pytest.raises(LabError, match="no sample was scored, so nothing is judged"):
        load_results("inspect", logs / UNSCORED)


def test_folders_of_real_logs(logs: Path) -> None:
    with pytest.raises(LabError, match="no sample was scored"):
        load_results("inspect", logs)
    with pytest.raises(
        LabError, match=r"0\.3\.285\.eval, but another model_args: nothing tells the two apart"
    ):
        load_results("inspect", logs / "generated-here")
    run = load_results("inspect", logs / "tests/analysis")
    assert run.trials.column("trial").to_pylist() == [1, 2]
    assert run.card.suites[0].name == "inspect_evals-mmlu_0_shot"
