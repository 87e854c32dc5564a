"""Frames as `metrics` makes them, by hand, and executed notebooks that show them, without a kernel."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nbformat
import polars as pl

from agentbench_lab import charts, tables
from agentbench_lab.analysis.stats import wilson
from agentbench_lab.ladder import Cell, climb
from agentbench_lab.reports.display import _bundle

RUNGS = [f"TOOL-{n}" for n in range(10)]
NASTY = 'close it: </script><img src=x onerror="window.hit=1"> & <!-- <b>done</b>'
NASTY_ID = 'a"b<c'


def strip(
    drivers: Sequence[str] = ("stub",),
    *,
    groups: Sequence[str] = RUNGS,
    cases: int = 4,
    trials: int = 1,
    request: str = "Who calls it?",
    case_id: str = "",
    excluded: int = 0,
) -> pl.DataFrame:
    """A `metrics.strip`: lower rungs succeed, upper ones fail, the last driver of several does something unsafe."""
    rows: list[dict[str, Any]] = []
    for at, driver in enumerate(drivers):
        for n, group in enumerate(groups):
            for case in range(cases):
                for trial in range(1, trials + 1):
                    kind, outcome = "success", "correct_calls"
                    if case >= cases - n // 2 + at:
                        kind, outcome = "safe_non_success", "wrong_calls"
                    if at and at == len(drivers) - 1 and n == 5 and case == 0:
                        kind, outcome = "unsafe", "hallucinated_call"
                    out = len(rows) < excluded
                    rows.append(
                        {
                            "driver": driver,
                            "model": None,
                            "scaffold": "once",
                            "evidence": "live" if at else "simulated",
                            "group": group,
                            "case_id": case_id or f"{group}-{case}",
                            "trial": trial,
                            "outcome": None if out else outcome,
                            "outcome_class": None if out else kind,
                            "excluded": "harness: no disk" if out else None,
                            "reasons": "" if kind == "success" else "0 calls where 1 is expected; not proven",
                            "first_reason": None if kind == "success" else "0 calls where 1 is expected",
                            "request": request,
                        }
                    )
    texts = ("model", "outcome", "outcome_class", "excluded", "first_reason")
    return pl.DataFrame(rows, schema_overrides=dict.fromkeys(texts, pl.String))


def ladder(frame: pl.DataFrame) -> pl.DataFrame:
    """The `metrics.ladder` of a strip, where completed is success and hallucinated is unsafe."""
    rows: list[dict[str, Any]] = []
    for (driver, scaffold, evidence), part in frame.group_by(
        "driver", "scaffold", "evidence", maintain_order=True
    ):
        groups = list(part["group"].unique(maintain_order=True))
        cells = {group: _cell(part.filter(pl.col("group") == group), group) for group in groups}
        reached = climb(cells, [group for group in groups if group in RUNGS]).reached
        for group in [*groups, "all"]:
            mine = part if group == "all" else part.filter(pl.col("group") == group)
            kinds = mine["outcome_class"].drop_nulls()
            for metric in ("passed", "completed", "result_completed", "hallucinated"):
                n = int((kinds == ("unsafe" if metric == "hallucinated" else "success")).sum())
                interval = wilson(n, len(kinds))
                rows.append(
                    {
                        "driver": driver,
                        "model": None,
                        "scaffold": scaffold,
                        "evidence": evidence,
                        "group": group,
                        "metric": metric,
                        "estimate": n / len(kinds) if len(kinds) else None,
                        "low": interval[0] if interval else None,
                        "high": interval[1] if interval else None,
                        "n": n,
                        "of": len(kinds),
                        "asked": mine.height,
                        "cases": mine["case_id"].n_unique(),
                        "estimator": "wilson",
                        "reason": None if len(kinds) else "no trial was judged",
                        "reached": reached,
                    }
                )
    schema: dict[str, Any] = {**dict.fromkeys(("model", "reason", "reached"), pl.String)}
    schema |= dict.fromkeys(("estimate", "low", "high"), pl.Float64)
    return pl.DataFrame(rows, schema_overrides=schema)


def _cell(part: pl.DataFrame, group: str) -> Cell:
    kinds = part["outcome_class"].drop_nulls()
    return Cell(
        group, part.height, len(kinds), int((kinds == "success").sum()), int((kinds == "unsafe").sum())
    )


RUN = {
    "path": "/somewhere/ladder-0.1.0-1a2b",
    "stamp": "0.1.0",
    "commit": "0123abc",
    "suites": [{"name": "ladder", "digest": "f" * 64}],
    "counts": {"asked": 40, "judged": 39, "excluded": 1, "missing": 0},
    "evidence": ["simulated"],
    "parameters": {},
    "versions": {"polars": "2.1.0"},
    "started_at": "2026-11-29T21:00:00Z",
}


def shown(value: Any) -> Any:
    """What a notebook keeps of a value at the end of a cell."""
    if isinstance(value, tables.Table):
        data = {"text/html": value._repr_html_(), "text/plain": str(value), **value.data}
    elif hasattr(value, "to_dict"):
        data = _bundle(value.to_dict())
    else:
        data = dict(value)
    return nbformat.v4.new_output("execute_result", data, execution_count=1)


def executed(path: Path, *values: Any, name: str = "run_ladder.ipynb", markdown: str = "") -> Path:
    """Write an executed notebook whose cells show `values`; returns its path."""
    cells = [nbformat.v4.new_markdown_cell("# How high?\n\nA question.")]
    if markdown:
        cells.append(nbformat.v4.new_markdown_cell(markdown))
    for value in values:
        cells.append(nbformat.v4.new_code_cell("show < 1", outputs=[shown(value)], execution_count=1))
    notebook = nbformat.v4.new_notebook(cells=cells)
    notebook.metadata["papermill"] = {"input_path": name, "parameters": {"driver": "stub"}, "duration": 4.25}
    nbformat.validate(notebook)
    path.write_text(nbformat.writes(notebook), encoding="utf-8")
    return path


def report(path: Path, frame: pl.DataFrame) -> Path:
    """An executed notebook with both charts, their tables and a run card."""
    card = tables.Table("Run card", ["what", "value"], [["stamp", "0.1.0"]], data={tables.RUN_MIME: RUN})
    pair = ladder(frame)
    return executed(
        path, charts.ladder(pair), tables.ladder(pair), charts.outcomes(frame), tables.failures(frame), card
    )
