"""The runs that are kept under data/results: whole, small, free of other people's texts, and what their sources say."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from types import ModuleType

import msgspec
import pytest

from agentbench_lab.analysis import metrics
from agentbench_lab.pricing import prices
from agentbench_lab.results.run import Run, load_run
from agentbench_lab.results.schema import SCHEMAS

RESULTS = Path(__file__).parent.parent / "data" / "results"
OWN = ("ladder-floors",)
OTHERS = {
    "terminal-bench-core-0.1.1": ("terminal_bench", 5200, 13),
    "bfcl-multi-turn-gpt-oss": ("bfcl", 4200, 7),
    "tau-bench-airline-gpt-4o": ("tau_bench", 200, 1),
    "swe-bench-verified-gemini-3-pro": ("gemini", 500, 1),
}


def maker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_reference", RESULTS / "make.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", OTHERS)
def test_a_reference_run_of_others_is_whole_and_sourced(name: str) -> None:
    _, trials, arms = OTHERS[name]
    run = load_run(RESULTS / name)
    assert (run.trials.num_rows, len(run.card.arms), run.card.evidence) == (trials, arms, ("imported",))
    imported = run.card.imported
    assert imported is not None and imported.source and imported.licence and len(imported.digest) == 64
    assert run.transcripts.num_rows == 0
    assert set(run.cases.column("request").to_pylist()) == {""}
    assert set(run.calls.column("observed").to_pylist()) <= {""}
    assert sum(file.stat().st_size for file in (RESULTS / name).iterdir()) < 300_000


def test_the_floors_are_the_ladder_by_three_drivers() -> None:
    run = load_run(RESULTS / "ladder-floors")
    assert [arm.driver for arm in run.card.arms] == ["stub", "refuse_all", "reckless"]
    assert run.trials.num_rows == 3 * run.cases.num_rows == len(run.product)
    assert run.card.complete
    assert not run.card.commit.startswith("dirty"), "make it again from a clean checkout"


def test_what_a_source_does_not_tell_of_tokens_is_null() -> None:
    """BFCL's server counts all input in one number: nobody knows what came from a cache, and 0 would be a claim."""
    run = load_run(RESULTS / "bfcl-multi-turn-gpt-oss")
    for name in ("tokens_fresh_input", "tokens_cache_read", "tokens_cache_write"):
        assert run.trials.column(name).null_count == 4200
    assert all("tokens_input_total" in text for text in run.trials.column("extra").to_pylist())
    assumed = prices(run, "gpt-oss", "2025-11-29")
    spent = metrics.cost(run.trials, assumed).filter(metric="per_solved")
    assert spent["estimate"].null_count() == 0
    assert all("600 with all input at its price for input_total" in text for text in spent["estimator"])


def test_every_folder_that_git_keeps_is_listed() -> None:
    """A run that is kept is told of in the README, and checked here."""
    ignored = (RESULTS.parent.parent / ".gitignore").read_text(encoding="utf-8").splitlines()
    kept = {
        line.removeprefix("!data/results/").rstrip("/")
        for line in ignored
        if line.startswith("!data/results/")
    }
    assert kept - {"README.md", "make.py"} == {*OWN, *OTHERS}
    readme = (RESULTS / "README.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in readme for name in (*OWN, *OTHERS))


@pytest.mark.parametrize("name", OTHERS)
def test_it_is_what_its_source_says(name: str) -> None:
    """Read again from the source's own file, every table is the same, and so is the card but for its clocks."""
    peers = os.environ.get("AGENTBENCH_LAB_PEERS")
    if not peers:
        pytest.skip("AGENTBENCH_LAB_PEERS names no folder of other projects' files")
    again: Run = getattr(maker(), OTHERS[name][0])(Path(peers))
    kept = load_run(RESULTS / name)
    for grain in SCHEMAS:
        assert getattr(kept, grain).equals(getattr(again, grain)), grain
    assert msgspec.json.encode(kept.card) == msgspec.json.encode(again.card)


def test_its_numbers_are_those_that_were_published() -> None:
    """tau-bench publishes pass^1..4 of .420 .273 .220 .200; the rows give them."""
    found = metrics.reliability(load_run(RESULTS / "tau-bench-airline-gpt-4o").trials)
    rows = {row["k"]: row["estimate"] for row in found.iter_rows(named=True) if row["metric"] == "pass_hat_k"}
    assert [round(rows[k], 4) for k in (1, 2, 3, 4)] == [0.42, 0.2733, 0.22, 0.2]
