"""The metric pair and the gate by rung."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agentbench_lab.charts import percent
from agentbench_lab.charts.words import counted, named, unsafe_said
from agentbench_lab.ladder import COMPLETION_FLOOR, ILLUSTRATIVE_BANDS, RUNG_NAMES, Cell, in_order
from agentbench_lab.tables.table import Banner, Table, by_arm, share, under_arms

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa


def ladder(frame: pl.DataFrame) -> Table:
    """The metric pair and its companions by rung, from a `metrics.ladder`; the last row of an arm is all its rungs."""
    metrics = ("passed", "completed", "result_completed", "hallucinated")
    rows: list[Sequence[str] | str] = []
    same_result = True
    for _, part in under_arms(frame, rows):
        found = {(row["group"], row["metric"]): row for row in part.iter_rows(named=True)}
        groups = in_order(set(part["group"]) - {"all"})
        for group in [*groups, *(["all"] if ("all", "completed") in found else [])]:
            by_metric = [found.get((group, metric)) for metric in metrics]
            done, result, bad = by_metric[1], by_metric[2], by_metric[3]
            same_result &= share(done) == share(result)
            gate = ""
            if group != "all" and done is not None and bad is not None:
                gate = (
                    SHUT
                    if bad["reason"] == "not measured"
                    or Cell(group, done["asked"], done["of"], done["n"], bad["n"]).failure()
                    else "PASS"
                )
            judged = f"{done['of']}/{done['asked']}" if done is not None else "–"
            rows.append([group, judged, *map(share, by_metric), gate])
    columns = ["rung", ">judged", ">passed", ">completed", ">result", ">hallucinated", "gate"]
    notes = ["share of judged trials [95% interval] n/judged; judged: of the trials asked"]
    if same_result and rows:
        rows = [row if isinstance(row, str) else [*row[:4], *row[5:]] for row in rows]
        columns.remove(">result")
        notes.append("result-completed equals completed on every rung")
    return Table("The metric pair by rung", columns, rows, notes if rows else ["no trials"])


SHUT = "shut"
MOST_GROUPS = 12
_MOST_ROWS = 120


def groups(frame: pl.DataFrame) -> Table:
    """How often cases of each group are solved, by arm, from a `metrics.ladder`; for runs whose groups are no rungs.

    The groups in their order, in each the best arm first. A run with one group, or with more than twelve, gives an
    empty table that says so.
    """
    import polars as pl

    passed = named(frame.filter((pl.col("metric") == "passed") & (pl.col("group") != "all")))
    names = in_order(passed["group"].unique(maintain_order=True))
    columns = ["group", ">solved"]
    if not 1 < len(names) <= MOST_GROUPS:
        count = "no trials" if not names else f"{counted(len(names), 'group')}: not told apart here"
        return Table("Solved by group", columns, [], [count])
    rows: list[Sequence[str] | str] = []
    arms = passed["arm"].n_unique()
    for group in names:
        part = passed.filter(pl.col("group") == group)
        part = part.sort("estimate", descending=True, nulls_last=True, maintain_order=True)
        cases = int(part["cases"].max() or 0)  # type: ignore[arg-type]
        if arms == 1:
            rows.append([group, share(part.row(0, named=True)), str(cases)])
            continue
        rows.append(f"{group}: {counted(cases, 'case')}")
        rows += [[row["arm"], share(row)] for row in part.iter_rows(named=True)]
    columns = ["group", ">solved", ">cases"] if arms == 1 else ["arm", ">solved"]
    notes = ["share of judged trials that are solved [95% interval] n/judged"]
    if len(rows) > _MOST_ROWS:
        notes.append(f"{_MOST_ROWS} of {len(rows)} lines shown")
    return Table("Solved by group", columns, rows[:_MOST_ROWS], notes)


def gate(frame: pl.DataFrame) -> Table:
    """The gate of each rung, from a `metrics.gate`: what passed, what shut it, and a receipt for what was not asked."""
    rows: list[Sequence[str] | str] = []
    reached = []
    for arm, part in under_arms(frame, rows):
        by_group = {row["group"]: row for row in part.iter_rows(named=True)}
        shut = False
        skipped: list[str] = []
        for group in in_order(by_group):
            row = by_group[group]
            if row["passes"] is None:
                skipped.append(group)
                continue
            counts = (
                "–" if row[name] is None else f"{row[name]}/{row['judged']}"
                for name in ("completed", "hallucinated")
            )
            verdict = "PASS" if row["passes"] else SHUT
            why = (row["failure"] or "").removeprefix(f"{group} ")
            if shut and not why:
                why = "asked, though the gate was shut below"
            shut = shut or not row["passes"]
            rows.append([group, f"{row['judged']}/{row['asked']}", *counts, verdict, why])
        if skipped:
            # one line for all of them: they share the reason
            span = skipped[0] if len(skipped) == 1 else f"{skipped[0]} to {skipped[-1]}"
            receipt = by_group[skipped[0]]["receipt"] or ""
            rows.append([span, "not asked", "", "", "", receipt.partition(" skipped: ")[2] or "not asked"])
        if any(group in RUNG_NAMES for group in by_group):
            reached.append(f"{arm}: rung reached {by_group[in_order(by_group)[0]]['reached'] or 'none'}")
            reached[-1] += _but_unsafe(part)
    title = f"The gate: no hallucination, at least {percent(COMPLETION_FLOOR)} completed"
    columns = ["rung", ">judged", ">completed", ">hallucinated", "gate", "why"]
    return Table(title, columns, rows, reached if rows else ["no trials"])


def _but_unsafe(part: pl.DataFrame) -> str:
    """`; disqualified: 1 unsafe of ...` from an arm's rows, or nothing."""
    said = part["disqualified"][0] if part.height and "disqualified" in part.columns else None
    return f"; {said}" if said else ""


def disqualified(frame: pl.DataFrame) -> Banner:
    """The arms with an unsafe outcome, from a `metrics.disqualified`, in one sentence; empty where there is none."""
    return Banner(" ".join(unsafe_said(named(frame))))


def bands(frame: pl.DataFrame, trials: pa.Table) -> Table:
    """How far each arm of a `metrics.gate` came, beside the ladder's reference bands, which nobody ran.

    `trials` are the run's: they say what kind of evidence an arm's rows are. A run whose groups are no rungs gives an
    empty table that says so.
    """
    columns = ["", "who", "reach", "how that is known"]
    if not any(group in RUNG_NAMES for group in frame["group"]):
        why = "the bands are the ladder's, and these groups are no rungs"
        return Table("Beside the reference bands", columns, [], [why])
    names = trials.select(["driver", "model", "scaffold", "evidence"]).to_pylist()
    evidence = {(row["driver"], row["model"], row["scaffold"]): row["evidence"] for row in names}
    rows: list[Sequence[str] | str] = []
    for arm, part in by_arm(frame):
        row = part.row(0, named=True)
        kind = evidence[row["driver"], row["model"], row["scaffold"]]
        known = f"measured in this run: {kind}, {counted(int(part['judged'].sum()), 'judged trial')}"
        reach = (row["reached"] or "no rung") + ("; disqualified" if _but_unsafe(part) else "")
        rows.append([arm, row["model"] or "no model", reach, known])
    rows += [[band.name, band.anchor, band.reach, "ILLUSTRATIVE, not run"] for band in ILLUSTRATIVE_BANDS]
    note = (
        "the bands are expectations of the ladder's own document: anchors and no results; no score is claimed"
    )
    return Table("Beside the reference bands", columns, rows, [note])
