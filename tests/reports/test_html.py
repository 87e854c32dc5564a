"""The published page: one file, nothing fetched, nothing that a case says can act, and it reads without scripts."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import nbformat
import pytest
from click.testing import CliRunner

from agentbench_lab import charts, tables
from agentbench_lab.cli.publishing import report as report_command
from agentbench_lab.errors import LabError
from agentbench_lab.reports import html, publish, runs_of
from agentbench_lab.reports.index import write_index
from agentbench_lab.reports.page import resource
from agentbench_lab.reports.pictures import figure, redrawn
from agentbench_lab.tables import RUN_MIME

from ..drawing import NASTY, NASTY_ID, RUN, executed, ladder, report, strip

REQUEST = NASTY + "\u2028\u2029 end"


class Page(HTMLParser):
    """A parsed page: its elements, and the text of its scripts, style and all."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.scripts: list[tuple[dict[str, str], str]] = []
        self.text = ""
        self._inside = ""
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        said = {name: value or "" for name, value in attrs}
        self.elements.append((tag, said))
        self._inside = tag
        if tag == "script":
            self.scripts.append((said, ""))

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            self.scripts[-1] = (self.scripts[-1][0], self.scripts[-1][1] + data)
        elif self._inside != "style":
            self.text += data

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.elements)

    def specs(self) -> list[Any]:
        return [json.loads(text) for said, text in self.scripts if said.get("type") == "application/json"]


def page(folder: Path, *, request: str = "Who calls it?", case_id: str = "", **how: Any) -> Page:
    """A published report over hand-made trials."""
    source = report(folder / "out.ipynb", strip(request=request, case_id=case_id, **how))
    return Page(publish(source, folder / "page.html"))


def test_b10_text_from_a_case_cannot_break_out(tmp_path: Path) -> None:
    """As many scripts as for a harmless request, no image, the request character for character, the id literally."""
    harmless = page(tmp_path)
    found = page(tmp_path, request=REQUEST, case_id=NASTY_ID)
    assert found.count("script") == harmless.count("script") == 4
    assert found.count("img") == 0
    requests = {
        row["request"]
        for spec in found.specs()
        for rows in spec["datasets"].values()
        for row in rows
        if "request" in row
    }
    assert requests == {REQUEST}
    assert NASTY_ID in found.text
    assert NASTY in found.text
    assert not any(name.startswith("on") for _, said in found.elements for name in said)


def test_hostile_names_stay_text_in_every_place(tmp_path: Path) -> None:
    """Driver and group reach titles, axes, descriptions and the head."""
    found = page(tmp_path, drivers=(NASTY,), groups=[NASTY, '"];alert(1)//'])
    assert found.count("script") == 4
    assert found.count("img") == 0
    assert next(
        said["content"] for _, said in found.elements if said.get("name") == "report-claim"
    ).startswith(NASTY)


def test_nothing_is_fetched(tmp_path: Path) -> None:
    """Addresses lead nowhere but into the page; the policy allows no request, and two scripts by their digests."""
    found = page(tmp_path)
    for name, said in found.elements:
        assert name not in ("link", "iframe", "object", "embed", "base", "img")
        for key in ("src", "href", "xlink:href", "srcset", "action", "data", "poster"):
            assert said.get(key, "#").startswith("#"), (name, said)
    style = re.findall(
        r"<style>(.*?)</style>", (tmp_path / "page.html").read_text(encoding="utf-8"), re.DOTALL
    )
    assert not re.search(r"@import|url\(", "".join(style))
    policy = next(said["content"] for _, said in found.elements if said.get("http-equiv"))
    assert policy.startswith("default-src 'none'")
    (script,) = [text for said, text in found.scripts if not said.get("type")]
    (packed,) = [text for said, text in found.scripts if said.get("id") == "packed"]
    library = gzip.decompress(base64.b64decode(packed))
    digests = [
        base64.b64encode(hashlib.sha256(each).digest()).decode() for each in (script.encode(), library)
    ]
    assert f"script-src 'sha256-{digests[0]}' 'sha256-{digests[1]}';" in policy
    assert b"script[data-figure]" in library
    assert "unsafe-eval" not in policy


