"""Fixtures that several rooms share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def peers() -> Path:
    """The folder with real files of other projects; tests that need it are skipped without it."""
    folder = os.environ.get("AGENTBENCH_LAB_PEERS")
    if not folder:
        pytest.skip("AGENTBENCH_LAB_PEERS is not set: no real files of other projects to check against")
    path = Path(folder)
    if not path.is_dir():
        pytest.fail(f"AGENTBENCH_LAB_PEERS names no folder: {folder}")
    return path
