"""Inputs of a model that begin a run with the value that an output had at the end of the last."""

from __future__ import annotations

import re
from dataclasses import dataclass

ANYTHING = "*"


@dataclass(frozen=True, slots=True)
class StatePair:
    """An input and the output that is its next value; a `*` in both stands for the same text."""

    input: str
    output: str

    def bound(self, names: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
        """Return the inputs among these names that the pair means, each with its output."""
        before, star, behind = self.input.partition(ANYTHING)
        pattern = re.escape(before) + ("(.+)" if star else "()") + re.escape(behind)
        matches = ((name, re.fullmatch(pattern, name)) for name in names)
        return tuple((name, self.output.replace(ANYTHING, m[1])) for name, m in matches if m)


def states_problem(text: str) -> str:
    """Return what is wrong with a list of pairs, or an empty text."""
    if not text:
        return ""
    parts = [part.strip() for part in text.split(",")]
    for part in parts:
        sides = [side.strip() for side in part.split("=")]
        if len(sides) != 2 or not all(sides):
            return f"contains '{part}', which is not INPUT=OUTPUT"
        if [side.count(ANYTHING) for side in sides] not in ([0, 0], [1, 1]):
            return f"contains '{part}', which does not have one * on each side"
    repeated = [part for part in parts if parts.count(part) > 1]
    return f"contains '{repeated[0]}' twice" if repeated else ""


def states(text: str) -> tuple[StatePair, ...]:
    """Return the pairs of a list that has no problem."""
    pairs = (part.split("=") for part in text.split(",")) if text else ()
    return tuple(StatePair(first.strip(), second.strip()) for first, second in pairs)
