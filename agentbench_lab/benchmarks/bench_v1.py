"""Result files of the format agent-runtime/bench/v1."""

from __future__ import annotations

from pathlib import Path

from agentbench_lab.benchmarks import Options
from agentbench_lab.results.bench_io import from_bench, read_bench
from agentbench_lab.results.run import Run


def load_results(path: Path, options: Options) -> Run:
    """The file's trials, judged by the file's own outcomes: see `results.bench_io.from_bench`."""
    return from_bench(read_bench(path), name=options.name)
