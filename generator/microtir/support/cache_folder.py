"""Finds the folder in which what takes long to make is kept for the next time."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """Return the user's cache folder for microtir; it need not exist, or be writable."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path("~").expanduser() / ".cache") / "microtir"
