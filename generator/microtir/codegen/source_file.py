"""Generated files, in memory."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SourceFile:
    """`path` is relative, with forward slashes; `text` has single newlines as line ends."""

    path: str
    text: str

    @property
    def content(self) -> bytes:
        """The bytes of the file."""
        return self.text.encode()


@dataclass(frozen=True, slots=True)
class DataFile:
    """A generated file that is not text; `path` as for a SourceFile."""

    path: str
    content: bytes
