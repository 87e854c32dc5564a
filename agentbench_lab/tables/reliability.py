"""How reliably an arm solves its cases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agentbench_lab.charts import percent
from agentbench_lab.tables.table import Table, under_arms

if TYPE_CHECKING:
    import polars as pl


def reliability(frame: pl.DataFrame) -> Table:
    """pass^k, from a `metrics.reliability`: the estimate with the cases behind it, and the bounds that exclusions leave."""
    rows: list[Sequence[str] | str] = []
    for _, part in under_arms(frame, rows):
        for row in part.iter_rows(named=True):
            cases = f"{row['over_cases']} of {row['of_cases']} cases"
            bounds = "" if row["worst"] is None else f"{percent(row['worst'])} to {percent(row['best'])}"
            value = row["reason"] if row["estimate"] is None else percent(row["estimate"])
            rows.append([f"pass^{row['k']}", value, cases, f"{row['judged']}/{row['asked']}", bounds])
    notes = [
        "the chance that k trials of a case are all solved; bounds: excluded trials as failures, as successes"
    ]
    columns = ["", ">estimate", ">over", ">judged", ">bounds"]
    return Table("Reliability: pass^k", columns, rows, notes if rows else ["no trials"])
