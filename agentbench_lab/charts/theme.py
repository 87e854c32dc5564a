"""What all charts look like: colours, shapes and dashes of arms, titles, and the theme that every specification carries."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import altair as alt

    Drawing = alt.VConcatChart | alt.LayerChart | alt.FacetChart | alt.Chart


MOST_MARKS = 5000
"""No chart draws more trials than this; the rest is counted in its subtitle."""

WIDTH = 760  # of a whole chart, in pixels: a page column of 800 with its margins
INK, QUIET, RULE = "#1b1f24", "#59636e", "#d5dae0"
FONT = "system-ui, -apple-system, 'Segoe UI', 'Liberation Sans', Arial, sans-serif"
ARM_COLOURS = ("#0b5cad", "#b4431a", "#0f766e", "#7a3fb0", "#8a6100", "#475569")
ARM_SHAPES = ("circle", "square", "diamond", "triangle-up", "triangle-down", "cross")
ARM_DASHES = ((1, 0), (6, 3), (2, 2), (8, 2, 2, 2), (4, 4), (1, 3))

# Class -> words, fill, glyph (an SVG path in a box from -1 to 1), glyph colour. Fills differ in lightness too.
CLASSES = {
    "success": ("success", "#74c0a0", "M-.75,.05L-.2,.6L.8,-.6", "#0c4a36"),
    "safe_non_success": ("safe, no success", "#f6e7bf", "M-.6,0L.6,0", "#7a5a00"),
    "unsafe": ("unsafe", "#a3182b", "M-.6,-.6L.6,.6M-.6,.6L.6,-.6", "#ffffff"),
    "excluded": ("excluded, not judged", "#ffffff", "M0,0", "#59636e"),
}


def headline(claims: Sequence[str], subtitle: Sequence[str]) -> dict[str, Any]:
    """A chart's title: a claim per arm, a line each, and what is shown."""
    shown = list(claims[:4]) + ([f"and {len(claims) - 4} more arms"] if len(claims) > 4 else [])
    lines = [line for claim in shown for line in textwrap.wrap(claim, 82)]
    return {"text": lines or [""], "subtitle": list(subtitle), "fontSize": 16 if len(claims) < 2 else 14}


def themed(chart: Drawing, description: str) -> Drawing:
    """The theme, put into the specification: it looks the same wherever it is shown, also on paper."""
    themed: Drawing = (
        chart.properties(description=description, background="#ffffff", padding={"left": 6, "top": 6, "right": 18, "bottom": 6})
        .configure(font=FONT)
        .configure_view(stroke=None)
        .configure_concat(spacing=6)
        .configure_title(
            anchor="start", frame="bounds", color=INK, fontSize=16, fontWeight=600, offset=14,
            subtitleColor=QUIET, subtitleFontSize=11.5, subtitlePadding=6, subtitleLineHeight=15,
        )
        .configure_axis(
            labelColor=QUIET, titleColor=QUIET, labelFontSize=11, gridColor=RULE, domain=False, ticks=False,
            labelPadding=6,
        )
        .configure_legend(labelColor=INK, titleColor=QUIET, labelFontSize=11.5)
    )  # fmt: skip
    return themed


def nothing(what: str) -> Drawing:
    """A chart that says that there are no trials, and for what."""
    import altair as alt

    text = alt.Chart(alt.InlineData([{"text": f"no trials: {what}"}])).mark_text(fontSize=14, color=QUIET)
    chart = text.encode(text="text:N").properties(width=WIDTH, height=80, title=headline(["No trials"], []))
    return themed(chart, f"No trials: {what}.")


def cycle(values: Sequence[Any], arms: Sequence[str]) -> list[Any]:
    """One value an arm, from the first again where they run out."""
    return [values[n % len(values)] for n in range(len(arms))]
