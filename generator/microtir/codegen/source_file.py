"""Holds generated files in memory."""

from __future__ import annotations

from dataclasses import dataclass

from microtir.errors import UsageError
from microtir.support.texts import PATH, path_problem


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A generated text: `path` is relative, with forward slashes; lines end with a newline.

    Raises:
        UsageError: the path is none that every build system takes as it is.
    """

    path: str
    text: str

    def __post_init__(self) -> None:
        _check(self.path)

    @property
    def content(self) -> bytes:
        return self.text.encode()


@dataclass(frozen=True, slots=True)
class DataFile:
    """A generated file that is not text; `path` as for a SourceFile."""

    path: str
    content: bytes

    def __post_init__(self) -> None:
        _check(self.path)


def _check(path: str) -> None:
    if problem := path_problem(path):
        raise UsageError(
            f"{path!r} {problem}", where="a file's path", legal=PATH.meaning,
            fix="give the file another name",
        )  # fmt: skip
