"""What the runner reads off a world when a trial is over, for the grade: one part per kind of world."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from agentbench_lab.paths import Change
from agentbench_lab.worlds.seen_work import WorkSeen


class StateSeen(Struct, frozen=True, gc=False, omit_defaults=True):
    """The end state as far as a grade reads it.

    `values` holds what stands at each expected path (a path that is not there is left out; of objects only the keys
    that are expected), `changes` all that differs from the world the trial was given.
    """

    values: dict[str, Any] = {}
    changes: tuple[Change, ...] = ()


class Seen(Struct, frozen=True, gc=False, omit_defaults=True):
    """What was seen of a world, by kind; None where the world is of another kind.

    `lost`: the world ended with the process that ran the trial, and nobody saw it.
    """

    state: StateSeen | None = None
    work: WorkSeen | None = None
    lost: bool = False


LOST = "the world ended with the process that ran the trial, and nothing can be said of it"
"""Why a check of a lost world does not pass."""


__all__ = ["LOST", "Seen", "StateSeen"]
