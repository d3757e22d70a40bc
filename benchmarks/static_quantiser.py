"""ONNX models that onnxruntime's static quantiser makes, from the graph IR.

The real values of a quantised graph are a model of floats, which the quantiser is given with random
images; its scales are its own.  Inputs and outputs are integers in the end, as in the TFLite twin.
"""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.qdq import Array, OnnxWriter, to_nchw
from microtir.graph.ir import Graph, Tensor
from microtir.operators.common.arrays import dequantized

_IMAGES = 8


def statically_quantised(graph: Graph, form: str, activations: str = "QInt8") -> bytes:
    """Return the model that the quantiser makes; `form` names one of its `QuantFormat`.

    Args:
        graph: see `qdq_model`; of one input.
        form: QDQ or QOperator.
        activations: one of its `QuantType`; weights are int8.
    """
    quantization: Any = importlib.import_module("onnxruntime.quantization")
    with tempfile.TemporaryDirectory() as name:
        given, made = Path(name) / "float.onnx", Path(name) / "quantised.onnx"
        given.write_bytes(_FloatWriter(graph).file())
        quantization.quantize_static(
            given,
            made,
            _Images(graph),
            quant_format=quantization.QuantFormat[form],
            per_channel=True,
            activation_type=quantization.QuantType[activations],
            weight_type=quantization.QuantType.QInt8,
        )
        return _with_integer_ports(made.read_bytes(), activations.removeprefix("Q").upper())


class _FloatWriter(OnnxWriter):
    """Writes real values: the same operators, without conversions."""

    def scalar(self) -> int:
        """Return the type of inputs and outputs."""
        return int(self.onnx.TensorProto.FLOAT)

    def real(self, tensor: Tensor) -> str:
        """Return the values of an activation."""
        return self.names[tensor]

    def stored(self, value: str, _tensor: Tensor) -> str:
        """Return the values of an activation."""
        return value

    def real_constant(self, values: Array, scales: Array) -> str:
        """Return weights or a bias, output channels first."""
        by_channel = scales.reshape(-1, *(1,) * (values.ndim - 1))
        return self.constant((values * by_channel).astype(np.float32))


class _Images:
    """Gives the quantiser images that use the whole range of the input."""

    def __init__(self, graph: Graph) -> None:
        (self._tensor,) = graph.inputs
        self._rng, self._left = np.random.default_rng(0), _IMAGES

    def get_next(self) -> Mapping[str, Array] | None:
        """Return the next image, or None behind the last one."""
        self._left -= 1
        if self._left < 0:
            return None
        stored = self._rng.integers(-128, 128, self._tensor.shape).astype(np.int8)
        return {"input0": to_nchw(dequantized(stored, self._tensor.type))}


def _with_integer_ports(data: bytes, dtype: str) -> bytes:
    """Return a model without the conversions at its ends, whose integers ONNX calls `dtype`."""
    onnx: Any = importlib.import_module("onnx")
    model = onnx.load_model_from_string(data)
    graph = model.graph
    (given,), (result,) = graph.input, graph.output
    first = next(node for node in graph.node if given.name in node.input)
    last = next(node for node in graph.node if result.name in node.output)
    assert (first.op_type, last.op_type) == ("QuantizeLinear", "DequantizeLinear")
    given.name, result.name = first.output[0], last.input[0]
    for port in (given, result):
        port.type.tensor_type.elem_type = onnx.TensorProto.DataType.Value(dtype)
    for node in (first, last):
        graph.node.remove(node)
    return bytes(model.SerializeToString())
