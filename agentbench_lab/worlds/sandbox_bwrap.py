"""The level `bubblewrap`: a work folder behind the kernel's namespaces, without any privilege.

The folder is a tmpfs of a fixed size, in a mount namespace of its own that one waiting process holds: when that process
ends, because the trial or the runner did, the folder is gone. Each command runs in a new sandbox of bubblewrap's, with
that folder bound at /work and /tmp: user, pid, ipc, uts, network and mount namespaces, no capability, no new user
namespace, no network but its own loopback, and of the host nothing but /usr (with /bin, /lib), read-only. When a command
ends its pid namespace ends, and with it everything that it started.

A runner that is root gives up its user first: the kernel does not count root's processes against a limit.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import platform
import secrets
import select
import shutil
import signal
import struct
import subprocess
import threading
import time
from collections.abc import Iterable
from pathlib import Path

import msgspec

from agentbench_lab.cases import project_root
from agentbench_lab.worlds.process import Finished, entered, run_process
from agentbench_lab.worlds.sandbox_folder import Folder, Stored
from agentbench_lab.worlds.sandbox_levels import STOPPED, Bounds, Running

INSIDE = 1_000
"""The user id that a command sees as its own."""
_TOOLS = ("bwrap", "unshare", "nsenter", "mount", "prlimit", "setpriv")
_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"
_WATCH_S = 0.1
_GONE_S = 5.0
_ETC = {
    "passwd": f"root:x:0:0:root:/root:/bin/sh\nagent:x:{INSIDE}:{INSIDE}:agent:/tmp:/bin/sh\n",
    "group": f"root:x:0:\nagent:x:{INSIDE}:\n",
    "hosts": "127.0.0.1 localhost sandbox\n::1 localhost\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}


class Bubblewrap:
    """One folder at this level. Raises OSError, with the reason, where the machine does not have what it takes."""

    def __init__(self, bounds: Bounds) -> None:
        missing = [name for name in _TOOLS if shutil.which(name, path=_PATH) is None]
        if missing:
            raise OSError(f"not installed: {', '.join(missing)}")
        self._filter = system_call_filter(platform.machine())
        self._bounds = bounds
        self._running = Running()
        self._root = os.geteuid() == 0
        self._system = system_words(answer_folders(project_root(), Path(__file__).parent.parent))
        self._user = outside_user() if self._root else os.geteuid()
        self._shell = next((s for s in ("/usr/bin/bash", "/bin/bash") if os.path.exists(s)), "/bin/sh")
        self._holder = self._hold()
        try:
            base = Folder(self._open("/tmp"), "/tmp")
            try:
                base.seed({f"etc/{name}": Stored(text.encode()) for name, text in _ETC.items()})
            finally:
                base.close()
            owner = self._user if self._root else None
            self.folder = Folder(self._open("/tmp/work"), "/work", owner)
        except BaseException:
            self._end_holder()
            raise

    def run(self, command: str, *, timeout_s: float) -> Finished:
        if self._running.stopped:
            return STOPPED
        filter_fd = os.memfd_create("filter", os.MFD_CLOEXEC)
        status, status_to = os.pipe()
        watch = _Watch(status, self._bounds.memory_mb << 20, self._running)
        try:
            os.write(filter_fd, self._filter)
            os.lseek(filter_fd, 0, os.SEEK_SET)
            argv = [
                *self._enter(),
                *self._wrap(filter_fd, status_to),
                *entered(self._shell, "/work", command),
            ]
            watch.start()
            done = run_process(
                argv,
                timeout_s=timeout_s,
                cwd="/",
                env={"PATH": _PATH},
                pass_fds=(filter_fd, status_to),
                started=self._running.started,
            )
        finally:
            os.close(filter_fd)
            os.close(status_to)
            watch.finish()
        if watch.over:
            return msgspec.structs.replace(done, exit=None, timed_out=False, ended=watch.over)
        if self._running.stopped:
            return msgspec.structs.replace(done, exit=None, timed_out=False, ended=STOPPED.ended)
        if not watch.ended and not done.timed_out:
            raise OSError(
                done.stderr[-400:].decode(errors="replace").strip() or f"bwrap ended with {done.exit}"
            )
        return done

    def stop(self) -> None:
        self._running.stop()

    def close(self) -> None:
        self.stop()
        self.folder.close()
        self._end_holder()

    # ---- the folder

    def _hold(self) -> subprocess.Popen[bytes]:
        """The process in whose mount namespace /tmp is the folder's tmpfs. It ends when we do: it reads our pipe."""
        bounds = self._bounds
        options = f"size={bounds.disk_mb}m,nr_inodes={bounds.entries},mode=0711"
        script = f"mount -t tmpfs -o {options} agentbench /tmp && mkdir -m 0700 /tmp/work /tmp/tmp"
        if self._root:
            script += f" && chown {self._user}:{self._user} /tmp/work /tmp/tmp"
        own = ["--mount"] if self._root else ["--user", "--map-root-user", "--mount"]
        holder = subprocess.Popen(
            ["unshare", *own, "sh", "-c", f"{script} && echo ready && exec cat"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd="/",
            env={"PATH": _PATH},
            start_new_session=True,
        )
        assert holder.stdout is not None and holder.stderr is not None
        if holder.stdout.readline() != b"ready\n":
            said = holder.communicate()[1].decode(errors="replace").strip()
            raise OSError(said.splitlines()[-1] if said else "no mount namespace could be made")
        return holder

    def _open(self, path: str) -> int:
        return os.open(f"/proc/{self._holder.pid}/root{path}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def _end_holder(self) -> None:
        holder = self._holder
        holder.kill()
        with contextlib.suppress(OSError, ValueError):
            holder.communicate()

    # ---- the command

    def _enter(self) -> list[str]:
        """Into the folder's mount namespace, and away from root."""
        holder = str(self._holder.pid)
        if not self._root:
            return ["nsenter", "--target", holder, "--user", "--preserve-credentials", "--mount", "--"]
        user = str(self._user)
        drop = ["setpriv", "--reuid", user, "--regid", user, "--clear-groups", "--"]
        return ["nsenter", "--target", holder, "--mount", "--", *drop]

    def _wrap(self, filter_fd: int, status_fd: int) -> list[str]:
        limits = {**self._bounds.rlimits(), "nproc": self._bounds.processes}
        env = {"PATH": _PATH, "HOME": "/tmp", "LANG": "C.UTF-8", "TZ": "UTC", "USER": "agent"}
        spaces = ("user", "pid", "ipc", "uts", "net", "cgroup-try")
        return [
            "bwrap",
            *(f"--unshare-{space}" for space in spaces),
            "--disable-userns",
            "--die-with-parent",
            "--new-session",
            *("--cap-drop", "ALL", "--uid", str(INSIDE), "--gid", str(INSIDE), "--hostname", "sandbox"),
            *self._system,
            *(word for name in _ETC for word in ("--ro-bind", f"/tmp/etc/{name}", f"/etc/{name}")),
            *("--ro-bind-try", "/etc/ld.so.cache", "/etc/ld.so.cache"),
            *("--ro-bind-try", "/etc/alternatives", "/etc/alternatives"),
            *("--proc", "/proc", "--dev", "/dev", "--size", str(16 << 20), "--tmpfs", "/dev/shm"),
            *("--bind", "/tmp/work", "/work", "--bind", "/tmp/tmp", "/tmp"),
            # what bubblewrap itself mounts has no size: nothing of it may be written to
            *("--remount-ro", "/dev", "--remount-ro", "/"),
            *("--chdir", "/", "--clearenv"),
            *(word for key, value in env.items() for word in ("--setenv", key, value)),
            *("--seccomp", str(filter_fd), "--json-status-fd", str(status_fd)),
            "--",
            "prlimit",
            *(f"--{name}={value}:{value}" for name, value in limits.items()),
            "--",
        ]


def outside_user() -> int:
    """A user id that nobody has, for one folder; that of `nobody` where this machine knows no such number."""
    user = 1_879_048_192 + secrets.randbelow(1 << 24)
    try:
        maps = Path("/proc/self/uid_map").read_text(encoding="ascii")
    except OSError:
        return user
    spans = [[int(word) for word in line.split()] for line in maps.splitlines()]
    return user if any(first <= user < first + count for first, _, count in spans) else 65_534


def answer_folders(root: Path, package: Path) -> list[Path]:
    """What may hold the answers of cases: a source checkout whole; of any other project folder what a project keeps there,
    since programs may stand beside it; and this package's own folder."""
    root = root.resolve()
    programs = any(Path(folder).is_relative_to(root) for folder in _PATH.split(":"))
    whole = (root / "pyproject.toml").is_file() and not programs
    kept = [root] if whole else [root / name for name in ("data", "notebooks", "reports", "tests")]
    return [folder for folder in (*kept, package.resolve()) if folder.is_dir()]


def system_words(hidden: Iterable[Path]) -> list[str]:
    """The arguments for the system's programs and libraries, read-only, at their own places. Of `hidden`, what lies below
    one of them is an empty folder there; what lies elsewhere is not in the sandbox at all."""
    words, bound = ["--ro-bind", "/usr", "/usr"], ["/usr"]
    for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
        path = f"/{name}"
        if os.path.islink(path):
            words += ["--symlink", os.readlink(path), path]
        elif os.path.isdir(path):
            words += ["--ro-bind", path, path]
            bound.append(path)
    below = {each for each in hidden if any(each.is_relative_to(top) and str(each) != top for top in bound)}
    for folder in sorted(each for each in below if below.isdisjoint(each.parents)):
        words += ["--size", str(1 << 12), "--tmpfs", str(folder), "--remount-ro", str(folder)]
    return words


class _Watch(threading.Thread):
    """Reads what bubblewrap says of its sandbox, ends it when its processes hold too much, and sees it gone."""

    def __init__(self, status: int, most_bytes: int, running: Running) -> None:
        super().__init__(daemon=True)
        self._status, self._most, self._running = status, most_bytes, running
        self._over = threading.Event()
        self._text = b""
        self._first: int | None = None
        self._pidfd: int | None = None
        self.over = ""

    @property
    def ended(self) -> bool:
        """Whether the command was started and came to its own end."""
        return b"exit-code" in self._text

    def run(self) -> None:
        while not self._over.is_set():
            ready, _, _ = select.select([self._status], [], [], _WATCH_S)
            if ready and not self._read():
                return
            if self._first is not None and not self.over:
                held = _held(self._first)
                if held > self._most:
                    self.over = (
                        f"its processes held {held >> 20} MiB together; {self._most >> 20} are allowed"
                    )
                    self._running.end_current()

    def _read(self) -> bool:
        chunk = os.read(self._status, 4_096)
        self._text += chunk
        if self._first is None and b"\n" in self._text:
            with contextlib.suppress(ValueError, KeyError, OSError):
                self._first = int(json.loads(self._text.split(b"\n")[0])["child-pid"])
                self._pidfd = os.pidfd_open(self._first)
        return bool(chunk)

    def finish(self) -> None:
        """Once bubblewrap has ended: see that the sandbox's first process, and so all of them, have ended too."""
        self._over.set()
        if self.ident is not None:
            self.join()
        while select.select([self._status], [], [], 0)[0] and self._read():
            pass
        os.close(self._status)
        if self._pidfd is None:
            return
        try:
            if not _gone(self._pidfd, 0.5):
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
                if not _gone(self._pidfd, _GONE_S):
                    raise OSError(errno.EBUSY, "the sandbox's processes do not end")
        except ProcessLookupError:
            pass
        finally:
            os.close(self._pidfd)


def _gone(pidfd: int, within_s: float) -> bool:
    return bool(select.select([pidfd], [], [], within_s)[0])


def _held(first: int) -> int:
    """The bytes of memory of their own that a process and its descendants hold."""
    total, todo, page = 0, [first], os.sysconf("SC_PAGE_SIZE")
    until = time.monotonic() + 1.0
    while todo and time.monotonic() < until:
        pid = todo.pop()
        with contextlib.suppress(OSError, ValueError):
            _, resident, shared, *_ = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()
            total += (int(resident) - int(shared)) * page
            for thread in os.listdir(f"/proc/{pid}/task"):
                children = Path(f"/proc/{pid}/task/{thread}/children").read_text(encoding="ascii")
                todo += map(int, children.split())
    return total


# ---- the filter of system calls: what namespaces do not hold

_BY_MACHINE: dict[str, tuple[int, dict[str, int]]] = {
    # the audit architecture, and the numbers of the system calls that are refused
    "x86_64": (
        0xC000003E,
        {
            "acct": 163, "add_key": 248, "bpf": 321, "delete_module": 176, "finit_module": 313, "init_module": 175,
            "kexec_file_load": 320, "kexec_load": 246, "keyctl": 250, "mount": 165, "open_by_handle_at": 304,
            "perf_event_open": 298, "pivot_root": 155, "quotactl": 179, "reboot": 169, "request_key": 249,
            "setns": 308, "swapon": 167, "syslog": 103, "umount2": 166, "userfaultfd": 323, "ioctl": 16,
            "memfd_create": 319,
        },
    ),
    "aarch64": (
        0xC00000B7,
        {
            "acct": 89, "add_key": 217, "bpf": 280, "delete_module": 106, "finit_module": 273, "init_module": 105,
            "kexec_file_load": 294, "kexec_load": 104, "keyctl": 219, "mount": 40, "open_by_handle_at": 265,
            "perf_event_open": 241, "pivot_root": 41, "quotactl": 60, "reboot": 142, "request_key": 218,
            "setns": 268, "swapon": 224, "syslog": 116, "umount2": 39, "userfaultfd": 282, "ioctl": 29,
            "memfd_create": 279,
        },
    ),
}  # fmt: skip
_ON_BOTH = (425, 426, 427, 428, 429, 430, 431, 432, 433, 442, 447)
"""io_uring's three, the new calls that mount (open_tree to fspick, mount_setattr), memfd_secret."""
_TERMINAL = (0x5412, 0x541C)
"""TIOCSTI and TIOCLINUX: to type into a terminal as if a person had."""
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000 | errno.EPERM


def system_call_filter(machine: str) -> bytes:
    """The classic BPF program that refuses (EPERM) what namespaces do not hold: keys, kernel modules, the kernel's log and tracing,
    mounting, files of memory that no limit counts, and typing into a terminal. Raises OSError for a processor whose numbers are not known."""
    if machine not in _BY_MACHINE:
        raise OSError(f"no system call filter for a {machine} processor")
    architecture, numbers = _BY_MACHINE[machine]
    numbers = dict(numbers)
    ioctl = numbers.pop("ioctl")
    refused = sorted({*numbers.values(), *_ON_BOTH})
    load, equal, at_least, give = 0x20, 0x15, 0x35, 0x06
    program: list[tuple[int, int, int, int]] = [
        (load, 0, 0, 4),  # seccomp_data.arch
        (equal, 1, 0, architecture),
        (give, 0, 0, _REFUSE),
        (load, 0, 0, 0),  # seccomp_data.nr
        (at_least, 0, 1, 0x40000000),  # x32 has other numbers for the same calls
        (give, 0, 0, _REFUSE),
    ]
    for number in refused:
        program += [(equal, 0, 1, number), (give, 0, 0, _REFUSE)]
    program += [(equal, 1, 0, ioctl), (give, 0, 0, _ALLOW), (load, 0, 0, 24)]  # the low half of args[1]
    for request in _TERMINAL:
        program += [(equal, 0, 1, request), (give, 0, 0, _REFUSE)]
    program.append((give, 0, 0, _ALLOW))
    return b"".join(struct.pack("<HBBI", *line) for line in program)
