"""Checks words that must be one of a few, and options that exclude each other."""

from __future__ import annotations

from collections.abc import Iterable

from microtir.errors import UsageError, nearest


def check_choice(what: str, word: str, legal: Iterable[str], where: str) -> None:
    """Refuse a word that is not one of the legal ones.

    Raises:
        UsageError: says the nearest.
    """
    values = list(legal)
    if word not in values:
        raise UsageError(
            f"there is no {what} '{word}': {nearest(word, values)}".removesuffix(": "),
            where=where,
            legal=", ".join(values),
        )


def check_exclusive(what: str, where: str, **options: object) -> None:
    """Refuse several of the options at once; one that is None is not given.

    Raises:
        UsageError: names the first two.
    """
    used = [f"--{name.replace('_', '-')}" for name, value in options.items() if value is not None]
    if len(used) > 1:
        raise UsageError(
            f"{used[0]} and {used[1]} name different {what}",
            where=where,
            fix="use only one of them",
        )
