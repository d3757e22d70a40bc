"""Writes a project's folder: completely or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from microtir.errors import OutputError, instead_of_replacing
from microtir.files import replace_folder


def write_folder(folder: Path, files: Mapping[str, bytes], *, force: bool) -> None:
    """Fill a folder beside the target and move it into place, which a crash cannot cut in half.

    Args:
        folder: must not exist, or be empty, unless `force` is given.
        files: contents by path below the folder.
        force: replace the folder as a whole; what was in it is lost.

    Raises:
        OutputError: the folder exists, or cannot be written.
    """
    if folder.exists() and not folder.is_dir():
        raise OutputError("is a file, not a folder", where=str(folder), fix="choose another name")
    if folder.is_dir() and any(folder.iterdir()) and not force:
        raise OutputError(
            "the folder exists and is not empty",
            where=str(folder),
            legal="a new or empty folder",
            fix=instead_of_replacing("folder"),
        )
    replace_folder(folder, files)
