"""Write scalar arithmetic that several formulas share, as tensor expressions."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from microtir import te
from microtir.dtype import DType
from microtir.operators.common.attributes import Activation
from microtir.operators.common.formula import FormulaContext
from microtir.operators.common.multiplier import QuantizedMultiplier
from microtir.tir.ir import Array


def wide(value: te.ExprLike) -> te.Expr:
    """Return a stored integer in the type of the accumulators."""
    return te.cast(DType.INT32, value)


@dataclass(frozen=True, slots=True)
class Accumulator:
    """How a layer adds integers.

    In INT32 where no input makes a sum leave that; otherwise in INT64, of which `total` takes the
    lower half, as the sums of tflite-micro's compiled kernels wrap.
    """

    is_wide: bool

    @staticmethod
    def of(layer: FormulaContext) -> Accumulator:
        return Accumulator(not layer.sums_fit)

    @property
    def dtype(self) -> DType:
        return DType.INT64 if self.is_wide else DType.INT32

    def term(self, value: te.ExprLike) -> te.Expr:
        """Return a value to add, from INT32 or less."""
        return te.cast(self.dtype, value)

    def total(self, sum_: te.Expr) -> te.Expr:
        """Return a sum as INT32."""
        if not self.is_wide:
            return sum_
        half = te.const(1 << 31, DType.INT64)
        wrapped = ((sum_ + half) & ((1 << 32) - 1)) - half
        return te.bind("wrapped", te.cast(DType.INT32, wrapped))


def summand(layer: FormulaContext, value: te.Expr) -> te.Expr:
    """Return a stored element in the type that sums have."""
    return value if value.dtype.is_float else Accumulator.of(layer).term(value)


def centred(value: te.ExprLike, zero_point: int) -> te.Expr:
    """Return a stored integer minus its zero point, INT32."""
    return wide(value) - zero_point


def requantise(value: te.Expr, factor: QuantizedMultiplier) -> te.Expr:
    """Multiply by a real factor, rounding twice as TFLite's reference kernels do."""
    return te.multiply_by_quantized_multiplier(value, factor.multiplier, factor.shift)


def stored(value: te.Expr, zero_point: int, low: int, high: int, dtype: DType) -> te.Expr:
    """Store an INT32 result: add the zero point, clamp, narrow."""
    return te.cast(dtype, te.clamp(te.bind("scaled", value + zero_point), low, high))


class ChannelMultipliers:
    """Requantisation factors of the output channels; what all channels share is an immediate."""

    def __init__(self, factors: tuple[QuantizedMultiplier, ...]) -> None:
        self._multiplier = _table([f.multiplier for f in factors], "multipliers")
        self._shift = _table([f.shift for f in factors], "shifts")

    def apply(self, value: te.Expr, channel: te.Expr) -> te.Expr:
        """Multiply a value by the factor of its channel."""
        return te.multiply_by_quantized_multiplier(
            value, _entry(self._multiplier, channel), _entry(self._shift, channel)
        )


def _table(values: list[int], name: str) -> te.Tensor | int:
    if len(set(values)) == 1:
        return values[0]
    return te.constant(int32(np.array(values)), name)


def _entry(table: te.Tensor | int, channel: te.Expr) -> te.ExprLike:
    return table if isinstance(table, int) else table[channel]


def activate(value: te.Expr, activation: Activation) -> te.Expr:
    """Apply a fused activation to a FLOAT32 result."""
    low, high = activation.real_range
    if math.isfinite(low):
        value = te.maximum(value, low)
    if math.isfinite(high):
        value = te.minimum(value, high)
    return value


def int32(values: Array) -> Array:
    """Return the integer data in the type that kernels compute in."""
    return np.ascontiguousarray(values, dtype=np.int32)


def channel_scales(layer: FormulaContext) -> te.Tensor:
    """Return the scales of hybrid weights, one per output channel."""
    weights, channels = layer.node.inputs[1], layer.node.output.shape[-1]
    scales = np.broadcast_to(np.array(weights.type.quant.scales, np.float32), (channels,))
    return te.constant(np.ascontiguousarray(scales), "weight_scales")
