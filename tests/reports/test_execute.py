"""Notebooks run strictly: declared types decide, nothing wrong reaches a kernel, failures are named and kept."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest

from agentbench_lab.errors import LabError
from agentbench_lab.reports import execute
from agentbench_lab.reports.execute import Declared, coerce, declared, find_notebook, run_notebook

# What a person typed -> what the notebook has to see; the types are those of the cell below.
PARAMETERS = """
commit: str = ""
case: str = ""
version: str = ""
at: str = ""
strict: bool = False
ks: list[int] = [1]
limit: int | None = 3
k: int = 1
"""
TYPED = {
    "commit": ("7e10", "7e10"),
    "case": ("0012", "0012"),
    "version": ("1.10", "1.10"),
    "at": ("12:30", "12:30"),
    "strict": ("true", True),
    "ks": ("[1,2,4]", [1, 2, 4]),
    "limit": ("None", None),
    "k": ("7", 7),
}


def notebook(
    path: Path, *cells: str, parameters: str | None = PARAMETERS, kernel: str = "no-such-kernel"
) -> Path:
    """Write a notebook with a parameters cell before the other cells."""
    made = [nbformat.v4.new_code_cell(source) for source in cells]
    if parameters is not None:
        tagged = nbformat.v4.new_code_cell(parameters.strip(), metadata={"tags": ["parameters"]})
        made.insert(0, tagged)
    whole = nbformat.v4.new_notebook(cells=made)
    whole.metadata["kernelspec"] = {"name": kernel, "display_name": kernel, "language": "python"}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(nbformat.writes(whole), encoding="utf-8")
    return path


def printed(path: Path) -> str:
    """All that an executed notebook printed."""
    read = nbformat.read(path, as_version=4)
    nbformat.validate(read)
    texts = [out.get("text", "") for cell in read.cells for out in cell.get("outputs", [])]
    return "".join(texts)


def test_b09_a_commit_is_no_number() -> None:
    """Of digits and one letter e, with an exponent beyond every float, or none at all."""
    for text in ("7e10", "12e999", "0012", "1e5", "inf", "None"):
        assert coerce(text, declared(PARAMETERS.strip())["commit"]) == text


@pytest.mark.parametrize("isolated", [False, True])
def test_b09_parameters_arrive_as_declared(tmp_path: Path, isolated: bool) -> None:
    """The table of ways in which papermill's guess goes wrong; a kernel, where there is one, is this interpreter's."""
    show = "import json, sys\nprint(json.dumps([commit, case, version, at, strict, ks, limit, k]), sys.executable)"
    path = notebook(tmp_path / "a {b}.ipynb", show)
    given = {name: text for name, (text, _) in TYPED.items()}
    out = run_notebook(path, tmp_path / "out {c}.ipynb", given, isolated=isolated)
    values, _, python = printed(out).strip().rpartition(" ")
    assert json.loads(values) == [value for _, value in TYPED.values()]
    assert python == sys.executable
    kept = nbformat.read(out, as_version=4).metadata
    assert kept.kernelspec.name == "python3"
    assert kept.papermill.input_path == "a {b}.ipynb"
    assert kept.papermill.duration > 0
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a {b}.ipynb", "out {c}.ipynb"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("strict", "yes"),
        ("strict", "1"),
        ("strict", ""),
        ("k", "nan"),
        ("k", "1.5"),
        ("k", "1_000"),
        ("k", "None"),
        ("k", ""),
        ("k", "true"),
        ("limit", "none"),
        ("ks", "[1,2.5]"),
        ("ks", "[1,true]"),
        ("ks", "1,x"),
        ("ks", "{"),
    ],
)
def test_b09_what_does_not_fit_never_starts_anything(tmp_path: Path, name: str, text: str) -> None:
    """The notebook is not touched at all: no output, no draft."""
    path = notebook(tmp_path / "n.ipynb", "raise SystemExit(3)")
    with pytest.raises(LabError, match=rf"^n\.ipynb: parameter '{name}' is .+, not '"):
        run_notebook(path, tmp_path / "out.ipynb", {name: text})
    assert [file.name for file in tmp_path.iterdir()] == ["n.ipynb"]


def test_unknown_parameters_are_refused_all_at_once(tmp_path: Path) -> None:
    """With the near match for each."""
    path = notebook(tmp_path / "n.ipynb")
    with pytest.raises(LabError) as error:
        run_notebook(path, tmp_path / "out.ipynb", {"comit": "a", "k": "x", "zzz": "1"})
    first, second, third = str(error.value).splitlines()
    assert "no parameter 'comit' (did you mean 'commit'?)" in first
    assert "'k' is int, not 'x'" in second
    assert "no parameter 'zzz'" in third


@pytest.mark.parametrize(
    ("annotation", "text", "value"),
    [
        ("float", "7e10", 7e10),
        ("float", "2", 2.0),
        ("list[str]", "a, b", ["a", "b"]),
        ("list[str]", '["a,b", "0012"]', ["a,b", "0012"]),
        ("list[str]", "", []),
        ("list[int]", "1,2", [1, 2]),
        ("str | None", "None", None),
        ("None | int", "-3", -3),
        ("str", "None", "None"),
        ("'int | None'", "5", 5),
        ("bool", "false", False),
    ],
)
def test_text_becomes_a_value_of_the_type(annotation: str, text: str, value: Any) -> None:
    """Exactly one reading for each type."""
    wanted = declared(f"p: {annotation} = None")["p"]
    found = coerce(text, wanted)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize("text", ["nan", "inf", "1e999", "1_0", "1,5", "x"])
def test_a_float_is_a_finite_number(text: str) -> None:
    """As JSON has it."""
    with pytest.raises(ValueError, match=text):
        coerce(text, Declared("float", False, 0.0))


def test_values_of_the_right_type_pass_as_they_are() -> None:
    """From Python, values need not be text; true is still no number."""
    assert coerce([1, 2], Declared("list[int]", False, [])) == [1, 2]
    assert coerce(3, Declared("float", False, 0.0)) == 3
    for wrong, kind in ((True, "int"), (1, "bool"), (1, "str"), ([True], "list[int]"), (None, "int")):
        with pytest.raises(ValueError, match=re.escape(str(wrong))):
            coerce(wrong, Declared(kind, False, None))


def test_a_default_without_annotation_gives_the_type() -> None:
    """Its own type; a type that no parameter may have is refused."""
    found = declared("a = 'x'\nb = 1\nc = [1]\nd = []\ne = True\nimport os\nf: int")
    assert {name: str(what) for name, what in found.items()} == {
        "a": "str",
        "b": "int",
        "c": "list[int]",
        "d": "list[str]",
        "e": "bool",
    }
    for source in ("a: dict = {}", "a = None", "a: int | str = 1", "a = {}", "a = os.name"):
        with pytest.raises(LabError, match="'a'"):
            declared(source)


@pytest.mark.parametrize("cells", [0, 2])
def test_exactly_one_parameters_cell(tmp_path: Path, cells: int) -> None:
    """Without it papermill would inject values and let the defaults overwrite them."""
    path = notebook(tmp_path / "n.ipynb", "x = 1", parameters=None)
    read = nbformat.read(path, as_version=4)
    read.cells += [
        nbformat.v4.new_code_cell("k = 1", metadata={"tags": ["parameters"]}) for _ in range(cells)
    ]
    path.write_text(nbformat.writes(read), encoding="utf-8")
    with pytest.raises(LabError, match=r"n\.ipynb: (no|2) cells tagged 'parameters'"):
        run_notebook(path, tmp_path / "out.ipynb", {})


FAILS = ("raise ValueError('first line\\nsecond')", r"cell 2 failed: ValueError: first line; kept as ")


@pytest.mark.parametrize(
    ("cell", "says", "how"),
    [
        (*FAILS, {}),
        (*FAILS, {"isolated": True}),
        ("1 +", r"cell 2 failed: SyntaxError: .+; kept as ", {}),
        ("raise SystemExit(3)", r"cell 2 failed: SystemExit: 3; kept as ", {}),
        ("input()", r"cell 2 failed: EOFError: EOF when reading a line; kept as ", {}),
        ("import os; os._exit(1)", r"the kernel died in cell 2; kept as ", {"isolated": True}),
        ("import time; time.sleep(60)", r"cell 2 took longer than 1 s; kept as ", {"timeout": 1}),
    ],
)
@pytest.mark.filterwarnings("ignore:To exit")
def test_a_failed_notebook_is_kept_and_replaces_nothing(
    tmp_path: Path, cell: str, says: str, how: dict[str, Any]
) -> None:
    """Three families of errors, one clear line each; the earlier product stays, byte for byte."""
    path = notebook(tmp_path / "n.ipynb", "print('before')", cell, parameters="k: int = 1")
    out = tmp_path / "out.ipynb"
    out.write_text("earlier", encoding="utf-8")
    with pytest.raises(LabError, match=rf"^n\.ipynb: {says}.*out\.failed\.ipynb$") as error:
        run_notebook(path, out, {}, **how)
    assert "\n" not in str(error.value)
    assert out.read_text(encoding="utf-8") == "earlier"
    assert printed(tmp_path / "out.failed.ipynb").startswith("before")
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.parametrize("how", [{}, {"isolated": True}])
def test_a_users_mistake_keeps_nothing(tmp_path: Path, how: dict[str, Any]) -> None:
    """A cell's LabError is about what was asked: one line without the cell, and no notebook to clear away."""
    cell = "from agentbench_lab import LabError\nraise LabError('no run \\'x\\' (did you mean y?)')"
    path = notebook(tmp_path / "n.ipynb", cell, parameters="k: int = 1")
    out = tmp_path / "out.ipynb"
    out.write_text("earlier", encoding="utf-8")
    with pytest.raises(LabError, match=r"^n\.ipynb: no run 'x' \(did you mean y\?\)$"):
        run_notebook(path, out, {}, **how)
    assert out.read_text(encoding="utf-8") == "earlier"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["n.ipynb", "out.ipynb"]


