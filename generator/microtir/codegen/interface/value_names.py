"""Prints the names of an output's values: those of classes, where a model has no numbers for them.

They are a macro and no array, so that they take memory where an application wants them, and only if
it does.
"""

from __future__ import annotations

from collections.abc import Sequence

from microtir.codegen.printer.layout import WIDTH, block_comment
from microtir.support.encoding import c_string

_CONTINUED = " \\"


def name_lines(macro: str, names: Sequence[str]) -> list[str]:
    """Return macros of an array's initialiser and of its length, with a comment.

    Args:
        macro: what their names begin with, the output's.
        names: of the values 0, 1, 2 and so on.
    """
    comment = block_comment([
        "Each value is a place in an array of names, in UTF-8, for example:",
        f"static const char *const names[{macro}_NAMES_COUNT] = {macro}_NAMES;",
    ])  # fmt: skip
    filled = _filled([f"{c_string(name)}," for name in names])
    lines = [f"#define {macro}_NAMES {{", *(f"    {line}" for line in filled), "}"]
    return [
        *comment,
        f"#define {macro}_NAMES_COUNT {len(names)}",
        *(line + _CONTINUED for line in lines[:-1]),
        lines[-1],
    ]


def _filled(words: Sequence[str]) -> list[str]:
    """Return lines of as many words as there is room for; a long word has one of its own."""
    room = WIDTH - len("    ") - len(_CONTINUED)
    lines: list[str] = []
    for word in words:
        if lines and len(lines[-1]) + 1 + len(word) <= room:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines
