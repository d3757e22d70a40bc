"""The page of `microtir studio` in a real browser: what a person does there, and with what.

    python -m scripts.product.studio [--pictures FOLDER]

Everything runs on this machine.  --pictures keeps what the browser painted, for people to look at.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
from selenium.webdriver.common.keys import Keys

from microtir.support import resources
from scripts.product.browser import PHONE, WIDE, Browser, browser

_TABS = ("memory", "cost", "layers", "code", "trades", "compare", "download")
_DIGITS = resources.example("digits/digits_int8.tflite").read_bytes()
_FLOATS = resources.example("digits/digits_float.tflite").read_bytes()
# As long as the name that it takes the place of.
_HOSTILE = _DIGITS.replace(b"probabilities", b"<b onclick=1>")


@contextmanager
def studio(folder: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Yield a server and its address."""
    command = [sys.executable, "-m", "microtir", "studio", "example:digits", "--no-browser"]
    environment = {
        **os.environ, "XDG_CACHE_HOME": str(folder / "cache"), "TMPDIR": str(folder),
        "HOME": str(folder),
    }  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline().split()[1]
        finally:
            process.terminate()


def opens(page: Browser, folder: Path) -> None:
    """Check that the model is planned, and that the token leaves the address bar and is kept.

    What is opened is the file that the command would give to the browser of the person.
    """
    page.size(WIDE)
    page.scheme("light")
    (start,) = folder.glob("microtir-studio-*/studio.html")
    page.driver.get(start.as_uri())
    page.until("there is a plan", lambda: page.get("#views").is_displayed())
    page.until("there is a range", lambda: page.get("#budget").is_enabled())
    assert "#" not in page.driver.current_url
    page.picture("light")
    page.driver.refresh()
    page.until("it is planned again", lambda: page.get("#budget").is_enabled())


def moves_the_slider(page: Browser) -> None:
    """Check that keys of the slider plan anew, and that the drawing has a limit that is broken."""
    before = page.text("#headline")
    page.get("#budget").send_keys(Keys.HOME)
    page.until("it does not fit", lambda: page.text("#verdict") == "does not fit")
    page.until("the limit is drawn", lambda: page.count("#memory line.exceeded") == 1)
    assert "--ram-budget" in page.text("#command")
    assert "more than the" in page.text("#plan-said")
    page.picture("too_small")
    page.click("#least")
    page.until("it fits", lambda: page.text("#verdict") == "fits")
    assert page.text("#headline") != before
    assert page.get("#budget").get_attribute("aria-valuetext") == page.text("#budget-text")
    page.get("#budget").send_keys(Keys.END)
    page.until("it is as before", lambda: page.text("#headline") == before)
    assert "--ram-budget" not in page.text("#command")


def works_by_keyboard(page: Browser) -> None:
    """Check that each stop of the Tab key is seen and has a name; arrows choose tabs and goals."""
    names = page.focus_order()
    for name in ("Choose a file", "RAM budget", "For", "balanced", "Memory", "Copy"):
        assert name in names, (name, names)
    page.run("document.getElementById('tab-memory').focus()")
    page.press(Keys.ARROW_RIGHT)
    assert page.get("#layers").is_displayed() and not page.get("#memory").is_displayed()
    page.press(Keys.END)
    assert page.get("#download").is_displayed()
    page.press(Keys.ARROW_RIGHT)
    assert page.get("#memory").is_displayed()
    page.run("document.getElementById('goal-balanced').focus()")
    page.press(Keys.ARROW_LEFT)
    page.until("flash is the goal", lambda: "--optimize flash" in page.text("#command"))
    page.press(Keys.ARROW_RIGHT)
    page.until("it is balanced", lambda: "--optimize balanced" in page.text("#command"))


