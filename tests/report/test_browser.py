"""The page in a real browser: what it paints, and what the script does when one points at a box."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from microtir.report.geometry import draw
from microtir.report.html import to_html
from tests.support.png import Pixels, read_png
from tests.support.report_facts import pool, report

_SIZE = (1240, 1200)
_COLOURS = {
    0: {"page": (251, 251, 250), "ring": (99, 201, 180), "input": (163, 171, 179)},
    1: {"page": (21, 24, 28), "ring": (99, 201, 180), "input": (163, 171, 179)},
}
# What a person does, and what the page then shows, as text that `--dump-dom` prints.
_POINTING = """<script>
var box = document.querySelector('g.box[data-buffer="ring_0"]');
box.dispatchEvent(new PointerEvent("pointerenter"));
box.dispatchEvent(new PointerEvent("pointermove", {clientX: 200, clientY: 300}));
document.body.dataset.shown = document.getElementById("tip").textContent;
document.body.dataset.marked = document.querySelectorAll(".same").length;
box.dispatchEvent(new PointerEvent("pointerleave"));
document.body.dataset.hidden = document.getElementById("tip").hidden;
document.body.dataset.titles = document.querySelectorAll("svg title").length;
</script></body>"""

_READING = """<script>
var row = document.querySelector("table.layers tbody tr.tip");
row.dispatchEvent(new PointerEvent("pointermove", {clientX: 200, clientY: 300}));
document.body.dataset.shown = document.getElementById("tip").textContent;
document.body.dataset.titled = row.hasAttribute("title");
document.body.dataset.rows = document.querySelectorAll("table.layers tr.tip").length;
</script></body>"""

_SORTING = """<script>
function order(column) {
  var head = document.querySelectorAll("table.layers th")[column];
  head.click();
  return Array.from(document.querySelectorAll("table.layers tbody tr")).map(function (row) {
    return row.cells[0].textContent;
  }).join(" ") + " " + head.getAttribute("aria-sort");
}
document.body.dataset.numbers = order(5);
document.body.dataset.words = order(1);
document.body.dataset.turned = order(1);
var rows = document.querySelectorAll("table.layers tr");
document.body.dataset.last = rows[rows.length - 1].cells[1].textContent;
</script></body>"""


def run(chromium: str, folder: Path, page: str, *options: str) -> str:
    """Open a page without a screen and without a network; returns what the browser prints."""
    (folder / "page.html").write_text(page, encoding="utf-8")
    done = subprocess.run(
        [
            chromium, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
            "--disable-background-networking", "--disable-dev-shm-usage", "--no-first-run",
            "--proxy-server=127.0.0.1:9", f"--user-data-dir={folder / 'profile'}",
            f"--window-size={_SIZE[0]},{_SIZE[1]}", *options, (folder / "page.html").as_uri(),
        ],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def covered(picture: Pixels, colour: tuple[int, int, int]) -> int:
    """How many pixels are of a colour, but for rounding."""
    near = np.abs(picture.astype(np.int64) - np.array(colour)) <= 2
    return int(near.all(axis=2).sum())


@pytest.mark.parametrize("scheme", [0, 1])
def test_the_picture_shows_the_map(chromium: str, tmp_path: Path, scheme: int) -> None:
    """In light and in dark the boxes cover as much as the drawing says, in the kinds' colours."""
    file = tmp_path / "page.png"
    options = (f"--screenshot={file}", f"--blink-settings=preferredColorScheme={1 - scheme}")
    run(chromium, tmp_path, to_html(report()), *options)
    picture = read_png(file)
    assert picture.shape == (_SIZE[1], _SIZE[0], 3)
    colours = _COLOURS[scheme]
    assert tuple(picture[2, 2]) == colours["page"]
    drawing = draw(report(), pool())
    for kind, tinted in (("ring", float(drawing.peak.width)), ("input", 0.0)):
        (box,) = [b for b in (*drawing.boxes, *drawing.lanes) if b.kind == kind]
        # The peak tints its own column, and names are written on boxes.
        area = (float(box.width) - tinted) * float(box.height)
        assert 0.8 * area <= covered(picture, colours[kind]) <= area + 300, kind


def test_pointing_at_a_box(chromium: str, tmp_path: Path) -> None:
    """The script shows what the box is, marks it and its row of the table, and hides it again."""
    page = to_html(report()).replace("</body>", _POINTING)
    dom = run(chromium, tmp_path, page, "--dump-dom")
    (body,) = re.findall(r"<body([^>]*)>", dom)
    assert "ring_0: ring" in body and "30 bytes at offset 0" in body
    assert 'data-marked="3"' in body  # the box, its row at the peak, its row of the buffers
    assert 'data-hidden="true"' in body
    assert 'data-titles="0"' in body


def test_pointing_at_a_layer(chromium: str, tmp_path: Path) -> None:
    """Its row says why it has its kernel, and what was against the others."""
    page = to_html(report()).replace("</body>", _READING)
    (body,) = re.findall(r"<body([^>]*)>", run(chromium, tmp_path, page, "--dump-dom"))
    assert "0 net/conv_2d\ndirect (16,000 instructions, 32,000 cycles): the fastest of 2\n" in body
    assert "not blocked (18,000 instructions, 19,000 cycles): 2,000 instructions more\n" in body
    assert "not gemm, accumulate: computes other types" in body
    assert 'data-titled="false"' in body
    assert 'data-rows="4"' in body


def test_sorting_by_a_column(chromium: str, tmp_path: Path) -> None:
    """A click sorts numbers from the largest, words from the first; another turns it round."""
    dom = run(chromium, tmp_path, to_html(report()).replace("</body>", _SORTING), "--dump-dom")
    (body,) = re.findall(r"<body([^>]*)>", dom)
    assert 'data-numbers="0 3 1 2 descending"' in body
    assert 'data-words="0 3 1 2 ascending"' in body
    assert 'data-turned="2 1 3 0 descending"' in body
    assert 'data-last="in all"' in body
