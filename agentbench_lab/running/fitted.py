"""Drivers fitted to a run before it begins: those that play back a recording are told which trials they are for, and
every driver's calls are recorded where that is asked."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from agentbench_lab.cases import Case
from agentbench_lab.drivers.base import Loaded
from agentbench_lab.drivers.recording import FORMAT, Begun, RecordedArm
from agentbench_lab.drivers.replay import Replay
from agentbench_lab.ladder import in_order
from agentbench_lab.results.product import Arm
from agentbench_lab.running.plan import Spec
from agentbench_lab.running.record import RecordFile, recorded


def fitted(
    drivers: Sequence[Loaded],
    arms: Sequence[Arm],
    specs: Sequence[Spec],
    *,
    ladder: bool,
    record: RecordFile | None,
) -> list[Loaded]:
    """The driver of each arm as this run calls it. Raises LabError for a trial that cannot be played back."""
    found = []
    for at, (loaded, arm) in enumerate(zip(drivers, arms, strict=True)):
        mine = [spec for spec in specs if spec.arm == at]
        cases = {spec.seed: spec.case.id for spec in mine}
        if isinstance(loaded.function, Replay):
            replay = loaded.function.for_arm(arm.scaffold, _sure(mine, ladder), cases)
            loaded = dataclasses.replace(loaded, function=replay)
        if record is not None:
            loaded = recorded(record, loaded, arm, cases)
        found.append(loaded)
    return found


def _sure(specs: Sequence[Spec], ladder: bool) -> list[tuple[Case, int]]:
    """The trials that are run for sure: with the ladder the lowest rung's, since a gate may have stopped the others."""
    groups = in_order({spec.case.group for spec in specs})[: 1 if ladder else None]
    return [(spec.case, spec.trial) for spec in specs if spec.case.group in groups]


def begun(
    drivers: Sequence[Loaded],
    arms: Sequence[Arm],
    *,
    started_at: str,
    stamp: str,
    suite: str,
    suite_digest: str,
    commit: str,
) -> Begun:
    """The line with which a run begins to record."""
    return Begun(
        FORMAT,
        started_at,
        stamp,
        suite,
        suite_digest,
        commit,
        tuple(
            RecordedArm(arm.driver, arm.model, arm.scaffold, loaded.evidence, loaded.version, loaded.banner)
            for arm, loaded in zip(arms, drivers, strict=True)
        ),
    )
