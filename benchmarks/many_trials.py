"""Ten million trials in a file, and both sides of the claims about their summary, each in a process of its own.

The trials: 10 suites of 1,000 cases, 25 models in 5 scaffolds, 8 trials each, in no order; texts are
dictionary-encoded. A side reads the file once to warm up, then three times, and says the median and its peak memory.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from common import compare

SUITES, CASES, MODELS, TRIALS = 10, 1_000, 25, 8
SCAFFOLDS = ("once", "linear", "fan_out_2", "fan_out_4", "durable")
COUNT = SUITES * CASES * MODELS * len(SCAFFOLDS) * TRIALS
ARM = ("driver", "model", "scaffold")


def table() -> Any:
    import numpy as np
    import pyarrow as pa

    rng = np.random.default_rng(0)
    order = rng.permutation(COUNT).astype(np.int32)
    chances = rng.beta(0.8, 0.6, size=COUNT // TRIALS)

    def words(each: int, names: list[str]) -> Any:
        """A column of names that change after every `each` of the ordered trials, and go round."""
        return pa.DictionaryArray.from_arrays((order // each % len(names)).astype(np.int32), pa.array(names))

    models = TRIALS * len(SCAFFOLDS)
    cases = models * MODELS
    solved = rng.random(COUNT) < chances[order // TRIALS]
    return pa.table(
        {
            "suite": words(cases * CASES, [f"suite-{n}" for n in range(SUITES)]),
            "case_id": words(cases, [f"suite-{n}-{m:04}" for n in range(SUITES) for m in range(CASES)]),
            "driver": words(COUNT, ["chat"]),
            "model": words(models, [f"model-{n}" for n in range(MODELS)]),
            "scaffold": words(TRIALS, list(SCAFFOLDS)),
            "trial": order % TRIALS + 1,
            "solved": solved,
            "excluded": pa.DictionaryArray.from_arrays(
                pa.nulls(COUNT, pa.int32()), pa.array([], pa.string())
            ),
            "cost_micros": (rng.lognormal(9, 1, size=COUNT) * (2 - solved)).astype(np.int64),
        }
    )


def by_polars(path: str) -> Any:
    """The same figures by two group-bys."""
    import polars as pl

    rows = pl.scan_parquet(path) if path.endswith(".parquet") else pl.scan_ipc(path)
    judged = pl.col("excluded").is_null() & pl.col("solved").is_not_null()
    cases = rows.group_by(*ARM, "suite", "case_id").agg(
        (judged & pl.col("solved")).sum().cast(pl.Int64).alias("solved"),
        judged.sum().cast(pl.Int64).alias("n"),
        pl.len().cast(pl.Int64).alias("of"),
        pl.col("cost_micros").sum(),
        pl.col("cost_micros").null_count().alias("unknown"),
    )
    hats, value = [], pl.lit(1.0)
    for k in range(1, TRIALS + 1):
        value = value * (pl.max_horizontal(pl.col("solved") - k + 1, 0) / (pl.col("n") - k + 1))
        hats.append(value.filter(pl.col("n") >= k).mean().alias(f"pass_hat_{k}"))
    return (
        cases.group_by(*ARM)
        .agg(
            pl.col("n").sum(),
            pl.col("of").sum(),
            pl.len().cast(pl.Int64).alias("cases"),
            pl.col("solved").sum(),
            (pl.col("n").sum() == pl.col("of").sum()).alias("complete"),
            *hats,
            (pl.col("cost_micros").sum() / 1e6 / pl.col("solved").sum()).alias("cost_per_solved"),
            (pl.col("unknown").sum() > 0).alias("lower_bound"),
        )
        .with_columns(pl.col(*ARM).cast(pl.String))
        .collect()
    )


def by_us(path: str) -> Any:
    from agentbench_lab.analysis import metrics

    return metrics.summary(path)


def peak_mib() -> float:
    """The most memory this process ever held, mapped files among it."""
    import resource

    status = Path("/proc/self/status")
    if status.is_file():
        # on Linux the other figure begins with what the parent held when it started this process
        (line,) = (
            line for line in status.read_text(encoding="utf-8").splitlines() if line.startswith("VmHWM:")
        )
        return int(line.split()[1]) / (1 << 10)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)


def side(name: str, path: str) -> None:
    """One side, in this process: print its milliseconds and its peak memory as JSON."""
    work: Callable[[str], Any] = {"ours": by_us, "polars": by_polars}[name]
    work(path)
    spent = []
    for _ in range(3):
        began = time.perf_counter()
        work(path)
        spent.append(1e3 * (time.perf_counter() - began))
    print(json.dumps([median(spent), peak_mib()]))


def measure(suffix: str, write: Callable[[Any, str], None], goal: float) -> int:
    """Both sides in turn on a file that `write` makes; 1 when ours is too slow, or needs more memory."""
    peaks: dict[str, list[float]] = {"ours": [], "polars": []}
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / f"trials{suffix}")
        write(table(), path)
        from polars.testing import assert_frame_equal

        assert_frame_equal(by_us(path).sort(ARM), by_polars(path).sort(ARM), rel_tol=1e-9)

        def of(name: str) -> Callable[[], float]:
            def run() -> float:
                done = subprocess.run(
                    [sys.executable, __file__, name, path], check=True, capture_output=True, encoding="utf-8"
                )
                spent, peak = json.loads(done.stdout)
                peaks[name].append(peak)
                return float(spent)

            return run

        print(f"{COUNT:,} trials in {Path(path).stat().st_size / 1e6:.0f} MB, a process a side and round")
        slow = compare(of("ours"), of("polars"), goal=goal, unit="ms", rounds=5, more=lambda: held(peaks))
    return max(slow, int(median(peaks["ours"]) > median(peaks["polars"])))


def held(peaks: dict[str, list[float]]) -> str:
    return f"peak memory: ours {median(peaks['ours']):.0f} MiB, other side {median(peaks['polars']):.0f} MiB"


if __name__ == "__main__":
    side(*sys.argv[1:])
