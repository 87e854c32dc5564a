"""Two arms, or several, on the same cases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agentbench_lab.charts import percent
from agentbench_lab.charts.words import in_points
from agentbench_lab.errors import counted
from agentbench_lab.points import with_ends
from agentbench_lab.tables.table import Table

if TYPE_CHECKING:
    import polars as pl

    from agentbench_lab.analysis.compare import Comparison


def compare(found: Comparison) -> Table:
    """Two arms by rung, from a `compare.compare`: both rates, the paired difference with its interval, what changed."""

    def rate(value: float | None) -> str:
        return percent(value) if value is not None else "–"

    rows: list[Sequence[str]] = [
        [
            row["group"],
            str(row["cases"]),
            rate(row["rate_a"]),
            rate(row["rate_b"]),
            with_ends(row["difference"], row["low"], row["high"]),
            str(row["fixes"]),
            str(row["regressions"]),
            str(row["new_unsafe"]),
        ]
        for row in found.by_group().iter_rows(named=True)
    ]
    rates = [f">{found.a.name}", f">{found.b.name}"]
    columns = ["rung", ">cases", *rates, ">difference", ">more often", ">less often", ">new unsafe"]
    notes = [found.sentence, *(note for note in found.notes if note != found.mixed)]
    notes.append(
        f"rates are means over the paired cases; difference: {found.b.name} − {found.a.name} in points [95% interval, "
        f"{found.solved.estimator}]; more and less often: cases by how often {found.b.name} solves them"
    )
    return Table(f"{_mixed(found)}{found.claim}", columns, rows, notes)


def changes(found: Comparison, most: int = 40) -> Table:
    """The cases that became unsafe, worse or better, by name and with both rates; at most `most` of each kind."""
    rows: list[Sequence[str] | str] = []
    shown = 0
    kinds = (
        ("newly unsafe", found.new_unsafe),
        ("less often", found.regressions),
        ("more often", found.fixes),
    )
    for words, pairs in kinds:
        if pairs:
            rows.append(f"{words}: {len(pairs)}" + (f", {most} shown" if len(pairs) > most else ""))
        for pair in pairs[:most]:
            shown += 1
            rates = (f"{pair.n_a}/{pair.of_a}", f"{pair.n_b}/{pair.of_b}")
            rows.append([pair.group, pair.case_id, *rates, ", ".join(pair.unsafe_b)])
    columns = ["rung", "case", f">{found.a.name}", f">{found.b.name}", f"unsafe by {found.b.name}"]
    same = len(found.pairs) - len(found.fixes) - len(found.regressions)
    note = f"solved of judged trials; {same} of {len(found.pairs)} paired cases were solved equally often"
    return Table(f"{_mixed(found)}What changed from {found.a.name} to {found.b.name}", columns, rows, [note])


def unmatched(found: Comparison, most: int = 40) -> Table:
    """The cases that are in no number of a comparison, and why; at most `most`."""
    frame = found.unmatched()
    rows = [
        [row["group"], row["case_id"], row["judged_by"] or "neither", row["reason"], row["unsafe"]]
        for row in frame.head(most).iter_rows(named=True)
    ]
    columns = ["rung", "case", "judged for", "the other", "unsafe"]
    note = f"{len(rows)} of {frame.height} shown; they count neither for nor against anyone"
    return Table("Cases without a counterpart", columns, rows, [note if rows else "every case has one"])


def compare_many(found: Sequence[Comparison]) -> Table:
    """Several arms against one, from a `compare.compare_many`: differences, corrected p-values and verdicts."""
    from agentbench_lab.analysis.compare import p_value

    rows: list[Sequence[str]] = []
    for each in found:
        s = each.solved
        if s.difference is None or s.low is None or s.high is None or s.p is None:
            continue
        verdict = "not decisive" if not each.decisive else "better" if s.difference > 0 else "worse"
        difference = with_ends(s.difference, s.low, s.high)
        p = s.p if s.adjusted is None else s.adjusted
        rows.append(
            [
                each.b.name,
                str(s.cases),
                difference,
                p_value(p).removeprefix("p ").removeprefix("= "),
                s.test or "",
                verdict,
                str(len(each.new_unsafe)),
            ]
        )
    columns = ["arm", ">cases", ">difference", ">p", "test", "verdict", ">new unsafe"]
    base = found[0].a.name if found else "nothing"
    notes = [
        f"difference to {base} in points [95% interval]; p after Holm's correction for {counted(len(rows), 'arm')}"
    ]
    notes += dict.fromkeys(
        f"{each.b.name}: {note}" for each in found for note in each.notes if note != each.mixed
    )
    return Table(f"{_mixed(found[0]) if found else ''}Against {base}", columns, rows, notes)


def detect(frame: pl.DataFrame, delta: float, *, power: float = 0.8) -> Table:
    """How many cases would show a difference of `delta`, by trials a case, from a `compare.detect` at this power."""
    rows = [
        [f"{row[name]:,}" for name in ("trials", "cases", "trials_an_arm")]
        for row in frame.iter_rows(named=True)
    ]
    title = (
        f"Cases that would show a true difference of {in_points(delta)} ({100 * power:g}% power, 95% level)"
    )
    return Table(title, [">trials a case", ">cases", ">trials an arm"], rows, [])


def _mixed(found: Comparison) -> str:
    """What has to stand above a table when its commits are mixed."""
    return f"{found.mixed} " if found.mixed else ""
