"""Names that are given once."""

from __future__ import annotations


class UniqueNames:
    """Gives each thing a name of its own, as near as possible to the one that it asks for."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
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
        other = UniqueNames()
        other._taken, other._last = set(self._taken), dict(self._last)
        return other
