"""Tensors of a model that the user wants as outputs besides its own."""

from __future__ import annotations


def more_outputs_problem(text: str) -> str:
    """Return what is wrong with a list of names, or an empty text."""
    names = [part.strip() for part in text.split(",")] if text else []
    if "" in names:
        return "contains an empty name"
    repeated = [name for name in names if names.count(name) > 1]
    return f"contains '{repeated[0]}' twice" if repeated else ""


def more_outputs(text: str) -> tuple[str, ...]:
    """Return the names of a list that has no problem."""
    return tuple(part.strip() for part in text.split(",")) if text else ()
