"""Writing an artifact into a folder: whole or not at all, never over somebody else's files."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from microtir.codegen import METADATA_FILE, DataFile, SourceFile
from microtir.errors import OutputError
from microtir.files import cannot_write, replace_folder


def write_sources(target: Path, files: Iterable[SourceFile | DataFile], *, force: bool) -> Path:
    """Write generated files into a folder; one that microtir wrote before is replaced.

    Raises:
        OutputError: the folder holds files that are not microtir's, or cannot be written.
    """
    with cannot_write(target):
        _refuse_foreign(target, force)
    replace_folder(target, {file.path: file.content for file in files})
    return target


def _refuse_foreign(target: Path, force: bool) -> None:
    """Refuse to replace what microtir did not write."""
    if not target.exists():
        return
    if not target.is_dir():
        raise OutputError("is a file, not a folder", where=str(target), fix="choose another name")
    if force or not any(target.iterdir()) or _is_ours(target):
        return
    raise OutputError(
        "the folder holds files that microtir did not write",
        where=str(target),
        legal=f"a new or empty folder, or one with microtir's {METADATA_FILE} and nothing else",
        fix="choose another folder, or replace this one with force",
    )


def _is_ours(folder: Path) -> bool:
    """Whether every file of the folder is one that the last export wrote."""
    try:
        written = json.loads((folder / METADATA_FILE).read_text(encoding="utf-8"))["files"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return False
    found = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if not p.is_dir()}
    return isinstance(written, list) and found <= {str(name) for name in written}
