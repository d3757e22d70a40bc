"""Read ONNX's angles and hyperbolic functions, as formulas that lose no digits near 0."""

from __future__ import annotations

import math

from microtir.graph.ir import Tensor
from microtir.operators.activations.definition import Elu
from microtir.operators.arithmetic.definition import Atan2
from microtir.operators.common.onnx_arithmetic import (
    add,
    choose,
    div,
    equal,
    greater,
    less,
    mul,
    sub,
)
from microtir.operators.common.onnx_operands import OnnxNode
from microtir.operators.unary.definition import Abs, Cos, Exp, Log, Neg, Sin, Sqrt


def tangent(node: OnnxNode) -> Tensor:
    """Read Tan."""
    x = node.input(0)
    return div(node, node.emit(Sin(), x), node.emit(Cos(), x))


def arc_tangent(node: OnnxNode) -> Tensor:
    """Read Atan: the angle of the point (1, x)."""
    x = node.input(0)
    return node.emit(Atan2(), x, node.scalar_like(1.0, x))


def _leg(node: OnnxNode, x: Tensor) -> Tensor:
    """Return sqrt(1 - x^2)."""
    return node.emit(Sqrt(), mul(node, sub(node, 1.0, x), add(node, 1.0, x)))


def arc_sine(node: OnnxNode) -> Tensor:
    """Read Asin: the angle of the point (sqrt(1 - x^2), x)."""
    x = node.input(0)
    return node.emit(Atan2(), x, _leg(node, x))


def arc_cosine(node: OnnxNode) -> Tensor:
    """Read Acos: the angle of the point (x, sqrt(1 - x^2))."""
    x = node.input(0)
    return node.emit(Atan2(), _leg(node, x), x)


def _signed(node: OnnxNode, x: Tensor, size: Tensor) -> Tensor:
    """Return a size with the sign of x."""
    return choose(node, less(node, x, 0.0), node.emit(Neg(), size), size)


def hyperbolic_sine(node: OnnxNode) -> Tensor:
    """Read Sinh: of e = exp(-|x|) - 1, which ELU computes, it is -e (2 + e) / (2 exp(-|x|))."""
    x = node.input(0)
    down = node.emit(Neg(), node.emit(Abs(), x))
    less_one, small = node.emit(Elu(), down), node.emit(Exp(), down)
    size = div(node, mul(node, mul(node, less_one, -0.5), add(node, small, 1.0)), small)
    return _signed(node, x, size)


def hyperbolic_cosine(node: OnnxNode) -> Tensor:
    """Read Cosh."""
    x = node.input(0)
    return mul(node, add(node, node.emit(Exp(), x), node.emit(Exp(), node.emit(Neg(), x))), 0.5)


def _log_of_one_more(node: OnnxNode, x: Tensor) -> Tensor:
    """Return log(1 + x): what rounding 1 + x does to its logarithm cancels in the quotient."""
    more = add(node, x, 1.0)
    difference = sub(node, more, 1.0)
    is_small = equal(node, difference, 0.0)
    divisor = choose(node, is_small, 1.0, difference)
    scaled = mul(node, node.emit(Log(), more), div(node, x, divisor))
    return choose(node, is_small, x, scaled)


_LARGE = 1e4
"""Bound from which on 1 + x^2 is taken for x^2."""


def inverse_hyperbolic_sine(node: OnnxNode) -> Tensor:
    """Read Asinh: log(1 + u) of u = |x| + x^2 / (1 + sqrt(1 + x^2)); log(2 |x|) far from 0."""
    x = node.input(0)
    size = node.emit(Abs(), x)
    is_large = greater(node, size, _LARGE)
    near = choose(node, is_large, 1.0, size)
    square = mul(node, near, near)
    root = node.emit(Sqrt(), add(node, square, 1.0))
    more = add(node, near, div(node, square, add(node, root, 1.0)))
    far = add(node, node.emit(Log(), size), math.log(2.0))
    return _signed(node, x, choose(node, is_large, far, _log_of_one_more(node, more)))


def inverse_hyperbolic_cosine(node: OnnxNode) -> Tensor:
    """Read Acosh: log(1 + u) of u = (x - 1) + sqrt((x - 1) (x + 1)); log(2 x) far from 0."""
    x = node.input(0)
    is_large = greater(node, x, _LARGE)
    near = choose(node, is_large, 1.0, x)
    above = sub(node, near, 1.0)
    root = node.emit(Sqrt(), mul(node, above, add(node, near, 1.0)))
    far = add(node, node.emit(Log(), x), math.log(2.0))
    return choose(node, is_large, far, _log_of_one_more(node, add(node, above, root)))


def inverse_hyperbolic_tangent(node: OnnxNode) -> Tensor:
    """Read Atanh: half of log(1 + 2 |x| / (1 - |x|))."""
    x = node.input(0)
    size = node.emit(Abs(), x)
    ratio = div(node, mul(node, size, 2.0), sub(node, 1.0, size))
    return _signed(node, x, mul(node, _log_of_one_more(node, ratio), 0.5))
