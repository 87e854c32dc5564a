"""What it takes to make a trial's job anywhere: here, in another process, on another machine."""

from __future__ import annotations

import pickle
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from agentbench_lab.cases import Limits
from agentbench_lab.drivers.identity import functions_in, layers, name_of
from agentbench_lab.drivers.loading import Loaded
from agentbench_lab.errors import LabError
from agentbench_lab.results.product import Arm
from agentbench_lab.running.checkpoint import MOST_ATTEMPTS, Keeper, checkpoint_path
from agentbench_lab.running.output import routed
from agentbench_lab.running.plan import Spec
from agentbench_lab.running.trial import Job, Record, Retries
from agentbench_lab.worlds.toolbox import World


class Kit:
    """Drivers, arms, worlds (by case id) and the settings that every trial of a run shares."""

    def __init__(
        self,
        drivers: Sequence[Loaded],
        arms: Sequence[Arm],
        worlds: Mapping[str, World],
        *,
        limits: Limits,
        stamp: str,
        strictness: str,
        retries: Retries,
        user: Loaded | None = None,
        run: str = "",
    ) -> None:
        self.drivers, self.arms, self.worlds = tuple(drivers), tuple(arms), dict(worlds)
        self.limits, self.stamp, self.strictness, self.retries = limits, stamp, strictness, retries
        self.user, self.run = user, run
        self.checkpoints: Path | None = None
        """Where durable trials keep what they have finished; `run` tells whether it is of this run."""

    def keeper(self, spec: Spec) -> Keeper | None:
        """Who keeps the steps of a trial; None where its arm is not durable."""
        if self.checkpoints is None or not self.drivers[spec.arm].durable:
            return None
        path = checkpoint_path(self.checkpoints, spec.case.id, self.arms[spec.arm], spec.trial)
        return Keeper(path, self.run)

    def goes_on(self, spec: Spec) -> bool:
        """Whether a trial whose process ended under it is begun again behind its last finished step."""
        keeper = self.keeper(spec)
        return keeper is not None and len(keeper.attempts) < MOST_ATTEMPTS

    def forget(self, record: Record) -> None:
        """A trial is over, and its record kept elsewhere."""
        if self.checkpoints is not None:
            row = record.row
            checkpoint_path(self.checkpoints, row.case_id, row.arm, row.trial).unlink(missing_ok=True)

    @property
    def loaded(self) -> tuple[Loaded, ...]:
        """All drivers of the run: those under test, and the one that plays the simulated users."""
        return self.drivers if self.user is None else (*self.drivers, self.user)

    def job(self, spec: Spec) -> Job:
        """A fresh job for one trial."""
        return Job(
            spec,
            self.drivers[spec.arm],
            self.arms[spec.arm],
            self.worlds[spec.case.id],
            limits=self.limits,
            stamp=self.stamp,
            strictness=self.strictness,
            retries=self.retries,
            user=self.user,
            keeper=self.keeper(spec),
        )

    def lost(self, spec: Spec) -> Job:
        """A job for the record of a trial whose world is gone with the process that ran it."""
        job = self.job(spec)
        job.lose()
        return job

    def jobs(self, specs: Iterable[Spec]) -> Iterator[Callable[[], Job]]:
        """A maker of each job, in the order of the specs."""
        for spec in specs:
            yield lambda spec=spec: self.job(spec)  # type: ignore[misc]

    def close(self) -> None:
        """The run is over in this process: drivers that have a `close()` give back what they hold, each once."""
        holders: dict[int, Any] = {}
        for driver in self.loaded:
            holder = next((each for each in layers(driver.function) if hasattr(each, "close")), None)
            holders[id(holder)] = holder
        for holder in holders.values():
            close = getattr(holder, "close", None)
            if callable(close):
                # the run is there, and nothing that a driver does at its end shall lose it
                with suppress(Exception):
                    close()

    def packed(self) -> bytes:
        """The kit as bytes that another process can unpack; LabError names a driver that cannot be sent."""
        for driver in self.loaded:
            for function in functions_in(driver.function):
                if _only_here(function):
                    name = name_of(function)
                    whose = "" if name == driver.name else f"{name!r} of "
                    raise LabError(
                        f"{whose}driver {driver.name!r} is defined in a notebook, a script or a function, where a worker "
                        "cannot import it: put it into a module, or run in this process (executor threads)"
                    )
            try:
                pickle.dumps(driver)
            except Exception as error:
                raise LabError(f"driver {driver.name!r} cannot be sent to a worker: {error}") from None
        kit = pickle.dumps(self, protocol=pickle.HIGHEST_PROTOCOL)
        return pickle.dumps((list(sys.path), kit), protocol=pickle.HIGHEST_PROTOCOL)


def _only_here(function: Callable[..., Any]) -> bool:
    """Whether a function has no module from which another process could import it."""
    made = function if hasattr(function, "__qualname__") else type(function)
    return made.__module__ == "__main__" or "<locals>" in made.__qualname__


_unpacked: dict[bytes, Kit] = {}
_unpacking = threading.Lock()
_MOST = 4


def unpacked(data: bytes) -> Kit:
    """The kit of `Kit.packed`, once per process. Modules are found where the sender found them."""
    with _unpacking:
        kit: Kit | None = _unpacked.get(data)
        if kit is None:
            while len(_unpacked) >= _MOST:
                _unpacked.pop(next(iter(_unpacked))).close()
            paths, packed = pickle.loads(data)
            sys.path.extend(path for path in paths if path not in sys.path)
            kit = _unpacked[data] = pickle.loads(packed)
        return kit


def forget(name: str) -> None:
    """The run is over on this worker of a cluster, which was given its kit by this name."""
    data = held.pop(name, None)
    with _unpacking:
        kit = _unpacked.pop(data, None) if data is not None else None
    if kit is not None:
        kit.close()


class Wire:
    """Specs and records as bytes between processes.

    MessagePack and not pickle, because a default value that comes back from a pickle is another object, which the
    encoder would no longer leave out: a row would have other bytes than one made here.
    """

    _encode = msgspec.msgpack.Encoder().encode
    _specs = msgspec.msgpack.Decoder(list[Spec])
    _records = msgspec.msgpack.Decoder(list[Record])

    @classmethod
    def pack(cls, items: Sequence[Spec] | Sequence[Record]) -> bytes:
        return cls._encode(items)

    @classmethod
    def specs(cls, data: bytes) -> list[Spec]:
        return cls._specs.decode(data)

    @classmethod
    def records(cls, data: bytes) -> list[Record]:
        return cls._records.decode(data)


held: dict[str, bytes] = {}
"""Kits that a worker of a cluster was given, by name."""


def run_packed(data: bytes | str, specs: bytes) -> bytes:
    """Run a group of trials one after the other, in whatever process this is called; specs in, records out."""
    return run_group(unpacked(held[data] if isinstance(data, str) else data), specs)


def run_group(kit: Kit, specs: bytes) -> bytes:
    """The same in a process that has the kit."""
    from agentbench_lab.running.pool import run_jobs

    records: list[Record] = []
    with routed():
        run_jobs(kit.jobs(Wire.specs(specs)), 1, records.append)
    return Wire.pack(records)
