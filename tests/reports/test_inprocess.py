"""A notebook run in this process: as a kernel would have run it, and nothing of it is left for the next one."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from typing import Any

import nbformat
import pytest

from agentbench_lab.errors import LabError
from agentbench_lab.reports import run_notebook

from .test_execute import notebook, printed


def ran(folder: Path, *cells: str, isolated: bool = False, **given: Any) -> Any:
    """The executed notebook of these cells."""
    path = notebook(folder / "n.ipynb", *cells, parameters="k: int = 1\nname: str = ''\nks: list[int] = []")
    read = nbformat.read(run_notebook(path, folder / "out.ipynb", given, isolated=isolated), as_version=4)
    nbformat.validate(read)
    return read


CELLS = [
    "import sys\nprint('a')\nprint('b', file=sys.stderr)\nprint('c')\nk + 1",
    "display({'text/html': '<b>x</b>', 'text/plain': 'x'}, raw=True)",
    "shown = display('first', display_id='one')",
    "display('second', display_id='one', update=True)",
    "class Both:\n    def _repr_mimebundle_(self, **_): return {'application/x+json': {'a': [1]}, 'text/plain': 'both'}\nBoth()",
    "class Picture:\n    def _repr_png_(self): return b'\\x89PNG\\r\\n\\x1a\\n'\n    def __repr__(self): return 'picture'\nPicture()",
    "import asyncio\nawait asyncio.sleep(0)\n_ is not None",
    "1;",
    "len(In), __name__, name, ks",
    "",
]


def test_it_puts_out_what_a_kernel_does(tmp_path: Path) -> None:
    """Streams in order, results, displays and their updates, bytes, top-level await: equal to papermill's notebook."""
    given = {"k": "7", "name": 'say "\\é"\n', "ks": "[1, 2]"}
    here = ran(tmp_path / "a", *CELLS, **given)
    kernel = ran(tmp_path / "b", *CELLS, isolated=True, **given)

    def told(read: Any) -> list[Any]:
        kept = [(cell.source, cell.execution_count, cell.metadata.tags, cell.outputs) for cell in read.cells]
        return [[dict(output) for output in each[3]] + [*each[:3]] for each in kept]

    mine, theirs = told(here), told(kernel)
    # the first cell writes both streams: a kernel hands them over in two lots
    first = [output for output in mine[2][:-3] if output["output_type"] == "stream"]
    assert [(each["name"], each["text"]) for each in first] == [
        ("stdout", "a\n"),
        ("stderr", "b\n"),
        ("stdout", "c\n"),
    ]
    mine[2] = [each for each in mine[2] if each not in first]
    theirs[2] = [
        each for each in theirs[2] if not (isinstance(each, dict) and each["output_type"] == "stream")
    ]
    assert mine == theirs
    assert here.metadata.papermill.keys() == kernel.metadata.papermill.keys()
    same = ("parameters", "version", "exception", "input_path", "output_path", "default_parameters")
    assert [here.metadata.papermill[name] for name in same] == [
        kernel.metadata.papermill[name] for name in same
    ]
    assert here.metadata.papermill.duration > 0
    assert here.cells[0].metadata.papermill.keys() == kernel.cells[0].metadata.papermill.keys()


SPOIL = """import os, sys, warnings
import altair, polars
leftover = 1
os.environ["AGENTBENCH_LAB_LEFT"] = "1"
os.environ.pop("PATH")
os.chdir("/")
sys.argv.append("more")
sys.path.append("/nowhere")
sys.stdout = sys.stderr = None
sys.displayhook = sys.excepthook = print
warnings.simplefilter("ignore")
altair.renderers.enable("mimetype")
altair.theme.enable("dark")
altair.data_transformers.disable_max_rows()
polars.Config.set_tbl_rows(3)"""


def test_nothing_is_left_for_the_next(tmp_path: Path) -> None:
    """Variables, environment, folder, argv, path, streams, hooks, filters, Altair and polars are as they were."""
    import altair
    import polars

    def state() -> list[Any]:
        chosen = [altair.renderers, altair.theme, altair.data_transformers]
        return [
            os.getcwd(), dict(os.environ), [*sys.argv], [*sys.path], sys.stdout, sys.stderr, sys.stdin, sys.displayhook,
            sys.excepthook, [*warnings.filters], sys.modules["__main__"], polars.Config.state(),
            [(each.active, dict(each.options)) for each in chosen],
        ]  # fmt: skip

    before = state()
    ran(tmp_path / "a", SPOIL)
    assert state() == before
    with pytest.raises(LabError, match="ZeroDivisionError"):
        ran(tmp_path / "b", SPOIL, "1 / 0")
    assert state() == before
    read = ran(
        tmp_path / "c",
        "'leftover' in globals(), os.environ.get('AGENTBENCH_LAB_LEFT') if 'os' in globals() else 'no os'",
    )
    assert read.cells[1].outputs[0].data["text/plain"] == "(False, 'no os')"
    from IPython import get_ipython

    assert get_ipython() is None


def test_the_working_folder_can_be_imported_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a kernel, whatever the command line's own path is."""
    (tmp_path / "only_here_1.py").write_text("value = 5\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [each for each in sys.path if each not in ("", str(tmp_path))])
    monkeypatch.delitem(sys.modules, "only_here_1", raising=False)
    assert ran(tmp_path / "a", "import only_here_1\nonly_here_1.value").cells[1].outputs[0].data == {
        "text/plain": "5"
    }


def test_an_interrupt_is_passed_on_and_keeps_what_was_done(tmp_path: Path) -> None:
    """Ctrl-C ends the command; the notebook so far is kept as failed."""
    path = notebook(
        tmp_path / "n.ipynb", "print('before')", "raise KeyboardInterrupt", parameters="k: int = 1"
    )
    with pytest.raises(KeyboardInterrupt):
        run_notebook(path, tmp_path / "out.ipynb", {})
    assert not (tmp_path / "out.ipynb").exists()
    assert printed(tmp_path / "out.failed.ipynb").startswith("before")


def test_within_a_notebook_it_takes_a_kernel(tmp_path: Path) -> None:
    """A shell is there already: cells that ran in it would see, and spoil, the caller's."""
    inner = notebook(
        tmp_path / "inner.ipynb", "mine = 2\nimport os\nprint(os.getpid())", parameters="k: int = 1"
    )
    cell = f"from agentbench_lab.reports import run_notebook\nmine = 1\nrun_notebook({str(inner)!r}, {str(tmp_path / 'in.ipynb')!r}, {{}})\nmine"
    read = ran(tmp_path / "a", cell)
    assert read.cells[1].outputs[-1].data["text/plain"] == "1"
    assert printed(tmp_path / "in.ipynb").strip() != str(os.getpid())
