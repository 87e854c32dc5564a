"""How strictly a work folder is kept: the three levels, what each asks of the machine, and one live folder at a level.

- `local`: a process group of its own, limits, a clean environment. It is no security boundary: a command can read and
  change whatever its user can, and reach the network. For agents and cases that are trusted.
- `bubblewrap`: namespaces of the kernel's, and the system's own programs to read. See `sandbox_bwrap`.
- `container`: podman or docker, one container a trial. See `sandbox_container`.

docs/sandbox.md says what each level holds and does not hold, as measured.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Literal, Protocol, get_args

import msgspec
from msgspec import Meta, Struct

from agentbench_lab.errors import LabError, did_you_mean
from agentbench_lab.worlds.process import Finished, end_group, entered, run_process
from agentbench_lab.worlds.sandbox_folder import Folder

LevelName = Literal["local", "bubblewrap", "container"]
LEVELS: tuple[str, ...] = get_args(LevelName)
_MIB = 1 << 20
_COUNT = Annotated[int, Meta(ge=1, le=1 << 20)]


class Bounds(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What the commands of one work folder may use.

    `wall_s` and `cpu_s` are seconds of one call (`cpu_s` of each of its processes); `memory_mb` is each process's
    address space, and at level bubblewrap what all of them hold together, in a container all of them and the disk's
    bytes besides; `file_mb` is one file, `disk_mb` the folder and its /tmp together, `entries` the files in them, and
    `processes` how many there are at once, threads counted.
    """

    wall_s: Annotated[float, Meta(gt=0, le=86_400)] = 60.0
    cpu_s: _COUNT = 120
    memory_mb: _COUNT = 2_048
    file_mb: _COUNT = 128
    disk_mb: _COUNT = 256
    entries: _COUNT = 20_000
    processes: _COUNT = 128

    def rlimits(self) -> dict[str, int]:
        """The limits of one process, by the names of `prlimit` and `resource`, in bytes and seconds."""
        return {
            "as": self.memory_mb * _MIB,
            "cpu": self.cpu_s,
            "fsize": self.file_mb * _MIB,
            # 1 and not 0: with 0 the kernel would still hand a dump to a program of the host's
            "core": 1,
            "nofile": 1_024,
            "memlock": 0,
            "msgqueue": 0,
        }


class Level(Struct, frozen=True):
    """A level by its name, and for a container the image it is made of."""

    name: LevelName
    image: str = ""

    def __str__(self) -> str:
        return f"{self.name}:{self.image}" if self.image else self.name


class Place(Protocol):
    """One live work folder, and commands that run in it. `close` takes both away."""

    folder: Folder

    def run(self, command: str, *, timeout_s: float) -> Finished:
        """Run a command with the shell, in the folder; what it starts has ended when this returns.

        Raises OSError when there is no way to run it, which is never the command's own fault.
        """
        ...

    def stop(self) -> None:
        """End what is running, from any thread; nothing runs afterwards."""
        ...

    def close(self) -> None: ...


def parse_level(text: str) -> Level:
    """The level that `local`, `bubblewrap` or `container:IMAGE` means."""
    name, _, image = text.partition(":")
    if name not in LEVELS:
        raise LabError(f"no sandbox level {name!r}{did_you_mean(name, LEVELS)}")
    if name == "container" and not image:
        raise LabError("a container needs an image: container:IMAGE")
    if name != "container" and image:
        raise LabError(f"the level {name} takes no image")
    return Level(name, image)  # type: ignore[arg-type]  # one of the names, as was just seen


def default_level() -> Level:
    """bubblewrap where it works. Raises LabError elsewhere: nothing weaker is taken without being asked for."""
    level = Level("bubblewrap")
    why = unavailable(level)
    if why is not None:
        raise LabError(
            f"the sandbox level bubblewrap does not work here: {why}; choose container:IMAGE, or local for agents "
            "that you would let run commands of their own on this machine"
        )
    return level


@lru_cache(maxsize=16)
def unavailable(level: Level) -> str | None:
    """Why a level cannot be used on this machine, in one line; None when a command has run at it."""
    try:
        place = open_place(level, Bounds())
    except OSError as error:
        return str(error)
    try:
        done = place.run("exit 7", timeout_s=20)
    except OSError as error:
        return str(error)
    finally:
        place.close()
    return (
        None
        if done.exit == 7
        else f"a command ended with {done.exit}: {done.stderr[:200].decode(errors='replace')}"
    )


