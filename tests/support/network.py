"""No test uses the network, nor a process of microtir that it starts, but for those of `MAY`.

Processes inherit the hook through PYTHONPATH, and the permission through the environment.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

# The studio serves a page on this machine; `tune` sends its work to a cluster.
MAY = ("tests/studio/", "tests/cli/test_studio.py", "tests/search/test_tune.py")

FOLDER = Path(__file__).resolve().parent / "network_gate"
_NAME = "PYTHONPATH"


def python_path(*folders: Path) -> str:
    """Return a PYTHONPATH of folders for a process that must not use the network, either."""
    return os.pathsep.join(map(str, (FOLDER, *folders)))


def pytest_configure() -> None:
    """Put the hook into this process, and before what is on the path of its children."""
    from tests.support.network_gate import sitecustomize  # adds the hook

    before = os.environ.get(_NAME, "").split(os.pathsep)
    if str(FOLDER) not in before:
        os.environ[_NAME] = os.pathsep.join([str(FOLDER), *filter(None, before)])
    os.environ.pop(sitecustomize.VARIABLE, None)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Let a test of `MAY`, with the fixtures that it is the first to ask for, use the network."""
    from tests.support.network_gate.sitecustomize import VARIABLE

    if not item.nodeid.startswith(MAY):
        yield
        return
    os.environ[VARIABLE] = "1"
    yield
    os.environ.pop(VARIABLE, None)
