"""Adds the C runtime to an artifact."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from pathlib import Path

from microtir.codegen.source_file import SourceFile
from microtir.support import resources

RUNTIME_FOLDER = "runtime_crt"
_MICROTVM = "microtvm"  # below runtime_crt: headers of microTVM, for `compatibility`
_SUFFIXES = (".h", ".c", ".md", ".template")


class MicrotvmPart(Enum):
    """A part of microTVM's runtime that a program may need: a folder of runtime_crt/microtvm.

    Apart from its headers, functions by name ask an application for hooks to stop and for memory:
    only who uses them has to have these.
    """

    BASE = "base"
    FUNCTIONS = "functions"
    AOT = "aot"
    GRAPH = "graph"


def runtime_files(parts: Sequence[MicrotvmPart] = ()) -> tuple[SourceFile, ...]:
    """Return the runtime; what belongs to the interface of microTVM lies in the same folders."""
    root = resources.runtime_crt()
    files = {path: text for path, text in _files(root) if not path.startswith(f"{_MICROTVM}/")}
    for part in parts:
        files |= dict(_files(root / _MICROTVM / part.value))
    return tuple(SourceFile(f"{RUNTIME_FOLDER}/{path}", files[path]) for path in sorted(files))


def _files(root: Path) -> Iterator[tuple[str, str]]:
    for path in root.rglob("*"):
        if path.suffix in _SUFFIXES:
            yield path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")
