"""An executed notebook as one HTML file that needs no network and no script, and gains by scripts where they run.

Charts are inline SVG, replaced by the live chart when the one embedded library runs. What comes out of cells is data:
HTML is reduced to a list of harmless elements, pictures are parsed and written again, JSON is escaped, and the
page's own policy lets no other script run and no request leave.
"""

from __future__ import annotations

import base64
import json
import re
from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from html import escape
from pathlib import Path
from typing import Any

import msgspec

from agentbench_lab.cases import project_root
from agentbench_lab.drilldown import DRILL_MIME, Drill
from agentbench_lab.errors import LabError
from agentbench_lab.reports.display import CHART_MIME, PARAMETERS_MIME
from agentbench_lab.reports.execute import answered, read_notebook
from agentbench_lab.reports.index import write_index
from agentbench_lab.reports.links import linked, table_of
from agentbench_lab.reports.live import data_of, library
from agentbench_lab.reports.page import page
from agentbench_lab.reports.pictures import MOST_SVG, figure
from agentbench_lab.results.run import write_file
from agentbench_lab.tables import RUN_MIME
from agentbench_lab.tables.table import CLAIM_MIME

MOST_BYTES = 1_300_000
"""A page that would be larger with the chart library in it stays without: its charts are pictures only."""

_TAGS = re.findall(
    r"\w+",
    """a abbr b blockquote br caption code col colgroup dd del details div dl dt em h1 h2 h3 h4 h5 h6 hr i kbd li
    ol p pre s small span strong sub summary sup table tbody td tfoot th thead tr ul""",
)
_ATTRIBUTES = {"*": ["class", "style", "title", "lang", "role"], "a": ["href"]}
_UNSEEN = {"hide-cell", "parameters", "injected-parameters"}  # the footer has the parameters
_ATTRIBUTES |= {cell: ["scope", "colspan", "rowspan"] for cell in ("th", "td")}


def publish(executed: Path, out: Path | None = None) -> Path:
    """Write the HTML file of an executed notebook; returns its path.

    `out` defaults to `reports/<name>.html` of the project, where the name is the notebook's own, whatever the executed
    file is called; the folder's index is then written too. A notebook that failed or did not run to its end is
    refused with LabError; an older file at `out` is replaced only by a complete one.
    """
    executed = Path(executed)
    notebook = read_notebook(executed)
    _refuse(notebook, executed)
    papermill = notebook.metadata.get("papermill", {})
    name = Path(str(papermill.get("input_path") or executed)).stem
    where = out if out is not None else project_root() / "reports" / f"{name}.html"
    try:
        where.parent.mkdir(parents=True, exist_ok=True)
        write_file(where, render(notebook, name).encode())
        if out is None:
            write_index(where.parent, done=[name])
    except OSError as error:
        raise LabError(f"{where}: cannot write there ({error.strerror})") from None
    return where


def _refuse(notebook: Any, path: Path) -> None:
    for number, cell in enumerate(notebook.cells):
        if cell.cell_type != "code":
            continue
        for output in cell.outputs:
            if output.output_type == "error":
                raise LabError(f"{path}: cell {number} failed ({output.ename}); it is not published")
        if cell.source.strip() and not answered(cell):
            raise LabError(f"{path}: cell {number} did not run to its end; run the notebook again")


def outputs(notebook: Any) -> Iterator[Mapping[str, Any]]:
    """The MIME bundles of an executed notebook, in order."""
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if output.output_type in ("display_data", "execute_result"):
                yield output.data


def runs_of(executed: Path) -> list[Path]:
    """The folders of the saved runs that an executed notebook shows."""
    found = (data.get(RUN_MIME, {}).get("path") for data in outputs(read_notebook(executed)))
    return [Path(path) for path in found if path]


@dataclass
class _Shown:
    """What a page has shown so far: its charts' specifications, and the drill-downs that it has or will have."""

    specs: list[Any]
    drills: list[Drill]
    names: Mapping[tuple[str, str, str], str]
    most_svg: int
    drilled: int = 0


def render(notebook: Any, name: str) -> str:
    """The page. The first cell is its header, and the first chart's title its claim; without a chart its first sentence.

    One that is larger than MOST_BYTES without the chart library has its larger drawings as pixels.
    """
    made = _render(notebook, name, MOST_SVG)
    return made if len(made.encode()) <= MOST_BYTES else _render(notebook, name, _LEAST_SVG)


_LEAST_SVG = 40_000


