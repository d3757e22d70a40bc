"""The alignment options, measured on real addresses: constants, workspace, and what lies in it."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import microtir
from microtir.artifact import Artifact
from microtir.boards import ProjectType
from microtir.config import CompilationConfig, ConstantPoolInfo, Executor
from microtir.graph.ir import Array, Graph
from microtir.host.backend import SharedLibrary
from microtir.host.build import Build
from microtir.host.toolchain import find_compiler
from microtir.projects import generate
from tests.support.c_compilers import INCLUDES, STRICT, compiler_output
from tests.support.small_models import (
    mixed_graph,
    module_of,
    quantised_graph,
    reference_outputs,
    sample_inputs,
)

BASE = CompilationConfig(targets="c", optimize="ram-least")
ALIGNMENTS = (1, 2, 4, 8, 16, 32, 64, 128)
_ARRAY = re.compile(r"extern const (\w+) (\w+)\[(\d+)\];")
_ALIGNED = r"(?:\w+_ALIGNED\((\w+)\)\s+)?"
_DECLARED = re.compile(rf"^{_ALIGNED}extern [\w *]*?(\w+)(?:\[[^;]*)?;", re.MULTILINE)
_DEFINED = rf"^{_ALIGNED}[\w *]*?\b{{}}\b(?:\[[^;=]*)? = "
_BYTES = {"int8_t": 1, "int32_t": 4}
MISALIGNED = -2


def artifact_with(model: Graph, **options: int) -> Artifact:
    """Build with `workspace` or `constant` alignment set."""
    named = {f"{name}-byte-alignment": value for name, value in options.items()}
    executor = BASE.executor.with_options(named)
    return microtir.build(module_of(model), BASE.with_(executor=executor))


def room(size: int, alignment: int, offset: int = 0) -> Array:
    """`size` bytes, `offset` bytes behind a multiple of `alignment` and of no greater power."""
    memory = np.full(size + 4 * alignment, 0xA5, np.uint8)
    start = -memory.ctypes.data % (2 * alignment) + alignment + offset
    return memory[start : start + size]


def compile_library(artifact: Artifact, folder: Path, *flags: str) -> ctypes.CDLL:
    """Compile the program strictly, as a library with all its symbols."""
    artifact.export(folder / "sources")
    where = folder / "sources"
    units = [file.path for file in artifact.sources if file.path.endswith(".c")]
    command = ["gcc", "-std=c99", *STRICT, *INCLUDES, "-O0", "-fPIC", "-shared", *flags]
    problems = compiler_output([*command, *units, "-o", "program.so"], where)
    assert not problems, problems
    return ctypes.CDLL(str(where / "program.so"))


@pytest.mark.parametrize("alignment", ALIGNMENTS)
def test_constants_lie_at_multiples(alignment: int, tmp_path: Path) -> None:
    """Every constant array is at a multiple of the option, and of its elements' size at least."""
    artifact = artifact_with(quantised_graph(), constant=alignment)
    library = compile_library(artifact, tmp_path)
    arrays = _ARRAY.findall(artifact.source("default_weights.h"))
    assert {c_type for c_type, _, _ in arrays} == {"int8_t", "int32_t"}
    for c_type, name, count in arrays:
        size = _BYTES[c_type]
        address = ctypes.addressof((ctypes.c_uint8 * (int(count) * size)).in_dll(library, name))
        assert address % max(alignment, size) == 0, name


