"""A notebook as a function: its declared parameters are checked before anything runs, and a failure says so.

papermill guesses the types of what it is given and only warns about names that it does not know. Here the types that
the notebook's own `parameters` cell declares decide, and whatever does not fit stops the run.
"""

from __future__ import annotations

import ast
import json
import math
import os
import re
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agentbench_lab.cases import project_root
from agentbench_lab.errors import LabError, ProblemsError, did_you_mean

TYPES = ("str", "int", "float", "bool", "list[int]", "list[str]")
"""What a parameter may be declared as; each also as `| None`."""


@dataclass(frozen=True, slots=True)
class Declared:
    """One assignment of a parameters cell: its type (one of TYPES), whether None is a value of it, its default."""

    kind: str
    optional: bool
    default: Any

    def __str__(self) -> str:
        return f"{self.kind} | None" if self.optional else self.kind


def declared(source: str) -> dict[str, Declared]:
    """The parameters that a cell's source declares, by name. Without annotation the default's type is meant.

    Raises LabError for a type or a default that is not a plain value of one of TYPES.
    """
    found = {}
    for node in ast.parse(source).body:
        target: ast.expr | None = None
        if isinstance(node, ast.AnnAssign):
            target, annotation = node.target, ast.unparse(node.annotation).strip("'\"")
        elif isinstance(node, ast.Assign) and len(node.targets) == 1:
            target, annotation = node.targets[0], ""
        if (
            not isinstance(target, ast.Name)
            or not isinstance(node, ast.Assign | ast.AnnAssign)
            or not node.value
        ):
            continue
        try:
            default = ast.literal_eval(node.value)
        except ValueError:
            raise LabError(f"parameter {target.id!r}: its default is not a plain value") from None
        parts = [part.strip() for part in annotation.split("|")] if annotation else [_kind(default)]
        kinds = [part for part in parts if part != "None"]
        if len(kinds) != 1 or kinds[0] not in TYPES:
            wrong = annotation or type(default).__name__
            raise LabError(f"parameter {target.id!r}: {wrong!r} is none of the types {', '.join(TYPES)}")
        found[target.id] = Declared(kinds[0], len(parts) > len(kinds), default)
    return found


def _kind(value: Any) -> str:
    if isinstance(value, list):
        return "list[int]" if value and all(type(item) is int for item in value) else "list[str]"
    return type(value).__name__


def fits(value: Any, wanted: Declared) -> bool:
    """Whether a Python value is of the declared type; true is never a number, and a number is finite."""
    if value is None:
        return wanted.optional
    if wanted.kind.startswith("list"):
        item = int if wanted.kind == "list[int]" else str
        return isinstance(value, list | tuple) and all(type(element) is item for element in value)
    if wanted.kind == "float":
        return type(value) in (int, float) and math.isfinite(value)
    return type(value).__name__ == wanted.kind


def coerce(text: Any, wanted: Declared) -> Any:
    """The value that `text` stands for in the declared type; raises ValueError when it is none. Text stays as written."""
    value: Any = text
    if isinstance(text, str):
        if wanted.optional and text == "None":
            value = None
        elif wanted.kind == "bool":
            value = {"true": True, "false": False, "True": True, "False": False}.get(text, text)
        elif wanted.kind == "int" and re.fullmatch(r"[+-]?[0-9]+", text):
            value = int(text)
        elif wanted.kind == "float":
            with suppress(ValueError):
                value = float(text) if "_" not in text else text
        elif wanted.kind.startswith("list"):
            value = _items(text, wanted.kind)
    if not fits(value, wanted):
        raise ValueError(text)
    return value


def _items(text: str, kind: str) -> Any:
    """`[1, 2]` as JSON, or `1,2`; empty text is the empty list."""
    if text.lstrip().startswith("["):
        try:
            return json.loads(text)
        except ValueError:
            return text
    items = [item.strip() for item in text.split(",")] if text.strip() else []
    if kind == "list[str]":
        return items
    return [int(item) if re.fullmatch(r"[+-]?[0-9]+", item) else item for item in items]


