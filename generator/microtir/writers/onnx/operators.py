"""Write operators of the graph as operators of ONNX, on real numbers or on what is stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Node, Tensor
from microtir.graph.operator import Operator
from microtir.operators import record_of
from microtir.operators.activations.definition import Elu, Gelu, LeakyRelu, Relu
from microtir.operators.arithmetic import definition as arithmetic
from microtir.operators.common.arrays import dequantized
from microtir.operators.common.attributes import Activation, Padding2D
from microtir.operators.conversion.definition import CastTo, Dequantize, Quantize
from microtir.operators.convolution.definition import Conv2D, DepthwiseConv2D
from microtir.operators.definition import Trait
from microtir.operators.dense.definition import FullyConnected
from microtir.operators.division.definition import Div
from microtir.operators.indexing.definition import Gather
from microtir.operators.matmul.definition import BatchMatmul
from microtir.operators.movement.definition import (
    Concatenation,
    Pad,
    Reshape,
    Split,
    StridedSlice,
    Transpose,
    Unpack,
)
from microtir.operators.pooling.definition import AveragePool2D, MaxPool2D
from microtir.operators.recurrent.definition import Lstm
from microtir.operators.reduction import definition as reduction
from microtir.operators.repetition.definition import Tile
from microtir.operators.resize.definition import ResizeBilinear, ResizeNearestNeighbor
from microtir.operators.selection.definition import Select
from microtir.operators.softmax.definition import Softmax
from microtir.operators.state.definition import Assign
from microtir.operators.transposed_convolution.definition import TransposeConv
from microtir.operators.unary.definition import Rsqrt
from microtir.writers.onnx.qdq import CHANNELS_FIRST, CHANNELS_LAST, QdqGraph
from microtir.writers.onnx.recurrent import limits_cells, write_lstm

WriteNode: TypeAlias = Callable[[QdqGraph, Node], None]

_ARITHMETIC: Mapping[type[Operator], str] = MappingProxyType(
    {arithmetic.Add: "Add", arithmetic.Sub: "Sub", arithmetic.Mul: "Mul", Div: "Div"}
)
_REDUCTIONS: Mapping[type[Operator], str] = MappingProxyType(
    {
        reduction.Mean: "ReduceMean",
        reduction.Sum: "ReduceSum",
        reduction.ReduceMax: "ReduceMax",
        reduction.ReduceMin: "ReduceMin",
    }
)
_NAMES: Mapping[type[Operator], str] = MappingProxyType(
    {arithmetic.Maximum: "Max", arithmetic.Minimum: "Min", Elu: "Elu", arithmetic.Pow: "Pow"}
)
"""Operators of real numbers that ONNX has as they are, and readers have in several forms."""

_BEFORE_ALL = -(1 << 31)
_OUTPUT_FIRST = (3, 0, 1, 2)  # of weights (1, KH, KW, channels)
_INPUT_FIRST = (3, 0, 1, 2)  # of weights (O, KH, KW, I)


def _clamped(graph: QdqGraph, real: str, activation: Activation) -> str:
    """Return real numbers behind a fused activation."""
    if activation is Activation.NONE:
        return real
    if activation is Activation.RELU:
        return graph.node("Relu", [real])
    bounds = (graph.constant("bound", np.array(b, np.float32)) for b in activation.real_range)
    return graph.node("Clip", [real, *bounds])


def _pads(padding: Padding2D) -> list[int]:
    return [padding.top, padding.left, padding.bottom, padding.right]


def _convolution(graph: QdqGraph, node: Node) -> None:
    op, (image, weights) = node.attributes(Conv2D, DepthwiseConv2D), node.inputs[:2]
    is_depthwise = isinstance(op, DepthwiseConv2D)
    channels = image.shape[3]
    group = channels if is_depthwise else channels // weights.shape[3]
    order = _OUTPUT_FIRST if is_depthwise else CHANNELS_FIRST
    inputs = [graph.real(image, CHANNELS_FIRST), graph.real(weights, order)]
    inputs += [graph.real(bias) for bias in node.inputs[2:]]
    real = graph.node(
        "Conv", inputs, group=group, strides=list(op.strides), dilations=list(op.dilations),
        pads=_pads(op.padding), kernel_shape=list(weights.shape[1:3]),
    )  # fmt: skip
    graph.result(_clamped(graph, real, op.activation), node.output, CHANNELS_LAST)


def _lost_at_ends(node: Node, op: TransposeConv) -> list[int]:
    """Return the rows and columns that windows give behind the output; below 0 what they lack."""
    sizes = (node.inputs[0].shape[1:3], node.output.shape[1:3], node.inputs[1].shape[1:3])
    axes = zip(*sizes, op.strides, op.before, strict=True)
    return [(n - 1) * stride + taps - size - before for n, size, taps, stride, before in axes]


def _transposed_convolution(graph: QdqGraph, node: Node) -> None:
    op, (image, weights) = node.attributes(TransposeConv), node.inputs[:2]
    inputs = [graph.real(image, CHANNELS_FIRST), graph.real(weights, _INPUT_FIRST)]
    inputs += [graph.real(bias) for bias in node.inputs[2:]]
    window, ends = weights.shape[1:3], _lost_at_ends(node, op)
    real = graph.node(
        "ConvTranspose", inputs, strides=list(op.strides), kernel_shape=list(window),
        pads=[*op.before, *(max(end, 0) for end in ends)],
        output_padding=[max(-end, 0) for end in ends],
    )  # fmt: skip
    graph.result(_clamped(graph, real, op.activation), node.output, CHANNELS_LAST)


def _resize(graph: QdqGraph, node: Node) -> None:
    op = node.attributes(ResizeNearestNeighbor, ResizeBilinear)
    size = [node.output.shape[n] for n in CHANNELS_FIRST]
    is_nearest = isinstance(op, ResizeNearestNeighbor)
    sizes = graph.constant("sizes", np.array(size, np.int64))
    places = "half_pixel" if op.half_pixel_centers else "asymmetric"
    is_floor = is_nearest and places == "asymmetric" and not op.align_corners
    real = graph.node(
        "Resize", [graph.real(node.inputs[0], CHANNELS_FIRST), "", "", sizes],
        mode="nearest" if is_nearest else "linear",
        coordinate_transformation_mode="align_corners" if op.align_corners else places,
        nearest_mode="floor" if is_floor else "round_prefer_ceil",
    )  # fmt: skip
    graph.result(real, node.output, CHANNELS_LAST)


def _extremum(graph: QdqGraph, node: Node) -> None:
    """Write ArgMax or ArgMin, whose places are of 64 bits in ONNX."""
    from onnx import helper

    op, dtype = node.attributes(reduction.ArgExtremum), np.dtype(node.output.dtype.value)
    inputs = [graph.real(node.inputs[0])]
    places = graph.node(type(op).__name__, inputs, axis=op.axis, keepdims=0)
    kind = helper.np_dtype_to_tensor_dtype(dtype)
    graph.node(
        "Cast", [graph.reshaped(places, node.output.shape)], graph.value(node.output), to=kind
    )


def _rsqrt(graph: QdqGraph, node: Node) -> None:
    root = graph.node("Sqrt", [graph.real(node.inputs[0])])
    graph.result(graph.node("Reciprocal", [root]), node.output)


def _assigned(graph: QdqGraph, node: Node) -> None:
    graph.node("Identity", [graph.value(node.inputs[0])], graph.value(node.output))


def _pool(graph: QdqGraph, node: Node) -> None:
    op = node.attributes(AveragePool2D, MaxPool2D)
    name = "AveragePool" if isinstance(op, AveragePool2D) else "MaxPool"
    real = graph.node(
        name, [graph.real(node.inputs[0], CHANNELS_FIRST)], kernel_shape=list(op.window),
        strides=list(op.strides), pads=_pads(op.padding),
    )  # fmt: skip
    graph.result(_clamped(graph, real, op.activation), node.output, CHANNELS_LAST)


def _dense(graph: QdqGraph, node: Node) -> None:
    op, (data, weights) = node.attributes(FullyConnected), node.inputs[:2]
    real = graph.real(data)
    rows = (-1, weights.shape[1])
    if len(data.shape) != 2 or data.shape[1] != rows[1]:
        real = graph.node("Reshape", [real, graph.constant("shape", np.array(rows, np.int64))])
    inputs = [real, graph.real(weights), *(graph.real(bias) for bias in node.inputs[2:])]
    real = _clamped(graph, graph.node("Gemm", inputs, transB=1), op.activation)
    if len(node.output.shape) != 2:
        shape = graph.constant("shape", np.array(node.output.shape, np.int64))
        real = graph.node("Reshape", [real, shape])
    graph.result(real, node.output)


def _arithmetic(graph: QdqGraph, node: Node) -> None:
    op = node.attributes(arithmetic.BinaryArithmetic)
    real = graph.node(_ARITHMETIC[type(op)], [graph.real(tensor) for tensor in node.inputs])
    graph.result(_clamped(graph, real, op.activation), node.output)


def _relu(graph: QdqGraph, node: Node) -> None:
    graph.result(
        _clamped(graph, graph.real(node.inputs[0]), node.attributes(Relu).kind), node.output
    )


def _leaky_relu(graph: QdqGraph, node: Node) -> None:
    real = graph.node(
        "LeakyRelu", [graph.real(node.inputs[0])], alpha=node.attributes(LeakyRelu).alpha
    )
    graph.result(real, node.output)


def _function(graph: QdqGraph, node: Node) -> None:
    """Write an operator that ONNX has as it is, of real numbers."""
    name = _NAMES.get(type(node.op)) or record_of(node.op).onnx
    graph.result(graph.node(name, [graph.real(tensor) for tensor in node.inputs]), node.output)


def _squared_difference(graph: QdqGraph, node: Node) -> None:
    difference = graph.node("Sub", [graph.real(tensor) for tensor in node.inputs])
    graph.result(graph.node("Mul", [difference, difference]), node.output)


def _product(graph: QdqGraph, node: Node) -> None:
    """Write MatMul, whose matrices ONNX takes as they are multiplied."""
    op = node.attributes(BatchMatmul)
    factors = [
        graph.real(tensor, _with_last_turned(tensor) if is_turned else ())
        for tensor, is_turned in zip(node.inputs, (op.adj_x, op.adj_y), strict=True)
    ]
    graph.result(graph.node("MatMul", factors), node.output)


def _with_last_turned(tensor: Tensor) -> tuple[int, ...]:
    *outer, rows, columns = range(len(tensor.shape))
    return (*outer, columns, rows)


def _gather(graph: QdqGraph, node: Node) -> None:
    inputs = [graph.value(tensor) for tensor in node.inputs]
    graph.node("Gather", inputs, graph.value(node.output), axis=node.attributes(Gather).axis)


def _cast(graph: QdqGraph, node: Node) -> None:
    from onnx import helper

    kind = helper.np_dtype_to_tensor_dtype(np.dtype(node.output.dtype.value))
    graph.node("Cast", [graph.value(node.inputs[0])], graph.value(node.output), to=kind)


def _gelu(graph: QdqGraph, node: Node) -> None:
    kind = "tanh" if node.attributes(Gelu).approximate else "none"
    graph.result(graph.node("Gelu", [graph.real(node.inputs[0])], approximate=kind), node.output)


def _select(graph: QdqGraph, node: Node) -> None:
    condition, *values = node.inputs
    inputs = [graph.value(condition), *(graph.real(tensor) for tensor in values)]
    graph.result(graph.node("Where", inputs), node.output)


def _tile(graph: QdqGraph, node: Node) -> None:
    """Write copies along all axes of the result, of which the input may lack the first."""
    op, data = node.attributes(Tile), node.inputs[0]
    real, rank = graph.real(data), len(op.multiples)
    if len(data.shape) < rank:
        real = graph.reshaped(real, (1,) * (rank - len(data.shape)) + data.shape)
    copies = graph.constant("copies", np.array(op.multiples, np.int64))
    graph.result(graph.node("Tile", [real, copies]), node.output)


def _softmax(graph: QdqGraph, node: Node) -> None:
    op = node.attributes(Softmax)
    real = graph.real(node.inputs[0])
    if op.beta != 1.0:
        real = graph.node("Mul", [real, graph.constant("beta", np.array(op.beta, np.float32))])
    graph.result(graph.node("Softmax", [real], axis=-1), node.output)


def _reduction(graph: QdqGraph, node: Node) -> None:
    op = node.attributes(reduction.Reduction)
    axes = graph.constant("axes", np.array(op.axes, np.int64))
    inputs = [graph.real(node.inputs[0]), axes]
    graph.result(graph.node(_REDUCTIONS[type(op)], inputs, keepdims=int(op.keep_dims)), node.output)


def _converted(graph: QdqGraph, node: Node) -> None:
    graph.result(graph.real(node.inputs[0]), node.output)


def _concatenation(graph: QdqGraph, node: Node) -> None:
    inputs = [graph.value(tensor) for tensor in node.inputs]
    graph.node("Concat", inputs, graph.value(node.output), axis=node.attributes(Concatenation).axis)


def _reshape(graph: QdqGraph, node: Node) -> None:
    shape = graph.constant("shape", np.array(node.output.shape, np.int64))
    graph.node("Reshape", [graph.value(node.inputs[0]), shape], graph.value(node.output))


def _transpose(graph: QdqGraph, node: Node) -> None:
    inputs, output = [graph.value(node.inputs[0])], graph.value(node.output)
    graph.node("Transpose", inputs, output, perm=list(node.attributes(Transpose).permutation))


def _pad(graph: QdqGraph, node: Node) -> None:
    op, dtype = node.attributes(Pad), node.output.dtype
    extents = graph.constant("pads", np.array([*op.before, *op.after], np.int64))
    if dtype is DType.INT16:  # which onnxruntime pads as real numbers alone
        real = np.asarray(dequantized(np.array(op.value, dtype.value), node.output.type))
        inputs = [graph.real(node.inputs[0]), extents, graph.constant("value", real)]
        graph.result(graph.node("Pad", inputs), node.output)
        return
    value = graph.constant("value", np.array(op.value, dtype.value))
    graph.node("Pad", [graph.value(node.inputs[0]), extents, value], graph.value(node.output))


def _slice(graph: QdqGraph, node: Node) -> None:
    op = node.attributes(StridedSlice)
    axes = list(zip(op.begin, op.strides, op.extent, strict=True))
    ends = [begin + stride * extent for begin, stride, extent in axes]
    # What ends before the first element ends at the least number.
    bounds = [
        op.begin,
        [end if end >= 0 else _BEFORE_ALL for end in ends],
        range(len(axes)),
        op.strides,
    ]
    inputs = [graph.constant("slice", np.array([*numbers], np.int64)) for numbers in bounds]
    part = graph.node("Slice", [graph.value(node.inputs[0]), *inputs])
    shape = graph.constant("shape", np.array(node.output.shape, np.int64))
    graph.node("Reshape", [part, shape], graph.value(node.output))


def _split(graph: QdqGraph, node: Node) -> None:
    """Write Split and Unpack as slices of their input."""
    op, data = node.attributes(Split, Unpack), node.inputs[0]
    count = len(node.outputs)
    sizes = (isinstance(op, Split) and op.sizes) or (data.shape[op.axis] // count,) * count
    begin = 0
    for size, output in zip(sizes, node.outputs, strict=True):
        bounds = (begin,), (begin + size,), (op.axis,)
        inputs = [graph.constant("slice", np.array(numbers, np.int64)) for numbers in bounds]
        part = graph.node("Slice", [graph.value(data), *inputs])
        shape = graph.constant("shape", np.array(output.shape, np.int64))
        graph.node("Reshape", [part, shape], graph.value(output))
        begin += size


_WRITERS: Mapping[type[Operator], WriteNode] = MappingProxyType(
    {
        **dict.fromkeys((Conv2D, DepthwiseConv2D), _convolution),
        **dict.fromkeys((AveragePool2D, MaxPool2D), _pool),
        **dict.fromkeys(_ARITHMETIC, _arithmetic),
        **dict.fromkeys((Quantize, Dequantize), _converted),
        **dict.fromkeys((Split, Unpack), _split),
        **dict.fromkeys(_REDUCTIONS, _reduction),
        **dict.fromkeys((ResizeNearestNeighbor, ResizeBilinear), _resize),
        **dict.fromkeys((reduction.ArgMax, reduction.ArgMin), _extremum),
        **dict.fromkeys(_NAMES, _function),
        arithmetic.SquaredDifference: _squared_difference,
        BatchMatmul: _product,
        Gather: _gather,
        CastTo: _cast,
        FullyConnected: _dense,
        Gelu: _gelu,
        Select: _select,
        Tile: _tile,
        TransposeConv: _transposed_convolution,
        Rsqrt: _rsqrt,
        Assign: _assigned,
        Lstm: write_lstm,
        Relu: _relu,
        LeakyRelu: _leaky_relu,
        Softmax: _softmax,
        Concatenation: _concatenation,
        Reshape: _reshape,
        Transpose: _transpose,
        Pad: _pad,
        StridedSlice: _slice,
    }
)


def writer_of(node: Node) -> WriteNode | None:
    """Return what writes a node; None if nothing does.

    Integers of an operator that takes them as they are stored are no real numbers to ONNX.
    """
    record = record_of(node.op)
    if type(node.op) in _WRITERS:
        return None if _says_more(node) else _WRITERS[type(node.op)]
    is_real = node.inputs[0].dtype.is_float or not record.has(Trait.STORED)
    return _function if record.onnx and is_real else None


def _says_more(node: Node) -> bool:
    """Return whether a node computes what the operator of its kind does not in ONNX."""
    match node.op:
        case Pad() | StridedSlice():
            return len(node.inputs) > 1
        case arithmetic.Maximum() | arithmetic.Minimum():  # of what is stored, where scales differ
            return len({tensor.type.quantization for tensor in node.inputs}) > 1
        case Select() as op:
            return op.by_rows
        case Gather() as op:
            return op.batch_dims > 0
        case Lstm() as op:
            return limits_cells(node, op)
        case TransposeConv() as op:  # it adds less than a stride behind the last window
            ends = zip(_lost_at_ends(node, op), op.strides, strict=True)
            return any(-end >= stride for end, stride in ends)
        case _:
            return False
