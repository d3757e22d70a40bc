"""The limit on a test's time."""

from __future__ import annotations

import sys

import pytest

from tests.support.inner_pytest import ROOT, run_inner

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SLOW = """
    import time, pytest

    @pytest.fixture(scope="module")
    def programs():
        time.sleep(0.6)

    def test_with_shared_programs(programs):
        pass

    def test_that_hangs():
        time.sleep(60)
"""


def test_shared_fixtures_do_not_count(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy machine fixtures that build hundreds of programs ran into the limit of a test."""
    options = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    mine = {"timeout": 0.3, "timeout_func_only": options["timeout_func_only"]}
    assert options["timeout"] == 300 and options["faulthandler_timeout"] > 300
    pytester.makeini("\n".join(["[pytest]", *(f"{key} = {mine[key]}" for key in mine)]))
    pytester.makepyfile(SLOW)
    plugins = "no:cacheprovider", "pytest_timeout"
    result = run_inner(pytester, monkeypatch, plugins=plugins)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*Timeout*0.3*"])
