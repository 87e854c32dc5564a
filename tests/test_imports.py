"""Importing the package does nothing: nothing heavy is loaded, nothing is written, nothing is said."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import agentbench_lab

ROOT = Path(__file__).resolve().parent.parent

HEAVY = {
    "altair",
    "anyio",
    "click",
    "jsonschema",
    "mcp",
    "nbconvert",
    "numpy",
    "pandas",
    "papermill",
    "polars",
    "pyarrow",
    "pydantic",
    "scipy",
}

PROBE = """
import json, os, sys
modules, environment = set(sys.modules), dict(os.environ)
import agentbench_lab
loaded = {name.partition(".")[0] for name in set(sys.modules) - modules}
print(json.dumps([sorted(loaded), dict(os.environ) == environment]))
"""


def test_importing_does_nothing(tmp_path: Path) -> None:
    """In a fresh interpreter: no heavy module, no file in the working or home folder, no output, same environment."""
    environment = {
        **os.environ,
        "HOME": str(tmp_path),
        "PYTHONPATH": str(ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    done = subprocess.run(
        [sys.executable, "-c", PROBE], cwd=tmp_path, env=environment, capture_output=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, b"")
    loaded, same_environment = json.loads(
        done.stdout
    )  # one line: what importing printed would stand before it
    assert "agentbench_lab" in loaded
    assert HEAVY.intersection(loaded) == set()
    assert same_environment
    assert list(tmp_path.iterdir()) == []


def test_every_public_name_is_there() -> None:
    """Each lazily imported name resolves, and tab completion sees it."""
    names = agentbench_lab.__all__
    assert names
    assert [name for name in names if getattr(agentbench_lab, name, None) is None] == []
    assert set(names) - set(dir(agentbench_lab)) == set()


def test_an_unknown_name_is_an_attribute_error() -> None:
    """So that hasattr and `from agentbench_lab import ...` say what they always say."""
    assert not hasattr(agentbench_lab, "no_such_name")
