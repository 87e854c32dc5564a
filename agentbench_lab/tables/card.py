"""Where the numbers of a run come from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agentbench_lab.errors import counted
from agentbench_lab.tables.table import Banner, Table

if TYPE_CHECKING:
    from agentbench_lab.results.run import ArmCard, Envelope, Run

RUN_MIME = "application/vnd.agentbench-lab.run+json"
"""The output type by which a published notebook is traced to its run."""


def run_card(run: Run) -> Table:
    """The provenance of a run as a table; a notebook also keeps it as JSON, so that a report leads to its run."""
    import polars as pl

    from agentbench_lab.analysis.metrics import disqualified
    from agentbench_lab.analysis.metrics.arms import ARM, full_name

    card = run.card

    def arm(item: ArmCard | Envelope) -> str:
        return " + ".join(part for part in (item.driver, item.model, item.scaffold) if part)

    def listed(items: Mapping[str, Any]) -> str:
        return ", ".join(f"{name} {value}" for name, value in sorted(items.items())) or "none"

    folder = run.path.name if run.path is not None else "not saved"
    options = {name: value for name, value in card.options.items() if value not in ("", None, [])}
    counts = {name: getattr(card.counts, name) for name in ("asked", "judged", "excluded", "missing")}
    rows = [["stamp", card.stamp], ["commit", card.commit]]
    for suite in card.suites:
        about = ", ".join(part for part in (suite.version, suite.date, counted(suite.cases, "case")) if part)
        rows.append(["suite", f"{suite.name} {suite.digest[:16]} ({about})"])
    rows += [["arm", f"{arm(each)}: {each.evidence}, version {each.version[:16]}"] for each in card.arms]
    rows.append(["trials", ", ".join(f"{count} {name}" for name, count in counts.items())])
    rows += [["rung reached", f"{arm(each)}: {each.reached or 'none'}"] for each in card.envelope]
    unsafe = disqualified(run.trials).filter(pl.col("said").is_not_null())
    rows += [
        ["disqualified", f"{full_name(*key)}: {said.removeprefix('disqualified: ')}"]
        for *key, said in unsafe.select(*ARM, "said").iter_rows()
    ]
    rows += [["seed", str(card.seed)], ["options", listed(options)], ["versions", listed(card.versions)]]
    rows += [["started", card.started_at], ["run folder", folder]]
    data = {
        "path": str(run.path.resolve()) if run.path is not None else "",
        "stamp": card.stamp,
        "commit": card.commit,
        "arms": [full_name(each.driver, each.model, each.scaffold) for each in card.arms],
        "suites": [{"name": suite.name, "digest": suite.digest} for suite in card.suites],
        "counts": counts,
        "evidence": list(card.evidence),
        "parameters": {name: str(value) for name, value in options.items()},
        "versions": dict(card.versions),
        "started_at": card.started_at,
    }
    return Table("Run card", ["what", "value"], rows, data={RUN_MIME: data})


def banner(run: Run) -> Banner:
    """A plain, loud line when a run did not ask a model; empty for live evidence."""
    words = {"simulated": "simulated: no model was asked", "replayed": "a replay of recorded answers"}
    lines = [
        f"{arm.evidence.upper()}: driver {arm.driver} is {arm.banner or words[arm.evidence]}"
        for arm in run.card.arms
        if arm.evidence in words
    ]
    return Banner(". ".join(dict.fromkeys(lines)))
