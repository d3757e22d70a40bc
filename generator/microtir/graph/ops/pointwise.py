"""Operators that work element by element, with numpy broadcasting where they take two inputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from microtir.graph.ops.base import Activation, Operator


@dataclass(frozen=True, slots=True)
class BinaryArithmetic(Operator):
    activation: Activation = Activation.NONE


@dataclass(frozen=True, slots=True)
class Add(BinaryArithmetic):
    name: ClassVar[str] = "add"


@dataclass(frozen=True, slots=True)
class Sub(BinaryArithmetic):
    name: ClassVar[str] = "sub"


@dataclass(frozen=True, slots=True)
class Mul(BinaryArithmetic):
    name: ClassVar[str] = "mul"


@dataclass(frozen=True, slots=True)
class Minimum(Operator):
    """Never rescales: input and output quantisations are equal."""

    name: ClassVar[str] = "minimum"


@dataclass(frozen=True, slots=True)
class Maximum(Operator):
    """Never rescales: input and output quantisations are equal."""

    name: ClassVar[str] = "maximum"


@dataclass(frozen=True, slots=True)
class Relu(Operator):
    """RELU, RELU6 and RELU_N1_TO_1 as operators of their own; `kind` is not NONE."""

    name: ClassVar[str] = "relu"
    kind: Activation = Activation.RELU


@dataclass(frozen=True, slots=True)
class LeakyRelu(Operator):
    name: ClassVar[str] = "leaky_relu"
    alpha: float = 0.0  # a float32 value


@dataclass(frozen=True, slots=True)
class HardSwish(Operator):
    name: ClassVar[str] = "hard_swish"


@dataclass(frozen=True, slots=True)
class Logistic(Operator):
    name: ClassVar[str] = "logistic"


@dataclass(frozen=True, slots=True)
class Tanh(Operator):
    name: ClassVar[str] = "tanh"


@dataclass(frozen=True, slots=True)
class Quantize(Operator):
    """Float to integer, or integer to integer of another quantisation."""

    name: ClassVar[str] = "quantize"


@dataclass(frozen=True, slots=True)
class Dequantize(Operator):
    name: ClassVar[str] = "dequantize"


@dataclass(frozen=True, slots=True)
class CastTo(Operator):
    """Conversion of stored values to the output's scalar type; quantisation plays no part."""

    name: ClassVar[str] = "cast"
