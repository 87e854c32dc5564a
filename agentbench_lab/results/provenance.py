"""Where a run comes from: the commit with what differs from it, and the versions that ran."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path

_PACKAGES = ("agentbench-lab", "msgspec", "numpy", "polars", "pyarrow")


def commit(folder: Path) -> str:
    """`<sha>`, or `dirty: <sha>+<digest of the difference>`, or `unknown` outside a checkout.

    The difference counts tracked changes and the content of untracked files that git does not ignore.
    """
    return _checkout(folder)[1]


def _checkout(folder: Path) -> tuple[Path | None, str]:
    """The top of the folder's checkout and its `commit`; each git is a process, so that none is asked twice."""
    found = _git(folder, "rev-parse", "--show-toplevel", "HEAD")
    if found is None:
        return None, "unknown"
    folder_name, sha = os.fsdecode(found).removesuffix("\n").rsplit("\n", 1)
    top = Path(folder_name)
    # as git itself writes it, whatever a person's own settings make of a difference
    changed = _git(folder, "diff", "HEAD", "--binary", "--no-ext-diff", "--no-textconv", "--no-color")
    listed = _git(folder, "ls-files", "--others", "--exclude-standard", "-z", "--full-name", ":/")
    if changed is None or listed is None:
        return top, "unknown"
    untracked = [name for name in sorted(listed.split(b"\0")) if name and not _of_a_run(top, name)]
    if not changed and not untracked:
        return top, sha
    difference = hashlib.sha256(changed)
    for name in untracked:
        file = top / name.decode(errors="surrogateescape")
        if file.is_file():
            difference.update(name + b"\0" + hashlib.sha256(file.read_bytes()).digest())
    return top, f"dirty: {sha}+{difference.hexdigest()[:16]}"


def standing(project: Path) -> str:
    """The commit of the project's folder, and beside it the lab's own where that is another checkout or none.

    The project says which cases and drivers ran, the lab which tools and grader.
    """
    lab = Path(__file__).resolve().parents[2]
    top, of_project = _checkout(project)
    if top is not None and (
        top == lab or _git(lab, "rev-parse", "--show-toplevel") == os.fsencode(top) + b"\n"
    ):
        return of_project
    of_lab = commit(lab) if (lab / "pyproject.toml").is_file() else "unknown"
    if of_lab == "unknown":
        of_lab = package_version()
    return of_project if of_project == "unknown" else f"{of_project} with agentbench-lab {of_lab}"


def _of_a_run(top: Path, name: bytes) -> bool:
    """Whether an untracked file lies in a run's folder: what a run writes does not change what it measures."""
    file = top / name.decode(errors="surrogateescape")
    return any((file.parent / mark).exists() for mark in ("card.json", "journal.jsonl", "run.lock"))


def _git(folder: Path, *arguments: str) -> bytes | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, timeout=20, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout


def versions() -> dict[str, str]:
    """Python, and the packages that numbers depend on."""
    return {"python": platform.python_version(), **{name: _version(name) for name in _PACKAGES}}


@functools.cache
def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


def package_version() -> str:
    """The version of this package, which is the default stamp of a run."""
    return versions()["agentbench-lab"]
