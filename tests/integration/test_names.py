"""module_name and the pool's name: what they name, also where names collide."""

from __future__ import annotations

import ctypes
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import microtir
from microtir.artifact import Artifact
from microtir.config import CompilationConfig, Executor, Runtime, WorkspacePoolInfo
from microtir.graph.ir import Array, Graph, Tensor
from tests.support.c_compilers import (
    CPP_COMPILERS,
    INCLUDES,
    STRICT,
    STRICT_CPP,
    compiler_output,
)
from tests.support.program_text import program_text
from tests.support.small_models import (
    module_of,
    reference_outputs,
    sample_inputs,
    tiny_graph,
    two_ports_graph,
)

BASE = CompilationConfig(targets="c", runtime=Runtime("crt", {"system-lib": True}))


def run(artifact: Artifact, folder: Path) -> Array:
    """Compile strictly, as C and with the header included from C++, and run the model once."""
    name = artifact.metadata.module_name
    artifact.export(folder)
    units = [file.path for file in artifact.sources if file.path.endswith(".c")]
    command = ["gcc", "-std=c99", *STRICT, *INCLUDES, "-O0", "-fPIC", "-shared"]
    assert not compiler_output([*command, *units, "-o", "program.so"], folder)
    (folder / "user.cpp").write_text(f'#include "{name}.h"\n', encoding="utf-8")
    cpp = [CPP_COMPILERS[0], "-std=c++17", *STRICT_CPP, *INCLUDES, "-fsyntax-only", "user.cpp"]
    assert not compiler_output(cpp, folder)

    entry = ctypes.CDLL(str(folder / "program.so"))[f"{name}_run"]
    model = tiny_graph()
    (data,) = sample_inputs(model).values()
    result = np.zeros(model.outputs[0].shape, np.int8)
    workspace = np.zeros(1024, np.uint8)
    inputs, outputs = ((ctypes.c_void_p * 1)(a.ctypes.data) for a in (data, result))
    address = -(-workspace.ctypes.data // 128) * 128
    entry.argtypes = [ctypes.c_void_p] * 3
    assert entry(ctypes.addressof(inputs), ctypes.addressof(outputs), address) == 0
    return result


def expected() -> Array:
    """Return the reference's output for the input that `run` uses."""
    (array,) = reference_outputs(tiny_graph(), sample_inputs(tiny_graph())).values()
    return array


@pytest.mark.parametrize(
    "name", ["default", "MyNet", "net_2", "x", "a" * 48, "INPUT1", "NULL", "memcpy"]
)
def test_module_name_names_files_functions_and_macros(name: str, tmp_path: Path) -> None:
    """Every generated file, public function, struct and macro begins with the option's value."""
    artifact = microtir.build(module_of(tiny_graph()), BASE.with_(module_name=name))
    np.testing.assert_array_equal(run(artifact, tmp_path / "sources"), expected())
    own = [f for f in artifact.sources if not f.path.startswith(("runtime_crt/", "metadata.json"))]
    assert [f.path for f in own] == [
        f"{name}{suffix}"
        for suffix in (".h", ".c", "_weights.h", "_weights.c", "_packed.h", "_packed.c",
                       "_system_lib.c")
    ]  # fmt: skip
    header = program_text(artifact)[f"{name}.h"]
    assert all(m.startswith(f"{name.upper()}_") for m in re.findall(r"#define (\w+)", header))
    assert set(re.findall(r"^struct (\w+)", header, re.MULTILINE)) == {
        f"{name}_inputs", f"{name}_outputs", f"{name}_workspace",
    }  # fmt: skip
    functions = re.findall(r"^(?:int32_t |const char \*)(\w+)\(", header, re.MULTILINE)
    assert functions == [f"{name}_run", f"{name}_status_text"]


def test_the_model_keeps_its_own_name() -> None:
    """graph.name is the model's in the metadata; the module is called what the option says."""
    metadata = microtir.build(module_of(tiny_graph()), BASE.with_(module_name="kws")).metadata
    assert metadata.model is not None
    assert (metadata.module_name, metadata.model.name) == ("kws", "test")


def test_module_name_changes_names_only() -> None:
    """Two builds that differ in the name are one program but for it."""
    one, other = (
        program_text(microtir.build(module_of(tiny_graph()), BASE.with_(module_name=name)))
        for name in ("aaaaaaa", "bbbbbbb")
    )
    renamed = {
        path.replace("aaaaaaa", "bbbbbbb"): text.replace("aaaaaaa", "bbbbbbb").replace(
            "AAAAAAA", "BBBBBBB"
        )
        for path, text in one.items()
    }
    assert renamed == other


ODD_NAMES = (
    ("NULL", "INT8_MAX", "__LINE__", "int8_t"),
    ("workspace", "default_workspace", "run", "status"),
    ("DEFAULT_OK", "DEFAULT_STACK_SIZE", "linux", "errno"),
    ("a\x01\x7f\\", 'a\n"??/', "constexpr", "concept"),
    ("left", "left_row", "sram_workspace_pool", "Left"),
)
GRAPH_WITH_NAMES = Executor("debug", {"link-params": True})
BY_ROWS = Executor("aot", {"row-fed-inputs": True, "row-drained-outputs": True})
POOLS = [WorkspacePoolInfo("sram", (), {}), WorkspacePoolInfo("INT8_MAX", (), {})]
ODD_CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "pools": {"workspace_pools": POOLS},
    "rows": {"executor": BY_ROWS, "optimize": "ram-least"},
    "packed": {"executor": Executor("aot", {"interface-api": "packed"})},
    "debug": {"executor": GRAPH_WITH_NAMES},
    "microtvm": {"compatibility": "microtvm", "workspace_pools": POOLS},
    "microtvm-module": {"compatibility": "microtvm", "runtime": BASE.runtime},
}


