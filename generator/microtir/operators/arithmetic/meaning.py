"""Define in numpy, to the bit, what element-wise operators of two inputs compute."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from microtir.graph.ir import Array, Node
from microtir.graph.operator import Operator
from microtir.operators.arithmetic.definition import (
    Add,
    Maximum,
    Minimum,
    Mul,
    Sub,
    add_params,
    mul_params,
)
from microtir.operators.common.arrays import Meaning, activate, as_output, stored
from microtir.operators.common.fixed_point import multiply_by_quantized_multiplier


def add(op: Add | Sub, node: Node, first: Array, second: Array) -> Array:
    """Compute ADD and SUB with broadcasting."""
    sign = 1 if isinstance(op, Add) else -1
    output = node.output.type
    if output.dtype.is_float:
        return as_output(activate(first + sign * second, op.activation), output)
    params = add_params(op, node.inputs[0].type, node.inputs[1].type, output)
    one = 1 << params.left_shift
    x1 = (stored(first) - params.input1_zero_point) * one
    x2 = (stored(second) - params.input2_zero_point) * one
    total = multiply_by_quantized_multiplier(x1, *params.input1)
    total = total + sign * multiply_by_quantized_multiplier(x2, *params.input2)
    scaled = multiply_by_quantized_multiplier(total, *params.output) + params.output_zero_point
    return as_output(np.clip(scaled, params.activation_min, params.activation_max), output)


def mul(op: Mul, node: Node, first: Array, second: Array) -> Array:
    """Compute MUL with broadcasting."""
    output = node.output.type
    if output.dtype.is_float:
        return as_output(activate(first * second, op.activation), output)
    params = mul_params(op, node.inputs[0].type, node.inputs[1].type, output)
    x1 = stored(first) - params.input1_zero_point
    x2 = stored(second) - params.input2_zero_point
    scaled = multiply_by_quantized_multiplier(x1 * x2, *params.multiplier)
    shifted = scaled + params.output_zero_point
    return as_output(np.clip(shifted, params.activation_min, params.activation_max), output)


def minimum(_op: Minimum, _node: Node, first: Array, second: Array) -> Array:
    """Compute MINIMUM of stored values, with broadcasting."""
    return np.minimum(first, second)


def maximum(_op: Maximum, _node: Node, first: Array, second: Array) -> Array:
    """Compute MAXIMUM of stored values, with broadcasting."""
    return np.maximum(first, second)


MEANINGS: Mapping[type[Operator], Meaning] = MappingProxyType(
    {
        Add: add,
        Sub: add,
        Mul: mul,
        Minimum: minimum,
        Maximum: maximum,
    }
)
