"""A project with copies of a notebook, and the two ways to make reports of them."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def project(folder: Path, names: Sequence[str], notebook: str) -> Path:
    """A folder with the cases of this project, and one of its notebooks under these names."""
    (folder / "data").mkdir()
    (folder / "data" / "cases").symlink_to(ROOT / "data" / "cases")
    (folder / "notebooks").mkdir()
    for name in names:
        shutil.copyfile(ROOT / "notebooks" / f"{notebook}.ipynb", folder / "notebooks" / f"{name}.ipynb")
    return folder


def seconds(where: Path, *commands: Sequence[str]) -> float:
    """What these processes take, one after the other."""
    began = time.perf_counter()
    for command in commands:
        subprocess.run([sys.executable, "-m", *command], cwd=where, check=True, capture_output=True)
    return time.perf_counter() - began


def ours(where: Path, *arguments: str) -> float:
    return seconds(where, ["agentbench_lab.cli", *arguments])


def the_pair(where: Path, name: str) -> float:
    run = [
        "papermill",
        f"notebooks/{name}.ipynb",
        "notebooks/out.ipynb",
        "--no-progress-bar",
        "--log-level",
        "ERROR",
    ]
    return seconds(where, run, ["nbconvert", "--to", "html", "notebooks/out.ipynb"])
