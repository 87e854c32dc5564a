"""An image for the tests of level container: busybox, and this system's own Python; nothing is fetched."""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import tarfile
from functools import lru_cache
from pathlib import Path

from agentbench_lab.worlds.sandbox_container import engine
from agentbench_lab.worlds.sandbox_levels import Level, unavailable

NAME = "localhost/agentbench-lab-test:1"
APPLETS = "sh cat ls cp mv rm ln mkdir mkfifo mknod chmod dd yes sleep kill id touch env setsid head tail grep seq true"
PYTHON = "/usr/bin/python3"


@lru_cache(maxsize=1)
def image() -> str | None:
    """Why there is no image; None once there is one."""
    busybox = shutil.which("busybox")
    try:
        command = engine()
    except OSError as error:
        return str(error)
    if busybox is None or "statically" not in _file(busybox):
        return "busybox-static is not installed"
    if not os.path.exists(PYTHON):
        return f"there is no {PYTHON}"
    if subprocess.run([*command, "image", "inspect", NAME], capture_output=True, check=False).returncode == 0:
        return None
    made = subprocess.run(
        [*command, "import", "-", NAME], input=_tar(busybox), capture_output=True, check=False
    )
    return None if made.returncode == 0 else made.stderr.decode(errors="replace").strip()[-200:]


def level() -> tuple[Level, str | None]:
    """The level with this image, and why it cannot be used here."""
    of = Level("container", NAME)
    return of, image() or unavailable(of)


def _file(path: str) -> str:
    said = subprocess.run(["ldd", path], capture_output=True, text=True, check=False)
    return "statically" if "not a dynamic" in said.stderr + said.stdout else said.stdout


def _tar(busybox: str) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        have: set[str] = set()

        def put(path: str, at: str) -> None:
            if at not in have:
                have.add(at)
                tar.add(os.path.realpath(path), at, recursive=False)

        put(busybox, "bin/busybox")
        for name in APPLETS.split():
            link = tarfile.TarInfo(f"bin/{name}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(link)
        real = Path(PYTHON).resolve()
        put(str(real), "usr/bin/python3")
        version = subprocess.run(
            [PYTHON, "-I", "-c", "import sys, sysconfig; print(sysconfig.get_path('stdlib'))"],
            capture_output=True, text=True, check=True,
        ).stdout.strip()  # fmt: skip
        objects = [str(real)]
        skipped = {
            "test",
            "__pycache__",
            "idlelib",
            "tkinter",
            "lib2to3",
            "dist-packages",
            "ensurepip",
            "pydoc_data",
        }
        for folder, folders, files in os.walk(version):
            folders[:] = [name for name in folders if name not in skipped and not name.startswith("config-")]
            for name in files:
                path = os.path.join(folder, name)
                if os.path.exists(path):
                    put(path, path.lstrip("/"))
                    if name.endswith(".so"):
                        objects.append(path)
        said = subprocess.run(["ldd", *objects], capture_output=True, text=True, check=False).stdout
        for library in sorted(set(re.findall(r"(/\S+)\s+\(0x", said))):
            put(library, library.lstrip("/"))
    return out.getvalue()
