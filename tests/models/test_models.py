from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from microtir import CompilationConfig, Executor, Target, build, frontend, host, lower
from microtir.artifact import Artifact
from microtir.cli.building import build_model
from microtir.cli.progress import Progress
from microtir.config import Numerics, Optimize
from microtir.graph.ir import Array, Graph
from microtir.host.backend import SharedLibrary
from microtir.host.build import Build
from microtir.host.model import Model
from microtir.host.oracle import Oracle, expected_outputs
from microtir.host.samples import SampleBatch, read_golden
from microtir.host.tolerance import rounding_of
from microtir.host.toolchain import find_compiler
from microtir.host.verify import verify
from microtir.module.ir_module import IRModule

MODELS = (
    "ad01_float",
    "ad01_int8",
    "kws_hybrid",
    "kws_int8",
    "resnet8_float",
    "resnet8_int8",
    "strww_int8",
    "vww_float",
    "vww_int8",
)
EACH = [pytest.param(name, marks=pytest.mark.model(name)) for name in MODELS]


@dataclass(frozen=True, slots=True)
class Compiled:
    """A model compiled as the command line does it, with its golden samples."""

    artifact: Artifact
    graph: Graph
    planned: Graph
    inputs: SampleBatch
    expected: SampleBatch


@pytest.fixture(scope="module")
def compiled(models_dir: Path) -> Callable[[str], Compiled]:
    """Compiles a model by name, each once."""
    done: dict[str, Compiled] = {}

    def get(name: str) -> Compiled:
        if name not in done:
            done[name] = compile_model(models_dir, name)
        return done[name]

    return get


def compile_model(
    models_dir: Path,
    name: str,
    suffix: str = ".tflite",
    target: str | Target = "c",
    numerics: Numerics = Numerics.MODEL,
    optimize: Optimize = Optimize.BALANCED,
) -> Compiled:
    """Compile a model and read its golden file."""
    config = CompilationConfig(
        targets=target, module_name=name, numerics=numerics, optimize=optimize
    )
    built = build_model(str(models_dir / f"{name}{suffix}"), config, Progress())
    golden = read_golden(models_dir / f"{name}.golden.npz", built.model)
    return Compiled(built.artifact, built.graph, built.program.graph, *golden)


@pytest.mark.parametrize("name", EACH)
def test_golden_outputs(compiled: Callable[[str], Compiled], name: str) -> None:
    """Integers are identical to the golden outputs, floats as near to the exact values."""
    model = compiled(name)
    tolerance = rounding_of(model.graph, model.inputs.values)
    verdict = verify(model.artifact, model.planned, model.inputs, model.expected, tolerance)
    assert verdict.equal, verdict.to_dict()


# Each kind of values once; the soak has all.
WITH_CLANG = [
    pytest.param(p.values[0], marks=[*p.marks, pytest.mark.soak_only])
    if p.values[0] not in ("ad01_float", "kws_hybrid", "kws_int8")
    else p
    for p in EACH
]


@pytest.mark.parametrize("name", WITH_CLANG)
def test_clang_for_this_processor(compiled: Callable[[str], Compiled], name: str) -> None:
    """Outputs are right with clang's vectors, which fault where constants are less aligned."""
    model = compiled(name)
    how = Build(find_compiler("clang"), 3, native=True)
    program = Model(model.artifact, SharedLibrary.compiled(model.artifact, how))

    def run(samples: SampleBatch) -> list[dict[str, Array]]:
        return [program.run(inputs) for inputs in samples.values]

    tolerance = rounding_of(model.graph, model.inputs.values)
    verdict = verify(
        model.artifact, model.planned, model.inputs, model.expected, tolerance,
        board="clang", run=run,
    )  # fmt: skip
    assert verdict.equal, verdict.to_dict()


@pytest.mark.parametrize("name", EACH)
def test_layers(compiled: Callable[[str], Compiled], name: str) -> None:
    """Every layer of the C agrees with the numpy reference; no golden file hides two errors."""
    model = compiled(name)
    one = SampleBatch(model.inputs.values[:1])
    expected = expected_outputs(Oracle.REFERENCE, model.graph, b"", one)
    tolerance = rounding_of(model.graph, one.values)
    verdict = verify(model.artifact, model.planned, one, expected, tolerance, every_layer=True)
    assert verdict.equal and verdict.layers_checked, verdict.to_dict()