def test_an_unwritable_place_is_said_before_anything_runs(tmp_path: Path) -> None:
    """A file where the folder should be."""
    path = notebook(tmp_path / "n.ipynb")
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(LabError, match="cannot write there"):
        run_notebook(path, tmp_path / "file" / "out.ipynb", {})


def test_a_file_that_is_no_notebook(tmp_path: Path) -> None:
    """One line, not a traceback."""
    broken = tmp_path / "n.ipynb"
    broken.write_text("{", encoding="utf-8")
    with pytest.raises(LabError, match=r"n\.ipynb: not a notebook"):
        run_notebook(broken, tmp_path / "out.ipynb", {})


def test_notebooks_are_found_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Here, in notebooks/, and in the project's; with or without the suffix; else the near match."""
    monkeypatch.chdir(tmp_path)
    here = notebook(tmp_path / "mine.ipynb")
    below = notebook(tmp_path / "notebooks" / "other.ipynb")
    assert find_notebook("mine").resolve() == here
    assert find_notebook("mine.ipynb").resolve() == here
    assert find_notebook("other").resolve() == below
    assert find_notebook(below) == below
    assert find_notebook("run_ladder").name == "run_ladder.ipynb"
    with pytest.raises(LabError, match="did you mean 'run_ladder'"):
        find_notebook("run_lader")


def test_the_list_of_notebooks_gives_question_and_parameters() -> None:
    """What a person needs to run one."""
    lines = execute.notebook_list()
    assert "run_ladder  How high does a driver climb the TOOL ladder?" in lines
    assert "    -p driver (str, default 'stub')" in lines


@pytest.mark.parametrize("isolated", [False, True])
def test_a_cell_may_print_what_no_file_can_hold(tmp_path: Path, isolated: bool) -> None:
    path = notebook(tmp_path / "n.ipynb", r"print('half \udcff')", parameters="k: int = 1")
    assert printed(run_notebook(path, tmp_path / "out.ipynb", {}, isolated=isolated)).startswith("half ")
