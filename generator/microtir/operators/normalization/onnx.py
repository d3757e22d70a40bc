"""Read ONNX's normalisations, as the arithmetic that they are."""

from __future__ import annotations

import math

import numpy as np

from microtir.errors import ExportProblem
from microtir.graph.ir import Array, Tensor
from microtir.operators.arithmetic.definition import Add, Mul, Pow, SquaredDifference, Sub
from microtir.operators.common.onnx_arithmetic import add, choose, div, equal, mul
from microtir.operators.common.onnx_operands import MICROSOFT, OnnxNode, OnnxReader, by_definition
from microtir.operators.common.onnx_parts import along, padded
from microtir.operators.division.definition import Div
from microtir.operators.movement.definition import Reshape
from microtir.operators.reduction.definition import Mean, Sum
from microtir.operators.unary.definition import Abs, Sqrt, Square

_EPSILON = float(np.float32(1e-5))


def batch_normalization(node: OnnxNode) -> Tensor:
    """Read BatchNormalization with known statistics: a factor and a term for each channel.

    Outputs for what training finds say that it is in training, also where nothing takes them.
    """
    x = node.input(0)
    if node.integer("training_mode", 0) or node.outputs > 1:
        raise node.unsupported(
            "it is in training mode",
            "statistics of the training",
            "export in inference mode",
            ExportProblem.TRAINING_MODE,
        )
    names = ("the factors", "the terms", "the means", "the variances")
    channels = x.shape[1] if len(x.shape) > 1 else 1
    scale, bias, mean, variance = (
        node.known(index + 1, name).astype(np.float64) for index, name in enumerate(names)
    )
    for values, name in zip((scale, bias, mean, variance), names, strict=True):
        if values.shape != (channels,):
            raise node.malformed(f"{name} have the shape {values.shape}", f"{(channels,)}")
    factor = scale / np.sqrt(variance + node.number("epsilon", _EPSILON))
    shape = (len(factor), *(1,) * (len(x.shape) - 2))

    def laid_out(values: Array) -> Tensor:
        return node.constant(values.astype(x.dtype.value).reshape(shape))

    product = node.emit(Mul(), x, laid_out(factor))
    return node.emit(Add(), product, laid_out(bias - mean * factor))