def test_the_page_is_whole_without_scripts(tmp_path: Path) -> None:
    """Each figure is an inline picture with its text, at first; ids are never used twice."""
    found = page(tmp_path)
    figures = [said for _, said in found.elements if said.get("role") == "img"]
    descriptions = [spec["description"] for spec in found.specs()]
    assert [said["aria-label"] for said in figures] == descriptions
    assert found.count("svg") == found.count("figcaption") == len(figures) == 2
    assert found.count("path") > 60
    ids = [said["id"] for _, said in found.elements if "id" in said]
    assert len(ids) == len(set(ids))
    used = re.findall(
        r"url\(#([^)]+)\)", (tmp_path / "page.html").read_text(encoding="utf-8").partition("<script")[0]
    )
    assert set(used) <= set(ids)


def test_structure_and_provenance(tmp_path: Path) -> None:
    """Language, one title, landmarks, folded code, and a footer that says where the numbers come from."""
    found = page(tmp_path)
    assert dict(found.elements)["html"]["lang"] == "en"
    assert [found.count(tag) for tag in ("title", "h1", "header", "main", "footer")] == [1] * 5
    assert found.count("details") >= 6
    assert "show < 1" in found.text
    for said in (
        'driver="stub"',
        "0.1.0",
        "0123abc",
        "f" * 16,
        "simulated",
        "1 excluded",
        "polars 2.1.0",
        "4.2 s",
    ):
        assert said in found.text, said
    assert "/somewhere" not in found.text
    assert all(said.get("scope") for tag, said in found.elements if tag == "th")


