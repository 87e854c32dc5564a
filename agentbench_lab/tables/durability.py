"""The cost of a solved trial of each durable arm and of its bare scaffold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agentbench_lab.charts.durable import durable_claim, durable_sentences, parted, priced, times
from agentbench_lab.charts.words import evidence, listed, named
from agentbench_lab.tables.table import Paragraphs, Table

if TYPE_CHECKING:
    import polars as pl

_NONE = "No arm was run both durable and bare, so that what finished steps on disk are worth is not known."


def durability(found: pl.DataFrame) -> Table:
    """What a solved trial costs with every finished step on disk and without, from a `metrics.durability`: over all, by width,
    and with the widths weighing alike."""
    title = "What a solved trial costs, durable and bare"
    if found.is_empty():
        return Table(title, ["arm"], [], [_NONE])
    rows: list[Sequence[str] | str] = []
    for name, mine in parted(found):
        rows.append(f"{name} beside {mine[0]['bare']}")
        for row in mine:
            over = {"all": "all cases", "alike": "widths alike"}.get(row["over"], f"width {row['width']}")
            cells = [
                f"{row['n']}/{row['of']}",
                priced(row),
                f"{row['bare_n']}/{row['bare_of']}",
                priced(row, "bare_"),
            ]
            less = {"less": "durable", "more": "bare", None: "not known"}.get(row["verdict"], row["verdict"])
            rows.append([over, str(row["cases"]), *cells, times(row), less])
    columns = [
        "over",
        ">cases",
        ">solved",
        ">a solved one",
        ">bare, solved",
        ">a solved one",
        ">times",
        "costs less",
    ]
    estimators = list(found["estimator"].drop_nulls().unique(maintain_order=True))
    notes = [
        f"what all judged trials cost by those solved, over the cases that both judged [95% interval: {listed(estimators)}]; times: "
        "the durable arm's by the bare one's, the wider of bootstrap and Student's t over cases",
        "all cases: each arm is priced for what it solves, which may be narrow and cheap; widths alike: both for as many solved "
        "trials of each width as it has cases",
    ]
    if any((found[f"{side}floors"] > 0).any() for side in ("", "bare_")):
        notes.append("≥: a lower bound, since an attempt was killed with what it had used")
    notes += [f"–: {why}" for why in found["reason"].drop_nulls().unique(maintain_order=True)]
    return Table(title, columns, rows, [*notes, evidence(named(found))])


def durability_says(found: pl.DataFrame) -> Paragraphs:
    """The same in plain sentences: what it comes to, then a text a durable arm."""
    if found.is_empty():
        return Paragraphs((_NONE,))
    return Paragraphs((durable_claim(found), *durable_sentences(found), f"{evidence(named(found))}."))
