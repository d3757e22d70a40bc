"""Models that were quantised here, as files: references compute the bits of our meaning."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from benchmarks.quantise.networks import NETWORKS, onnx_file
from microtir.config import Numerics
from microtir.frontend import from_onnx, from_tflite
from microtir.operators.convolution.definition import DepthwiseConv2D
from microtir.operators.recurrent.definition import Lstm
from microtir.quantise import Calibration, QuantiseOptions, Width
from tests.models.test_exported import EACH
from tests.support.same_graph import canonical
from tests.support.written_files import WrittenFile, random_weights

# Float models that tflite-micro runs once they are quantised: all kinds of layers, and states.
MODELS = (
    "autoencoder_transpose_float32", "dense_sequence_batch_none_float32", "lstm_fused_float32",
    "lstm_unrolled_float32", "mobilenet_float32", "squeeze_excite_float32",
    "streaming_variables_float32", "tcn_causal_dilated_float32", "two_inputs_two_outputs_float32",
    "unet_transpose_float32",
)  # fmt: skip


OTHER_WIDTHS = {
    Width.INT16: ("mobilenet_float32", "squeeze_excite_float32"),
    Width.WEIGHTS4: ("mobilenet_float32", "dense_sequence_batch_none_float32"),
}
CASES = [
    pytest.param(entry.values[0], width, marks=entry.marks)
    for width, names in {Width.INT8: MODELS, **OTHER_WIDTHS}.items()
    for entry in EACH
    if entry.values[0] in names
]


def _references(file: WrittenFile) -> Iterator[Numerics]:
    """Yield the references that a file has the bits of.

    LiteRT's reference kernels have no depthwise convolution of 4 bits, and TANH and LOGISTIC in an
    LSTM of integers are not the tables that tflite-micro has.
    """
    yield Numerics.TFLM
    result = file.quantised
    kinds = {
        type(node.op)
        for node in result.graph.nodes
        if isinstance(node.op, Lstm)
        or any(tensor.name in result.weights4 for tensor in node.inputs)
    }
    if kinds.isdisjoint({Lstm, DepthwiseConv2D}):
        yield Numerics.TFLITE_REF


@pytest.mark.parametrize(("name", "width"), CASES)
def test_references_compute_the_same(models_dir: Path, name: str, width: Width) -> None:
    """The file is read as the graph that was quantised, and has its bits over three runs."""
    graph = from_tflite(models_dir / "exported" / f"{name}.tflite").graph
    assert graph is not None
    file = WrittenFile.of(graph, QuantiseOptions(width=width))
    assert canonical(file.again) == canonical(file.quantised.graph)
    for numerics in _references(file):
        assert file.differences(numerics) == 0


@pytest.mark.parametrize("width", [Width.INT8, Width.INT16, Width.WEIGHTS4])
@pytest.mark.parametrize("name", NETWORKS)
def test_networks_of_the_benchmark(name: str, width: Width) -> None:
    """Of random weights: no layer stays in floats, and both references have the bits."""
    network = NETWORKS[name]
    weights = [w.astype(np.float32) for w in random_weights(network.layers, network.task.shape[0])]
    graph = from_onnx(onnx_file(network, weights), name=name).graph
    assert graph is not None
    options = QuantiseOptions(width=width, calibration=Calibration.MINMAX, rounding_work=0.0)
    file = WrittenFile.of(graph, options)
    assert not file.quantised.floats
    for numerics in _references(file):
        assert file.differences(numerics) == 0