def resolve(parameters: Mapping[str, Any], known: Mapping[str, Declared], notebook: str) -> dict[str, Any]:
    """The given parameters as Python values; raises LabError naming every one that is unknown or does not fit."""
    values, wrong = {}, []
    for name, given in parameters.items():
        if name not in known:
            wrong.append(f"{notebook}: no parameter {name!r}{did_you_mean(name, known)}")
            continue
        try:
            values[name] = coerce(given, known[name])
        except ValueError:
            hint = " (true or false)" if known[name].kind == "bool" else ""
            wrong.append(f"{notebook}: parameter {name!r} is {known[name]}{hint}, not {given!r}")
    if wrong:
        raise LabError("\n".join(wrong))
    return values


def find_notebook(name: str | Path) -> Path:
    """A notebook by path or name, with or without `.ipynb`: here, in `notebooks/`, or in the project's notebooks."""
    wanted = Path(name)
    folders = [Path(), Path("notebooks"), project_root() / "notebooks"]
    for folder in folders:
        for candidate in (folder / wanted, folder / f"{wanted}.ipynb"):
            if candidate.is_file() and candidate.suffix == ".ipynb":
                return candidate
    there = {path.stem for folder in folders[1:] for path in _kept(folder)}
    raise LabError(f"no notebook {str(name)!r}{did_you_mean(wanted.stem, there)}")


def _kept(folder: Path) -> list[Path]:
    """The notebooks of a folder by name, without what running leaves beside them."""
    found = sorted(folder.glob("*.ipynb"))
    return [path for path in found if not path.stem.startswith("out") and "failed" not in path.stem]


def project_notebooks() -> list[Path]:
    """The project's own notebooks, by name."""
    return _kept(project_root() / "notebooks")


def notebook_list() -> list[str]:
    """The project's notebooks for a terminal: name and question, and below each its parameters with their defaults."""
    lines = []
    for path in project_notebooks():
        notebook = read_notebook(path)
        title = next((cell.source.partition("\n")[0] for cell in notebook.cells), "").lstrip("# ")
        lines.append(f"{path.stem}  {title}")
        for name, what in parameters_of(notebook, path.name).items():
            lines.append(f"    -p {name} ({what}, default {what.default!r})")
    return lines


def read_notebook(path: Path) -> Any:
    """A notebook in format 4; raises LabError when the file is none."""
    import nbformat

    try:
        return nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    except OSError as error:
        raise LabError(f"{path}: {error.strerror or error}") from None
    except Exception as error:  # a broken file raises whatever its first oddity leads to
        raise LabError(
            f"{path}: not a notebook ({type(error).__name__}: {str(error).splitlines()[0]})"
        ) from None


