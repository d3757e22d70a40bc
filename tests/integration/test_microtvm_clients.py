"""Programs of several parts for microTVM: libraries, platforms in C++, models of several archives.

Their parts are linked with what archives hold, under sanitizers, and run on refilled buffers.
"""

from __future__ import annotations

import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest

import microtir
from microtir import CompilationConfig, Executor, Runtime, export_model_library_format
from microtir.graph.ir import Graph
from tests.integration.test_microtvm_applications import APPS, expected, run, write_blobs
from tests.integration.test_microtvm_dropin import expected as scores_expected
from tests.support.c_compilers import compiler_output
from tests.support.small_models import module_of, quantised_graph, two_ports_graph

pytestmark = pytest.mark.tools

BASE = CompilationConfig(targets="c", compatibility="microtvm")
WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Werror")
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
INCLUDES = ("-Iruntime/include", "-Icodegen/host/include", f"-I{APPS}", "-I.")


def unpacked(graph: Graph, config: CompilationConfig, folder: Path) -> Path:
    """The files of an archive; those of several are laid into one folder."""
    artifact = microtir.build(module_of(graph), config)
    path = folder.with_name(f"{config.module_name}.tar")
    with tarfile.open(export_model_library_format(artifact, path)) as tar:
        tar.extractall(folder)
    return folder


def units(folder: Path) -> list[str]:
    """All C files that a build system finds in an archive."""
    places = ("codegen/host/src", "runtime/src")
    return [str(path) for place in places for path in sorted((folder / place).rglob("*.c"))]


@pytest.mark.parametrize(("compiler", "language"), [("gcc", "c"), ("g++", "c++")])
def test_a_dynamic_bundle_is_loaded_at_run_time(
    compiler: str, language: str, tmp_path: Path
) -> None:
    """A library with a model, its weights and the runtime; the program knows names only.

    All else is hidden, as in the Makefiles of such bundles.
    """
    folder = unpacked(two_ports_graph(), BASE.with_(executor="graph"), tmp_path / "mlf")
    write_blobs((folder / "parameters" / "default.params").read_bytes(), "graph", folder)
    flags = [*WARNINGS, *SANITIZERS, *INCLUDES, "-fPIC", "-fvisibility=hidden"]
    library = [compiler, *flags, "-x", language, "-c", str(APPS / "bundle_library.c")]
    assert not compiler_output([*library, "-o", "library.o"], folder)
    linked = ["gcc", "-std=c99", *flags, "-shared", "library.o", *units(folder)]
    assert not compiler_output([*linked, "-o", "bundle.so", "-lm"], folder)
    program = ["gcc", "-std=c99", *WARNINGS, *SANITIZERS, str(APPS / "dynamic_bundle.c")]
    assert not compiler_output([*program, "-o", "app", "-ldl"], folder)
    assert [int(line) for line in run("./app", folder).split()] == expected()


def test_a_library_offers_what_microtvm_offered(tmp_path: Path) -> None:
    """Generated functions and those of the runtime's API, with all others hidden."""
    executor = Executor("aot", {"interface-api": "packed"})
    cases: dict[str, dict[str, Any]] = {
        "plain": {},
        "packed": {"executor": executor, "runtime": Runtime("crt", {"system-lib": True})},
    }
    for name, changes in cases.items():
        config = BASE.with_(module_name=name, **changes)
        folder = unpacked(two_ports_graph(), config, tmp_path / name)
        flags = ["-std=c99", *WARNINGS, *INCLUDES, "-fPIC", "-fvisibility=hidden", "-shared"]
        assert not compiler_output(["gcc", *flags, *units(folder), "-o", "lib.so"], folder)
        done = subprocess.run(
            ["nm", "-D", "--defined-only", "lib.so"],
            cwd=folder, capture_output=True, text=True, check=True,
        )  # fmt: skip
        listed = {line.split()[-1] for line in done.stdout.splitlines()}
        assert f"tvmgen_{name}_run" in listed
        wanted = {"TVMFuncGetGlobal", "TVMSystemLibEntryPoint", f"tvmgen_{name}_module"}
        assert (wanted if changes else {f"tvmgen_{name}___tvm_main__"}) <= listed
        assert not any(symbol.startswith(("microtir_", f"{name}_")) for symbol in listed)


@pytest.mark.parametrize("standard", ["c++11", "c++20"])
def test_a_platform_in_cpp_carries_firmware_in_c(standard: str, tmp_path: Path) -> None:
    """Its hooks have the linkage that the runtime calls, from the oldest C++ to the newest."""
    executor = Executor("aot", {"interface-api": "packed"})
    config = BASE.with_(executor=executor, runtime=Runtime("crt", {"system-lib": True}))
    folder = unpacked(two_ports_graph(), config, tmp_path / "mlf")
    command = ["g++", f"-std={standard}", *WARNINGS, *SANITIZERS, *INCLUDES, "-c"]
    assert not compiler_output([*command, str(APPS / "platform.cpp"), "-o", "p.o"], folder)
    sources = [str(APPS / "on_platform.c"), *units(folder)]
    command = ["gcc", "-std=c99", *WARNINGS, *SANITIZERS, *INCLUDES, *sources, "p.o"]
    assert not compiler_output([*command, "-o", "app", "-lstdc++", "-lm"], folder)
    assert [int(line) for line in run("./app", folder).split()] == expected()


@pytest.mark.parametrize("sanitizer", ["address,undefined", "thread"])
def test_two_models_of_two_archives_run_in_two_threads(sanitizer: str, tmp_path: Path) -> None:
    """One arena, in which each has its part; what one computes does not depend on the other."""
    folder = tmp_path / "mlf"
    for name, graph in {"first": quantised_graph(), "second": two_ports_graph()}.items():
        unpacked(graph, BASE.with_(module_name=name, workspace_pools="sram"), folder)
    flags = ["-std=c99", *WARNINGS, *INCLUDES, f"-fsanitize={sanitizer}", "-pthread"]
    command = ["gcc", *flags, str(APPS / "two_threads.c"), *units(folder), "-o", "app", "-lm"]
    assert not compiler_output(command, folder)
    assert [int(line) for line in run("./app", folder).split()] == scores_expected() + expected()
