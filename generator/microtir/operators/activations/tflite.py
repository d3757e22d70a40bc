"""Readers of TFLite's activations."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from microtir.operators.activations.definition import (
    Gelu,
    HardSwish,
    LeakyRelu,
    Logistic,
    Relu,
    Tanh,
)
from microtir.operators.common.attributes import Activation as FusedActivation
from microtir.operators.common.tflite_operands import (
    Converted,
    Operands,
    TfliteReader,
    of_one_input,
)
from microtir.operators.common.tflite_schema import BuiltinOperator, Options


@dataclass(frozen=True, slots=True)
class LeakyReluOptions(Options):
    """Options of LEAKY_RELU."""

    union_type: ClassVar[int] = 75
    alpha: float = 0.2


@dataclass(frozen=True, slots=True)
class HardSwishOptions(Options):
    """Options of HARD_SWISH (none)."""

    union_type: ClassVar[int] = 91


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
    TfliteReader(Relu, _Code.RELU, of_one_input(Relu(FusedActivation.RELU))),
    TfliteReader(Relu, _Code.RELU6, of_one_input(Relu(FusedActivation.RELU6))),
    TfliteReader(Relu, _Code.RELU_N1_TO_1, of_one_input(Relu(FusedActivation.RELU_N1_TO_1))),
    TfliteReader(LeakyRelu, _Code.LEAKY_RELU, leaky_relu, LeakyReluOptions),
    TfliteReader(HardSwish, _Code.HARD_SWISH, of_one_input(HardSwish()), HardSwishOptions),
    TfliteReader(Logistic, _Code.LOGISTIC, of_one_input(Logistic())),
    TfliteReader(Tanh, _Code.TANH, of_one_input(Tanh())),
    TfliteReader(Gelu, _Code.GELU, gelu, GeluOptions),
)
