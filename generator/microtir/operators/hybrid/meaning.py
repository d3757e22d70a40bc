"""Define in numpy, to the bit, what LiteRT makes of a float layer with int8 weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from microtir.dtype import DType
from microtir.graph.ir import Array, Node, Tensor
from microtir.graph.operator import Operator
from microtir.operators.common.arrays import Meaning, activate, as_output
from microtir.operators.common.attributes import Activation
from microtir.operators.convolution import definition as convolution
from microtir.operators.convolution.meaning import conv_2d, depthwise_conv_2d
from microtir.operators.dense.definition import FullyConnected
from microtir.operators.dense.meaning import fully_connected
from microtir.operators.hybrid.definition import (
    HIGHEST,
    LOWEST,
    SYMMETRIC_HIGHEST,
    Bounds,
    DynamicQuantize,
    Hybrid,
    inner,
)

_F32 = np.float32
_OF_FLOATS: Mapping[type[Operator], Meaning] = MappingProxyType(
    {
        convolution.Conv2D: conv_2d,
        convolution.DepthwiseConv2D: depthwise_conv_2d,
        FullyConnected: fully_connected,
    }
)


class Scales(NamedTuple):
    """The scaling of the values of each part as they are stored; one entry for each."""

    scale: npt.NDArray[np.float32]
    inverse: npt.NDArray[np.float32]
    zero_point: npt.NDArray[np.int64]


def scales(low: Array, high: Array, *, asymmetric: bool) -> Scales:
    """Return how parts are stored whose values have these bounds.

    A part of zeros has any scale: each of its values is the zero point.
    """
    low, high = low.astype(_F32), high.astype(_F32)
    if not asymmetric:
        size = np.maximum(np.abs(low), np.abs(high))
        size = np.where(size > 0, size, _F32(1.0))
        highest = _F32(SYMMETRIC_HIGHEST)
        return Scales(size / highest, highest / size, np.zeros(size.shape, np.int64))
    least, most = np.minimum(low, 0), np.maximum(high, 0)
    span = (most - least).astype(np.float64)
    exact = np.where(span > 0, span, 1.0) / (HIGHEST - LOWEST)
    from_low, from_high = LOWEST - least / exact, HIGHEST - most / exact
    # The one of two equal zero points that is the less wrong.
    is_low_better = -LOWEST - least / exact < HIGHEST + most / exact
    real = np.clip(np.where(is_low_better, from_low, from_high), LOWEST, HIGHEST)
    zero_point = np.copysign(np.floor(np.abs(real) + 0.5), real).astype(np.int64)
    scale = exact.astype(_F32)
    return Scales(scale, _F32(1.0) / scale, zero_point)


def bounds(op: Bounds, node: Node, x: Array) -> tuple[Array, Array]:
    """Compute the least and the greatest value of each part."""
    parts = x.reshape(op.parts, -1)
    low, high = node.outputs
    return as_output(parts.min(axis=1), low.type), as_output(parts.max(axis=1), high.type)


def dynamic_quantize(op: DynamicQuantize, node: Node, x: Array, low: Array, high: Array) -> Array:
    """Compute the stored values of each part."""
    of = scales(low, high, asymmetric=op.asymmetric)
    parts = x.reshape(len(low), -1).astype(_F32)
    shifted = of.zero_point.astype(_F32)[:, None] + parts * of.inverse[:, None]
    real = shifted.astype(np.float64)
    rounded = np.copysign(np.floor(np.abs(real) + 0.5), real)
    lowest = LOWEST if op.asymmetric else -SYMMETRIC_HIGHEST
    return as_output(np.clip(rounded, lowest, HIGHEST).reshape(x.shape), node.output.type)


def hybrid(
    op: Hybrid, node: Node, x: Array, weights: Array, low: Array, high: Array,
    bias: Array | None = None,
) -> Array:  # fmt: skip
    """Compute the layer: integer sums, scaled, with a float bias and an activation."""
    of = scales(low, high, asymmetric=op.asymmetric)
    sums = _sums(node, x.reshape(len(low), -1) - of.zero_point[:, None], weights)
    by_part = sums.reshape(len(low), -1, sums.shape[-1])
    part, channel = of.scale[:, None, None], np.array(node.inputs[1].type.quant.scales, _F32)
    scaled = by_part * channel * part if op.by_channel_first else by_part * (part * channel)
    if bias is not None:
        scaled = scaled + bias.astype(_F32)
    result = activate(scaled.reshape(node.output.shape), op.layer.activation)
    return as_output(result, node.output.type)


def _sums(node: Node, centred: Array, weights: Array) -> npt.NDArray[np.float32]:
    """Return the integer sums of a layer, rounded to float32: those of the layer in floats."""
    plain, op = inner(node), replace(node.attributes(Hybrid).layer, activation=Activation.NONE)
    data, factors = (
        Tensor(t.name, replace(t.type, dtype=DType.FLOAT32, quantization=None))
        for t in plain.inputs[:2]
    )
    output = Tensor("sums", replace(node.output.type, dtype=DType.FLOAT32))
    layer = replace(plain, op=op, inputs=(data, factors), outputs=(output,))
    result = _OF_FLOATS[type(op)](
        op, layer, centred.reshape(data.shape).astype(_F32), weights.astype(_F32)
    )
    assert isinstance(result, np.ndarray)
    return result
