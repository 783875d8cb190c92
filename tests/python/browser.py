# SPDX-License-Identifier: Apache-2.0
"""Opens pages in headless Chromium, as a person does after copying the file: from file://, with the network off."""

from __future__ import annotations

import contextlib
import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.needs import need_programs

VIEWS = (
    *("summary", "communicators", "sizes", "waiting", "ranks", "peers"),
    *("regions", "callsites", "timeline", "cost", "query"),
)
PATIENCE_S = 60


class Browser:
    """One tab."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver
        driver.execute_cdp_cmd("Network.enable", {})
        driver.execute_cdp_cmd(
            "Network.emulateNetworkConditions",
            {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0},
        )

    def connect(self) -> None:
        """Switch the network on."""
        self.driver.execute_cdp_cmd(
            "Network.emulateNetworkConditions",
            {"offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1},
        )

    def open(self, page: Path | str, fragment: str = "") -> None:
        """Open a file or an address anew and wait until it is drawn."""
        self.driver.get("about:blank")
        self.driver.get(f"{page.as_uri() if isinstance(page, Path) else page}#{fragment}")
        self.wait_until("!document.getElementById('page').hasAttribute('aria-busy')")

    def go(self, fragment: str) -> None:
        """Change the fragment of the address, as a link within the page does."""
        self.run("location.hash = arguments[0]", f"#{fragment}")
        self.redraw()

    def redraw(self) -> None:
        """Wait until the page has handled a change of its address and is drawn."""
        self.run_async("requestAnimationFrame(() => setTimeout(arguments[0], 0))")

    def run(self, script: str, *arguments: Any) -> Any:
        """Run a script in the page."""
        return self.driver.execute_script(script, *arguments)

    def run_async(self, script: str, *arguments: Any) -> Any:
        """Run a script that calls its last argument when it has finished."""
        return self.driver.execute_async_script(script, *arguments)

    def wait_until(self, condition: str) -> None:
        """Wait until an expression of JavaScript is true."""
        end = time.monotonic() + PATIENCE_S
        while not self.run(f"return {condition}"):
            assert time.monotonic() < end, f"still not true: {condition}"
            time.sleep(0.02)

    def results(self) -> dict[str, Any]:
        """Return the CSV and SQL of every panel that is shown."""
        found: dict[str, Any] = self.run("return window.commlens()")
        return found

    def resize(self, width: int, height: int = 900) -> None:
        """Give the tab another size, also one that is too small for a window."""
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
        )

    def complaints(self) -> list[str]:
        """Return what the console of the browser has had since the last question."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """Return the addresses that were asked for since the last question."""
        messages = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        return [
            message["params"]["request"]["url"]
            for message in messages
            if message["method"] == "Network.requestWillBeSent"
        ]


@contextlib.contextmanager
def browser() -> Iterator[Browser]:
    """Start a browser. Ubuntu has Chromium as a snap only, so that the tests are skipped there."""
    chromium, driver = (shutil.which(name) or "" for name in ("chromium", "chromedriver"))
    if not (chromium and driver) and "\nID=ubuntu\n" in Path("/etc/os-release").read_text():
        pytest.skip("Ubuntu has no packages chromium and chromium-driver")
    need_programs("chromium", "chromedriver", package="chromium and chromium-driver")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1400,900"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    tab = webdriver.Chrome(options=options, service=Service(driver))
    tab.set_script_timeout(PATIENCE_S)
    try:
        yield Browser(tab)
    finally:
        tab.quit()
