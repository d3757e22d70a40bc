"""Tests that need Python packages alone: `pytest --without-tools` runs those and no others.

They are what a second interpreter runs, with no compiler and no other implementation to compare
with.  Which tests they are is said here and by the mark `tools`, and is put to the test: no program
is found while they run.  With CI=true the session fails unless tests of each folder, and enough in
all, passed.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

OPTION = "--without-tools"
FOLDERS = (
    "config", "frontend", "graph", "microtvm", "plan", "rewrite", "schedule", "te", "tir",
)  # fmt: skip
LEAST = 1500  # tests that pass
_OF_ONNX = "tests/frontend/onnx"  # the package `onnx` is one of the tools
_SETTINGS = "_hypothesis_internal_use_settings"  # where `@settings` keeps what it is given


def folder_of(nodeid: str) -> str | None:
    """Return a test's folder below `tests/`, if most of its tests need no tools."""
    top, _, rest = nodeid.partition("/")
    folder = rest.partition("/")[0]
    return folder if top == "tests" and folder in FOLDERS else None


class ToolsGate:
    """Counts passed tests by folder; registered where every report arrives."""

    def __init__(self, required: bool) -> None:
        self.required = required
        self.passed: Counter[str] = Counter()

    @property
    def missing(self) -> list[str]:
        """Return what too few tests passed of."""
        found = [f"no test of tests/{folder}" for folder in FOLDERS if not self.passed[folder]]
        total = sum(self.passed.values())
        return [*found, f"{total} tests of at least {LEAST}"] if total < LEAST else found

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        folder = folder_of(report.nodeid)
        if report.when == "call" and report.passed and folder is not None:
            self.passed[folder] += 1

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.required and self.missing and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.write_line(f"passed without tools: {sum(self.passed.values())}")
        if self.required and self.missing:
            terminalreporter.write_line(f"ERROR: passed: {'; '.join(self.missing)}", red=True)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.addoption(
        OPTION,
        action="store_true",
        help="run the tests that need neither a compiler nor an oracle, and no others",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Hide all programs, and register the gate except in an xdist worker."""
    if not config.getoption(OPTION):
        return
    os.environ["PATH"] = os.devnull  # is no folder: nothing is found
    os.environ.pop("CC", None)
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(ToolsGate(os.environ.get("CI") == "true"))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Pass by other folders, whose files may import what is not installed."""
    relative = collection_path.relative_to(config.rootpath).as_posix()
    is_other = "/" in relative and folder_of(relative) is None
    is_other |= relative.startswith(_OF_ONNX)
    return True if config.getoption(OPTION) and is_other else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect what needs tools in those folders."""
    if not config.getoption(OPTION):
        return
    kept: list[pytest.Item] = []
    others: list[pytest.Item] = []
    for item in items:
        needs_none = folder_of(item.nodeid) and item.get_closest_marker("tools") is None
        (kept if needs_none else others).append(item)
    # Another gate asks for a test of every model.
    drawn = every_third(item.nodeid for item in kept if item.get_closest_marker("model") is None)
    items[:] = []
    for item in kept:
        is_drawn = item.nodeid in drawn or item.get_closest_marker("model")
        (items if is_drawn else others).append(item)
    config.hook.pytest_deselected(items=others)
    draw_fewer({function for item in items if (function := getattr(item, "function", None))})


def every_third(tests: Iterable[str]) -> set[str]:
    """Return the first, fourth, seventh ... case of each test function, in the order of `tests`.

    As with examples that are drawn, `make test` decides what a case means.
    """
    seen = Counter[str]()
    drawn = set[str]()
    for nodeid in tests:
        function, _, _ = nodeid.partition("[")
        if seen[function] % 3 == 0:
            drawn.add(nodeid)
        seen[function] += 1
    return drawn


def draw_fewer(functions: Collection[Any]) -> None:
    """Draw a quarter of the examples of a test.

    What a random case means is decided by `make test`, which draws all of them; here the same code
    runs on another interpreter.
    """
    for function in functions:
        if (drawn := getattr(function, _SETTINGS, None)) is not None:
            setattr(function, _SETTINGS, settings(drawn, max_examples=-(-drawn.max_examples // 4)))
