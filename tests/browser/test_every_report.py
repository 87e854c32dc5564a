"""Every notebook of the project, published and opened in headless Chromium: alive, quiet, accessible, and by keyboard."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from agentbench_lab.reports import report_all
from agentbench_lab.reports.html import MOST_BYTES

from .conftest import Browser

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]
NAMES = sorted(
    path.stem
    for path in (ROOT / "notebooks").glob("*.ipynb")
    if not path.stem.startswith("out") and "failed" not in path.stem
)
each_page = pytest.mark.parametrize("name", [*NAMES, "index"])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All notebooks with their own defaults, published by one call in a project of their own."""
    project = tmp_path_factory.mktemp("project")
    (project / "data" / "results").mkdir(parents=True)
    # new runs go into a folder of their own; all else that a notebook reads is the project's
    there = [path for path in (ROOT / "data").iterdir() if path.name != "results"]
    for path in [*there, *(ROOT / "data" / "results").glob("*")]:
        (project / path.relative_to(ROOT)).symlink_to(path)
    paths = [ROOT / "notebooks" / f"{name}.ipynb" for name in NAMES]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(project)
        done, index = report_all(paths)
    assert [one.problem for one in done if one.page is None] == []
    return index.parent


@each_page
def test_it_is_one_file_that_stands_alone(browser: Browser, site: Path, name: str) -> None:
    """Small enough; every chart comes alive with marks; nothing else is asked for; the console is quiet."""
    page = site / f"{name}.html"
    assert page.stat().st_size <= MOST_BYTES
    asked = browser.open(page)
    figures = browser.run("return document.querySelectorAll('script[data-figure]').length")
    assert figures or not browser.find(".chart")
    browser.until(f"return document.querySelectorAll('[data-live]').length === {figures}")
    marks = browser.run(
        "return [...document.querySelectorAll('[data-live] svg')].map(s => s.querySelectorAll('path, text').length)"
    )
    assert len(marks) == figures
    assert all(count > 0 for count in marks)
    outside = [url for url in asked + browser.requests() if not url.startswith("data:")]
    assert outside == [page.as_uri()]
    assert browser.complaints() == []


@each_page
@pytest.mark.parametrize(("dark", "width"), [(False, 1100), (True, 1100), (False, 375), (True, 375)])
def test_axe_finds_nothing_serious(browser: Browser, site: Path, name: str, dark: bool, width: int) -> None:
    """Contrast, names, headings, landmarks, tables, keyboard access; with what is folded opened."""
    package = find_spec("axe_playwright_python")
    if package is None or package.origin is None:
        pytest.skip("axe-playwright-python, which brings axe.min.js, is not installed")
    axe = (Path(package.origin).parent / "axe.min.js").read_text(encoding="utf-8")
    browser.open(site / f"{name}.html", dark=dark, width=width)
    figures = browser.run("return document.querySelectorAll('script[data-figure]').length")
    browser.until(f"return document.querySelectorAll('[data-live]').length === {figures}")
    browser.run(
        "[...document.querySelectorAll('details')].slice(0, 40).forEach(each => { each.open = true; })"
    )
    browser.run(axe)
    browser.driver.set_script_timeout(60)
    script = "axe.run(document, {resultTypes: ['violations']}).then(arguments[0])"
    found = browser.driver.execute_async_script(script)
    bad = [
        f"{each['impact']} {each['id']}: {each['nodes'][0]['html'][:200]}"
        for each in found["violations"]
        if each["impact"] in ("serious", "critical")
    ]
    assert bad == []
    assert len(found["passes"]) >= 15
    wide, seen = browser.run("return [document.documentElement.scrollWidth, window.innerWidth]")
    assert wide <= seen


def focused(browser: Browser) -> Any:
    return browser.driver.switch_to.active_element


@pytest.mark.parametrize("scripts", [True, False])
def test_from_a_rung_to_a_transcript_by_keyboard(browser: Browser, site: Path, scripts: bool) -> None:
    """Tab to TOOL-3 in the ladder's table, Enter: the list of its trials; Tab, Enter: one of them in full; and back."""
    from selenium.webdriver.common.keys import Keys

    browser.open(site / "run_ladder.html", scripts=scripts)
    browser.press(Keys.TAB)
    assert focused(browser).text == "To the content"
    browser.press(Keys.ENTER)
    for _ in range(40):
        browser.press(Keys.TAB)
        if focused(browser).text == "TOOL-3":
            break
    assert focused(browser).text == "TOOL-3"
    anchor = focused(browser).get_attribute("href").partition("#")[2]
    (listed,) = browser.find(f"#{anchor}")
    assert not listed.is_displayed()
    browser.press(Keys.ENTER)
    assert listed.is_displayed()
    trials = listed.find_elements("css selector", "summary")
    assert len(trials) == 19
    browser.press(Keys.TAB)
    assert focused(browser) == trials[0]
    (told,) = listed.find_elements("css selector", "li:first-child table")
    assert not told.is_displayed()
    browser.press(Keys.ENTER)
    assert told.is_displayed()
    for heading in (
        "asked",
        "expected",
        "called, as the driver says",
        "observed, as the toolbox saw it",
        "checks, safety first",
    ):
        assert heading in told.text
    assert "FAILED first" in told.text
    browser.press(Keys.TAB)
    assert focused(browser).text == "Back to the list"
    browser.press(Keys.ENTER)
    browser.press(Keys.TAB)
    assert focused(browser) == trials[0]
