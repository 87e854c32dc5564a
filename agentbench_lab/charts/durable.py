"""What finished steps on disk are worth, in words: the cost of a solved trial with them and without."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agentbench_lab.charts.words import counted, interval
from agentbench_lab.charts.worth import amount, arm_names

if TYPE_CHECKING:
    import polars as pl

_VERDICTS = ("less", "more", "the same", "undecided", None)


def priced(row: Mapping[str, Any], side: str = "") -> str:
    """`$0.0579 [0.0390, 0.0798]`, with ≥ where it is a lower bound; a dash where it is not known."""
    if row[f"{side}per_solved"] is None:
        return "–"
    unit = row["cost_unit"]

    def say(value: float) -> str:
        return amount(value, unit).removeprefix("$").removesuffix(" tokens")

    least = "≥ " if row[f"{side}floors"] else ""
    ends = interval(row[f"{side}low"], row[f"{side}high"], say)
    return f"{least}{amount(row[f'{side}per_solved'], unit)}{ends}"


def times(row: Mapping[str, Any]) -> str:
    """`0.39 [0.21, 0.55]`: the durable arm's cost of a solved trial by the bare one's; a dash where it is not known."""
    if row["ratio"] is None:
        return "–"
    return f"{row['ratio']:.2f}{interval(row['ratio_low'], row['ratio_high'], lambda value: f'{value:.2f}')}"


def parted(found: pl.DataFrame) -> list[tuple[str, list[dict[str, Any]]]]:
    """The rows of each durable arm of a `metrics.durability`, under its name."""
    named = zip(arm_names(found), found.to_dicts(), strict=True)
    parts: dict[str, list[dict[str, Any]]] = {}
    for name, row in named:
        parts.setdefault(name, []).append(row)
    return list(parts.items())


def durable_claim(found: pl.DataFrame) -> str:
    """What it comes to, in one sentence: over all cases together, and like with like where there are several widths."""
    said = []
    for name, rows in parted(found):
        whole, last = rows[0], rows[-1]
        text = _CLAIMS[whole["verdict"]].format(f"a solved trial of {name}", f"one of {whole['bare']}")
        if last["over"] == "alike" and last["verdict"] != whole["verdict"]:
            joined = "and" if None in (last["verdict"], whole["verdict"]) else "but"
            text += f", {joined} {_ALIKE[last['verdict']]} with the widths weighing alike"
        said.append(text)
    claim = "; ".join(said)
    return f"{claim[:1].upper()}{claim[1:]}."


_CLAIMS = {
    "less": "{} costs less than {} over all cases together",
    "more": "{} costs more than {} over all cases together",
    "the same": "{} costs as much as {} over all cases together",
    "undecided": "whether {} costs less than {} is undecided over all cases together",
    None: "whether {} costs less than {} is not known over all cases together",
}
_ALIKE = {
    "less": "it costs less",
    "more": "it costs more",
    "the same": "it costs as much",
    "undecided": "it is undecided",
    None: "it is not known",
}


def durable_sentences(found: pl.DataFrame) -> list[str]:
    """A text an arm, from a `metrics.durability`: over all cases, by width, and with the widths weighing alike.

    Where the widths weighing alike give another answer than all cases together, it says so, and what width the solved trials have.
    """
    return [_of_arm(name, rows) for name, rows in parted(found)]


def _of_arm(name: str, rows: Sequence[Mapping[str, Any]]) -> str:
    whole, *others = rows
    bare = whole["bare"]
    text = (
        f"Over {counted(whole['cases'], 'case')} together a solved trial costs {priced(whole)} with {name} and "
        f"{priced(whole, 'bare_')} with {bare}: {_said(whole)}."
    )
    by_width = [row for row in others if row["over"] == "width"]
    if len(by_width) < 2:
        return text
    parts = []
    for each in _VERDICTS:
        widths = [str(row["width"]) for row in by_width if row["verdict"] == each]
        if widths:
            parts.append(
                f"{each or 'not comparable'} at {'width' if len(widths) == 1 else 'widths'} {', '.join(widths)}"
            )
    text += f" Width by width: {'; '.join(parts)}."
    alike = next(row for row in others if row["over"] == "alike")
    text += f" With every width weighing as many solved trials as it has cases: {priced(alike)} and {priced(alike, 'bare_')}, {_said(alike)}."
    if None not in (alike["verdict"], whole["verdict"]) and alike["verdict"] != whole["verdict"]:
        text += (
            f" The two answers differ because the arms solve different tasks: a solved trial of {name} is {whole['mean_width']:.1f} "
            f"parts wide on average, one of {bare} {whole['bare_mean_width']:.1f}, and narrow tasks are cheap. The second answer compares like with like."
        )
    return text


def _said(row: Mapping[str, Any]) -> str:
    if row["verdict"] is not None and row["ratio"] is None:
        return str(row["verdict"])
    if row["verdict"] is not None:
        return f"{row['verdict']} ({times(row)} times)"
    return f"which is less is not known ({row['reason'] or _no_interval(row)})"


def _no_interval(row: Mapping[str, Any]) -> str:
    return (
        "a cost is a lower bound" if row["floors"] or row["bare_floors"] else "a single case has no interval"
    )
