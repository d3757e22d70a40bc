"""Set-up shared by all tests: the plugins of this project and the profile of hypothesis."""

from __future__ import annotations

import gc
import os

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = [
    "pytester",
    "tests.support.command",
    "tests.support.golden",
    "tests.support.host_cache",
    "tests.support.network",
    "tests.support.tools_gate",
    "tests.support.model_gate",
    "tests.support.tiers",
    "tests.support.zephyr_gate",
]

# Compiling C inside an example takes as long as the machine is busy: a deadline would fail at
# random.  In CI the examples are the same in every run, so that a red run can be repeated.
settings.register_profile("local", deadline=None)
settings.register_profile(
    "ci",
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
# Whose shell exports it has narrow tables in pipes; tests of widths say how wide.
os.environ.pop("COLUMNS", None)
settings.load_profile("ci" if os.environ.get("CI") == "true" else "local")


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Let the garbage collector leave alone what lives until the end: modules and all tests."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
