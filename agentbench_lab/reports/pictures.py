"""Charts as pictures that are only drawn: nothing in them runs, moves, fetches or styles beyond itself."""

from __future__ import annotations

import re
from html import escape
from xml.etree import ElementTree

_SVG = "http://www.w3.org/2000/svg"


def figure(svg: str, words: str, number: int) -> str:
    """A chart as a figure: the picture with its text, the same text to unfold. The frame can be scrolled by keys."""
    said = escape(words)
    picture = f'<div id="chart-{number}" role="img" aria-label="{said}">{redrawn(svg, number)}</div>'
    frame = f'<div class="chart" role="group" tabindex="0" aria-label="Figure {number}">{picture}</div>'
    folded = f"<details><summary>Figure {number} in words</summary><p>{said}</p></details>"
    return f"<figure>{frame}<figcaption>{folded}</figcaption></figure>"


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
    root = ElementTree.fromstring(svg)
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
