"""Compute operators that divide, with numpy broadcasting."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from microtir import te
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.operators.arithmetic.definition import whole_range
from microtir.operators.common import attributes, types
from microtir.operators.common.arithmetic import activate, centred, stored
from microtir.operators.common.broadcast import elementwise
from microtir.operators.common.fixed_point_formula import leading_zeros, reciprocal
from microtir.operators.common.formula import FormulaContext
from microtir.operators.division.definition import Div, div_params

Scalars = Callable[[te.Expr, te.Expr], te.Expr]


def div(layer: FormulaContext) -> None:
    """Give the output of DIV."""
    node = layer.node
    op, dtype = node.attributes(Div), node.output.dtype
    if dtype in types.QUANTISED:
        elementwise(layer, _quantised(node, op))
    elif dtype.is_int:
        elementwise(layer, _whole(op, dtype))
    else:
        elementwise(layer, _real(op))


def _real(op: Div) -> Scalars:
    """Return the quotient of floats, finite as the reference kernels' clamp makes it."""
    largest = float(np.finfo(np.float32).max)

    def combine(a: te.Expr, b: te.Expr) -> te.Expr:
        quotient = te.bind("quotient", a / b)
        if op.activation is not attributes.Activation.NONE:
            return activate(quotient, op.activation)
        # A NaN passes, as it would not through a minimum.
        below = te.select(quotient < -largest, -largest, quotient)
        return te.select(quotient > largest, largest, below)

    return combine


def _saturated(a: te.Expr) -> te.Expr:
    """Return what division of integers by 0 gives."""
    highest, lowest, zero = (te.const(value, a.dtype) for value in (a.dtype.max, a.dtype.min, 0))
    if not a.dtype.is_signed:
        return te.select(a > 0, highest, zero)
    return te.select(a > 0, highest, te.select(a < 0, lowest, zero))


def _whole(op: Div, dtype: DType) -> Scalars:
    """Return the quotient rounded to zero, which saturates."""
    low, high = whole_range(op, dtype)

    def unsigned(a: te.Expr, b: te.Expr) -> te.Expr:
        quotient = te.select(b == 0, _saturated(a), te.truncdiv(a, b))
        return te.minimum(quotient, te.const(high, dtype)) if high < dtype.max else quotient

    def combine(a: te.Expr, b: te.Expr) -> te.Expr:
        overflows = (a == dtype.min) & (b == -1)
        quotient = te.select(overflows, te.const(dtype.max, dtype), te.truncdiv(a, b))
        quotient = te.select(b == 0, _saturated(a), quotient)
        return te.clamp(quotient, low, high) if low > dtype.min else quotient

    return combine if dtype.is_signed else unsigned


def _quantised(node: Node, op: Div) -> Scalars:
    """Return quantised DIV: times the reciprocal of the divisor, requantised."""
    first, second = (tensor.type for tensor in node.inputs)
    dtype = node.output.dtype
    params = div_params(op, first, second, node.output.type)
    largest = 1 << (dtype.bits + 2)  # no quotient that counts

    def combine(a: te.Expr, b: te.Expr) -> te.Expr:
        dividend, divisor = (
            centred(a, params.input1_zero_point),
            centred(b, params.input2_zero_point),
        )
        x = te.bind("x", te.select(divisor < 0, -dividend, dividend))
        y = te.bind("y", te.maximum(te.abs(divisor), 1))
        spare = te.bind("spare", leading_zeros(y))
        headroom = te.bind("headroom", leading_zeros(te.select(x < 0, -1 - x, x)) - 1)
        quotient = _MUL(te.saturating_shift_left(x, headroom), reciprocal(y, spare))
        right = te.bind("right", headroom + (31 - spare) - params.multiplier.shift)
        # Shifted by more than 31 bits nothing is left.
        scaled = _MUL(quotient, params.multiplier.multiplier) * te.select(right > 31, 0, 1)
        rounded = te.rounding_divide_by_pot(scaled, te.clamp(right, 0, 31))
        sign = te.select(dividend > 0, 1, te.select(dividend < 0, -1, 0))
        beyond = te.select(divisor == 0, sign * (2 * largest), 0)
        total = te.clamp(rounded, -largest, largest) + beyond
        low, high = params.activation_min, params.activation_max
        return stored(total, params.output_zero_point, low, high, dtype)

    return combine


_MUL = te.saturating_rounding_doubling_high_mul


def floor_div(layer: FormulaContext) -> None:
    """Give the output of FLOOR_DIV."""
    dtype = layer.node.output.dtype

    def combine(a: te.Expr, b: te.Expr) -> te.Expr:
        overflows = (a == dtype.min) & (b == -1)
        quotient = te.select(overflows, te.const(dtype.min, dtype), a // b)
        return te.select(b == 0, _saturated(a), quotient)

    elementwise(layer, te.floor_divide if dtype.is_float else combine)


def floor_mod(layer: FormulaContext) -> None:
    """Give the output of FLOOR_MOD."""
    dtype = layer.node.output.dtype

    def real(a: te.Expr, b: te.Expr) -> te.Expr:
        rest = te.bind("rest", te.fmod(a, b))
        return te.select((rest != 0.0) & ((b < 0.0) != (rest < 0.0)), rest + b, rest)

    def whole(a: te.Expr, b: te.Expr) -> te.Expr:
        return te.select((b == 0) | (b == -1), te.const(0, dtype), a % b)

    elementwise(layer, real if dtype.is_float else whole)
