"""Count what a template prints: the instructions of a call, and the bytes of code.

The text of a native body is structured: `.rept` repeats instructions, a branch back to a label ends
a loop, and a branch to a label behind a loop leaves it.  How often a body runs is all that a kernel
has to say; the rest follows from the text, so that a template and its estimate cannot part.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

from microtir.instruction_sets.arm.thumb import encoded_bytes
from microtir.support.code_templates import render

_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_LABEL = re.compile(r"(\d+):")
_TARGET = re.compile(r"\b(\d+)([bf])$")


@dataclass(frozen=True, slots=True)
class _Line:
    """An instruction that is printed `times`, one after the other; `in_it`: behind an IT."""

    text: str
    times: int
    in_it: bool


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
        assert set(turns) >= set(self.loops), f"no turns are stated of {self.loops}"
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
    plain = _COMMENT.sub("", text)
    lines, labels = _read(filter(None, map(str.strip, plain.splitlines())))
    jumps = {n: m for n, line in enumerate(lines) if (m := _TARGET.search(line.text))}
    targets = {n: _place(m, n, labels) for n, m in jumps.items()}
    return Printed(_bytes(lines, targets), tuple(lines), tuple(_loops(lines, targets)))


def printed(template: str, values: Mapping[str, object]) -> Printed:
    """Return the native body of a kernel as it is printed.

    Args:
        template: below templates/.
        values: what it is given.
    """
    return count(render(template, **values))


def _read(text: Iterator[str]) -> tuple[list[_Line], list[tuple[str, int]]]:
    """Return the instructions, and labels with the number of the line behind each."""
    lines: list[_Line] = []
    labels: list[tuple[str, int]] = []
    repeats, in_it = [1], 0
    for line in text:
        if line.startswith(".rept"):
            repeats.append(repeats[-1] * int(line.split()[1]))
        elif line == ".endr":
            repeats.pop()
        elif label := _LABEL.fullmatch(line):
            labels.append((label[1], len(lines)))
        else:
            lines.append(_Line(line, repeats[-1], in_it > 0))
            in_it = len(line.split()[0]) - 1 if line.startswith("it") else max(in_it - 1, 0)
    return lines, labels


def _place(jump: re.Match[str], number: int, labels: list[tuple[str, int]]) -> int:
    """Return the number of the line that a jump leads to."""
    label, way = jump.groups()
    places = [place for name, place in labels if name == label]
    return max(p for p in places if p <= number) if way == "b" else min(
        p for p in places if p > number
    )  # fmt: skip


def _bytes(lines: list[_Line], targets: Mapping[int, int]) -> int:
    """Return the bytes of all lines; those of a branch follow from how far it reaches."""
    sizes = [line.times * encoded_bytes(line.text, in_it=line.in_it) for line in lines]
    places = list(accumulate(sizes, initial=0))
    for number, target in targets.items():
        sizes[number] = encoded_bytes(lines[number].text, places[target] - places[number])
    return sum(sizes)


def _loops(lines: list[_Line], targets: Mapping[int, int]) -> Iterator[_Loop]:
    """Yield the loops, each with the line behind which turns leave it."""
    for last, first in targets.items():
        if first <= last:
            ahead = (n for n, target in targets.items() if first <= n < last < target)
            yield _Loop(lines[last].text, first, last, next(ahead, None))
