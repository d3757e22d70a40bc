"""Tests that build with Zephyr: deselected unless the environment says where Zephyr is.

Zephyr is too large to be fetched for every run of the tests, and in no package.  Who has it sets
`ZEPHYR_BASE`, `ZEPHYR_TOOLCHAIN_VARIANT` and what else Zephyr's own instructions ask for.
"""

from __future__ import annotations

import os

import pytest

VARIABLE = "ZEPHYR_BASE"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Take out the tests marked `zephyr` where there is none."""
    if os.environ.get(VARIABLE):
        return
    deselected = [item for item in items if item.get_closest_marker("zephyr") is not None]
    if deselected:
        items[:] = [item for item in items if item not in deselected]
        config.hook.pytest_deselected(items=deselected)
