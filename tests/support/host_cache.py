"""Programs that tests compile are cached in the session's folder, not in the user's home.

All workers of a session share it: a program or an object that one of them has compiled is there for
the others.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.support.compile_cache import VARIABLE


@pytest.fixture(scope="session", autouse=True)
def _caches(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Give the host loader and the compilers caches of the session's own."""
    base = tmp_path_factory.getbasetemp()
    root = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folders = {"XDG_CACHE_HOME": root / "cache", VARIABLE: root / "objects"}
    before = {name: os.environ.get(name) for name in folders}
    for name, folder in folders.items():
        folder.mkdir(exist_ok=True)
        os.environ[name] = str(folder)
    yield
    for name, value in before.items():
        if value is None:
            del os.environ[name]
        else:
            os.environ[name] = value
