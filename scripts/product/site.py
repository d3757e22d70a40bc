"""The built site in a real browser: what its visitors do there, and with what.

    python -m scripts.product.site FOLDER [--pictures FOLDER]

A server on this machine serves the pages.  --pictures keeps what the browser painted, for people to
look at.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from selenium.webdriver.common.keys import Keys

from scripts.product.browser import Browser, browser

_WIDTHS = (390, 1024, 1400)
_PAGES = ("index", "results", "report", "quick-start")
_SEARCHES = {
    "--flash-budget": "options.html#-flash-budget",
    "a constant of 81920 bytes is too large for an AVR": "messages.html#codegenflash",
    "target option 'kind' is given twice": "messages.html#configtarget_text",
    "quantise a PyTorch model": "from-pytorch.html",
}
"""What is typed, and what is among the first answers."""

_GROUNDS = {"light": "rgb(251, 251, 250)", "dark": "rgb(21, 24, 28)"}
_GROUND = "return getComputedStyle(document.body).backgroundColor"
_ANSWERS = """
return [...document.querySelectorAll(".md-search-result__link")].slice(0, 3)
  .map((link) => link.pathname.slice(1) + link.hash)
"""
_FIRST_COLUMNS = """
return [...document.querySelectorAll(".sorts tbody")[0].rows].map((row) => row.cells[2].textContent)
"""
_SHOWN_COLUMNS = """
return [...document.querySelectorAll(".sorts tr")].slice(0, 2)
  .map((row) => [...row.cells].filter((cell) => cell.checkVisibility()).length)
"""


class _Silent(SimpleHTTPRequestHandler):
    """A handler that prints nothing."""

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Yield the address of a server of a folder."""
    handler = partial(_Silent, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def open_page(page: Browser, address: str, name: str) -> None:
    """Open a page."""
    page.driver.get(f"{address}/{name}.html")


def fits_and_can_be_read(page: Browser, address: str) -> None:
    """Check width, contrast, names and headings at three widths, light and dark."""
    for name in _PAGES:
        open_page(page, address, name)
        for scheme, ground in _GROUNDS.items():
            page.scheme(scheme)
            page.until(f"it is {scheme}", lambda ground=ground: page.run(_GROUND) == ground)  # type: ignore[misc]
            assert page.faint() == [], (name, scheme, page.faint())
            for width in _WIDTHS:
                page.size((width, 900))
                assert page.run("return document.documentElement.scrollWidth <= innerWidth"), (
                    f"{name} scrolls sideways at {width} pixels"
                )
                page.picture(f"{name}-{width}-{scheme}")
        page.until(f"{name} can be named: {page.unnamed()}", lambda: page.unnamed() == [])


def sorts_and_filters(page: Browser, address: str) -> None:
    """Check that a column sorts by value, both ways and by keyboard, and that a board is chosen."""
    open_page(page, address, "results")
    button = page.get(".sorts th:nth-child(3) button")
    button.click()
    cells = page.run(_FIRST_COLUMNS)
    figures = [float(cell.replace(",", "")) for cell in cells if cell[-1].isdigit()]
    assert len(figures) > 5 and figures == sorted(figures), cells
    assert all(cell[-1].isdigit() for cell in cells[: len(figures)]), cells
    button.send_keys(Keys.ENTER)
    assert page.get(".sorts th:nth-child(3)").get_attribute("aria-sort") == "descending"
    assert float(page.run(_FIRST_COLUMNS)[0].replace(",", "")) == figures[-1]
    page.get(".choice select").send_keys("nrf52840dk")
    assert page.run(_SHOWN_COLUMNS) == [3, 3]
    assert "nrf52840dk" in page.text(".sorts thead") and "due" not in page.text(".sorts thead")
    assert page.get(".sorts td").value_of_css_property("position") == "sticky"


def finds(page: Browser, address: str) -> None:
    """Check that the search has the page of an option or a message among its first answers."""
    page.size((1400, 900))
    open_page(page, address, "index")
    typed = page.get(".md-search__input")
    for text, place in _SEARCHES.items():
        page.run("arguments[0].value = arguments[1]", typed, text)
        typed.send_keys(Keys.END)  # one search, not one for each key
        page.until(f"{text} leads to {place}", lambda place=place: place in page.run(_ANSWERS))  # type: ignore[misc]


def answers_in_the_map(page: Browser, address: str) -> None:
    """Check that a box of the memory map tells buffer, bytes and lifetime, by key and pointer."""
    open_page(page, address, "report")
    box = page.get(".live g.box[data-buffer=ring_0]")
    page.run("arguments[0].focus()", box)
    page.until("a tip is there", lambda: "ring_0: ring" in page.text("#tip"))
    assert "450 bytes" in page.text("#tip") and "layer 1" in page.text("#tip")
    box.send_keys(Keys.TAB)
    page.until("the next box has it", lambda: "ring_0" not in page.text("#tip"))
    page.point_at(".live g.box[data-buffer=activation_2]")
    page.until("the tip is another", lambda: "activation_2: activation" in page.text("#tip"))


def main() -> int:
    """Run all checks; the first that fails ends it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pictures", type=Path)
    given = parser.parse_args()
    begun = time.monotonic()
    with (
        tempfile.TemporaryDirectory() as scratch,
        served(given.folder) as address,
        browser(Path(scratch), given.pictures) as page,
    ):
        for check in (sorts_and_filters, finds, answers_in_the_map, fits_and_can_be_read):
            check(page, address)
            done = time.monotonic() - begun
            print(f"  {done:5.1f} s  {check.__name__.replace('_', ' ')}", flush=True)
        assert page.complaints() == []
    print(f"the site: all is well, in {time.monotonic() - begun:.0f} seconds")
    return 0


if __name__ == "__main__":
    sys.exit(main())
