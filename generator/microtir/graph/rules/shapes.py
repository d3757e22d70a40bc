"""The shapes of outputs, and attributes that fit the shapes of inputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import TypeAlias

from microtir.errors import GraphError
from microtir.graph import ops
from microtir.graph.ir import Node
from microtir.graph.rules.problem import Problem

Shape: TypeAlias = tuple[int, ...]


def output_shapes(node: Node) -> Iterator[Problem]:
    """Outputs have the shapes that follow from the inputs."""
    try:
        expected = _SHAPES[type(node.op)](node)
    except GraphError as error:
        yield Problem(error.what, error.legal)
        return
    for tensor, shape in zip(node.outputs, expected, strict=True):
        if tensor.shape != shape:
            yield Problem(f"its shape is {tensor.shape}", f"{shape}", tensor)


def inferred_shapes(node: Node) -> tuple[Shape, ...] | None:
    """The shapes that follow from the inputs; None if these contradict the operator.

    An operator that can give several takes what its outputs have, if that is one of them.
    """
    try:
        return _SHAPES[type(node.op)](node)
    except GraphError:
        return None


def _require(condition: bool, what: str, legal: str | None = None) -> None:
    if not condition:
        raise GraphError(what, legal=legal)


def _input(node: Node, index: int, rank: int) -> Shape:
    shape = node.inputs[index].shape
    _require(len(shape) == rank, f"input {index} has the shape {shape}", f"{rank} dimensions")
    return shape


def _positions(size: int, window: int, stride: int, dilation: int, before: int, after: int) -> int:
    """Positions of a window along an axis with padding."""
    legal = "window, stride and dilation from 1, padding from 0"
    _require(min(window, stride, dilation) >= 1 and min(before, after) >= 0, "attributes", legal)
    reach = (window - 1) * dilation + 1
    padded = before + size + after
    _require(padded >= reach, f"a window that reaches over {reach} does not fit into {padded}")
    return (padded - reach) // stride + 1


def _windowed(
    image: Shape, window: tuple[int, int], dilations: tuple[int, int],
    op: ops.Conv2D | ops.DepthwiseConv2D | ops.Pool2D, channels: int,
) -> Shape:  # fmt: skip
    p, (stride_h, stride_w) = op.padding, op.strides
    rows = _positions(image[1], window[0], stride_h, dilations[0], p.top, p.bottom)
    columns = _positions(image[2], window[1], stride_w, dilations[1], p.left, p.right)
    return image[0], rows, columns, channels


def _bias(node: Node, channels: int) -> None:
    if len(node.inputs) == 3:
        shape = node.inputs[2].shape
        _require(shape == (channels,), f"the bias has the shape {shape}", f"({channels},)")


def _conv_2d(node: Node) -> tuple[Shape, ...]:
    assert isinstance(node.op, ops.Conv2D)
    image, weights = _input(node, 0, 4), _input(node, 1, 4)
    _require(
        weights[3] == image[3],
        f"weights {weights} for an image of {image[3]} channels",
        f"(O, KH, KW, {image[3]})",
    )
    _bias(node, weights[0])
    return (_windowed(image, (weights[1], weights[2]), node.op.dilations, node.op, weights[0]),)


def _depthwise_conv_2d(node: Node) -> tuple[Shape, ...]:
    assert isinstance(node.op, ops.DepthwiseConv2D)
    image, weights = _input(node, 0, 4), _input(node, 1, 4)
    channels = image[3] * node.op.depth_multiplier
    _require(
        weights[0] == 1 and weights[3] == channels,
        f"weights {weights} for {image[3]} channels times {node.op.depth_multiplier}",
        f"(1, KH, KW, {channels})",
    )
    _bias(node, channels)
    return (_windowed(image, (weights[1], weights[2]), node.op.dilations, node.op, channels),)


def _pool_2d(node: Node) -> tuple[Shape, ...]:
    op = node.op
    assert isinstance(op, ops.Pool2D)
    image = _input(node, 0, 4)
    result = _windowed(image, op.window, (1, 1), op, image[3])
    sides = ((0, op.padding.top, 1), (1, op.padding.left, 2))
    for side, before, axis in sides:
        last = (result[axis] - 1) * op.strides[side] - before
        _require(
            before < op.window[side] and last < image[axis],
            f"a window along axis {axis} lies outside the image",
            "every window holds an element of the image",
        )
    return (result,)


def _fully_connected(node: Node) -> tuple[Shape, ...]:
    weights = _input(node, 1, 2)
    elements = node.inputs[0].type.elements
    _require(
        elements % weights[1] == 0,
        f"input of shape {node.inputs[0].shape} for weights {weights}",
        f"rows of {weights[1]} elements",
    )
    rows = elements // weights[1]
    _bias(node, weights[0])
    # Leading dimensions may be kept or merged.
    shape = node.output.shape
    keeps = shape[-1:] == weights[:1] and math.prod(shape) == rows * weights[0]
    return (shape if keeps else (rows, weights[0]),)


def _mean(node: Node) -> tuple[Shape, ...]:
    assert isinstance(node.op, ops.Mean)
    axes, shape = node.op.axes, node.inputs[0].shape
    _require(
        list(axes) == sorted(set(axes)) and all(0 <= axis < len(shape) for axis in axes),
        f"axes {axes} for the shape {shape}",
        "axes of the input in ascending order",
    )
    return (
        tuple(
            1 if axis in axes else extent
            for axis, extent in enumerate(shape)
            if node.op.keep_dims or axis not in axes
        ),
    )


def _same(node: Node) -> tuple[Shape, ...]:
    return (node.inputs[0].shape,)


def _rows(node: Node) -> tuple[Shape, ...]:
    _require(len(node.inputs[0].shape) >= 1, "the input is a scalar", "at least one dimension")
    return _same(node)


def _broadcast(node: Node) -> tuple[Shape, ...]:
    first, second = (tensor.shape for tensor in node.inputs)
    rank = max(len(first), len(second))
    pairs = list(
        zip((1,) * (rank - len(first)) + first, (1,) * (rank - len(second)) + second, strict=True)
    )
    _require(
        all(a == b or 1 in (a, b) for a, b in pairs),
        f"shapes {first} and {second}",
        "equal extents, or 1, counted from the last dimension",
    )
    return (tuple(max(pair) for pair in pairs),)


def _pad(node: Node) -> tuple[Shape, ...]:
    op, source = node.op, node.inputs[0]
    assert isinstance(op, ops.Pad)
    _require(
        len(op.before) == len(op.after) == len(source.shape)
        and min((*op.before, *op.after), default=0) >= 0,
        f"paddings {op.before} and {op.after} for the shape {source.shape}",
        "a number from 0 for each side of each dimension",
    )
    if not source.dtype.is_float:
        in_range = source.dtype.min <= op.value <= source.dtype.max
        _require(
            in_range and float(op.value).is_integer(),
            f"the value {op.value}",
            f"a {source.dtype.value}",
        )
    axes = zip(op.before, source.shape, op.after, strict=True)
    return (tuple(before + extent + after for before, extent, after in axes),)


def _concatenation(node: Node) -> tuple[Shape, ...]:
    assert isinstance(node.op, ops.Concatenation)
    parts, axis = [tensor.shape for tensor in node.inputs], node.op.axis
    first = parts[0]
    _require(0 <= axis < len(first), f"axis {axis} of the shape {first}")
    rest = {(shape[:axis], shape[axis + 1 :]) for shape in parts}
    _require(
        len(rest) == 1, f"shapes {parts} along axis {axis}", "shapes that differ in that axis only"
    )
    return ((*first[:axis], sum(shape[axis] for shape in parts), *first[axis + 1 :]),)


def _placed(node: Node) -> tuple[Shape, ...]:
    op, image = node.op, _input(node, 0, 4)
    assert isinstance(op, ops.PlaceColumns)
    _require(
        0 <= op.column <= op.width - image[2],
        f"{image[2]} columns from {op.column} of {op.width}",
        "columns inside the joined image",
    )
    return (image,)


def _joined(node: Node) -> tuple[Shape, ...]:
    parts = [_input(node, position, 4) for position in range(len(node.inputs))]
    rest = {(*shape[:2], shape[3]) for shape in parts}
    _require(len(rest) == 1, f"shapes {parts}", "shapes that differ in their columns only")
    return ((*parts[0][:2], sum(shape[2] for shape in parts), parts[0][3]),)


def _reshape(node: Node) -> tuple[Shape, ...]:
    elements, shape = node.inputs[0].type.elements, node.output.shape
    _require(math.prod(shape) == elements, f"{elements} elements to the shape {shape}")
    return (shape,)


def _transpose(node: Node) -> tuple[Shape, ...]:
    assert isinstance(node.op, ops.Transpose)
    shape, permutation = node.inputs[0].shape, node.op.permutation
    _require(
        sorted(permutation) == list(range(len(shape))),
        f"permutation {permutation} of the shape {shape}",
        "every axis once",
    )
    return (tuple(shape[axis] for axis in permutation),)


def _split(node: Node) -> tuple[Shape, ...]:
    assert isinstance(node.op, ops.Split)
    shape, axis, parts = node.inputs[0].shape, node.op.axis, len(node.outputs)
    _require(
        0 <= axis < len(shape) and shape[axis] % parts == 0,
        f"{parts} parts along axis {axis} of the shape {shape}",
        "equal parts",
    )
    return ((*shape[:axis], shape[axis] // parts, *shape[axis + 1 :]),) * parts


def _strided_slice(node: Node) -> tuple[Shape, ...]:
    op, shape = node.op, node.inputs[0].shape
    assert isinstance(op, ops.StridedSlice)
    _require(
        len(op.begin) == len(op.strides) == len(op.extent) == len(shape),
        f"begin {op.begin}, strides {op.strides}, extent {op.extent} of the shape {shape}",
        "one number per dimension",
    )
    for size, begin, stride, extent in zip(shape, op.begin, op.strides, op.extent, strict=True):
        last = begin + stride * (extent - 1)
        _require(
            extent >= 1 and stride != 0 and 0 <= begin < size and 0 <= last < size,
            f"elements {begin} to {last} by {stride} of an axis of {size}",
            "a part of the axis that is not empty",
        )
    # The output may leave out axes of one element, and have new ones.
    result = node.output.shape
    significant = [extent for extent in op.extent if extent != 1]
    keeps = [extent for extent in result if extent != 1] == significant
    return (result if keeps else op.extent,)


def _resize(node: Node) -> tuple[Shape, ...]:
    assert isinstance(node.op, ops.Resize)
    image, shape = _input(node, 0, 4), node.output.shape
    both = node.op.align_corners and node.op.half_pixel_centers
    _require(not both, "align_corners and half_pixel_centers are both set", "at most one")
    _require(len(shape) == 4, f"the output has the shape {shape}", "4 dimensions")
    return ((image[0], shape[1], shape[2], image[3]),)


def _declared(node: Node) -> tuple[Shape, ...]:
    """What an operator of the user makes is what its outputs are declared as."""
    return tuple(tensor.shape for tensor in node.outputs)


_SHAPES: Mapping[type[ops.Operator], Callable[[Node], tuple[Shape, ...]]] = MappingProxyType(
    {
        ops.Conv2D: _conv_2d,
        ops.DepthwiseConv2D: _depthwise_conv_2d,
        ops.FullyConnected: _fully_connected,
        ops.AveragePool2D: _pool_2d,
        ops.MaxPool2D: _pool_2d,
        ops.Mean: _mean,
        ops.Add: _broadcast,
        ops.Sub: _broadcast,
        ops.Mul: _broadcast,
        ops.Minimum: _broadcast,
        ops.Maximum: _broadcast,
        ops.PlaceColumns: _placed,
        ops.JoinColumns: _joined,
        ops.ReadRows: _same,
        ops.WriteRows: _same,
        ops.Relu: _same,
        ops.LeakyRelu: _same,
        ops.HardSwish: _same,
        ops.Logistic: _same,
        ops.Tanh: _same,
        ops.Softmax: _rows,
        ops.LogSoftmax: _rows,
        ops.Pad: _pad,
        ops.Concatenation: _concatenation,
        ops.Reshape: _reshape,
        ops.Transpose: _transpose,
        ops.Split: _split,
        ops.StridedSlice: _strided_slice,
        ops.ResizeNearestNeighbor: _resize,
        ops.ResizeBilinear: _resize,
        ops.Quantize: _same,
        ops.Dequantize: _same,
        ops.CastTo: _same,
        ops.Custom: _declared,
    }
)
