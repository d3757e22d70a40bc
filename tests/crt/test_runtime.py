"""The C runtime: unit tests in C under sanitizers, warnings of every compiler and configuration."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from microtir.support.resources import runtime_crt
from tests.support.c_compilers import (
    C_COMPILERS,
    CPP_COMPILERS,
    STRICT,
    STRICT_CPP,
    compiler_output,
    strict_problems,
)

UNITS = sorted(Path(__file__).parent.glob("*.c"))
TESTS = [
    name for unit in UNITS for name in re.findall(r'\{"(\w+)", test_', unit.read_text("utf-8"))
]
CONFIGURATIONS = (
    "MAX_MODULES=1",
    "MAX_RANK=1",
    "MEMORY_ALIGNMENT=8",
    "MEMORY_ALIGNMENT=128",
    "CHECK_STACK=0",
    "STATUS_TEXTS=0",
    "CHECK_TENSORS=0",
    "CHECK_GRAPH=0",
    "CHECK_PARAMETERS=0",
    "CHECK_DEVICES=0",
    "CRC_TABLE=0",
    "CRC_TABLE=256",
    "LOG_LEVEL=0",
    "LOG_LEVEL=4",
)
# Tests that need room for more modules than one.
NEEDS_MODULES = "registry"
SANITIZERS = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the runtime where the tests of its users find it."""
    root = tmp_path_factory.mktemp("crt")
    shutil.copytree(runtime_crt(), root / "runtime_crt")
    return root


