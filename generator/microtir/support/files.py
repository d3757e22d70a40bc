"""Writes the files that a user asked for: completely or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from microtir.errors import OutputError, instead_of_replacing
from microtir.support.scratch import put_in_place, scratch_beside

_NEW, _OLD = "new", "old"


def write_folder(folder: Path, files: Mapping[str, bytes], *, force: bool) -> None:
    """Fill a folder beside the target and move it into place, which a crash cannot cut in half.

    Args:
        folder: must not exist, or be empty, unless `force` is given.
        files: contents by path below the folder.
        force: replace the folder as a whole; what was in it is lost.

    Raises:
        OutputError: the folder exists, or cannot be written.
    """
    check_new_folder(folder, force=force)
    replace_folder(folder, files)


def check_new_folder(folder: Path, *, force: bool) -> None:
    """Refuse a folder that `write_folder` would refuse, before the work that fills it.

    Raises:
        OutputError: it is a file, or holds files and `force` is not given.
    """
    with cannot_write(folder):
        if folder.exists() and not folder.is_dir():
            raise OutputError(
                "is a file, not a folder", where=str(folder), fix="choose another name"
            )
        if folder.is_dir() and any(folder.iterdir()) and not force:
            raise OutputError(
                "the folder exists and is not empty",
                where=str(folder),
                legal="a new or empty folder",
                fix=instead_of_replacing("folder"),
            )


def replace_folder(target: Path, files: Mapping[str, bytes]) -> None:
    """Fill a folder beside the target and move it into place, which a crash cannot cut in half.

    Args:
        target: the folder; one that is there is replaced as a whole, and keeps its permissions.
            A link goes on pointing where it does.
        files: contents by path below the folder.

    Raises:
        OutputError: the folder cannot be written; what was there is there still.
    """
    with _beside(target) as (place, scratch):
        new = scratch / _NEW
        new.mkdir()
        for name, content in files.items():
            path = new / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        if place.exists():
            shutil.copymode(place, new)
        put_in_place(new, place, scratch / _OLD)


def replace_file(target: Path, content: bytes) -> None:
    """Write a file beside the target and move it into place, which a crash cannot cut in half.

    Args:
        target: the file; one that is there is replaced, and keeps its permissions.  A pipe or a
            device is written to.
        content: all of it.

    Raises:
        OutputError: the file cannot be written; what was there is there still.
    """
    with cannot_write(target):
        if target.is_dir():
            raise OutputError("is a folder, not a file", where=str(target),
                              fix="choose another name")  # fmt: skip
        if target.exists() and not target.is_file():
            target.write_bytes(content)
            return
    with _beside(target) as (place, scratch):
        new = scratch / "new"
        new.write_bytes(content)
        if place.exists():
            shutil.copymode(place, new)
        new.replace(place)


@contextmanager
def cannot_write(target: Path) -> Iterator[None]:
    """Turn a system error while a target is looked at or written into a diagnostic.

    Raises:
        OutputError: there was one.
    """
    try:
        yield
    except (OSError, ValueError) as error:  # the latter of a name with a zero in it
        reason = error.strerror if isinstance(error, OSError) else None
        raise OutputError(
            f"cannot be written: {reason or error}",
            where=str(target),
            fix="choose a place that you may write to, on a disk with room",
        ) from None


@contextmanager
def _beside(target: Path) -> Iterator[tuple[Path, Path]]:
    """Yield where a target really lies, and a temporary folder on the same disk."""
    with cannot_write(target):
        place = Path(os.path.realpath(target))
        place.parent.mkdir(parents=True, exist_ok=True)
        with scratch_beside(place) as scratch:
            yield place, scratch
