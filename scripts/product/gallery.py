"""A hook of mkdocs: what docs/gallery.md shows is compiled while the site is built.

So no figure, picture or report of it can be older than the compiler.  The networks are those of
`scripts.models.shapes` and the example; all that is made of them is in the site alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from microtir import CompilationConfig
from microtir.frontend import read_model
from microtir.report.collect import describe
from microtir.report.data import Report
from microtir.report.geometry import draw
from microtir.report.html import to_html
from microtir.report.summary import headline
from microtir.support import resources
from microtir.support.names import module_name_from
from scripts.models.shapes import SHAPES
from scripts.product.picture import map_of

PAGE = "gallery.md"
PLACE = "<!-- what is shown -->"
"""The line of the page in whose place the networks stand on the site."""

_FOLDER = "gallery"
_SMALL = 'width="480" height="240" preserveAspectRatio="none"'
_WORDS = re.compile(r"<(text|title)\b.*?</\1>\n?", re.DOTALL)
_EXAMPLE = "digits"


@dataclass(frozen=True, slots=True)
class Exhibit:
    """A network, by its name in `SHAPES` or that of the example, and the CPU it is compiled for."""

    name: str
    cpu: str


# Small ones: each takes a second or a few to compile.
EXHIBITS = (
    Exhibit(_EXAMPLE, "cortex-m4"),
    Exhibit("perceptron", "atmega328p"),
    Exhibit("autoencoder-128", "cortex-m0plus"),
    Exhibit("motion-1d", "cortex-m33"),
    Exhibit("ds-cnn-s", "esp32c3"),
    Exhibit("keywords-streamed", "cortex-m4"),
    Exhibit("yolo-96", "cortex-m55"),
    Exhibit("u-net-64", "cortex-m7"),
)


@dataclass(frozen=True, slots=True)
class Shown:
    """An exhibit with what was made of it."""

    exhibit: Exhibit
    report: Report

    @property
    def page(self) -> str:
        """Return the whole report."""
        return to_html(self.report)

    @property
    def picture(self) -> str:
        """Return the memory map without words, in the size that all of them have."""
        fullest = max(self.report.pools, key=lambda pool: pool.size)
        area = draw(self.report, fullest)
        left, top = float(area.left), float(area.top)
        width, height = float(area.right) - left, float(area.bottom) - top
        of_area = f'{_SMALL} viewBox="{left:g} {top:g} {width:g} {height:g}"'
        drawn = _WORDS.sub("", map_of(self.page))
        return re.sub(r'width="[^"]*" height="[^"]*" viewBox="[^"]*"', of_area, drawn, count=1)

    @property
    def card(self) -> str:
        """Return what the page of the gallery says of it."""
        name, cpu = self.exhibit.name, self.exhibit.cpu
        what = "the example" if name == _EXAMPLE else SHAPES[name][0]
        link = f'<a href="{_FOLDER}/{name}.html">'
        seen = f"Memory map of {name} for {cpu}"
        figures = "".join(
            f"<li><strong>{escape(figure)}</strong> {escape(words)}</li>\n"
            for figure, words in headline(self.report)
        )
        return (
            f'<li>\n<p>{link}<img src="{_FOLDER}/{name}.svg" alt="{escape(seen)}"/></a></p>\n'
            f"<p>{link}<strong>{escape(name)}</strong></a>: {escape(what)}; "
            f"for <code>{escape(cpu)}</code></p>\n<ul>\n{figures}</ul>\n</li>\n"
        )


def shown(exhibit: Exhibit) -> Shown:
    """Compile a network as `microtir report --target CPU` does."""
    with TemporaryDirectory() as folder:
        if exhibit.name == _EXAMPLE:
            file = resources.example("digits/digits_int8.tflite")
        else:
            file = Path(folder) / f"{exhibit.name}.tflite"
            file.write_bytes(SHAPES[exhibit.name][1]())
        config = CompilationConfig(targets=exhibit.cpu, module_name=module_name_from(file.stem))
        return Shown(exhibit, describe(read_model(file).with_configuration(config)))


@cache
def everything() -> tuple[Shown, ...]:
    """Return all that is shown, made once however often the site is built."""
    return tuple(map(shown, EXHIBITS))


def on_files(files: Any, config: Any) -> Any:
    """Add reports and pictures to the files of the site."""
    from mkdocs.structure.files import File

    for one in everything():
        for suffix, content in (("html", one.page), ("svg", one.picture)):
            place = f"{_FOLDER}/{one.exhibit.name}.{suffix}"
            files.append(File.generated(config, place, content=content))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Return the text of the gallery's page with what is shown; others stay as they are."""
    if page.file.src_uri != PAGE:
        return markdown
    cards = "".join(one.card for one in everything())
    return markdown.replace(PLACE, f'<div class="grid cards">\n<ul>\n{cards}</ul>\n</div>')
