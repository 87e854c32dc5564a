"""AgentBench Lab: measure agents with numbers that can be checked.

Importing this package does nothing; each name below is loaded when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentbench_lab import charts, tables
    from agentbench_lab.analysis import metrics, stats
    from agentbench_lab.cases import Call, Case, Expect, Limits, Suite, Task, load_suite, select
    from agentbench_lab.drivers import Context, load_driver
    from agentbench_lab.errors import LabError
    from agentbench_lab.grading import grade
    from agentbench_lab.reports.display import parameters, show_charts
    from agentbench_lab.results.run import Run, load_run
    from agentbench_lab.running.lint import lint_suite
    from agentbench_lab.running.runner import evaluate
    from agentbench_lab.tables import banner, run_card
    from agentbench_lab.transcripts import Transcript, Usage
    from agentbench_lab.worlds.codegraph import CodeGraph
    from agentbench_lab.worlds.toolbox import Toolbox

_WHERE = {
    "Call": "cases",
    "Case": "cases",
    "CodeGraph": "worlds.codegraph",
    "Context": "drivers",
    "Expect": "cases",
    "LabError": "errors",
    "Limits": "cases",
    "Run": "results.run",
    "Suite": "cases",
    "Task": "cases",
    "Toolbox": "worlds.toolbox",
    "Transcript": "transcripts",
    "Usage": "transcripts",
    "banner": "tables",
    "evaluate": "running.runner",
    "grade": "grading",
    "lint_suite": "running.lint",
    "load_driver": "drivers",
    "load_run": "results.run",
    "load_suite": "cases",
    "parameters": "reports.display",
    "run_card": "tables",
    "select": "cases",
    "show_charts": "reports.display",
}
_MODULES = {"charts": "charts", "metrics": "analysis.metrics", "stats": "analysis.stats", "tables": "tables"}

__all__ = [*_WHERE, *_MODULES, "__version__"]  # noqa: PLE0604 - one list, not two


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        value = getattr(importlib.import_module(f"agentbench_lab.{_WHERE[name]}"), name)
    elif name in _MODULES:
        value = importlib.import_module(f"agentbench_lab.{_MODULES[name]}")
    elif name == "__version__":
        from agentbench_lab.results.provenance import package_version

        value = package_version()
    else:
        raise AttributeError(f"module 'agentbench_lab' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
