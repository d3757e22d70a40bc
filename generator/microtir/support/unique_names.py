"""Names that are given once."""

from __future__ import annotations

from collections.abc import Iterable


class UniqueNames:
    """Gives each thing a name of its own, as near as possible to the one that it asks for.

    Names that are `taken` are nobody's any more.
    """

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._last: dict[str, int] = {}

    def take(self, name: str) -> str:
        """Return the name, with a number if it is taken already."""
        unique = name
        while unique in self._taken:
            self._last[name] = self._last.get(name, 1) + 1
            unique = f"{name}_{self._last[name]}"
        self._taken.add(unique)
        return unique

    def copied(self) -> UniqueNames:
        """Return names of which the same are taken."""
        other = UniqueNames(self._taken)
        other._last = dict(self._last)
        return other
