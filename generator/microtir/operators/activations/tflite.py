"""Read TFLite's activations."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from microtir.dtype import DType
from microtir.operators.activations.definition import (
    LOGISTIC_OF_INT8,
    TANH_OF_INT8,
    Elu,
    Gelu,
    HardSwish,
    LeakyRelu,
    Logistic,
    Prelu,
    Relu,
    Tanh,
)
from microtir.operators.common.attributes import Activation as FusedActivation
from microtir.operators.common.tflite_operands import (
    Converted,
    Operands,
    TfliteReader,
    without_attributes,
)
from microtir.operators.common.tflite_schema import BuiltinOperator, Options
from microtir.operators.common.unlike_scales import FixedResult, Moved


@dataclass(frozen=True, slots=True)
class LeakyReluOptions(Options):
    """Options of LEAKY_RELU."""

    alpha: float = 0.2


def _relu(kind: FusedActivation) -> Callable[[Operands], Converted]:
    """Return what reads RELU, RELU6 or RELU_N1_TO_1.

    tflite-micro has none of uint8 and no RELU_N1_TO_1: LiteRT's count.
    """

    def read(operands: Operands) -> Converted:
        x = operands.input(0)
        is_other = kind is FusedActivation.RELU_N1_TO_1 and x.dtype.is_int
        return Converted(Relu(kind, float32_ratio=is_other or x.dtype is DType.UINT8), (x,))

    return read


def leaky_relu(operands: Operands) -> Converted:
    """Read LEAKY_RELU."""
    alpha = operands.table(LeakyReluOptions).alpha
    if not math.isfinite(alpha):
        raise operands.malformed(f"alpha is {alpha}", "a finite number")
    x = operands.input(0)
    return Converted(LeakyRelu(alpha, float32_ratio=x.dtype is DType.UINT8), (x,))


def prelu(operands: Operands) -> Converted:
    """Read PRELU."""
    is_of_litert = operands.input(0).dtype is DType.UINT8
    return Converted(Prelu(float32_ratio=is_of_litert), operands.present)


@dataclass(frozen=True, slots=True)
class GeluOptions(Options):
    """Options of GELU."""

    approximate: bool = False


def gelu(operands: Operands) -> Converted:
    """Read GELU."""
    return Converted(Gelu(operands.table(GeluOptions).approximate), (operands.input(0),))


_RELU6 = Moved(
    types=frozenset({DType.INT8, DType.INT16}), litert_rescales=True, in_input_scale=True
)
"""Behaviour for RELU6: tflite-micro clamps in the scale of the input, and copies the integers."""

_Code = BuiltinOperator
READERS = (
    TfliteReader(Relu, _Code.RELU, _relu(FusedActivation.RELU)),
    TfliteReader(Relu, _Code.RELU6, _relu(FusedActivation.RELU6), moved=_RELU6),
    TfliteReader(Relu, _Code.RELU_N1_TO_1, _relu(FusedActivation.RELU_N1_TO_1)),
    TfliteReader(LeakyRelu, _Code.LEAKY_RELU, leaky_relu, LeakyReluOptions),
    TfliteReader(Prelu, _Code.PRELU, prelu, inputs=(2, 2)),
    TfliteReader(Elu, _Code.ELU, without_attributes(Elu())),
    TfliteReader(HardSwish, _Code.HARD_SWISH, without_attributes(HardSwish())),
    TfliteReader(
        Logistic,
        _Code.LOGISTIC,
        without_attributes(Logistic()),
        fixed=(
            FixedResult(
                DType.INT8,
                DType.INT8,
                LOGISTIC_OF_INT8,
                zero_by_micro=True,
                scale_by_litert=True,
                litert_rescales=True,
            ),
        ),
    ),
    TfliteReader(
        Tanh,
        _Code.TANH,
        without_attributes(Tanh()),
        fixed=(FixedResult(DType.INT8, DType.INT8, TANH_OF_INT8, litert_rescales=True),),
    ),
    TfliteReader(Gelu, _Code.GELU, gelu, GeluOptions),
)
