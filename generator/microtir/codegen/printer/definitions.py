"""Finds where a generated C file defines its functions, and names their section."""

from __future__ import annotations

import re

_DEFINITION = re.compile(r"^[^\s/*#][^(\n]*\b(\w+)\([^;{]*\)\n\{$", re.MULTILINE)


def definitions(source: str) -> dict[str, tuple[int, ...]]:
    """Return first and last line of the definition of each function, its comment left out.

    From 1 on.

    From the first to the last definition where there are several, for compilers or CPUs.
    """
    lines: dict[str, tuple[int, ...]] = {}
    line, counted = 1, 0
    for definition in _DEFINITION.finditer(source):
        end = source.index("\n}\n", definition.end()) + 1
        line += source.count("\n", counted, definition.start())
        counted = definition.start()
        first = lines.get(definition[1], (line, line))[0]
        lines[definition[1]] = first, line + source.count("\n", counted, end)
    return lines


def in_section(source: str, macro: str) -> str:
    """Return a file with the macro of the code's section in front of each function.

    Functions that begin with another macro of the program are left: that one names the section.
    """

    def placed(definition: re.Match[str]) -> str:
        text = definition[0]
        return text if text.startswith(f"{macro}_") else f"{macro}_CODE_SECTION\n{text}"

    return _DEFINITION.sub(placed, source)