def test_an_ever_larger_page_loses_its_scripts_not_its_pictures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over the limit it is published as pictures only."""
    page(tmp_path)
    assert (tmp_path / "page.html").stat().st_size < 800_000
    monkeypatch.setattr(html, "MOST_BYTES", 300_000)
    found = page(tmp_path)
    assert found.count("script") == 0
    assert found.count("svg") == 2
    assert (tmp_path / "page.html").stat().st_size < 300_000


def test_foreign_output_is_made_harmless(tmp_path: Path) -> None:
    """HTML of other libraries keeps its table, not its scripts, styles or addresses; foreign pictures cannot run."""
    foreign = '<style>p{}</style><table onclick="x()"><tr><td>kept<script>bad()</script></td></tr></table><iframe src="x">'
    svg = '<svg xmlns="http://www.w3.org/2000/svg"><script>bad()</script></svg>'
    source = executed(
        tmp_path / "out.ipynb",
        {"text/html": foreign, "text/plain": "t"},
        {"image/svg+xml": svg, "text/plain": 'a "picture"'},
        {"text/plain": "<b>plain</b>"},
        markdown='<script>bad()</script> [text](https://example.org/x?a=1) ![i](http://example.org/i.png) <b onclick="x()">b</b>',
    )
    found = Page(publish(source, tmp_path / "page.html"))
    assert found.count("script") == found.count("iframe") == 0
    assert found.count("table") == 1
    assert "kept" in found.text
    assert "<b>plain</b>" in found.text
    assert "https://example.org/x?a=1" in found.text
    (picture,) = [said for tag, said in found.elements if tag == "img"]
    assert picture["src"].startswith("data:image/svg+xml;base64,")
    assert picture["alt"] == 'a "picture"'
    assert not [
        said for _, said in found.elements if "onclick" in said or said.get("href", "#content") != "#content"
    ]


@pytest.mark.parametrize(
    ("link", "shown"),
    [
        ('<a href="https://example.org/a">text</a>', "text (<code>https://example.org/a</code>)"),
        ('<a title="t" href="https://example.org/a">text</a>', "text (<code>https://example.org/a</code>)"),
        (
            '<a href="https://example.org/a" class="c" title="t">text</a>',
            "text (<code>https://example.org/a</code>)",
        ),
        (
            '<a class="c" href="mailto:a@example.org"><b>text</b></a>',
            "<b>text</b> (<code>mailto:a@example.org</code>)",
        ),
        ('<a href="page.html#x">text</a>', "text (<code>page.html#x</code>)"),
        ('<a title="t" href="#chart-1">text</a>', '<a href="#chart-1">text</a>'),
        ('<a name="n">text</a>', "text"),
        ('<a href="javascript:bad()">text</a>', "text"),
    ],
)
def test_a_link_out_is_its_address(tmp_path: Path, link: str, shown: str) -> None:
    """Whatever the order of its attributes: nobody leaves the page by a click on what a cell wrote."""
    source = executed(tmp_path / "out.ipynb", {"text/html": f"<p>{link}</p>", "text/plain": "t"})
    text = publish(source, tmp_path / "page.html").read_text(encoding="utf-8")
    assert f"<p>{shown}</p>" in text


def test_ids_of_cells_cannot_take_a_charts_place(tmp_path: Path) -> None:
    """A cell that calls its table `chart-1` gets no id at all; the chart keeps its own."""
    source = executed(
        tmp_path / "out.ipynb",
        {
            "text/html": '<table id="chart-1" class="chart"><tr id="b"><td>x</td></tr></table>',
            "text/plain": "t",
        },
        charts.ladder(ladder(strip())),
        markdown='## Chart\n\n<b id="chart-1">b</b>',
    )
    found = Page(publish(source, tmp_path / "page.html"))
    holders = [(tag, said) for tag, said in found.elements if said.get("id") == "chart-1"]
    assert [(tag, said["role"]) for tag, said in holders] == [("div", "img")]


SVG = """<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="0 0 9 9" onload="x()"
style="background: url(http://example.org/0)">
<style>path { fill: url(http://example.org/1) }</style><script>bad()</script>
<defs><clipPath id="c"><rect width="9" height="9"/></clipPath><filter id="f"><feImage href="http://example.org/2"/></filter></defs>
<g clip-path="url(#c)"><path id="kept" d="M0 0h9" clip-path="url('#c')" style="fill: red" onclick="x()"/></g>
<path id="out" d="M1 1h9" fill="url(http://example.org/3)" stroke="URL( 'http://example.org/4' )" filter="u\\72l(http://example.org/5)"/>
<a xlink:href="http://example.org/6"><text>gone</text></a><image href="http://example.org/7"/><use href="#c"/>
<animate attributeName="href" to="x"/><set attributeName="onload" to="x"/><foreignObject><p>p</p></foreignObject>
<text x="1">said</text></svg>"""


def test_a_chart_is_only_drawn(tmp_path: Path) -> None:
    """Of a picture that claims to be a chart's only its shapes stay: no style, script, motion, link or address."""
    from agentbench_lab.reports.display import CHART_MIME

    chart = {CHART_MIME: {"title": "t"}, "image/svg+xml": SVG, "text/plain": "words"}
    found = Page(publish(executed(tmp_path / "out.ipynb", chart), tmp_path / "page.html"))
    inside = [tag for tag, _ in found.elements]
    inside = inside[inside.index("svg") : inside.index("figcaption")]
    assert inside == ["svg", "defs", "clippath", "rect", "g", "path", "path", "text"]
    shapes = {said["id"]: said for tag, said in found.elements if tag == "path"}
    assert shapes == {
        "chart-1-kept": {"id": "chart-1-kept", "d": "M0 0h9", "clip-path": "url(#chart-1-c)"},
        "chart-1-out": {"id": "chart-1-out", "d": "M1 1h9"},
    }
    assert next(said for tag, said in found.elements if tag == "g")["clip-path"] == "url(#chart-1-c)"
    assert next(said for tag, said in found.elements if tag == "svg").keys() == {
        "xmlns",
        "viewbox",
        "aria-hidden",
    }
    text = (tmp_path / "page.html").read_text(encoding="utf-8").partition("<script")[0]
    assert "example.org" not in text
    assert "gone" not in found.text


def test_our_charts_lose_nothing_by_that(tmp_path: Path) -> None:
    """Every element of the pictures that we draw is one that stays."""
    from agentbench_lab.reports.display import _bundle

    for chart in (charts.ladder(ladder(strip(("a", "b")))), charts.outcomes(strip(excluded=1))):
        drawn = _bundle(chart.to_dict())["image/svg+xml"]
        kept = redrawn(drawn, 1)
        for mark in ("<path", "<text", "<rect", "<g", "<clipPath", "<line"):
            assert kept.count(mark) == drawn.count(mark), mark
        # the card that a notebook needs behind a picture is no part of a page
        assert drawn.replace("<style", "").count("style=") == 1
        assert "style=" not in kept


ODD = "odd\x00\x01\b\f\x1b[31m\ufffe\uffff\N{GREEK SMALL LETTER MU}"


def test_a_name_that_no_drawing_can_hold_is_drawn_all_the_same(tmp_path: Path) -> None:
    """Control characters in the names of arms and groups: the drawing library would end the whole process over them."""
    from agentbench_lab.reports.display import CHART_MIME, _bundle

    for chart in (
        charts.ladder(ladder(strip((ODD, "b"), groups=["TOOL-0", ODD]))),
        charts.outcomes(strip((ODD,), groups=["a", ODD])),
    ):
        bundle = _bundle(chart.to_dict())
        assert not re.search(
            "[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]", json.dumps(bundle, ensure_ascii=False)
        )
        assert "odd" in bundle["image/svg+xml"]
        assert "\N{GREEK SMALL LETTER MU}" in redrawn(bundle["image/svg+xml"], 1)
    # a picture of somebody else's that is none is said to be none
    wrong = {CHART_MIME: {"title": "t"}, "image/svg+xml": "<svg>\x01</svg>", "text/plain": "words"}
    with pytest.raises(LabError, match="figure 1 is no picture"):
        publish(executed(tmp_path / "out.ipynb", wrong), tmp_path / "page.html")


def test_a_caption_is_text_also_where_it_names_its_table(tmp_path: Path) -> None:
    caption = '<table><caption>a" onfocus="alert(1)&amp;b</caption><tbody><tr><td>1</td></tr></tbody></table>'
    found = Page(publish(executed(tmp_path / "out.ipynb", {"text/html": caption}), tmp_path / "page.html"))
    (named,) = [said for tag, said in found.elements if tag == "div" and said.get("class") == "output"]
    assert named == {
        "class": "output",
        "role": "group",
        "tabindex": "0",
        "aria-label": 'a" onfocus="alert(1)&b',
    }


def test_an_index_leads_to_pages_of_any_name(tmp_path: Path) -> None:
    for name in ("a#b.html", "50%25?.html", "javascript:alert(1).html"):
        (tmp_path / name).write_text("<title>t</title>", encoding="utf-8")
    leads = [
        said["href"]
        for tag, said in Page(write_index(tmp_path)).elements
        if tag == "a" and said["href"] != "#content"
    ]
    assert leads == ["50%2525%3F.html", "a%23b.html", "javascript%3Aalert%281%29.html"]


def test_what_no_file_can_hold_costs_no_page(tmp_path: Path) -> None:
    """Half a sign, as the names of files may have, in what a notebook shows."""
    source = executed(tmp_path / "out.ipynb", {"text/plain": "x"})
    source.write_text(source.read_text(encoding="utf-8").replace('"x"', '"half \\udcff"'), encoding="utf-8")
    assert "half ?" in Page(publish(source, tmp_path / "page.html")).text


def test_stderr_is_left_out(tmp_path: Path) -> None:
    """Progress bars and warnings are not part of a report; what is printed is."""
    source = executed(tmp_path / "out.ipynb", {"text/plain": "x"})
    read = nbformat.read(source, as_version=4)
    read.cells[1].outputs += [
        nbformat.v4.new_output("stream", name="stderr", text="50%|#####"),
        nbformat.v4.new_output("stream", name="stdout", text="a < b"),
    ]
    source.write_text(nbformat.writes(read), encoding="utf-8")
    found = Page(publish(source, tmp_path / "page.html"))
    assert "50%|" not in found.text
    assert "a < b" in found.text


@pytest.mark.parametrize("wrong", ["error", "not run", "no answer"])
def test_only_a_complete_notebook_is_published(tmp_path: Path, wrong: str) -> None:
    """One that failed or stopped is refused, and the earlier page stays."""
    source = executed(tmp_path / "out.ipynb", {"text/plain": "x"})
    read = nbformat.read(source, as_version=4)
    if wrong == "error":
        read.cells[1].outputs.append(
            nbformat.v4.new_output("error", ename="ValueError", evalue="", traceback=[])
        )
    elif wrong == "not run":
        read.cells[1].execution_count = None
    else:  # what papermill leaves of a cell that the kernel died in
        read.cells[1].metadata["execution"] = {"iopub.status.busy": "2026-11-29T21:38:17Z"}
        read.cells[1].metadata["papermill"] = {"status": "completed"}
    source.write_text(nbformat.writes(read), encoding="utf-8")
    earlier = tmp_path / "page.html"
    earlier.write_text("earlier", encoding="utf-8")
    with pytest.raises(LabError, match=r"out\.ipynb: cell 1 (failed \(ValueError\)|did not run to its end)"):
        publish(source, earlier)
    assert earlier.read_text(encoding="utf-8") == "earlier"


def test_the_page_is_named_after_its_notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """out.ipynb of run_ladder.ipynb publishes reports/run_ladder.html of the project, and the index lists it."""
    (tmp_path / "data" / "cases").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    made = publish(report(tmp_path / "out.ipynb", strip()))
    assert made == tmp_path / "reports" / "run_ladder.html"
    index = Page(tmp_path / "reports" / "index.html")
    assert [said["href"] for tag, said in index.elements if tag == "a"] == ["#content", "run_ladder.html"]
    for said in ("How high?", "stub reaches TOOL-5; gated at", "2026-11-29", "simulated", "0123abc"):
        assert said in index.text, said


def test_the_index_escapes_and_counts(tmp_path: Path) -> None:
    """Claims of several pages, as text; a folder without pages says so."""
    write_index(tmp_path)
    assert "Nothing is published yet" in Page(tmp_path / "index.html").text
    publish(report(tmp_path / "o.ipynb", strip(drivers=(NASTY,))), tmp_path / "a.html")
    publish(executed(tmp_path / "p.ipynb", {"text/plain": "x"}), tmp_path / "b.html")
    found = Page(write_index(tmp_path))
    assert found.count("article") == 2
    assert found.count("script") == 0
    assert NASTY in found.text
    (picture,) = [said for tag, said in found.elements if tag == "img"]
    assert picture["src"].startswith("data:image/svg+xml;base64,")
    assert NASTY in picture["alt"]


def test_a_published_notebook_leads_to_its_run(tmp_path: Path) -> None:
    """The executed notebook keeps the folder; a run that was not saved has none."""
    card = tables.Table("Run card", ["what"], [["x"]], data={tables.RUN_MIME: RUN | {"path": ""}})
    assert runs_of(report(tmp_path / "a.ipynb", strip())) == [Path(RUN["path"])]
    assert runs_of(executed(tmp_path / "b.ipynb", card)) == []


def test_a_chart_is_kept_as_picture_specification_and_words() -> None:
    """The output of a chart is valid in a notebook, and needs no script to be seen."""
    from agentbench_lab.reports.display import CHART_MIME, _bundle

    spec = charts.ladder(ladder(strip())).to_dict()
    bundle = _bundle(spec)
    nbformat.validate(
        nbformat.v4.new_output("display_data", bundle), ref="output", version=4, version_minor=5
    )
    assert bundle["image/svg+xml"].startswith("<svg")
    assert bundle[CHART_MIME] == spec
    assert bundle["text/plain"] == spec["description"]


def test_a_drawing_of_thousands_of_marks_is_made_small() -> None:
    """Neighbours that look alike become one path, and nothing else does; what is still large becomes pixels."""
    marks = "".join(f'<path d="M{n},0h1v1h-1Z" fill="red" />' for n in range(3000))
    odd = '<path d="M0,5h9" fill="blue" /><path d="M0,0h1" fill="red" opacity="0.5" />'
    opened = '<svg xmlns="http://www.w3.org/2000/svg" width="3000" height="9" viewBox="0 0 3000 9">'
    drawn = f"{opened}<g>{marks}{odd}</g></svg>"
    plain, at_once = (figure(drawn, "words", 1, most) for most in (1_000_000, 90_000))
    assert plain.count("<path") == 3002
    assert at_once.count("<path") == 3
    assert all(f"M{n},0h1v1h-1Z" in at_once for n in (0, 1, 2999))
    pixels = figure(drawn, "words", 1, 1_000)
    assert "<svg" not in pixels
    assert re.search(
        r'aria-label="words"><img src="data:image/png;base64,[^"]+" alt="" width="3000">', pixels
    )


def test_the_top_says_what_was_measured(tmp_path: Path) -> None:
    """Run, suite, arms, trials and evidence, under the heading; of many arms their number."""
    run = {"path": "/x/tau", "suites": [{"name": "airline", "digest": "0"}], "arms": ["a + <m>"], "counts": {"asked": 1200}, "evidence": ["imported"]}  # fmt: skip
    many = {**run, "path": "", "arms": ["a", "b", "c", "d"], "counts": {"asked": 1}}
    source = executed(
        tmp_path / "out.ipynb", {RUN_MIME: run, "text/plain": "x"}, {RUN_MIME: many, "text/plain": "x"}
    )
    text = publish(source, tmp_path / "page.html").read_text(encoding="utf-8")
    header = text.partition("<header>")[2].partition("</header>")[0]
    assert '<p class="measured">tau · suite airline · a + &lt;m&gt; · 1,200 trials · imported</p>' in header
    assert "a run that was not saved · suite airline · 4 arms · 1 trial · imported" in header
    assert header.index("<h1") < header.index("measured")


def test_the_command_says_where_the_page_and_its_run_are(tmp_path: Path) -> None:
    """And nothing of the run itself: the page shows that, and `show` does."""
    source = executed(tmp_path / "out.ipynb", *[{RUN_MIME: {"path": "/x/tau"}, "text/plain": "x"}] * 2)
    page = tmp_path / "page.html"
    done = CliRunner().invoke(report_command, [str(source), "--executed", "--out", str(page)])
    assert (done.exit_code, done.output) == (0, f"run: /x/tau\nreport: {page}\n")


def test_what_is_wider_than_a_small_screen_shows_that_it_scrolls() -> None:
    """The chart and the table alike: a shadow at the edge that hides something."""
    style = resource("report.css")
    (rule,) = re.findall(r"^\.chart, \.output \{(.*)\}$", style, re.MULTILINE)
    assert "background-attachment: local, local, scroll, scroll" in rule
    later = style[style.index(".chart, .output {") + 20 :]
    assert not re.search(r"^\.(chart|output) \{[^}]*background", later, re.MULTILINE)
