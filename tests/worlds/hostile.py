"""Hostile scripts, and what came of each at a level: held or not.

Each tries one thing and prints GOT when it comes through; some are judged by what is there afterwards instead. Those
that could harm the machine are never run at level local.

    python tests/worlds/hostile.py      writes the table of docs/sandbox.md, as measured on this machine
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
import subprocess
import tempfile
import textwrap
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from agentbench_lab.expect_work import ExpectedCommand, ExpectedFile
from agentbench_lab.worlds.sandbox import TOOLS, Sandbox, Spec
from agentbench_lab.worlds.sandbox_levels import Bounds, Level, unavailable
from agentbench_lab.worlds.toolbox import Toolbox

BOUNDS = Bounds(wall_s=6, cpu_s=2, memory_mb=256, file_mb=16, disk_mb=48, entries=2_000, processes=40)
SECRET = "the-secret-of-the-host"
ANSWER = "the-answer-of-the-case"
SPEC = Spec(
    files={
        "notes.txt": "a line\n",
        "check.py": "import sys\nsys.exit(0 if open('notes.txt').read() == 'done\\n' else 3)\n",
    },
    protected=("check.py",),
    limits=BOUNDS,
)
COMMAND = ExpectedCommand(run="python3 -I check.py", files={"hidden.txt": ANSWER}, timeout_s=10)
SESSION = -3


@dataclass
class Host:
    """What a script could reach on the host if nothing held it."""

    folder: Path
    port: int
    abstract: str
    victim: subprocess.Popen[bytes]
    shm_key: int
    taken: list[str] = field(default_factory=list)

    @property
    def secret(self) -> Path:
        return self.folder / "secret.txt"

    def words(self) -> dict[str, Any]:
        return {
            "secret": str(self.secret), "folder": str(self.folder), "port": self.port, "abstract": self.abstract,
            "victim": self.victim.pid, "shm_key": self.shm_key, "word": SECRET, "rewsna": ANSWER[::-1],
            "disk": BOUNDS.disk_mb << 20, "entries": BOUNDS.entries,
        }  # fmt: skip

    def unharmed(self) -> str:
        """Empty while the host is as it was, else what has changed."""
        if self.victim.poll() is not None:
            return "a process of the host was ended"
        if self.secret.read_text(encoding="utf-8") != SECRET:
            return "a file of the host was changed"
        extra = sorted(set(os.listdir(self.folder)) - {"secret.txt", "socket"})
        return f"the host has new files: {extra}" if extra else ""


@contextlib.contextmanager
def host() -> Iterator[Host]:
    """A host with a secret, listeners, a process, a key and a shared memory segment."""
    libc = ctypes.CDLL(None, use_errno=True)
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="canary-")))
        folder.chmod(0o777)
        (folder / "secret.txt").write_text(SECRET, encoding="utf-8")
        (folder / "secret.txt").chmod(0o666)
        listeners = [
            socket.create_server(("127.0.0.1", 0)),
            socket.socket(socket.AF_UNIX),
            socket.socket(socket.AF_UNIX),
        ]
        abstract = f"canary-{os.getpid()}"
        listeners[1].bind(str(folder / "socket"))
        (folder / "socket").chmod(0o777)
        listeners[2].bind(f"\0{abstract}")
        for one in listeners:
            stack.callback(one.close)
            one.listen(64)
        victim = subprocess.Popen(["sleep", "3600"], env={"CANARY": SECRET, "PATH": os.environ["PATH"]})
        stack.callback(lambda: (victim.kill(), victim.wait()))
        key = libc.syscall(_KEYS["add_key"], b"user", b"canary", SECRET.encode(), len(SECRET), SESSION)
        if key > 0:
            stack.callback(lambda: libc.syscall(_KEYS["keyctl"], 9, key, SESSION))
        shm_key = 0x41420000 + os.getpid() % 0xFFFF
        shm = libc.shmget(shm_key, 4096, 0o1000 | 0o666)
        stack.callback(lambda: libc.shmctl(shm, 0, None))
        os.environ["CANARY"] = SECRET
        stack.callback(lambda: os.environ.pop("CANARY", None))
        yield Host(folder, listeners[0].getsockname()[1], abstract, victim, shm_key)


_KEYS = {"add_key": 248, "keyctl": 250} if os.uname().machine == "x86_64" else {"add_key": 217, "keyctl": 219}


@dataclass
class Scene:
    """One script at one level: the live world with its toolbox, and the host."""

    host: Host
    world: Sandbox
    tools: Toolbox
    out: str = ""
    exit: int | None = None
    seconds: float = 0.0

    def bash(self, command: str, **more: Any) -> str:
        began = time.monotonic()
        seen = self.tools.call("bash", {"command": command, **more})
        self.seconds = time.monotonic() - began
        assert seen.status == "ok", (seen.status, seen.text)
        self.exit = seen.value["exit"]
        self.out = f"{seen.value['stdout']}\n{seen.value['stderr']}\n{seen.value.get('ended', '')}"
        return self.out

    def read(self, path: str) -> str:
        """What read_file gives for a path: its text, or the error."""
        seen = self.tools.call("read_file", {"path": path})
        return seen.text


Judge = Callable[[Scene], str]
"""Empty when the level held, else what came through."""


@dataclass(frozen=True)
class Hostile:
    """One script: what it tries, in words; the script; and, where printing GOT is not the sign, how to see it."""

    name: str
    tries: str
    script: str
    python: bool = False
    dangerous: bool = False
    judge: Judge | None = None

    def run(self, level: Level, of: Host) -> str:
        """`held`, or what came through. Raises AssertionError for a script that did not even try."""
        world = Sandbox(SPEC, level=level).fork()
        scene = Scene(of, world, Toolbox(world, list(TOOLS)))
        try:
            script = textwrap.dedent(self.script)
            for key, value in of.words().items():
                script = script.replace(f"<{key}>", str(value))
            if self.python:
                script = f"cat > /tmp/try.py <<'END'\n{_PRELUDE}\n{script}\nprint('TRIED')\nEND\npython3 /tmp/try.py"
                if level.name == "local":
                    script = script.replace("/tmp/try.py", "$TMPDIR/try.py")
            elif "TRIED" not in script:
                script = f"{script}\necho TRIED"
            out = scene.bash(script)
            seen_exit = scene.exit
            cut_short = seen_exit is None or seen_exit >= 128 or seen_exit < 0
            assert "TRIED" in out or cut_short, f"{self.name} did not get to try: {out}"
            assert "SyntaxError" not in out and "NameError" not in out, f"{self.name}: {out}"
            assert scene.seconds < BOUNDS.wall_s + 6, f"{self.name} took {scene.seconds:.1f} s"
            came = self.judge(scene) if self.judge else ""
            if not came and "GOT" in out:
                came = next(line for line in out.splitlines() if "GOT" in line)
            came = came or of.unharmed()
            # the folder still works, and the machine too
            again = scene.bash("cd / && echo still here")
            assert "still here" in again, f"{self.name}: afterwards {again}"
            return came or "held"
        finally:
            world.close()


_PRELUDE = """\
import ctypes, errno, os, resource, signal, socket, struct, sys, time
libc = ctypes.CDLL(None, use_errno=True)
ARM = os.uname().machine == 'aarch64'
def call(x86, arm, *args):
    return libc.syscall(arm if ARM else x86, *args)
