"""The summary of 10,000,000 shuffled trials in an Arrow IPC file: `metrics.summary` against a polars group-by.

By arm: trials, cases, solved, pass^1 to pass^8, cost per solved. See many_trials.py for the file and both sides. It is
a miss, too, when ours holds more memory at its peak than the group-by.
"""

from __future__ import annotations

import sys
from typing import Any

from many_trials import measure

GOAL = 0.25


def write(table: Any, path: str) -> None:
    import pyarrow as pa

    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)


if __name__ == "__main__":
    sys.exit(measure(".arrow", write, GOAL))
