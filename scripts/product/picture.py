"""The picture of README.md: the memory map of example:digits, as the report draws it.

    python -m scripts.product.picture

writes docs/memory-map.svg again.  A test compares it with what the compiler plans today.
"""

from __future__ import annotations

import re

import microtir
from microtir import CompilationConfig
from microtir.report.collect import describe
from microtir.report.html import to_html
from microtir.support import resources
from scripts.product.pages import ROOT

PICTURE = ROOT / "docs" / "memory-map.svg"
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
    tags = re.sub(r' (?:tabindex|data-buffer)="[^"]*"', "", svg[0])
    body = tags.replace("<svg ", _SVG, 1).removesuffix("</svg>")
    return f"{body}<style>{css[1].strip()}\n{_GROUND}</style>\n</svg>\n"


if __name__ == "__main__":
    PICTURE.write_text(drawn(), "utf-8")
