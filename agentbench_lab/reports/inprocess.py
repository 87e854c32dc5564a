"""A notebook's cells run in this process: no kernel to start, a namespace of their own, and the process left as it was.

What a notebook cannot disturb for the next one: its variables, `__main__`, the environment, the working folder,
`sys.argv` and `sys.path`, the standard streams, warning filters, Altair's renderer, data transformer and theme, and
polars' display options. What stays: imported modules with their state, threads that were left running, and whatever was
printed by other than Python. A notebook that needs more apart runs in a kernel.
"""

from __future__ import annotations

import base64
import gc
import io
import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from typing import Any


class Stopped(Exception):
    """A cell ended by an exception; `index` is the cell's number in the notebook, from 0."""

    def __init__(self, index: int, kind: str, words: str) -> None:
        super().__init__(index, kind, words)
        self.index, self.kind, self.words = index, kind, words


def available() -> bool:
    """Whether cells can run here: not within another notebook, whose shell stands where theirs would."""
    if "IPython" not in sys.modules:
        return True
    from IPython.core.interactiveshell import InteractiveShell

    return not InteractiveShell.initialized()


def run_cells(notebook: Any) -> None:
    """Run the code cells in order, and put their outputs, counts and times into the notebook.

    Raises Stopped at the first cell that fails; what was put out until then, and its error, are in the notebook.
    KeyboardInterrupt is passed on.
    """
    with _left_as_it_was(), _shell() as shell:
        for index, cell in enumerate(_progress(notebook.cells)):
            started = datetime.now(UTC)
            failed: BaseException | None = None
            if cell.cell_type == "code":
                cell.outputs, cell.execution_count = [], None
                if cell.source.strip():
                    failed = _run(shell, cell)
            ended = datetime.now(UTC)
            cell.metadata["papermill"] = {
                "duration": round((ended - started).total_seconds(), 6),
                "end_time": ended.isoformat(),
                "exception": failed is not None,
                "start_time": started.isoformat(),
                "status": "completed" if failed is None else "failed",
            }
            cell.metadata.setdefault("tags", [])
            if isinstance(failed, KeyboardInterrupt):
                raise failed
            if failed is not None:
                raise Stopped(index, type(failed).__name__, str(failed)) from failed


def _progress(cells: list[Any]) -> Iterator[Any]:
    """The cells, with a bar on a terminal."""
    if not sys.stderr.isatty():
        yield from cells
        return
    from tqdm import tqdm

    tqdm.monitor_interval = 0  # no thread of its own
    yield from tqdm(cells, unit="cell", leave=False, file=sys.stderr)


def _run(shell: Any, cell: Any) -> BaseException | None:
    shell.outputs = cell.outputs
    before = sys.stdout, sys.stderr, sys.stdin
    sys.stdout, sys.stderr = _Printed(shell.outputs, "stdout"), _Printed(shell.outputs, "stderr")
    sys.stdin = io.StringIO()  # nobody is there to answer
    try:
        done = shell.run_cell(cell.source, store_history=True)
    finally:
        sys.stdout, sys.stderr, sys.stdin = before
    cell.execution_count = done.execution_count
    failed: BaseException | None = done.error_before_exec or done.error_in_exec
    return failed


class _Printed(io.TextIOBase):
    """A standard stream that writes into a cell's outputs, in order with all else that it shows."""

    encoding = "utf-8"

    def __init__(self, outputs: list[Any], name: str) -> None:
        self._outputs, self._name = outputs, name

    def write(self, text: str) -> int:
        last = self._outputs[-1] if self._outputs else None
        if last is not None and last.output_type == "stream" and last.name == self._name:
            last.text += str(text)
        else:
            self._outputs.append(_output("stream", name=self._name, text=str(text)))
        return len(text)

    def writable(self) -> bool:
        return True


def _output(kind: str, **content: Any) -> Any:
    from nbformat import v4

    return v4.new_output(kind, **content)  # type: ignore[no-untyped-call]


def _kept(data: Mapping[str, Any]) -> dict[str, Any]:
    """A MIME bundle as a notebook file keeps it: bytes as base64."""
    return {
        kind: base64.b64encode(value).decode() if isinstance(value, bytes) else value
        for kind, value in data.items()
    }


