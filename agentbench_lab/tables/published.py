"""What a source published, beside what its own rows give."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentbench_lab.tables.table import Banner, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentbench_lab.results.run import Published, Run

_MOST = 4  # in a line; the table has all
_ERROR_BARS = ("stderr",)  # a wrong one is no reason to doubt the number that it belongs to


def doubted(run: Run) -> frozenset[tuple[str, str | None]]:
    """The arms, as driver and model, of which a published number does not follow from their own rows."""
    return frozenset((one.driver, one.model) for one in _contradicted(run) if one.driver)


def contradicted(run: Run) -> Banner:
    """A line that names the published numbers which do not follow from the rows; empty where all follow."""
    found = [str(one) for one in _contradicted(run)]
    more = f"; and {len(found) - _MOST} more" if len(found) > _MOST else ""
    return Banner(f"PUBLISHED OTHERWISE: {'; '.join(found[:_MOST])}{more}" if found else "")


def _contradicted(run: Run) -> list[Published]:
    numbers = () if run.card.imported is None else run.card.imported.published
    return [one for one in numbers if not one.follows and one.metric not in _ERROR_BARS]


def published(run: Run, *, follows: bool | None = None) -> Table:
    """The numbers that the source of an imported run published, and whether they follow from its rows.

    Those that do not follow stand first. `follows`: only those that do (True) or do not (False). A run that was not
    imported, and a source that published nothing, give an empty table that says so.
    """
    from agentbench_lab.analysis.metrics.arms import full_name

    imported = run.card.imported
    numbers: Sequence[Any] = () if imported is None else getattr(imported, "published", ())
    columns = ["arm", "metric", ">published", ">its rows give", "follows", "what may explain it"]
    if not numbers:
        why = (
            "the run was made here: nothing of it was published elsewhere"
            if imported is None
            else "the source publishes no numbers beside its rows"
        )
        return Table("Published numbers", columns, [], [why])  # fmt: skip
    kept = [one for one in numbers if follows is None or bool(one.follows) == follows]
    rows = [
        [
            full_name(one.driver, one.model, getattr(one, "scaffold", "once")) or "all of it",
            one.metric,
            _said(one.published, getattr(one, "unit", "")),
            _said(one.rows, getattr(one, "unit", "")),
            "yes" if one.follows else "NO",
            one.note or "",
        ]
        for one in sorted(kept, key=lambda one: bool(one.follows))
    ]
    if not any(row[-1] for row in rows):
        columns, rows = columns[:-1], [row[:-1] for row in rows]
    good = sum(bool(one.follows) for one in numbers)
    notes = [f"{good} of {len(numbers)} published numbers follow from the published rows"]
    return Table("Published numbers", columns, rows, notes)


def _said(value: float | None, unit: str) -> str:
    """A number as closely as sources print theirs: 41.25%, $360.62, 38.042 calls."""
    if value is None:
        return "–"
    if unit == "share":
        return f"{100 * value:.4g}%"
    if unit == "usd":
        return f"${value:,.6g}"
    return f"{value:,.6g} {unit}".strip()