def compares(page: Browser) -> None:
    """Check that a plan that was kept stands beside the one that is looked at."""
    page.click("#keep")
    page.click("label[for=goal-ram]")
    page.click("#tab-compare")
    page.until("there are figures", lambda: "workspace" in page.text("#compare"))
    page.until("it is done", lambda: page.count("#compare .progress p") == 0)
    assert "example:digits for cortex-m4, balanced" in page.text("#compare")
    assert "1,216" in page.text("#compare") and "736" in page.text("#compare")
    page.picture("compare")


def shows_code_and_trades(page: Browser) -> None:
    """Check that C stands beside TIR; a row of the trades leads to its plan."""
    page.click("#tab-code")
    page.until("there is code", lambda: page.count("#code pre") == 2)
    assert "void digits_int8_layer00_conv_2d(" in page.get("#code pre").text
    page.get("#layer").send_keys(Keys.END)
    page.until("it is the last", lambda: "layer10_softmax" in page.text("#code h3"))
    page.picture("code")
    page.click("#tab-trades")
    page.until("there is a picture", lambda: page.count("#trades circle") > 4)
    # The line that tells of progress stands above, and what is below moves up when it goes.
    page.until("it is done", lambda: page.count("#trades .progress p") == 0)
    page.picture("trades")
    page.click("#trades [aria-label='Show the plan of speed']")
    page.until("it is shown", lambda: "--optimize speed" in page.text("#command"))
    # The boards of this goal are known, so that nothing works in vain behind what follows.
    page.click("label[for=goal-balanced]")
    page.until("it is as before", lambda: "--optimize balanced" in page.text("#command"))


def remembers(page: Browser) -> None:
    """Check that a reload shows the same plan again, and that Back leads to the one before."""
    page.driver.refresh()
    page.until("the board's plan is there", lambda: "--board microbit" in page.text("#command"))
    page.until("there is a range", lambda: page.get("#budget").is_enabled())
    page.driver.back()
    page.until("it is the CPU's", lambda: "--target cortex-m4" in page.text("#command"))
    page.driver.forward()
    page.until("it is the board's", lambda: "--board microbit" in page.text("#command"))


def chooses_a_board(page: Browser) -> None:
    """Check that rows come while CPUs are planned, and that one leads to the board's plan."""
    page.click("#tab-memory")
    page.click("label[for=goal-balanced]")
    page.until("rows came", lambda: page.count("[data-board=microbit]") == 1)
    page.run("document.querySelector('[data-board=microbit]').dataset.seen = 1")
    page.get("#filter").send_keys("micro")
    assert page.get("[data-board=microbit]").is_displayed()
    page.click("[data-board=microbit]")
    page.until("it is planned", lambda: "--board microbit" in page.text("#command"))
    page.until("it fits", lambda: page.text("#verdict") == "fits")
    assert page.get("[data-board=microbit]").get_attribute("aria-pressed") == "true"
    page.until("all rows came", lambda: "fits" in page.text("#boards-title"))
    assert page.count("[data-seen]") == 1, "a row was replaced while others came"
    assert "micro:bit" in page.text("[data-board=microbit]")
    page.get("#filter").clear()
    page.get("#filter").send_keys("cortex-m0", Keys.ARROW_DOWN)
    shown = page.run("return document.activeElement.dataset.board")
    page.press(Keys.ARROW_DOWN)
    assert shown not in (None, page.run("return document.activeElement.dataset.board"))
    assert page.count("#boards-table button[tabindex='0']") == 1
    page.get("#filter").clear()
    page.get("#filter").send_keys(" ", Keys.BACKSPACE)
    page.picture("boards")


def downloads(page: Browser, folder: Path) -> None:
    """Check that sources, a project, a package and the report arrive whole."""
    page.click("#tab-download")
    for kind, name in (
        ("sources", "digits_int8.zip"),
        ("project", "digits_int8_microbit.zip"),
        ("package", "digits_int8_arduino.zip"),
        ("report", "digits_int8.html"),
    ):
        page.click(f"[data-kind={kind}]")
        page.until(f"{name} is there", lambda name=name: (folder / name).is_file())  # type: ignore[misc]
    time.sleep(0.2)
    with zipfile.ZipFile(folder / "digits_int8.zip") as archive:
        assert "digits_int8.c" in archive.namelist() and archive.testzip() is None
    assert "Memory of digits_int8.tflite" in (folder / "digits_int8.html").read_text("utf-8")


