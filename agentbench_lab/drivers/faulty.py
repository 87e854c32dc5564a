"""A driver that crashes by chance, so that what a crash costs can be measured: `--driver faulty:0.1:DRIVER`.

Before each tool call, and after each time that the driver tells what it has used, the trial crashes with the given
probability. The lots are drawn from the seed of the trial and worker and the number of the attempt, so that a run is
the same each time, and a trial that is begun again does not crash at the same place for ever. What was told before a
crash counts: a crash is never free.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from agentbench_lab.cases import Task
from agentbench_lab.drivers.context import Context
from agentbench_lab.drivers.loading import Loaded, load_driver
from agentbench_lab.errors import LabError
from agentbench_lab.transcripts import Observation, Usage
from agentbench_lab.worlds.toolbox import Toolbox


class Crash(RuntimeError):
    """A crash that was drawn by lot."""


def make(text: str) -> Faulty:
    """The driver of `faulty:P:DRIVER`."""
    share, colon, name = text.partition(":")
    try:
        p = float(share)
    except ValueError:
        p = -1.0
    if not colon or not name or not 0 <= p <= 1:
        raise LabError(
            f"driver 'faulty:{text}': write faulty:P:DRIVER with a P from 0 to 1, as in faulty:0.1:stub"
        )
    return faulty(name, p)


def faulty(driver: str | Callable[..., Any], p: float) -> Faulty:
    """The driver, crashing with probability `p` at each boundary between two steps."""
    if type(p) not in (int, float) or not 0 <= p <= 1:
        raise LabError(f"faulty: p is a number from 0 to 1, not {p!r}")
    return Faulty(load_driver(driver), float(p))


class Faulty:
    """A driver that draws lots. Its evidence and model are those of the driver behind it."""

    def __init__(self, driver: Loaded, p: float) -> None:
        self.driver, self.p = driver, p
        self.name, self.behind = f"faulty:{p!r}:{driver.name}", (driver.function,)
        self.evidence, self.model = driver.evidence, driver.model
        self.version = f"faulty {p!r} {driver.version}"
        crashes = f"crashes are drawn by lot: {p:g} at each tool call and each model call"
        self.banner = f"{driver.banner}; {crashes}" if driver.banner else crashes

    def __call__(self, task: Task, tools: Toolbox, ctx: Context) -> Any:
        lots = random.Random(f"{ctx.seed}:{ctx.attempt}")
        call, spend = tools.call, ctx.spend

        def draw() -> None:
            if lots.random() < self.p:
                raise Crash(f"crashed by lot, in attempt {ctx.attempt}")

        def calling(name: str, input: Any = None) -> Observation:
            draw()
            return call(name, input)

        def spending(usage: Usage) -> None:
            spend(usage)
            draw()

        # on the objects themselves, which are this worker's own: whoever else was given them goes through here too
        tools.call = calling  # type: ignore[method-assign]
        ctx.spend = spending  # type: ignore[method-assign]
        return self.driver.start(task, tools, ctx)


__all__ = ["Crash", "Faulty", "faulty", "make"]
