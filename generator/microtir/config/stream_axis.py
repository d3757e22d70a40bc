"""The input and its axis along which a model is streamed."""

from __future__ import annotations

import re
from dataclasses import dataclass

_AXIS = re.compile(r"(?:(?P<name>.+)=)?(?P<axis>\d)")


@dataclass(frozen=True, slots=True)
class StreamAxis:
    """An axis of an input; an empty name stands for the only input."""

    name: str
    axis: int


def stream_axis_problem(text: str) -> str:
    """Return what is wrong with the text of an axis, or an empty text."""
    return "" if not text or _AXIS.fullmatch(text) else "is not an axis"


def stream_axis(text: str) -> StreamAxis | None:
    """Return the axis that a text without a problem names; None if it is empty."""
    match = _AXIS.fullmatch(text)
    return None if match is None else StreamAxis(match["name"] or "", int(match["axis"]))