def _render(notebook: Any, name: str, most_svg: int) -> str:
    header = ""
    main: list[str] = []
    found = list(outputs(notebook))
    drills = [drill for data in found if (drill := _drill(data)) is not None]
    # the first drill-down that knows a word is where it leads
    names = ChainMap(*(drill.names(f"d{number}") for number, drill in enumerate(drills, 1)))
    so_far = _Shown([], drills, names, most_svg)
    for number, cell in enumerate(notebook.cells):
        tags = cell.metadata.get("tags", [])
        if _UNSEEN.intersection(tags):
            continue
        if cell.cell_type == "markdown":
            if number == 0:
                header = _markdown(cell.source)
            else:
                main.append(_markdown(cell.source))
        elif cell.cell_type == "code":
            shown = _outputs(cell, so_far)
            folded = _code(cell.source) if cell.source.strip() and "hide-input" not in tags else ""
            if "setup" in tags:
                shown, folded = [], "\n".join([*shown, folded])
            main += shown
            if folded:
                summary = "Parameters and setup" if "setup" in tags else "Code"
                main.append(f'<details class="code"><summary>{summary}</summary>{folded}</details>')
    specs = so_far.specs
    runs = [data[RUN_MIME] for data in found if RUN_MIME in data]
    header = _with_measured(header, runs)
    title = re.search(r"^# (.+)$", notebook.cells[0].source if notebook.cells else "", re.MULTILINE)
    facts = {
        "claim": _claim(specs[0])
        if specs
        else next((str(data[CLAIM_MIME].get("text", "")) for data in found if CLAIM_MIME in data), ""),
        "date": str(runs[-1].get("started_at", ""))[:10] if runs else "",
        "commit": str(runs[-1].get("commit", "")) if runs else "",
        "evidence": ", ".join(sorted({kind for run in runs for kind in run.get("evidence", [])})),
        "trials": "; ".join(_counts(run) for run in runs),
    }
    echoed = [data[PARAMETERS_MIME] for data in found if PARAMETERS_MIME in data]
    shell = partial(
        page,
        title=title[1] if title else name,
        header=f'<p class="kicker">AgentBench Lab · {escape(name)}</p>\n{header}',
        main="\n".join(main),
        footer=_footer(notebook, name, runs, echoed),
        facts=facts,
    )
    if not specs:
        return shell()
    held, scripts = library()
    page_with_it = shell(data=data_of(specs) + held, scripts=scripts)
    return page_with_it if len(page_with_it.encode()) <= MOST_BYTES else shell()


def _with_measured(header: str, runs: Sequence[Mapping[str, Any]]) -> str:
    """The header with a line under its heading for each run: what was measured, on what, how often, by what evidence."""
    told = dict.fromkeys(words for run in runs if (words := _measured(run)))
    lines = "".join(f'<p class="measured">{escape(words)}</p>' for words in told)
    above, heading, below = header.partition("</h1>")
    return f"{above}{heading}\n{lines}{below}" if heading else f"{lines}{header}"


_MOST_ARMS = 3
"""Arms that the line names; of more it gives the number."""


def _measured(run: Mapping[str, Any]) -> str:
    arms = [str(arm) for arm in run.get("arms", ())]
    counts = run.get("counts", {})
    asked = counts.get("asked")
    parts = [
        Path(run.get("path") or "").name or "a run that was not saved",
        "suite " + ", ".join(str(suite.get("name", "")) for suite in run.get("suites", ())),
        ", ".join(arms) if len(arms) <= _MOST_ARMS else f"{len(arms)} arms",
        "" if asked is None else f"{asked:,} {'trial' if asked == 1 else 'trials'}",
        ", ".join(run.get("evidence", ())),
    ]
    return " · ".join(part for part in parts if part) if arms else ""


def _drill(data: Mapping[str, Any]) -> Drill | None:
    """The drill-down that an output holds; None when it holds none, or one that is not of today's form."""
    if DRILL_MIME not in data:
        return None
    try:
        return msgspec.convert(data[DRILL_MIME], Drill)
    except msgspec.ValidationError:
        return None


# ---- cells ---------------------------------------------------------------------------------------------------


@cache
def _sanitizer() -> Any:
    from nbconvert.preprocessors.sanitize import SanitizeHTML

    return SanitizeHTML(  # type: ignore[no-untyped-call]
        tags=_TAGS, attributes=_ATTRIBUTES, styles=["text-align"], strip=True
    )


def _clean(html: str) -> str:
    """Only harmless elements and attributes; a link out of the page is shown as its address."""
    html = re.sub(r"<(style|script)\b.*?</\1\s*>", "", html, flags=re.DOTALL | re.IGNORECASE)
    html = _sanitizer().sanitize_html_tags(html)
    return re.sub(r"<a\b([^>]*)>(.*?)</a>", _link, html, flags=re.DOTALL)


