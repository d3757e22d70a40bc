"""Lays out lines of C: width, indentation, comments, columns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

from microtir.support.encoding import c_comment

WIDTH = 100
INDENT = "    "
_CONTINUED = " \\"

# After a comma, a semicolon or the bracket of a call, or before a binary operator.
_BREAK = re.compile(
    r"[,;] |(?<=\w)\((?!\))|(?<=[^ ]) (?=(?:[-+*/%<>?:&|^]|<<|>>|<=|>=|==|!=|&&|\|\|) )"
)

_STRING = re.compile(r'"(?:\\.|[^"\\])*"')


def indent(lines: Iterable[str], levels: int = 1) -> list[str]:
    """Return the lines moved to the right; empty ones stay empty."""
    return [INDENT * levels + line if line else line for line in lines]


def wrap(line: str, width: int = WIDTH, steps: int = 2) -> list[str]:
    """Break a statement that is too wide where it binds least, and its parts again.

    What is assigned gets a line of its own where that is enough, and where the break would come
    before the sign.
    Continuation lines are indented by two steps, so that they differ from a nested block, and
    what continues them by one more each, up to the middle: there must be room for what is said.
    A directive of the preprocessor ends with its line, so that each of its lines but the last has
    a backslash.
    """
    if len(line) <= width:
        return [line]
    if line.lstrip().startswith("#"):
        *lines, last = _wrapped(line, width - len(_CONTINUED), steps)
        return [*(each + _CONTINUED for each in lines), last]
    return _wrapped(line, width, steps)


def _wrapped(line: str, width: int, steps: int) -> list[str]:
    """Return the same without a look at what the line is."""
    if len(line) <= width:
        return [line]
    start = len(line) - len(line.lstrip(" "))
    prefix = " " * max(start, min(start + len(INDENT) * steps, width // 2))
    pieces = _pieces(line)
    target, value = _assignment(line)
    is_torn = len(pieces[0]) < len(target)
    if value and len(target) <= width and (is_torn or len(prefix) + len(value) <= width):
        return [target, *_wrapped(prefix + value, width, 1)]
    if len(pieces) == 1:
        return [line]
    lines = [pieces[0].rstrip()]
    for piece in pieces[1:]:
        joined = _joined(lines[-1], piece)
        if len(joined) <= width:
            lines[-1] = joined
        else:
            lines.append(prefix + piece.strip())
    rest = [part for each in lines[1:] for part in _wrapped(each, width, 1)]
    return [*_wrapped(lines[0], width, steps), *rest]


def _assignment(line: str) -> tuple[str, str]:
    """Return what is assigned to with the sign, and what is assigned.

    Nothing if it is no assignment.
    """
    target, sign, _ = _masked(line).partition(" = ")
    if not sign or _depths(target)[-1]:
        return line, ""
    return f"{line[: len(target)]} =", line[len(target) + len(sign) :]


def _joined(line: str, piece: str) -> str:
    """Return a line with one more piece of the statement behind it."""
    gap = "" if line.endswith("(") else " "
    return f"{line}{gap}{piece.strip()}"


def _pieces(line: str) -> list[str]:
    """Return the line, cut at all the places that bind least; one piece if there is none."""
    start = len(line) - len(line.lstrip(" "))
    masked = _masked(line)
    depths = _depths(masked)
    bindings: dict[int, float] = {}
    for match in _BREAK.finditer(masked, start):
        position = match.start() + 1 if match.group() == " " else match.end()
        # An operator holds its operands together more than a comma does its neighbours.
        bindings[position] = depths[match.end()] + (0.5 if match.group() == " " else 0.0)
    bindings.pop(len(line), None)  # behind the last bracket there is nothing to move
    weakest = min(bindings.values(), default=0.0)
    cuts = [0, *(p for p, key in bindings.items() if key == weakest), len(line)]
    return [line[a:b] for a, b in pairwise(cuts)]


def _masked(line: str) -> str:
    """Return line with letters in place of what its strings hold.

    No line can break in one of them.
    """
    return _STRING.sub(lambda match: f'"{"x" * (len(match[0]) - 2)}"', line)


def _depths(line: str) -> list[int]:
    """Count the open brackets before each character, and behind the last one."""
    depth, depths = 0, [0]
    for character in line:
        depth += (character in "([{") - (character in ")]}")
        depths.append(depth)
    return depths


def block_comment(lines: Sequence[str]) -> list[str]:
    """Return a comment over whole lines; one line stays one line."""
    safe = [c_comment(line) for line in lines]
    if len(safe) == 1:
        return [f"/* {safe[0]} */"]
    first, *rest = safe
    return [f"/* {first}", *(f" * {line}".rstrip() for line in rest), " */"]


def columns(rows: Sequence[Sequence[str]], gap: str = " ") -> list[str]:
    """Return rows of cells as lines with aligned columns; the last column is not padded."""
    widths = [
        max((len(row[i]) for row in rows if i < len(row) - 1), default=0)
        for i in range(max(map(len, rows), default=0))
    ]
    return [
        gap.join([c.ljust(widths[i]) for i, c in enumerate(row[:-1])] + [row[-1]]).rstrip()
        for row in rows
    ]


def struct_text(name: str, rows: Sequence[tuple[str, ...]]) -> str:
    """Return a struct; each row is a member with its semicolon, then a comment if it has one."""
    return "\n".join([f"{name} {{", *indent(columns(rows)), "};"])
