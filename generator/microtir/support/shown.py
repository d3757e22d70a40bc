"""Shows values that are refused, shortly."""

from __future__ import annotations


def shown(value: object) -> str:
    """Return a short repr of a rejected value."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):
        # Python prints no number of more than 4,300 digits, and nothing that is nested too deep.
        return f"{type(value).__name__} too long to be shown"
    return text if len(text) <= 80 else f"{text[:77]}..."
