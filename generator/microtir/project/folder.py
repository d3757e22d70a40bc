"""Writing a project's folder: completely or not at all."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from microtir.errors import OutputError


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
            fix="choose another folder, or replace this one with everything in it with force",
        )
    try:
        _replace(folder, files)
    except OSError as error:
        raise OutputError(
            f"cannot be written: {error.strerror or error}",
            where=str(folder),
            fix="choose a folder that you may write to, on a disk with room",
        ) from None


def _replace(folder: Path, files: Mapping[str, bytes]) -> None:
    target = folder.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as scratch:
        new, old = Path(scratch) / "new", Path(scratch) / "old"
        new.mkdir()
        for name, content in files.items():
            path = new / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        if target.exists():
            target.rename(old)
        try:
            new.rename(target)
        except OSError:
            if old.exists():
                old.rename(target)
            raise