def _link(found: re.Match[str]) -> str:
    """A link within the page stays one; any other is shown as its address."""
    target = re.search(r'\bhref="([^"]*)"', found[1])
    if target is None:
        return found[2]
    if target[1].startswith("#"):
        return f'<a href="{target[1]}">{found[2]}</a>'
    return f"{found[2]} (<code>{target[1]}</code>)"


def _markdown(source: str) -> str:
    from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

    renderer = IPythonRenderer(escape=True, exclude_anchor_links=True)
    return _clean(MarkdownWithMath(renderer=renderer).render(source))


def _code(source: str) -> str:
    from nbconvert.filters import Highlight2HTML

    return str(Highlight2HTML(pygments_lexer="ipython3")(source))  # type: ignore[no-untyped-call]


def _outputs(cell: Any, so_far: _Shown) -> list[str]:
    """A cell's outputs as HTML, which are then shown so far; what went to stderr is left out."""
    made = []
    for output in cell.outputs:
        if output.output_type == "stream":
            if output.name == "stdout":
                made.append(f"<pre>{escape(output.text)}</pre>")
            continue
        data = output.get("data", {})
        words = data.get("text/plain", "")
        if CHART_MIME in data and "image/svg+xml" in data:
            so_far.specs.append(data[CHART_MIME])
            claim = _claim(data[CHART_MIME])
            made.append(figure(data["image/svg+xml"], words, len(so_far.specs), so_far.most_svg, claim))
        elif _drill(data) is not None:
            so_far.drilled += 1
            made.append(so_far.drills[so_far.drilled - 1].html(f"d{so_far.drilled}"))
        elif "image/svg+xml" in data or "image/png" in data:
            kind = "image/svg+xml" if "image/svg+xml" in data else "image/png"
            content = data[kind].replace("\n", "")
            if kind == "image/svg+xml":
                content = base64.b64encode(data[kind].encode()).decode()
            source = f"data:{kind};base64,{escape(content)}"
            made.append(
                f'<figure><div class="chart"><img src="{source}" alt="{escape(words)}"></div></figure>'
            )
        elif "text/html" in data:
            html = _clean(data["text/html"])
            made.append(linked(table_of(html), so_far.names) if html.strip() else "")
        elif "text/markdown" in data:
            made.append(_markdown(data["text/markdown"]))
        elif words:
            made.append(f"<pre>{escape(words)}</pre>")
    return [html for html in made if html]


def _counts(run: Mapping[str, Any]) -> str:
    counts = run.get("counts", {})
    return ", ".join(
        f"{counts[what]} {what}" for what in ("asked", "judged", "excluded", "missing") if what in counts
    )


def _claim(spec: Mapping[str, Any]) -> str:
    title = spec.get("title", "")
    text = title.get("text", "") if isinstance(title, Mapping) else title
    return text if isinstance(text, str) else " ".join(text)


# ---- provenance ----------------------------------------------------------------------------------------------


def _footer(
    notebook: Any, name: str, runs: Sequence[Mapping[str, Any]], echoed: Sequence[Mapping[str, Any]]
) -> str:
    papermill = notebook.metadata.get("papermill", {})
    given = dict(papermill.get("parameters", {}))
    for values in echoed:
        given |= values
    facts = [
        ("Notebook", f"{name}.ipynb"),
        (
            "Parameters",
            ", ".join(f"{key}={json.dumps(value)}" for key, value in given.items()) or "its defaults",
        ),
    ]
    for run in runs:
        suites = (f"{suite['name']} {suite['digest'][:16]}" for suite in run.get("suites", []))
        facts += [
            ("Stamp", run.get("stamp", "")),
            ("Commit", run.get("commit", "") or "unknown"),
            ("Suite and digest", "; ".join(suites)),
            ("Evidence", ", ".join(run.get("evidence", []))),
            ("Trials", _counts(run)),
            ("Versions", ", ".join(f"{key} {value}" for key, value in run.get("versions", {}).items())),
            ("Run", f"{Path(run.get('path') or 'not saved').name}, started {run.get('started_at', '')}"),
        ]
    if papermill.get("duration") is not None:
        facts.append(("Duration", f"{papermill['duration']:.1f} s"))
    rows = "".join(f"<dt>{escape(what)}</dt><dd>{escape(str(value))}</dd>" for what, value in facts)
    return f"<h2>Provenance</h2>\n<dl>{rows}</dl>"