def refuses_bad_files(page: Browser, folder: Path) -> None:
    """Check that what is wrong is said beside the file, with the fix; what was open stays."""
    bad = {
        "net.h5": (b"\x89HDF\r\n\x1a\n", "the HDF5 file is damaged"),
        "cut.tflite": (_DIGITS[:5000], "outside the file's 5000 bytes"),
        "empty.tflite": (b"", "the file is empty"),
        "<img src=x>.onnx": (b"\x08\x07\x12\x00!", "this is not an ONNX model"),
    }
    for name, (content, what) in bad.items():
        (folder / name).write_bytes(content)
        page.get("#file").send_keys(str(folder / name))
        page.until(name, lambda what=what: what in page.text("#model-said [role=alert]"))  # type: ignore[misc]
    page.picture("bad_file")
    page.click("#model-said .close")
    assert page.text("#model-said") == ""
    assert page.get("#views").is_displayed()


def quantises(page: Browser, folder: Path, taken: Path) -> None:
    """Check that samples make a float model one of integers, which is a model as any other."""
    with np.load(resources.example("digits/digits_test.npz")) as arrays:
        images = (arrays["inputs"][:100].astype(np.float32) + 128) * np.float32(0.00392157)
        np.savez(folder / "samples.npz", image=images, labels=arrays["labels"][:100])
    np.savez(folder / "other.npz", image=images.transpose(0, 1, 4, 2, 3))
    (folder / "digits_float.tflite").write_bytes(_FLOATS)
    assert not page.get("#tab-cost").is_displayed() and not page.get("#quantise").is_enabled()
    page.get("#file").send_keys(str(folder / "digits_float.tflite"))
    page.until("it is planned", lambda: "digits_float.tflite" in page.text("#command"))
    page.get("#file").send_keys(str(folder / "other.npz"))
    page.until(
        "it is refused", lambda: "channels first" in page.text("#quantise-said [role=alert]")
    )
    page.picture("bad_samples")
    page.get("#file").send_keys(str(folder / "samples.npz"))
    page.until("it is planned", lambda: "--quantise samples.npz" in page.text("#command"))
    page.until("it is shown", lambda: page.get("#cost").is_displayed())
    assert "accuracy in integers" in page.text("#cost") and "worst" in page.text("#cost")
    assert page.count("#quantise-said [role=alert]") == 0
    page.get("#width").send_keys("16x8")
    page.click("#quantise")
    page.until("it is of 16 bits", lambda: "--16x8" in page.text("#command"))
    page.until("it is shown", lambda: "11 16x8" in page.text("#cost"))
    page.picture("cost")
    page.click("#tab-download")
    page.click("[data-kind=tflite]")
    made = taken / "digits_float_16x8.tflite"
    page.until("it is there", made.is_file)
    page.click("#tab-memory")
    page.driver.refresh()
    page.until("it is shown again", lambda: page.get("#tab-cost").is_displayed())
    page.until("it is planned again", lambda: page.get("#budget").is_enabled())
    assert page.text("#samples") == "Samples: samples.npz" and page.get("#quantise").is_enabled()


def shows_hostile_names_as_text(page: Browser, folder: Path) -> None:
    """Check that a model's names are text everywhere, and make no element."""
    (folder / "hostile.tflite").write_bytes(_HOSTILE)
    page.get("#file").send_keys(str(folder / "hostile.tflite"))
    page.until("it is planned", lambda: "hostile.tflite" in page.text("#command"))
    page.click("#tab-layers")
    page.until("its name is shown", lambda: "<b onclick=1>" in page.run(
        "return document.querySelector('#layers').textContent"))  # fmt: skip
    page.click("#tab-code")
    page.until("it has code", lambda: "hostile" in page.text("#code pre"))
    assert page.count("[onclick]") == 0
    assert not page.get("#tab-cost").is_displayed()


