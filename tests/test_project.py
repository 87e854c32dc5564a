"""The files around the library agree with each other."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from hypothesis import settings
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

import agentbench_lab

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]

# Where conda-forge spells a name of PyPI in another way.
CONDA_NAMES = {"great-tables": "great_tables"}

TARGETS = [
    "setup",
    "ladder",
    "test",
    "long",
    "fuzz",
    "check",
    "format",
    "lab",
    "reports",
    "bench",
    "local-ladder",
    "docs",
    "clean",
]


def requirements(*lists: list[str]) -> dict[str, SpecifierSet]:
    """Canonical name -> bounds of all the requirements."""
    parsed = [Requirement(line) for lines in lists for line in lines]
    return {canonicalize_name(one.name): one.specifier for one in parsed}


def pins() -> dict[str, str]:
    """Canonical name -> version in constraints.txt."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pairs = [line.split("==") for line in lines if line and not line.startswith("#")]
    return {canonicalize_name(name): version for name, version in pairs}


def environment_yml() -> list[str | dict[str, list[str]]]:
    """The dependencies of environment.yml as they are written."""
    text = (ROOT / "environment.yml").read_text(encoding="utf-8")
    return list(yaml.safe_load(text)["dependencies"])


def make(*words: str, folder: Path = ROOT) -> str:
    """What make prints; it must succeed. As from a shell, even when these tests run under make themselves."""
    outside = {
        name: value for name, value in os.environ.items() if name not in {"MAKEFLAGS", "MAKELEVEL", "MFLAGS"}
    }
    done = subprocess.run(
        ["make", *words],
        cwd=folder,
        env=outside,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_environment_yml_is_in_step_with_pyproject() -> None:
    """The library's and the lab's requirements, with the same bounds, under conda-forge's names."""
    expected = {
        CONDA_NAMES.get(name, name): bounds
        for name, bounds in requirements(PROJECT["dependencies"], EXTRAS["lab"]).items()
    }
    written = [Requirement(line) for line in environment_yml() if isinstance(line, str)]
    conda = {one.name: one.specifier for one in written}
    assert conda.pop("python") == SpecifierSet(PROJECT["requires-python"])
    del conda["pip"]
    assert conda == expected


def test_environment_yml_leaves_only_the_project_to_pip() -> None:
    """conda then solves every binary at once, and only from conda-forge."""
    assert [line for line in environment_yml() if isinstance(line, dict)] == [{"pip": ["-e ."]}]
    text = (ROOT / "environment.yml").read_text(encoding="utf-8")
    assert yaml.safe_load(text)["channels"] == ["conda-forge"]


def test_python_versions_agree() -> None:
    """The linter and the type checker read the code as the oldest Python that may run it, and this is one that may."""
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    oldest = PROJECT["requires-python"].removeprefix(">=")
    assert tools["mypy"]["python_version"] == oldest
    assert tools["ruff"]["target-version"] == "py" + oldest.replace(".", "")
    assert ".".join(map(str, sys.version_info[:3])) in SpecifierSet(PROJECT["requires-python"])


def test_constraints_hold_names_and_versions_only() -> None:
    """No index, path, address, digest or second pin for a name."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    entries = [line for line in lines if not line.startswith("#")]
    assert [line for line in entries if not re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.!]+", line)] == []
    assert len(pins()) == len(entries)


def test_constraints_meet_every_requirement() -> None:
    """Each requirement of the library and of each extra has a pin within its bounds."""
    pinned = pins()
    wanted = requirements(PROJECT["dependencies"], *EXTRAS.values())
    unmet = [name for name, bounds in wanted.items() if pinned.get(name) not in bounds]
    assert unmet == []


def test_constraints_are_complete() -> None:
    """What the requirements require in turn is pinned too, as far as it is installed here."""
    if sys.version_info[:2] != (3, 11) or sys.platform != "linux":
        pytest.skip("the pins are those of Python 3.11 on Linux")
    pinned = pins()
    waiting = [Requirement(line) for lines in (PROJECT["dependencies"], *EXTRAS.values()) for line in lines]
    seen: set[tuple[str, frozenset[str]]] = set()
    missing: set[str] = set()
    while waiting:
        one = waiting.pop()
        name = canonicalize_name(one.name)
        if (name, frozenset(one.extras)) in seen:
            continue
        seen.add((name, frozenset(one.extras)))
        if name not in pinned:
            missing.add(name)
        try:
            lines = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            continue
        for further in map(Requirement, lines):
            extras = ["", *one.extras]
            if further.marker is None or any(further.marker.evaluate({"extra": extra}) for extra in extras):
                waiting.append(further)
    assert missing == set()
    assert len(seen) > len(PROJECT["dependencies"])


def test_the_version_is_written_once() -> None:
    """pyproject.toml holds it, the package reads it, the changelog tells of it."""
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"## [{PROJECT['version']}]" in changelog
    try:
        installed = metadata.version("agentbench-lab")
    except metadata.PackageNotFoundError:
        pytest.skip("the package runs from its folder and is not installed")
    assert installed == PROJECT["version"] == agentbench_lab.__version__


@pytest.mark.parametrize("target", TARGETS)
def test_makefile_target_exists(target: str) -> None:
    """make knows it, and `make help` tells of it."""
    assert make("-n", target)
    assert re.search(rf"^make {target} +\S", make(), re.MULTILINE)


def test_only_fuzz_tries_other_examples_each_time() -> None:
    """So that no test fails without a change, and what fuzz finds can be found again."""
    usual, fuzz = settings.get_profile("lab"), settings.get_profile("fuzz")
    assert usual.derandomize and not fuzz.derandomize and fuzz.print_blob
    assert "--hypothesis-profile fuzz" in (ROOT / "Makefile").read_text(encoding="utf-8")


def test_ladder_runs_the_documented_command_afresh() -> None:
    """The old executed notebook goes first, so that a failed run never publishes an older one's numbers."""
    words = " ".join(make("-n", "ladder").replace("\\\n", " ").split())
    removed = words.index("rm -f notebooks/out.ipynb")
    run = words.index('papermill run_ladder.ipynb out.ipynb -p driver "stub"')
    published = words.index("agentbench-lab report --executed notebooks/out.ipynb")
    assert removed < run < published


def test_a_half_made_environment_is_made_again(tmp_path: Path) -> None:
    """Without its stamp the environment is made from nothing; with a fresh one nothing is done and nothing said."""
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    asked = tmp_path / "asked"
    python = tmp_path / "python3"
    # Stands in for the interpreter, and writes down what it is asked: a real environment takes a minute.
    python.write_text(
        "#!/bin/sh\n"
        'echo "$*" >> asked\n'
        "mkdir -p .venv/bin\n"
        "printf '#!/bin/sh\\necho pip >> asked\\n' > .venv/bin/python\n"
        "chmod +x .venv/bin/python\n",
        encoding="utf-8",
    )
    python.chmod(0o755)
    (tmp_path / ".venv").mkdir()
    from_nothing = ["-m venv --clear .venv", "pip"]
    make("setup", "PYTHON=./python3", folder=tmp_path)
    assert asked.read_text(encoding="utf-8").splitlines() == from_nothing
    assert make("setup", "PYTHON=./python3", folder=tmp_path) == ""
    assert asked.read_text(encoding="utf-8").splitlines() == from_nothing
    (tmp_path / ".venv" / ".stamp").unlink()
    make("setup", "PYTHON=./python3", folder=tmp_path)
    assert asked.read_text(encoding="utf-8").splitlines() == from_nothing * 2


def test_prices_are_read_without_the_reports() -> None:
    """A command that only prices a run needs nothing of what draws reports."""
    code = (
        "import sys, agentbench_lab as lab; lab.prices; "
        "print([name for name in sys.modules if name.startswith('agentbench_lab.reports')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
