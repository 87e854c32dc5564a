"""Each arm against a baseline: the verdicts, and the paragraph that states them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from agentbench_lab.charts.words import evidence, in_points, listed, percent, unsafe_said, users_said
from agentbench_lab.charts.worth import (
    amount,
    claims,
    floors,
    gain,
    ratio,
    sentences,
    verdict_words,
    with_arms,
)
from agentbench_lab.tables.table import Paragraphs, Table, share_of

if TYPE_CHECKING:
    import polars as pl

_ARM = ("driver", "model", "scaffold")


def ablation(found: pl.DataFrame) -> Table:
    """The verdict on each arm, from a `metrics.ablation`: over all cases, then by width and group, with intervals."""
    title = "Does it pay for itself?"
    if found.is_empty():
        return Table(title, ["arm"], [], ["no trials"])
    named = with_arms(found)
    if named["width"].drop_nulls().n_unique() == 1:
        named = named.filter(named["over"] != "width")  # it would say the same again
    rows: list[Sequence[str] | str] = []
    reasons: dict[str, list[str]] = {}
    retried = bool((named["attempts"] > named["of"]).any())
    for arm in named["arm"].unique(maintain_order=True):
        mine = named.filter(named["arm"] == arm).to_dicts()
        if all(row["is_baseline"] for row in mine):
            rows.append(f"{arm}, the baseline")
            rows += [_own(row, retried) for row in mine]
            continue
        rows.append(f"{arm} against {mine[0]['against'] or 'nothing'}")
        for row in mine:
            rows.append(_row(row, retried))
            if row["reason"]:
                reasons.setdefault(row["reason"], []).append(f"{arm}, {_over(row)}")
    unit = {"tokens": "tokens", "usd": "dollars"}.get(found["cost_unit"][0], "costs")
    columns = [
        "over",
        ">cases",
        ">accuracy",
        *([">attempts"] if retried else []),
        ">difference",
        ">a trial",
        ">cost ratio",
        "verdict",
    ]
    margin, cost_margin = found.select("margin", "cost_margin").row(0)
    notes = [
        f"difference of accuracy in points and ratio of {unit}, over the cases that both judged [95% interval, {_how(found)}]; "
        f"within {in_points(margin)} or {100 * cost_margin:g}% of cost is no difference",
        "accuracy: solved of judged trials of the arm's own; a trial: what one costs on average; verdicts are not corrected "
        "for their number",
    ]
    if retried:
        notes.append("attempts: those of the judged trials; what all of them used is in the cost")
    bound = floors(named)
    if bound:
        notes.append(bound)
    notes += users_said(named)
    if any(row["needed"] for row in named.to_dicts()):
        notes.append(
            "undecided (about n more): so many more cases would decide, were the numbers seen the true ones"
        )
    unpaired = list(dict.fromkeys(case for row in named.to_dicts() for case in row["unpaired"] or []))
    if unpaired:
        notes.append(f"in no difference: {listed(unpaired)}")
    unsafe = [
        f"{row['arm']} {row['unsafe']}, {row['against']} {row['baseline_unsafe']}"
        for row in named.filter(named["over"] == "all").to_dicts()
        if row["unsafe"] or row["baseline_unsafe"]
    ]
    if unsafe:
        notes.append(
            f"unsafe outcomes on the paired cases, which no verdict makes up for: {'; '.join(unsafe)}"
        )
    notes += [f"{why}: {listed(rows_of, 2)}" for why, rows_of in reasons.items()]
    return Table(title, columns, rows, [*notes, evidence(named)])


def ablation_says(found: pl.DataFrame, where: pl.DataFrame, unsafe: pl.DataFrame | None = None) -> Paragraphs:
    """The result in plain sentences and its evidence, from a `metrics.ablation` and its `metrics.where_it_pays`; with the
    run's `metrics.disqualified` the first of them also says which arms no verdict helps."""
    if found.is_empty():
        return Paragraphs(("There are no trials, so nothing can be said.",))
    import polars as pl

    named = with_arms(found)
    short = "; ".join(claims(named, where)) or "There is nothing to compare: only the baseline was asked"
    *arms, basis = sentences(named, where)
    if unsafe is not None:
        called = {tuple(key): name for *key, name in named.select(*_ARM, "arm").iter_rows()}
        keys = [called.get(tuple(key), key[0]) for key in unsafe.select(_ARM).iter_rows()]
        short = " ".join([f"{short}.", *unsafe_said(unsafe.with_columns(pl.Series("arm", keys)))])
    return Paragraphs((f"{short.removesuffix('.')}.", *arms, f"{basis} {evidence(named)}."))


def _row(row: dict[str, Any], retried: bool) -> list[str]:
    return [
        _over(row),
        str(row["cases"]),
        _accuracy(row),
        *_tries(row, retried),
        gain(row),
        _cost(row),
        ratio(row),
        verdict_words(row, short=True),
    ]


def _own(row: dict[str, Any], retried: bool) -> list[str]:
    return [_over(row), "", _accuracy(row), *_tries(row, retried), "", _cost(row), "", ""]


def _tries(row: dict[str, Any], retried: bool) -> list[str]:
    return [f"{row['attempts']:,}"] if retried else []


def _over(row: dict[str, Any]) -> str:
    if row["over"] == "width":
        return f"width {row['width']}"
    return "all cases" if row["over"] == "all" else str(row["group"])


def _accuracy(row: dict[str, Any]) -> str:
    if row["accuracy"] is None:
        return f"– {row['n']}/{row['of']}"
    if row["accuracy_low"] is None:
        return f"{percent(row['accuracy'])} {row['n']}/{row['of']}"
    return f"{share_of(row['accuracy'], row['accuracy_low'], row['accuracy_high'])} {row['n']}/{row['of']}"


def _cost(row: dict[str, Any]) -> str:
    least = "≥ " if row["floors"] else ""
    return (
        "–" if row["cost"] is None else least + amount(row["cost"], row["cost_unit"]).removesuffix(" tokens")
    )


def _how(found: pl.DataFrame) -> str:
    return listed(list(found["estimator"].drop_nulls().unique(maintain_order=True))) or "none"
