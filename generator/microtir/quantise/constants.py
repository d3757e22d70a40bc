"""Store constants of float layers as integers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from microtir.dtype import DType
from microtir.graph.ir import Array, Quantization, Tensor, TensorType
from microtir.graph.rewriting import constant
from microtir.operators.arithmetic.definition import Add, Mul
from microtir.quantise.ranges import affine, real_range

_LARGEST_BIAS = 2.0**30  # stored in 32 bits, with room for the sums

Doubles = npt.NDArray[np.float64]


def real_values(tensor: Tensor) -> Doubles:
    """Return the values of a constant of floats."""
    return np.asarray(tensor.values, np.float64)


def quantised_constant(tensor: Tensor, dtype: DType, quant: Quantization | None) -> Tensor:
    """Return a constant in integers.

    Args:
        tensor: of floats.
        dtype: of the integers.
        quant: their quantisation; by default that of the range of the constant.
    """
    values = real_values(tensor)
    if quant is None:
        quant = affine(float(values.min()), float(values.max()), dtype)
    stored = np.rint(values / quant.scale) + quant.zero_point
    type_ = TensorType(tensor.shape, dtype, quant)
    return constant(tensor.name, type_, np.clip(stored, dtype.min, dtype.max))


def within_reach(
    tensor: Tensor, op: Add | Mul, operands: Sequence[Tensor], ends: tuple[float, float]
) -> Tensor:
    """Return a constant operand without values that drive results beyond their `ends` anyhow.

    A mask of -1e9 takes all integers otherwise, and its multiplier is too large.
    """
    other = next((t for t in operands if t.dtype.is_int and not t.is_constant), None)
    if other is None or not tensor.is_constant or tensor.dtype is not DType.FLOAT32:
        return tensor
    most = max(-ends[0], ends[1]) / other.type.quant.scale
    reach = -most, most
    if isinstance(op, Add):
        low, high = real_range(other.type.quant, other.dtype)
        reach = ends[0] - high, ends[1] - low
    return constant(tensor.name, tensor.type, np.clip(tensor.values, *reach))


def by_channel(values: Array, axis: int, vector: Array) -> Array:
    """Return a vector of channels in the shape that broadcasts along an axis of `values`."""
    shape = [1] * values.ndim
    shape[axis] = -1
    return vector.reshape(shape)


def weight_scales(
    weights: Doubles, axis: int, bits: int, bias: Doubles | None, input_scale: float
) -> Doubles:
    """Return the scale of each output channel of weights, rounded to float32.

    It is that of the largest weight, or larger where the bias would leave 32 bits.

    Args:
        weights: real ones.
        axis: of their output channels.
        bits: of a stored weight.
        bias: of each output channel, real.
        input_scale: of the activations that they are multiplied by.
    """
    others = tuple(n for n in range(weights.ndim) if n != axis)
    largest = np.abs(weights).max(axis=others)
    scales: Doubles = largest / ((1 << (bits - 1)) - 1)
    if bias is not None:
        scales = np.maximum(scales, np.abs(bias) / (_LARGEST_BIAS * input_scale))
    # A channel of zeros may have any scale: that of the others is no stranger to its layer.
    usual = float(scales.max(initial=0.0)) or 1.0
    rounded = np.where(scales > 0, scales, usual).astype(np.float32)
    return np.asarray(np.maximum(rounded, np.finfo(np.float32).tiny), np.float64)


def quantised_weights(tensor: Tensor, axis: int, bits: int, scales: Doubles) -> Tensor:
    """Return weights as symmetric integers with a scale for each output channel."""
    values = real_values(tensor)
    most = (1 << (bits - 1)) - 1
    stored = np.clip(np.rint(values / by_channel(values, axis, scales)), -most, most)
    return stored_weights(tensor, axis, scales, stored)


def stored_weights(tensor: Tensor, axis: int, scales: Doubles, stored: Array) -> Tensor:
    """Return weights that are stored as these integers."""
    quant = Quantization(tuple(scales.tolist()), (0,) * len(scales), axis)
    if len(scales) == 1:
        quant = Quantization(quant.scales, (0,))
    return constant(tensor.name, TensorType(tensor.shape, DType.INT8, quant), stored)


def quantised_bias(tensor: Tensor, dtype: DType, input_scale: float, scales: Doubles) -> Tensor:
    """Return a bias as integers in the scale of the sums, that of inputs times weights."""
    products = (np.float32(input_scale) * scales.astype(np.float32)).astype(np.float64)
    stored = np.rint(real_values(tensor) / (input_scale * scales))
    quant = Quantization(tuple(products.tolist()), (0,) * len(scales), 0)
    if len(scales) == 1:
        quant = Quantization(quant.scales, (0,))
    return constant(tensor.name, TensorType(tensor.shape, dtype, quant), stored)
