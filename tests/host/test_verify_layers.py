from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from microtir import CompilationConfig
from microtir.artifact import Artifact
from microtir.cli.building import build_model
from microtir.cli.progress import Progress
from microtir.codegen import SourceFile
from microtir.errors import ToolError
from microtir.frontend import from_tflite
from microtir.host.child_process import run_in_child
from microtir.host.oracle import Oracle, expected_outputs
from microtir.host.samples import Fill, SampleBatch, filled
from microtir.host.tolerance import RelativeTolerance, rounding_of
from microtir.host.verify import verify
from microtir.operators.common.tflite_schema import BuiltinOperator
from microtir.operators.convolution.tflite import DepthwiseConv2DOptions
from tests.frontend.models import Value
from tests.frontend.models import model as one_operator
from tests.support.command import FLOAT, INT8
from tests.support.hybrid import hybrid_model
from tests.support.tflm import run_tflm

EXACT = RelativeTolerance(0.0)


class Compiled:
    """The digits model, its graphs, and random inputs with their reference outputs."""

    def __init__(self, path: Path, samples: int = 3) -> None:
        config = CompilationConfig(targets="c", module_name="net")
        built = build_model(str(path), config, Progress())
        self.artifact, self.graph, self.planned = built.artifact, built.graph, built.program.graph
        self.inputs = filled(built.model.inputs, samples, Fill.RANDOM)
        self.expected = expected_outputs(Oracle.REFERENCE, self.graph, b"", self.inputs)


@pytest.fixture(scope="module")
def digits() -> Compiled:
    """Return the int8 model."""
    return Compiled(INT8)


def spoiled(artifact: Artifact, array: str) -> Artifact:
    """Return the artifact with the first value of one constant array changed."""

    def spoil(file: SourceFile) -> SourceFile:
        pattern = re.compile(rf"({array}\[\d+\] = \{{\s*)(-?\d+)")
        if not file.path.endswith("_weights.c"):
            return file
        text, count = pattern.subn(lambda m: f"{m[1]}{int(m[2]) // 2 + 40}", file.text)
        assert count == 1
        return SourceFile(file.path, text)

    return replace(artifact, sources=tuple(map(spoil, artifact.sources)))


def arrays(artifact: Artifact) -> list[str]:
    """Names of the constant arrays of an artifact."""
    text = next(f.text for f in artifact.sources if f.path.endswith("_weights.c"))
    return re.findall(r"(\w+)\[\d+\] = \{", text)


def test_equal_model_has_no_wrong_layer(digits: Compiled) -> None:
    """All outputs and all layers agree; the layers are looked at only when asked for."""
    args = (digits.artifact, digits.planned, digits.inputs, digits.expected, EXACT)
    plain = verify(*args)
    assert (plain.equal, plain.layers_checked) == (True, False)
    full = verify(*args, every_layer=True)
    assert (full.equal, full.layers_checked, full.first_wrong_layer) == (True, True, None)


@pytest.mark.parametrize("layer", [0, 2, 4, 8])
def test_first_wrong_layer_is_named(digits: Compiled, layer: int) -> None:
    """A wrong constant of one layer is found in that layer, with node, index and element."""
    layers = digits.artifact.metadata.layers
    function = next(f for f in layers if f"_layer{layer:02}_" in f.function)
    name = next(n for n in arrays(digits.artifact) if n.startswith(f"net_layer{layer:02}"))
    broken = spoiled(digits.artifact, name)
    verdict = verify(
        broken, digits.planned, digits.inputs, digits.expected, EXACT, every_layer=True
    )
    wrong = verdict.first_wrong_layer
    assert wrong is not None and not verdict.equal
    assert (wrong.name, wrong.operator, wrong.index, wrong.function) == (
        function.name,
        function.operator,
        function.index,
        function.function,
    )
    node = next(node for node in digits.planned.nodes if node.name == wrong.name)
    found = wrong.difference
    assert found.output == node.outputs[0].name
    assert len(found.index) == len(node.outputs[0].shape)
    assert found.expected != found.got


def test_wrong_layer_in_the_json(digits: Compiled) -> None:
    """The JSON has the layer with plain values, and says that the model is not equal."""
    broken = spoiled(digits.artifact, arrays(digits.artifact)[0])
    verdict = verify(broken, digits.planned, digits.inputs, digits.expected, EXACT)
    facts = json.loads(json.dumps(verdict.to_dict(), allow_nan=False))
    assert facts["equal"] is False
    assert facts["mismatches"] == verdict.comparison.mismatches > 0
    layer = facts["first_wrong_layer"]
    assert (layer["name"], layer["operator"], layer["index"]) == ("conv1", "CONV_2D", 0)
    assert layer["sample"] == verdict.comparison.differences[0].sample
    assert isinstance(layer["element"], list)


