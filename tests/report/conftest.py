"""The fixture `chromium`; tests that ask for it are left out where there is none."""

from __future__ import annotations

import shutil

import pytest

_NAMES = ("chromium", "chromium-browser", "google-chrome")


def browser() -> str | None:
    """Return the path of the first browser of the machine that can make a picture of a page."""
    return next((path for name in _NAMES if (path := shutil.which(name))), None)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect what needs a browser, if there is none."""
    if browser() is not None:
        return
    left_out = [item for item in items if "chromium" in getattr(item, "fixturenames", ())]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


@pytest.fixture(scope="session")
def chromium() -> str:
    """Return the browser."""
    path = browser()
    assert path is not None, "tests without a browser are deselected"
    return path
