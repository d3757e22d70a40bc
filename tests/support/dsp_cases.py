"""Random integer graphs, mostly of one layer, with extremes, for kernels of register blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from microtir.dtype import DType
from microtir.graph.ir import Graph, Quantization, Tensor, TensorType
from microtir.graph.operator import Operator
from microtir.operators.arithmetic.definition import Add
from microtir.operators.common.attributes import Activation, Padding2D, Rescaling
from microtir.operators.common.linear import WeightedOperator
from microtir.operators.convolution.definition import Conv2D, DepthwiseConv2D
from microtir.operators.dense.definition import FullyConnected
from microtir.operators.matmul.definition import BatchMatmul
from microtir.operators.movement.definition import Reshape
from microtir.operators.pooling.definition import AveragePool2D, MaxPool2D
from microtir.operators.transposed_convolution.definition import TransposeConv
from tests.support import graphs

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class DspCase:
    """A graph of a layer or a few and its inputs."""

    name: str
    graph: Graph
    inputs: tuple[Array, ...]

    def named_inputs(self) -> dict[str, Array]:
        names = (t.name for t in self.graph.inputs)
        return dict(zip(names, self.inputs, strict=True))


@dataclass(frozen=True)
class Sizes:
    """What shapes are drawn from."""

    widths: range = range(1, 10)
    heights: range = range(1, 8)
    channels: tuple[int, ...] = (1, 2, 3, 4, 5, 7, 8, 11, 12, 16, 20, 33, 100)
    outputs: tuple[int, ...] = (1, 2, 3, 4, 5, 8, 9, 14)


SMALL = Sizes()
NARROW = Sizes(widths=range(2, 80), channels=(4, 8))  # few values for each sum, many sums
LONG = Sizes(widths=range(1, 4), heights=range(1, 3), channels=(520, 700))  # several sums
FEW = Sizes(widths=range(4, 40), channels=(1, 2, 3, 6))  # windows of few values overlap
ONE_COLUMN = Sizes(widths=range(1, 2), heights=range(3, 30))
TILED = Sizes(
    widths=range(7, 24), heights=range(1, 6), channels=(8, 9, 11, 10, 16, 36), outputs=(2, 3, 5, 6)
)
SLIM = Sizes(widths=range(3, 9), heights=range(1, 6), channels=(8, 11, 16), outputs=(4, 5, 7))
FEW_TILES = Sizes(widths=range(8, 21), heights=range(1, 6), channels=(8, 9, 17), outputs=(4, 5, 8))
DEEP = Sizes(widths=range(8, 10), heights=range(1, 4), channels=(112, 256), outputs=(2, 3, 4))
GROUPED = Sizes(channels=(12, 24, 36), outputs=(12, 24, 36, 60))
WIDE = Sizes(widths=range(4, 13, 4), heights=range(2, 6), channels=(16, 20, 32))


def _weights(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Draw weights of the whole range; in some layers one is -128, or all are extremes."""
    style = rng.integers(0, 6)
    if style == 0:
        return rng.choice(np.array([-127, 127], np.int8), shape)
    values = rng.integers(-127, 128, shape).astype(np.int8)
    if style == 1:
        values.reshape(-1)[rng.integers(0, values.size)] = -128
    return values


def _output(
    rng: np.random.Generator, shape: tuple[int, ...], channels: int, terms: int, axis: int,
    activation: Activation,
) -> tuple[Tensor, Quantization]:  # fmt: skip
    """Draw output and quantisation of weights so that factors lie anywhere in 2^-31 to 2."""
    style = rng.integers(0, 8)
    usual = 1.0 / (40.0 * np.sqrt(terms))
    low, high = {0: (2.0**-31, 1.0), 1: (0.5, 1.99), 2: (2.0**-12, 2.0**-11)}.get(
        int(style), (usual / 2, usual * 2)
    )
    factors = np.exp(rng.uniform(np.log(low), np.log(high), channels))
    if rng.random() < 0.3:
        factors[:] = factors[0]
    relu = activation is not Activation.NONE and rng.random() < 0.7
    zero_point = -128 if relu else int(rng.integers(-128, 128))
    # Input scale 1/64 and output scale 1/16: a factor is the weight's scale divided by 4.
    quant = graphs.per_channel([float(f) * 4 for f in factors], axis)
    return graphs.tensor("y", shape, DType.INT8, graphs.quant(1 / 16, zero_point)), quant


def _bias(rng: np.random.Generator, channels: int, weights: Quantization) -> Tensor:
    values = rng.integers(-3000, 3000, channels).astype(np.int32)
    return graphs.constant("bias", values, graphs.per_channel([s / 64 for s in weights.scales], 0))


def _finish(
    name: str, op: Operator, tensors: tuple[Tensor, ...], y: Tensor, *inputs: Array
) -> DspCase:
    node = graphs.node(op, tensors, y)
    graph_inputs = tuple(t for t in dict.fromkeys(tensors) if not t.is_constant)
    return DspCase(name, graphs.graph([node], graph_inputs, [y]), inputs)


