"""Every text of a page is legible: WCAG's contrast of 4.5, on a light page and on a dark one."""

from __future__ import annotations

import re

import pytest

from agentbench_lab.charts.theme import SOFT
from agentbench_lab.reports.page import resource


def palettes() -> dict[str, dict[str, str]]:
    """The colours by name: of a light page, and of a dark one, which changes some of them."""
    css = resource("report.css")
    light, dark = (
        dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", part)) for part in css.split("@media", 2)[:2]
    )
    return {"light": light, "dark": light | dark}


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    r, g, b = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def contrast(text: str, ground: str) -> float:
    """https://www.w3.org/TR/WCAG22/#dfn-contrast-ratio"""
    low, high = sorted([luminance(text), luminance(ground)])
    return (high + 0.05) / (low + 0.05)


def test_the_formula() -> None:
    """Black on white is 21; WCAG's own example of a grey that just fails."""
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)


PAIRS = [
    *((text, ground) for text in ("ink", "quiet", "accent", "good") for ground in ("page", "tint")),
    ("loud", "loud-tint"),
    ("on-bad", "bad"),
]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("text", "ground"), PAIRS)
def test_text_on_its_ground(scheme: str, text: str, ground: str) -> None:
    """Whatever may stand where."""
    colours = palettes()[scheme]
    assert contrast(colours[text], colours[ground]) >= 4.5


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_charts_quiet_text_on_the_page(scheme: str) -> None:
    """Charts take the page's ink, and what is read second is thinned: its colour is the mixture of the two."""
    colours = palettes()[scheme]
    ink, page = ([int(colours[name][at : at + 2], 16) for at in (1, 3, 5)] for name in ("ink", "page"))
    mixed = [round(SOFT * a + (1 - SOFT) * b) for a, b in zip(ink, page, strict=True)]
    assert contrast("#{:02x}{:02x}{:02x}".format(*mixed), colours["page"]) >= 4.5


def test_a_thumbnail_stands_on_a_light_card() -> None:
    """A picture in an image has black ink, whatever the page's is."""
    for colours in palettes().values():
        assert contrast("#000000", colours["card"]) >= 15
