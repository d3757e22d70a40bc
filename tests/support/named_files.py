"""Finds the files that generated texts speak of and that are not there."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from pathlib import Path, PurePosixPath

_NAME = re.compile(
    r"(?<![\w./<$}*-])[\w.-]+(?:/[\w.-]+)*"
    r"\.(?:c|h|cpp|ino|rs|cmake|mk|md|toml|yml|yaml|json|ini|conf|properties|pdsc|txt|ld)\b(?![\w/(])"
)
_TEXTS = (".md", ".c", ".h", ".cpp", ".ino", ".rs", ".txt", ".cmake", ".mk", ".toml", ".yml")


def missing_files(folder: Path, elsewhere: Collection[str]) -> list[str]:
    """Return the files that texts of a folder name, by the text, and that are not in it.

    A file is there if its path ends as the text names it.

    Args:
        folder: what was generated.
        elsewhere: names of files that the text says somebody else has.
    """
    paths = [path.relative_to(folder) for path in sorted(folder.rglob("*")) if path.is_file()]
    known = {tail for path in paths for tail in _tails(path)}
    return [
        f"{path.as_posix()}: {name}"
        for path in paths
        if path.suffix in _TEXTS
        for name in _NAME.findall((folder / path).read_text(encoding="utf-8"))
        if name not in known and PurePosixPath(name).name not in elsewhere
    ]


def _tails(path: Path) -> Iterator[str]:
    for first in range(len(path.parts)):
        yield "/".join(path.parts[first:])
