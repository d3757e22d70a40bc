"""Convert and clamp numpy arrays, as the meanings of all families do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from microtir.graph.ir import Array, Node, TensorType
from microtir.operators.common import attributes, fixed_point

Doubles: TypeAlias = npt.NDArray[np.float64]


Meaning: TypeAlias = "Callable[..., Array | tuple[Array, ...]]"
"""Function from an operator, its node and an array for each input to one output, or to several."""


def stored(array: Array) -> fixed_point.Ints:
    """Return the stored integers, widened so that no intermediate overflows."""
    return array.astype(np.int64)


def as_output(array: Array, output: TensorType) -> Array:
    """Convert to the scalar type of an output; values are in its range already."""
    return array.astype(output.dtype.value)


def activate(array: Array, activation: attributes.Activation) -> Array:
    """Clamp real values to the range of a fused activation; NaN passes."""
    low, high = activation.real_range
    return np.minimum(np.maximum(array, low), high)


def real_weights(weights: Array, type_: TensorType) -> Doubles:
    """Return weights of a float operator: floats as they are, int8 dequantised to float32."""
    if type_.dtype.is_float:
        return weights.astype(np.float64)
    return dequantized(weights, type_).astype(np.float64)


def dequantized(values: Array, type_: TensorType) -> npt.NDArray[np.float32]:
    """Return scale * (stored - zero point), rounded to float32; per tensor or per channel."""
    quant = type_.quant
    shape = [1] * values.ndim
    if quant.axis is not None:
        shape[quant.axis] = -1
    scales = np.array(quant.scales, np.float64).reshape(shape)
    zero_points = np.array(quant.zero_points, np.int64).reshape(shape)
    return np.asarray(scales * (stored(values) - zero_points), np.float32)


def part_from(
    x: Array, extent: Sequence[int], begin: Array, *, from_end: bool = False
) -> tuple[slice, ...]:
    """Return the part of an array that begins as near to `begin` as it fits.

    Axes behind those that `begin` speaks of are taken whole. Numbers below 0 may count from the
    end.
    """
    sizes = np.array(x.shape, np.int64)
    named = np.append(begin.astype(np.int64), np.zeros(x.ndim - begin.size, np.int64))
    if from_end:
        named = np.where(named < 0, named + sizes, named)
    starts = np.clip(named, 0, sizes - extent)
    return tuple(slice(start, start + size) for start, size in zip(starts, extent, strict=True))


def taps(
    image: Array,
    node: Node,
    window: tuple[int, int],
    strides: tuple[int, int],
    dilations: tuple[int, int],
    padding: attributes.Padding2D,
    fill: float,
) -> Array:
    """Return the elements under the window at every output position.

    Returns (N, OH, OW, KH * KW, C); positions outside the image hold `fill`.
    """
    margins = ((0, 0), (padding.top, padding.bottom), (padding.left, padding.right), (0, 0))
    padded = np.pad(image, margins, constant_values=fill)
    _, rows, columns, _ = node.output.shape
    parts = []
    for y in range(window[0]):
        for x in range(window[1]):
            top, left = y * dilations[0], x * dilations[1]
            bottom = top + (rows - 1) * strides[0] + 1
            right = left + (columns - 1) * strides[1] + 1
            parts.append(padded[:, top : bottom : strides[0], left : right : strides[1], :])
    return np.stack(parts, axis=3)
