"""What README.md and docs/ tell people to do, done."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from agentbench_lab.cases import parse_cases
from agentbench_lab.cli import cli
from agentbench_lab.running.lint import lint_suite

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def python(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(cwd)])}
    return subprocess.run(
        [sys.executable, *arguments], cwd=cwd, env=environment, capture_output=True, text=True, timeout=120
    )


def test_the_ten_lines_of_python_are_ten_and_work(tmp_path: Path) -> None:
    """They print the banner, the metric pair with intervals, the gate and the failures; from any folder."""
    lines = blocks(README, "python")[0]
    assert len([line for line in lines.splitlines() if line.strip()]) == 10
    (tmp_path / "ten.py").write_text(lines, encoding="utf-8")
    done = python("ten.py", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "SIMULATED" in done.stdout
    assert "stub: rung reached TOOL-2" in done.stdout
    assert "refuse_all: rung reached none" in done.stdout


def test_the_drivers_eight_lines_climb_the_ladder(tmp_path: Path) -> None:
    """The file and the command of the section that brings your own driver."""
    lines = blocks(README, "python")[1]
    assert len([line for line in lines.splitlines() if line.strip()]) <= 8
    (tmp_path / "my_agent.py").write_text(lines, encoding="utf-8")
    command = re.search(r"`agentbench-lab (run [^`]*my_agent[^`]*)`", README)
    assert command is not None
    done = python("-m", "agentbench_lab.cli", *shlex.split(command[1]), "--out", "run", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "TOOL-0" in done.stdout
    card = json.loads((tmp_path / "run" / "card.json").read_text(encoding="utf-8"))
    assert [arm["driver"] for arm in card["arms"]] == ["my_agent:answer"]
    assert card["evidence"] == ["live"]


def _words(line: str) -> list[str]:
    """As a shell takes them: what stands in quotes is one word."""
    try:
        return shlex.split(line)
    except ValueError:  # prose, with an apostrophe
        return line.split()


@pytest.mark.parametrize(
    "page", ["README.md", *(f"docs/{p.name}" for p in sorted((ROOT / "docs").glob("*.md")))]
)
def test_every_command_that_is_shown_exists(page: str) -> None:
    """Each `agentbench-lab VERB --option` of a page is one that the command line knows."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for line in re.findall(r"agentbench-lab ((?:[a-z]+)(?: [^`\n|#]*)?)", text):
        verb, *words = _words(line)
        if verb not in cli.commands:
            assert verb in ("with", "is", "and"), f"{page}: agentbench-lab {line}"
            continue
        known = {name for option in cli.commands[verb].params for name in option.opts}
        for word in words:
            if word.startswith("--"):
                assert word.partition("=")[0].rstrip(".,;)") in known, f"{page}: agentbench-lab {line}"


def test_links_within_the_project_lead_somewhere() -> None:
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "data").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_case_of_the_format_document_is_a_sound_one(tmp_path: Path) -> None:
    """It loads, and passes its own lint against the world it names."""
    example = blocks((ROOT / "docs" / "formats.md").read_text(encoding="utf-8"), "json")[0]
    line = json.dumps(json.loads(example))
    assert parse_cases(line.encode(), name="example", file="example.jsonl")[1] == []
    (tmp_path / "worlds").mkdir()
    world = (ROOT / "data" / "cases" / "worlds" / "shop.json").read_bytes()
    (tmp_path / "worlds" / "shop.json").write_bytes(world)
    (tmp_path / "example.jsonl").write_text(line + "\n", encoding="utf-8")
    assert lint_suite(tmp_path / "example.jsonl") == ()
