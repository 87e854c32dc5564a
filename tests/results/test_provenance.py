"""Where a run comes from: the commit, and whether the tree differs from it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from agentbench_lab.results import provenance
from agentbench_lab.results.provenance import commit, package_version, standing, versions


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-c", "user.name=n", "-c", "user.email=e@example.org", "-C", str(folder), *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clean checkout of two files, one in a folder, and an ignored one."""
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    folder = tmp_path / "checkout"
    (folder / "in").mkdir(parents=True)
    git(folder, "init", "-q")
    (folder / "a").write_text("1\n", encoding="utf-8")
    (folder / "in" / "b").write_text("2\n", encoding="utf-8")
    (folder / ".gitignore").write_text("ignored\n", encoding="utf-8")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")
    return folder


def test_a_clean_checkout_is_its_commit(checkout: Path) -> None:
    """From the top and from below, whatever git ignores."""
    (checkout / "ignored").write_text("x", encoding="utf-8")
    sha = git(checkout, "rev-parse", "HEAD")
    assert commit(checkout) == commit(checkout / "in") == sha
    assert re.fullmatch(r"[0-9a-f]{40}", sha)


def test_every_difference_is_told_apart(checkout: Path) -> None:
    """Changed, staged, removed, untracked; each has a digest of its own, the same from anywhere in the tree."""
    sha = git(checkout, "rev-parse", "HEAD")
    seen = {commit(checkout)}

    def differs() -> None:
        now = commit(checkout)
        assert re.fullmatch(rf"dirty: {sha}\+[0-9a-f]{{16}}", now)
        assert now == commit(checkout / "in") == commit(checkout)
        assert now not in seen
        seen.add(now)

    (checkout / "a").write_text("3\n", encoding="utf-8")
    differs()
    (checkout / "a").write_text("4\n", encoding="utf-8")
    differs()
    kept = commit(checkout)
    git(checkout, "add", "a")
    assert commit(checkout) == kept, "staging changes no content"
    (checkout / "new ü").write_text("5\n", encoding="utf-8")
    differs()
    (checkout / "new ü").write_text("6\n", encoding="utf-8")
    differs()
    (checkout / "new ü").rename(checkout / "in" / "other")
    differs()
    (checkout / "in" / "b").unlink()
    differs()
    (checkout / "picture").write_bytes(bytes(range(256)))
    git(checkout, "add", "picture")
    differs()
    git(checkout, "reset", "-q", "--hard")
    (checkout / "in" / "other").unlink()
    assert commit(checkout) == sha


def test_settings_of_a_person_change_nothing(checkout: Path) -> None:
    """Colour, and a program of one's own to show differences."""
    (checkout / "a").write_text("3\n", encoding="utf-8")
    before = commit(checkout)
    git(checkout, "config", "color.ui", "always")
    git(checkout, "config", "diff.external", "true")
    assert commit(checkout) == before


def test_outside_a_checkout_it_is_unknown(tmp_path: Path, checkout: Path) -> None:
    """As before the first commit, in a folder that is not there, and on a machine without git."""
    empty = tmp_path / "empty"
    empty.mkdir()
    assert commit(tmp_path) == "unknown"
    assert commit(tmp_path / "nowhere") == "unknown"
    git(empty, "init", "-q")
    assert commit(empty) == "unknown"


def test_without_git_it_is_unknown(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(checkout))
    assert commit(checkout) == "unknown"


def test_the_labs_own_project_stands_at_its_commit() -> None:
    """Cases, drivers and lab of one checkout need no second commit."""
    lab = Path(provenance.__file__).resolve().parents[2]
    here = commit(lab)
    assert standing(lab) == here
    assert standing(lab / "tests") == here
    assert " with " not in standing(lab)


def test_another_project_has_the_labs_commit_beside_its_own(checkout: Path, tmp_path: Path) -> None:
    """Its cases and drivers ran on the lab's tools and grader; outside any checkout only the lab is known."""
    lab = Path(provenance.__file__).resolve().parents[2]
    theirs, ours = git(checkout, "rev-parse", "HEAD"), commit(lab)
    ours = package_version() if ours == "unknown" else ours
    assert standing(checkout) == f"{theirs} with agentbench-lab {ours}"
    (checkout / "a").write_text("3\n", encoding="utf-8")
    assert re.fullmatch(
        rf"dirty: {theirs}\+[0-9a-f]{{16}} with agentbench-lab {re.escape(ours)}", standing(checkout)
    )
    assert standing(tmp_path) == "unknown"


def test_an_installed_lab_is_named_by_its_version(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As from a wheel: there is no checkout around it."""
    monkeypatch.setattr(provenance, "__file__", str(checkout / "lib" / "site" / "results" / "provenance.py"))
    other = checkout.parent / "other"
    other.mkdir()
    git(other, "init", "-q")
    (other / "a").write_text("1\n", encoding="utf-8")
    git(other, "add", ".")
    git(other, "commit", "-qm", "first")
    sha = git(other, "rev-parse", "HEAD")
    assert standing(other) == f"{sha} with agentbench-lab {package_version()}"


def test_versions_name_what_numbers_depend_on() -> None:
    found = versions()
    assert {"python", "agentbench-lab", "msgspec", "numpy", "polars", "pyarrow"} == found.keys()
    assert re.fullmatch(r"3\.\d+\.\d+.*", found["python"])
    assert package_version() == found["agentbench-lab"]
