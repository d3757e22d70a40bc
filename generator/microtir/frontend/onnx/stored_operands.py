"""Read operators that a file gives integers which it quantised: what they are to each operator.

To ONNX they are counts.  Whoever quantises a model to operators on integers leaves those as they
were that move elements or pick of them, between others that know scales: their results have the
scale of the operand.  Picks are computed of the real values that the integers stand for, and
converted back, which gives the same, and later becomes integers again, in a type that kernels have.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Array, Quantization, Tensor, TensorType
from microtir.operators.common.onnx_operands import MICROSOFT, OnnxNode, OnnxReader
from microtir.operators.common.onnx_values import Value
from microtir.operators.conversion.definition import CastTo, Dequantize, Quantize

_READ_WITH_SCALES = frozenset((
    "Cast", "CastLike", "ConvInteger", "DequantizeLinear", "If", "Loop", "MatMulInteger",
    "OptionalGetElement", "OptionalHasElement", "QLinearConv", "QLinearMatMul", "QuantizeLinear",
    "Scan", "Shape", "Size",
))  # fmt: skip
"""Operators that handle scales, look at types alone, or hold nodes that are asked one by one."""

_MOVES = frozenset((
    "Compress", "Concat", "DepthToSpace", "Dropout", "Expand", "Flatten", "Gather",
    "GatherElements", "GatherND", "Identity", "Reshape", "ReverseSequence", "Scatter",
    "ScatterElements", "ScatterND", "Slice", "SpaceToDepth", "Split", "Squeeze", "Tile",
    "Transpose", "Unsqueeze", "Where",
))  # fmt: skip

_PICKS = frozenset(
    ("ArgMax", "ArgMin", "GlobalMaxPool", "MaxPool", "Pad", "ReduceMax", "ReduceMin", "TopK")
)
"""Operators that pick some of the stored numbers; padding picks one that is stored, too."""


def read_stored(node: OnnxNode, reader: OnnxReader) -> Value | tuple[Value, ...]:
    """Return what a reader gives of operands, some of which may be quantised integers."""
    name = reader.name
    stored = [x for x in node.inputs if isinstance(x, Tensor) and _is_stored(x)]
    knows_scales = reader.domain == MICROSOFT or name in _READ_WITH_SCALES
    if not stored or knows_scales:
        return reader.read(node)
    if _only_moves(node, name):
        known = stored[0]
        same = [_alike(node, value, known) for value in node.inputs]
        if not any(isinstance(x, Tensor) and _differs(x, known) for x in same):
            return reader.read(node.with_inputs(*same))
    if name in _PICKS and node.inputs[0] is stored[0]:
        return _of_reals(node, name, stored[0], reader)
    return reader.read(node.with_inputs(*(_counted(node, value) for value in node.inputs)))


def _is_stored(x: Tensor) -> bool:
    return not x.dtype.is_float and x.type.quantization is not None


def _only_moves(node: OnnxNode, name: str) -> bool:
    if name in ("Resize", "Upsample"):
        return node.word("mode", "nearest") == "nearest"
    return name in _MOVES and node.word("reduction", "none") == "none"


def _alike(node: OnnxNode, value: Value | None, known: Tensor) -> Value | None:
    """Return a constant beside quantised integers as such of their scale."""
    if not isinstance(value, Tensor) or value.data is None or value.dtype is not known.dtype:
        return value
    type_ = replace(value.type, quantization=known.type.quantization)
    return replace(node.constant(value.data), type=type_)


def _differs(x: Tensor, known: Tensor) -> bool:
    return x.dtype is known.dtype and x.type.quantization != known.type.quantization


def _counted(node: OnnxNode, value: Value | None) -> Value | None:
    """Return integers without the scale that they have elsewhere."""
    if not isinstance(value, Tensor) or not _is_stored(value):
        return value
    return node.emitter.emit(CastTo(), (value,), (TensorType(value.shape, value.dtype),))[0]


def _of_reals(
    node: OnnxNode, name: str, x: Tensor, reader: OnnxReader
) -> Value | tuple[Value, ...]:
    """Return what an operator gives of real values, those that it picks as integers again."""
    quant = x.type.quant
    real = node.emit(Dequantize(), x, dtype=DType.FLOAT32)
    others = list(node.inputs[1:])
    if name == "Pad" and node.word("mode", "constant") == "constant":
        others += [None] * (2 - len(others))
        stored = np.zeros((), x.dtype.value)
        if others[1] is not None:
            stored = node.known_number(2, "the value to pad with")
        others[1] = node.constant(_real(stored, quant))
    result = reader.read(node.with_inputs(real, *others))
    results = result if isinstance(result, tuple) else (result,)
    return tuple(_stored_again(node, value, x.type) for value in results)


def _real(stored: Array, quant: Quantization) -> Array:
    """Return what a stored number stands for."""
    centred = stored.astype(np.float32) - np.float32(quant.zero_point)
    return np.asarray(centred * np.float32(quant.scale))


def _stored_again(node: OnnxNode, value: Value, type_: TensorType) -> Value:
    if not isinstance(value, Tensor) or not value.dtype.is_float:
        return value
    back = replace(type_, shape=value.shape)
    return node.emitter.emit(Quantize(ties_to_even=True), (value,), (back,))[0]