def named(graph: Graph, names: tuple[str, ...]) -> Graph:
    """Return the graph whose inputs, outputs and layers have these names."""
    renamed = dict(zip((*graph.inputs, *graph.outputs), names, strict=True))
    changed = {tensor: replace(tensor, name=name) for tensor, name in renamed.items()}

    def of(tensors: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return tuple(changed.get(tensor, tensor) for tensor in tensors)

    nodes = tuple(
        replace(node, inputs=of(node.inputs), outputs=of(node.outputs), name=name)
        for node, name in zip(graph.nodes, names, strict=False)
    )
    return replace(graph, nodes=nodes, inputs=of(graph.inputs), outputs=of(graph.outputs))


@pytest.mark.parametrize("kind", ODD_CONFIGURATIONS)
@pytest.mark.parametrize("names", ODD_NAMES, ids=lambda names: names[-1])
def test_names_in_a_model_break_no_c(names: tuple[str, ...], kind: str, tmp_path: Path) -> None:
    """Names of macros, of types and with control characters gave C that did not compile."""
    config = CompilationConfig(targets="c").with_(**ODD_CONFIGURATIONS[kind])
    artifact = microtir.build(module_of(named(two_ports_graph(), names)), config)
    folder = artifact.export(tmp_path / "sources")
    units = sorted(path.name for path in folder.glob("*.c"))
    for standard in ("-std=c99", "-std=gnu11"):
        command = ["gcc", standard, "-O1", *STRICT, *INCLUDES, "-fsyntax-only", *units]
        assert not compiler_output(command, folder)
    headers = [path.name for path in folder.glob("*.h") if "weights" not in path.name]
    text = "".join(f"#include {name}\n" for name in ("<math.h>", *(f'"{h}"' for h in headers)))
    (folder / "user.cpp").write_text(text, encoding="utf-8")
    cpp = [CPP_COMPILERS[0], "-std=gnu++17", *STRICT_CPP, *INCLUDES, "-fsyntax-only"]
    assert not compiler_output([*cpp, "user.cpp"], folder)


@pytest.mark.parametrize(
    ("pool", "parameter"),
    [
        ("workspace", "workspace"),
        ("sram", "sram"),
        ("dtcm-2", "dtcm_2"),
        ("a.b-c", "a_b_c"),
        ("memory", "memory"),
        ("inputs", "inputs_2"),
        ("outputs", "outputs_2"),
        ("x", "x"),
        ("memcpy", "memcpy_2"),
        ("uint8_t", "t_uint8_t"),
        ("INT8_MAX", "t_INT8_MAX"),
        ("default_run", "default_run_2"),
        ("activation_0", "activation_0"),
    ],
)
def test_pool_name_names_the_workspace_parameter(pool: str, parameter: str, tmp_path: Path) -> None:
    """The pool is the parameter of the run function, under a name that C allows there."""
    artifact = microtir.build(module_of(tiny_graph()), BASE.with_(workspace_pools=[pool]))
    signature = re.search(r"default_run\(([^)]*)\);", artifact.source("default.h"))
    assert signature is not None
    assert signature[1].split(",")[-1].split("*")[-1] == parameter
    np.testing.assert_array_equal(run(artifact, tmp_path / "sources"), expected())
