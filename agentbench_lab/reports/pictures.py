"""Charts as pictures that are only drawn: nothing in them runs, moves, fetches or styles beyond itself."""

from __future__ import annotations

import base64
import re
from html import escape
from xml.etree import ElementTree

from agentbench_lab.errors import LabError

_SVG = "http://www.w3.org/2000/svg"


MOST_SVG = 250_000
"""Characters of a drawing; of a larger one, with thousands of marks, those that look alike are drawn at once, and if that
is not enough it is shown in pixels: the page stays small and quick."""

_SIZE = re.compile(r'<svg\b[^>]*?\bwidth="([0-9.]+)"')


def figure(svg: str, words: str, number: int, most: int = MOST_SVG, claim: str = "") -> str:
    """A chart as a figure: the picture with its text, the same text to unfold. The frame can be scrolled by keys.

    `claim`: the chart's title once more, for pages so narrow that the picture has to be scrolled.

    A drawing of more than `most` characters is made smaller.
    """
    said = escape(words)
    drawn = redrawn(svg, number)
    if len(drawn) > most:
        drawn = _at_once(drawn)
    if len(drawn) > most:
        drawn = min(drawn, _pixels(drawn), key=len)
    picture = f'<div id="chart-{number}" role="img" aria-label="{said}">{drawn}</div>'
    frame = f'<div class="chart" role="group" tabindex="0" aria-label="Figure {number}">{picture}</div>'
    folded = f"<details><summary>Figure {number} in words</summary><p>{said}</p></details>"
    above = f'<p class="claim" aria-hidden="true">{escape(claim)}</p>' if claim else ""
    return f"<figure>{above}{frame}<figcaption>{folded}</figcaption></figure>"


def _at_once(svg: str) -> str:
    """The drawing with neighbours that differ only in where they are as one path each; what may overlap visibly stays."""
    root = ElementTree.fromstring(svg)
    for parent in list(root.iter()):
        last: ElementTree.Element | None = None
        for child in list(parent):
            look = {name: value for name, value in child.attrib.items() if name != "d"}
            alone = len(child) or not child.tag.endswith("}path") or any("opacity" in name for name in look)
            if alone or "transform" in look:
                last = None
            elif last is not None and look == {n: v for n, v in last.attrib.items() if n != "d"}:
                last.set("d", last.get("d", "") + child.get("d", ""))
                parent.remove(child)
            else:
                last = child
    return ElementTree.tostring(root, encoding="unicode")


def _pixels(svg: str) -> str:
    import vl_convert

    size = _SIZE.search(svg)
    width = f' width="{round(float(size[1]))}"' if size else ""
    data = base64.b64encode(vl_convert.svg_to_png(svg)).decode()
    return f'<img src="data:image/png;base64,{data}" alt=""{width}>'


_DRAWN = frozenset(
    [
        "svg",
        "g",
        "path",
        "rect",
        "circle",
        "ellipse",
        "line",
        "polyline",
        "polygon",
        "text",
        "tspan",
        "defs",
        "clipPath",
        "linearGradient",
        "radialGradient",
        "stop",
        "title",
        "desc",
    ]
)
"""What a chart may be drawn with; nothing that runs, moves, fetches or styles beyond itself."""
_OUTSIDE = re.compile(r"url\(\s*+['\"]?+(?!#)|\\", re.IGNORECASE)
"""An address that is not within the picture, or a sign by which one may be hidden."""


def redrawn(svg: str, number: int) -> str:
    """The picture, parsed and written again: ids of its own, nothing that runs, nothing that is fetched."""
    ElementTree.register_namespace("", _SVG)
    try:
        root = ElementTree.fromstring(svg)
    except ElementTree.ParseError as error:
        raise LabError(f"figure {number} is no picture: {error}") from None
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag.rpartition("}")[2] not in _DRAWN:
                parent.remove(child)
    for element in root.iter():
        for name, value in list(element.attrib.items()):
            plain = name.rpartition("}")[2]
            if plain.startswith("on") or plain in ("href", "style") or _OUTSIDE.search(value):
                del element.attrib[name]
            elif plain == "id":
                element.set(name, f"chart-{number}-{value}")
            elif "url(" in value.lower():
                own = re.compile(r"url\(\s*['\"]?#([^)'\"]+)['\"]?\s*\)", re.IGNORECASE)
                element.set(name, own.sub(rf"url(#chart-{number}-\1)", value))
    root.set("aria-hidden", "true")  # the figure's own text says it all; marks would say it twice
    return ElementTree.tostring(root, encoding="unicode")
