"""Scaffolds: ways to put an agent to work on a task. A scaffold turns an agent into a driver.

An *agent* is `agent(task, tools, ctx) -> Transcript`: one call of the driver under test, as a worker of its own. The
worker has random numbers of its own, a desk on the trial's toolbox (same world, same ledger, an ending of its own), and
the trial's limits. What it uses is metered on the trial, whatever the scaffold makes of its transcript. Your own
scaffold is a plain function:

    def twice(agent):
        def run(task, tools, ctx):
            first = agent(task, tools, ctx)
            return first if first.refused else agent(task, tools, ctx)
        return run

`once` is the driver untouched. `linear` does the parts of a request one after the other, `fan_out(n)` n at a time on
the same world; both say in their docstrings what becomes of refusals and failures. docs/scaffolds.md has the rules.
"""

from __future__ import annotations

from agentbench_lab.scaffolds.agent import Agent, Lost, Run, Scaffold, came_of, outcome_of, side_by_side
from agentbench_lab.scaffolds.load import (
    NAMES,
    LoadedScaffold,
    Scaffolded,
    durable,
    load_scaffold,
    scaffolded,
)
from agentbench_lab.scaffolds.ship import (
    MOST_PARTS,
    Decompose,
    fan_out,
    given_parts,
    in_ledger_order,
    linear,
    once,
    outcome,
    parts_of,
    plan_parts,
    whole,
)

__all__ = [
    "MOST_PARTS",
    "NAMES",
    "Agent",
    "Decompose",
    "LoadedScaffold",
    "Lost",
    "Run",
    "Scaffold",
    "Scaffolded",
    "came_of",
    "durable",
    "fan_out",
    "given_parts",
    "in_ledger_order",
    "linear",
    "load_scaffold",
    "once",
    "outcome",
    "outcome_of",
    "parts_of",
    "plan_parts",
    "scaffolded",
    "side_by_side",
    "whole",
]
