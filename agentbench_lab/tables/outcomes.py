"""How trials ended and stopped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agentbench_lab.charts import arm_labels, percent
from agentbench_lab.tables.table import CLASS_WORDS, Table, share_of, short, under_arms

if TYPE_CHECKING:
    import polars as pl


def outcomes(frame: pl.DataFrame) -> Table:
    """How trials ended, from a `metrics.outcomes`: each outcome over the trials that could have ended so."""
    rows: list[Sequence[str] | str] = []
    for _, part in under_arms(frame, rows):
        for row in part.iter_rows(named=True):
            if row["n"] or row["over"] != "judged":
                over = "all judged trials" if row["over"] == "judged" else f"cases expecting {row['over']}"
                ends = share_of(row["estimate"], row["low"], row["high"]) if row["of"] else "–"
                words = CLASS_WORDS.get(row["outcome_class"], row["outcome_class"])
                rows.append([row["outcome"], words, f"{ends} {row['n']}/{row['of']}", over, row["label"]])
    note = "each outcome over its own denominator [95% interval]: shares of different denominators are never added together"
    columns = ["outcome", "class", ">share", "over", "meaning"]
    return Table("How trials ended", columns, rows, [note if rows else "no trials"])


def exits(frame: pl.DataFrame) -> Table:
    """How trials stopped and what they were judged to be, from a `metrics.exits`; each line is n of the trials."""
    rows: list[Sequence[str] | str] = []
    for _, part in under_arms(frame, rows):
        for row in part.iter_rows(named=True):
            cls = row["outcome_class"]
            words = "excluded" if cls is None else CLASS_WORDS.get(cls, cls)
            share = f"{percent(row['n'] / row['of'])} {row['n']}/{row['of']}"
            rows.append([row["stop"] or "not said", words, share, "█" * round(30 * row["n"] / row["of"])])
    note = "of all trials that ended, judged or not" if rows else "no trials"
    return Table("How trials stopped", ["stop", "judged as", ">share", "histogram"], rows, [note])


def failures(strip: pl.DataFrame, most: int = 25) -> Table:
    """The judged trials without success, with the first check that failed, from a `metrics.strip`; at most `most`."""
    import polars as pl

    named = strip.with_columns(pl.Series("arm", arm_labels(strip), dtype=pl.String))
    failed = named.filter(pl.col("outcome_class") != "success")
    # what is unsafe first: it disqualifies, and must not hide behind the cut
    failed = failed.sort(pl.col("outcome_class") != "unsafe", maintain_order=True)
    arms, trials = named["arm"].n_unique() > 1, named["trial"].n_unique() > 1
    rows: list[Sequence[str] | str] = []
    for row in failed.head(most).iter_rows(named=True):
        case = f"{row['case_id']} #{row['trial']}" if trials else row["case_id"]
        first, request = short(row["first_reason"] or ""), short(row["request"] or "")
        cells = [row["group"], case, row["arm"], row["outcome"], first, request]
        rows.append(cells if arms else [*cells[:2], *cells[3:]])
    columns = ["rung", "case", *(["arm"] if arms else []), "outcome", "first failed check", "request"]
    judged = strip["outcome_class"].drop_nulls().len()
    notes = [
        f"{len(rows)} of {failed.height} shown, unsafe ones first; {failed.height} of {judged} judged trials without "
        "success. All of them: agentbench-lab show RUN --failed"
    ]
    return Table("Trials without success", columns, rows, notes)
