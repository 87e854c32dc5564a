"""AgentBench Lab: measure agents with numbers that can be checked.

Importing this package does nothing; each name below is loaded when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentbench_lab import casebook as casebook
    from agentbench_lab import charts as charts
    from agentbench_lab import stats as stats
    from agentbench_lab import tables as tables
    from agentbench_lab.analysis import metrics as metrics
    from agentbench_lab.analysis.compare import compare as compare
    from agentbench_lab.cases import Call as Call
    from agentbench_lab.cases import Case as Case
    from agentbench_lab.cases import Expect as Expect
    from agentbench_lab.cases import Limits as Limits
    from agentbench_lab.cases import Suite as Suite
    from agentbench_lab.cases import Task as Task
    from agentbench_lab.cases import load_suite as load_suite
    from agentbench_lab.cases import select as select
    from agentbench_lab.drilldown import drill as drill
    from agentbench_lab.drivers import Context as Context
    from agentbench_lab.drivers import InfrastructureError as InfrastructureError
    from agentbench_lab.drivers import load_driver as load_driver
    from agentbench_lab.errors import LabError as LabError
    from agentbench_lab.grading import grade as grade
    from agentbench_lab.pricing import prices as prices
    from agentbench_lab.reports.display import parameters as parameters
    from agentbench_lab.reports.display import show_charts as show_charts
    from agentbench_lab.results.run import Run as Run
    from agentbench_lab.results.run import load_run as load_run
    from agentbench_lab.running.lint import lint_suite as lint_suite
    from agentbench_lab.running.runner import evaluate as evaluate
    from agentbench_lab.tables import banner as banner
    from agentbench_lab.tables import run_card as run_card
    from agentbench_lab.transcripts import Transcript as Transcript
    from agentbench_lab.transcripts import Usage as Usage
    from agentbench_lab.worlds.codegraph import CodeGraph as CodeGraph
    from agentbench_lab.worlds.toolbox import Toolbox as Toolbox

    __version__: str

_WHERE = {
    "Call": "cases",
    "Case": "cases",
    "CodeGraph": "worlds.codegraph",
    "Context": "drivers",
    "Expect": "cases",
    "InfrastructureError": "drivers",
    "LabError": "errors",
    "Limits": "cases",
    "Run": "results.run",
    "Suite": "cases",
    "Task": "cases",
    "Toolbox": "worlds.toolbox",
    "Transcript": "transcripts",
    "Usage": "transcripts",
    "banner": "tables",
    "compare": "analysis.compare",
    "drill": "drilldown",
    "evaluate": "running.runner",
    "grade": "grading",
    "lint_suite": "running.lint",
    "load_driver": "drivers",
    "load_run": "results.run",
    "load_suite": "cases",
    "parameters": "reports.display",
    "prices": "pricing",
    "run_card": "tables",
    "select": "cases",
    "show_charts": "reports.display",
}
__all__ = [
    "Call",
    "Case",
    "CodeGraph",
    "Context",
    "Expect",
    "InfrastructureError",
    "LabError",
    "Limits",
    "Run",
    "Suite",
    "Task",
    "Toolbox",
    "Transcript",
    "Usage",
    "banner",
    "casebook",
    "charts",
    "compare",
    "drill",
    "evaluate",
    "grade",
    "lint_suite",
    "load_driver",
    "load_run",
    "load_suite",
    "metrics",
    "parameters",
    "prices",
    "run_card",
    "select",
    "show_charts",
    "stats",
    "tables",
    "__version__",
]

_MODULES = {
    "casebook": "casebook",
    "charts": "charts",
    "metrics": "analysis.metrics",
    "stats": "stats",
    "tables": "tables",
}


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
