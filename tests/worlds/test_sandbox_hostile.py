"""Every hostile script at every level, against the table of docs/sandbox.md."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import hostile

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def machine() -> Iterator[hostile.Host]:
    with hostile.host() as found:
        yield found


@pytest.fixture(scope="module")
def levels() -> dict[str, tuple[hostile.Level, str | None]]:
    return hostile.levels()


@pytest.mark.parametrize("name", hostile.LEVELS)
@pytest.mark.parametrize("script", hostile.HOSTILE, ids=lambda one: one.name)
def test_each_level_holds_what_the_table_says(
    script: hostile.Hostile,
    name: str,
    machine: hostile.Host,
    levels: dict[str, tuple[hostile.Level, str | None]],
) -> None:
    of, why = levels[name]
    if why is not None:
        pytest.skip(f"{name} does not work here: {why}")
    said = hostile.documented()[script.name][name]
    if name == "local":
        if script.dangerous:
            assert said == hostile.NOT_TRIED
            return
        if os.geteuid() != 0:
            pytest.skip("the column local was measured as root")
    came = script.run(of, machine)
    assert ("held" if came == "held" else "**not held**") == said, came


def test_the_table_has_every_script_once() -> None:
    names = [one.name for one in hostile.HOSTILE]
    assert len(names) == len(set(names)) >= 40
    assert list(hostile.documented()) == names


def test_bubblewrap_holds_everything_that_is_tried() -> None:
    assert {row["bubblewrap"] for row in hostile.documented().values()} == {"held"}