@pytest.mark.parametrize("name", EACH)
def test_sanitizers_and_poison(compiled: Callable[[str], Compiled], name: str) -> None:
    """The sanitizers find nothing, and what the workspace held before does not matter."""
    model = compiled(name)
    program = host.load(model.artifact, sanitize=True)
    inputs = model.inputs.values[-1]
    first, second = (program.run(inputs, fill_workspace=fill) for fill in (0xA5, 0x5A))
    for output, array in first.items():
        assert np.array_equal(array, second[output])
        assert array.tobytes() == second[output].tobytes()


# Every executor and interface that is not the usual one; the graph is run for every model.
EXECUTORS = {
    "graph": Executor("graph"),
    "graph-linked": Executor("graph", {"link-params": True}),
    "debug": Executor("debug"),
    "packed": Executor("aot", {"interface-api": "packed"}),
    "packed-unpacked": Executor("aot", {"interface-api": "packed", "unpacked-api": True}),
}
SMALL = ("ad01_int8", "kws_int8", "strww_int8")
EXECUTED = [
    pytest.param(model.values[0], kind, marks=model.marks)
    for model in EACH
    for kind in EXECUTORS
    if kind == "graph" or model.values[0] in SMALL
]


@pytest.mark.parametrize(("name", "kind"), EXECUTED)
def test_every_executor_gives_the_same_bytes(
    compiled: Callable[[str], Compiled], name: str, kind: str
) -> None:
    """Tables of calls, packed arguments and weights in a file change no byte of an output.

    Executors print one main in different ways: the model is lowered once.
    """
    model = compiled(name)
    config = model.artifact.module.require_config("test").with_(executor=EXECUTORS[kind])
    program = host.load(model.artifact)
    other = host.load(build(replace(model.artifact.module, config=config)), opt_level=0)
    for inputs in model.inputs.values[:2]:
        expected = program.run(inputs)
        for output, array in other.run(inputs).items():
            assert array.tobytes() == expected[output].tobytes()


@pytest.mark.parametrize("name", EACH)
def test_workspace_gap(models_dir: Path, compiled: Callable[[str], Compiled], name: str) -> None:
    """The workspace is verified, and as small as any placement of its buffers can be.

    The bound that the heuristic states counts bytes of a moment, and as shared what may be; the
    solver's is what its search has excluded.
    """
    lowered = compiled(name).artifact.module
    assert lowered.model is not None and lowered.model.memory.verified
    module = frontend.from_tflite(models_dir / f"{name}.tflite")
    least = _least(module.with_configuration(lowered.require_config("test")))
    assert lowered.model.memory.workspace_size == least


@pytest.mark.parametrize("name", EACH)
def test_whole_tensors_leave_no_gap(models_dir: Path, name: str) -> None:
    """The same where nothing streams."""
    config = CompilationConfig(targets="c", optimize="speed")
    module = frontend.from_tflite(models_dir / f"{name}.tflite").with_configuration(config)
    info = lower(module).model
    assert info is not None and info.memory.verified
    assert info.memory.workspace_size == _least(module)


def _least(module: IRModule) -> int:
    """The bytes of a workspace below which the solver has proven that no placement goes."""
    config = module.require_config("test").with_(pass_config={"memory.placement": "optimal"})
    info = lower(module.with_configuration(config)).model
    assert info is not None and info.memory.gap == 0
    return info.memory.workspace_size


@pytest.mark.parametrize("name", [p for p in EACH if p.values[0] != "kws_hybrid"])
def test_golden_outputs_are_of_tflm(
    compiled: Callable[[str], Compiled], models_dir: Path, name: str
) -> None:
    """tflite-micro gives the golden outputs again; it refuses hybrid models."""
    model = compiled(name)
    data = (models_dir / f"{name}.tflite").read_bytes()
    given = replace(model.inputs, values=model.inputs.values[:2])
    found = expected_outputs(Oracle.TFLM, model.graph, data, given)
    for got, expected in zip(found.values, model.expected.values[:2], strict=True):
        assert all(np.array_equal(got[output], expected[output]) for output in expected)
