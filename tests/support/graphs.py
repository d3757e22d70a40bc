"""Small graphs made in Python, without a model file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from microtir.dtype import DType
from microtir.graph.ir import Graph, Node, Quantization, SourceLocation, Tensor, TensorType
from microtir.graph.operator import Operator


def quant(scale: float, zero_point: int = 0) -> Quantization:
    """Return a per-tensor quantisation; the scale is rounded to float32."""
    return Quantization((float(np.float32(scale)),), (zero_point,))


def per_channel(scales: Sequence[float], axis: int) -> Quantization:
    """Return a symmetric per-channel quantisation; the scales are rounded to float32."""
    return Quantization(
        tuple(float(np.float32(scale)) for scale in scales), (0,) * len(scales), axis
    )


def tensor(
    name: str,
    shape: Sequence[int],
    dtype: DType = DType.FLOAT32,
    quantization: Quantization | None = None,
) -> Tensor:
    """Return a tensor that is not constant."""
    return Tensor(name, TensorType(tuple(shape), dtype, quantization))


def constant(name: str, data: npt.NDArray[Any], quantization: Quantization | None = None) -> Tensor:
    """Return a constant tensor with the type of its data."""
    type_ = TensorType(data.shape, DType(data.dtype.name), quantization)
    return Tensor(name, type_, data)


def node(op: Operator, inputs: Sequence[Tensor], outputs: Sequence[Tensor] | Tensor) -> Node:
    """Return a node that is named after its first output."""
    results = (outputs,) if isinstance(outputs, Tensor) else tuple(outputs)
    source = SourceLocation("test.tflite", 0, op.name.upper())
    return Node(op, tuple(inputs), results, f"{results[0].name}_node", source)


def graph(nodes: Sequence[Node], inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> Graph:
    """Return a graph called "test", whose operators are numbered like those of a file."""
    numbered = (
        replace(node, source=replace(node.source, index=number))
        for number, node in enumerate(nodes)
    )
    return Graph("test", tuple(inputs), tuple(outputs), tuple(numbered))
