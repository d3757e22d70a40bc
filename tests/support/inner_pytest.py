"""Runs a pytest of its own with the plugins that a test names, and no others.

All that are installed take a second and a half to be imported, for tests that take milliseconds.
"""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def run_inner(
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    *arguments: str,
    plugins: tuple[str, ...],
) -> pytest.RunResult:
    """Run the tests in the folder of `pytester`; plugins are named as `-p` wants them."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    named = [word for plugin in plugins for word in ("-p", plugin)]
    return pytester.runpytest_subprocess(*named, *arguments)
