"""Drivers fitted to a run before it begins: those that play back a recording are told which trials they are for, the
error model is given the reference solutions, and every driver's calls are recorded where that is asked.

No other driver is ever given anything of a case but its task.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from agentbench_lab.cases import Case
from agentbench_lab.conversation import DEFAULT_USER, user_seed
from agentbench_lab.drivers.faulty import Faulty
from agentbench_lab.drivers.loading import Loaded
from agentbench_lab.drivers.recording import FORMAT, Begun, RecordedArm
from agentbench_lab.drivers.replay import Replay
from agentbench_lab.drivers.simulated import Solution
from agentbench_lab.errors import LabError
from agentbench_lab.ladder import in_order
from agentbench_lab.results.product import Arm
from agentbench_lab.running.plan import Spec
from agentbench_lab.running.tape import RecordFile, recorded
from agentbench_lab.scaffolds import Scaffolded


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
        around = loaded.function
        inner = around.driver if isinstance(around, Scaffolded) else loaded
        inner = _fitted(inner, arm, mine, ladder, cases)
        if record is not None:
            inner = recorded(record, inner, arm, cases)
        if isinstance(around, Scaffolded):
            inner = dataclasses.replace(loaded, function=Scaffolded(around.scaffold, inner))
        found.append(inner)
    return found


def fitted_user(loaded: Loaded, specs: Sequence[Spec], record: RecordFile | None) -> Loaded:
    """The driver that plays the simulated users, recorded and played back as an arm of its own; the scripted one says
    the same each time, and needs no recording."""
    cases = {user_seed(spec.seed): f"{spec.case.id} #{spec.arm}" for spec in specs}
    if isinstance(loaded.function, Replay):
        loaded = dataclasses.replace(loaded, function=loaded.function.for_arm(USER, (), cases))
    if record is not None and loaded.name != DEFAULT_USER:
        loaded = recorded(record, loaded, user_arm(loaded), cases)
    return loaded


USER = "user"
"""Where a recording names the scaffold of a call: this one was a turn of a simulated user."""


def user_arm(loaded: Loaded) -> Arm:
    """The arm as which the calls of a simulated user are recorded."""
    return Arm(loaded.name, loaded.model, USER)


def _fitted(
    loaded: Loaded, arm: Arm, specs: Sequence[Spec], ladder: bool, cases: Mapping[str, str]
) -> Loaded:
    """The driver itself, whatever is around it."""
    if isinstance(loaded.function, Faulty):
        faulty = loaded.function
        inner = _fitted(faulty.driver, arm, specs, ladder, cases)
        return dataclasses.replace(loaded, function=Faulty(inner, faulty.p))
    if isinstance(loaded.function, Replay):
        replay = loaded.function.for_arm(arm.scaffold, _sure(specs, ladder), cases)
        loaded = dataclasses.replace(loaded, function=replay)
    if getattr(loaded.function, "wants_gold", False):
        loaded = dataclasses.replace(loaded, function=_with_gold(loaded, arm, specs, cases))
    return loaded


def _with_gold(loaded: Loaded, arm: Arm, specs: Sequence[Spec], cases: Mapping[str, str]) -> Any:
    """The one exception to the rule that no driver sees a reference solution: a driver whose evidence is `simulated`
    and that asks for it. LabError for any other that asks, and for the first case without one."""
    if loaded.evidence != "simulated":
        raise LabError(
            f"driver {loaded.name!r} asks for the reference solutions and says its evidence is {loaded.evidence!r}; "
            "only a simulated driver is given them"
        )
    apart = arm.scaffold != "once" and not arm.scaffold.startswith("native:")
    solutions: dict[str, Solution] = {}
    for case in {spec.case.id: spec.case for spec in specs}.values():
        gold = case.gold
        where = f"{case.file}:{case.line}: " if case.line else ""
        if gold is None:
            raise LabError(
                f"{where}{case.id}: has no gold, the reference solution that {loaded.name!r} goes by"
            )
        if apart and case.task.width > 1 and not gold.parts:
            raise LabError(
                f"{where}{case.id}: has no gold.parts, the number of calls of each part, by which {loaded.name!r} "
                f"works under {arm.scaffold}"
            )
        solutions[case.id] = Solution(
            gold.calls,
            gold.parts or (len(gold.calls),),
            case.task.parts,
            gold.answer,
            case.expect.refuse,
        )
    return loaded.function.for_arm(arm.scaffold, solutions, cases)  # type: ignore[attr-defined]


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
