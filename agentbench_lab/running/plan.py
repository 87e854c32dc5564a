"""What is to be run: case x arm x trial, each with the seed of its own random numbers."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from msgspec import Struct

from agentbench_lab.cases import Case
from agentbench_lab.errors import LabError
from agentbench_lab.results.product import Arm


class Spec(Struct, frozen=True, gc=False):
    """One trial to be run. `place` sorts it: case in its file, arm as given, trial."""

    case: Case
    arm: int
    trial: int
    seed: str
    place: tuple[int, int, int]


def plan(cases: Sequence[Case], arms: Sequence[Arm], trials: int, seed: int) -> list[Spec]:
    """Every trial of every case by every arm, in the order in which rows are written."""
    return [
        Spec(case, at, trial, trial_seed(seed, case, arm, trial), (place, at, trial))
        for place, case in enumerate(cases)
        for at, arm in enumerate(arms)
        for trial in range(1, trials + 1)
    ]


def trial_seed(seed: int, case: Case, arm: Arm, trial: int) -> str:
    """What a trial's random numbers grow from: a digest, so that neither order nor worker count can change them."""
    parts = (str(seed), case.suite, case.id, arm.driver, arm.model or "", arm.scaffold, str(trial))
    return hashlib.sha256("\0".join(parts).encode(errors="surrogatepass")).hexdigest()[:16]


def shard_numbers(shard: str) -> tuple[int, int]:
    """`i/n` as two numbers; LabError for anything else."""
    at, slash, of = shard.partition("/")
    if not (
        slash and at.isascii() and of.isascii() and at.isdigit() and of.isdigit() and 1 <= int(at) <= int(of)
    ):
        raise LabError(f"shard {shard!r}: must be i/n, such as 1/4, with i from 1 to n")
    return int(at), int(of)


def shard_of(specs: Sequence[Spec], shard: str) -> list[Spec]:
    """The i-th of n parts of the plan: every n-th case of an arm with all its trials, so that each part has easy and
    hard ones, and keeps them when more trials are asked."""
    at, of = shard_numbers(shard)
    arms = 1 + max((spec.arm for spec in specs), default=0)
    return [spec for spec in specs if (spec.place[0] * arms + spec.arm) % of == at - 1]


def of_groups(specs: Iterable[Spec], group: str, arms: set[int]) -> list[Spec]:
    """The specs of one group for the arms still climbing."""
    return [spec for spec in specs if spec.case.group == group and spec.arm in arms]
