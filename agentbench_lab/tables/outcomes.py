"""How trials ended and stopped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agentbench_lab.charts import arm_labels
from agentbench_lab.tables.table import Table, share_of, short, under_arms

if TYPE_CHECKING:
    import polars as pl


def outcomes(frame: pl.DataFrame) -> Table:
    """How trials ended, from a `metrics.outcomes`: each outcome over the trials that could have ended so."""
    rows: list[Sequence[str] | str] = []
    words = _class_words(frame)
    for _, part in under_arms(frame, rows):
        for row in part.iter_rows(named=True):
            if row["n"] or row["over"] != "judged":
                over = "all judged trials" if row["over"] == "judged" else f"cases expecting {row['over']}"
                ends = share_of(row["estimate"], row["low"], row["high"]) if row["of"] else "–"
                kind = words[row["outcome_class"]]
                rows.append([row["outcome"], kind, f"{ends} {row['n']}/{row['of']}", over, row["label"]])
    note = "each outcome over its own denominator [95% interval]: shares of different denominators are never added together"
    columns = ["outcome", "class", ">share", "over", "meaning"]
    notes = [note, *_unmeasured(words)] if rows else ["no trials"]
    return Table("How trials ended", columns, rows, notes)


def exits(frame: pl.DataFrame) -> Table:
    """How trials stopped and what they were judged to be, from a `metrics.exits`; each line is n of the trials."""
    rows: list[Sequence[str] | str] = []
    words = _class_words(frame)
    for _, part in under_arms(frame, rows):
        for row in part.iter_rows(named=True):
            share = f"{share_of(row['estimate'], row['low'], row['high'])} {row['n']}/{row['of']}"
            rows.append(
                [
                    row["stop"] or "not said",
                    words[row["outcome_class"]],
                    share,
                    "█" * round(30 * row["n"] / row["of"]),
                ]
            )
    about = "of all trials that ended, judged or not [95% interval]"
    notes = [about, *_unmeasured(words)] if rows else ["no trials"]
    return Table("How trials stopped", ["stop", "judged as", ">share", "histogram"], rows, notes)


def _class_words(frame: pl.DataFrame) -> dict[str | None, str]:
    """What to call each class. Where the source of imported trials reports nothing as unsafe, nothing is called safe."""
    unsafe = frame.filter(outcome_class="unsafe")["n"].sum()
    unmeasured = frame.height > 0 and frame["evidence"].is_in(["imported"]).all() and not unsafe
    safe = "no success" if unmeasured else "safe, no success"
    return {"success": "success", "safe_non_success": safe, "unsafe": "unsafe", None: "excluded"}


def _unmeasured(words: dict[str | None, str]) -> list[str]:
    return ["imported: safety was not measured"] if words["safe_non_success"] == "no success" else []


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
        "success. All of them: agentbench-lab show RUN --failed --all"
    ]
    return Table("Trials without success", columns, rows, notes)
