"""Compute functions of one element that are no activations; those of int8 are tables."""

from __future__ import annotations

from microtir import te
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.operators.common import arithmetic, erfc_formula, inverse_sqrt_formula, lookup_formula
from microtir.operators.common.elementwise_formula import Scalar
from microtir.operators.unary import definition as unary


def negated(x: te.Expr) -> te.Expr:
    """Return -x; of the least integer it is that integer, as in two's complement."""
    least = te.const(x.dtype.min, x.dtype)
    return te.select(x == least, x, -x)


def sign(x: te.Expr) -> te.Expr:
    """Return -1, 0 or 1, and NaN as it is."""
    one = te.const(1, x.dtype)
    return te.select(x > 0, one, te.select(x < 0, -one, x))


def erf(x: te.Expr) -> te.Expr:
    """Return the error function, by its complement of the magnitude."""
    one = te.const(1.0, DType.FLOAT32)
    return (one - erfc_formula.erfc(te.abs(x))) * te.select(x < 0.0, -one, one)


def abs_stored(node: Node) -> Scalar:
    """Return ABS of stored values, which are no real numbers where nothing is quantised."""
    source, output = node.inputs[0].type, node.output.type
    if source.dtype is DType.INT32 or source.quantization is None:
        return lambda x: te.select(x < 0, negated(x), x)
    params = unary.abs_params(node.attributes(unary.Abs), source, output)

    def function(x: te.Expr) -> te.Expr:
        size = te.abs(te.bind("centred", arithmetic.centred(x, params.input_zero_point)))
        if params.multiplier is not None:
            size = arithmetic.requantise(size, params.multiplier)
        return te.clamp(size + params.output_zero_point, output.dtype.min, output.dtype.max)

    return function


def sqrt_stored(node: Node) -> Scalar:
    """Return SQRT of stored values."""
    output = node.output.type
    source, result = node.inputs[0].type.quant, output.quant
    # Clamped before the conversion: C leaves a float outside the integer undefined.
    most = float(output.dtype.max - result.zero_point)

    def function(x: te.Expr) -> te.Expr:
        size = te.cast(DType.FLOAT32, te.maximum(arithmetic.centred(x, source.zero_point), 0))
        root = te.minimum(te.sqrt(size * source.scale) / result.scale, most)
        return te.cast(DType.INT32, root) + result.zero_point

    return function


def rsqrt_stored(node: Node) -> Scalar:
    """Return RSQRT of stored values."""
    op = node.attributes(unary.Rsqrt)
    if op.by_table:
        return _looked_up(node, op)
    output = node.output.type
    params = unary.rsqrt_params(node.inputs[0].type, output)
    low, high = output.dtype.min, output.dtype.max

    def function(x: te.Expr) -> te.Expr:
        size = te.bind("centred", arithmetic.centred(x, params.input_zero_point))
        multiplier, shift = inverse_sqrt_formula.inverse_square_root(size)
        root = te.multiply_by_quantized_multiplier(1, multiplier, shift + unary.RSQRT_SHIFT)
        scaled = arithmetic.requantise(root, params.multiplier) + params.output_zero_point
        return te.maximum(te.clamp(scaled, low, high), te.select(size > 0, low, high))

    return function


def table_stored(node: Node) -> Scalar:
    """Return EXP or LOG of int16 by its table."""
    return _looked_up(node, node.attributes(unary.Exp, unary.Log))


def _looked_up(node: Node, op: unary.Exp | unary.Log | unary.Rsqrt) -> Scalar:
    table = lookup_formula.Int16Table(unary.int16_table(op, node.inputs[0].type, node.output.type))
    return table.at


def zero(x: te.Expr) -> te.Expr:
    """Return 0 of the type of x."""
    return te.const(0, x.dtype)