_POOLS = (
    ConstantPoolInfo("fast", (), {"is_internal": True, "size_hint_bytes": 70, "section": ".fast"}),
    ConstantPoolInfo("slow", (), {"is_internal": True, "byte_alignment": 16}),
)
VARIANTS: dict[str, dict[str, object]] = {
    "plain": {},
    "avr": {"targets": "c -mcpu=atmega2560"},
    "vectors": {"targets": "c -mcpu=x86-64"},
    "sections": {"constant_pools": _POOLS},
    "graph": {"executor": Executor("graph", {"link-params": True})},
    "microtvm": {"compatibility": "microtvm"},
    "apart": {"executor": Executor("aot", {"link-params": False})},
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_declarations_promise_what_definitions_keep(variant: str, tmp_path: Path) -> None:
    """Headers gave no alignment of constants: clang took 16 bytes, which definitions do not."""
    artifact = microtir.build(module_of(quantised_graph()), BASE.with_(**VARIANTS[variant]))
    project = generate(artifact, "host", ProjectType.BAREMETAL, tmp_path / "p")
    files = [path.read_text("utf-8") for path in project.folder.rglob("*.[ch]")]
    files += [file.text for file in artifact.sources if file.path.endswith((".c", ".h"))]
    own = [text for text in files if "default" in text]
    declared = {name: given for text in own for given, name in _DECLARED.findall(text)}
    defined = {
        name: found
        for name in declared
        for text in own
        for found in re.findall(_DEFINED.format(name), text, re.MULTILINE)
    }
    assert any(name.startswith(("default_", "tvmgen_")) for name in declared)
    assert defined == declared


@pytest.mark.parametrize("alignment", ALIGNMENTS)
@pytest.mark.parametrize("make", [quantised_graph, mixed_graph])
def test_buffers_of_the_workspace_lie_at_multiples(
    make: Callable[[], Graph], alignment: int
) -> None:
    """Offsets, size macro, alignment macro and the addresses that layers get agree."""
    model = make()
    artifact = artifact_with(model, workspace=alignment)
    memory = artifact.metadata.memory
    assert memory is not None
    strictest = max(alignment, 4 if make is mixed_graph else 1)
    assert memory.alignment == strictest
    assert re.search(
        rf"#define DEFAULT_WORKSPACE_ALIGNMENT +{strictest}\n", artifact.source("default.h")
    )
    assert all(placed.offset % alignment == 0 for placed in memory.placements)

    library = SharedLibrary.compiled(artifact, Build(find_compiler(), 0, debug=True))
    inputs = sample_inputs(model)
    expected = list(reference_outputs(model, inputs).values())
    results = [np.empty_like(array) for array in expected]
    workspace = room(memory.workspace_size, strictest)
    first = workspace.ctypes.data
    seen: list[tuple[int, int]] = []
    with library.hooked(lambda layer, _output, address, *_rows: seen.append((layer, address))):
        assert library.run(list(inputs.values()), results, workspace) == 0
    for result, array in zip(results, expected, strict=True):
        np.testing.assert_array_equal(result, array)
    inside = [(n, a) for n, a in seen if first <= a < first + memory.workspace_size]
    assert inside
    for layer, address in inside:
        (output,) = artifact.metadata.layers[layer].outputs
        assert address % max(alignment, np.dtype(output.dtype).itemsize) == 0


@pytest.mark.parametrize("alignment", [1, 4, 16])
def test_a_misaligned_workspace_is_refused_at_run_time(alignment: int) -> None:
    """Every offset but multiples of the alignment gives the status, before anything is written."""
    model = quantised_graph()
    artifact = artifact_with(model, workspace=alignment)
    memory = artifact.metadata.memory
    assert memory is not None
    library = SharedLibrary.compiled(artifact, Build(find_compiler(), 0))
    inputs = list(sample_inputs(model).values())
    (expected,) = reference_outputs(model, sample_inputs(model)).values()
    for offset in range(2 * alignment + 1):
        result = np.full_like(expected, 0x55)
        workspace = room(memory.workspace_size, alignment, offset)
        status = library.run(inputs, [result], workspace)
        assert status == (0 if offset % alignment == 0 else MISALIGNED)
        if status:
            assert library.status_text(status) == "the workspace is not aligned"
            assert (result == 0x55).all() and (workspace == 0xA5).all()
        else:
            np.testing.assert_array_equal(result, expected)


def test_inputs_and_outputs_of_bytes_may_lie_anywhere() -> None:
    """Tensors of int8 are read and written at every offset from 0 to 7."""
    model = quantised_graph()
    artifact = artifact_with(model, workspace=8, constant=8)
    memory = artifact.metadata.memory
    assert memory is not None
    library = SharedLibrary.compiled(artifact, Build(find_compiler(), 2))
    (data,) = sample_inputs(model).values()
    (expected,) = reference_outputs(model, sample_inputs(model)).values()
    for offset in range(8):
        given = room(data.size, 8, offset).view(np.int8)
        given[:] = data.reshape(-1)
        result = room(expected.size, 8, 7 - offset).view(np.int8)
        assert library.run([given], [result], room(memory.workspace_size, 8)) == 0
        np.testing.assert_array_equal(result, expected.reshape(-1))


@pytest.mark.parametrize("standard", ["-std=c99", "-std=c11"])
def test_the_workspace_macro_declares_an_aligned_array(standard: str, tmp_path: Path) -> None:
    """What the header's macro declares is accepted by the entry function."""
    artifact = artifact_with(quantised_graph(), workspace=64)
    artifact.export(tmp_path / "sources")
    text = '#include "default.h"\nstatic char before; static DEFAULT_WORKSPACE(memory);\n'
    text += "void *address(void);\nvoid *address(void) { before = 1; return memory; }\n"
    (tmp_path / "sources" / "user.c").write_text(text, encoding="utf-8")
    command = ["gcc", standard, *STRICT, *INCLUDES, "-O0", "-fPIC", "-shared", "user.c"]
    assert not compiler_output([*command, "-o", "user.so"], tmp_path / "sources")
    address = ctypes.CDLL(str(tmp_path / "sources" / "user.so"))["address"]
    address.restype = ctypes.c_void_p
    assert address() % 64 == 0
