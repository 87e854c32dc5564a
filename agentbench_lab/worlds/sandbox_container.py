"""The level `container`: one container of podman or docker for a trial, and its commands run in it.

The container has no network, a read-only image, no capability and no new privileges, bounds on memory, processes and
disk (a tmpfs of a fixed size at /work, one at /tmp), and a user id that nobody has outside. Its first process reads a
pipe of ours, so that the container ends when the runner does. The image needs `sh` and `cat`.

The runner has to be root: it reaches the folder through /proc, and ends what a command left behind from outside, where
no fork bomb can be in the way.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import subprocess
import time

import msgspec

from agentbench_lab.worlds.process import Finished, entered, run_process
from agentbench_lab.worlds.sandbox_bwrap import outside_user
from agentbench_lab.worlds.sandbox_folder import Folder
from agentbench_lab.worlds.sandbox_levels import STOPPED, Bounds, Running

_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"
_START_S = 60.0
_SCRATCH_MB = 16
_WAITS = "exec 3<&0; cat <&3 & wait"
"""The first process: it waits for our pipe to end, and for the orphans that it is given meanwhile."""


class Container:
    """One container of an image. Raises OSError, with the reason, where the machine cannot run one."""

    def __init__(self, image: str, bounds: Bounds) -> None:
        self._engine = engine()
        if os.geteuid() != 0:
            raise OSError("only root can look after a container's files and processes")
        self._bounds = bounds
        self._running = Running()
        self._user = outside_user()
        self._name = f"agentbench-{secrets.token_hex(8)}"
        self._client = subprocess.Popen(
            [*self._engine, "run", *self._options(), image, "sh", "-c", _WAITS],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            cwd="/",
            start_new_session=True,
        )
        try:
            self._first = self._started(image)
            self.folder = Folder(
                os.open(f"/proc/{self._first}/root/work", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC),
                "/work",
                self._user,
            )
        except BaseException:
            self._remove()
            raise
        os.fchown(self.folder.fd, self._user, self._user)
        os.fchmod(self.folder.fd, 0o700)
        self._shell = "sh"
        if self._exec("command -v bash", timeout_s=_START_S).exit == 0:
            self._shell = "bash"

    def run(self, command: str, *, timeout_s: float) -> Finished:
        if self._running.stopped:
            return STOPPED
        done = self._exec(command, timeout_s=timeout_s)
        if self._running.stopped:
            return msgspec.structs.replace(done, exit=None, timed_out=False, ended=STOPPED.ended)
        if done.exit in (125, 126) and self._client.poll() is not None:
            raise OSError("the container has ended")
        return done

    def stop(self) -> None:
        self._running.stop()

    def close(self) -> None:
        self.stop()
        self.folder.close()
        self._remove()

    # ---- the container

    def _options(self) -> list[str]:
        bounds = self._bounds
        limits = {**bounds.rlimits(), "nproc": bounds.processes}
        del limits["as"]  # the container's memory is bounded as a whole
        memory = f"{bounds.memory_mb + bounds.disk_mb}m"
        return [
            *("--rm", "--interactive", "--name", self._name, "--hostname", "sandbox", "--network", "none"),
            *("--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--user", "0:0"),
            *(["--read-only-tmpfs=false"] if "podman" in self._engine[0] else []),
            *("--memory", memory, "--memory-swap", memory, "--pids-limit", str(bounds.processes + 2)),
            *(w for name, value in limits.items() for w in ("--ulimit", f"{_ULIMIT[name]}={value}:{value}")),
            *("--tmpfs", f"/work:rw,nosuid,nodev,size={bounds.disk_mb}m,mode=0700"),
            *("--tmpfs", f"/tmp:rw,nosuid,nodev,size={_SCRATCH_MB}m,mode=1777"),
            *("--shm-size", f"{_SCRATCH_MB}m", "--workdir", "/work"),
            *(word for key, value in _ENV.items() for word in ("--env", f"{key}={value}")),
        ]

    def _started(self, image: str) -> int:
        """The process id of the container's first process, once it runs."""
        until = time.monotonic() + _START_S
        while time.monotonic() < until:
            if self._client.poll() is not None:
                assert self._client.stderr is not None
                said = self._client.stderr.read().decode(errors="replace").strip().splitlines()
                raise OSError(said[-1] if said else f"no container of {image} could be started")
            seen = run_process([*self._engine, "inspect", self._name], timeout_s=_START_S)
            with contextlib.suppress(ValueError, LookupError, TypeError):
                state = json.loads(seen.stdout)[0]["State"]
                if state["Running"] and state["Pid"]:
                    return int(state["Pid"])
            time.sleep(0.05)
        raise OSError(f"no container of {image} after {_START_S:g} s")

    def _exec(self, command: str, *, timeout_s: float) -> Finished:
        user = f"{self._user}:{self._user}"
        argv = [*self._engine, "exec", "--user", user, "--workdir", "/"]
        try:
            return run_process(
                [*argv, self._name, *entered(self._shell_or("sh"), "/work", command)],
                timeout_s=timeout_s,
                started=self._running.started,
            )
        finally:
            self._end_leftovers()

    def _shell_or(self, other: str) -> str:
        return getattr(self, "_shell", other)

    def _end_leftovers(self) -> None:
        """End every process of the trial's user in the container at once, from within its pid namespace.

        One signal to all of them, which the kernel sends while no new process can be made.
        """
        user = str(self._user)
        drop = ["setpriv", "--reuid", user, "--regid", user, "--clear-groups", "--"]
        enter = ["nsenter", "--target", str(self._first), "--pid", "--", *drop, "sh", "-c", "kill -9 -1"]
        run_process(enter, timeout_s=_START_S)

    def _remove(self) -> None:
        client = self._client
        for pipe in (client.stdin, client.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        run_process([*self._engine, "rm", "--force", "--volumes", self._name], timeout_s=_START_S)
        with contextlib.suppress(subprocess.TimeoutExpired):
            client.wait(timeout=5.0)
        if client.poll() is None:
            client.kill()
            client.wait()


_ENV = {"HOME": "/tmp", "LANG": "C.UTF-8", "TZ": "UTC", "USER": "agent", "PATH": _PATH}
_ULIMIT = {
    "cpu": "cpu",
    "fsize": "fsize",
    "core": "core",
    "nofile": "nofile",
    "memlock": "memlock",
    "msgqueue": "msgqueue",
    "nproc": "nproc",
}


def engine() -> list[str]:
    """The command line of podman or docker. Raises OSError where neither is installed, or root's tools are missing."""
    for tool in ("nsenter", "setpriv"):
        if shutil.which(tool) is None:
            raise OSError(f"not installed: {tool}")
    if shutil.which("podman"):
        # podman's first choice is crun; runc serves as well
        runtime = ["--runtime", "runc"] if shutil.which("runc") and not shutil.which("crun") else []
        return ["podman", *runtime]
    if shutil.which("docker"):
        return ["docker"]
    raise OSError("neither podman nor docker is installed")