def _stored(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Draw inputs of the whole range; in some cases extremes only."""
    if rng.random() < 0.15:
        return rng.choice(np.array([-128, 127], np.int8), shape)
    return rng.integers(-128, 128, shape).astype(np.int8)


def convolution(
    seed: int,
    *,
    depthwise: bool = False,
    sizes: Sizes = SMALL,
    square: bool = False,
    pointwise: bool = False,
    same: bool = False,
    source: Tensor | None = None,
) -> DspCase:
    """Draw a CONV_2D or DEPTHWISE_CONV_2D of any width, channels, strides, dilations, padding.

    A square one has 3x3 taps that are not dilated, a pointwise one a single tap for every pixel,
    one of the same size 3x3 taps around each pixel.  One of a source has that tensor as its input.
    """
    rng = np.random.default_rng([seed, int(depthwise)])
    height = int(rng.integers(sizes.heights.start, sizes.heights.stop))
    width = int(rng.integers(sizes.widths.start, sizes.widths.stop))
    taps = (int(rng.integers(1, 4)), int(rng.integers(1, 4)))
    if rng.random() < 0.3:
        taps = (1, 1)
    dilations = (int(rng.integers(1, 3)), int(rng.integers(1, 3)))
    strides = (int(rng.integers(1, 3)), int(rng.integers(1, 3)))
    if square:
        taps, dilations = (3, 3), (1, 1)
        width += 24 if rng.random() < 0.2 else 0  # whole turns of loops
    if pointwise or same:
        taps, dilations, strides = ((3, 3) if same else (1, 1)), (1, 1), (1, 1)
    channels = int(rng.choice(sizes.channels))
    if source is not None:
        _, height, width, channels = source.shape
    reach = tuple((k - 1) * d + 1 for k, d in zip(taps, dilations, strict=True))
    pads = [int(rng.integers(0, r)) for r in (reach[0], reach[0], reach[1], reach[1])]
    pads = [int(same)] * 4 if rng.random() < 0.3 or same else pads
    out_h = (height + pads[0] + pads[1] - reach[0]) // strides[0] + 1
    out_w = (width + pads[2] + pads[3] - reach[1]) // strides[1] + 1
    if out_h < 1 or out_w < 1:
        return convolution(
            seed + 1_000_000,
            depthwise=depthwise,
            sizes=sizes,
            square=square,
            pointwise=pointwise,
            same=same,
            source=source,
        )
    activation = Activation(rng.choice(np.array([a.value for a in Activation])))
    padding = Padding2D(*pads)
    x_data = _stored(rng, (1, height, width, channels))
    x = source or graphs.tensor(
        "x", x_data.shape, DType.INT8, graphs.quant(1 / 64, int(rng.integers(-128, 128)))
    )
    outputs = channels if depthwise else int(rng.choice(sizes.outputs))
    terms = taps[0] * taps[1] * (1 if depthwise else channels)
    y, quant = _output(
        rng, (1, out_h, out_w, outputs), outputs, terms, 3 if depthwise else 0, activation
    )
    shape = (1, *taps, channels) if depthwise else (outputs, *taps, channels)
    w = graphs.constant("w", _weights(rng, shape), quant)
    tensors = (x, w, _bias(rng, outputs, quant)) if rng.random() < 0.8 else (x, w)
    if depthwise:
        op: Operator = DepthwiseConv2D(
            strides, dilations=dilations, padding=padding, activation=activation
        )
    else:
        op = Conv2D(strides, dilations=dilations, padding=padding, activation=activation)
    form = "3x3" if square else "1x1" if pointwise else "same" if same else ""
    name = f"{'depthwise' if depthwise else 'conv'}{form}_{seed}"
    return _finish(name, op, tensors, y, x_data)


def tiled(seed: int, sizes: Sizes = TILED) -> DspCase:
    """Draw a CONV_2D of 3x3 taps, of whole tiles and what is left of them; many have extremes.

    Weights are all 127, all -128 or take turns, so that sums are the largest that there are.  A few
    have so many channels that loads reach a row and no more, or the most that there may be, and a
    few have rows of less than all tiles.
    """
    if sizes is TILED:
        sizes = DEEP if seed % 16 == 7 else SLIM if seed % 8 == 3 else TILED
    case = convolution(seed, sizes=sizes, square=True, same=sizes is DEEP)
    node = case.graph.nodes[0]
    x, w, *rest = node.inputs
    assert w.data is not None
    largest = np.array([127, -128], np.int8)
    numbers = np.arange(w.data.size).reshape(w.shape)
    extremes: dict[int, Array] = {0: numbers * 0, 1: numbers * 0 + 1, 2: numbers % 2}
    data, stored = w.data, case.inputs[0]
    if seed % 5 in extremes:
        data = largest[extremes[seed % 5]]
        stored = largest[
            np.random.default_rng([seed, 11]).integers(0, 2, stored.shape) * (seed % 2)
        ]
    inputs = (x, replace(w, data=data), *rest)
    graph = replace(case.graph, nodes=(replace(node, inputs=inputs),))
    return DspCase(f"tiled_{seed}", graph, (stored,))


def ties(seed: int) -> DspCase:
    """Draw a FULLY_CONNECTED whose factors are powers of two: both roundings meet ties."""
    rng = np.random.default_rng([seed, 5])
    rows, inputs, outputs = 12, int(rng.integers(1, 4)) * 4, int(rng.integers(4, 10))
    x_data = _stored(rng, (rows, inputs))
    x = graphs.tensor(
        "x", x_data.shape, DType.INT8, graphs.quant(1 / 64, int(rng.integers(-128, 128)))
    )
    # The second rounding of a factor 2^-n drops n - 1 bits; of one half, none.
    factors = 2.0 ** -rng.integers(1, 8, outputs)
    quant = graphs.per_channel([float(f) * 4 for f in factors], 0)
    output = graphs.quant(1 / 16, int(rng.integers(-20, 20)))
    y = graphs.tensor("y", (rows, outputs), DType.INT8, output)
    weights = rng.integers(-2, 3, (outputs, inputs)).astype(np.int8)
    w = graphs.constant("w", weights, quant)
    tensors = (x, w, _bias(rng, outputs, quant))
    return _finish(f"ties_{seed}", FullyConnected(), tensors, y, x_data)


def floating(seed: int, *, depthwise: bool = False) -> DspCase:
    """Draw the shapes of `convolution` with float32 values."""
    name = f"float_{'depthwise' if depthwise else 'conv'}_{seed}"
    return in_floats(name, seed, convolution(seed, depthwise=depthwise))


def floating_dense(seed: int) -> DspCase:
    """Draw the shapes of `fully_connected` with float32 values."""
    return in_floats(f"float_dense_{seed}", seed, fully_connected(seed))


def in_whole_floats(seed: int, case: DspCase) -> DspCase:
    """Return a case with small whole numbers, whose sums are exact in any order, fused or not."""
    return in_floats(f"f32_{case.name}", seed, case, is_whole=True)


def in_floats(name: str, seed: int, case: DspCase, *, is_whole: bool = False) -> DspCase:
    """Return a case of one layer with float32 values."""
    node = case.graph.nodes[0]
    rng = np.random.default_rng([seed, 4])

    def values(shape: tuple[int, ...]) -> Array:
        drawn = rng.integers(-9, 10, shape) if is_whole else rng.normal(size=shape)
        return drawn.astype(np.float32)

    tensors = {
        t: Tensor(
            t.name, TensorType(t.shape, DType.FLOAT32), values(t.shape) if t.is_constant else None
        )
        for t in node.inputs
    }
    y = graphs.tensor("y", node.output.shape, DType.FLOAT32)
    data = (values(t.shape) for t in tensors if not t.is_constant)
    return _finish(name, node.op, tuple(tensors[t] for t in node.inputs), y, *data)


def in_float_rescaling(case: DspCase, *, has_ties: bool = False) -> DspCase:
    """Return a case of one layer with weights whose sums are rescaled in float32.

    Where it `has_ties`, products with a factor of 2^-6 are, and no integers give the same.
    """
    node = case.graph.nodes[0]
    assert isinstance(node.op, WeightedOperator)
    x, w, *rest = node.inputs
    if has_ties:
        quant = w.type.quant
        scale = float(np.float32(node.output.type.quant.scale / x.type.quant.scale / 64))
        quant = replace(quant, scales=(scale,) * len(quant.scales))
        w = Tensor(w.name, replace(w.type, quantization=quant), w.data)
    op = replace(node.op, rescaling=Rescaling.FLOAT32)
    graph = replace(case.graph, nodes=(replace(node, op=op, inputs=(x, w, *rest)),))
    return DspCase(f"{case.name}_in_float{'_ties' * has_ties}", graph, case.inputs)


def with_wide_weights(seed: int, case: DspCase) -> DspCase:
    """Return a case of int8 whose weights are int8 and a number, as those with a zero point are.

    The zero point of its input lies near the mean of the data: the number counts once for each
    input, so that most outputs would be saturated otherwise, and a wrong sum would not be seen.
    """
    node = case.graph.nodes[0]
    rng = np.random.default_rng([seed, 11])
    drawn, w, *rest = node.inputs
    assert w.data is not None
    middle = round(float(case.inputs[0].mean())) + int(rng.integers(-4, 5))
    quant = graphs.quant(drawn.type.quant.scale, int(np.clip(middle, -128, 127)))
    x = graphs.tensor(drawn.name, drawn.shape, drawn.dtype, quant)
    number = int(rng.choice([-128, -76, -1, 1, 90, 127]))
    values = np.clip(w.data.astype(np.int16), -127, 127) + number
    wide = Tensor(w.name, replace(w.type, dtype=DType.INT16), values.astype(np.int16))
    graph = replace(case.graph, inputs=(x,), nodes=(replace(node, inputs=(x, wide, *rest)),))
    return DspCase(f"wide_{case.name}", graph, case.inputs)


def in_four_bits(case: DspCase) -> DspCase:
    """Return a case of one layer whose weights fit four bits, extremes among them."""
    node = case.graph.nodes[0]
    x, w, *rest = node.inputs
    small = replace(w, data=None if w.data is None else w.data >> 4)
    graph = replace(case.graph, nodes=(replace(node, inputs=(x, small, *rest)),))
    return DspCase(f"s4_{case.name}", graph, case.inputs)


def in_int16(seed: int, case: DspCase) -> DspCase:
    """Return a case of one layer with weights, its data in int16; some with a bias of int32."""
    node = case.graph.nodes[0]
    rng = np.random.default_rng([seed, 8])
    if rng.random() < 0.15:
        data = rng.choice(np.array([-(1 << 15), (1 << 15) - 1], np.int16), node.inputs[0].shape)
    else:
        data = rng.integers(-(1 << 15), 1 << 15, node.inputs[0].shape).astype(np.int16)
    scales = (node.inputs[0].type.quant.scale, node.output.type.quant.scale)
    x, y = (
        graphs.tensor(t.name, t.shape, DType.INT16, graphs.quant(scale, 0))
        for t, scale in zip((node.inputs[0], node.output), scales, strict=True)
    )
    is_int32 = not isinstance(node.op, DepthwiseConv2D | TransposeConv) and rng.random() < 0.2
    values = rng.integers(-(1 << 20), 1 << 20, node.output.shape[-1])
    if not is_int32 and rng.random() < 0.2:  # sums may leave 32 bits
        values <<= rng.integers(0, 15, len(values))
    bias = graphs.constant("bias", values.astype(np.int32 if is_int32 else np.int64))
    tensors = (x, node.inputs[1], *(bias for _ in node.inputs[2:]))
    return _finish(f"s16_{case.name}", node.op, tensors, y, data)


def matmul_of_int16(seed: int) -> DspCase:
    """Draw one of int16: `matmul` in another type; some have the largest sums."""
    case, rng = matmul(seed), np.random.default_rng([seed, 36])
    node = case.graph.nodes[0]
    assert isinstance(node.op, BatchMatmul)
    scales = 2.0**-9, 2.0**-9, 2.0 ** rng.uniform(-5, 2)
    seen: dict[Tensor, Tensor] = {}
    for t, scale in zip((*node.inputs, node.output), scales, strict=True):
        seen.setdefault(t, graphs.tensor(t.name, t.shape, DType.INT16, graphs.quant(scale, 0)))
    x, w, y = (seen[t] for t in (*node.inputs, node.output))
    data = [rng.integers(-(1 << 15), 1 << 15, t.shape).astype(np.int16) for t in case.inputs]
    if rng.random() < 0.2:
        data = [np.full_like(values, -(1 << 15)) for values in data]
    return _finish(f"s16_{case.name}", node.op, (x, w), y, *data)


def in_int16_and_float(seed: int, case: DspCase) -> DspCase:
    """Return a case of one layer with weights in int16 that has zero points, rescaled in float."""
    made = in_int16(seed, case)
    node, rng = made.graph.nodes[0], np.random.default_rng([seed, 11])
    zero_points = rng.choice(np.array([-(1 << 15), -77, 0, 12345]), 2).tolist()
    x, y = (
        graphs.tensor(t.name, t.shape, DType.INT16, graphs.quant(t.type.quant.scale, zero_point))
        for t, zero_point in zip((node.inputs[0], node.output), zero_points, strict=True)
    )
    bias = (
        Tensor(t.name, replace(t.type, dtype=DType.INT64), t.data.astype(np.int64))
        for t in node.inputs[2:] if t.data is not None
    )  # fmt: skip
    (data,) = made.inputs
    tensors = (x, node.inputs[1], *bias)
    return in_float_rescaling(_finish(f"z_{made.name}", node.op, tensors, y, data))


def long_sums(seed: int) -> DspCase:
    """Draw a layer of int16 whose sums leave 32 bits: all products of a channel have one sign."""
    rng = np.random.default_rng([seed, 9])
    is_dense = seed % 2 == 0
    pixels, inputs, outputs = int(rng.integers(1, 4)), int(rng.integers(600, 1400)), 3 + seed % 4
    data = rng.choice(np.array([-(1 << 15), (1 << 15) - 1], np.int16), (pixels, inputs))
    sign = np.where(data[0] < 0, -1, 1) * rng.choice(np.array([-1, 1]), (outputs, 1))
    weights = (rng.integers(100, 128, (outputs, inputs)) * sign).astype(np.int8)
    factors = np.exp(rng.uniform(np.log(2.0**-20), np.log(2.0**-16), outputs))
    quant = graphs.per_channel([float(f) * 4 for f in factors], 0)
    shape = (pixels,) if is_dense else (1, 1, pixels)
    x, y = (
        graphs.tensor(name, (*shape, depth), DType.INT16, graphs.quant(scale, 0))
        for name, depth, scale in (("x", inputs, 1 / 64), ("y", outputs, 1 / 16))
    )
    w = graphs.constant("w", weights if is_dense else weights[:, None, None], quant)
    bias = graphs.constant("bias", rng.integers(-(1 << 34), 1 << 34, outputs))
    op: Operator = FullyConnected() if is_dense else Conv2D()
    return _finish(f"long_{seed}", op, (x, w, bias), y, data.reshape(x.shape))


def longest_sums(seed: int) -> DspCase:
    """Draw a FULLY_CONNECTED of int16 with the largest products that there are, all of one sign."""
    rng = np.random.default_rng([seed, 10])
    rows, inputs, outputs = 1 + seed % 3, int(rng.integers(256, 2100)), int(rng.integers(2, 9))
    data = np.full((rows, inputs), -(1 << 15), np.int16)
    weights = np.repeat(rng.choice(np.array([-128, 127], np.int8), (outputs, 1)), inputs, axis=1)
    factors = np.exp(rng.uniform(np.log(2.0**-20), np.log(2.0**-17), outputs))
    quant = graphs.per_channel([float(f) * 4 for f in factors], 0)
    x, y = (
        graphs.tensor(name, (rows, depth), DType.INT16, graphs.quant(scale, 0))
        for name, depth, scale in (("x", inputs, 1 / 64), ("y", outputs, 1 / 16))
    )
    bias = graphs.constant("bias", rng.integers(-(1 << 32), 1 << 32, outputs))
    tensors = (x, graphs.constant("w", weights, quant), bias)
    return _finish(f"longest_{seed}", FullyConnected(), tensors, y, data)


def fully_connected(seed: int, counts: Sequence[int] = (1, 1, 2, 3)) -> DspCase:
    """Draw a FULLY_CONNECTED with any number of outputs, one or more rows."""
    rng = np.random.default_rng([seed, 2])
    inputs = int(rng.choice([4, 8, 12, 20, 64, 68, 7, 19, 300]))
    outputs, rows = int(rng.integers(1, 20)), int(rng.choice(counts))
    activation = Activation(rng.choice(np.array([a.value for a in Activation])))
    x_data = _stored(rng, (rows, inputs))
    x = graphs.tensor(
        "x", x_data.shape, DType.INT8, graphs.quant(1 / 64, int(rng.integers(-128, 128)))
    )
    y, quant = _output(rng, (rows, outputs), outputs, inputs, 0, activation)
    w = graphs.constant("w", _weights(rng, (outputs, inputs)), quant)
    op = FullyConnected(activation=activation)
    return _finish(f"dense_{seed}", op, (x, w, _bias(rng, outputs, quant)), y, x_data)


def lines(seed: int) -> DspCase:
    """Draw a FULLY_CONNECTED of several rows."""
    return fully_connected(seed, (4, 7, 10, 18))


def add(seed: int) -> DspCase:
    """Draw an ADD of activations with unequal scales, or of one with itself."""
    rng = np.random.default_rng([seed, 3])
    shape = (1, *(int(n) for n in rng.integers(1, 8, 3)))
    scales = [float(np.exp(rng.uniform(np.log(0.001), 0))) for _ in range(3)]
    if rng.random() < 0.2:
        scales[1] = scales[0]
    a, b = (
        graphs.tensor(name, shape, DType.INT8, graphs.quant(scale, int(rng.integers(-128, 128))))
        for name, scale in (("a", scales[0]), ("b", scales[1]))
    )
    activation = Activation(rng.choice(np.array([a.value for a in Activation])))
    relu = activation is not Activation.NONE and rng.random() < 0.5
    output = graphs.quant(scales[2], -128 if relu else int(rng.integers(-128, 128)))
    y = graphs.tensor("y", shape, DType.INT8, output)
    op = Add(activation=activation)
    data = [_stored(rng, shape) for _ in range(2)]
    if rng.random() < 0.2:
        return _finish(f"add_{seed}", op, (a, a), y, data[0])
    return _finish(f"add_{seed}", op, (a, b), y, *data)


def add_ties(seed: int) -> DspCase:
    """Draw an ADD whose every rounding meets ties, above and below zero.

    Scales are powers of two, so that the sum is exact and half of what is odd is a tie.  The scale
    of the operand that is multiplied is far below that of the other one, where its own rounding
    decides which side of a tie the sum is on; or a little below it, where the first step does.
    """
    rng = np.random.default_rng([seed, 7])
    rows, columns, channels = 2, int(rng.integers(5, 8)), int(rng.choice([7, 8, 9, 13, 16]))
    shape = (1, rows, columns, channels)
    style = seed % 3
    if style == 0:
        other = 2.0 ** -int(rng.integers(1, 4))
    elif style == 1:
        other = 2.0 ** -int(rng.integers(20, 24))
    else:
        other = 1.0 - 2.0 ** -int(rng.integers(19, 23))
    scales = (1.0, other) if rng.random() < 0.5 else (other, 1.0)
    a, b = (
        graphs.tensor(name, shape, DType.INT8, graphs.quant(scale, int(rng.integers(-9, 10))))
        for name, scale in zip("ab", scales, strict=True)
    )
    output = graphs.quant(2.0 ** int(rng.integers(1, 3)), int(rng.integers(-9, 10)))
    y = graphs.tensor("y", shape, DType.INT8, output)
    data = [rng.integers(-60, 60, shape).astype(np.int8) for _ in range(2)]
    return _finish(f"add_ties_{seed}", Add(), (a, b), y, *data)


def pool(seed: int) -> DspCase:
    """Draw an AVERAGE_POOL_2D or MAX_POOL_2D over any part of the image."""
    rng = np.random.default_rng([seed, 4])
    height, width = int(rng.integers(1, 10)), int(rng.integers(1, 10))
    channels = int(rng.choice([1, 3, 4, 8, 13, 16, 20, 33, 130]))
    window = (int(rng.integers(1, height + 1)), int(rng.integers(1, width + 1)))
    window = (height, width) if rng.random() < 0.2 else window
    strides = (int(rng.integers(1, 4)), int(rng.integers(1, 4)))
    pads = [int(rng.integers(0, k)) for k in (window[0], window[0], window[1], window[1])]
    pads = [0] * 4 if rng.random() < 0.5 else pads
    out_h = (height + pads[0] + pads[1] - window[0]) // strides[0] + 1
    out_w = (width + pads[2] + pads[3] - window[1]) // strides[1] + 1
    quantization = graphs.quant(1 / 16, int(rng.integers(-128, 128)))
    x_data = _stored(rng, (1, height, width, channels))
    x = graphs.tensor("x", x_data.shape, DType.INT8, quantization)
    y = graphs.tensor("y", (1, out_h, out_w, channels), DType.INT8, quantization)
    kind = AveragePool2D if rng.random() < 0.5 else MaxPool2D
    activation = Activation(rng.choice(np.array([a.value for a in Activation])))
    op = kind(window, strides, padding=Padding2D(*pads), activation=activation)
    return _finish(f"pool_{seed}", op, (x,), y, x_data)


def pool_of_int16(seed: int) -> DspCase:
    """Draw one of int16 that does not clamp: `pool` in another type."""
    return _pool_of(seed, "s16", graphs.quant(1 / 4096, 0), np.int16(257))


def pool_of_uint8(seed: int) -> DspCase:
    """Draw one of uint8 that does not clamp: `pool` in another type."""
    return _pool_of(seed, "u8", graphs.quant(1 / 16, 131), np.uint8(1))


def _pool_of(
    seed: int, name: str, quantization: Quantization, factor: np.int16 | np.uint8
) -> DspCase:
    case = pool(seed)
    (drawn,) = case.graph.nodes
    op, dtype = drawn.op, DType(factor.dtype.name)
    assert isinstance(op, AveragePool2D | MaxPool2D)
    x, y = (
        graphs.tensor(t.name, t.shape, dtype, quantization) for t in (drawn.inputs[0], drawn.output)
    )
    data = case.inputs[0].astype(factor.dtype) * factor
    return _finish(f"pool_{name}_{seed}", replace(op, activation=Activation.NONE), (x,), y, data)


def pool_of_floats(seed: int) -> DspCase:
    """Draw a MAX_POOL_2D of float32: `pool` in another type."""
    case = pool(seed)
    (drawn,) = case.graph.nodes
    op = drawn.op
    assert isinstance(op, AveragePool2D | MaxPool2D)
    op = MaxPool2D(op.window, op.strides, padding=op.padding, activation=op.activation)
    x, y = (graphs.tensor(t.name, t.shape) for t in (drawn.inputs[0], drawn.output))
    return _finish(f"pool_f32_{seed}", op, (x,), y, (case.inputs[0] / 8).astype(np.float32))


def global_average(seed: int, sizes: Sizes = SMALL) -> DspCase:
    """Draw an AVERAGE_POOL_2D over a whole image."""
    rng = np.random.default_rng([seed, 4])
    height = int(rng.integers(sizes.heights.start, sizes.heights.stop))
    width = int(rng.integers(sizes.widths.start, sizes.widths.stop))
    channels = int(rng.choice(sizes.channels))
    data = _stored(rng, (1, height, width, channels))
    quant = graphs.quant(1 / 64, int(rng.integers(-128, 128)))
    x = graphs.tensor("x", data.shape, DType.INT8, quant)
    y = graphs.tensor("y", (1, 1, 1, channels), DType.INT8, quant)
    activation = Activation(rng.choice(np.array([a.value for a in Activation])))
    op = AveragePool2D((height, width), (height, width), activation=activation)
    return _finish(f"average_{seed}", op, (x,), y, data)


def grouped(seed: int) -> DspCase:
    """Draw a CONV_2D of two to four groups of channels: `convolution` with fewer weights."""
    case = convolution(seed, sizes=GROUPED)
    node = case.graph.nodes[0]
    rng = np.random.default_rng([seed, 13])
    x, w, *rest = node.inputs
    groups = rng.choice([n for n in (2, 3, 4) if x.shape[-1] % n == 0 == w.shape[0] % n])
    outputs, *taps, channels = w.shape
    shape = (outputs, *taps, channels // int(groups))
    w = Tensor(w.name, replace(w.type, shape=shape), _weights(rng, shape))
    return _finish(f"grouped_{seed}", node.op, (x, w, *rest), node.output, *case.inputs)


def multiplied(seed: int) -> DspCase:
    """Draw a DEPTHWISE_CONV_2D whose channels have several outputs each."""
    case = convolution(seed, depthwise=True)
    node = case.graph.nodes[0]
    rng = np.random.default_rng([seed, 17])
    times, (x, w, *_) = int(rng.choice([2, 3, 4, 5, 8])), node.inputs
    scales, shape = w.type.quant, (*w.shape[:3], w.shape[3] * times)
    if scales.is_per_channel:
        scales = replace(
            scales, scales=scales.scales * times, zero_points=scales.zero_points * times
        )
    weights = graphs.constant("w", _weights(rng, shape), scales)
    y = Tensor("y", replace(node.output.type, shape=(*node.output.shape[:3], shape[3])))
    assert isinstance(node.op, DepthwiseConv2D)
    op = replace(node.op, depth_multiplier=times)
    operands = x, weights, _bias(rng, shape[3], scales)
    return _finish(f"multiplied_{seed}", op, operands, y, *case.inputs)


def frames(seed: int) -> DspCase:
    """Draw a CONV_2D of three images: `convolution`, whose single image is the first of them."""
    case = convolution(seed, sizes=Sizes(widths=range(4, 10)))
    node = case.graph.nodes[0]
    x, y = (
        Tensor(t.name, replace(t.type, shape=(3, *t.shape[1:])))
        for t in (node.inputs[0], node.output)
    )
    data = _stored(np.random.default_rng([seed, 15]), (2, *x.shape[1:]))
    every = np.concatenate([case.inputs[0], data])
    return _finish(f"frames_{seed}", node.op, (x, *node.inputs[1:]), y, every)


def framed(seed: int) -> DspCase:
    """Draw `frames` as an axis of a model's data, which is no batch of the model."""
    case = frames(seed)
    (layer,) = case.graph.nodes
    ends = layer.inputs[0], layer.output
    x, y = (Tensor(f"{t.name}_frames", t.type) for t in ends)
    given, made = (Tensor(t.name, replace(t.type, shape=(1, *t.shape))) for t in ends)
    nodes = [
        graphs.node(Reshape(), (given,), x),
        replace(layer, inputs=(x, *layer.inputs[1:]), outputs=(y,)),
        graphs.node(Reshape(), (y,), made),
    ]
    graph = graphs.graph(nodes, (given,), [made])
    return DspCase(case.name, graph, (case.inputs[0][np.newaxis],))


def transposed(seed: int) -> DspCase:
    """Draw a TRANSPOSE_CONV with more rows and columns than windows reach, or fewer."""
    rng = np.random.default_rng([seed, 14])
    sizes, taps, strides = ([int(n) for n in rng.integers(1, 5, 2)] for _ in range(3))
    if rng.random() < 0.7:
        sizes[1], strides = int(rng.integers(2, 10)), [2, 2]
    before = [int(rng.integers(0, k)) for k in taps]
    extents = [
        max(1, (n - 1) * s + k - b - int(rng.choice([0, 0, 1, -1])))
        for n, s, k, b in zip(sizes, strides, taps, before, strict=True)
    ]
    channels, outputs = (
        int(rng.choice([1, 3, 4, 5, 8, 16, 30])),
        int(rng.choice([1, 3, 4, 5, 7, 8, 13])),
    )
    activation = Activation(rng.choice(np.array([a.value for a in Activation])))
    data = _stored(rng, (1, *sizes, channels))
    x = graphs.tensor(
        "x", data.shape, DType.INT8, graphs.quant(1 / 64, int(rng.integers(-128, 128)))
    )
    terms = max(1, taps[0] * taps[1] // (strides[0] * strides[1])) * channels
    y, quant = _output(rng, (1, *extents, outputs), outputs, terms, 0, activation)
    w = graphs.constant("w", _weights(rng, (outputs, *taps, channels)), quant)
    tensors = (x, w, _bias(rng, outputs, quant)) if rng.random() < 0.8 else (x, w)
    op = TransposeConv((strides[0], strides[1]), (before[0], before[1]), activation)
    return _finish(f"transposed_{seed}", op, tensors, y, data)


def matmul(seed: int) -> DspCase:
    """Draw a BATCH_MATMUL of any sizes: stacks that are broadcast, either side turned, or x by x.

    Factors lie anywhere in 2^-31 to 1, as those of other layers with products do.
    """
    rng = np.random.default_rng([seed, 12])
    rows, columns = (int(n) for n in rng.choice([1, 2, 3, 4, 5, 7, 8, 13, 17], 2))
    depth = int(rng.choice([1, 2, 3, 4, 5, 6, 7, 8, 10, 15, 16, 30, 37, 64]))
    op = BatchMatmul(bool(rng.random() < 0.4), bool(rng.random() < 0.5))
    stacks = (int(rng.integers(1, 4)),) * int(rng.integers(0, 3))
    seen = [tuple(1 if rng.random() < 0.2 else n for n in stacks) for _ in range(2)]
    shapes = (
        (*seen[0], *((depth, rows) if op.adj_x else (rows, depth))),
        (*seen[1], *((columns, depth) if op.adj_y else (depth, columns))),
    )
    is_square = rng.random() < 0.1
    if is_square:
        shapes, depth = ((*seen[0], rows, rows),) * 2, rows
    zero_points = rng.choice([-128, -127, -3, 0, 55, 127], 2).tolist()
    y, quant = _output(rng, (), 1, 2 * depth, 0, Activation.NONE)
    scales = 1 / 64, quant.scales[0]
    tensors = [
        graphs.tensor(name, shape, DType.INT8, graphs.quant(scale, zero_point))
        for name, shape, scale, zero_point in zip("xw", shapes, scales, zero_points, strict=True)
    ]
    outer = np.broadcast_shapes(*(t.shape[:-2] for t in tensors[: 1 + (not is_square)]))
    result = (*outer, rows, rows if is_square else columns)
    y = Tensor(y.name, replace(y.type, shape=result))
    inputs = (tensors[0],) * 2 if is_square else tuple(tensors)
    data = (_stored(rng, t.shape) for t in dict.fromkeys(inputs))
    return _finish(f"matmul_{seed}", op, inputs, y, *data)


def whole_depthwise(seed: int, source: Tensor | None = None) -> DspCase:
    """Draw a DEPTHWISE_CONV_2D whose only window is the whole image."""
    rng = np.random.default_rng([seed, 6])
    drawn = (1, int(rng.integers(2, 8)), int(rng.integers(1, 4)), int(rng.choice(SMALL.channels)))
    _, height, width, channels = drawn if source is None else source.shape
    data = _stored(rng, (1, height, width, channels))
    zero_point = int(rng.integers(-128, 128))
    x = source or graphs.tensor("x", data.shape, DType.INT8, graphs.quant(1 / 64, zero_point))
    activation = Activation(rng.choice(np.array([a.value for a in Activation])))
    shape = (1, 1, 1, channels)
    y, quant = _output(rng, shape, channels, height * width, 3, activation)
    w = graphs.constant("w", _weights(rng, (1, height, width, channels)), quant)
    tensors = (x, w, _bias(rng, channels, quant)) if rng.random() < 0.8 else (x, w)
    op = DepthwiseConv2D(activation=activation)
    return _finish(f"whole_depthwise_{seed}", op, tensors, y, data)


def separable(seed: int) -> DspCase:
    """Draw a convolution, a depthwise one of 3x3, and one more: each reads the one before."""
    sizes = Sizes(widths=range(3, 15), heights=range(3, 9), outputs=(4, 5, 8, 9, 14, 37))
    if seed % 4 == 0:
        first = convolution(seed, sizes=replace(NARROW, outputs=sizes.outputs), pointwise=True)
    else:
        first = convolution(seed, sizes=sizes)
    steps = (
        partial(convolution, seed, sizes=sizes, depthwise=True, square=True),
        partial(convolution, seed, sizes=sizes),
    )
    return _behind(f"separable_{seed}", first, *steps)


def summed(seed: int) -> DspCase:
    """Draw a convolution of a high image, and a depthwise one of a window of its size."""
    sizes = Sizes(widths=range(1, 4), heights=range(12, 20), outputs=(8, 12, 20, 36))
    first = convolution(seed, sizes=sizes, pointwise=True)
    return _behind(f"summed_{seed}", first, partial(whole_depthwise, seed))


def _behind(name: str, first: DspCase, *steps: Callable[..., DspCase]) -> DspCase:
    """Return the case with operators behind it, each made by a step for the result before."""
    nodes = list(first.graph.nodes)
    for number, step in enumerate(steps):
        (y,) = nodes[-1].outputs
        # Factors are drawn for inputs of this scale.
        type_ = replace(y.type, quantization=graphs.quant(1 / 64, y.type.quant.zero_point))
        middle = Tensor(f"middle{number}", type_)
        nodes[-1] = replace(nodes[-1], outputs=(middle,), name=f"node{number}")
        (node,) = step(source=middle).graph.nodes
        constants = (replace(t, name=f"{t.name}{number}") for t in node.inputs[1:])
        nodes.append(replace(node, inputs=(middle, *constants)))
    return DspCase(name, graphs.graph(nodes, first.graph.inputs, nodes[-1].outputs), first.inputs)


def cases(count: int, first: int = 0, sizes: Sizes = SMALL) -> list[DspCase]:
    """Return `count` cases of each kind."""
    seeds = range(first, first + count)
    return [
        *(convolution(seed, sizes=sizes) for seed in seeds),
        *(convolution(seed, depthwise=True, sizes=sizes) for seed in seeds),
        *(convolution(seed, depthwise=True, sizes=sizes, square=True) for seed in seeds),
        *(convolution(seed, sizes=NARROW, pointwise=True) for seed in seeds[: count // 3]),
        *(convolution(seed + 10_000, sizes=FEW) for seed in seeds[: count // 3]),
        *(convolution(seed, sizes=WIDE, same=True) for seed in seeds[: count // 5]),
        *(separable(seed) for seed in seeds),
        *(fully_connected(seed) for seed in seeds),
        *(add(seed) for seed in seeds),
        *(pool(seed) for seed in seeds),
        *(ties(seed) for seed in range(first, first + count // 5)),
        *(add_ties(seed) for seed in range(first, first + max(3, count // 5))),
    ]