def _moments(node: OnnxNode, x: Tensor, axes: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """Emit the mean over some axes, and sqrt(variance + epsilon)."""
    mean = node.emit(Mean(axes, keep_dims=True), x)
    squares = node.emit(SquaredDifference(), x, mean)
    variance = node.emit(Mean(axes, keep_dims=True), squares)
    return mean, _deviation(node, variance)


def _centred(node: OnnxNode, x: Tensor, axes: tuple[int, ...]) -> Tensor:
    """Emit (x - mean) / sqrt(variance + epsilon) over some axes."""
    mean, deviation = _moments(node, x, axes)
    return node.emit(Div(), node.emit(Sub(), x, mean), deviation)


def _deviation(node: OnnxNode, variance: Tensor) -> Tensor:
    epsilon = node.scalar_like(node.number("epsilon", _EPSILON), variance)
    return node.emit(Sqrt(), node.emit(Add(), variance, epsilon))


def _scaled(node: OnnxNode, x: Tensor, scale: Tensor, bias: Tensor | None) -> Tensor:
    product = node.emit(Mul(), x, scale)
    return product if bias is None else node.emit(Add(), product, bias)


def layer_normalization(node: OnnxNode) -> tuple[Tensor, ...]:
    """Read LayerNormalization: over all axes from one on; means and 1 / deviations are outputs."""
    x = node.input(0)
    first = node.axis(node.integer("axis", -1), len(x.shape))
    axes = tuple(range(first, len(x.shape)))
    mean, deviation = _moments(node, x, axes)
    normal = node.emit(Div(), node.emit(Sub(), x, mean), deviation)
    result = _scaled(node, normal, node.input(1), node.optional(2))
    if node.outputs < 3:
        return (result, mean)
    return result, mean, node.emit(Div(), node.scalar_like(1.0, deviation), deviation)


def rms_normalization(node: OnnxNode) -> Tensor:
    """Read RMSNormalization: x over the root of its mean square."""
    x = node.input(0)
    return _over_root(node, x, node.axis(node.integer("axis", -1), len(x.shape)), node.input(1))


def _over_root(node: OnnxNode, x: Tensor, first: int, scale: Tensor) -> Tensor:
    """Emit x over the root of the mean square of all axes from one on, times a scale."""
    axes = tuple(range(first, len(x.shape)))
    square = node.emit(Mean(axes, keep_dims=True), node.emit(Square(), x))
    return node.emit(Mul(), node.emit(Div(), x, _deviation(node, square)), scale)


def skip_rms_normalization(node: OnnxNode) -> tuple[Tensor, ...]:
    """Read com.microsoft's SkipSimplifiedLayerNormalization: a sum, normalised; both are outputs.

    The outputs between are for training, and hold nothing here.
    """
    total, bias = add(node, node.input(0), node.input(1)), node.optional(3)
    total = total if bias is None else node.emit(Add(), total, bias)
    result = _over_root(node, total, len(total.shape) - 1, node.input(2))
    nothing = node.constant(np.zeros(0, np.float32))
    return result, nothing, nothing, total


def skip_layer_normalization(node: OnnxNode) -> tuple[Tensor, ...]:
    """Read com.microsoft's SkipLayerNormalization: a sum, normalised; both are outputs."""
    total, bias = add(node, node.input(0), node.input(1)), node.optional(4)
    total = total if bias is None else node.emit(Add(), total, bias)
    normal = _centred(node, total, (len(total.shape) - 1,))
    result = _scaled(node, normal, node.input(2), node.optional(3))
    nothing = node.constant(np.zeros(0, np.float32))
    return result, nothing, nothing, total


def mean_variance(node: OnnxNode) -> Tensor:
    """Read onnxruntime's first MeanVarianceNormalization, of (N, C, H, W)."""
    x = node.input(0)
    axes = tuple(n for n in range(len(x.shape)) if n != 1 or node.integer("across_channels", 0))
    if node.integer("normalize_variance", 1):
        return _centred(node, x, axes)
    return node.emit(Sub(), x, node.emit(Mean(axes, keep_dims=True), x))


def _by_channel(node: OnnxNode, values: Tensor, rank: int) -> Tensor:
    """Return a vector of channels as it broadcasts with (N, C, ...)."""
    return node.emit(Reshape(), values, shape=(values.type.elements, *(1,) * (rank - 2)))


def instance_normalization(node: OnnxNode) -> Tensor:
    """Read InstanceNormalization: each channel of each image by itself."""
    x = node.input(0)
    rank = len(x.shape)
    scale, bias = (_by_channel(node, node.input(index), rank) for index in (1, 2))
    return _scaled(node, _centred(node, x, tuple(range(2, rank))), scale, bias)


def group_normalization(node: OnnxNode) -> Tensor:
    """Read GroupNormalization; factors are of a group before operator set 21, then of a channel."""
    x, groups = node.input(0), node.integer("num_groups")
    n, channels, *sizes = x.shape
    if groups < 1 or channels % groups:
        raise node.malformed(f"{groups} groups of {channels} channels", "a divisor of the channels")
    rows = node.emit(Reshape(), x, shape=(n, groups, channels // groups * math.prod(sizes)))
    normal = _centred(node, rows, (2,))
    scale, bias = node.input(1), node.input(2)
    if scale.type.elements == groups != channels:
        vectors = [node.emit(Reshape(), t, shape=(groups, 1)) for t in (scale, bias)]
        return node.emit(Reshape(), _scaled(node, normal, *vectors), shape=x.shape)
    whole = node.emit(Reshape(), normal, shape=x.shape)
    rank = len(x.shape)
    return _scaled(node, whole, _by_channel(node, scale, rank), _by_channel(node, bias, rank))


def lp_normalization(node: OnnxNode) -> Tensor:
    """Read LpNormalization: over the sum of sizes or the root of that of squares; zeros stay."""
    x, power = node.input(0), node.integer("p", 2)
    axis = node.axis(node.integer("axis", -1), len(x.shape))
    if power not in (1, 2):
        raise node.malformed(f"the attribute 'p' is {power}", "1 or 2")
    sizes = node.emit(Abs(), x) if power == 1 else node.emit(Square(), x)
    total = node.emit(Sum((axis,), keep_dims=True), sizes)
    norm = total if power == 1 else node.emit(Sqrt(), total)
    return div(node, x, choose(node, equal(node, norm, 0.0), 1.0, norm))


def local_response(node: OnnxNode) -> Tensor:
    """Read LRN: over a power of the mean square of the channels around each."""
    x, size = node.input(0), node.integer("size")
    if size < 1:
        raise node.malformed(f"the attribute 'size' is {size}", "1 or more")
    most = x.shape[1] - 1  # beyond the other channels there are zeros
    before, after = min((size - 1) // 2, most), min(size // 2, most)
    squares = padded(node, node.emit(Square(), x), 1, before, after)
    total = along(node, squares, 1, 0, x.shape[1])
    for first in range(1, before + after + 1):
        total = add(node, total, along(node, squares, 1, first, x.shape[1]))
    scaled = mul(node, total, node.number("alpha", float(np.float32(1e-4))) / size)
    base = add(node, scaled, node.number("bias", 1.0))
    power = node.emit(Pow(), base, node.scalar_like(-node.number("beta", 0.75), base))
    return mul(node, x, power)


_LAYER = ("axis", "epsilon", "stash_type")

ONNX_READERS = (
    OnnxReader(
        "BatchNormalization",
        batch_normalization,
        (5, 5),
        ("epsilon", "momentum", "spatial", "training_mode"),
        outputs=5,
    ),
    OnnxReader("LayerNormalization", layer_normalization, (2, 3), _LAYER, outputs=3),
    OnnxReader("MeanVarianceNormalization", by_definition, attributes=("axes",)),
    OnnxReader("RMSNormalization", rms_normalization, (2, 2), _LAYER),
    OnnxReader("SimplifiedLayerNormalization", rms_normalization, (2, 2), _LAYER, domain=MICROSOFT),
    OnnxReader(
        "SkipSimplifiedLayerNormalization",
        skip_rms_normalization,
        (3, 4),
        ("epsilon",),
        outputs=4,
        domain=MICROSOFT,
    ),
    OnnxReader(
        "SkipLayerNormalization",
        skip_layer_normalization,
        (3, 5),
        ("epsilon",),
        outputs=4,
        domain=MICROSOFT,
    ),
    OnnxReader("LayerNormalization", layer_normalization, (2, 3), _LAYER, 3, MICROSOFT),
    OnnxReader(
        "MeanVarianceNormalization",
        mean_variance,
        attributes=("across_channels", "normalize_variance"),
        domain=MICROSOFT,
    ),
    OnnxReader("LpNormalization", lp_normalization, attributes=("axis", "p")),
    OnnxReader("LRN", local_response, attributes=("alpha", "beta", "bias", "size"), ranks=(2,)),
    OnnxReader("InstanceNormalization", instance_normalization, (3, 3), ("epsilon",)),
    OnnxReader(
        "GroupNormalization",
        group_normalization,
        (3, 3),
        ("epsilon", "num_groups", "stash_type"),
        ranks=(2, 1, 1),
    ),
)
