"""Names of tensors, short enough for messages."""

from __future__ import annotations

_BRIEF = 80


def short_name(name: str) -> str:
    """Return the first of the names that a fused operator carries, separated by semicolons."""
    return name.split(";", maxsplit=1)[0]


def brief(name: str) -> str:
    """Return a name for messages: names of hundreds of characters hide what is said about them."""
    short = short_name(name)
    return short if len(short) <= _BRIEF else f"{short[:_BRIEF]}..."
