"""Which event loops outlive a trial, so that what a driver opens on one is kept for the next trial."""

from __future__ import annotations

from typing import Any
from weakref import WeakSet

LASTING: WeakSet[Any] = WeakSet()
"""Loops on which many trials run, or whose work is that of many."""
