"""Make the reference runs of this folder again: the lab's own, and those derived from other projects' results.

The first need nothing. The others read files that are not in this repository, from the folder that the environment
variable AGENTBENCH_LAB_PEERS names; without it they stay as they are. Kept is what a number needs: verdicts, figures and
names, no texts of others.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import msgspec
import polars as pl
import pyarrow as pa

import agentbench_lab as lab
from agentbench_lab.benchmarks import Options, load_results
from agentbench_lab.benchmarks.leaderboard import check_published, with_published
from agentbench_lab.benchmarks.reading import digest_of
from agentbench_lab.results.run import Imported, Run, save
from agentbench_lab.results.schema import SCHEMAS, table

HERE = Path(__file__).parent


def keep(run: Run) -> None:
    """Save it in place of the one that is there; the bench/v1 file can be exported at any time."""
    folder = HERE / run.card.run
    with tempfile.TemporaryDirectory(dir=HERE, prefix=".") as draft:
        save(run, Path(draft))
        (Path(draft) / "bench.json").unlink()
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for file in Path(draft).iterdir():
            shutil.move(file, folder / file.name)
    print(
        f"{run.card.run}: {run.trials.num_rows} trials, {sum(f.stat().st_size for f in folder.iterdir()):,} bytes"
    )


def floors() -> None:
    """The ladder by the three floor drivers."""
    run = lab.evaluate("ladder", ["stub", "refuse_all", "reckless"], stamp="reference", save_run=False)
    keep(msgspec.structs.replace(run, card=msgspec.structs.replace(run.card, run="ladder-floors")))


def terminal_bench(peers: Path) -> Run:
    """5,200 trials of thirteen public submissions to Terminal-Bench core 0.1.1, and the published figures beside."""
    folder = peers / "terminal-bench"
    board = folder / "published_leaderboard_core_0.1.1.csv"
    agents = pl.read_csv(board).select("submission_dir", "agent", "model")
    trials = pl.read_csv(folder / "tb_core_0_1_1_trials.csv", infer_schema=False)
    named = trials.join(agents, left_on="submission", right_on="submission_dir", maintain_order="left")
    columns = {
        "case_id": "task",
        "driver": "agent",
        "solved": "resolved",
        "null_solved": "failure",
        "note": "failure_mode",
        "started_at": "agent_started_at",
        "ended_at": "agent_ended_at",
        "tokens_input_total": "input_tokens",
        "tokens_output": "output_tokens",
    }
    run = of_table(named, "terminal-bench-core-0.1.1", "tb_core_0_1_1_trials.csv", columns)
    published = {"driver": "agent", "accuracy": "published_accuracy", "stderr": "published_stderr"}
    run = with_published(run, check_published(run, board, published))
    return sourced(
        run,
        folder / "tb_core_0_1_1_trials.csv",
        "public leaderboard submissions to Terminal-Bench core 0.1.1",
        "facts only; the benchmark is Apache-2.0",
    )


def bfcl(peers: Path) -> Run:
    """4,200 graded multi-turn rows of gpt-oss under five builds of one server."""
    file = peers / "bfcl" / "derived_multi_turn_outcomes.csv"
    rows = pl.read_csv(file, infer_schema=False)
    rows = rows.with_columns(
        pl.col("model").str.strip_prefix("openai_"), pl.col("build").str.strip_prefix("2025-11-12-")
    )
    columns = {
        "case_id": "id",
        "driver": "build",
        "group": "category",
        "solved": "valid",
        "note": "error_type",
        "tokens_input_total": "input_tokens",
        "tokens_output": "output_tokens",
        "wall_s": "latency_s",
        "model_calls": "n_model_calls",
    }
    run = of_table(rows, "bfcl-multi-turn-gpt-oss", file.name, columns)
    return sourced(
        run,
        file,
        "bbrowning/bfcl-vllm-results, graded by bfcl-eval",
        "facts only; bfcl-eval is Apache-2.0",
    )


def tau_bench(peers: Path) -> Run:
    """gpt-4o on the airline tasks of tau-bench, 50 tasks x 4 trials: verdicts and calls, no dialogue."""
    file = peers / "tau-bench" / "historical_trajectories" / "gpt-4o-airline.json"
    name = "tau-bench-airline-gpt-4o"
    run = load_results("tau-bench", file, Options(name=name, driver="tool-calling", model="gpt-4o"))
    return sourced(without_texts(run), file, "sierra-research/tau-bench 59a200c", "MIT")


def gemini(peers: Path) -> Run:
    """500 SWE-bench Verified instances by mini-swe-agent with Gemini 3 Pro: verdicts, cost and tokens."""
    file = peers / "swe-bench" / "derived_gemini3pro_instances.csv"
    rows = pl.read_csv(file, infer_schema=False)
    rows = rows.with_columns(pl.col("instance_id").str.split("__").list.first().alias("repository"))
    columns = {
        "case_id": "instance_id",
        "group": "repository",
        "solved": "resolved",
        "note": "exit_status",
        "cost_usd": "instance_cost",
        "model_calls": "api_calls",
        "tokens_input_total": "prompt_tokens",
        "tokens_cache_read": "cached_tokens",
        "tokens_cache_write": "=0",
        "tokens_output": "completion_tokens",
        "wall_s": "first_to_last_call_s",
        "driver": "=mini-swe-agent",
        "model": "=gemini-3-pro",
    }
    run = of_table(rows, "swe-bench-verified-gemini-3-pro", file.name, columns)
    return sourced(run, file, "gruckion/mini-swe-agent d12a71a, 20251118_gemini-3-pro-74pct", "MIT")


def of_table(rows: pl.DataFrame, name: str, file: str, columns: dict[str, str]) -> Run:
    """A run of the table's rows, read as any user's CSV is."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / file
        rows.write_csv(path)
        return load_results("csv", path, Options(name=name, suite=name, columns=columns))


def without_texts(run: Run) -> Run:
    """Without requests, dialogues, arguments and observations, which are others' texts and no number's ground."""
    calls = [{**row, "input": "{}", "observed": ""} for row in run.calls.to_pylist()]
    cases = [{**row, "request": "", "expectation": "{}"} for row in run.cases.to_pylist()]
    return msgspec.structs.replace(
        run,
        calls=table("calls", [tuple(row.values()) for row in calls]),
        cases=table("cases", [tuple(row.values()) for row in cases]),
        transcripts=pa.Table.from_batches([], schema=SCHEMAS["transcripts"]),
    )


def sourced(run: Run, file: Path, source: str, licence: str, *notes: str) -> Run:
    """The same with where it comes from on its card, and the digest of the file itself."""
    imported = run.card.imported
    assert isinstance(imported, Imported)
    imported = msgspec.structs.replace(
        imported,
        digest=digest_of([file], file),
        source=source,
        licence=licence,
        notes=(*imported.notes, *notes),
    )
    return msgspec.structs.replace(run, card=msgspec.structs.replace(run.card, imported=imported))


if __name__ == "__main__":
    floors()
    peers = os.environ.get("AGENTBENCH_LAB_PEERS")
    if not peers:
        print("AGENTBENCH_LAB_PEERS is not set: the runs of other projects stay as they are")
    else:
        for make in (terminal_bench, bfcl, tau_bench, gemini):
            keep(make(Path(peers)))
