"""What a notebook calls to show itself: charts that need no script, and parameters that are what was meant."""

from __future__ import annotations

import json
import re
from typing import Any

from agentbench_lab.charts.words import drawable
from agentbench_lab.errors import LabError, did_you_mean
from agentbench_lab.reports.execute import Declared, declared, fits
from agentbench_lab.tables import Table

CHART_MIME = "application/vnd.agentbench-lab.chart+json"
PARAMETERS_MIME = "application/vnd.agentbench-lab.parameters+json"


_CARD = "background: #ffffff; color: #1b1f24"
"""JupyterLab shows a picture as an image, which knows nothing of a dark page: it brings a card and ink along.

A report, where the picture is part of the page, takes both away."""


def show_charts() -> None:
    """From here on a chart at the end of a cell shows as a picture (SVG), and is kept as its specification too."""
    import altair

    altair.renderers.register("agentbench-lab", _bundle)
    altair.renderers.enable("agentbench-lab")


def _bundle(spec: dict[str, Any], **_: Any) -> dict[str, Any]:
    import vl_convert

    spec = drawable(spec)
    svg = vl_convert.vegalite_to_svg(spec, vl_version=vl_convert.get_vegalite_versions()[-1])
    svg = svg.replace("<svg ", f'<svg style="{_CARD}" ', 1)
    return {"image/svg+xml": svg, CHART_MIME: spec, "text/plain": str(spec.get("description", "a chart"))}


def parameters(**values: Any) -> Table:
    """The notebook's resolved parameters with their types; call it first, as `parameters(driver=driver, ...)`.

    Raises LabError for a parameter that was passed and is none of these (papermill only warns), and when a value is not
    of the type that the parameters cell declared. papermill's `-p` turns text
    that looks like a number into one (`7e10`, `0012`, `1.10`), and then the text as it was written is lost.
    """
    known = _declarations()
    for name in _injected():
        if name not in values:
            raise LabError(f"no parameter {name!r}{did_you_mean(name, values)}")
    rows = []
    for name, value in values.items():
        wanted = known.get(name)
        if wanted is not None and not fits(value, wanted):
            arrived = f"{name} arrived as {value!r} ({type(value).__name__})"
            if wanted.kind == "str":
                raise LabError(
                    f"{arrived}, but it is text: pass it with -r {name} TEXT, which keeps it as written"
                )
            raise LabError(f"{arrived}, but it is {wanted}")
        rows.append([name, str(wanted or type(value).__name__), json.dumps(value, ensure_ascii=False)])
    return Table("Parameters", ["name", "type", "value"], rows, data={PARAMETERS_MIME: values})


def _sources() -> list[str]:
    """The cells run so far; none outside a notebook."""
    try:
        from IPython import get_ipython
    except ImportError:
        return []
    shell = get_ipython()
    return [] if shell is None else list(shell.user_ns.get("In", []))


def _injected() -> list[str]:
    """The names in the cell that papermill puts behind the parameters: what the caller passed."""
    return [
        name
        for source in _sources()
        if source.startswith("# Parameters")
        for name in re.findall(r"^(\w+) = ", source, re.MULTILINE)
    ]


def _declarations() -> dict[str, Declared]:
    """What the cells run so far declare with a type. A cell that papermill injects has values only."""
    found: dict[str, Declared] = {}
    for source in _sources():
        try:
            cell = declared(source)
        except (SyntaxError, LabError):
            continue
        annotated = {line.split(":")[0].strip() for line in source.splitlines() if ":" in line.split("=")[0]}
        found.update({name: what for name, what in cell.items() if name in annotated})
    return found
