"""What an operator of a model should take, by the goal of its row or of the nearest row.

The goals are those of a Cortex-M4.  A row without one counts with what is recorded for it, since
its kernel is what others were compared with.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType
from typing import TypeAlias

from benchmarks.operator_models import Kind
from benchmarks.operator_rows import AWKWARD, ROWS, Case, Row, Unit
from benchmarks.operators import read_recorded
from microtir.dtype import DType
from microtir.graph.ir import Node, Tensor
from microtir.graph.operator import Operator
from microtir.operators import record_of
from microtir.operators.activations.definition import LeakyRelu, Prelu, Relu
from microtir.operators.arithmetic.definition import Add, AddN, Maximum, Minimum, Mul
from microtir.operators.conversion.definition import CastTo, Dequantize, Quantize
from microtir.operators.convolution.definition import Conv2D, DepthwiseConv2D
from microtir.operators.definition import Trait
from microtir.operators.dense.definition import FullyConnected
from microtir.operators.indexing.definition import Gather
from microtir.operators.matmul.definition import BatchMatmul
from microtir.operators.movement.definition import (
    Concatenation,
    Pad,
    Split,
    StridedSlice,
    Transpose,
)
from microtir.operators.normalization.definition import L2Normalize
from microtir.operators.pooling.definition import AveragePool2D, L2Pool2D, MaxPool2D
from microtir.operators.recurrent.definition import Lstm, Svdf
from microtir.operators.reduction.definition import Mean, ReduceMax, ReduceMin, Reduction, Sum
from microtir.operators.resize.definition import ResizeBilinear, ResizeNearestNeighbor
from microtir.operators.selection.definition import Select
from microtir.operators.softmax.definition import LogSoftmax, Softmax
from microtir.operators.transposed_convolution.definition import TransposeConv
from microtir.operators.unary.definition import Abs, Ceil, Floor, Neg, Round, Sign, Square
from microtir.rewrite.facts.macs import macs

CPU = "cortex-m4"
_INT16 = 1.6  # times int8
_LEAST_MAC, _OUTPUT = 0.8, 12.0  # instructions of a product and of an output where sums are short
_FEW = 4  # outputs, or channels of a first layer
_DEEP = 24  # nearer to 32 than to 16
_LONG, _SHORT = 16, 4  # bytes that lie together
_EXACT = (
    "grouped convolution 3x3, 4 groups, 16x16x16 to 32", "first layer 3x3, 32x32x1",
    "dense, 64 to 2",
)  # fmt: skip
"""Rows whose goals know how short their sums are, and how few their channels."""
_FLOATS: Mapping[Unit, float] = MappingProxyType({
    Unit.MAC: 2.0, Unit.ELEMENT: 3.5, Unit.INPUT: 3.5, Unit.TAP: 3.0,
})  # fmt: skip
"""Goals of float32 for rows that have none: those of a product, an addition and a maximum."""

_ADD, _BROADCAST = "add, 16x16x32", "add of 32 constants, 16x16x32"
_MAXIMUM, _TABLE = "maximum, 16x16x32", "tanh, 16x16x32"
_MEAN, _REDUCE_MAX = "mean over H and W, 16x16x32", "reduce_max over H and W, 16x16x32"
_MOVES = (
    "concat of channels, 16 and 16", "concat of channels, 10 and 10",
    "concat of channels, 3 and 3",
)  # fmt: skip

Name: TypeAlias = str | Callable[[Node], str]


def goal(node: Node) -> float:
    """Return the instructions that a node should take on a Cortex-M4 at `speed`, for its size."""
    row = nearest(node)
    figure, awkward = _figure(row, _kind(node)), _awkward(node)
    elements = sum(made.type.elements for made in node.outputs)
    if row.unit is Unit.MAC:
        work = macs(node)
        is_short = isinstance(node.op, Conv2D | FullyConnected) and row.name not in _EXACT
        short = _LEAST_MAC * work + _OUTPUT * elements if is_short else 0.0
        return max(figure * work, short) * awkward
    if row.unit is Unit.BYTE:
        return figure * sum(made.type.bytes for made in node.outputs)
    if row.unit is Unit.INPUT:
        elements = _data(node).type.elements
    elif row.unit is Unit.TAP:
        window = record_of(node.op).definition.window
        elements *= math.prod(window(node).taps) if window else 1
    in_a_row = max(node.outputs[0].shape[-1:], default=1)
    return (figure + row.beside / in_a_row) * elements * awkward


def nearest(node: Node) -> Row:
    """Return the row of a node, or the one that is nearest to it."""
    found = next((_NEAREST[kind] for kind in type(node.op).__mro__ if kind in _NEAREST), _others)
    return rows()[found if isinstance(found, str) else found(node)]


@cache
def rows() -> Mapping[str, Row]:
    """Return all rows by name."""
    return {row.name: row for row in ROWS}


def _figure(row: Row, kind: Kind) -> float:
    """Return the goal of a row for a unit, or what stands for it."""
    if kind is Kind.FLOAT32 and kind not in row.goals and row.unit in _FLOATS:
        return _FLOATS[row.unit]
    known = kind if kind in row.goals else next(iter(row.goals))
    times = _INT16 if kind is Kind.INT16 and known is not kind else 1.0
    aimed = row.goals[known].m4
    return times * (aimed or _recorded()[Case(row, known, row.channels).full_name])


@cache
def _recorded() -> Mapping[str, float]:
    return {name: price.per_unit for name, price in read_recorded()[CPU].items()}


def _data(node: Node) -> Tensor:
    if isinstance(node.op, Gather):
        return node.inputs[0]
    return next(iter(node.activations), node.outputs[0])


def _kind(node: Node) -> Kind:
    """Return the kind of what is computed; wider integers count as floats do."""
    if node.outputs[0].type.dtype is DType.BOOL or isinstance(node.op, Quantize | Dequantize):
        return Kind.INT8
    of_type = {1: Kind.INT8, 2: Kind.INT16}
    return of_type.get(_data(node).type.dtype.bytes, Kind.FLOAT32)


def _awkward(node: Node) -> float:
    """Return what rows of other lengths than a multiple of four may take more."""
    if isinstance(node.op, FullyConnected) and nearest(node).name in _EXACT:
        return 1.0
    read = node.inputs[1] if isinstance(node.op, Conv2D) else _data(node)  # of a group
    is_first = isinstance(node.op, Conv2D) and node.inputs[0].shape[-1] <= _FEW
    shapes = [x.shape for x in (*([] if is_first else [read]), *node.outputs) if x.shape]
    return AWKWARD if any(shape[-1] % 4 for shape in shapes) else 1.0


def _convolution(node: Node) -> str:
    channels, given = node.inputs[0].shape[-1], node.inputs[1].shape[-1]
    if channels != given:
        return "grouped convolution 3x3, 4 groups, 16x16x16 to 32"
    if _kind(node) is Kind.FLOAT32:
        return "convolution 3x3, 16x16x16"
    return "first layer 3x3, 32x32x1" if channels == 1 else "first layer 3x3, 32x32x3"


def _depthwise(node: Node) -> str:
    op = node.op
    assert isinstance(op, DepthwiseConv2D)
    high, wide = node.inputs[1].shape[1:3]
    if node.output.shape[-1] != node.inputs[0].shape[-1]:
        return "depthwise 3x3, multiplier 2, 16x16x16"
    if min(high, wide) == 1:
        return "depthwise 1x3, 16x16x16"
    if max(op.dilations) > 1:
        return "depthwise 3x3, dilated, 16x16x16"
    return "depthwise 7x7, 16x16x16" if high * wide > 9 else "depthwise 3x3, 16x16x16"


def _product(node: Node) -> str:
    op, shape = node.op, node.inputs[0].shape
    assert isinstance(op, BatchMatmul)
    depth = shape[-2] if op.adj_x else shape[-1]
    known = 32 if depth >= _DEEP else 16 if depth >= _DEEP // 2 else 8
    return f"batch matmul 4x16x{known}x16"


def _dense(node: Node) -> str:
    return "dense, 64 to 2" if node.output.shape[-1] <= _FEW else "dense, 256 to 64"


def _binary(node: Node) -> str:
    return _ADD if len({x.shape for x in node.inputs}) == 1 else _BROADCAST


def _multiplication(node: Node) -> str:
    is_square = len({x.shape for x in node.inputs}) == 1
    return "multiply, 16x16x32" if is_square else _BROADCAST


def _rectifier(node: Node) -> str:
    """Say whether it only clamps, where integers keep their scale."""
    x, y = node.inputs[0].type, node.output.type
    return "clamp of equal scales, 16x16x32" if x.quantization == y.quantization else _TABLE


def _cheap(node: Node) -> str:
    """Return what takes one instruction of floats, and a table for integers."""
    return _ADD if _kind(node) is Kind.FLOAT32 else _TABLE


def _quantize(node: Node) -> str:
    is_float = node.inputs[0].type.dtype is DType.FLOAT32
    return "quantize, 16x16x32" if is_float else "requantise, 16x16x32"


def _moved(node: Node) -> str:
    run = _run(node)
    return _MOVES[0 if run >= _LONG else 1 if run >= _SHORT else 2]


def _run(node: Node) -> int:
    """Return how many bytes that a move takes lie together where they are read and written."""
    op, x, y = node.op, _data(node), node.outputs[0]
    axis = max(len(y.shape) - 1, 0)
    if isinstance(op, Concatenation | Split):
        axis = op.axis
    elif isinstance(op, Gather):
        axis = op.axis + 1
    elif isinstance(op, Pad):
        padded = (a for a, n in enumerate(zip(op.before, op.after, strict=True)) if any(n))
        axis = max(padded, default=0)
    elif isinstance(op, StridedSlice):
        partial = [a for a, n in enumerate(op.extent) if n != x.shape[a] or op.strides[a] != 1]
        axis = max(partial, default=0)
        axis += bool(partial) and op.strides[axis] != 1
    elif isinstance(op, Transpose):
        turned = (a for a, source in enumerate(op.permutation) if source != a)
        axis = max(turned, default=-1) + 1
    tensors = node.activations if isinstance(op, Concatenation) else node.outputs
    if isinstance(op, Gather | Pad):
        tensors = (x,)
    elif isinstance(op, StridedSlice):
        return math.prod(op.extent[axis:]) * x.type.dtype.bytes
    return min(math.prod(t.shape[axis:]) * t.type.dtype.bytes for t in tensors)


def _others(node: Node) -> str:
    """Return what is nearest to an operator without a row of its own."""
    record = record_of(node.op)
    if record.has(Trait.MOVES_DATA):
        return _moved(node)
    if record.has(Trait.WEIGHTED) or macs(node):
        return "first layer 3x3, 32x32x3"
    if record.has(Trait.ELEMENTWISE):
        return _TABLE if len(node.inputs) == 1 else _binary(node)
    return _MEAN if node.outputs[0].type.elements < _data(node).type.elements else _BROADCAST


_NEAREST: Mapping[type[Operator], Name] = MappingProxyType({
    Conv2D: _convolution, DepthwiseConv2D: _depthwise, BatchMatmul: _product,
    FullyConnected: _dense, TransposeConv: "transposed convolution 3x3, stride 2, 8x8x16",
    Lstm: "LSTM, 20 steps of 16 to 32", Svdf: "SVDF, 40 inputs, 10 places, 64 filters",
    Softmax: "softmax, 32 rows of 32", LogSoftmax: "log-softmax, 32 rows of 32",
    L2Normalize: "l2-norm, 32 rows of 32", Prelu: "prelu, 16x16x32",
    Add: _binary, AddN: _ADD, Mul: _multiplication, Maximum: _MAXIMUM, Minimum: _MAXIMUM,
    Select: _MAXIMUM, Relu: _rectifier, LeakyRelu: _cheap, CastTo: "dequantize, 16x16x32",
    Abs: _cheap, Neg: _cheap, Sign: _cheap, Square: _cheap, Floor: _cheap, Ceil: _cheap,
    Round: _cheap, Quantize: _quantize, Dequantize: "dequantize, 16x16x32",
    ReduceMax: _REDUCE_MAX, ReduceMin: _REDUCE_MAX, Mean: _MEAN, Sum: _MEAN, Reduction: _MEAN,
    AveragePool2D: "average pooling 3x3, 16x16x32", L2Pool2D: "average pooling 3x3, 16x16x32",
    MaxPool2D: "max pooling 3x3, 16x16x32", ResizeBilinear: "bilinear, 8x8x32 to 16x16",
    ResizeNearestNeighbor: _moved,
})  # fmt: skip
