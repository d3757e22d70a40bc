"""Ranges of stored values that inputs of a model take, where the user declares less than all."""

from __future__ import annotations

import re
from dataclasses import dataclass

_RANGE = re.compile(r"(?:(?P<name>.+)=)?(?P<low>-?\d{1,3})\.\.(?P<high>-?\d{1,3})")
_LEAST, _MOST = -128, 127


@dataclass(frozen=True, slots=True)
class InputRange:
    """Inclusive bounds of the stored values of an int8 input; an empty name stands for each."""

    name: str
    low: int
    high: int


def input_ranges_problem(text: str) -> str:
    """Return what is wrong with a list of ranges, or an empty text."""
    seen: set[str] = set()
    for part in text.split(",") if text else ():
        match = _RANGE.fullmatch(part.strip())
        if match is None:
            return f"contains '{part.strip()}', which is not a range"
        low, high = int(match["low"]), int(match["high"])
        if not _LEAST <= low <= high <= _MOST:
            return f"contains {low}..{high}, which is not within the range of int8"
        if (match["name"] or "") in seen:
            return f"has two ranges for '{match['name']}'" if match["name"] else "has two ranges"
        seen.add(match["name"] or "")
    return ""


def input_ranges(text: str) -> tuple[InputRange, ...]:
    """Return the ranges of a list that has no problem."""
    matches = [_RANGE.fullmatch(part.strip()) for part in text.split(",")] if text else []
    return tuple(InputRange(m["name"] or "", int(m["low"]), int(m["high"])) for m in matches if m)
