"""Tiers select what they say, failures are named at once, and one of the soak can be repeated."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import soak
from tests.support import seeds
from tests.support.compile_cache import VARIABLE, compiler_output
from tests.support.inner_pytest import run_inner

PLUGINS = "tests.support.tiers", "no:cacheprovider", "_hypothesis_pytestplugin"
TESTS = """
import pytest
from hypothesis import given, strategies as st
from tests.support.seeds import seeds

def test_plain(): pass
@pytest.mark.slow
def test_slow(): pass
@pytest.mark.soak
def test_random(): assert seeds(5, 2).start in (5, 300_005)
@pytest.mark.soak_only
def test_long(): pass
@given(st.integers())
def test_property(number): pass
"""
MARKS = "[pytest]\nmarkers =\n" + "".join(
    f"    {name}\n" for name in ("slow", "quick", "soak", "soak_only", "tools", "model")
)
Inner = Callable[..., pytest.RunResult]


@pytest.fixture
def inner(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Inner:
    """Run tests in a pytest of its own that has the plugin."""

    def run(*arguments: str, **files: str) -> pytest.RunResult:
        pytester.makeini(MARKS)
        pytester.makepyfile(**files)
        return run_inner(pytester, monkeypatch, *arguments, plugins=PLUGINS)

    return run


@pytest.mark.parametrize(
    ("tier", "names"),
    [
        ("quick", {"plain", "random", "property"}),
        ("test", {"plain", "slow", "random", "property"}),
        ("soak", {"random", "long", "property"}),
    ],
)
def test_a_tier_has_its_tests(inner: Inner, tier: str, names: set[str]) -> None:
    """Marks say what a tier leaves out, and the soak's seed reaches the tests."""
    done = inner("-v", "--tier", tier, "--soak-seed", "3", **{"tests/rewrite/test_it": TESTS})
    passed = re.findall(r"::test_(\w+) PASSED", done.stdout.str())
    assert set(passed) == names, done.stdout.str()


def test_a_failure_is_named_when_it_occurs(inner: Inner) -> None:
    """Before the tests that come after it, also in quiet mode."""
    late = "def test_late(): print('LATER')"
    done = inner("-q", "-s", test_a="def test_wrong(): assert False", test_b=late)
    lines = done.stdout.str().splitlines()
    (named,) = [n for n, line in enumerate(lines) if line == "failed: test_a.py::test_wrong"]
    (later,) = [n for n, line in enumerate(lines) if "LATER" in line]
    assert named < later


def test_seeds_are_those_of_the_soak(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same in every run of the tests, and nowhere the same for two seeds of the soak."""
    monkeypatch.delenv(seeds.VARIABLE, raising=False)
    assert list(seeds.seeds(900, 3)) == [900, 901, 902] and not seeds.is_soak()
    drawn = []
    for number in ("0", "1", "2"):
        monkeypatch.setenv(seeds.VARIABLE, number)
        drawn.append(set(seeds.seeds(900, 3)))
    assert seeds.is_soak() and not (drawn[1] & drawn[2]) and len(drawn[1]) == 3


def test_the_soak_says_how_to_repeat_a_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The file and the seed of a failure, and a status that is not 0."""
    failing = [sys.executable, "-c", "print('what went wrong'); raise SystemExit(1)"]
    monkeypatch.setattr(soak, "command", lambda *_: failing)
    assert soak.main(["--seed", "77", "tests/test_files.py"]) == 1
    said = capsys.readouterr().out
    assert "what went wrong" in said
    assert said.count("make soak SEED=77 FILES=tests/test_files.py") == 2


def test_the_soak_ends_in_time(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What would go on is ended, which is no failure; where nothing has passed, it is said."""
    endless = [sys.executable, "-c", "import time; time.sleep(60)"]
    monkeypatch.setattr(soak, "command", lambda *_: endless)
    begin = time.monotonic()
    assert soak.main(["--minutes", "0.04", "tests/test_files.py"]) == 2
    assert time.monotonic() - begin < 30
    assert "0 failed" in capsys.readouterr().out


def test_the_soak_finds_the_files_with_random_cases() -> None:
    """By a mark, or by hypothesis; each is there, and all come before one comes again."""
    files = soak.random_files()
    assert {"tests/execute/test_arm_kernels.py", "tests/plan/test_nest.py"} <= set(files)
    assert "tests/config/test_names.py" in files and "tests/config/test_flags.py" not in files
    order = soak.rounds(5, files)
    first = [next(order) for _ in files]
    assert {path for path, _ in first} == set(files) and {seed for _, seed in first} == {5}
    assert next(order)[1] == 6


@pytest.fixture
def objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty cache of objects."""
    folder = tmp_path / "objects"
    monkeypatch.setenv(VARIABLE, str(folder))
    return folder


def _program(folder: Path, *flags: str) -> int:
    """Return the status of a program of two units and a header."""
    command = ["gcc", "-std=c99", "-I.", *flags, "main.c", "part.c", "-o", "program"]
    assert compiler_output(command, folder) == ""
    return subprocess.run(["./program"], cwd=folder, check=False).returncode


def test_an_object_is_made_again_where_what_it_depends_on_has_changed(
    tmp_path: Path, objects: Path
) -> None:
    """A unit, a header that it includes, a macro that it knows; nothing else."""
    folder = tmp_path / "sources"
    folder.mkdir()
    (folder / "part.h").write_text("int part(void);\n#ifndef MORE\n#define MORE 0\n#endif\n")
    (folder / "main.c").write_text("int part(void);\nint main(void) { return part(); }\n")
    (folder / "part.c").write_text('#include "part.h"\nint part(void) { return 1 + MORE; }\n')
    assert _program(folder) == 1 and len(list(objects.iterdir())) == 2
    assert _program(folder) == 1 and len(list(objects.iterdir())) == 2
    assert _program(folder, "-DMORE=3") == 4 and len(list(objects.iterdir())) == 3
    (folder / "part.h").write_text("int part(void);\n#define MORE 6\n")
    assert _program(folder) == 7 and len(list(objects.iterdir())) == 4
    (folder / "main.c").write_text("int part(void);\nint main(void) { return 2 * part(); }\n")
    assert _program(folder) == 14 and len(list(objects.iterdir())) == 5


def test_what_a_compiler_says_is_kept_as_well(tmp_path: Path, objects: Path) -> None:
    """A warning that is an error is one each time."""
    (tmp_path / "a.c").write_text("int f(int x) { return 0; }\n")
    command = ["gcc", "-Wall", "-Wextra", "-Werror", "-c", "a.c", "-o", "/dev/null"]
    first, second = (compiler_output(command, tmp_path) for _ in range(2))
    assert "unused parameter" in first and second == first
    assert len(list(objects.iterdir())) == 1