def open_place(level: Level, bounds: Bounds) -> Place:
    """A new and empty work folder at a level. Raises OSError with the reason when the machine has none."""
    if level.name == "bubblewrap":
        from agentbench_lab.worlds.sandbox_bwrap import Bubblewrap

        return Bubblewrap(bounds)
    if level.name == "container":
        from agentbench_lab.worlds.sandbox_container import Container

        return Container(level.image, bounds)
    return Local(bounds)


class Running:
    """The process that a place is running, so that another thread can end it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = False

    def started(self, process: subprocess.Popen[bytes]) -> None:
        with self._lock:
            self._process = process
            stopped = self._stopped
        if stopped:
            end_group(process)

    @property
    def stopped(self) -> bool:
        return self._stopped

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
        self.end_current()

    def end_current(self) -> None:
        """End the process that is running now, if one is."""
        with self._lock:
            process = self._process
        if process is not None and process.poll() is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)


STOPPED = Finished(None, b"", b"", False, 0.0, ended="the trial is over")

_LIMITED = """
import json, os, resource, sys
for name, value in json.loads(sys.argv[1]).items():
    kind = getattr(resource, "RLIMIT_" + name.upper(), None)
    if kind is None:
        continue
    hard = resource.getrlimit(kind)[1]
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    try:
        resource.setrlimit(kind, (value, value))
    except (OSError, ValueError):
        pass
os.execvp(sys.argv[2], sys.argv[2:])
"""


class Local:
    """A temporary folder on this machine, and commands with limits. No security boundary: see the module.

    What a command leaves behind is found by its process group, and on Linux by a word in its environment as well; a
    process that changes both is not found. Limits on memory are those of each process, and there is none on the disk.
    """

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._base = Path(tempfile.mkdtemp(prefix="agentbench-")).resolve()
        work, self._tmp = self._base / "work", self._base / "tmp"
        work.mkdir()
        self._tmp.mkdir()
        self._cookie = f"AGENTBENCH_SANDBOX={secrets.token_hex(16)}"
        self._running = Running()
        self._work = work
        self.folder = Folder(os.open(work, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC), str(work))

    def run(self, command: str, *, timeout_s: float) -> Finished:
        if self._running.stopped:
            return STOPPED
        limits = self._bounds.rlimits()
        if os.geteuid() != 0:  # root is not held by it
            limits["nproc"] = _threads_of_user() + self._bounds.processes
        key, _, value = self._cookie.partition("=")
        env = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(self._tmp),
            "TMPDIR": str(self._tmp),
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            key: value,
        }
        argv = [
            sys.executable,
            "-I",
            "-S",
            "-c",
            _LIMITED,
            json.dumps(limits),
            *entered(shell(), str(self._work), command),
        ]
        try:
            done = run_process(argv, timeout_s=timeout_s, cwd="/", env=env, started=self._running.started)
        finally:
            self._sweep()
        if self._running.stopped:
            return msgspec.structs.replace(done, exit=None, timed_out=False, ended=STOPPED.ended)
        return done

    def stop(self) -> None:
        self._running.stop()
        self._sweep()

    def close(self) -> None:
        self.stop()
        self.folder.close()
        # an agent can take permissions away, and nest deeper than a recursive function can follow
        subprocess.run(["chmod", "-R", "u+rwX", str(self._base)], stderr=subprocess.DEVNULL, check=False)
        subprocess.run(["rm", "-rf", "--", str(self._base)], stderr=subprocess.DEVNULL, check=False)

    def _sweep(self) -> None:
        """End every process that carries the folder's word, until there is none."""
        word = self._cookie.encode()
        for _ in range(100):
            found = False
            for pid in _pids():
                with contextlib.suppress(OSError):
                    if word in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                        os.kill(pid, signal.SIGKILL)
                        found = True
            if not found:
                return


def shell() -> str:
    """The shell that takes a command on this machine: bash where it is installed."""
    return "bash" if shutil.which("bash") else "sh"


def _pids() -> Sequence[int]:
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdecimal()]
    except OSError:
        return []


def _threads_of_user() -> int:
    count, user = 0, os.getuid()
    for pid in _pids():
        with contextlib.suppress(OSError):
            if os.stat(f"/proc/{pid}").st_uid == user:
                count += len(os.listdir(f"/proc/{pid}/task"))
    return count
