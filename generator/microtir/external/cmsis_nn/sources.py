"""The files of a CMSIS-NN folder, and which of them a function needs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from microtir.errors import ToolError
from microtir.tir.ir import ExternSource

FOLDER = "cmsis_nn"
"""Folder of the copies beside the generated sources: headers and C files together, so that no
compiler needs to be told where to look."""

_HEADER = "arm_nnfunctions.h"
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_NAME = re.compile(r"\barm_\w+")
# A definition: a name in a line that starts with a type, and arguments up to a brace.
_DEFINITION = re.compile(r"^[A-Za-z_][\w \t\*]*?\b(arm_\w+)\s*\([^;{}]*\)\s*\{", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Sources:
    """All C files that matter: their text, what each defines and what it uses."""

    headers: tuple[ExternSource, ...]
    files: Mapping[str, ExternSource]  # by name
    uses: Mapping[str, frozenset[str]]  # names in a file
    homes: Mapping[str, str]  # the file that defines a function

    def has(self, function: str) -> bool:
        """Return whether the library defines a function; older versions have fewer."""
        return function in self.homes

    def needed(self, functions: Iterable[str]) -> tuple[ExternSource, ...]:
        """Return the headers, and the files that define functions and what these call."""
        pending = [self.homes[name] for name in functions if name in self.homes]
        files: set[str] = set()
        while pending:
            file = pending.pop()
            if file not in files:
                files.add(file)
                pending += [self.homes[n] for n in self.uses[file] if n in self.homes]
        return (*self.headers, *(self.files[file] for file in sorted(files)))


def read_sources(path: str) -> Sources:
    """Read a folder.

    Raises:
        ToolError: it is not there, cannot be read, or is not one of CMSIS-NN.
    """
    root = Path(path)
    if not (root / "Include" / _HEADER).is_file() or not (root / "Source").is_dir():
        raise ToolError(
            "is not a folder of CMSIS-NN" if root.is_dir() else "there is no such folder",
            where=f"external: cmsis-nn={path}",
            legal=f"a folder with Include/{_HEADER} and Source",
            fix="get CMSIS-NN from Arm, and name its folder",
        )
    include = root / "Include"
    headers = tuple(
        ExternSource(f"{FOLDER}/{file.relative_to(include).as_posix()}", _text(file))
        for file in sorted(include.rglob("*.h"))
    )
    files: dict[str, ExternSource] = {}
    uses: dict[str, frozenset[str]] = {}
    homes: dict[str, str] = {}
    for file in sorted((root / "Source").rglob("*.c")):
        text = _text(file)
        files[file.name] = ExternSource(f"{FOLDER}/{file.name}", text)
        code = _COMMENT.sub(" ", text)
        uses[file.name] = frozenset(_NAME.findall(code))
        for function in _DEFINITION.findall(code):
            homes.setdefault(function, file.name)
    return Sources(headers, files, uses, homes)


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ToolError(f"cannot be read: {reason}", where=str(file)) from None
