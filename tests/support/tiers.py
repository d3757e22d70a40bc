"""Tiers of tests: quick for every few minutes, test for every change, soak with fresh seeds.

A test that takes long is marked `slow` and is no part of the quick tier, nor are the folders that
compile C; of those, tests marked `quick` show that the whole road still works.  Tests that draw
random cases with `seeds`, or with hypothesis, are marked `soak`: there they draw others each time.
What only the soak runs is marked `soak_only`.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

from tests.support import seeds

TIER, SEED = "--tier", "--soak-seed"
# Besides the folders whose tests need no tools.
QUICK_FOLDERS = frozenset(("layering",))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    parser.addoption(
        TIER, choices=("quick", "test", "soak"), default="test", help="which tests run"
    )
    parser.addoption(SEED, type=int, default=0, help="where random cases of the soak begin")


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Pass on the seed, and print failures as they occur where every report arrives."""
    if config.getoption(TIER) == "soak":
        # Tests that start a process of their own draw the same seeds there.
        os.environ[seeds.VARIABLE] = str(config.getoption(SEED))
        # Hypothesis draws from the seed that the soak gives it, and keeps no failures.
        health = [HealthCheck.too_slow]
        settings.register_profile(
            "soak", deadline=None, database=None, suppress_health_check=health
        )
        settings.load_profile("soak")
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Announcer(config))


# After hypothesis, which marks its tests in a hook of the same name.
@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect what is not of the tier."""
    tier = config.getoption(TIER)
    is_of = {"quick": is_quick, "test": is_usual, "soak": is_of_soak}[tier]
    kept, others = list[pytest.Item](), list[pytest.Item]()
    for item in items:
        (kept if is_of(item) else others).append(item)
    if others:
        config.hook.pytest_deselected(items=others)
        items[:] = kept


def _has(item: pytest.Item, *names: str) -> bool:
    return any(item.get_closest_marker(name) is not None for name in names)


def is_usual(item: pytest.Item) -> bool:
    """Return whether a test is run for every change."""
    return not _has(item, "soak_only")


def is_of_soak(item: pytest.Item) -> bool:
    """Return whether a test draws other cases with another seed."""
    return _has(item, "soak", "soak_only", "hypothesis")


def is_quick(item: pytest.Item) -> bool:
    """Return whether a test is of the quick tier: marked so, or cheap and without a compiler."""
    if _has(item, "quick"):
        return True
    if _has(item, "slow", "soak_only", "tools", "model"):
        return False
    from tests.support.tools_gate import folder_of  # a plugin, which pytest must be first to load

    return folder_of(item.nodeid) is not None or item.nodeid.split("/")[1] in QUICK_FOLDERS


class Announcer:
    """Names a failed test at once; quiet pytest with workers does so at the end."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        if report.failed and reporter is not None:
            step = "" if report.when == "call" else f" in {report.when}"
            reporter.write(f"\nfailed{step}: {report.nodeid}\n", red=True)
