"""A published report with hostile cases in headless Chromium, the network off: marks, no console error, no request."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from agentbench_lab.reports import publish

from ..drawing import NASTY, report, strip
from .conftest import Browser

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A published report whose cases would like to act."""
    folder = tmp_path_factory.mktemp("report")
    return publish(report(folder / "out.ipynb", strip(request=NASTY, cases=6)), folder / "page.html")


MARKS = "return [...document.querySelectorAll('.chart')].map(c => c.querySelectorAll('svg path').length)"
BOTH_LIVE = "return document.querySelectorAll('[data-live]').length === 2"


def test_both_charts_come_alive(browser: Browser, page: Path) -> None:
    """The packed library runs: live charts with their marks and text, a quiet console, the one file and nothing else."""
    asked = browser.open(page)
    browser.until(BOTH_LIVE)
    pair, tiles = browser.run(MARKS)
    assert pair >= 40
    assert tiles >= 60
    assert browser.complaints() == []
    assert asked + browser.requests() == [page.as_uri()]
    labels = browser.run("return [...document.querySelectorAll('[role=img]')].map(c => c.ariaLabel)")
    assert len(labels) == 2
    assert all("stub" in label for label in labels)
    assert browser.run("return [window.hit, document.images.length]") == [None, 0]


def test_pointing_at_a_tile_says_what_it_is(browser: Browser, page: Path) -> None:
    """The tooltip shows the case and its request, as text."""
    from selenium.webdriver.common.action_chains import ActionChains

    browser.open(page)
    browser.until(BOTH_LIVE)
    tile = browser.find("#chart-2 .mark-rect path")[0]
    browser.run("arguments[0].scrollIntoView({block: 'center'})", tile)
    ActionChains(browser.driver).move_to_element(tile).perform()
    said = browser.until("return document.querySelector('#vg-tooltip-element.visible')?.innerText", seconds=5)
    assert "TOOL-0-0" in said
    assert NASTY in said
    assert browser.run("return window.hit") is None


def test_without_scripts_the_pictures_stand(browser: Browser, page: Path) -> None:
    """The same page with scripts disabled: both pictures, drawn, and still no request."""
    assert browser.open(page, scripts=False) == [page.as_uri()]
    charts = browser.find(".chart [role=img] > svg")
    assert len(charts) == 2
    assert all(len(chart.find_elements("css selector", "path")) >= 40 for chart in charts)
    assert all(chart.size["width"] > 500 and chart.size["height"] > 200 for chart in charts)


def test_without_the_means_to_unpack_the_pictures_stand_too(browser: Browser, page: Path) -> None:
    """An older browser has no DecompressionStream: nothing breaks, nothing complains."""
    source = "delete globalThis.DecompressionStream"
    added = browser.command("Page.addScriptToEvaluateOnNewDocument", source=source)
    try:
        browser.open(page)
        browser.until("return document.readyState === 'complete'")
        assert browser.run("return typeof DecompressionStream") == "undefined"
        assert browser.run("return document.querySelectorAll('[data-live]').length") == 0
        assert len(browser.find(".chart [role=img] > svg")) == 2
        assert browser.complaints() == []
    finally:
        browser.command("Page.removeScriptToEvaluateOnNewDocument", identifier=added["identifier"])


CUT = """return [...document.querySelectorAll('.output')].filter(
    e => [...e.querySelectorAll('th, td')].some(c => c.getBoundingClientRect().right > e.getBoundingClientRect().right + 1)
).map(e => e.querySelector('caption')?.textContent)"""


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A published report whose cases have long names, long requests and words without a place to break."""
    folder = tmp_path_factory.mktemp("wide")
    request = "What breaks in the_module_with_a_name_of_very_many_words_in_a_row.py when it changes? " * 2
    frame = strip(("stub", "my_agent:answer"), request=request, case_id="t4_a_case_with_a_rather_long_name")
    reason = "hallucinated tmct_members_of_everything_there_is[unknown_arg,another_unknown_arg]"
    frame = frame.with_columns(pl.lit(reason).alias("first_reason"))
    return publish(report(folder / "out.ipynb", frame), folder / "page.html")


@pytest.mark.parametrize(("media", "width"), [("screen", 1100), ("print", 673)])
def test_no_column_is_cut(browser: Browser, wide: Path, media: str, width: int) -> None:
    """At 1100 px, and on A4 without its margins: every cell of every table lies within its box."""
    browser.open(wide, media=media, width=width)
    assert len(browser.find("table")) == 3
    assert browser.run(CUT) == []


@pytest.mark.parametrize("width", [375, 900])
def test_it_never_scrolls_sideways(browser: Browser, page: Path, width: int) -> None:
    """Wide tables and pictures scroll inside their own box."""
    browser.open(page, width=width)
    wide, seen = browser.run("return [document.documentElement.scrollWidth, window.innerWidth]")
    assert wide <= seen


SCROLLED = """document.querySelectorAll('.output, .chart').forEach(e => { e.scrollLeft = 150; });
return [...document.querySelectorAll('.output')].filter(e => e.scrollLeft > 100).map(e =>
  [...e.querySelectorAll('caption, .note')].map(c => c.getBoundingClientRect()).map(r => [r.left, r.right]))"""


def test_on_a_narrow_page_captions_and_notes_and_claims_stay_in_sight(browser: Browser, wide: Path) -> None:
    """However far a table or a picture is scrolled; and the first column leaves room for the others."""
    browser.open(wide, width=400)
    told = browser.run(SCROLLED)
    assert len(told) >= 2
    assert all(left >= 0 and right <= 400 for table in told for left, right in table)
    claims = browser.run("return [...document.querySelectorAll('.claim')].map(e => e.offsetHeight)")
    assert len(claims) == 2 and all(claims)
    firsts = "return [...document.querySelectorAll('.output tbody th[scope=row]')].map(e => e.offsetWidth)"
    assert max(browser.run(firsts)) <= 150
    browser.open(wide, width=900)
    assert not any(browser.run("return [...document.querySelectorAll('.claim')].map(e => e.offsetHeight)"))


def test_what_is_out_of_sight_does_not_make_rows_high(browser: Browser, wide: Path) -> None:
    """A table that is scrolled anyway is as wide as its cells like to be, up to a bound."""
    browser.open(wide, width=400)
    lines = browser.run(
        "return [...document.querySelectorAll('.output table')].filter(t => t.rows[0].cells.length > 2)"
        ".map(t => Math.max(...[...t.tBodies[0].rows].map(r => r.offsetHeight)))"
    )
    assert lines and max(lines) <= 170


def test_on_a_dark_page_no_tile_stays_pale(browser: Browser, page: Path) -> None:
    """What is not solved is no brighter than what is; and its sign is still seen."""
    pale = "return [...document.querySelectorAll('.chart svg [fill=\"#f6e7bf\"]')].map(e => getComputedStyle(e).fill)"
    signs = "return [...document.querySelectorAll('.chart svg [stroke=\"#7a5a00\"]')].map(e => getComputedStyle(e).stroke)"
    browser.open(page, dark=True)
    browser.until(BOTH_LIVE)
    assert set(browser.run(pale)) == {"rgb(165, 142, 84)"}
    assert set(browser.run(signs)) == {"rgb(46, 33, 0)"}
    browser.open(page)
    browser.until(BOTH_LIVE)
    assert set(browser.run(pale)) == {"rgb(246, 231, 191)"}
