"""Parameters of SOFTMAX and LOG_SOFTMAX."""

from __future__ import annotations

from dataclasses import dataclass

from microtir.graph.ir import TensorType
from microtir.graph.ops import Softmax
from microtir.graph.quantization.elementwise import input_radius
from microtir.graph.quantization.multiplier import QuantizedMultiplier, quantize_multiplier

DIFFERENCE_INTEGER_BITS = 5
"""Differences to the row's maximum are Q5: exp(-16) and below do not count."""

SUM_INTEGER_BITS = 12
"""Sums of exponentials are Q12: a row of 4096 equal elements would overflow."""

LOG_OUTPUT_INTEGER_BITS = 4
"""LOG_SOFTMAX gives Q4 in int8: scale 1/16, zero point 127."""


@dataclass(frozen=True, slots=True)
class SoftmaxParams:
    """`multiplier` (shift >= 0) takes differences to Q5; those below `difference_min` give 0."""

    multiplier: QuantizedMultiplier
    difference_min: int


def softmax_params(op: Softmax, input_type: TensorType) -> SoftmaxParams:
    """Parameters of int8 SOFTMAX; its output has scale 1/256 and zero point -128."""
    multiplier = _difference_multiplier(op.beta, input_type.quant.scale)
    return SoftmaxParams(multiplier, -input_radius(DIFFERENCE_INTEGER_BITS, multiplier.shift))


def _difference_multiplier(beta: float, scale: float) -> QuantizedMultiplier:
    real = beta * scale * (1 << (31 - DIFFERENCE_INTEGER_BITS))
    return quantize_multiplier(min(real, float((1 << 31) - 1)))


@dataclass(frozen=True, slots=True)
class LogSoftmaxParams:
    """As SoftmaxParams; `reverse` (shift <= 0) takes Q5 back to differences of stored values."""

    multiplier: QuantizedMultiplier
    reverse: QuantizedMultiplier
    difference_min: int


def log_softmax_params(input_type: TensorType) -> LogSoftmaxParams:
    """Parameters of int8 LOG_SOFTMAX."""
    multiplier = _difference_multiplier(1.0, input_type.quant.scale)
    return LogSoftmaxParams(
        multiplier=multiplier,
        reverse=quantize_multiplier((1 << (31 - multiplier.shift)) / multiplier.multiplier),
        difference_min=-input_radius(DIFFERENCE_INTEGER_BITS, multiplier.shift),
    )
