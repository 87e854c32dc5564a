"""Arms: what every metric is counted by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    import pyarrow as pa

ARM = ("driver", "model", "scaffold")


def frame(trials: pa.Table | pl.DataFrame) -> pl.DataFrame:
    """The table as a polars frame."""
    return trials if isinstance(trials, pl.DataFrame) else pl.DataFrame(trials)


def full_name(driver: str, model: str | None, scaffold: str) -> str:
    """An arm's name where the arms beside it are not known: all that it has."""
    return " + ".join([driver, *([model] if model else []), *([scaffold] if scaffold != "once" else [])])


def envelopes(card: Any) -> dict[tuple[str | None, ...], Any]:
    """What each arm was asked, from the run's card; nothing without one."""
    return {} if card is None else {(e.driver, e.model, e.scaffold): e for e in card.envelope}


def by_arm(trials: pl.DataFrame, card: Any = None) -> list[tuple[dict[str, Any], pl.DataFrame]]:
    """Each arm with its rows, in the order in which arms first appear; with a card also the arms without a row."""
    parts = dict(trials.partition_by(*ARM, maintain_order=True, as_dict=True))
    for arm in envelopes(card):
        parts.setdefault(arm, trials.clear())
    return [(dict(zip(ARM, key, strict=True)), part) for key, part in parts.items()]


def evidence_of(trials: pl.DataFrame) -> str:
    """The kinds of evidence among these trials."""
    return ", ".join(sorted(trials["evidence"].unique()))
