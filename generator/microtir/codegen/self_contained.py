"""Writes generated headers into the C files that include them.

Build systems for microTVM may copy the C files of an archive and none of its headers: the project
server for Arduino does. An application still includes the headers, whose guards are the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from microtir.codegen.source_file import SourceFile

_INCLUDE = re.compile(r'^#include "([^"/]+)"\n', re.MULTILINE)


def self_contained(files: Sequence[SourceFile]) -> tuple[SourceFile, ...]:
    """Return the files of a program with its headers in its C files; folders are left alone."""
    headers = {file.path: file.text for file in files if file.path.endswith(".h")}
    return tuple(
        SourceFile(file.path, _expanded(file.text, headers, set()))
        if file.path.endswith(".c") and "/" not in file.path
        else file
        for file in files
    )


def _expanded(text: str, headers: Mapping[str, str], seen: set[str]) -> str:
    """Replace lines that include a header by what it says, the first time."""

    def header(match: re.Match[str]) -> str:
        name = match[1]
        if name not in headers:
            return match[0]
        if name in seen:
            return ""
        seen.add(name)
        return _expanded(headers[name], headers, seen)

    return _INCLUDE.sub(header, text)
