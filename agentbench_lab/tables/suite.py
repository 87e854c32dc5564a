"""What is in a suite."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentbench_lab.charts.words import counted
from agentbench_lab.ladder import RUNG_NAMES, in_order
from agentbench_lab.tables.table import Table, short

if TYPE_CHECKING:
    from agentbench_lab.cases import Case, Suite


def suite(suite: Suite) -> Table:
    """The groups of a suite: what each asks for, how many cases it has, and the request of the first."""
    by_group: dict[str, list[Case]] = {}
    for case in suite.cases:
        by_group.setdefault(case.group, []).append(case)
    rows = [
        [group, RUNG_NAMES.get(group, ""), str(len(by_group[group])), short(by_group[group][0].task.request, 90)]
        for group in in_order(by_group)
    ]  # fmt: skip
    columns = ["group", "what it asks for", ">cases", "the first request"]
    if not any(row[1] for row in rows):
        rows, columns = [[row[0], *row[2:]] for row in rows], [columns[0], *columns[2:]]
    about = [f"version {suite.version}" if suite.version else "", suite.date or ""]
    source = ", ".join(["digest " + suite.digest[:16], *(word for word in about if word)])
    note = f"{counted(len(suite.cases), 'case')} in {counted(len(by_group), 'group')}; {source}"
    return Table(f"The suite {suite.name}", columns, rows, [note])
