"""Result files of the format `agent-runtime/bench/v1`, byte for byte as its own tools write them.

A `BenchFile` is what one invocation of a harness ran and how it scored: the trials, the outcome set that judged them,
and summaries that must follow from the trials. It is read with `BenchFile.decode` or `read_dir`, written with `encode`,
shown with `markdown`, and compared with `latest` and `compare`. Whatever is refused is refused with a `BenchError`.

Behaviour is that of version 0.1.1 of the format's own package, built with Go 1.26 where Go versions differ.
"""

from __future__ import annotations

from agentbench_lab.results.bench_v1.file import BenchFile, Column
from agentbench_lab.results.bench_v1.model import FORMAT, BenchError, OutcomeCount, Summary, Trial, raw

__all__ = ["FORMAT", "BenchError", "BenchFile", "Column", "OutcomeCount", "Summary", "Trial", "raw"]
