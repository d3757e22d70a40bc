"""Lines of C: width, indentation, comments, columns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

WIDTH = 100
INDENT = "    "

_BREAK = re.compile(r", |(?<=[^ ]) (?=(?:[-+*/%<>?:&|^]|<<|>>|<=|>=|==|!=|&&|\|\|) )")


def indent(lines: Iterable[str], levels: int = 1) -> list[str]:
    """The lines moved to the right; empty ones stay empty."""
    return [INDENT * levels + line if line else line for line in lines]


def wrap(line: str, width: int = WIDTH) -> list[str]:
    """Break a statement that is too wide, at the outermost operator or comma that helps.

    Continuation lines are indented by two steps, so that they differ from a nested block.
    """
    lines = []
    prefix = " " * (len(line) - len(line.lstrip(" "))) + INDENT * 2
    while len(line) > width:
        position = _break_position(line, width)
        if position is None:
            break
        lines.append(line[:position].rstrip())
        line = prefix + line[position:].lstrip()
    return [*lines, line]


def _break_position(line: str, width: int) -> int | None:
    """Index of the first character of the next line; None if no break makes the line shorter."""
    start = len(line) - len(line.lstrip(" "))
    depths = _depths(line)
    found = [m.end() if m.group() == ", " else m.start() + 1 for m in _BREAK.finditer(line)]
    # Below a third of the width a break would leave a stub.
    legal = [p for p in found if start + width // 3 < p <= width]
    if not legal:
        legal = [p for p in found if p > start + 2 * len(INDENT)][:1]
    return min(legal, key=lambda p: (depths[p], -p), default=None)


def _depths(line: str) -> list[int]:
    """Number of open brackets before each character."""
    depth, depths = 0, []
    for character in line:
        depths.append(depth)
        depth += (character in "([{") - (character in ")]}")
    return depths


def comment_text(text: str) -> str:
    """Text that can stand in a C comment: model files hold any characters.

    A comment sign inside a comment ends it or warns; other than ASCII breaks old compilers.
    """
    safe = text.encode("ascii", "backslashreplace").decode()
    safe = "".join(c if c.isprintable() else " " for c in safe)
    safe = re.sub(r"(?<=\*)(?=/)|(?<=/)(?=\*)", " ", safe)
    return safe.replace("??/", "?? /").rstrip()


def block_comment(lines: Sequence[str]) -> list[str]:
    """A comment over whole lines; one line stays one line."""
    safe = [comment_text(line) for line in lines]
    if len(safe) == 1:
        return [f"/* {safe[0]} */"]
    first, *rest = safe
    return [f"/* {first}", *(f" * {line}".rstrip() for line in rest), " */"]


def columns(rows: Sequence[Sequence[str]], gap: str = " ") -> list[str]:
    """Rows of cells as lines with aligned columns; the last column is not padded."""
    widths = [
        max((len(row[i]) for row in rows if i < len(row) - 1), default=0)
        for i in range(max(map(len, rows), default=0))
    ]
    return [
        gap.join([c.ljust(widths[i]) for i, c in enumerate(row[:-1])] + [row[-1]]).rstrip()
        for row in rows
    ]
