"""The published report in headless Chromium with the network off: marks, no console error, no request."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from agentbench_lab.reports import publish

from ..drawing import NASTY, report, strip

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")

CHROMIUM, CHROMEDRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not (CHROMIUM and CHROMEDRIVER), reason="chromium or chromedriver is not installed"),
]
ARGUMENTS = """--headless=new --no-sandbox --disable-gpu --disable-background-networking --disable-component-update
--disable-sync --no-first-run --window-size=900,1200"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One browser that cannot reach any network, with a profile of its own."""
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ARGUMENTS.split():
        options.add_argument(argument)
    options.add_argument(f"--user-data-dir={tmp_path_factory.mktemp('profile')}")
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(CHROMEDRIVER))
    try:
        driver.execute_cdp_cmd("Network.enable", {})
        offline = {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0}
        driver.execute_cdp_cmd("Network.emulateNetworkConditions", offline)
        yield driver
    finally:
        driver.quit()


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A published report whose cases would like to act."""
    folder = tmp_path_factory.mktemp("report")
    return publish(report(folder / "out.ipynb", strip(request=NASTY, cases=6)), folder / "page.html")


def requests(browser: Any) -> list[str]:
    """The addresses asked for since the last look."""
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    return [
        each["params"]["request"]["url"] for each in messages if each["method"] == "Network.requestWillBeSent"
    ]


def opened(browser: Any, page: Path, *, scripts: bool = True) -> list[str]:
    """Open the page; what it asked for."""
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": not scripts})
    browser.get("about:blank")
    requests(browser)
    browser.get_log("browser")
    browser.get(page.as_uri())
    return requests(browser)


MARKS = "return [...document.querySelectorAll('.chart')].map(c => c.querySelectorAll('svg path').length)"
LIVE = "return [...document.querySelectorAll('.chart')].filter(c => c.dataset.live).length"


def test_both_charts_come_alive(browser: Any, page: Path) -> None:
    """Scripts run: live charts with their marks and their text, a quiet console, the one file and nothing else."""
    from selenium.webdriver.support.ui import WebDriverWait

    asked = opened(browser, page)
    WebDriverWait(browser, 20).until(lambda it: it.execute_script(LIVE) == 2)
    pair, tiles = browser.execute_script(MARKS)
    assert pair >= 40
    assert tiles >= 60
    assert [entry for entry in browser.get_log("browser") if entry["level"] != "INFO"] == []
    assert asked + requests(browser) == [page.as_uri()]
    labels = browser.execute_script(
        "return [...document.querySelectorAll('[role=img]')].map(c => c.ariaLabel)"
    )
    assert all("stub" in label for label in labels)
    assert browser.execute_script("return [window.hit, document.images.length]") == [None, 0]


def test_pointing_at_a_tile_says_what_it_is(browser: Any, page: Path) -> None:
    """The tooltip shows the case and its request, as text."""
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.support.ui import WebDriverWait

    opened(browser, page)
    WebDriverWait(browser, 20).until(lambda it: it.execute_script(LIVE) == 2)
    tile = browser.find_elements("css selector", "#chart-2 .mark-rect path")[0]
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", tile)
    ActionChains(browser).move_to_element(tile).perform()
    WebDriverWait(browser, 5).until(
        lambda it: it.find_elements("css selector", "#vg-tooltip-element.visible")
    )
    said = browser.find_element("css selector", "#vg-tooltip-element").text
    assert "TOOL-0-0" in said
    assert NASTY in said
    assert browser.execute_script("return window.hit") is None


def test_without_scripts_the_pictures_stand(browser: Any, page: Path) -> None:
    """The same page with scripts disabled: both pictures, drawn, and still no request."""
    try:
        assert opened(browser, page, scripts=False) == [page.as_uri()]
        charts = browser.find_elements("css selector", ".chart > svg")
        assert len(charts) == 2
        assert all(len(chart.find_elements("css selector", "path")) >= 40 for chart in charts)
        assert all(chart.size["width"] > 500 and chart.size["height"] > 200 for chart in charts)
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


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


@pytest.mark.parametrize("media", ["screen", "print"])
def test_no_column_is_cut(browser: Any, wide: Path, media: str) -> None:
    """At 1100 px, and on A4 without its margins: every cell of every table lies within its box."""
    try:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media})
        browser.set_window_size(1100 if media == "screen" else 673, 1000)
        opened(browser, wide)
        assert len(browser.find_elements("css selector", "table")) == 3
        assert browser.execute_script(CUT) == []
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


@pytest.mark.parametrize("width", [400, 900])
def test_it_never_scrolls_sideways(browser: Any, page: Path, width: int) -> None:
    """Wide tables and pictures scroll inside their own box."""
    browser.set_window_size(width, 1000)
    opened(browser, page)
    wide, seen = browser.execute_script("return [document.documentElement.scrollWidth, window.innerWidth]")
    assert wide <= seen
