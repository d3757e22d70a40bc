"""Makes the one operator that a case is about, with its tensors."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from microtir.conform.draw import Draw
from microtir.conform.kind import Kind
from microtir.dtype import DType
from microtir.graph.ir import Array, Node, Quantization, SourceLocation, Tensor, TensorType
from microtir.graph.operator import Operator
from microtir.operators.arithmetic.definition import Add, Mul
from microtir.operators.common.attributes import Padding2D
from microtir.operators.convolution.definition import Conv2D, DepthwiseConv2D
from microtir.operators.dense.definition import FullyConnected
from microtir.operators.pooling.definition import AveragePool2D, MaxPool2D
from microtir.operators.softmax.definition import Softmax


@dataclass(frozen=True, slots=True)
class Layer:
    """One operator, an array for each input that is no constant, and the extents by name."""

    node: Node
    inputs: tuple[Array, ...]
    extents: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))


def draw_layer(kind: Kind, draw: Draw) -> Layer:
    """Draw a layer of a kind."""
    return _LAYERS[kind](kind, draw)


def _tensor(name: str, shape: tuple[int, ...], quantization: Quantization) -> Tensor:
    return Tensor(name, TensorType(shape, DType.INT8, quantization))


def _node(op: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> Node:
    source = SourceLocation("conform", 0, op.name.upper())
    return Node(op, inputs, (output,), "layer", source)


def _constants(
    draw: Draw, shape: tuple[int, ...], channels: int, terms: int, x: Quantization
) -> tuple[tuple[Tensor, ...], float]:
    """Return the weights and perhaps a bias, and the largest scale of a sum."""
    axis = 3 if shape[0] == 1 and len(shape) == 4 and channels == shape[3] else 0
    quantization = draw.weight_quantization(channels, axis)
    factor = x.scale * max(quantization.scales)
    weights = Tensor("weights", TensorType(shape, DType.INT8, quantization), draw.weights(shape))
    if not draw.number("has_bias"):
        return (weights,), factor
    scales = tuple(x.scale * scale for scale in quantization.scales)
    own = Quantization(scales, (0,) * len(scales), 0 if len(scales) > 1 else None)
    bias = draw.bias(channels, terms)
    return (weights, Tensor("bias", TensorType((channels,), DType.INT32, own), bias)), factor


@dataclass(frozen=True, slots=True)
class _Window:
    """A window over an image; pairs are rows, columns."""

    image: tuple[int, int]
    window: tuple[int, int]
    strides: tuple[int, int]
    dilations: tuple[int, int]
    padding: Padding2D
    output: tuple[int, int]

    def extents(self) -> dict[str, int]:
        """Return its numbers by the names that adapters use."""
        pairs = {
            "input": self.image,
            "filter": self.window,
            "stride": self.strides,
            "dilation": self.dilations,
            "output": self.output,
        }
        sides = ("height", "width")
        numbers = {f"{n}_{s}": v for n, p in pairs.items() for s, v in zip(sides, p, strict=True)}
        return numbers | {"pad_top": self.padding.top, "pad_left": self.padding.left}


def _side(draw: Draw, side: str, ends: tuple[str, str]) -> tuple[int, ...]:
    """Draw an axis: extent, window, stride, dilation, padding on both ends, outputs."""
    window = draw.number(f"filter_{side}")
    dilation = draw.number(f"dilation_{side}") if f"dilation_{side}" in draw.ranges else 1
    spread = (window - 1) * dilation + 1
    before = draw.number(f"pad_{ends[0]}", most=window - 1)
    after = draw.number(f"pad_{ends[1]}", most=min(window - 1, before + 1))
    extent = max(draw.number(f"input_{side}"), spread - before - after, spread // 2 + 1)
    stride = draw.number(f"stride_{side}")
    count = (extent + before + after - spread) // stride + 1
    # What no window reads is no padding.
    after = max(0, (count - 1) * stride + spread - before - extent)
    return extent, window, stride, dilation, before, after, count


def _window(draw: Draw) -> _Window:
    rows = _side(draw, "height", ("top", "bottom"))
    columns = _side(draw, "width", ("left", "right"))
    pairs = tuple(zip(rows, columns, strict=True))
    padding = Padding2D(rows[4], rows[5], columns[4], columns[5])
    return _Window(pairs[0], pairs[1], pairs[2], pairs[3], padding, pairs[6])


_MOST_PRODUCTS = 60_000  # of a case, so that boards and emulators run many
_MOST_ELEMENTS = 3_000  # of an image


def _convolution(_kind: Kind, draw: Draw) -> Layer:
    window = _window(draw)
    batches, outputs = draw.number("batches"), draw.number("output_channels")
    taps = math.prod(window.window) * math.prod(window.output) * batches * outputs
    inputs = draw.number("input_channels", most=_MOST_PRODUCTS // taps)
    shape = (outputs, *window.window, inputs)
    quantization = draw.quantization()
    terms = math.prod(shape[1:])
    constants, factor = _constants(draw, shape, outputs, terms, quantization)
    op = Conv2D(window.strides, window.dilations, window.padding, draw.activation())
    extents = {**window.extents(), "depth_multiplier": 1}
    return _weighted(
        draw, op, (batches, *window.image, inputs), quantization, constants,
        (batches, *window.output, outputs), factor, terms, extents,
    )  # fmt: skip


def _depthwise(_kind: Kind, draw: Draw) -> Layer:
    window = _window(draw)
    batches, multiplier = draw.number("batches"), draw.number("depth_multiplier")
    inputs = draw.number("input_channels")
    outputs = inputs * multiplier
    quantization = draw.quantization()
    terms = math.prod(window.window)
    constants, factor = _constants(draw, (1, *window.window, outputs), outputs, terms, quantization)
    op = DepthwiseConv2D(
        window.strides, window.dilations, window.padding, multiplier, draw.activation()
    )
    extents = {**window.extents(), "depth_multiplier": multiplier}
    return _weighted(
        draw, op, (batches, *window.image, inputs), quantization, constants,
        (batches, *window.output, outputs), factor, terms, extents,
    )  # fmt: skip


def _dense(_kind: Kind, draw: Draw) -> Layer:
    batches, inputs = draw.number("batches"), draw.number("input_channels")
    outputs = draw.number("output_channels")
    quantization = draw.quantization()
    constants, factor = _constants(draw, (outputs, inputs), outputs, inputs, quantization)
    return _weighted(
        draw, FullyConnected(draw.activation()), (batches, inputs), quantization, constants,
        (batches, outputs), factor, inputs, {},
    )  # fmt: skip


def _weighted(
    draw: Draw,
    op: Operator,
    shape: tuple[int, ...],
    quantization: Quantization,
    constants: tuple[Tensor, ...],
    output: tuple[int, ...],
    factor: float,
    terms: int,
    extents: Mapping[str, int],
) -> Layer:
    x = _tensor("x", shape, quantization)
    y = _tensor("y", output, draw.output_quantization(factor, draw.spread(terms)))
    values = draw.values(shape, quantization.zero_point)
    return Layer(_node(op, (x, *constants), y), (values,), extents)


def _pool(kind: Kind, draw: Draw) -> Layer:
    window = _window(draw)
    batches = draw.number("batches")
    channels = draw.number("input_channels", _MOST_ELEMENTS // math.prod(window.image))
    quantization = draw.quantization()
    pooling = AveragePool2D if kind is Kind.AVERAGE_POOL else MaxPool2D
    op = pooling(window.window, window.strides, window.padding, draw.activation())
    shape = (batches, *window.image, channels)
    y = _tensor("y", (batches, *window.output, channels), quantization)
    node = _node(op, (_tensor("x", shape, quantization),), y)
    return Layer(node, (draw.values(shape, quantization.zero_point),), window.extents())


def _elementwise(kind: Kind, draw: Draw) -> Layer:
    shape = (1, draw.number("elements"))
    first, second = draw.quantization(), draw.quantization()
    if kind is Kind.ADD:
        op: Operator = Add(draw.activation())
        largest = 2.0 * max(first.scale, second.scale)
        output = draw.quantization(draw.stored_scale(largest / draw.rng.uniform(0.7, 3)))
    else:
        op = Mul(draw.activation())
        output = draw.output_quantization(first.scale * second.scale, draw.spread(1))
    inputs = (_tensor("x", shape, first), _tensor("other", shape, second))
    values = tuple(draw.values(shape, q.zero_point) for q in (first, second))
    return Layer(_node(op, inputs, _tensor("y", shape, output)), values)


def _softmax(_kind: Kind, draw: Draw) -> Layer:
    shape = (draw.number("batches"), draw.number("input_channels"))
    beta = float(np.float32(draw.rng.choice([1.0, draw.rng.uniform(0.3, 3)])))
    quantization = draw.quantization()
    y = _tensor("y", shape, Quantization((1 / 256,), (-128,)))
    node = _node(Softmax(beta), (_tensor("x", shape, quantization),), y)
    return Layer(node, (draw.values(shape, quantization.zero_point),))


_LAYERS: Mapping[Kind, Callable[[Kind, Draw], Layer]] = {
    Kind.CONVOLUTION: _convolution,
    Kind.DEPTHWISE: _depthwise,
    Kind.DENSE: _dense,
    Kind.AVERAGE_POOL: _pool,
    Kind.MAX_POOL: _pool,
    Kind.ADD: _elementwise,
    Kind.MUL: _elementwise,
    Kind.SOFTMAX: _softmax,
}