def attempt(what, do):
    try:
        found = do()
    except (OSError, ValueError, AttributeError) as error:
        print('no:', what, error)
    else:
        if found is None or found is True or (isinstance(found, int) and found >= 0 and found is not False):
            print('GOT', what, found)
        else:
            print('no:', what, found)
"""


def _still(scene: Scene) -> str:
    """A helper that outlives its call would go on counting."""
    time.sleep(0.3)
    before = scene.read("count")
    time.sleep(0.5)
    return "a process went on after its call" if scene.read("count") != before else ""


def _no_secret(path: str) -> Judge:
    def judge(scene: Scene) -> str:
        return "the file tool gave the secret" if SECRET in scene.read(path) else ""

    return judge


def _write_through(path: str) -> Judge:
    def judge(scene: Scene) -> str:
        scene.tools.call("write_file", {"path": path, "content": "changed"})
        return scene.host.unharmed()

    return judge


def _race(scene: Scene) -> str:
    """Names change between a folder and a link to the host while the file tools walk over them."""
    swapping = threading.Thread(
        target=lambda: scene.world._opened().run(
            "mkdir -p real; echo mine > real/secret.txt; end=$(($(date +%s)+4)); ln -sfn real way; "
            f"while [ $(date +%s) -lt $end ]; do ln -sfn {scene.host.folder} way; ln -sfn real way; "
            f"ln -sf {scene.host.secret} real/f; rm -f real/f; echo mine > real/f; done",
            timeout_s=6,
        )
    )
    swapping.start()
    folder = scene.world._opened().folder
    came, mine = "", 0
    try:
        while swapping.is_alive():
            for path in ("way/secret.txt", "real/f", "way/f"):
                with contextlib.suppress(Exception):
                    data, _ = folder.read(path, 1_000)
                    mine += data == b"mine\n"
                    if SECRET.encode() in data:
                        came = "the file tool gave the secret"
                with contextlib.suppress(Exception):
                    folder.write("way/new.txt", b"x")
    finally:
        swapping.join()
    assert mine, "the race never let a read through"
    return came or scene.host.unharmed()


def _check_holds(scene: Scene) -> str:
    scene.world.stop()
    seen = scene.world.look({"notes.txt": ExpectedFile(exact="done\n")}, COMMAND)
    scene.world.close()
    again = Sandbox(SPEC, level=scene.world.level).fork()
    scene.world, scene.tools = again, Toolbox(again, list(TOOLS))
    assert seen.command is not None
    if seen.command.not_run or seen.command.exit != 0:
        return scene.host.unharmed()
    return f"the check ended with {seen.command.exit} {seen.command.stderr.text}"


def _quick_read(path: str) -> Judge:
    def judge(scene: Scene) -> str:
        began = time.monotonic()
        scene.read(path)
        return "read_file hung" if time.monotonic() - began > 1 else ""

    return judge


def _bounded(scene: Scene) -> str:
    row = scene.tools.ledger[-1]
    size = len(msgspec.json.encode(row))
    return f"{size} bytes are in the ledger" if size > 64_000 else ""


def _listed(scene: Scene) -> str:
    began = time.monotonic()
    seen = scene.tools.call("list_files", {})
    msgspec.json.encode(scene.tools.ledger)
    if seen.status != "ok":
        return f"list_files: {seen.text}"
    return "list_files was slow" if time.monotonic() - began > 3 else ""


def _no_more_processes(scene: Scene) -> str:
    """Nothing of the bomb is left, and this machine can still start a process."""
    subprocess.run(["true"], check=True)
    time.sleep(0.2)
    word = b"bomb-" + str(scene.host.victim.pid).encode()
    left = 0
    for name in os.listdir("/proc"):
        with contextlib.suppress(OSError):
            if name.isdecimal() and word in Path(f"/proc/{name}/cmdline").read_bytes():
                left += 1
    return f"{left} processes are left" if left else ""


def _same_name(scene: Scene) -> str:
    return "the host's name was changed" if socket.gethostname() == "taken" else ""


def _no_cron(scene: Scene) -> str:
    paths = ("/etc/cron.d/canary", "/var/spool/cron/crontabs/canary", "/etc/canary", "/usr/bin/canary")
    found = [path for path in paths if os.path.exists(path)]
    for path in found:
        os.unlink(path)
    return f"the host has {found}" if found else ""


HOSTILE = (
    # ---- the host's files
    Hostile("absolute-path", "read a file of the host by its path", "grep -o '<word>' '<secret>' && echo GOT"),
    Hostile("dot-dot", "climb out with `..`", "grep -o '<word>' ../../../../../../../..'<secret>' && echo GOT"),
    Hostile("write-out", "change a file of the host", "echo changed > '<secret>'; echo x > '<folder>/new'", dangerous=True),
    Hostile("proc-root", "reach the host's root by /proc/PID/root", "for p in /proc/[0-9]*/root; do grep -q '<word>' $p'<secret>' 2>/dev/null && echo GOT $p; done; true"),
    Hostile("hard-link", "link a file of the host into the folder", "ln '<secret>' here && grep -o '<word>' here && echo GOT"),
    Hostile("link-read", "have read_file follow a link out of the folder", "ln -s '<secret>' here", judge=_no_secret("here")),
    Hostile("link-folder", "have read_file walk over a linked folder", "ln -s '<folder>' there; ln -s there over", judge=_no_secret("over/secret.txt")),
    Hostile("link-dots", "have read_file follow a link of many `..`", "ln -s ../../../../../../../..'<secret>' here", judge=_no_secret("here")),
    Hostile("link-write", "have write_file write through a link", "ln -s '<secret>' here; ln -s '<folder>' there", judge=lambda s: _write_through("here")(s) or _write_through("there/new")(s)),
    Hostile("swap-race", "swap a folder for a link while the file tools walk", "true", judge=_race),
    Hostile("descriptors", "use a descriptor that was left open", """
        for fd in range(3, 1024):
            try:
                os.fstat(fd)
            except OSError:
                continue
            print('GOT descriptor', fd, os.readlink(f'/proc/self/fd/{fd}'))
        """, python=True),
    Hostile("system-files", "write into the system, and plan a job with cron", "for f in /etc/cron.d/canary /var/spool/cron/crontabs/canary /etc/canary /usr/bin/canary; do echo x > $f; done", dangerous=True, judge=_no_cron),
    Hostile("devices", "make and open the device of a disk", """
        for kind, (a, b) in {'disk': (254, 0), 'sda': (8, 0), 'mem': (1, 1)}.items():
            attempt('mknod ' + kind, lambda: os.mknod('dev-' + kind, 0o60600 if kind != 'mem' else 0o20600, os.makedev(a, b)))
        for name in ('vda', 'sda', 'nvme0n1', 'mem', 'kmsg', 'kvm', 'fuse'):
            attempt('open ' + name, lambda: os.open('/dev/' + name, os.O_RDONLY))
        """, python=True),
    Hostile("mount", "mount something", """
        attempt('mount', lambda: call(165, 40, b'tmpfs', b'/tmp', b'tmpfs', 0, None))
        attempt('bind', lambda: call(165, 40, b'/usr', b'/tmp', None, 4096, None))
        attempt('fsopen', lambda: call(430, 430, b'tmpfs', 0))
        attempt('umount', lambda: call(166, 39, b'/proc', 2))
        """, python=True, dangerous=True),
    Hostile("user-namespace", "become root in a new user namespace", """
        attempt('unshare', lambda: call(272, 97, 0x10000000))
        """, python=True),
    # ---- the host's processes
    Hostile("see-processes", "see a process of the host", "for p in /proc/[0-9]*; do tr '\\0' ' ' < $p/cmdline 2>/dev/null | grep -q '^sleep 3600' && echo GOT $p; done"),
    Hostile("environments", "read the environment of other processes, and its own", "for p in /proc/[0-9]*; do tr '\\0' '\\n' < $p/environ 2>/dev/null | grep -q '^CANARY=' && echo GOT $p; done"),
    Hostile("signal", "end a process of the host by its number", "kill -9 <victim>", dangerous=True),
    Hostile("kill-all", "end everything: its parent, its group, every process", "echo TRIED; kill -9 $PPID; kill -9 -1; kill -9 0", dangerous=True),
    Hostile("ptrace", "trace a process of the host", """
        libc.ptrace.restype = ctypes.c_long
        for pid in {int(name) for name in os.listdir('/proc') if name.isdecimal()} | {<victim>}:
            try:
                line = open(f'/proc/{pid}/cmdline', 'rb').read()
            except OSError:
                continue
            if line.startswith(b'sleep\\0003600'):
                attempt(f'ptrace {pid}', lambda: libc.ptrace(16, pid, None, None))
                os.waitpid(pid, 0x40000000)
                libc.ptrace(17, pid, None, None)
        """, python=True),
    Hostile("ignore-term", "ignore the signal to end", "trap '' TERM INT HUP; echo TRIED; while :; do sleep 1; done"),
    Hostile("outlive", "leave a process behind in a session of its own", "setsid sh -c 'n=0; while [ $n -lt 80 ]; do n=$((n+1)); echo $n > count; sleep 0.1; done' >/dev/null 2>&1 & sleep 0.3; echo TRIED", judge=_still),
    Hostile("outlive-clean", "the same with an empty environment", "env -i PATH=$PATH setsid sh -c 'n=0; while [ $n -lt 30 ]; do n=$((n+1)); echo $n > count; sleep 0.1; done' >/dev/null 2>&1 & sleep 0.3; echo TRIED", judge=_still),
    Hostile("hold-the-pipe", "leave a process behind that holds the output open", "sleep 60 & echo TRIED"),
    # ---- the network
    Hostile("loopback", "reach a server on the host's loopback", """
        attempt('connect', lambda: socket.create_connection(('127.0.0.1', <port>), 2).close())
        """, python=True),
    Hostile("interfaces", "find a network interface besides its own loopback", """
        names = {name for _, name in socket.if_nameindex()} - {'lo'}
        real = [n for n in names if n not in ('tunl0', 'sit0', 'ip6tnl0', 'gre0', 'gretap0', 'erspan0', 'ip_vti0', 'ip6_vti0', 'ip6gre0')]
        print('GOT' if real else 'none', real)
        """, python=True),
    Hostile("raw-socket", "open a raw socket", """
        attempt('packet', lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 3).close())
        attempt('icmp', lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1).close())
        """, python=True),
    Hostile("unix-socket", "reach a socket of the host by its path", """
        for path in ('<folder>/socket', '/run/docker.sock', '/var/run/docker.sock', '/run/podman/podman.sock', '/run/dbus/system_bus_socket'):
            attempt(path, lambda: socket.socket(socket.AF_UNIX).connect(path))
        """, python=True),
    Hostile("abstract-socket", "reach an abstract socket of the host", """
        attempt('abstract', lambda: socket.socket(socket.AF_UNIX).connect('\\0<abstract>'))
        """, python=True),
    # ---- the kernel's other rooms
    Hostile("keyring", "read a key of the runner's session", """
        key = call(250, 219, 10, -3, b'user', b'canary', 0)
        room = ctypes.create_string_buffer(100)
        got = call(250, 219, 11, key, room, 100) if key > 0 else -1
        print('GOT' if b'<word>' in room.raw else 'no', key, got)
        """, python=True),
    Hostile("shared-memory", "attach shared memory of the host", """
        attempt('shmget', lambda: libc.shmget(<shm_key>, 4096, 0))
        """, python=True),
    Hostile("host-name", "change the name of the host", """
        attempt('sethostname', lambda: libc.sethostname(b'taken', 5))
        """, python=True, dangerous=True, judge=_same_name),
    Hostile("kernel-settings", "write to /proc/sys, /sys and the kernel's triggers", """
        for path in ('/proc/sys/kernel/core_pattern', '/proc/sysrq-trigger', '/proc/sys/vm/drop_caches', '/sys/kernel/uevent_helper', '/sys/power/state'):
            attempt(path, lambda: os.close(os.open(path, os.O_WRONLY)))
        """, python=True, dangerous=True),
    Hostile("kernel-calls", "use bpf, perf, userfaultfd, io_uring, kernel modules", """
        attempt('bpf', lambda: call(321, 280, 0, ctypes.create_string_buffer(128), 128))
        attempt('perf', lambda: call(298, 241, ctypes.create_string_buffer(struct.pack('II', 1, 128) + bytes(120)), 0, -1, -1, 0))
        attempt('userfaultfd', lambda: call(323, 282, 1))
        attempt('io_uring', lambda: call(425, 425, 4, ctypes.create_string_buffer(120)))
        attempt('module', lambda: call(313, 273, 0, b'', 0))
        """, python=True),
    Hostile("kernel-log", "read the kernel's log", """
        attempt('syslog', lambda: libc.klogctl(3, ctypes.create_string_buffer(4096), 4096))
        """, python=True),
    Hostile("reboot", "reboot, set the clock, switch swap on", """
        attempt('reboot', lambda: call(169, 142, 0xfee1dead, 672274793, 0, None))
        attempt('clock', lambda: time.clock_settime(time.CLOCK_REALTIME, time.time()))
        attempt('swapon', lambda: call(167, 224, b'/tmp/none', 0) if ctypes.get_errno() != errno.ENOENT else -1)
        """, python=True, dangerous=True),
    Hostile("set-uid", "become root by a set-uid copy of the shell", """
        attempt('setuid', lambda: os.setuid(0))
        import shutil
        shutil.copy('/bin/sh' if not os.path.exists('/bin/busybox') else '/bin/busybox', 'su')
        os.chmod('su', 0o6755)
        print('GOT root' if os.geteuid() == 0 else 'no')
        """, python=True),
    Hostile("terminal", "type into the terminal of whoever started it", """
        import fcntl
        for path in ('/dev/tty', '/proc/self/fd/0', '/proc/self/fd/1', '/proc/self/fd/2'):
            attempt(path, lambda: fcntl.ioctl(os.open(path, os.O_RDWR), 0x5412, b'x') and None)
        """, python=True),
    Hostile("core-dump", "leave a core dump", """
        attempt('limit', lambda: resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY,) * 2))
        if os.fork() == 0:
            os.abort()
        os.wait()
        print('GOT' if [n for n in os.listdir('.') if n.startswith('core')] else 'no core')
        """, python=True),
    Hostile("nice", "take a higher priority", """
        attempt('nice', lambda: os.nice(-5) and None)
        attempt('scheduler', lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10)))
        """, python=True),
    Hostile("raise-limits", "raise its own limits", """
        for name in ('NPROC', 'AS', 'FSIZE', 'CPU', 'NOFILE', 'MEMLOCK'):
            kind = getattr(resource, 'RLIMIT_' + name)
            hard = resource.getrlimit(kind)[1]
            if hard != resource.RLIM_INFINITY:
                attempt(name, lambda: resource.setrlimit(kind, (hard + 1, hard + 1)))
        """, python=True),
    # ---- too much of everything
    Hostile("fork-bomb", "start processes without end", """
        exec 2>/dev/null
        bomb() { sh -c 'sleep 30; : bomb-<victim>' & bomb | bomb & }
        bomb; sleep 2; echo TRIED""", dangerous=True, judge=_no_more_processes),
    Hostile("endless-output", "print without end", "echo TRIED; yes", judge=_bounded),
    Hostile("endless-line", "print one line without end, to the other stream", "echo TRIED; cat /dev/zero >&2", judge=_bounded),
    Hostile("one-process-memory", "take much memory in one process", """
        try:
            held = b'x' * (1 << 30)
            print('GOT', len(held))
        except MemoryError:
            print('no')
        """, python=True, dangerous=True),
    Hostile("many-processes-memory", "take much memory in many processes", """
        sys.stdout.flush()
        children = []
        for n in range(12):
            pid = os.fork()
            if pid == 0:
                held = bytearray(b'x') * (100 << 20)
                time.sleep(3)
                os._exit(0)
            children.append(pid)
        time.sleep(2)
        ended = sum(os.waitpid(pid, os.WNOHANG)[0] != 0 for pid in children)
        print('GOT' if not ended else 'no', ended)
        """, python=True, dangerous=True),
    Hostile("cpu", "use the processor without end", """
        pid = os.fork()
        if pid == 0:
            while True:
                pass
        used, until = 0.0, time.monotonic() + 5
        while time.monotonic() < until and used < 3.0 and os.waitpid(pid, os.WNOHANG)[0] == 0:
            time.sleep(0.1)
            used = sum(map(int, open(f'/proc/{pid}/stat').read().split()[13:15])) / os.sysconf('SC_CLK_TCK')
        print('GOT' if used >= 3.0 else 'no', used)
        """, python=True),
    Hostile("fill-the-disk", "fill the disk from the work folder", """
        total = 0
        try:
            for n in range(40):
                with open(f'big{n}', 'wb', buffering=0) as f:
                    for _ in range(8):
                        total += f.write(bytes(1 << 20))
                if total > <disk>:
                    print('GOT', total, flush=True)
                    break
        except OSError as error:
            print(error)
        print(total)
        """, python=True, dangerous=True),
    Hostile("fill-elsewhere", "fill the disk from any other folder that takes files", """
        for top in ('/', '/tmp', '/dev', '/dev/shm', '/run', '/var', '/var/tmp', '/etc', '/dev/mqueue', '/home', '/mnt', '/proc', '/sys/fs/cgroup'):
            total = 0
            try:
                for n in range(20):
                    with open(f'{top}/big{n}', 'wb', buffering=0) as f:
                        for _ in range(8):
                            total += f.write(bytes(1 << 20))
                    if total > <disk>:
                        print('GOT', top, total, flush=True)
                        break
            except OSError as error:
                print(top, error, flush=True)
        """, python=True, dangerous=True),
    Hostile("many-files", "make files without end", """
        made = 0
        try:
            for n in range(3 * <entries>):
                open(f'f{n}', 'w').close()
                made += 1
                if made > <entries>:
                    print('GOT', made, flush=True)
                    break
        except OSError as error:
            print(error)
        print(made)
        """, python=True),
    Hostile("huge-file", "make one huge file, and a sparse one", """
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        attempt('sparse', lambda: os.truncate(os.open('sparse', os.O_RDWR | os.O_CREAT), 10 << 40))
        """, python=True),
    # ---- what the tools trip over
    Hostile("fifo", "have read_file wait for a pipe", "mkfifo pipe; ln -s pipe over", judge=lambda s: _quick_read("pipe")(s) or _quick_read("over")(s)),
    Hostile("link-loop", "have read_file follow links without end", "ln -s b a; ln -s a b; ln -s . c", judge=lambda s: _quick_read("a")(s) or _quick_read("c/" * 3_000 + "notes.txt")(s)),
    Hostile("deep-folders", "nest folders without end", """
        made = 0
        try:
            while made < 4_000:
                os.mkdir('d')
                os.chdir('d')
                made += 1
        except OSError as error:
            print(made, error)
        """, python=True, judge=_listed),
    Hostile("odd-names", "give files names that no text can hold", """
        for name in (b'a' * 255, b'\\xff\\xfe', b'new\\nline', b'-rf', b'\\xed\\xa0\\x80', b'\\x1b[2J', b' ', b"'\\""):
            open(os.path.join(b'.', name), 'w').close()
        """, python=True, judge=_listed),
    # ---- the judge
    Hostile("tamper-check", "change the check, and what it imports", """
        echo 'raise SystemExit(0)' > check.py
        echo 'import os; os._exit(0)' > sitecustomize.py
        cp sitecustomize.py sys.py; cp sitecustomize.py os.py""", judge=_check_holds),
    Hostile("check-is-folder", "put a folder in the place of the check", "rm check.py; mkdir -p check.py/deep; echo x > check.py/deep/f; chmod 0 check.py", judge=_check_holds),
    Hostile("check-is-link", "have the restored check written through a link", "rm check.py; ln -s '<secret>' check.py; ln -s '<secret>' hidden.txt", judge=_check_holds),
    Hostile("lock-the-folder", "take every permission of the folder away", "chmod 0 notes.txt check.py; chmod 0 .", judge=_check_holds),
    Hostile("full-at-the-end", "leave the folder full for the check", "n=0; while dd if=/dev/zero of=z$n bs=1M count=8 2>/dev/null; do n=$((n+1)); [ $n -lt 5 ] || break; done; true", judge=_check_holds),
    Hostile("read-answer", "find the answer of the case", """
        word = '<rewsna>'[::-1].encode()
        for top in ('/work', '/tmp', '/etc', '/run', '/var', '/home', '/root', '/proc'):
            for folder, folders, files in os.walk(top):
                if folder.count('/') > 2 or folder.endswith(('/task', '/fd', '/map_files')):
                    folders.clear()
                for name in files:
                    path = os.path.join(folder, name)
                    if folder.startswith('/proc') and name not in ('cmdline', 'environ', 'mountinfo', 'comm'):
                        continue
                    try:
                        if os.path.isfile(path) and os.path.getsize(path) < 1 << 20 and word in open(path, 'rb').read():
                            print('GOT', path)
                    except OSError:
                        pass
        """, python=True),
)  # fmt: skip


# ---- the table

DOCS = Path(__file__).resolve().parents[2] / "docs" / "sandbox.md"
BEGIN, END = "<!-- measured by tests/worlds/hostile.py -->", "<!-- end of what is measured -->"
LEVELS = ("local", "bubblewrap", "container")
NOT_TRIED = "not tried"


def levels() -> dict[str, tuple[Level, str | None]]:
    """Each level, and why it cannot be measured here."""
    from sandbox_image import level as container

    found = {"container": container()}
    for name in ("local", "bubblewrap"):
        of = Level(name)
        found[name] = (of, unavailable(of))
    return {name: found[name] for name in LEVELS}


def measured(of: Level, only: Sequence[str] = ()) -> dict[str, str]:
    """What came of each script at a level."""
    found = {}
    with host() as machine:
        for one in HOSTILE:
            if only and one.name not in only:
                continue
            if of.name == "local" and one.dangerous:
                found[one.name] = NOT_TRIED
            else:
                found[one.name] = "held" if one.run(of, machine) == "held" else "**not held**"
    return found


def documented() -> dict[str, dict[str, str]]:
    """What docs/sandbox.md says of each script, by level."""
    text = DOCS.read_text(encoding="utf-8")
    rows = text[text.index(BEGIN) : text.index(END)].splitlines()[4:]
    found: dict[str, dict[str, str]] = {}
    for row in rows:
        if row.startswith("|"):
            name, _, *cells = [cell.strip() for cell in row.strip("|").split("|")]
            found[name.strip("`")] = dict(zip(LEVELS, cells, strict=True))
    return found


def table(columns: dict[str, dict[str, str]]) -> str:
    """The rows of the table, in Markdown."""
    lines = ["", f"| script | tries to | {' | '.join(LEVELS)} |", "|---|---|---|---|---|"]
    for one in HOSTILE:
        cells = " | ".join(columns[level][one.name] for level in LEVELS)
        lines.append(f"| `{one.name}` | {one.tries} | {cells} |")
    return "\n".join([*lines, "", ""])


def main() -> None:
    columns = {}
    for name, (of, why) in levels().items():
        if why is not None:
            raise SystemExit(f"{name} cannot be measured here: {why}")
        columns[name] = measured(of)
    text = DOCS.read_text(encoding="utf-8")
    before, after = text[: text.index(BEGIN) + len(BEGIN)], text[text.index(END) :]
    DOCS.write_text(f"{before}\n{table(columns)}{after}", encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
