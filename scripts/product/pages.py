"""A hook of mkdocs: pages that lie outside of docs/, and the logo, are on the site, too.

In the repository README.md links to docs/boards.md, and docs/runtime.md to ../runtime_crt/MISRA.md;
both must work there. On the site docs/ is the root, so that links are written anew.
"""

from __future__ import annotations

import os
import posixpath
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
DOCS = "docs/"
OUTSIDE = {
    "README.md": "overview.md",
    "CHANGELOG.md": "changes.md",
    "CONTRIBUTING.md": "contributing.md",
    "examples/digits/README.md": "examples/digits.md",
    "examples/sentences/README.md": "examples/sentences.md",
    "examples/wine/README.md": "examples/wine.md",
    "runtime_crt/MISRA.md": "misra.md",
}
"""Pages outside of docs/, by their place in the repository, and where they are on the site."""

LOGO = "templates/studio/icon.svg"
_PLACES = {**OUTSIDE, LOGO: "logo.svg"}

_LINK = re.compile(r"(\]\()([^)#\s]+)((?:#[^)]*)?\))")


def on_files(files: Any, config: Any) -> Any:
    """Add the pages outside of docs/ and the logo to the files of the site."""
    from mkdocs.structure.files import File

    for source, place in _PLACES.items():
        files.append(File.generated(config, place, abs_src_path=str(ROOT / source)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Return the text of a page with the links that the site has.

    Decisions, which are history for the most part, come last in the answers of a search.
    """
    place: str = page.file.src_uri
    if place.startswith("decisions/"):
        page.meta["search"] = {"boost": 0.1}
    sources = {there: here for here, there in OUTSIDE.items()}
    return relinked(markdown, sources.get(place, DOCS + place))


def relinked(markdown: str, source: str) -> str:
    """Return the text of the page `source` of the repository with the links that the site has."""
    folder = posixpath.dirname(source)
    here = posixpath.dirname(_place(source))

    def there(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(folder, link[2]))
        if "://" in link[2] or not (target.startswith(DOCS) or target in _PLACES):
            return link[0]
        return link[1] + os.path.relpath(_place(target), here or ".").replace(os.sep, "/") + link[3]

    return _LINK.sub(there, markdown)


def _place(source: str) -> str:
    """Return where a page of the repository is on the site."""
    return _PLACES.get(source, source.removeprefix(DOCS))
