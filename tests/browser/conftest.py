"""A browser that cannot reach any network, and what a test asks of it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")

CHROMIUM, CHROMEDRIVER = shutil.which("chromium"), shutil.which("chromedriver")
ARGUMENTS = """--headless=new --no-sandbox --disable-gpu --disable-background-networking --disable-component-update
--disable-sync --no-first-run --window-size=900,1200"""


class Browser:
    """Headless Chromium with the network off. `driver` is selenium's."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def command(self, name: str, **how: Any) -> Any:
        return self.driver.execute_cdp_cmd(name, how)

    def run(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def requests(self) -> list[str]:
        """The addresses asked for since the last look."""
        messages = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        sent = "Network.requestWillBeSent"
        return [each["params"]["request"]["url"] for each in messages if each["method"] == sent]

    def complaints(self) -> list[str]:
        """What the console said since the last look, beside information."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] != "INFO"]

    def open(
        self, page: Path, *, scripts: bool = True, dark: bool = False, media: str = "", width: int = 900
    ) -> list[str]:
        """Open a page so; what it asked for."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.command("Emulation.setEmulatedMedia", media=media, features=[scheme])
        self.command("Emulation.setScriptExecutionDisabled", value=not scripts)
        size = {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
        self.command("Emulation.setDeviceMetricsOverride", **size)
        self.driver.get("about:blank")
        self.requests(), self.complaints()
        self.driver.get(page.as_uri())
        return self.requests()

    def until(self, script: str, *, seconds: float = 20) -> Any:
        """Wait until the script gives something true; that."""
        from selenium.webdriver.support.ui import WebDriverWait

        return WebDriverWait(self.driver, seconds).until(lambda it: it.execute_script(script))

    def press(self, *keys: str) -> None:
        from selenium.webdriver.common.action_chains import ActionChains

        ActionChains(self.driver).send_keys(*keys).perform()

    def find(self, selector: str) -> list[Any]:
        found: list[Any] = self.driver.find_elements("css selector", selector)
        return found


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One browser with a profile of its own."""
    if not (CHROMIUM and CHROMEDRIVER):
        pytest.skip("chromium or chromedriver is not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ARGUMENTS.split():
        options.add_argument(argument)
    options.add_argument(f"--user-data-dir={tmp_path_factory.mktemp('profile')}")
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(CHROMEDRIVER))
    try:
        made = Browser(driver)
        made.command("Network.enable")
        made.command(
            "Network.emulateNetworkConditions",
            offline=True,
            latency=0,
            downloadThroughput=0,
            uploadThroughput=0,
        )
        yield made
    finally:
        driver.quit()
