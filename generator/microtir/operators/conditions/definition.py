"""Define comparisons and logical operators, whose results are bool: attributes and rules."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from microtir.dtype import DType
from microtir.graph.ir import Node, TensorType
from microtir.graph.operator import Operator
from microtir.operators.common.multiplier import QuantizedMultiplier, quantize_multiplier
from microtir.operators.common.problem import Problem
from microtir.operators.common.quantization import OWN_IF_NARROW, QuantizationRule


@dataclass(frozen=True, slots=True)
class Comparison(Operator):
    """Base of comparisons of real values, which broadcast as numpy's."""


@dataclass(frozen=True, slots=True)
class Equal(Comparison):
    """True where both inputs are equal."""


@dataclass(frozen=True, slots=True)
class NotEqual(Comparison):
    """True where the inputs differ; a NaN differs from itself."""


@dataclass(frozen=True, slots=True)
class Greater(Comparison):
    """True where input 0 is greater than input 1."""


@dataclass(frozen=True, slots=True)
class GreaterEqual(Comparison):
    """True where input 0 is greater than input 1 or equal."""


@dataclass(frozen=True, slots=True)
class Less(Comparison):
    """True where input 0 is less than input 1."""


@dataclass(frozen=True, slots=True)
class LessEqual(Comparison):
    """True where input 0 is less than input 1 or equal."""


@dataclass(frozen=True, slots=True)
class LogicalAnd(Operator):
    """True where both inputs are true."""


@dataclass(frozen=True, slots=True)
class LogicalOr(Operator):
    """True where one of the inputs is true, or both."""


@dataclass(frozen=True, slots=True)
class LogicalNot(Operator):
    """True where the input is false."""


LEFT_SHIFT = 8
"""Both operands are widened by this many bits before they are rescaled."""


@dataclass(frozen=True, slots=True)
class ComparedParams:
    """Parameters of a rescaled operand: (x - zero_point) * 2^LEFT_SHIFT times its scale."""

    zero_point: int
    scale: QuantizedMultiplier


def is_rescaled(op: Operator, operand: TensorType) -> bool:
    """Return whether real numbers are compared, and not stored ones.

    They are of int8.  Of int16 LiteRT rescales what EQUAL and NOT_EQUAL compare, and no other.
    """
    if operand.dtype is DType.INT16:
        return isinstance(op, Equal | NotEqual) and operand.quantization is not None
    return operand.dtype is DType.INT8


def compared_params(operand: TensorType) -> ComparedParams:
    """Derive the parameters of an operand that is rescaled."""
    return ComparedParams(operand.quant.zero_point, quantize_multiplier(operand.quant.scale))


def multipliers(node: Node) -> Iterator[Problem]:
    """Find scales of 1 or more, for which tflite-micro stops the program."""
    for tensor in node.inputs:
        rescaled = is_rescaled(node.op, tensor.type)
        if rescaled and compared_params(tensor.type).scale.shift > 0:
            yield Problem(f"its scale is {tensor.type.quant.scale:.9g}", "below 1", tensor)


def _own_if_rescaled(node: Node) -> Iterator[Problem]:
    if any(is_rescaled(node.op, tensor.type) for tensor in node.inputs):
        yield from OWN_IF_NARROW.check(node)


EQUALITY = QuantizationRule(_own_if_rescaled, f"{OWN_IF_NARROW.words}; int16 may be without")
ORDER = QuantizationRule(
    _own_if_rescaled, f"{OWN_IF_NARROW.words}, nor in int16, of which stored values are compared"
)
"""Rules of EQUAL and NOT_EQUAL, and of the other comparisons."""
