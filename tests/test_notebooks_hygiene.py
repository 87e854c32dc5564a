"""Every notebook is thin, stripped, asks a question, and has parameters that a run can be given."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest

from agentbench_lab.reports.execute import declared

NOTEBOOKS = Path(__file__).resolve().parent.parent / "notebooks"
TAGS = {"parameters", "setup", "hide-input", "hide-cell"}
MOST_LINES = 12

# What running leaves behind, and git ignores.
BUILT = re.compile(r"out.*\.ipynb|.*failed.*\.ipynb")
PATHS = sorted(path for path in NOTEBOOKS.glob("*.ipynb") if not BUILT.fullmatch(path.name))

each_notebook = pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)


def notebook(path: Path) -> Any:
    """The notebook, valid by the format's own schema."""
    read = nbformat.read(path, as_version=nbformat.NO_CONVERT)
    nbformat.validate(read)
    return read


def code_cells(path: Path) -> list[Any]:
    """Its code cells in order."""
    return [cell for cell in notebook(path).cells if cell.cell_type == "code"]


def tags(cell: Any) -> list[str]:
    """A cell's tags, which may be absent."""
    return list(cell.metadata.get("tags", []))


def parameters_cell(path: Path) -> Any:
    """The one cell tagged `parameters`."""
    (cell,) = [cell for cell in notebook(path).cells if "parameters" in tags(cell)]
    return cell


def test_the_ladder_notebook_is_there() -> None:
    """The command that everyone is told to run names it; without it the tests below would prove nothing."""
    assert "run_ladder" in [path.stem for path in PATHS]


@each_notebook
def test_it_is_stripped(path: Path) -> None:
    """No outputs, no counts, no traces of a run or of one machine's Python."""
    read = notebook(path)
    assert [
        cell.source for cell in code_cells(path) if cell.outputs or cell.execution_count is not None
    ] == []
    assert [cell.source for cell in read.cells if set(cell.metadata) - {"tags"}] == []
    assert read.metadata.kernelspec.name == "python3"
    assert "version" not in read.metadata.get("language_info", {})
    assert set(read.metadata) <= {"kernelspec", "language_info", "title"}


@each_notebook
def test_it_opens_with_its_question(path: Path) -> None:
    """The first cell is Markdown: one title, then at least a sentence, and between them they ask something."""
    first = notebook(path).cells[0]
    assert first.cell_type == "markdown"
    titles = re.findall(r"^# .+$", first.source, re.MULTILINE)
    assert len(titles) == 1
    assert first.source.startswith(titles[0])
    below = first.source.removeprefix(titles[0]).strip()
    assert re.search(r"\w[.?!:]", below)
    assert "?" in first.source


@each_notebook
def test_it_has_one_title(path: Path) -> None:
    """Further Markdown cells hold smaller headings, so that the report has one H1."""
    later = [cell.source for cell in notebook(path).cells[1:] if cell.cell_type == "markdown"]
    assert [source for source in later if re.search(r"^# ", source, re.MULTILINE)] == []


@each_notebook
def test_every_parameter_can_be_given(path: Path) -> None:
    """Exactly one parameters cell, before all other code; each name that it assigns is one that our parser sees."""
    cell = parameters_cell(path)
    assert cell.source == code_cells(path)[0].source
    assigned = []
    for node in ast.parse(cell.source).body:
        assert isinstance(node, ast.AnnAssign), f"not a typed assignment: {ast.unparse(node)}"
        assert isinstance(node.target, ast.Name)
        assert node.value is not None, f"no default: {node.target.id}"
        assigned.append(node.target.id)
    assert assigned
    assert len(assigned) == len(set(assigned))
    assert set(declared(cell.source)) == set(assigned)


@each_notebook
def test_papermill_sees_every_parameter_too(path: Path) -> None:
    """`papermill NOTEBOOK` is run by hand as well, and a parameter that it does not see is a warning there."""
    papermill = pytest.importorskip("papermill")
    assigned = {node.target.id for node in ast.parse(parameters_cell(path).source).body}
    assert set(papermill.inspect_notebook(str(path))) == assigned


@each_notebook
def test_it_holds_no_logic(path: Path) -> None:
    """A notebook with a definition or a loop is missing a library function. Its cells are plain Python."""
    logic = (
        ast.FunctionDef,
        ast.AsyncFunctionDef,
        ast.ClassDef,
        ast.Lambda,
        ast.For,
        ast.AsyncFor,
        ast.While,
    )
    found = [
        ast.unparse(node)
        for cell in code_cells(path)
        for node in ast.walk(ast.parse(cell.source))
        if isinstance(node, logic)
    ]
    assert found == []


@each_notebook
def test_its_cells_are_short(path: Path) -> None:
    """Code that needs more room belongs in the library."""
    assert [cell.source for cell in code_cells(path) if len(cell.source.splitlines()) > MOST_LINES] == []
    assert [cell for cell in code_cells(path) if not cell.source.strip()] == []


@each_notebook
def test_its_tags_are_known(path: Path) -> None:
    """Reports act on these tags; a misspelt one would be silently without effect."""
    assert {tag for cell in notebook(path).cells for tag in tags(cell)} <= TAGS


def test_the_list_of_notebooks_is_complete() -> None:
    """notebooks/README.md names every notebook, and only notebooks that are there."""
    readme = (NOTEBOOKS / "README.md").read_text(encoding="utf-8")
    named = {name for name in re.findall(r"[\w-]+\.ipynb", readme) if not BUILT.fullmatch(name)}
    assert named == {path.name for path in PATHS}
