"""The gate on tests that need no tools."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.inner_pytest import ROOT, run_inner
from tests.support.tools_gate import FOLDERS, LEAST, ToolsGate, draw_fewer, every_third

PURE = """
    import pytest, shutil

    def test_pure():
        assert shutil.which("sh") is None

    @pytest.mark.tools
    def test_of_compilers():
        assert shutil.which("sh")
"""
IMPORTS = "import no_package_of_this_name\ndef test_it(): pass\n"
Inner = Callable[..., pytest.RunResult]


@pytest.fixture
def inner(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Inner:
    """Run tests of two folders, one of which needs tools, in a pytest of its own."""

    def run(*arguments: str, ci: bool) -> pytest.RunResult:
        monkeypatch.setenv("CI", "true" if ci else "")
        pytester.makeini("[pytest]\nmarkers = tools: needs tools")
        for folder, text in (("config", PURE), ("boards", IMPORTS)):
            pytester.makepyfile(**{f"tests/{folder}/test_one": text})
        plugins = "tests.support.tools_gate", "xdist"
        return run_inner(pytester, monkeypatch, *arguments, plugins=plugins)

    return run


@pytest.mark.parametrize("workers", ["0", "2"])
def test_runs_what_needs_no_tools(inner: Inner, workers: str) -> None:
    """Other folders are not even imported, marked tests left out, and no program is found."""
    result = inner("--without-tools", "-n", workers, ci=False)
    assert result.ret == 0
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["passed without tools: 1"])


@pytest.mark.parametrize("workers", ["0", "2"])
def test_fails_in_ci_when_folders_became_empty(inner: Inner, workers: str) -> None:
    """A folder whose tests were renamed, moved or all marked fails the session by its name."""
    result = inner("--without-tools", "-n", workers, ci=True)
    assert result.ret == 1
    result.stdout.fnmatch_lines([f"ERROR: *no test of tests/frontend*1 tests of at least {LEAST}"])


def test_one_test_of_each_folder_is_too_little() -> None:
    """What passed is counted, too: a folder may lose most of its tests."""
    gate = ToolsGate(required=True)
    gate.passed.update(dict.fromkeys(FOLDERS, 1))
    assert gate.missing == [f"{len(FOLDERS)} tests of at least {LEAST}"]
    gate.passed["tir"] = LEAST
    assert gate.missing == []


def test_every_folder_is_there() -> None:
    """The folders exist, so that a renamed one is missed before the tests run elsewhere."""
    assert all((ROOT / "tests" / folder).is_dir() for folder in FOLDERS)


def test_every_third_case_is_drawn() -> None:
    """No test function is left out, however few cases it has."""
    cases = [*(f"a.py::test_many[{i}]" for i in range(5)), "a.py::test_one", "b.py::test_one[x[0]]"]
    drawn = {"a.py::test_many[0]", "a.py::test_many[3]", "a.py::test_one", "b.py::test_one[x[0]]"}
    assert every_third(cases) == drawn


def test_a_quarter_of_the_examples_is_drawn() -> None:
    """The settings of a test are found where hypothesis keeps them."""
    drawn = []

    @settings(max_examples=40, database=None)
    @given(st.integers())
    def test(value: int) -> None:
        drawn.append(value)

    draw_fewer({test, len})
    test()
    assert 10 <= len(drawn) < 20
