"""A notebook run by papermill in a kernel of its own, which is always this interpreter."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import Any

from agentbench_lab.reports.execute import answered, failure, read_notebook, write_notebook


def run_in_kernel(path: Path, draft: Path, values: dict[str, Any], timeout: int | None) -> str | None:
    """Run a notebook into `draft`; what went wrong in one line, or None.

    Errors come in three families that share no base class.
    """
    import papermill
    from nbclient.exceptions import CellTimeoutError, DeadKernelError
    from papermill.exceptions import PapermillExecutionError

    # papermill would fill in braces of a path with parameters
    source, target = (str(each).replace("{", "{{").replace("}", "}}") for each in (path, draft))
    problem = None
    try:
        papermill.execute_notebook(
            source,
            target,
            parameters=values,
            kernel_name="python3",
            language="python",
            kernel_manager_class=_kernel_manager(),
            execution_timeout=timeout,
            progress_bar=sys.stderr.isatty(),
        )
    except PapermillExecutionError as error:
        problem = failure(path.name, error.cell_index, error.ename, str(error.evalue))
    except CellTimeoutError:
        problem = f"{path.name}: cell {_stopped(draft)} took longer than {timeout} s"
    except DeadKernelError:
        problem = f"{path.name}: the kernel died in cell {_stopped(draft)}"
    if draft.is_file():
        _relabel(draft, path.name)
    return problem


def _relabel(draft: Path, name: str) -> None:
    """The executed notebook says which notebook it is, by name only, and names the kernel that it ran with."""
    notebook = read_notebook(draft)
    notebook.metadata["papermill"] |= {"input_path": name, "output_path": None}
    write_notebook(notebook, draft)


def _stopped(draft: Path) -> int | str:
    """The number of the cell that had not completed, as in papermill's errors."""
    if not draft.is_file():
        return "1"
    cells = enumerate(read_notebook(draft).cells)
    return next((number for number, cell in cells if cell.cell_type == "code" and not answered(cell)), "?")


@cache
def _kernel_manager() -> type:
    """A kernel manager that always starts this interpreter: a kernel of that name may belong to another one."""
    from jupyter_client.kernelspec import KernelSpec
    from jupyter_client.manager import AsyncKernelManager

    class ThisInterpreter(AsyncKernelManager):
        @property
        def kernel_spec(self) -> KernelSpec:
            argv = [
                sys.executable,
                "-m",
                "ipykernel_launcher",
                "-f",
                "{connection_file}",
                "--log-level=ERROR",
            ]
            return KernelSpec(argv=argv, display_name="Python 3", language="python")

    return ThisInterpreter
