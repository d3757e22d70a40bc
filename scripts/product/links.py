"""What built pages load and link to: nothing of other hosts, and nothing that is not there.

    python -m scripts.product.links FOLDER

mkdocs checks the links that pages write. What a theme adds, a font or a script from somewhere else,
shows in the built pages only.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Attributes whose address is loaded without a click, by element; of a link that goes by its `rel`.
_LOADED = {
    "audio": "src", "embed": "src", "iframe": "src", "img": "src", "object": "data",
    "script": "src", "source": "src", "video": "src",
}  # fmt: skip
_NOT_LOADED = frozenset({"canonical", "next", "prev", "edit", "alternate"})
_IN_STYLES = re.compile(r"""(?:url\(\s*|@import\s+)["']?((?:https?:)?//[^"')\s]+)""")


@dataclass
class _Page(HTMLParser):
    """The addresses of one page, and the places in it that can be linked to."""

    loaded: list[str] = field(default_factory=list)
    linked: list[str] = field(default_factory=list)
    places: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.places |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.linked.append(given["href"])
        elif tag == "link" and not _NOT_LOADED & set(given.get("rel", "").split()):
            self.loaded.append(given.get("href", ""))
        elif tag in _LOADED and _LOADED[tag] in given:
            self.loaded.append(given[_LOADED[tag]])
        self.loaded += _IN_STYLES.findall(given.get("style", ""))


def problems(folder: Path) -> list[str]:
    """Return what is wrong with the pages and styles of a built site, a line for each."""
    pages = {path: _read(path) for path in sorted(folder.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        name = path.relative_to(folder).as_posix()
        found += [f"{name} loads {url}" for url in page.loaded if _is_elsewhere(url)]
        near = [url for url in (*page.loaded, *page.linked) if not _is_elsewhere(url)]
        for url in near:
            if not _leads_somewhere(url, path, folder, pages):
                found.append(f"{name} links to {url}, which is not there")
    for path in sorted(folder.rglob("*.css")):
        name = path.relative_to(folder).as_posix()
        found += [f"{name} loads {url}" for url in _IN_STYLES.findall(path.read_text("utf-8"))]
    return found


def _read(path: Path) -> _Page:
    page = _Page()
    page.feed(path.read_text("utf-8"))
    return page


def _is_elsewhere(url: str) -> bool:
    parts = urlsplit(url)
    return bool(parts.netloc) or parts.scheme in ("http", "https", "mailto")


def _leads_somewhere(url: str, path: Path, folder: Path, pages: dict[Path, _Page]) -> bool:
    parts = urlsplit(url)
    if parts.scheme == "data":
        return True
    base = folder if parts.path.startswith("/") else path.parent
    target = (base / unquote(parts.path).lstrip("/")).resolve() if parts.path else path
    if target.is_dir():
        target /= "index.html"
    if parts.fragment and target in pages:
        return unquote(parts.fragment) in pages[target].places
    return target.is_file()


if __name__ == "__main__":
    wrong = problems(Path(sys.argv[1]).resolve())
    print("\n".join(wrong) if wrong else f"{sys.argv[1]}: every page is whole by itself")
    sys.exit(bool(wrong))
