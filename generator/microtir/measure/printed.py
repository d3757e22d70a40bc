"""Count what a template prints: the instructions of a call, and the bytes of code.

The text of a native body is structured, in the words of GNU's assembler: `.rept` and `.irp` repeat
instructions, a branch back to a label ends a loop, and a branch to a label behind a loop leaves it.
How often a body runs is all that a kernel has to say; the rest follows from the text, so that a
template and its estimate cannot part.  What is so of Thumb alone, the bytes, stands in
`instruction_sets/arm/thumb.py`: no other template of assembly is counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import prod

from microtir.instruction_sets.arm import thumb
from microtir.support.code_templates import render

_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_LABEL = re.compile(r"(\d+):")
_TARGET = re.compile(r"\b(\d+)([bf])$")
_INNERMOST = re.compile(r"\.irp (\w+), *(.*)\n((?:(?!\.irp|\.rept)(?s:.))*?)\.endr")
_SUM = re.compile(r"(?<=#)\d+(?:[*+]\d+)+")


@dataclass(frozen=True, slots=True)
class _Line:
    """An instruction that is printed `times`, one after the other."""

    text: str
    times: int


@dataclass(frozen=True, slots=True)
class _Loop:
    """Lines from `first` on, which a branch back ends; behind `leaves` some turns go no further."""

    branch: str
    first: int
    last: int
    leaves: int | None


@dataclass(frozen=True, slots=True)
class Printed:
    """A native body, printed.

    Args:
        bytes: of its code.
        loops: what its loops are called: by the branches that end them.
    """

    bytes: int
    _lines: tuple[_Line, ...]
    _loops: tuple[_Loop, ...]

    @property
    def loops(self) -> tuple[str, ...]:
        return tuple(loop.branch for loop in self._loops)

    def instructions(self, turns: Mapping[str, int], calls: int = 1) -> int:
        """Return the instructions that calls execute.

        Args:
            turns: how often the body of each loop runs in all calls together, by its branch.
            calls: how many.
        """
        assert set(turns) >= set(self.loops), f"no iterations are stated of {self.loops}"
        return sum(
            line.times * self._runs(number, turns, calls) for number, line in enumerate(self._lines)
        )

    def _runs(self, number: int, turns: Mapping[str, int], calls: int) -> int:
        """Return how often a line runs: as often as the innermost loop around it."""
        around = [loop for loop in self._loops if loop.first <= number <= loop.last]
        if not around:
            return calls
        inner, *outer = sorted(around, key=lambda loop: loop.last - loop.first)
        runs = turns[inner.branch]
        if inner.leaves is None or number <= inner.leaves:
            return runs
        return runs - (turns[outer[0].branch] if outer else calls)


@lru_cache(maxsize=512)
def count(text: str) -> Printed:
    """Count what a text prints, which is structured as the module says."""
    plain = _spelled_out(_COMMENT.sub("", text))
    lines, labels = _read(filter(None, map(str.strip, plain.splitlines())))
    jumps = {n: m for n, line in enumerate(lines) if (m := _TARGET.search(line.text))}
    targets = {n: _place(m, n, labels) for n, m in jumps.items()}
    size = thumb.code_bytes([(line.text, line.times) for line in lines], targets)
    return Printed(size, tuple(lines), tuple(_loops(lines, targets)))


def printed(template: str, values: Mapping[str, object]) -> Printed:
    """Return the native body of a kernel as it is printed.

    Args:
        template: below templates/.
        values: what it is given.
    """
    return count(render(template, **values))


def number(values: Mapping[str, object], name: str) -> int:
    """Return a number that a template is given as a text; 0 where it is given none."""
    return int(str(values[name] or 0))


def _spelled_out(text: str) -> str:
    """Return a text with what `.irp` repeats, once for each value, and with sums computed.

    In a text that becomes a string of C the backslash in front of its variable is doubled.
    """

    def body(match: re.Match[str]) -> str:
        name, values, repeated = match.groups()
        spelling = re.compile(rf"\\+{name}\b")
        return "".join(spelling.sub(value.strip(), repeated) for value in values.split(","))

    while _INNERMOST.search(text):
        text = _INNERMOST.sub(body, text)
    return _SUM.sub(lambda m: str(sum(prod(map(int, t.split("*"))) for t in m[0].split("+"))), text)


def _read(text: Iterator[str]) -> tuple[list[_Line], list[tuple[str, int]]]:
    """Return the instructions, and labels with the number of the line behind each."""
    lines: list[_Line] = []
    labels: list[tuple[str, int]] = []
    repeats = [1]
    for line in text:
        if line.startswith(".rept"):
            repeats.append(repeats[-1] * int(line.split()[1]))
        elif line == ".endr":
            repeats.pop()
        elif label := _LABEL.fullmatch(line):
            labels.append((label[1], len(lines)))
        else:
            lines.append(_Line(line, repeats[-1]))
    return lines, labels


def _place(jump: re.Match[str], number: int, labels: list[tuple[str, int]]) -> int:
    """Return the number of the line that a jump leads to."""
    label, way = jump.groups()
    places = [place for name, place in labels if name == label]
    return max(p for p in places if p <= number) if way == "b" else min(
        p for p in places if p > number
    )  # fmt: skip


def _loops(lines: list[_Line], targets: Mapping[int, int]) -> Iterator[_Loop]:
    """Yield the loops, each with the line behind which turns leave it."""
    for last, first in targets.items():
        if first <= last:
            ahead = (n for n, target in targets.items() if first <= n < last < target)
            yield _Loop(lines[last].text, first, last, next(ahead, None))