def parameters_of(notebook: Any, name: str) -> dict[str, Declared]:
    """What the notebook's one cell tagged `parameters` declares."""
    cells = [cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", [])]
    if len(cells) != 1:
        raise LabError(f"{name}: {len(cells) or 'no'} cells tagged 'parameters'; there has to be exactly one")
    try:
        return declared(cells[0].source)
    except LabError as error:
        raise LabError(f"{name}: {error}") from None
    except SyntaxError as error:
        raise LabError(
            f"{name}: the parameters cell is not Python ({error.msg}, line {error.lineno})"
        ) from None


def run_notebook(
    path: str | Path,
    out: Path,
    parameters: Mapping[str, Any],
    *,
    isolated: bool = False,
    timeout: int | None = None,
) -> Path:
    """Run a notebook into `out` with this interpreter, whatever kernel its metadata names; returns `out`.

    Parameters are text as a command line gives it (or values already of the declared type). The cells run in this
    process, in a namespace of their own (`inprocess` says what is put back afterwards); `isolated` runs them by
    papermill in a kernel instead. So does `timeout`, the seconds that each cell may take, as only a kernel can be
    ended, and so does a call from within a notebook. `out` is replaced only by a notebook that ran to its end; one that
    failed is kept as `<stem of out>.failed.ipynb`, and LabError names the cell and what went wrong. Where a cell raised
    LabError the mistake is in what was asked, and its line says it all: then nothing is kept.
    """
    from agentbench_lab.reports import inprocess

    path, out = find_notebook(path), Path(out)
    values = resolve(parameters, parameters_of(read_notebook(path), path.name), path.name)
    failed = out.with_name(f"{out.stem}.failed.ipynb")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{out.stem}-", suffix=".ipynb", dir=out.parent)
        os.close(handle)
    except OSError as error:
        raise LabError(f"{out.parent}: cannot write there ({error.strerror})") from None
    draft = Path(name).absolute()  # a cell may change the working folder
    draft.unlink()  # there is nothing to keep until a cell has run
    try:
        if isolated or timeout is not None or not inprocess.available():
            from agentbench_lab.reports.kernel import run_in_kernel

            problem = run_in_kernel(path, draft, values, timeout)
        else:
            problem = _run_here(path, draft, values)
        if problem is None:
            os.replace(draft, out)
            return out
        if isinstance(problem, Mistake):
            draft.unlink(missing_ok=True)
        elif draft.is_file():
            os.replace(draft, failed)
            problem += f"; kept as {failed}"
        raise LabError(str(problem))
    finally:
        if draft.is_file():
            os.replace(draft, failed)


def _run_here(path: Path, draft: Path, values: dict[str, Any]) -> str | None:
    """Run a notebook in this process into `draft`; what went wrong in one line, or None."""
    from importlib.metadata import version

    from agentbench_lab.reports.inprocess import Stopped, run_cells

    notebook = read_notebook(path)
    injected = "injected-parameters"
    notebook.cells = [cell for cell in notebook.cells if injected not in cell.metadata.get("tags", [])]
    if values:
        at = next(n for n, cell in enumerate(notebook.cells) if "parameters" in cell.metadata.get("tags", []))
        notebook.cells.insert(at + 1, _injected(values))
    started = datetime.now(UTC)
    exception: bool | None = None
    try:
        run_cells(notebook)
    except Stopped as stop:
        exception = True
        return failure(path.name, stop.index, stop.kind, stop.words)
    except BaseException:
        exception = True
        raise
    finally:
        ended = datetime.now(UTC)
        # as papermill writes it, so that whoever reads the one reads the other
        notebook.metadata["papermill"] = {
            "default_parameters": {},
            "duration": round((ended - started).total_seconds(), 6),
            "end_time": ended.isoformat(),
            "environment_variables": {},
            "exception": exception,
            "input_path": path.name,
            "output_path": None,
            "parameters": values,
            "start_time": started.isoformat(),
            "version": version("papermill"),
        }
        write_notebook(notebook, draft)
    return None


def _injected(values: Mapping[str, Any]) -> Any:
    """The cell that overwrites the defaults, as papermill writes it."""
    from nbformat import v4

    source = "".join(["# Parameters\n", *(f"{name} = {_literal(value)}\n" for name, value in values.items())])
    return v4.new_code_cell(source, metadata={"tags": ["injected-parameters"]})  # type: ignore[no-untyped-call]


def _literal(value: Any) -> str:
    """A parameter's value in Python, text in double quotes."""
    if isinstance(value, str):
        escaped = value.encode("unicode_escape").decode().replace('"', '\\"')
        return f'"{escaped}"'
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_literal, value))}]"
    return repr(value)


class Mistake(str):
    """What a cell said of a mistake in what it was asked to do: nothing of the notebook itself is wrong."""


def failure(notebook: str, cell: int, kind: str, words: str) -> str:
    """What went wrong in a cell (numbered from 0 among all cells), in one line; a user's mistake speaks for itself."""
    first = [*words.strip().splitlines(), ""][0]
    if kind in (LabError.__name__, ProblemsError.__name__):
        return Mistake(f"{notebook}: {first}")
    return f"{notebook}: cell {cell} failed: {kind}: {first}".rstrip(": ")


def write_notebook(notebook: Any, path: Path) -> None:
    """Write an executed notebook; it names the kernel of this interpreter."""
    import nbformat

    notebook.metadata["kernelspec"] = {"display_name": "Python 3", "language": "python", "name": "python3"}
    text = nbformat.writes(notebook)  # type: ignore[no-untyped-call]
    # a cell may print what no file can hold, such as half a sign in the name of a file
    path.write_text(f"{text}\n", encoding="utf-8", errors="replace", newline="\n")


def answered(cell: Any) -> bool:
    """Whether the kernel answered for a code cell: papermill calls one `completed` that died or ran out of time."""
    execution = cell.metadata.get("execution", {})
    return cell.execution_count is not None and (not execution or "shell.execute_reply" in execution)
