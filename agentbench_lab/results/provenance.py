"""Where a run comes from: the commit with what differs from it, and the versions that ran."""

from __future__ import annotations

import hashlib
import importlib.metadata
import platform
import subprocess
from pathlib import Path

_PACKAGES = ("agentbench-lab", "msgspec", "numpy", "polars", "pyarrow")


def commit(folder: Path) -> str:
    """`<sha>`, or `dirty: <sha>+<digest of the difference>`, or `unknown` outside a checkout.

    The difference counts tracked changes and the content of untracked files that git does not ignore.
    """
    sha = _git(folder, "rev-parse", "HEAD")
    if sha is None:
        return "unknown"
    # as git itself writes it, whatever a person's own settings make of a difference
    changed = _git(folder, "diff", "HEAD", "--binary", "--no-ext-diff", "--no-textconv", "--no-color")
    listed = _git(folder, "ls-files", "--others", "--exclude-standard", "-z", "--full-name", ":/")
    if changed is None or listed is None:
        return "unknown"
    top = Path((_git(folder, "rev-parse", "--show-toplevel") or b"").decode().strip())
    untracked = [name for name in sorted(listed.split(b"\0")) if name and not _of_a_run(top, name)]
    if not changed and not untracked:
        return sha.decode().strip()
    difference = hashlib.sha256(changed)
    for name in untracked:
        file = top / name.decode(errors="surrogateescape")
        if file.is_file():
            difference.update(name + b"\0" + hashlib.sha256(file.read_bytes()).digest())
    return f"dirty: {sha.decode().strip()}+{difference.hexdigest()[:16]}"


def standing(project: Path) -> str:
    """The commit of the project's folder, and beside it the lab's own where that is another checkout or none.

    The project says which cases and drivers ran, the lab which tools and grader.
    """
    lab = Path(__file__).resolve().parents[2]
    of_project = commit(project)
    if (top := _git(project, "rev-parse", "--show-toplevel")) == _git(
        lab, "rev-parse", "--show-toplevel"
    ) and top:
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
    found = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "unknown"
    return found


def package_version() -> str:
    """The version of this package, which is the default stamp of a run."""
    return versions()["agentbench-lab"]
