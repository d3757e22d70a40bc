"""Makes outputs in folders beside them; what a killed process left there is put right.

An output is made in a folder `.NAME.RANDOM.microtir` on the same disk and takes its place by one
call of the system. Each such folder has a file that its process keeps locked: one that nobody holds
any more was left by a process that was killed, and the next one that writes the same output
removes it.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from microtir.support.system import is_held, new_lock, uninterrupted

_SUFFIX = ".microtir"
_LOCK = "lock"
_OLD = "old"
_GRACE = 3600.0  # seconds: a folder without a lock is of a process that is about to make one
_AT_FDCWD = -100
_RENAME_EXCHANGE = 2  # of <linux/fs.h>


@contextmanager
def scratch_beside(place: Path) -> Iterator[Path]:
    """Yield a folder beside an output, removed at the end; OSError where there can be none.

    Args:
        place: of the output, without links.
    """
    _put_right(place)
    # A name may have 255 bytes, and the output's may have all of them.
    prefix = f".{_stem(place)}."
    folder = Path(tempfile.mkdtemp(prefix=prefix, suffix=_SUFFIX, dir=place.parent))
    try:
        with new_lock(folder / _LOCK):
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def put_in_place(new: Path, place: Path, old: Path) -> None:
    """Let a folder take the place of another, which is at `old` or where `new` was afterwards.

    Both change places in one call where the system has it. Elsewhere nothing stands at the place
    for a moment: Ctrl-C waits for its end, and after a crash the next process puts the old back.
    """
    if not place.exists():
        new.rename(place)
        return
    if exchange(new, place):
        return
    with uninterrupted():
        place.rename(old)
        try:
            new.rename(place)
        except OSError:
            old.rename(place)
            raise


def exchange(one: Path, other: Path) -> bool:
    """Let two files or folders change places at once; False where the system cannot."""
    if sys.platform == "win32":
        return False
    import ctypes  # which --help has no need of

    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if call is None:
        return False
    done: int = call(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE)
    return done == 0


def _stem(place: Path) -> str:
    return os.fsdecode(os.fsencode(place.name)[:200])


def _put_right(place: Path) -> None:
    """Remove what killed processes left of the same output, and put back what one took away."""
    prefix = f".{_stem(place)}."
    for folder in sorted(place.parent.iterdir()):
        is_one = folder.name.startswith(prefix) and folder.name.endswith(_SUFFIX)
        if is_one and not folder.is_symlink():
            _put_one_right(folder, place)


def _put_one_right(folder: Path, place: Path) -> None:
    if not _is_left(folder):
        return
    old = folder / _OLD
    if old.is_dir() and not os.path.lexists(place):
        old.rename(place)
    shutil.rmtree(folder, ignore_errors=True)


def _is_left(folder: Path) -> bool:
    """Return whether no process works in a folder."""
    try:
        return not is_held(folder / _LOCK)
    except FileNotFoundError:
        return folder.is_dir() and time.time() - folder.stat().st_mtime > _GRACE
    except OSError:
        return False
