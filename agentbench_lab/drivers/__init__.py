"""Agents under test: one function each, from a task and its tools to a transcript."""

from __future__ import annotations

from agentbench_lab.drivers.base import (
    BUILT_IN,
    Context,
    Driver,
    InfrastructureError,
    Loaded,
    known_drivers,
    load_driver,
)

__all__ = ["BUILT_IN", "Context", "Driver", "InfrastructureError", "Loaded", "known_drivers", "load_driver"]
