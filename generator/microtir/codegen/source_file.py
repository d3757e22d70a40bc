"""A generated file, in memory."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SourceFile:
    """`path` is relative, with forward slashes; `text` has single newlines as line ends."""

    path: str
    text: str
