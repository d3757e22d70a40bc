"""Holds the files of the page: read once, found by name in a table, so that no path is followed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from microtir.support import resources

PAGE = "index.html"

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
# What the studio shows of a report looks and answers as it does there.
_OF_REPORTS = {"report.css": "page.css", "enliven.js": "enliven.js"}


@dataclass(frozen=True, slots=True)
class Asset:
    """A file of the page."""

    type: str
    content: bytes


@cache
def assets() -> Mapping[str, Asset]:
    """Return the files by name; MicrotirError if the installation lacks them."""
    own = {path.name: path for path in sorted((resources.templates() / "studio").iterdir())}
    shared = {name: resources.templates() / "report" / file for name, file in _OF_REPORTS.items()}
    return {
        name: Asset(_TYPES[path.suffix], path.read_bytes()) for name, path in (own | shared).items()
    }
