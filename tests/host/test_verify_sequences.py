"""Samples that are sequences: read, run from the state of the file, and compared step by step."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import microtir
from microtir import CompilationConfig
from microtir.artifact import Artifact
from microtir.codegen import SourceFile
from microtir.dtype import DType
from microtir.errors import DataFileError, RunError, ToolError
from microtir.graph.ir import Graph, TensorType
from microtir.host.oracle import Oracle, expected_outputs
from microtir.host.samples import Fill, SampleBatch, filled, read_golden, read_inputs
from microtir.host.tolerance import ExactRuns, RelativeTolerance, rounding_of
from microtir.host.verify import verify
from microtir.module.ir_module import ModelInfo, Port, PortKind, StatePort
from microtir.tir.memory_plan import MemoryPlan
from tests.support.networks_over_time import named_network, on_windows
from tests.support.small_models import module_of
from tests.support.stateful import random_model, running_sum

SUM = running_sum(np.array([[3.0, -7.5]], np.float32))
ROW, PAIR = TensorType((1, 4), DType.FLOAT32), TensorType((3,), DType.FLOAT32)
EXACT = RelativeTolerance(0.0)


def info(*inputs: TensorType) -> ModelInfo:
    """Facts about a model with a state, with these inputs and an output."""
    ports = [Port(PortKind.INPUT, f"x{n}", f"x{n}", type_) for n, type_ in enumerate(inputs)]
    ports.append(Port(PortKind.OUTPUT, "y", "y", ROW))
    kept = StatePort("kept", "kept", ROW, None, 4)
    return ModelInfo("m", tuple(ports), "m.tflite", "", 0, MemoryPlan((), (), True), states=(kept,))


def zeros(*shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """An array of nothing."""
    return np.zeros(shape, np.float32)


def save(path: Path, **arrays: object) -> Path:
    """Write an .npz file."""
    np.savez(path, **arrays)  # type: ignore[arg-type]
    return path


def test_pushes_are_compared_with_whole_windows() -> None:
    """Each sample begins with an empty window; a C that shifts its rows wrongly differs."""
    whole = named_network("strided_same", DType.INT8)
    config = CompilationConfig(targets="c", stream_axis="1", optimize="speed")
    artifact = microtir.build(module_of(whole), config)
    graph, model = artifact.module.graph, artifact.module.model
    assert graph is not None and model is not None
    inputs = filled(model.inputs, 2, Fill.RANDOM, 3, steps=9)
    expected = expected_outputs(Oracle.REFERENCE, graph, b"", inputs)
    (x,) = whole.arguments
    for sample in range(2):
        frames = [run[x.name] for run in inputs.values[9 * sample : 9 * sample + 9]]
        for step, (_, outputs) in enumerate(on_windows(whole, 1, 1, frames)):
            for name, value in outputs.items():
                np.testing.assert_array_equal(expected.values[9 * sample + step][name], value)
    planned = artifact.module.require_program("test").graph
    assert verify(artifact, planned, inputs, expected, EXACT).equal
    wrong = replace(artifact, sources=tuple(without_phases(s) for s in artifact.sources))
    verdict = verify(wrong, planned, inputs, expected, EXACT)
    assert not verdict.equal


def without_phases(source: SourceFile) -> SourceFile:
    """The same C, whose pushes never take the next turn."""
    return replace(source, text=source.text.replace("+ 1u) % 2u;", "+ 2u) % 2u;"))


@pytest.mark.parametrize(
    ("shapes", "runs", "steps"),
    [
        (((5, 1, 4), (5, 3)), 5, None),
        (((5, 4), (5, 3)), 5, None),
        (((2, 6, 1, 4), (2, 6, 3)), 12, 6),
        (((2, 6, 4), (2, 6, 3)), 12, 6),
        # Of one step each: nobody can tell, and nothing differs.
        (((2, 1, 4), (2, 1, 3)), 2, 1),
    ],
)
def test_axes_of_a_file(
    tmp_path: Path, shapes: tuple[tuple[int, ...], ...], runs: int, steps: int | None
) -> None:
    """The first axis counts samples, the second one steps, and a leading 1 may be missing."""
    one, other = (np.arange(np.prod(s), dtype=np.float32).reshape(s) for s in shapes)
    found = read_inputs(save(tmp_path / "x.npz", x0=one, x1=other), info(ROW, PAIR))
    assert (len(found), found.steps) == (runs, steps)
    assert found.values[-1]["x0"].tolist() == [[4 * runs - 4 + n for n in range(4)]]
    assert found.values[1]["x1"].tolist() == [3, 4, 5]
    assert [len(sample) for sample in found.samples()] == [steps or 1] * (runs // (steps or 1))
    stacked = found.stack([{"y": run["x1"]} for run in found.values])["y"]
    assert stacked.shape == ((runs, 3) if steps is None else (runs // steps, steps, 3))
    np.testing.assert_array_equal(stacked.ravel(), other.ravel())
    assert len(found.first(1)) == (steps or 1)


@pytest.mark.parametrize(
    ("shapes", "text"),
    [
        (((2, 6, 1, 4), (2, 5, 3)), "the number of steps differs: x0 has 6, x1 has 5"),
        (((2, 6, 1, 4), (2, 3)), "the number of steps differs: x0 has 6, x1 has 1"),
        (((2, 6, 1, 4), (3, 6, 3)), "the number of samples differs"),
        (((2, 0, 1, 4), (2, 0, 3)), r"has the shape \(2, 0, 1, 4\)"),
        (((2, 6, 5), (2, 6, 3)), r"expected: \(samples, 1, 4\) or \(samples, steps, 1, 4\)"),
        (((2, 2, 6, 1, 4), (2, 2, 6, 3)), r"has the shape \(2, 2, 6, 1, 4\)"),
    ],
)
def test_axes_that_do_not_fit(
    tmp_path: Path, shapes: tuple[tuple[int, ...], ...], text: str
) -> None:
    """What is no sequence, or none for all inputs alike, is refused by what is legal."""
    one, other = (zeros(*s) for s in shapes)
    with pytest.raises((DataFileError, RunError), match=text):
        read_inputs(save(tmp_path / "x.npz", x0=one, x1=other), info(ROW, PAIR))


def test_a_model_without_a_state_has_no_sequences(tmp_path: Path) -> None:
    """A second axis would be a mistake there."""
    path = save(tmp_path / "x.npz", x0=zeros(2, 6, 1, 4))
    with pytest.raises(RunError, match=r"expected: \(samples, 1, 4\)$"):
        read_inputs(path, replace(info(ROW), states=()))


def test_golden_files(tmp_path: Path) -> None:
    """Inputs and outputs have the same steps; a model without inputs has those of its outputs."""
    path = save(tmp_path / "g.npz", inputs=zeros(2, 6, 4), outputs=zeros(2, 6, 1, 4))
    inputs, outputs = read_golden(path, info(ROW))
    assert (len(inputs), inputs.steps) == (len(outputs), outputs.steps) == (12, 6)
    without, _ = read_golden(path, info())
    assert (len(without), without.steps, without.values[0]) == (12, 6, {})
    path = save(tmp_path / "h.npz", inputs=zeros(2, 6, 4), outputs=zeros(2, 3, 1, 4))
    with pytest.raises(DataFileError, match=r"2 samples of 6 steps of inputs, but 2 .* of 3 steps"):
        read_golden(path, info(ROW))


class Compiled:
    """A model with random sequences, and what the reference makes of them."""

    def __init__(self, data: bytes, samples: int = 3, steps: int | None = 10) -> None:
        module = microtir.frontend.from_tflite(data)
        config = CompilationConfig(targets="c", module_name="net")
        self.artifact: Artifact = microtir.build(module, config)
        assert module.graph is not None and self.artifact.module.model is not None
        self.graph: Graph = module.graph
        self.planned = self.artifact.module.require_program("test").graph
        self.inputs = filled(self.artifact.module.model.inputs, samples, Fill.RANDOM, steps=steps)
        self.expected = expected_outputs(Oracle.REFERENCE, self.graph, b"", self.inputs)


@pytest.mark.parametrize("steps", [None, 10])
def test_samples_begin_with_the_state_of_the_file(steps: int | None) -> None:
    """Reference, oracle and C agree: what a sample leaves is not there for the next."""
    model = Compiled(SUM, steps=steps)
    firsts = [runs[0]["out"] for runs in model.expected.samples()]
    assert all(np.array_equal(first, [[6.0, -15.0]]) for first in firsts)
    by_tflm = expected_outputs(Oracle.TFLM, model.graph, SUM, model.inputs)
    assert by_tflm.steps == steps
    for run, outputs in zip(model.expected.values, by_tflm.values, strict=True):
        np.testing.assert_array_equal(run["out"], outputs["out"])
    verdict = verify(
        model.artifact, model.planned, model.inputs, by_tflm, EXACT, every_layer=True
    )  # fmt: skip
    assert verdict.equal and verdict.layers_checked
    assert (verdict.comparison.samples, verdict.comparison.steps) == (3, steps)


def test_the_first_difference_has_a_sample_and_a_step() -> None:
    """A wrong value of the reference is found where it is."""
    model = Compiled(random_model(1, "int8"))
    values = list(model.expected.values)
    name = next(iter(values[0]))
    values[17] = {**values[17], name: values[17][name] + np.int8(1)}
    verdict = verify(
        model.artifact, model.planned, model.inputs, SampleBatch(tuple(values), steps=10), EXACT
    )
    (difference,) = verdict.comparison.differences
    assert (difference.sample, difference.step, difference.output) == (1, 7, name)
    assert difference.place == "sample 1, step 7"
    assert (verdict.layers_checked, verdict.first_wrong_layer) == (True, None)


def test_the_wrong_layer_of_a_later_step() -> None:
    """A wrong new value of the state shows one step later, and its layer is found there."""
    model = Compiled(SUM)

    def spoiled(file: SourceFile) -> SourceFile:
        wrong = file.text.replace("x0[ch] + x1[ch]", "x0[ch] + x1[ch] + 1.0f")
        return SourceFile(file.path, wrong) if file.path == "net.c" else file

    artifact = replace(model.artifact, sources=tuple(map(spoiled, model.artifact.sources)))
    assert artifact.sources != model.artifact.sources
    verdict = verify(artifact, model.planned, model.inputs, model.expected, EXACT)
    first, layer = verdict.comparison.differences[0], verdict.first_wrong_layer
    assert (first.sample, first.step) == (0, 1)
    assert layer is not None and layer.name == "new"
    assert (layer.difference.sample, layer.difference.step) == (0, 1)
    written = verdict.to_dict()["first_wrong_layer"]
    assert written is not None and (written["sample"], written["step"]) == (0, 1)


def test_exact_values_go_on_over_steps() -> None:
    """The middle of a tolerance is the exact sum of all steps, in any order of asking."""
    model = Compiled(SUM, samples=2, steps=9)
    exact = ExactRuns(model.graph, model.inputs.values, 9)
    for run in (13, 4, 17, 9, 0):
        start = run - run % 9
        given = [inputs["x"].astype(np.float64) for inputs in model.inputs.values[start:run]]
        total = np.array([[3.0, -7.5]]) + sum(given)
        np.testing.assert_allclose(exact(run)["out"], 2 * total, rtol=1e-14)
    rule = rounding_of(model.graph, model.inputs.values, 9)
    assert rule.terms == 9 * rounding_of(model.graph, model.inputs.values).terms


def test_an_oracle_has_a_time_limit() -> None:
    """An oracle that does not end does not take this process with it."""
    model = Compiled(SUM, samples=1)
    with pytest.raises(ToolError, match=r"(?s)did not end within 0\.01 seconds.*fix:"):
        expected_outputs(Oracle.TFLM, model.graph, SUM, model.inputs, seconds=0.01)
