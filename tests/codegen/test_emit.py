"""Whole files: golden text, determinism, warnings of every compiler, refusals."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import microtir
from microtir import CompilationConfig, codegen, host
from microtir.artifact import Artifact, OutputData, read_metadata
from microtir.codegen.interface.packed import RUNTIME_VERSION
from microtir.config import Runtime
from microtir.errors import UsageError
from microtir.module.ir_module import ConfigMissing, IRModule
from microtir.support.resources import runtime_crt
from microtir.tir.build import seq
from microtir.tir.ir import PrimFunc
from microtir.tir.memory_plan import MemoryPlan, PlannedPool
from tests.support.c_compilers import (
    C_COMPILERS,
    CPP_COMPILERS,
    HOST_COMPILERS,
    INCLUDES,
    STRICT_CPP,
    compiler_output,
    strict_problems,
)
from tests.support.golden import Golden
from tests.support.network import python_path
from tests.support.programs import artifact_of, config, image, matmul_module, model_module

DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "digits_int8.tflite"
SYSTEM_LIB = Runtime("crt", {"system-lib": True})
MODULES: dict[str, Callable[[], IRModule]] = {
    "model": model_module,
    "functions": matmul_module,
    "packed_model": lambda: model_module(config("packed", runtime=SYSTEM_LIB)),
    "packed_functions": lambda: matmul_module(config("algebra", runtime=SYSTEM_LIB)),
}


@pytest.fixture(params=MODULES)
def artifact(request: pytest.FixtureRequest) -> Artifact:
    """One artifact of each kind."""
    return artifact_of(MODULES[request.param]())


@pytest.fixture
def folder(artifact: Artifact, tmp_path: Path) -> Path:
    """Return the artifact, exported."""
    return artifact.export(tmp_path / "out")


@pytest.mark.parametrize("kind", ["model", "functions"])
def test_golden(kind: str, golden: Golden) -> None:
    """The generated files are, byte for byte, those that were read and agreed to."""
    for file in artifact_of(MODULES[kind]()).sources:
        golden.check(f"{kind}/{file.path}", file.text)


def test_golden_packed(golden: Golden) -> None:
    """So are those of the packed interface."""
    for file in artifact_of(MODULES["packed_functions"]()).sources:
        if file.path.startswith(("algebra_packed", "algebra_system_lib")):
            golden.check(f"functions/{file.path}", file.text)


# What C11 adds is syntax, on which the ports of a compiler agree.
STANDARDS = [(compiler, "c99") for compiler in C_COMPILERS] + [
    pytest.param(compiler, "c11", marks=[pytest.mark.soak_only] * (compiler not in HOST_COMPILERS))
    for compiler in C_COMPILERS
]


@pytest.mark.parametrize(("compiler", "standard"), STANDARDS)
def test_no_warnings(folder: Path, compiler: str, standard: str) -> None:
    """No compiler has anything to say under the strict set of warnings, in C99 and in C11."""
    assert strict_problems(folder, compiler, standard) == ""


@pytest.mark.parametrize("compiler", CPP_COMPILERS)
def test_headers_in_cpp(folder: Path, compiler: str) -> None:
    """Every public header can be included from C++17, and its macros declare variables there."""
    headers = sorted(path.name for path in folder.glob("*.h") if "weights" not in path.name)
    lines = [f'#include "{name}"' for name in headers]
    for name in headers:
        macro = name.removesuffix(".h").upper()
        text = (folder / name).read_text("utf-8")
        if f"{macro}_WORKSPACE(" in text:
            lines.append(f"static {macro}_WORKSPACE(memory);")
            lines.append("void *use(void); void *use(void) { return memory; }")
            ports = [line.split()[1] for line in text.splitlines() if "_SHAPE " in line]
            lines += [
                f"extern const int {port}_[]; const int {port}_[] = {port};" for port in ports
            ]
    (folder / "user.cpp").write_text("\n".join(lines) + "\n")
    command = [compiler, "-std=c++17", *STRICT_CPP, *INCLUDES, "-c", "user.cpp", "-o", "/dev/null"]
    assert compiler_output(command, folder) == ""


@pytest.mark.parametrize("suffix", ["", "_weights"])
def test_header_of_another_run_is_refused(tmp_path: Path, suffix: str) -> None:
    """A source that meets the header of another compilation does not compile, and says why."""
    folder = artifact_of(model_module()).export(tmp_path / "out")
    other = artifact_of(model_module(rows_at_once=1))
    (folder / "small.h").write_text(other.source("small.h"))
    said = compiler_output(["gcc", "-std=c99", "-c", f"small{suffix}.c", "-o", "/dev/null"], folder)
    assert "small.h and this file are from different runs" in said


def test_another_runtime_is_refused(tmp_path: Path) -> None:
    """Code that was generated for another version of the C runtime does not compile with it."""
    folder = artifact_of(MODULES["packed_model"]()).export(tmp_path / "out")
    runtime = folder / "runtime_crt" / "include" / "microtir" / "runtime.h"
    text = runtime.read_text().replace(f"RUNTIME_VERSION {RUNTIME_VERSION}", "RUNTIME_VERSION 999")
    runtime.write_text(text)
    command = ["gcc", "-std=c99", *INCLUDES, "-c", "packed_packed.c", "-o", "/dev/null"]
    assert "another version of the microtir runtime" in compiler_output(command, folder)


def test_runtime_version_is_that_of_the_header() -> None:
    """The version that generated code asks for is the one that the runtime has."""
    text = (runtime_crt() / "include" / "microtir" / "runtime.h").read_text("utf-8")
    assert f"#define MICROTIR_RUNTIME_VERSION {RUNTIME_VERSION}\n" in text


def test_output_does_not_depend_on_the_hash_seed() -> None:
    """Two processes with different hash seeds print the same bytes: this one and another."""
    script = (
        "from tests.support.programs import *\n"
        "print(*(f.path + f.text for f in artifact_of(model_module()).sources), sep='')\n"
    )
    root = Path(__file__).resolve().parents[2]
    path = python_path(root / "generator", root)
    other = "1" if os.environ.get("PYTHONHASHSEED") == "77" else "77"
    printed = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONHASHSEED": other, "PYTHONPATH": path},
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    here = artifact_of(model_module()).sources
    assert printed == "".join(file.path + file.text for file in here) + "\n"


def test_text_is_plain(artifact: Artifact) -> None:
    """Files are ASCII, end in one newline, have no tabs, trailing blanks or over-wide lines."""
    for file in artifact.sources:
        if file.path.endswith((".c", ".h")):
            assert file.text.isascii(), file.path
            assert file.text.endswith("\n"), file.path
            assert not file.text.endswith("\n\n"), file.path
            assert "\n\n\n" not in file.text, file.path
            for line in file.text.splitlines():
                assert line == line.rstrip(), f"{file.path}: {line}"
                assert "\t" not in line, f"{file.path}: {line}"
                assert len(line) <= 100, f"{file.path}: {line}"


def test_no_state_and_no_heap(folder: Path) -> None:
    """An object file has no writable data, and asks for no symbol of the heap."""
    units = sorted(folder.rglob("*.c"))
    assert units
    for unit in units:
        command = ["gcc", "-std=c99", "-fno-pie", *INCLUDES, "-c", str(unit), "-o", "unit.o"]
        assert compiler_output(command, folder) == ""
        symbols = subprocess.run(
            ["nm", "unit.o"], cwd=folder, capture_output=True, text=True, check=True
        ).stdout
        kinds = {(line.split()[-2], line.split()[-1]) for line in symbols.splitlines()}
        assert not [name for kind, name in kinds if kind in "bBdDC"], unit.name
        undefined = {name for kind, name in kinds if kind == "U"}
        assert not undefined & {"malloc", "calloc", "realloc", "free"}, unit.name


AWKWARD = ("workspace", "memory", "inputs", "shape_0", "type_1", "status", "small_run", "int32_t")


@pytest.mark.parametrize("name", AWKWARD)
def test_awkward_names_of_tensors(tmp_path: Path, name: str) -> None:
    """A tensor may be called like anything in the generated files, and nothing collides."""
    module = model_module(config(runtime=SYSTEM_LIB))
    assert module.model is not None
    first, last = module.model.ports
    ports = (replace(first, c_name=name), replace(last, c_name=f"{name}_shape"))
    awkward = replace(module, model=replace(module.model, ports=ports))
    folder = artifact_of(awkward).export(tmp_path / "out")
    assert strict_problems(folder, "gcc", "c99") == ""


def test_model_without_layers_and_workspace(tmp_path: Path) -> None:
    """A model that computes nothing still compiles; its workspace may be NULL."""
    module = model_module()
    assert module.model is not None
    main = PrimFunc("main", module.functions[-1].params[:2], seq(), exported=True)
    memory = MemoryPlan((PlannedPool("workspace", 0, 0, 8),), (), True)
    nothing = replace(module, functions=(main,), model=replace(module.model, memory=memory))
    artifact = artifact_of(nothing)
    folder = artifact.export(tmp_path / "out")
    assert strict_problems(folder, "gcc", "c99") == ""
    assert "#define SMALL_WORKSPACE_SIZE      0\n" in artifact.source("small.h")
    assert "NULL is fine" in artifact.source("small.h")
    assert host.load(artifact).run({"image": image()})["scores"].shape == (4, 2)


def test_metadata(artifact: Artifact) -> None:
    """The metadata lists every file and describes what the sources hold."""
    metadata = artifact.metadata
    assert list(metadata.files) == sorted(file.path for file in artifact.sources)
    assert read_metadata(artifact.source("metadata.json").encode()) == metadata
    if metadata.model:
        assert [layer.function for layer in metadata.layers] == [
            f"{metadata.module_name}_layer0_fully_connected",
            f"{metadata.module_name}_layer1_relu",
        ]
        assert metadata.layers[0].macs == 24
        assert metadata.layers[0].outputs == (OutputData("int8", 4, 2, planes=None),)
        assert metadata.weights_bytes == 14


def test_a_module_without_a_configuration_is_refused() -> None:
    """Codegen says that it needs a configuration, and how to give it one."""
    with pytest.raises(ConfigMissing, match="codegen"):
        codegen.emit(replace(model_module(), config=None))


def test_a_module_that_is_not_lowered_is_refused() -> None:
    """A module that has not been lowered is refused with what to do."""
    with pytest.raises(UsageError, match="not lowered"):
        codegen.emit(replace(model_module(), is_lowered=False))


def test_a_program_without_an_entry_is_refused() -> None:
    """A program of which nothing can be called is refused."""
    function = replace(matmul_module().functions[0], exported=False)
    with pytest.raises(UsageError, match="exported=True"):
        codegen.emit(IRModule(functions=(function,), config=config(), is_lowered=True))


def test_lines_of_layers_are_those_of_their_functions() -> None:
    """From a line of C to an operator: the definition, from its first line to its last brace."""
    artifact = artifact_of(MODULES["model"]())
    lines = artifact.source(f"{artifact.metadata.module_name}.c").splitlines()
    assert artifact.metadata.layers
    for layer in artifact.metadata.layers:
        first, last = layer.lines
        assert f" {layer.function}(" in lines[first - 1]
        assert lines[last - 1] == "}"
        assert "{" in lines[first - 1 : last] and "}" not in lines[first - 1 : last - 1]


def test_lines_of_kernels_have_their_layers() -> None:
    """A micro-kernel leads to the layers that call it, and every function of the file is known."""
    module = microtir.frontend.from_tflite(DIGITS)
    artifact = microtir.build(module, CompilationConfig(targets="c -mcpu=cortex-m4"))
    source = artifact.source(f"{artifact.metadata.module_name}.c")
    lines = source.splitlines()
    layers = {layer.function for layer in artifact.metadata.layers}
    kernels = artifact.metadata.kernels
    assert len(kernels) > 5
    for kernel in kernels:
        first, last = kernel.lines
        assert f" {kernel.function}(" in lines[first - 1] and lines[last - 1] == "}"
        assert kernel.layers and set(kernel.layers) <= layers
        for layer in artifact.metadata.layers:
            calls = f" {kernel.function}(" in "\n".join(lines[slice(*layer.lines)])
            assert not calls or layer.function in kernel.layers
    known = layers | {kernel.function for kernel in kernels}
    defined = set(re.findall(r"^static void (\w+)\(", source, re.MULTILINE))
    assert defined <= known and defined
