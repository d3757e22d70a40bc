"""What the kernels of all operator families share."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from microtir.graph.fixed_point import Ints
from microtir.graph.ir import Array, TensorType
from microtir.graph.ops import Activation

Doubles: TypeAlias = npt.NDArray[np.float64]


def stored(array: Array) -> Ints:
    """Stored integers, widened so that no intermediate overflows."""
    return array.astype(np.int64)


def as_output(array: Array, output: TensorType) -> Array:
    """Convert to the scalar type of an output; values are in its range already."""
    return array.astype(output.dtype.value)


def activate(array: Array, activation: Activation) -> Array:
    """Clamp real values to the range of a fused activation; NaN passes."""
    low, high = activation.real_range
    return np.minimum(np.maximum(array, low), high)


def real_weights(weights: Array, type_: TensorType) -> Doubles:
    """Weights of a float operator: floats as they are, int8 dequantised to float32 values."""
    if type_.dtype.is_float:
        return weights.astype(np.float64)
    return dequantized(weights, type_).astype(np.float64)


def dequantized(values: Array, type_: TensorType) -> npt.NDArray[np.float32]:
    """Real values scale * (stored - zero point), rounded to float32; per tensor or per channel."""
    quant = type_.quant
    shape = [1] * values.ndim
    if quant.axis is not None:
        shape[quant.axis] = -1
    scales = np.array(quant.scales, np.float64).reshape(shape)
    zero_points = np.array(quant.zero_points, np.int64).reshape(shape)
    return np.asarray(scales * (stored(values) - zero_points), np.float32)
