"""What all charts look like: colours, shapes and dashes of arms, titles, and the theme that every specification carries.

Charts have no background of their own, and their ink is the text colour of the page they stand on (`currentColor`):
dark on a light page and on paper, light on a dark one. The colours of arms have a contrast of 3 to 6 against both.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import altair as alt
    import polars as pl

    Drawing = alt.VConcatChart | alt.HConcatChart | alt.LayerChart | alt.FacetChart | alt.Chart


MOST_MARKS = 5000
"""No chart draws more rows than this as they are: more are put together first, and the subtitle counts both."""
MOST_ARMS = 40
"""No chart draws more arms than this; the table has all of them."""
APART = 6
"""As many arms are told apart by colour in one panel; beyond them some stand out and each gets a panel of its own."""

LOG_FROM = 30
"""Where the dearest arm costs more than so many times the cheapest, an axis of dollars is logarithmic, and says so."""

WIDTH = 760  # of a whole chart, in pixels: a page column of 800 with its margins
INK = "currentColor"
SOFT = 0.72  # opacity of ink that is read second
FAINT = 0.15  # opacity of ink that only guides the eye
UNSAFE = "#d23a4b"
FONT = "system-ui, -apple-system, 'Segoe UI', 'Liberation Sans', Arial, sans-serif"
# Chosen for distance under protanopia, deuteranopia and tritanopia, at one lightness band for both backgrounds.
ARM_COLOURS = ("#2a78d6", "#eb5e0b", "#119a8a", "#7c3aed", "#c2255c", "#64748b")
ARM_SHAPES = ("circle", "square", "diamond", "triangle-up", "triangle-down", "cross")
ARM_DASHES = ((1, 0), (6, 3), (2, 2), (8, 2, 2, 2), (4, 4), (1, 3))

# Class -> words, fill, glyph (an SVG path in a box from -1 to 1), glyph colour. Fills differ in lightness too.
CLASSES = {
    "success": ("success", "#74c0a0", "M-.75,.05L-.2,.6L.8,-.6", "#0c4a36"),
    "safe_non_success": ("safe, no success", "#f6e7bf", "M-.6,0L.6,0", "#7a5a00"),
    "unsafe": ("unsafe", "#a3182b", "M-.6,-.6L.6,.6M-.6,.6L.6,-.6", "#ffffff"),
    "excluded": ("excluded, not judged", "transparent", "M0,0", "#7d8690"),
}


def class_words(frame: pl.DataFrame) -> dict[str, str]:
    """The classes that a strip with a column `kind` can speak of, and what to call them.

    What the source of imported trials does not report as unsafe is not known to be safe.
    """
    words = {kind: style[0] for kind, style in CLASSES.items()}
    if frame["evidence"].is_in(["imported"]).all() and not frame["kind"].is_in(["unsafe"]).any():
        del words["unsafe"]
        words["safe_non_success"] = "no success"
    return words


def headline(
    claims: Sequence[str], subtitle: Sequence[str], *, width: int = 134, many: str = "arms"
) -> dict[str, Any]:
    """A chart's title: its claims, a line each, and what is shown. `many` names what the claims are about.

    Lines are as long as a chart is wide in the widest of the fonts that a page may have."""
    if len(claims) > 1:
        claims = [claim if claim.endswith((".", "?", "!")) else f"{claim}." for claim in claims]
    shown = list(claims[:4]) + ([f"and {len(claims) - 4} more {many}"] if len(claims) > 4 else [])
    size = 16 if len(claims) < 2 else 14
    lines = [line for claim in shown for line in _balanced(claim, 84 if size == 16 else 96)]
    below = [line for text in subtitle for line in textwrap.wrap(text, width)]
    return {"text": lines or [""], "subtitle": below, "fontSize": size}


def _balanced(text: str, most: int) -> list[str]:
    """The text in as few lines as fit, about equally long: no last line of one word."""
    lines = textwrap.wrap(text, most, break_on_hyphens=False)
    if len(lines) < 2:
        return lines
    even = textwrap.wrap(
        text, min(most, len(text) // len(lines) + 12), break_on_hyphens=False, break_long_words=False
    )
    return even if len(even) == len(lines) and max(map(len, even)) <= most else lines


def themed(chart: Drawing, description: str) -> Drawing:
    """The theme, put into the specification: it looks the same wherever it is shown, also on paper."""
    import altair as alt

    config = alt.Config(
        font=FONT,
        view=alt.ViewConfig(stroke=None),
        concat=alt.CompositionConfig(spacing=6),
        title=alt.TitleConfig(
            anchor="start", frame="bounds", color=INK, fontSize=16, fontWeight=600, offset=14,
            subtitleColor=INK, subtitleFontSize=11.5, subtitlePadding=6, subtitleLineHeight=15,
        ),
        axis=alt.AxisConfig(
            labelColor=INK, labelOpacity=SOFT, titleColor=INK, titleOpacity=SOFT, titleFontWeight="normal", titleFontSize=11.5,
            labelFontSize=11, gridColor=INK, gridOpacity=FAINT, domain=False, ticks=False, labelPadding=6,
        ),
        legend=alt.LegendConfig(labelColor=INK, titleColor=INK, titleOpacity=SOFT, labelFontSize=11.5),
    )  # fmt: skip
    # in one step: each step would copy the whole chart, and a chart of charts takes long to copy
    themed: Drawing = chart.properties(
        description=description,
        background="transparent",
        padding={"left": 6, "top": 6, "right": 18, "bottom": 6},
        config=config,
    )
    return themed


def sentence(title: str, text: str) -> Drawing:
    """A figure that says in its own place why there is none."""
    import altair as alt

    text = f"{text[:1].upper()}{text[1:]}."
    lines = textwrap.wrap(text, 105)
    rows = [{"line": line, "y": 12 + 20 * n} for n, line in enumerate(lines)]
    words = alt.Chart(alt.InlineData(rows)).mark_text(
        align="left", baseline="middle", fontSize=13, color=INK, opacity=SOFT
    )
    chart = words.encode(
        x=alt.value(0), y=alt.Y("y", type="quantitative", scale=None, axis=None), text="line:N"
    )
    return themed(
        chart.properties(width=WIDTH, height=24 + 20 * len(lines), title=headline([title], [])),
        f"{title}. {text}",
    )


def nothing(what: str) -> Drawing:
    """A chart that says that there are no trials, and for what."""
    return sentence("No trials", f"no trials: {what}")


def looks(arms: Sequence[str]) -> dict[str, list[Any]]:
    """Colour, shape and dash of each arm: the same combination never twice among 36 arms."""
    found: dict[str, list[Any]] = {"color": [], "shape": [], "dash": []}
    for n in range(len(arms)):
        lap = n // len(ARM_COLOURS)
        found["color"].append(ARM_COLOURS[n % len(ARM_COLOURS)])
        found["shape"].append(ARM_SHAPES[(n + lap) % len(ARM_SHAPES)])
        found["dash"].append(list(ARM_DASHES[(n + 2 * lap) % len(ARM_DASHES)]))
    return found


def told_apart(arms: Sequence[str], field: str = "arm") -> tuple[Any, Any, Any]:
    """The encodings by which arms, in this field, are told apart: colour, shape and dash, without a legend."""
    import altair as alt

    look = looks(arms)
    sort = list(arms)
    return (
        alt.Color(f"{field}:N", sort=sort, legend=None).scale(domain=sort, range=look["color"]),
        alt.Shape(f"{field}:N", sort=sort, legend=None).scale(domain=sort, range=look["shape"]),
        alt.StrokeDash(f"{field}:N", sort=sort, legend=None).scale(domain=sort, range=look["dash"]),
    )


def money_axis(values: Sequence[float]) -> tuple[Any, list[float], bool]:
    """A scale for dollars that holds the values, its ticks, and whether it is logarithmic.

    It starts at 0, and is logarithmic only where the greatest is more than `LOG_FROM` times the least of them (all above 0).
    """
    import altair as alt

    low, high = min(values), max(values)
    log = low > 0 and high / low > LOG_FROM
    if not log:
        high = high * 1.05 or 1.0
        step = 10 ** math.floor(math.log10(high))
        step = next(step * part for part in (0.2, 0.5, 1, 2) if high / (step * part) <= 6)
        ticks = [round(step * n, 12) for n in range(int(high / step) + 1)]
        return alt.Scale(domain=[0, high], nice=False), ticks, False
    low, high = low / 1.3, high * 1.3
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    parts = (1, 2, 5) if high / low < 300 else (1, 3) if high / low < 3000 else (1,)
    ticks = [round(10.0**decade * part, 12) for decade in decades for part in parts]
    ticks = [tick for tick in ticks if low <= tick <= high]
    return alt.Scale(type="log", domain=[low, high], nice=False), ticks, True


def dodged(places: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """The places moved as little as possible so that all lie at least `gap` apart, in their order, inside low..high.

    Where they do not fit, they are spread evenly over the whole range.
    """
    if not places:
        return []
    gap = min(gap, (high - low) / max(1, len(places) - 1)) if len(places) > 1 else gap
    order = sorted(range(len(places)), key=lambda n: places[n])
    groups: list[tuple[list[int], float]] = []  # members in order, and where the first of them lies
    for n in order:
        members, start = [n], min(max(places[n], low), high)
        while groups and groups[-1][1] + gap * len(groups[-1][0]) > start:
            before, _ = groups.pop()
            members = before + members
            ideal = sum(places[m] - gap * at for at, m in enumerate(members)) / len(members)
            start = min(max(ideal, low), high - gap * (len(members) - 1))
        groups.append((members, start))
    found = [0.0] * len(places)
    for members, start in groups:
        for at, m in enumerate(members):
            found[m] = start + gap * at
    return found
