"""The notes of a release: what the list of changes says of its version.

    python -m scripts.release.notes v0.2.0

Status 1 if the tag is of another version than the package, or the list does not have it: such a
tag would publish something else than it says.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def notes(tag: str, version: str, changes: str) -> str:
    """Return the section of a version; ValueError if the tag, the version and the list differ."""
    if tag != f"v{version}":
        raise ValueError(f"the tag {tag} is not v{version}, which version.py says")
    sections = re.split(r"^## ", changes, flags=re.MULTILINE)[1:]
    for section in sections:
        title, _, text = section.partition("\n")
        if title.split()[:1] == [version]:
            return text.strip() + "\n"
    raise ValueError(f"CHANGELOG.md has no section '## {version}': 'Unreleased' is to be named so")


def _version() -> str:
    text = (ROOT / "generator" / "microtir" / "version.py").read_text("utf-8")
    found = re.search(r'__version__ = "([^"]+)"', text)
    assert found is not None
    return found[1]


if __name__ == "__main__":
    try:
        sys.stdout.write(notes(sys.argv[1], _version(), (ROOT / "CHANGELOG.md").read_text("utf-8")))
    except ValueError as error:
        sys.exit(f"release: {error}")
