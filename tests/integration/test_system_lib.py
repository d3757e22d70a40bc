"""The RFC's own configuration, which microTVM never compiled: here it is built, linked and run."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

import microtir
from microtir import CompilationConfig, Executor, Runtime, Target
from microtir.graph.ir import Graph
from tests.support.c_compilers import C_COMPILERS, INCLUDES, STRICT, compiler_output
from tests.support.small_models import (
    module_of,
    quantised_graph,
    reference_outputs,
    sample_inputs,
)

MAIN = Path(__file__).with_name("system_lib_main.c")
HOST_COMPILERS = [name for name in C_COMPILERS if name in ("gcc", "clang")]


def rfc_config() -> CompilationConfig:
    """Return the example of microTVM's RFC on configuration, to the letter."""
    return CompilationConfig(
        target_host=Target("c"),
        targets=[Target("c -mcpu=cortex-m4")],
        executor=Executor("aot", {"interface-api": "c", "unpacked-api": True}),
        runtime=Runtime("crt", {"system-lib": True}),
    )


def executed(model: Graph, config: CompilationConfig, folder: Path, compiler: str) -> list[str]:
    """Return what the application prints, compiled with every warning an error."""
    artifact = microtir.build(module_of(model), config)
    artifact.export(folder)
    (folder / MAIN.name).write_text(MAIN.read_text(encoding="utf-8"), encoding="utf-8")
    units = [file.path for file in artifact.sources if file.path.endswith(".c")]
    shapes = {"INPUT": model.inputs[0].type, "OUTPUT": model.outputs[0].type}
    facts = [
        flag
        for name, type_ in shapes.items()
        for flag in (
            f"-D{name}_ELEMENTS={type_.elements}",
            f"-D{name}_SHAPE={{{','.join(str(extent) for extent in type_.shape)}}}",
        )
    ]
    command = [compiler, "-std=c99", *STRICT, *INCLUDES, *facts, "-O1", MAIN.name, *units]
    assert not compiler_output([*command, "-o", "application"], folder)
    (data,) = sample_inputs(model).values()
    done = subprocess.run(
        [str(folder / "application")],
        input=data.tobytes(), capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    return done.stdout.decode().splitlines()


@pytest.mark.parametrize("compiler", HOST_COMPILERS)
def test_d1_the_rfc_example_compiles_links_and_runs(compiler: str, tmp_path: Path) -> None:
    """Found by name in the system library and called packed, the model gives the reference."""
    model = quantised_graph()
    (expected,) = reference_outputs(model, sample_inputs(model)).values()
    packed, typed = executed(model, rfc_config(), tmp_path / "sources", compiler)
    np.testing.assert_array_equal(np.array(packed.split(), np.int8), expected.reshape(-1))
    assert typed == packed


def test_the_packed_interface_is_there_only_when_asked_for() -> None:
    """Without system-lib no file of the runtime and no packed function is generated."""
    plain = microtir.build(module_of(quantised_graph()), rfc_config().with_(runtime=Runtime("crt")))
    paths = [file.path for file in plain.sources]
    assert not any("packed" in path or "runtime_crt" in path for path in paths)
    asked = microtir.build(module_of(quantised_graph()), rfc_config())
    assert {"default_packed.c", "default_system_lib.c", "runtime_crt/src/registry.c"} <= {
        file.path for file in asked.sources
    }
