"""Result files: comparing the 8 columns of a large one, against decoding it.

Comparing reads nothing: it finds the newest columns, counts, and writes 7 MB of Markdown with a cell for each scenario
and column, twice. Run in turns, A B A B; each ratio is of two neighbours, and the median counts.
"""

from __future__ import annotations

import gc
import sys
import time

from common import of_neighbours
from rich_bench_v1 import rich_file

from agentbench_lab.results.bench_v1 import BenchFile

GOAL = 1.0
ROUNDS = 5


def main() -> int:
    data = rich_file()
    print(f"a file of {len(data) / 1e6:.1f} MB, 200,000 trials, 8 columns, 500 scenarios; seconds, in turns")
    pairs = []
    for _ in range(ROUNDS):
        gc.collect()
        start = time.perf_counter()
        file = BenchFile.decode(data)
        decoded = time.perf_counter()
        text = BenchFile.compare(BenchFile.latest([file]))
        compared = time.perf_counter()
        assert text.count("\n| S500 |") == 1 + 8  # a row of the matrix, and a row of means for each column
        pairs.append((compared - decoded, decoded - start))
        print(f"latest and compare {pairs[-1][0]:.2f}   decode {pairs[-1][1]:.2f}", flush=True)
        del file, text
    return of_neighbours(pairs, "latest and compare", "decode", goal=GOAL)


if __name__ == "__main__":
    sys.exit(main())
