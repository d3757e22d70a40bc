"""Read TFLite's activations."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from microtir.operators.activations.definition import (
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
from microtir.operators.common.tflite_schema import BuiltinOperator, Options, options_without_fields


@dataclass(frozen=True, slots=True)
class LeakyReluOptions(Options):
    """Options of LEAKY_RELU."""

    union_type: ClassVar[int] = 75
    alpha: float = 0.2


HardSwishOptions = options_without_fields("HardSwishOptions", 91)


def leaky_relu(operands: Operands) -> Converted:
    """Read LEAKY_RELU."""
    alpha = operands.table(LeakyReluOptions).alpha
    if not math.isfinite(alpha):
        raise operands.malformed(f"alpha is {alpha}", "a finite number")
    return Converted(LeakyRelu(alpha), (operands.input(0),))


@dataclass(frozen=True, slots=True)
class GeluOptions(Options):
    """Options of GELU."""

    union_type: ClassVar[int] = 116
    approximate: bool = False


def gelu(operands: Operands) -> Converted:
    """Read GELU."""
    return Converted(Gelu(operands.table(GeluOptions).approximate), (operands.input(0),))


_Code = BuiltinOperator
READERS = (
    TfliteReader(Relu, _Code.RELU, without_attributes(Relu(FusedActivation.RELU))),
    TfliteReader(Relu, _Code.RELU6, without_attributes(Relu(FusedActivation.RELU6))),
    TfliteReader(Relu, _Code.RELU_N1_TO_1, without_attributes(Relu(FusedActivation.RELU_N1_TO_1))),
    TfliteReader(LeakyRelu, _Code.LEAKY_RELU, leaky_relu, LeakyReluOptions),
    TfliteReader(Prelu, _Code.PRELU, without_attributes(Prelu()), inputs=(2, 2)),
    TfliteReader(Elu, _Code.ELU, without_attributes(Elu())),
    TfliteReader(HardSwish, _Code.HARD_SWISH, without_attributes(HardSwish()), HardSwishOptions),
    TfliteReader(Logistic, _Code.LOGISTIC, without_attributes(Logistic())),
    TfliteReader(Tanh, _Code.TANH, without_attributes(Tanh())),
    TfliteReader(Gelu, _Code.GELU, gelu, GeluOptions),
)
