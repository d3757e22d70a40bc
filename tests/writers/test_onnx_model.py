"""Quantised graphs as QDQ files: onnxruntime runs them, and what is read of them has its values."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from microtir.errors import UnsupportedModelError
from microtir.frontend import from_onnx, from_tflite
from microtir.graph.ir import Graph
from microtir.quantise import Quantised, QuantiseOptions, Width, quantise
from microtir.quantise.runs import stored
from microtir.rewrite.reference import execute
from microtir.writers import onnx_bytes
from tests.models.test_exported import EACH

# Float models of dense layers, convolutions, means, sums, joins, slices and unrolled loops.
MODELS = (
    "conv1d_both_pools_batch4_float32", "dense_sequence_batch_none_float32", "gru_unrolled_float32",
    "mobilenet_float32", "squeeze_excite_float32", "tcn_causal_dilated_float32",
    "two_inputs_two_outputs_float32",
)  # fmt: skip


def _quantised(path: Path, width: Width) -> tuple[Quantised, dict[str, np.ndarray]]:
    graph = from_tflite(path).graph
    assert graph is not None
    rng = np.random.default_rng(1)
    samples = {t.name: rng.normal(0, 1, (6, *t.shape)).astype(np.float32) for t in graph.arguments}
    return quantise(graph, samples, QuantiseOptions(width=width)), samples


def _read(model: bytes) -> Graph:
    graph = from_onnx(model).graph
    assert graph is not None
    return graph


@pytest.mark.parametrize("width", [Width.INT8, Width.INT16])
@pytest.mark.parametrize("name", [p for p in EACH if p.values[0] in MODELS])
def test_onnxruntime_gives_what_is_read_again(models_dir: Path, name: str, width: Width) -> None:
    """With optimisations off int8 is equal, and a step from TFLite's arithmetic.

    Sums of products with int16 do not fit the 24 bits of the floats that onnxruntime adds: they
    are a step off at most.
    """
    import onnxruntime

    result, samples = _quantised(models_dir / "exported" / f"{name}.tflite", width)
    model = onnx_bytes(result.graph)
    onnx.checker.check_model(onnx.load_model_from_string(model), full_check=True)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    again, names = _read(model), [tensor.name for tensor in result.graph.results]
    for run in range(3):
        arguments = {t.name: stored(samples[t.name][run], t.type) for t in result.graph.arguments}
        wanted, own = execute(again, arguments), execute(result.graph, arguments)
        for output, values in zip(names, session.run(names, arguments), strict=True):
            steps = 0 if width is Width.INT8 else 1
            np.testing.assert_allclose(values.astype(int), wanted[output].astype(int), 0, steps)
            if width is Width.INT8:
                apart = np.abs(values.astype(int) - own[output].astype(int))
                assert np.mean(apart > 1) <= 0.05


@pytest.mark.model("exported/mobilenet_float32")
def test_layers_stay_integers(models_dir: Path) -> None:
    """What is read of a file has as many layers as were written, and none of floats."""
    result, _ = _quantised(models_dir / "exported" / "mobilenet_float32.tflite", Width.INT8)
    again = _read(onnx_bytes(result.graph))
    assert len(again.nodes) == len(result.graph.nodes)
    assert not any(tensor.dtype.is_float for tensor in again.tensors())
    assert onnx_bytes(result.graph) == onnx_bytes(result.graph)


@pytest.mark.model("exported/unet_transpose_float32")
def test_other_layers_are_refused(models_dir: Path) -> None:
    """A layer that is not written is named with its place."""
    result, _ = _quantised(models_dir / "exported" / "unet_transpose_float32.tflite", Width.INT8)
    with pytest.raises(UnsupportedModelError, match="transpose_conv is not written") as error:
        onnx_bytes(result.graph)
    assert "TRANSPOSE_CONV" in str(error.value)