def _build(folder: Path, name: str, *flags: str) -> Path:
    sources = sorted((folder / "runtime_crt" / "src").glob("*.c"))
    command = [
        "gcc", "-std=c99", *STRICT, *SANITIZERS, *flags, "-Iruntime_crt/include",
        *map(str, (*UNITS, *sources)), "-o", name,
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
    """Return the unit tests with the default configuration."""
    return _build(folder, "defaults")


@pytest.mark.parametrize("name", TESTS)
def test_unit(program: Path, name: str) -> None:
    """One unit test of the runtime passes, and no sanitizer objects."""
    done = _run(program, name)
    assert done.returncode == 0, done.stdout + done.stderr


def test_unit_tests_can_fail(program: Path) -> None:
    """A test that does not exist is an error, not a pass."""
    assert _run(program, "no_such_test").returncode != 0


@pytest.mark.parametrize("setting", CONFIGURATIONS)
def test_configurations(folder: Path, setting: str) -> None:
    """All unit tests pass, and gcc is silent, with each macro of config.h away from its default."""
    program = _build(folder, "configured", f"-DMICROTIR_{setting}")
    for name in TESTS if setting == "MAX_MODULES=1" else [None]:
        done = _run(program, *([name] if name else []))
        if name != NEEDS_MODULES:
            assert done.returncode == 0, done.stdout + done.stderr


def test_every_macro_has_a_configuration() -> None:
    """No macro of config.h is without a build in which it differs from its default."""
    tested = {f"MICROTIR_{setting.partition('=')[0]}" for setting in CONFIGURATIONS}
    assert tested == set(_macros())


@pytest.mark.parametrize(
    "setting",
    [
        "MAX_MODULES=0", "MAX_MODULES=256", "MAX_RANK=0", "MAX_RANK=17", "MEMORY_ALIGNMENT=4",
        "MEMORY_ALIGNMENT=24", "MEMORY_ALIGNMENT=256", "CRC_TABLE=8", "LOG_LEVEL=5",
        "LOG_LEVEL=-1",
    ],
)  # fmt: skip
def test_wrong_configurations(folder: Path, setting: str) -> None:
    """A value that no part can work with is an error that names the macro."""
    (folder / "wrong.c").write_text('#include "microtir/runtime.h"\n')
    command = ["gcc", "-std=c99", "-Iruntime_crt/include", f"-DMICROTIR_{setting}"]
    said = compiler_output([*command, "-fsyntax-only", "wrong.c"], folder)
    assert f'#error "MICROTIR_{setting.partition("=")[0]} must be' in said


@pytest.mark.parametrize("compiler", C_COMPILERS)
def test_no_warnings(folder: Path, compiler: str) -> None:
    """No compiler warns about the runtime, in C99 or C11."""
    root = folder / "runtime_crt"
    include = f"-I{root / 'include'}"
    problems = [strict_problems(root / "src", compiler, std, include) for std in ("c99", "c11")]
    assert problems == ["", ""]


@pytest.mark.parametrize("setting", CONFIGURATIONS)
def test_no_warnings_whatever_the_configuration(folder: Path, setting: str) -> None:
    """Where there is no library and int has 16 bits, no configuration gives a warning either."""
    compiler = next(n for n in ("clang-msp430", "avr-gcc", "gcc") if n in C_COMPILERS)
    root = folder / "runtime_crt"
    flags = (f"-I{root / 'include'}", f"-DMICROTIR_{setting}")
    assert strict_problems(root / "src", compiler, "c99", *flags) == ""


@pytest.mark.parametrize("compiler", CPP_COMPILERS)
def test_headers_in_cpp(folder: Path, compiler: str) -> None:
    """Each header can be included alone from C++, also those for microTVM's applications.

    None has a cast of C, of which projects in C++ are warned.
    """
    root = folder / "runtime_crt"
    folders = (root / "include", *sorted(root.glob("microtvm/*/include")))
    flags = [*STRICT_CPP, "-Wold-style-cast", *(f"-I{include}" for include in folders)]
    found = [path.relative_to(f).as_posix() for f in folders for path in sorted(f.rglob("*.h"))]
    assert "tvm/runtime/crt/internal/common/memory.h" in found
    for name in found:
        if name == "tvm/runtime/crt/microtvm_rpc_server.h":
            continue  # an #error that says what there is instead
        (folder / "user.cpp").write_text(f'#include "{name}"\n')
        command = [compiler, "-std=c++17", *flags, "-c", "user.cpp"]
        assert compiler_output([*command, "-o", "/dev/null"], folder) == "", name


def _config_text() -> str:
    return (runtime_crt() / "include" / "microtir" / "config.h").read_text("utf-8")


def _macros() -> dict[str, str]:
    """Return the macros of config.h, each with its default."""
    return dict(re.findall(r"#define (MICROTIR_\w+) (\S+)", _config_text()))


def test_every_macro_of_the_configuration_is_documented() -> None:
    """Each macro of config.h has a guard, and a comment with its default before it."""
    text = _config_text()
    macros = _macros()
    assert macros
    for name, default in macros.items():
        assert re.search(rf"/\* Default: {default}\. [^#]*\*/\n#ifndef {name}\n", text), name


def test_no_heap_and_no_state(folder: Path) -> None:
    """The objects have no writable data and ask for nothing beyond string.h."""
    units = sorted((folder / "runtime_crt" / "src").glob("*.c"))
    assert units
    for unit in units:
        command = ["gcc", "-std=c99", "-fno-pie", "-O1", "-Iruntime_crt/include", "-c", str(unit)]
        assert compiler_output([*command, "-o", "unit.o"], folder) == ""
        lines = subprocess.run(
            ["nm", "unit.o"], cwd=folder, capture_output=True, text=True, check=True
        ).stdout.splitlines()
        kinds = {(line.split()[-2], line.split()[-1]) for line in lines}
        assert not [name for kind, name in kinds if kind in "bBdDC"], unit.name
        outside = {n for kind, n in kinds if kind == "U" and not n.startswith("microtir_")}
        assert outside <= {"strcmp", "_GLOBAL_OFFSET_TABLE_"}, unit.name


def test_misra_deviations() -> None:
    """What the MISRA addon of cppcheck finds is what MISRA.md lists, with its reason, and no more.

    The addon is not the standard: rules that it does not check are not claimed.
    """
    root = runtime_crt()
    command = [
        "cppcheck", "--addon=misra", "--std=c99", "--platform=unix32", "--enable=style", "-q",
        "--template={file} {id}", f"-I{root / 'include'}", str(root / "src"),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    found = {line.split()[1] for line in done.stderr.splitlines() if len(line.split()) == 2}
    page = (root / "MISRA.md").read_text("utf-8")
    listed = re.findall(r"^\| (\d+\.\d+) \| (?:required|advisory) \| \S.*\|$", page, re.MULTILINE)
    assert found == {f"misra-c2012-{rule}" for rule in listed}
