"""Fixtures that several rooms share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# How long an example takes says nothing on cores that others use, too. The same examples each time, so that only a change
# of the code changes what comes out; other ones are what `make fuzz` is for, and what it finds, it prints how to find again.
settings.register_profile("lab", deadline=None, derandomize=True)
settings.register_profile("fuzz", deadline=None, derandomize=False, print_blob=True)
settings.load_profile("lab")


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


@pytest.fixture(scope="session", autouse=True)
def cache_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What the library keeps for a user is kept for the tests only, and for the processes that they start."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield
