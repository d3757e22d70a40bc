"""The picture of README.md: the memory map of example:digits, as the report draws it.

    python -m scripts.product.picture

writes docs/memory-map.svg again.  A test compares it with what the compiler plans today.  As a hook
of mkdocs it puts the picture itself into the pages that show it, where the script of the report's
page answers to the pointer and to the keyboard.
"""

from __future__ import annotations

import re
from typing import Any

import microtir
from microtir import CompilationConfig
from microtir.report.collect import describe
from microtir.report.html import to_html
from microtir.support import resources
from scripts.product.pages import ROOT

PICTURE = ROOT / "docs" / "memory-map.svg"
SCRIPT = "report/enliven.js"
PLACE, STYLES = "assets/enliven.js", "assets/map.css"
"""Where the script and the styles of a map are on the site."""

LIVE = ("index.md", "report.md")
"""Pages of the site on which the picture answers."""

_IMAGE = re.compile(r'<p><img alt="([^"]*)" src="memory-map.svg" */?></p>')
_ROOT = re.compile(r":root \{(.*?)\}", re.DOTALL)
_RULE = re.compile(r"([^{}]+)(\{[^{}]*\})")
_SVG = '<svg xmlns="http://www.w3.org/2000/svg" '
# A page is light or dark as its reader chose, a picture in it as the system is: it has a ground.
_GROUND = "svg { background: var(--card); font-family: sans-serif; }"


def drawn() -> str:
    """Return the picture."""
    module = microtir.frontend.from_tflite(resources.example("digits/digits_int8.tflite"))
    return map_of(
        to_html(describe(module.with_configuration(CompilationConfig(targets="cortex-m4"))))
    )


def map_of(page: str) -> str:
    """Return the first map of a report's page as one file, light and dark."""
    svg = re.search(r'<svg class="map".*?</svg>', page, re.DOTALL)
    css = re.search(r"<style>(.*?)</style>", page, re.DOTALL)
    assert svg is not None and css is not None, "the report has a map"
    body = svg[0].replace("<svg ", _SVG, 1).removesuffix("</svg>")
    return f"{body}<style>{css[1].strip()}\n{_GROUND}</style>\n</svg>\n"


def on_files(files: Any, config: Any) -> Any:
    """Add the script and the styles of a map to the files of the site."""
    from mkdocs.structure.files import File

    script = (resources.templates() / SCRIPT).read_text("utf-8")
    for place, content in ((PLACE, script), (STYLES, styles(PICTURE.read_text("utf-8")))):
        files.append(File.generated(config, place, content=content))
    return files


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """Return a page with the picture itself in place of the image."""
    return _IMAGE.sub(_figure, html) if page.file.src_uri in LIVE else html


def _figure(image: re.Match[str]) -> str:
    svg, _, _ = PICTURE.read_text("utf-8").partition("<style>")
    svg = svg.replace('role="img"', 'role="group"').replace("<g class", '<g role="img" class')
    svg = re.sub('aria-label="[^"]*"', lambda _: f'aria-label="{image[1]}"', svg, count=1)
    return f'<figure class="live" data-search-exclude>\n{svg}</svg>\n</figure>'


def styles(picture: str) -> str:
    """Return the styles of a picture for a map in a page of the site, light and dark."""
    light, dark = _ROOT.findall(picture)
    rules = "".join(
        ", ".join(f".live {one}".replace(" svg", " svg.map") for one in selectors) + rule + "\n"
        for found, rule in _RULE.findall(picture.partition("<style>")[2])
        if (selectors := found.strip().split(", "))[0].startswith(("svg", "g.box"))
    )
    return f".live {{{light}}}\n[data-md-color-scheme=slate] .live {{{dark}}}\n{rules}"


if __name__ == "__main__":
    PICTURE.write_text(drawn(), "utf-8")