def test_wrong_reference_blames_no_layer(digits: Compiled) -> None:
    """Expected outputs of other inputs differ, and every layer is right nevertheless."""
    shifted = SampleBatch((*digits.expected.values[1:], digits.expected.values[0]))
    verdict = verify(digits.artifact, digits.planned, digits.inputs, shifted, EXACT)
    assert not verdict.equal
    assert (verdict.layers_checked, verdict.first_wrong_layer) == (True, None)


def test_float_layers() -> None:
    """The layers of the float model agree within the tolerance of floats."""
    model = Compiled(FLOAT, samples=2)
    tolerance = rounding_of(model.graph, model.inputs.values)
    verdict = verify(
        model.artifact, model.planned, model.inputs, model.expected, tolerance, every_layer=True
    )
    assert verdict.equal and verdict.layers_checked


@pytest.mark.parametrize("spoil", ["", "net_layer00", "net_layer08_bias"])
def test_errors_that_came_in_are_no_layer_s(spoil: str) -> None:
    """A layer was called wrong for what layers before it had rounded, within the same limits.

    With a tolerance of nothing every layer of the C differs from the reference run by itself; by
    the rule none is wrong, and one that is spoiled is, also if others were before it.
    """
    model = Compiled(FLOAT, samples=1)
    tolerance = rounding_of(model.graph, model.inputs.values)
    artifact = model.artifact
    if spoil:
        name = next(n for n in arrays(artifact) if n.startswith(spoil))
        artifact = spoiled(artifact, name)
    verdict = verify(
        artifact, model.planned, model.inputs, model.expected, tolerance, every_layer=True
    )
    wrong = verdict.first_wrong_layer
    if spoil:
        assert wrong is not None and spoil[:11] in wrong.function
    else:
        assert wrong is None and verdict.equal


@pytest.mark.parametrize("path", [INT8, FLOAT])
def test_tflm_oracle(path: Path) -> None:
    """The oracle `tflm` gives what tflite-micro gives, by the names of the outputs."""
    model, data = Compiled(path, samples=2), path.read_bytes()
    found = expected_outputs(Oracle.TFLM, model.graph, data, model.inputs)
    for inputs, outputs in zip(model.inputs.values, found.values, strict=True):
        (expected,) = run_tflm(data, inputs["image"])
        assert np.array_equal(outputs["probabilities"], expected)


def test_tflm_refuses_a_model(digits: Compiled) -> None:
    """A model that tflite-micro cannot run is a tool's failure, with what to use instead."""
    with pytest.raises(ToolError, match="tflite-micro\\) cannot run the model") as caught:
        expected_outputs(Oracle.TFLM, digits.graph, hybrid_model(), digits.inputs)
    assert "use --oracle reference" in str(caught.value)
    assert "Input type: FLOAT32" in str(caught.value)  # its own words


def test_tflm_that_crashes() -> None:
    """A depthwise convolution without bias crashes tflite-micro, and took `verify` with it."""
    weights = Value((1, 1, 1, 2), np.int8, [[[[3, -5]]]], (0.1, 0.1), (0, 0), axis=3)
    image = Value((1, 2, 2, 2), np.int8, scales=(0.5,), zero_points=(0,))
    options = DepthwiseConv2DOptions()
    data = one_operator(BuiltinOperator.DEPTHWISE_CONV_2D, [image, weights, None], image, options)
    graph = from_tflite(data).graph
    assert graph is not None
    samples = SampleBatch(({graph.inputs[0].name: np.ones((1, 2, 2, 2), np.int8)},))
    with pytest.raises(ToolError, match=r"'tflm' .* crashed: SIG") as caught:
        expected_outputs(Oracle.TFLM, graph, data, samples, file="depthwise.tflite")
    assert caught.value.where == "depthwise.tflite"


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGILL)", "crashed: SIGILL"),
        ("import sys; sys.exit(7)", "ended with status 7"),
        ("import time; time.sleep(60)", "did not end within 2 seconds"),
        ("import sys; sys.stderr.write('out of memory'); sys.exit(1)", "\nout of memory"),
    ],
)
def test_foreign_code_cannot_end_this_process(
    body: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However code of others ends, and also if it does not, it is a diagnostic that names both."""
    (tmp_path / "foreign_code.py").write_text(body)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ToolError) as caught:
        run_in_child("foreign_code", tmp_path, "their code", "m.tflite", "use ours", timeout=2)
    assert str(caught.value).startswith("m.tflite: their code ") and text in str(caught.value)
    assert "fix:      use ours" in str(caught.value)


@pytest.mark.parametrize("oracle", [Oracle.LITERT, Oracle.ONNXRUNTIME])
@pytest.mark.parametrize("model", [b"", b"no model at all"])
def test_what_is_no_model(digits: Compiled, oracle: Oracle, model: bytes) -> None:
    """An oracle that cannot read a file says so, with what to use instead."""
    with pytest.raises(ToolError, match=f"the oracle '{oracle.value}' .* cannot run the model: .*"):
        expected_outputs(oracle, digits.graph, model, digits.inputs)
