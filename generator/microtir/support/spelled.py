"""Enums whose members are what users write."""

from __future__ import annotations

from enum import Enum


class Spelled(Enum):
    """An enum whose members print as users write them and whose repr evaluates to itself."""

    def __str__(self) -> str:
        return str(self.value)

    def __repr__(self) -> str:
        return f"{type(self).__name__}.{self.name}"
