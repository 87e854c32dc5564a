"""What a run used, on the command line: with the costs of the source, and with costs by prices."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from .doing import lab, some, write_driver, write_suite

DRIVER = """
from agentbench_lab.transcripts import Transcript, Usage

def asks(task, tools, ctx):
    tools.call("tmct_describe", {"symbol": "Cart"})
    tools.call("tmct_describe", {"symbol": "Cart", "force": True})
    return Transcript(usage=Usage(4_000, 0, 0, 1_000, 2))

asks.evidence = "simulated"
"""
PRICES = "model,from,input,cache_read,cache_write,output\nsmall,2025-01-01,0.50,0,0,3.00\n"


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a finished run of two cases, the same as of another harness that names its model, and prices."""
    folder = tmp_path_factory.mktemp("shown")
    write_suite(folder, some(0))
    write_driver(folder, DRIVER)
    (folder / "prices.csv").write_text(PRICES, encoding="utf-8")
    (folder / "broken.csv").write_text(PRICES.replace("3.00", "dear"), encoding="utf-8")
    done = lab("run", "small.jsonl", "--driver", "mine:asks", "--out", "run", cwd=folder)
    assert done.returncode == 0, done.stderr
    bench = json.loads((folder / "run" / "bench.json").read_text(encoding="utf-8"))
    for row in (*bench["trials"], *bench["summaries"]):
        row["model"] = "small"
    (folder / "bench.json").write_text(json.dumps(bench), encoding="utf-8")
    done = lab("import", "bench-v1", "bench.json", "--out", "imported", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder


def shown(here: Path, *more: str, run: str = "run") -> dict[str, Any]:
    done = lab("show", run, "--json", *more, cwd=here)
    assert (done.returncode, done.stderr) == (0, "")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def by_metric(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {row["metric"]: row for row in rows}


def test_what_was_used_is_in_the_json_and_an_unknown_cost_is_null(here: Path) -> None:
    found = shown(here)
    used = by_metric(found["cost"])
    assert (used["spent"]["estimate"], used["spent"]["n"], used["spent"]["of"]) == (None, 0, 2)
    assert (used["tokens_output"]["total"], used["model_calls"]["estimate"]) == (2_000, 2)
    errors = by_metric(found["tool_errors"])
    assert (errors["malformed"]["n"], errors["any"]["n"], errors["any"]["of"]) == (2, 2, 4)
    (arm,) = found["frontier"]
    assert (arm["cost"], arm["on_frontier"]) == (None, None)
    assert arm["reason"] == "the cost is not known of any trial"


def test_a_file_of_prices_works_the_costs_out(here: Path) -> None:
    """4,000 x 0.50 + 1,000 x 3.00 are 5,000 micros a trial."""
    found = shown(here, "--prices", "prices.csv", run="imported")
    spent = by_metric(found["cost"])["spent"]
    assert (spent["estimate"], spent["n"], spent["lower_bound"]) == (0.01, 2, False)
    assert "2 costs by prices.csv on 20" in spent["estimator"]
    (arm,) = found["frontier"]
    assert (arm["cost"], arm["on_frontier"]) == (0.005, True)


@pytest.mark.parametrize(
    ("run", "why"), [("imported", "has no price for small"), ("run", "no model is named")]
)
def test_the_package_of_prices_says_what_it_has_no_price_for(here: Path, run: str, why: str) -> None:
    pytest.importorskip("genai_prices", reason="the extra prices is not installed")
    spent = by_metric(shown(here, "--prices", "genai", run=run)["cost"])["spent"]
    assert spent["estimate"] is None
    assert why in spent["reason"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--json", "--prices", "price.csv"), "price.csv: No such file or directory"),
        (("--json", "--prices", "broken.csv"), "broken.csv:2: output is 'dear', not a price"),
        (("--on", "2026-01-31"), "--on is the day of --prices"),
        (("--prices", "prices.csv", "--on", "someday"), "'someday' is no day (2025-01-31 is one)"),
        (("--json", "--failed", "--prices", "prices.csv"), "--prices is for the costs of a whole run"),
    ],
)
def test_what_cannot_be_priced_is_one_clear_line(here: Path, arguments: tuple[str, ...], says: str) -> None:
    done = lab("show", "run", *arguments, cwd=here)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {says}")
    assert done.stderr.count("\n") == 1


def test_the_frontier_and_the_groups_are_on_the_screen(here: Path) -> None:
    """Both where there is something to tell apart, with their intervals; and what many arms leave out is said."""
    rows = ["case_id,group,trial,model,solved,cost_usd"]
    rows += [
        f"c{n},{'easy' if n < 3 else 'hard'},1,{model},{int(n < 3)},0.{len(model)}"
        for n in range(6)
        for model in ("a", "bb")
    ]
    (here / "two.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    done = lab("import", "csv", "two.csv", "--out", "two", cwd=here)
    assert done.returncode == 0, done.stderr
    text = lab("show", "two", cwd=here).stdout
    assert "Accuracy and cost" in text
    assert "on the frontier" in text
    assert "Solved by group" in text
    assert "easy: 3 cases" in text
    assert "100% [44, 100] 3/3" in text
    rows += [f"c0,easy,1,{model},1,0.1" for model in "vwxyz"]
    (here / "many.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    assert lab("import", "csv", "many.csv", "--out", "many", cwd=here).returncode == 0
    assert "7 arms: how trials ended, and groups, are in" in lab("show", "many", cwd=here).stdout
