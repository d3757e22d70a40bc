"""Compute functions of one element that are no activations; those of int8 are tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeAlias

from microtir import te
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.graph.operator import Operator
from microtir.operators.common.arithmetic import centred, requantise
from microtir.operators.common.erfc_formula import erfc
from microtir.operators.common.formula import Formula, FormulaContext
from microtir.operators.common.inverse_sqrt_formula import inverse_square_root
from microtir.operators.common.lookup_formula import Int16Table
from microtir.operators.unary.definition import (
    RSQRT_SHIFT,
    Abs,
    Ceil,
    Cos,
    Erf,
    Exp,
    Floor,
    Log,
    Neg,
    Round,
    Rsqrt,
    Sign,
    Sin,
    Sqrt,
    Square,
    ZerosLike,
    abs_params,
    int16_table,
    rsqrt_params,
)

Scalar: TypeAlias = Callable[[te.Expr], te.Expr]


def _function(
    real: Scalar, of_stored: Callable[[Node], Scalar] | None = None, cost: int = 20
) -> Formula:
    """Compute a function of one element, at a cost each; the argument is evaluated once.

    Args:
        real: the function of a FLOAT32.
        of_stored: gives the function of a node's integers.
        cost: of an element.
    """

    def compute(layer: FormulaContext) -> None:
        node, x = layer.node, layer.image(0)
        dtype = node.output.dtype
        function = real
        if not dtype.is_float:
            assert of_stored is not None
            function = of_stored(node)
        layer.rows(lambda *at: te.cast(dtype, function(te.bind("value", x.at(*at)))))

    return Formula(compute, cost)


def _negated(x: te.Expr) -> te.Expr:
    """Return -x; of the least integer it is that integer, as in two's complement."""
    least = te.const(x.dtype.min, x.dtype)
    return te.select(x == least, x, -x)


def _neg_stored(_node: Node) -> Scalar:
    return _negated


def _sign(x: te.Expr) -> te.Expr:
    """Return -1, 0 or 1, and NaN as it is."""
    one = te.const(1, x.dtype)
    return te.select(x > 0, one, te.select(x < 0, -one, x))


def _erf(x: te.Expr) -> te.Expr:
    one = te.const(1.0, DType.FLOAT32)
    return (one - erfc(te.abs(x))) * te.select(x < 0.0, -one, one)


def _abs_stored(node: Node) -> Scalar:
    source, output = node.inputs[0].type, node.output.type
    if source.dtype is DType.INT32 or source.quantization is None:
        return lambda x: te.select(x < 0, _negated(x), x)
    assert isinstance(node.op, Abs)
    params = abs_params(node.op, source, output)

    def function(x: te.Expr) -> te.Expr:
        size = te.abs(te.bind("centred", centred(x, params.input_zero_point)))
        if params.multiplier is not None:
            size = requantise(size, params.multiplier)
        return te.clamp(size + params.output_zero_point, output.dtype.min, output.dtype.max)

    return function


def _sqrt_stored(node: Node) -> Scalar:
    output = node.output.type
    source, result = node.inputs[0].type.quant, output.quant
    # Clamped before the conversion: C leaves a float outside the integer undefined.
    most = float(output.dtype.max - result.zero_point)

    def function(x: te.Expr) -> te.Expr:
        size = te.cast(DType.FLOAT32, te.maximum(centred(x, source.zero_point), 0))
        root = te.minimum(te.sqrt(size * source.scale) / result.scale, most)
        return te.cast(DType.INT32, root) + result.zero_point

    return function


def _rsqrt_stored(node: Node) -> Scalar:
    output = node.output.type
    params = rsqrt_params(node.inputs[0].type, output)
    low, high = output.dtype.min, output.dtype.max

    def function(x: te.Expr) -> te.Expr:
        size = te.bind("centred", centred(x, params.input_zero_point))
        multiplier, shift = inverse_square_root(size)
        root = te.multiply_by_quantized_multiplier(1, multiplier, shift + RSQRT_SHIFT)
        scaled = requantise(root, params.multiplier) + params.output_zero_point
        return te.maximum(te.clamp(scaled, low, high), te.select(size > 0, low, high))

    return function


def _table_stored(node: Node) -> Scalar:
    op = node.op
    assert isinstance(op, Exp | Log)
    table = Int16Table(int16_table(op, node.inputs[0].type, node.output.type))
    return table.at


def _zero(x: te.Expr) -> te.Expr:
    return te.const(0, x.dtype)


FORMULAS: Mapping[type[Operator], Formula] = MappingProxyType(
    {
        Abs: _function(te.abs, _abs_stored, 6),
        Neg: _function(lambda x: -x, _neg_stored, 6),
        Sign: _function(_sign, lambda _node: _sign, 8),
        Square: _function(lambda x: x * x, cost=8),
        Sqrt: _function(te.sqrt, _sqrt_stored, 30),
        Rsqrt: _function(lambda x: te.const(1.0, DType.FLOAT32) / te.sqrt(x), _rsqrt_stored, 60),
        Exp: _function(te.exp, _table_stored, 60),
        Log: _function(te.log, _table_stored, 60),
        Erf: _function(_erf, cost=90),
        Sin: _function(te.sin, cost=60),
        Cos: _function(te.cos, cost=60),
        Floor: _function(te.floor),
        Ceil: _function(te.ceil),
        Round: _function(te.round_half_to_even),
        ZerosLike: _function(_zero, lambda _node: _zero, 3),
    }
)
