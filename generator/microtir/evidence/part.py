"""Defines a part of the evidence: its files, what they show, and what that rests on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the folder.

    Args:
        name: by which `--without` names it.
        files: contents by path below the folder.
        shown: the names of the files as the index lists them.
        shows: what they show, a sentence in plain words.
        rests_on: what has to be trusted for that.
        result: what came of it, in a few words.
        holds: whether it shows what it is for.
    """

    name: str
    files: Mapping[str, bytes]
    shown: str
    shows: str
    rests_on: str
    result: str
    holds: bool = True


@dataclass(frozen=True, slots=True)
class Evidence:
    """The whole folder: contents by path, and the parts that they came from."""

    files: Mapping[str, bytes]
    parts: tuple[Part, ...]

    @property
    def holds(self) -> bool:
        """Return whether every part shows what it is for."""
        return all(part.holds for part in self.parts)
