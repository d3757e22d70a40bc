"""Programs that tests compile are cached in the session's folder, not in the user's home."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def _host_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Give the host loader a cache of its own for the session."""
    before = os.environ.get("XDG_CACHE_HOME")
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))
    yield
    if before is None:
        del os.environ["XDG_CACHE_HOME"]
    else:
        os.environ["XDG_CACHE_HOME"] = before