@cache
def _classes() -> tuple[type, Any]:
    """The shell that writes into a notebook's cells, and its configuration; defined when IPython is wanted."""
    from IPython.core.displayhook import DisplayHook
    from IPython.core.displaypub import DisplayPublisher
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets import Type
    from traitlets.config import Config

    class Published(DisplayPublisher):
        shell: Any

        def publish(
            self,
            data: Any,
            metadata: Any = None,
            source: Any = None,
            *,
            transient: Any = None,
            update: bool = False,
            **_: Any,
        ) -> None:
            named = (transient or {}).get("display_id")
            content = {"data": _kept(data), "metadata": metadata or {}}
            if update:
                for output in self.shell.named.get(named, ()):
                    output.update(content)
                return
            self.shell.outputs.append(_output("display_data", **content))
            if named:
                self.shell.named.setdefault(named, []).append(self.shell.outputs[-1])

        def clear_output(self, wait: bool = False) -> None:
            self.shell.outputs.clear()

    class Result(DisplayHook):
        shell: Any

        def write_output_prompt(self) -> None: ...

        def write_format_data(self, format_dict: Any, md_dict: Any = None) -> None:
            if format_dict:
                content = {"data": _kept(format_dict), "metadata": md_dict or {}}
                shown = _output("execute_result", execution_count=self.prompt_count, **content)
                self.shell.outputs.append(shown)

        def finish_displayhook(self) -> None: ...

    class Shell(InteractiveShell):
        display_pub_class = Type(Published)
        displayhook_class = Type(Result)
        outputs: list[Any]
        named: dict[str, list[Any]]

        def init_ipython_dir(self, ipython_dir: Any) -> None: ...  # leave no folder in anybody's home

        def init_profile_dir(self, profile_dir: Any) -> None: ...

        def _showtraceback(self, etype: Any, evalue: Any, stb: Any) -> None:
            content = {"ename": etype.__name__, "evalue": str(evalue), "traceback": list(stb)}
            self.outputs.append(_output("error", **content))

    config = Config()
    config.HistoryManager.enabled = False
    config.HistoryManager.hist_file = ":memory:"
    config.InteractiveShell.colors = "nocolor"
    return Shell, config


@contextmanager
def _shell() -> Iterator[Any]:
    """A shell with an empty namespace; everything in it is let go at the end."""
    import atexit

    kind, config = _classes()
    shell = kind.instance(config=config)  # type: ignore[attr-defined]
    shell.outputs, shell.named = [], {}
    try:
        yield shell
    finally:
        atexit.unregister(shell.atexit_operations)
        shell.atexit_operations()
        kind.clear_instance()  # type: ignore[attr-defined]
        _close_loop()


def _close_loop() -> None:
    """Close the event loop that IPython keeps for `await` in cells: what waits in it is one notebook's."""
    from IPython.core import async_helpers

    loop = getattr(async_helpers, "_asyncio_event_loop", None)
    if loop is not None and not loop.is_closed() and not loop.is_running():
        loop.close()


@contextmanager
def _left_as_it_was() -> Iterator[None]:
    """Put back what a cell may have changed for the whole process."""
    here, environment = os.getcwd(), dict(os.environ)
    main, argv, path = sys.modules["__main__"], list(sys.argv), list(sys.path)
    streams = sys.stdout, sys.stderr, sys.stdin
    hooks = sys.displayhook, sys.excepthook
    chosen = _altair_choices()
    gc.freeze()  # what is there already is not this notebook's garbage, and is not looked through for it
    sys.path.insert(0, "")  # as in a kernel: what lies in the working folder can be imported
    try:
        with warnings.catch_warnings():
            yield
    finally:
        gc.unfreeze()
        os.chdir(here)
        for name in os.environ.keys() - environment.keys():
            del os.environ[name]
        os.environ.update(environment)
        sys.modules["__main__"] = main
        sys.argv[:], sys.path[:] = argv, path
        sys.stdout, sys.stderr, sys.stdin = streams
        sys.displayhook, sys.excepthook = hooks
        _choose(chosen)
        if "polars" in sys.modules:
            import polars

            polars.Config.restore_defaults()


_ALTAIR = {"renderers": "default", "data_transformers": "default", "theme": "default"}


def _altair_choices() -> dict[str, tuple[str, dict[str, Any]]]:
    """What Altair has enabled, by registry; its defaults as long as nobody has imported it."""
    if "altair" not in sys.modules:
        return {name: (default, {}) for name, default in _ALTAIR.items()}
    import altair

    registries = ((name, getattr(altair, name)) for name in _ALTAIR)
    return {name: (registry.active, dict(registry.options)) for name, registry in registries}


def _choose(chosen: Mapping[str, tuple[str, dict[str, Any]]]) -> None:
    if "altair" not in sys.modules:
        return
    import altair

    for name, (active, options) in chosen.items():
        registry = getattr(altair, name)
        if (registry.active, dict(registry.options)) != (active, options):
            registry.enable(active, **options)
