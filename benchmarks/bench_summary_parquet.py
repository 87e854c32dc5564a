"""The summary of 10,000,000 shuffled trials in a Parquet file (zstd): `metrics.summary` against a polars group-by.

By arm: trials, cases, solved, pass^1 to pass^8, cost per solved. See many_trials.py for the file and both sides. It is
a miss, too, when ours holds more memory at its peak than the group-by.
"""

from __future__ import annotations

import sys
from typing import Any

from many_trials import measure

GOAL = 0.4


def write(table: Any, path: str) -> None:
    import pyarrow.parquet as pq

    pq.write_table(table, path, compression="zstd")


if __name__ == "__main__":
    sys.exit(measure(".parquet", write, GOAL))
