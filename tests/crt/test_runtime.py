"""The C runtime: unit tests in C under sanitizers, warnings of every compiler and configuration."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from microtir.resources import runtime_crt
from tests.support.c_compilers import (
    C_COMPILERS,
    CPP_COMPILERS,
    STRICT,
    STRICT_CPP,
    compiler_output,
    strict_problems,
)

SOURCE = Path(__file__).with_name("runtime_test.c")
TESTS = re.findall(r'\{"(\w+)", test_', SOURCE.read_text("utf-8"))
CONFIGURATIONS = (
    (),
    ("-DMICROTIR_MAX_MODULES=1",),
    ("-DMICROTIR_STATUS_TEXTS=0",),
    ("-DMICROTIR_CHECK_TENSORS=0",),
)
SANITIZERS = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the runtime where the tests of its users find it."""
    root = tmp_path_factory.mktemp("crt")
    shutil.copytree(runtime_crt(), root / "runtime_crt")
    return root


def _build(folder: Path, name: str, *flags: str) -> Path:
    units = sorted(str(path) for path in (folder / "runtime_crt" / "src").glob("*.c"))
    command = [
        "gcc", "-std=c99", *STRICT, *SANITIZERS, *flags, "-Iruntime_crt/include",
        str(SOURCE), *units, "-o", name,
    ]  # fmt: skip
    assert compiler_output(command, folder) == ""
    return folder / name


def _run(program: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(program), *arguments],
        capture_output=True, text=True, timeout=60, check=False,
        env={"ASAN_OPTIONS": "detect_leaks=0"},
    )  # fmt: skip


@pytest.fixture(scope="module")
def program(folder: Path) -> Path:
    """The unit tests with the default configuration."""
    return _build(folder, "defaults")


@pytest.mark.parametrize("name", TESTS)
def test_unit(program: Path, name: str) -> None:
    """One unit test of the runtime passes, and no sanitizer objects."""
    done = _run(program, name)
    assert done.returncode == 0, done.stdout + done.stderr


def test_unit_tests_can_fail(program: Path) -> None:
    """A test that does not exist is an error, not a pass."""
    assert _run(program, "no_such_test").returncode != 0


@pytest.mark.parametrize("flags", CONFIGURATIONS[1:], ids=lambda flags: "".join(flags)[2:])
def test_configurations(folder: Path, flags: tuple[str, ...]) -> None:
    """All unit tests pass with each macro of config.h away from its default."""
    program = _build(folder, "configured", *flags)
    done = _run(program, *(["registry_full"] if "MAX_MODULES" in flags[0] else []))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("flags", CONFIGURATIONS, ids=lambda flags: "".join(flags)[2:] or "default")
@pytest.mark.parametrize("compiler", C_COMPILERS)
def test_no_warnings(folder: Path, compiler: str, flags: tuple[str, ...]) -> None:
    """No compiler warns about the runtime, in C99 or C11, whatever its configuration."""
    root = folder / "runtime_crt"
    include = f"-I{root / 'include'}"
    problems = [strict_problems(root, compiler, std, include, *flags) for std in ("c99", "c11")]
    assert problems == ["", ""]


@pytest.mark.parametrize("compiler", CPP_COMPILERS)
def test_headers_in_cpp(folder: Path, compiler: str) -> None:
    """Each header can be included alone, and from C++17."""
    include = folder / "runtime_crt" / "include"
    for header in sorted(include.rglob("*.h")):
        name = header.relative_to(include).as_posix()
        (folder / "user.cpp").write_text(f'#include "{name}"\n')
        command = [compiler, "-std=c++17", *STRICT_CPP, f"-I{include}", "-c", "user.cpp"]
        assert compiler_output([*command, "-o", "/dev/null"], folder) == "", name


def test_every_macro_of_the_configuration_is_documented() -> None:
    """Each macro of config.h has a guard, and a comment with its default before it."""
    text = (runtime_crt() / "include" / "microtir" / "config.h").read_text("utf-8")
    macros = re.findall(r"#define (MICROTIR_\w+) (\S+)", text)
    assert macros
    for name, default in macros:
        assert re.search(rf"/\* Default: {default}\. [^#]*\*/\n#ifndef {name}\n", text), name


def test_no_heap_and_no_state(folder: Path) -> None:
    """The objects have no writable data and ask for nothing beyond string.h."""
    for unit in sorted((folder / "runtime_crt" / "src").glob("*.c")):
        command = ["gcc", "-std=c99", "-fno-pie", "-O1", "-Iruntime_crt/include", "-c", str(unit)]
        assert compiler_output([*command, "-o", "unit.o"], folder) == ""
        lines = subprocess.run(
            ["nm", "unit.o"], cwd=folder, capture_output=True, text=True, check=True
        ).stdout.splitlines()
        kinds = {(line.split()[-2], line.split()[-1]) for line in lines}
        assert not [name for kind, name in kinds if kind in "bBdDC"], unit.name
        outside = {n for kind, n in kinds if kind == "U" and not n.startswith("microtir_")}
        assert outside <= {"strcmp"}, unit.name
