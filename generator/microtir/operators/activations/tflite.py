"""Read TFLite's activations."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.operators.activations import definition as activations
from microtir.operators.common import attributes, tflite_schema
from microtir.operators.common import tflite_written as written
from microtir.operators.common.tflite_operands import Converted, Operands
from microtir.operators.common.unlike_scales import FixedResult, Moved


@dataclass(frozen=True, slots=True)
class LeakyReluOptions(tflite_schema.Options):
    alpha: float = 0.2


def relu(kind: attributes.Activation) -> Callable[[Operands], Converted]:
    """Return what reads RELU, RELU6 or RELU_N1_TO_1.

    tflite-micro has none of uint8 and no RELU_N1_TO_1: LiteRT's count.
    """

    def read(operands: Operands) -> Converted:
        x = operands.input(0)
        is_other = kind is attributes.Activation.RELU_N1_TO_1 and x.dtype.is_int
        return Converted(
            activations.Relu(kind, float32_ratio=is_other or x.dtype is DType.UINT8), (x,)
        )

    return read


def leaky_relu(operands: Operands) -> Converted:
    """Read LEAKY_RELU."""
    alpha = operands.table(LeakyReluOptions).alpha
    if not math.isfinite(alpha):
        raise operands.malformed(f"alpha is {alpha}", "a finite number")
    x = operands.input(0)
    return Converted(activations.LeakyRelu(alpha, float32_ratio=x.dtype is DType.UINT8), (x,))


def prelu(operands: Operands) -> Converted:
    """Read PRELU."""
    is_of_litert = operands.input(0).dtype is DType.UINT8
    return Converted(activations.Prelu(float32_ratio=is_of_litert), operands.present)


@dataclass(frozen=True, slots=True)
class GeluOptions(tflite_schema.Options):
    approximate: bool = False


def gelu(operands: Operands) -> Converted:
    """Read GELU."""
    return Converted(
        activations.Gelu(operands.table(GeluOptions).approximate), (operands.input(0),)
    )


def write_relu(kind: attributes.Activation) -> written.Write:
    """Return what writes RELU, RELU6 or RELU_N1_TO_1."""

    def write(node: Node) -> written.Written | None:
        is_of_kind = node.attributes(activations.Relu).kind is kind
        return written.as_it_is(node) if is_of_kind else None

    return write


def write_leaky_relu(node: Node) -> written.Written:
    """Write LEAKY_RELU."""
    alpha = node.attributes(activations.LeakyRelu).alpha
    return written.Written(node.inputs, LeakyReluOptions(alpha))


def write_gelu(node: Node) -> written.Written:
    """Write GELU."""
    approximate = node.attributes(activations.Gelu).approximate
    return written.Written(node.inputs, GeluOptions(approximate))


RELU6 = Moved(types=frozenset({DType.INT8, DType.INT16}), litert_rescales=True, in_input_scale=True)
"""Behaviour for RELU6: tflite-micro clamps in the scale of the input, and copies the integers."""

RELU = Moved(types=frozenset({DType.INT8, DType.INT16}), has_own_scales=True)
"""Behaviour for RELU: tflite-micro rescales by the first scales, and LiteRT by 0 / 0."""

LOGISTIC = FixedResult(
    DType.INT8,
    DType.INT8,
    activations.LOGISTIC_OF_INT8,
    zero_by_micro=True,
    scale_by_litert=True,
    litert_rescales=True,
)
TANH = FixedResult(DType.INT8, DType.INT8, activations.TANH_OF_INT8, litert_rescales=True)
"""Behaviour of references where the output has another quantisation than its results."""
