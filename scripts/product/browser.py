"""A browser without a screen, and what is asked of the page that it shows."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException, WebDriverException
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

WIDE, PHONE = (1440, 1000), (360, 740)
_PATIENCE = 180.0  # seconds: how long something takes says how busy the machine is

_LISTEN = """
window.isHit = false;
arguments[0].addEventListener("click", () => { window.isHit = true; }, { once: true });
"""
_AUDITS = (Path(__file__).parent / "audits.js").read_text("utf-8")


class Browser:
    """A window with one page.

    Args:
        driver: of chromium.
        pictures: folder for pictures of the page, or None.
    """

    def __init__(self, driver: Any, pictures: Path | None) -> None:
        self.driver = driver
        self._pictures = pictures

    def get(self, selector: str) -> WebElement:
        """Return the first element of a selector."""
        element: WebElement = self.driver.find_element(By.CSS_SELECTOR, selector)
        return element

    def count(self, selector: str) -> int:
        """Return how many elements there are."""
        return len(self.driver.find_elements(By.CSS_SELECTOR, selector))

    def text(self, selector: str) -> str:
        """Return the text that is shown."""
        return str(self.get(selector).text)

    def run(self, script: str, *arguments: object) -> Any:
        """Run a script in the page."""
        return self.driver.execute_script(script, *arguments)

    def until(self, what: str, condition: Callable[[], object]) -> None:
        """Wait until something is so; AssertionError if it does not become so."""
        end = time.monotonic() + _PATIENCE
        pause = 0.02
        while time.monotonic() < end:
            try:
                if condition():
                    return
            except WebDriverException:
                pass  # an element that is not there yet, or was replaced right now
            time.sleep(pause)
            # Each look takes the time of four processes from what is waited for.
            pause = min(pause * 1.4, 0.3)
        raise AssertionError(
            f"in {_PATIENCE:g} seconds it was not so that {what}; the page shows:\n"
            f"{self.text('body')}\nand its console: {self.complaints()}"
        )

    def click(self, selector: str) -> None:
        """Click on what is there; what is replaced or moved right now is waited for.

        A driver clicks where an element was: one that moved in between is clicked again.
        """

        def clicked() -> bool:
            element = self.get(selector)
            self.run(_LISTEN, element)
            element.click()
            return bool(self.run("return window.isHit"))

        self.until(f"{selector} can be clicked", clicked)

    def press(self, *keys: str) -> None:
        """Press keys where the focus is."""
        for key in keys:
            ActionChains(self.driver).send_keys(key).perform()

    def point_at(self, selector: str) -> None:
        """Move the pointer to what is there."""
        ActionChains(self.driver).move_to_element(self.get(selector)).perform()

    def focus_order(self, most: int = 200) -> list[str]:
        """Press the Tab key until the focus is where it began; return the names on the way."""
        self.run("document.querySelector('.skip').focus()")
        names: list[str] = []
        for _ in range(most):
            self.press(Keys.TAB)
            found = self._focused()
            if found is None or found in names[:1]:
                return names
            names.append(found)
        raise AssertionError(f"the Tab key does not come round: {names}")

    def _focused(self) -> str | None:
        """Return the name of what has the focus, which must be seen; None for the page itself.

        What was replaced right now, such as a row of a table that grows, is looked at again.
        """
        for _ in range(5):
            element = self.driver.switch_to.active_element
            try:
                if element.tag_name == "body":
                    return None
                name = str(element.accessible_name)
                is_seen = self.run(f"{_AUDITS} return outlined(arguments[0])", element)
                assert name, f"nothing names {element.get_attribute('outerHTML')}"
                assert is_seen, f"nothing shows that the focus is at {name!r}"
                return name
            except StaleElementReferenceException:
                continue
        raise AssertionError("what has the focus is replaced again and again")

    def size(self, size: tuple[int, int]) -> None:
        """Give the window a size, as a phone has it if it is narrow."""
        width, height = size
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600},
        )

    def scheme(self, name: str) -> None:
        """Ask for light or dark."""
        features = [
            {"name": "prefers-color-scheme", "value": name},
            # Without a graphics card each turn of a spinner is painted by the processor.
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def picture(self, name: str) -> None:
        """Keep a picture of the page, if pictures are wanted."""
        if self._pictures is not None:
            self._pictures.mkdir(parents=True, exist_ok=True)
            self.driver.save_screenshot(str(self._pictures / f"{name}.png"))

    def faint(self) -> list[str]:
        """Return texts with less contrast than WCAG 2 AA asks for."""
        found: list[str] = self.run(f"{_AUDITS} return faint()")
        return found

    def cut(self) -> list[str]:
        """Return what does not fit the width of the window."""
        found: list[str] = self.run(f"{_AUDITS} return cut()")
        return found

    def unnamed(self) -> list[str]:
        """Return what a reader of screens cannot name, and headings that leave out a level."""
        found: list[str] = self.run(f"{_AUDITS} return unnamed()")
        return found

    @contextmanager
    def another_tab(self) -> Iterator[None]:
        """Have another tab for a while, which shares nothing with this one."""
        first = self.driver.current_window_handle
        self.driver.switch_to.new_window("tab")
        try:
            yield
        finally:
            self.driver.close()
            self.driver.switch_to.window(first)

    def complaints(self) -> list[str]:
        """Return what the browser wrote into its console since it was asked last."""
        return [str(entry["message"]) for entry in self.driver.get_log("browser")]


@contextmanager
def browser(downloads: Path, pictures: Path | None) -> Iterator[Browser]:
    """Yield a window; what is downloaded goes to a folder."""
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=_service())
    try:
        driver.execute_cdp_cmd(
            "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(downloads)}
        )
        yield Browser(driver, pictures)
    finally:
        driver.quit()


def _service() -> Any:
    """Return the driver of the machine; selenium would load another one without it."""
    found = shutil.which("chromedriver")
    assert found is not None, "chromedriver is missing: scripts/setup.sh product installs it"
    return webdriver.ChromeService(executable_path=found)
