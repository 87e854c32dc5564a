"""What a durable trial has finished, on disk: steps, the world, the ledger, and the attempts so far.

A checkpoint is there for a driver that crashes and for a run that is killed. It is written beside itself and renamed,
so that there is always a whole one; it is not forced to the disk, so that a machine that loses power may lose it, and
then the trial begins anew.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from agentbench_lab.drivers import keys
from agentbench_lab.drivers.context import Context, Step
from agentbench_lab.results.dialogues import DIALOGUE_LIMIT, kept_dialogue
from agentbench_lab.results.product import Arm
from agentbench_lab.transcripts import Stop, Transcript, Usage, Worker
from agentbench_lab.worlds.toolbox import LedgerRow, Toolbox

MOST_ATTEMPTS = 21
"""Attempts of a durable trial: the first, and 20 times that it is begun again after a crash."""
FOLDER = "checkpoints"


class Attempt(Struct, frozen=True, gc=False):
    """One try of a trial: how it ended, what it used, its seconds by the wall clock, and the workers that it had. A part of
    what it used is `lost` where it was killed; None where that is not known, as of a run before this was kept."""

    end: Stop
    usage: Usage
    wall_s: float
    workers: tuple[Worker, ...] = ()
    lost: bool | None = None


class Checkpoint(Struct, frozen=True):
    """All that a trial needs to go on. `attempts` are those that have ended; `usage`, `wall_s` and `workers` are of the
    one under way, up to here. `world` is what the file holds behind this object; None while no step is finished."""

    run: str
    attempts: tuple[Attempt, ...]
    steps: dict[str, Step] = {}
    ledger: tuple[LedgerRow, ...] = ()
    usage: Usage = Usage.zero()
    wall_s: float = 0.0
    workers: tuple[Worker, ...] = ()
    begun: bool = False
    world: bytes | None = None


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Checkpoint).decode


def checkpoint_path(folder: Path, case: str, arm: Arm, trial: int) -> Path:
    """Where the checkpoint of a trial lies."""
    name = hashlib.sha256("\0".join((case, str(arm), str(trial))).encode(errors="surrogatepass"))
    return folder / f"{name.hexdigest()[:32]}.checkpoint"


class Keeper:
    """Keeps the steps of one trial in its file, attempt by attempt."""

    def __init__(self, path: Path, run: str) -> None:
        self._path, self._run = path, run
        self._point = self._read() or Checkpoint(run, ())
        self.steps: dict[str, Step] = {}
        self.seen: dict[str, int] = {}
        self.over = False
        self.mark = 0, 0
        """Rows of the ledger, and workers of this attempt, that the last finished step has."""
        self._began = time.perf_counter()

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """The attempts that have ended. One that was under way when everything was killed has ended by that: what it
        used behind its last step is lost, so that its figures are a lower bound."""
        point = self._point
        if not point.begun:
            return point.attempts
        killed = Attempt("infrastructure_error", point.usage, point.wall_s, point.workers, lost=True)
        return (*point.attempts, killed)

    @property
    def under_way(self) -> bool:
        """Whether an attempt has begun that nothing more is known of."""
        return self._point.begun

    def begin(self, attempts: Sequence[Attempt], toolbox: Toolbox, context: Context) -> None:
        """An attempt begins, behind the last finished step."""
        point = self._point
        self._toolbox, self._context = toolbox, context
        self.steps, self.seen = dict(point.steps), {}
        self._began = time.perf_counter()
        self.mark = len(point.ledger), 0
        if point.world is not None:
            toolbox.restore(point.world, point.ledger)
        for attempt in attempts:
            context.carry(attempt.usage)
        context.keeper = self
        self._write(
            msgspec.structs.replace(
                point, attempts=tuple(attempts), usage=Usage.zero(), wall_s=0.0, workers=(), begun=True
            )
        )

    def keep(self, key: str, step: Step) -> None:
        """A step is finished: from now on the trial goes on behind it. Of its dialogues that is kept which a run keeps: the
        file is written whole at every step."""
        step = msgspec.structs.replace(step, came=tuple(_bounded(each) for each in step.came))
        self.steps[key] = step
        world, ledger = self._toolbox.snapshot()
        crew, spent = self._context.crew, self._context.spent
        self.mark = len(ledger), 0 if crew is None else len(crew.ended)
        self._write(
            msgspec.structs.replace(
                self._point,
                steps=dict(self.steps),
                world=world,
                ledger=ledger,
                usage=Usage.zero() if spent == Usage() else spent,
                wall_s=time.perf_counter() - self._began,
                workers=() if crew is None else crew.workers("done"),
            )
        )

    def _write(self, point: Checkpoint) -> None:
        if self.over:
            return
        self._point = point
        head = _encode(_without_secrets(msgspec.structs.replace(point, world=None)))
        fresh = self._path.with_suffix(".new")
        try:
            fresh.parent.mkdir(parents=True, exist_ok=True)
            with open(fresh, "wb") as file:
                file.write(head + (b"\n" if point.world is None else b"\n=" + point.world))
            os.replace(fresh, self._path)
        except OSError as error:
            # no fault of the driver's
            self._toolbox.fault = f"the checkpoint cannot be written: {error.strerror}"
            raise

    def _read(self) -> Checkpoint | None:
        """The trial's checkpoint; None where there is none of this run, or half of one."""
        with contextlib.suppress(OSError, msgspec.MsgspecError, ValueError):
            head, _, rest = self._path.read_bytes().partition(b"\n")
            point = _decode(head)
            if point.run == self._run:
                return msgspec.structs.replace(point, world=rest[1:] if rest[:1] == b"=" else None)
        return None


def _bounded(said: Transcript) -> Transcript:
    """The transcript with no more of its dialogue than is kept; one whose bytes fit has no more characters either."""
    if not said.messages or len(_encode(said.messages)) <= DIALOGUE_LIMIT:
        return said
    return msgspec.structs.replace(said, messages=kept_dialogue(said.messages))


def _without_secrets(point: Checkpoint) -> Checkpoint:
    """What is written down of it. The names of steps stay, by which a trial goes on."""
    steps = {key: keys.without_in(step) for key, step in point.steps.items()}
    clean: Checkpoint = keys.without_in(point)
    return msgspec.structs.replace(clean, steps=steps)
