"""Programs that tests compile are cached in the session's folder, not in the user's home.

All workers of a session share it: a program or an object that one of them has compiled is there for
the others.  What `make` and CMake compile goes through ccache where that is installed: every
project brings the same runtime.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.compile_cache import VARIABLE

FOLDERS = {"XDG_CACHE_HOME": "cache", VARIABLE: "objects", "CCACHE_DIR": "ccache"}
# Debian's: programs with the names of compilers, each of which is ccache.
_COMPILERS = Path("/usr/lib/ccache")


def _of_ccache() -> dict[str, str]:
    """Return variables with which compilers are found behind ccache, if there is a PATH at all."""
    path = os.environ["PATH"]
    if not _COMPILERS.is_dir() or path == os.devnull:
        return {}
    return {
        "PATH": f"{_COMPILERS}{os.pathsep}{path}",
        "CCACHE_PATH": path,
        # Projects lie in folders of many names, which only debug information has.
        "CCACHE_NOHASHDIR": "1",
        "CCACHE_BASEDIR": tempfile.gettempdir(),
        # Headers were written a moment ago; their content counts.
        "CCACHE_SLOPPINESS": "include_file_mtime,include_file_ctime",
    }


@pytest.fixture(scope="session", autouse=True)
def _caches(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Give the host loader and the compilers caches of the session's own."""
    base = tmp_path_factory.getbasetemp()
    root = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folders = {name: root / folder for name, folder in FOLDERS.items()}
    for folder in folders.values():
        folder.mkdir(exist_ok=True)
    values = {name: str(folder) for name, folder in folders.items()} | _of_ccache()
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    yield
    for name, value in before.items():
        if value is None:
            del os.environ[name]
        else:
            os.environ[name] = value