def fits_a_phone(page: Browser) -> None:
    """Check that on 360 pixels nothing is cut or scrolls sideways, in each view."""
    page.size(PHONE)
    for tab in _TABS:
        page.click(f"#tab-{tab}")
        page.until("it is there", lambda: page.count("#views .progress p") == 0)
        assert page.cut() == [], (tab, page.cut())
        page.run("document.getElementById('views').scrollIntoView()")
        page.picture(f"phone_{tab}")
    page.run("scrollTo(0, 0)")
    page.picture("phone")
    page.size(WIDE)


def can_be_read(page: Browser) -> None:
    """Check that in light and in dark every text has the contrast that WCAG 2 AA asks for."""
    for scheme in ("light", "dark"):
        page.scheme(scheme)
        for tab in _TABS:
            page.click(f"#tab-{tab}")
            page.until("it is there", lambda: page.count("#views .progress p") == 0)
            assert page.faint() == [], (scheme, tab, page.faint())
        page.click("#tab-memory")
        page.picture(scheme)
    assert page.run("return getComputedStyle(document.body).backgroundColor") == "rgb(21, 24, 28)"
    page.scheme("light")


def asks_for_the_address(page: Browser, address: str) -> None:
    """Check that without the token the page says what to do, and shows nothing else."""
    with page.another_tab():
        page.driver.get(address.partition("#")[0])
        page.until("it says so", lambda: "the terminal shows" in page.text("#shut"))
        assert not page.get("#main").is_displayed()
        assert any("403" in complaint for complaint in page.complaints())


def complains_of_nothing(page: Browser) -> None:
    """Check that the browser wrote nothing into its console: no error, nothing that was blocked."""
    complaints = page.complaints()
    assert complaints == [], complaints


def tells_that_the_server_has_gone(page: Browser, server: subprocess.Popen[str]) -> None:
    """Check that a page that is left open says that nobody answers."""
    server.terminate()
    assert server.wait(20) == 0
    page.click("label[for=goal-flash]")
    page.until("it says so", lambda: "the server does not answer" in page.text("#plan-said"))


def main() -> int:
    """Run all checks; the first that fails ends it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pictures", type=Path)
    pictures: Path | None = parser.parse_args().pictures
    begun = time.monotonic()
    # The server and the browser end with it, also where another check fails beside it.
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(1))
    with tempfile.TemporaryDirectory() as scratch:
        folder, taken = Path(scratch), Path(scratch) / "downloads"
        taken.mkdir()
        with studio(folder) as (server, address), browser(taken, pictures) as page:
            for check in (
                partial(opens, page, folder),
                partial(moves_the_slider, page),
                partial(works_by_keyboard, page),
                partial(compares, page),
                partial(chooses_a_board, page),
                partial(shows_code_and_trades, page),
                partial(remembers, page),
                partial(downloads, page, taken),
                partial(refuses_bad_files, page, folder),
                partial(quantises, page, folder, taken),
                partial(can_be_read, page),
                partial(fits_a_phone, page),
                partial(shows_hostile_names_as_text, page, folder),
                partial(complains_of_nothing, page),
                partial(asks_for_the_address, page, address),
                partial(tells_that_the_server_has_gone, page, server),
            ):
                check()
                done = time.monotonic() - begun
                print(f"  {done:5.1f} s  {check.func.__name__.replace('_', ' ')}", flush=True)
    print(f"the page of the studio: all is well, in {time.monotonic() - begun:.0f} seconds")
    return 0


if __name__ == "__main__":
    sys.exit(main())
