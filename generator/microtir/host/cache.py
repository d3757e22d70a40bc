"""Keeps compiled programs, by everything that goes into them."""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from microtir.host.toolchain import Compiler
from microtir.support.cache_folder import cache_folder
from microtir.support.scratch import scratch_beside


def folder_for(
    compiler: Compiler,
    flags: Sequence[str],
    files: Mapping[str, str],
    make: Callable[[Path], None],
) -> Path:
    """Return a folder with `files` and what `make` added to them, cached where possible.

    Args:
        compiler: part of the key, by path and version.
        flags: part of the key.
        files: text by relative path; part of the key.
        make: called with a folder that holds the files; raises if it cannot do its work.

    Returns:
        A folder that is complete: other processes that build the same see it whole or not at all.
    """
    root = _root()
    final = root / _key(compiler, flags, files)
    if final.is_dir():
        return final
    with scratch_beside(final) as scratch:
        folder = scratch / "new"
        for path, text in files.items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8", newline="\n")
        make(folder)
        try:
            folder.rename(final)
        except OSError:
            # Another process was faster; its folder has the same key and so the same content.
            if not final.is_dir():
                raise
    return final


def _key(compiler: Compiler, flags: Sequence[str], files: Mapping[str, str]) -> str:
    digest = hashlib.sha256()
    for part in (compiler.path, compiler.version, *flags):
        digest.update(f"{len(part)}:{part}".encode())
    for path in sorted(files):
        digest.update(f"{path}:{len(files[path])}:{files[path]}".encode())
    return digest.hexdigest()[:32]


def _root() -> Path:
    """Return the user's cache folder, or a temporary one where that cannot be written."""
    root = cache_folder() / "host"
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError:
        return _temporary()
    return root if os.access(root, os.W_OK) else _temporary()


@lru_cache(maxsize=1)
def _temporary() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="microtir-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
