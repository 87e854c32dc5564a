"""Agents under test: one function each, from a task and its tools to a transcript."""

from __future__ import annotations

from agentbench_lab.drivers.context import Context
from agentbench_lab.drivers.faults import InfrastructureError
from agentbench_lab.drivers.loading import BUILT_IN, Driver, Loaded, known_drivers, load_driver

__all__ = ["BUILT_IN", "Context", "Driver", "InfrastructureError", "Loaded", "known_drivers", "load_driver"]
