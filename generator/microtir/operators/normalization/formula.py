"""Compute L2_NORMALIZATION over the last axis."""

from __future__ import annotations

from microtir import te
from microtir.dtype import DType
from microtir.operators.common import arithmetic, inverse_sqrt_formula
from microtir.operators.common.formula import FormulaContext
from microtir.operators.normalization import definition as normalization


def l2_normalize(layer: FormulaContext) -> None:
    """Emit L2_NORMALIZATION for int8 or float32."""
    if layer.node.output.dtype.is_float:
        _of_float(layer)
    else:
        _of_int8(layer)


def _of_float(layer: FormulaContext) -> None:
    x = layer.image(0)

    def element(row: te.Expr, column: te.Expr, channel: te.Expr) -> te.Expr:
        k = te.reduce_axis(0, x.extents.channels, "k")
        value = x.at(row, column, k)
        norm = te.maximum(te.sqrt(te.sum(value * value, k)), normalization.EPSILON)
        return x.at(row, column, channel) / te.bind("norm", norm)

    layer.rows(element)


def _of_int8(layer: FormulaContext) -> None:
    x, dtype = layer.image(0), layer.node.output.dtype
    zero_point = layer.node.inputs[0].type.quant.zero_point

    def element(row: te.Expr, column: te.Expr, channel: te.Expr) -> te.Expr:
        k = te.reduce_axis(0, x.extents.channels, "k")
        value = arithmetic.centred(x.at(row, column, k), zero_point)
        own = arithmetic.centred(x.at(row, column, channel), zero_point)
        return normalised(own, te.sum(value * value, k), dtype)

    layer.rows(element)


def normalised(own: te.Expr, total: te.Expr, dtype: DType) -> te.Expr:
    """Return what an element is stored as, given the sum of the squares of its row."""
    multiplier, shift = inverse_sqrt_formula.inverse_square_root(total)
    if dtype is DType.UINT8:  # widened before it is rounded, not after
        own, added, zero = own * (1 << normalization.OUTPUT_BITS), 0, normalization.UINT8_ZERO
    else:
        added, zero = normalization.OUTPUT_BITS, 0
    factor = te.bind("multiplier", multiplier), te.bind("shift", shift + added)
    scaled = te.multiply_by_quantized_multiplier(own, *factor) + zero
    return te.cast(dtype, te.clamp(te.bind("scaled", scaled), dtype.min, dtype.max))
