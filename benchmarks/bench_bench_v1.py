"""Result files: decode, summarize and encode of a large one, against json.loads and json.dumps of the same bytes.

Both sides read and write 187 MB of indented JSON with 200,000 trials. Ours also refuses what is not valid, recomputes the
summaries three times, and keeps number literals and escapes of raw values as they were written; the standard library
does none of that. Run in turns, A B A B; each ratio is of two neighbours, and the median counts.
"""

from __future__ import annotations

import gc
import itertools
import json
import sys
import time

from common import of_neighbours
from rich_bench_v1 import rich_file

from agentbench_lab.results.bench_v1 import BenchFile

GOAL = 1.5
ROUNDS = 3


def ours(data: bytes) -> list[float]:
    """Seconds of decode, summarize, encode."""
    marks = [time.perf_counter()]
    file = BenchFile.decode(data)
    marks.append(time.perf_counter())
    summaries = file.summarize()
    marks.append(time.perf_counter())
    written = file.encode()
    marks.append(time.perf_counter())
    assert written == data
    assert sum(summary.trials for summary in summaries) == 200_000
    return [after - before for before, after in itertools.pairwise(marks)]


def standard_library(data: bytes) -> list[float]:
    """Seconds of json.loads, json.dumps with indentation."""
    marks = [time.perf_counter()]
    value = json.loads(data)
    marks.append(time.perf_counter())
    written = json.dumps(value, indent=2)
    marks.append(time.perf_counter())
    assert len(written) + 1 == len(data)
    return [after - before for before, after in itertools.pairwise(marks)]


def main() -> int:
    data = rich_file()
    print(f"a file of {len(data) / 1e6:.1f} MB, 200,000 trials, 8 columns, 500 scenarios; seconds, in turns")
    pairs = []
    for _ in range(ROUNDS):
        gc.collect()
        a = ours(data)
        gc.collect()
        b = standard_library(data)
        print(
            f"ours {sum(a):.2f} (decode {a[0]:.2f}, summarize {a[1]:.2f}, encode {a[2]:.2f})   "
            f"json {sum(b):.2f} (loads {b[0]:.2f}, dumps indent=2 {b[1]:.2f})",
            flush=True,
        )
        pairs.append((sum(a), sum(b)))
    return of_neighbours(pairs, "ours", "json", goal=GOAL)


if __name__ == "__main__":
    sys.exit(main())
