"""Frames as `metrics` makes them, by hand, and executed notebooks that show them, without a kernel."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nbformat
import polars as pl

from agentbench_lab import charts, tables
from agentbench_lab.ladder import Cell, climb
from agentbench_lab.reports.display import _bundle
from agentbench_lab.stats import wilson

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
                            "suite": "s",
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


# ---- frames of repeats, money and calls ------------------------------------------------------------------------


def arm(name: str) -> dict[str, Any]:
    """`driver`, `driver/model` or `driver/model/scaffold`."""
    parts = [*name.split("/"), "", ""]
    return {"driver": parts[0], "model": parts[1] or None, "scaffold": parts[2] or "once"}


def reliability(
    curves: dict[str, Sequence[float | None]],
    *,
    cases: int = 80,
    complete: bool = True,
    reason: str = "not asked for 3 trials: c1",
    evidence: str = "imported",
    common: int | None = None,
) -> pl.DataFrame:
    """A `metrics.reliability` of these pass^1, pass^2, ...; None is a k without an estimate. pass@k mirrors them."""
    rows: list[dict[str, Any]] = []
    for name, values in curves.items():
        for metric in ("pass_hat_k", "pass_at_k"):
            for k, value in enumerate(values, start=1):
                if value is not None and metric == "pass_at_k":
                    value = min(1.0, 2 * (values[0] or 0.0) - value)
                known = value is not None
                rows.append(
                    {
                        **arm(name), "evidence": evidence, "metric": metric, "k": k, "estimate": value,
                        "low": max(0.0, value - 0.1) if value is not None else None,
                        "high": min(1.0, value + 0.1) if value is not None else None,
                        "n": cases if complete else cases - 2, "of": cases, "common": cases if common is None else common, "worst": value, "best": value,
                        "judged": cases * len(values) - (0 if complete else 2), "asked": cases * len(values),
                        "complete": complete, "short": [] if complete else ["c7", "c9"],
                        "estimator": f"{metric}.unbiased, wilson over cases", "reason": None if known else reason,
                    }
                )  # fmt: skip
    schema: dict[str, Any] = dict.fromkeys(("model", "reason"), pl.String)
    schema |= dict.fromkeys(("estimate", "low", "high", "worst", "best"), pl.Float64)
    return pl.DataFrame(rows, schema_overrides={**schema, "short": pl.List(pl.String)})


def crossing(a: str, b: str, *, share: float | None = 0.37, decided: bool = False) -> pl.DataFrame:
    """A `metrics.crossings` of one pair: +2.0 points at k = 1, -2.5 at k = 5."""
    both = {f"{key}_{side}": value for side, name in (("a", a), ("b", b)) for key, value in arm(name).items()}
    ends = (-0.045, 0.085), (-0.1375, 0.0875)
    if decided:
        ends = (0.01, 0.03), (-0.04, -0.01)
    known = share is not None
    numbers = {
        "k_last": 5, "first": 0.02, "first_low": ends[0][0] if known else None, "first_high": ends[0][1] if known else None,
        "last": -0.025, "last_low": ends[1][0] if known else None, "last_high": ends[1][1] if known else None,
        "share": share, "cases": 80, "decided": decided,
    }  # fmt: skip
    return pl.DataFrame([{**both, **numbers}], schema_overrides={"model_a": pl.String, "model_b": pl.String})


def histogram(counts: dict[str, dict[int, Sequence[int]]]) -> pl.DataFrame:
    """A `metrics.histogram`: arm -> judged trials -> cases by how many of them were solved."""
    rows = [
        {
            **arm(name),
            "evidence": "imported",
            "judged": judged,
            "solved": solved,
            "cases": cases,
            "of": sum(each),
            "estimate": cases / sum(each) if judged else None,
            **dict(
                zip(
                    ("low", "high"),
                    (wilson(cases, sum(each)) if judged else None) or (None, None),
                    strict=True,
                )
            ),
            "estimator": "wilson over cases",
        }
        for name, by_judged in counts.items()
        for judged, each in by_judged.items()
        for solved, cases in enumerate(each)
    ]
    return pl.DataFrame(rows, schema_overrides={"model": pl.String})


def cost(
    per_solved: dict[str, float | None],
    *,
    partly: Sequence[str] = (),
    reason: str = "no trial was solved",
    spread: float = 1.25,
) -> pl.DataFrame:
    """A `metrics.cost` of these dollars per solved trial over 10 solved of 40; None is an arm without."""
    rows: list[dict[str, Any]] = []
    for name, value in per_solved.items():
        n = 30 if name in partly else 40
        some = name in partly
        head = {
            **arm(name),
            "evidence": "imported",
            "n": n,
            "of": 40,
            "solved": 10 if value is not None else 0,
        }
        for metric, unit, estimate in (
            ("spent", "usd", 10 * value if value is not None else 4.0),
            ("per_trial", "usd", value / 4 if value is not None else 0.1),
            ("per_solved", "usd", value),
            ("failures", "share", 0.75),
            ("tokens_fresh_input", "tokens", 12345.6),
            ("tokens_cache_read", "tokens", None),
            ("wall_s", "s", 12.5),
        ):
            bare = estimate is None or metric == "spent" or (metric == "per_solved" and some)
            rows.append(
                {
                    **head, "metric": metric, "unit": unit, "total": 10 * value if value is not None else None,
                    "estimate": estimate, "low": None if bare else estimate / spread, "high": None if bare else estimate * spread,
                    "lower_bound": some, "estimator": "ratio of sums, bootstrap over cases",
                    "reason": reason if estimate is None else None,
                }
            )  # fmt: skip
    schema: dict[str, Any] = dict.fromkeys(("model", "reason"), pl.String)
    schema |= dict.fromkeys(("total", "estimate", "low", "high"), pl.Float64)
    return pl.DataFrame(rows, schema_overrides=schema)


def frontier(
    places: dict[str, tuple[float | None, float | None]], *, partly: Sequence[str] = ()
) -> pl.DataFrame:
    """A `metrics.frontier` of these accuracies and dollars a trial."""
    rows: list[dict[str, Any]] = []
    for name, (accuracy, dollars) in places.items():
        known = accuracy is not None and dollars is not None
        beats = [
            other
            for other, (a, c) in places.items()
            if other != name and known and a is not None and c is not None and a >= accuracy and c <= dollars  # type: ignore[operator]
        ]
        rows.append(
            {
                **arm(name), "evidence": "imported", "accuracy": accuracy,
                "accuracy_low": accuracy - 0.05 if accuracy is not None else None,
                "accuracy_high": accuracy + 0.05 if accuracy is not None else None,
                "cost": dollars, "cost_low": dollars / 1.1 if dollars is not None else None,
                "cost_high": dollars * 1.1 if dollars is not None else None,
                "n": 30 if name in partly else 40 if dollars is not None else 0, "of": 40, "cases": 20 if known else None,
                "on_frontier": not beats if known and name not in partly else None,
                "membership": (0.1 if beats else 0.83) if known and name not in partly else None,
                "dominated_by": " + ".join(beats[0].split("/")) if beats else None, "lower_bound": name in partly,
                "estimator": "accuracy share, wilson over cases; cost mean, bootstrap over cases",
                "reason": None if known else "the cost is not known of any trial",
            }
        )  # fmt: skip
    schema: dict[str, Any] = dict.fromkeys(("model", "reason", "dominated_by"), pl.String)
    schema |= dict.fromkeys(
        ("accuracy", "accuracy_low", "accuracy_high", "cost", "cost_low", "cost_high", "membership"),
        pl.Float64,
    )
    return pl.DataFrame(rows, schema_overrides={**schema, "on_frontier": pl.Boolean, "cases": pl.Int64})
