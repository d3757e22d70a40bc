"""Compute what LiteRT makes of a float layer with int8 weights."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from microtir import te
from microtir.dtype import DType
from microtir.operators.common.arithmetic import activate, wide
from microtir.operators.common.formula import FormulaContext
from microtir.operators.convolution import formula as convolution_formula
from microtir.operators.dense.definition import FullyConnected
from microtir.operators.hybrid import definition

_F32, _F64, _I32 = DType.FLOAT32, DType.FLOAT64, DType.INT32


class _Scales(NamedTuple):
    """The scaling of the values of a part as they are stored."""

    scale: te.Expr
    inverse: te.Expr
    zero_point: te.ExprLike


def _scales(low: te.Expr, high: te.Expr, *, asymmetric: bool) -> _Scales:
    """Return how a part is stored whose values have these bounds."""
    if not asymmetric:
        size = te.bind("size", te.maximum(te.abs(low), te.abs(high)))
        size = te.bind("size", te.select(size > 0.0, size, 1.0))
        scale, inverse = (
            size / definition.SYMMETRIC_HIGHEST,
            te.const(definition.SYMMETRIC_HIGHEST, _F32) / size,
        )
        return _Scales(te.bind("scale", scale), te.bind("inverse", inverse), 0)
    least, most = te.bind("least", te.minimum(low, 0.0)), te.bind("most", te.maximum(high, 0.0))
    span = te.bind("span", most - least)
    used = te.cast(_F64, te.select(span > 0.0, span, 1.0))
    exact = te.bind("exact", used / (definition.HIGHEST - definition.LOWEST))
    below = te.bind("below", te.cast(_F64, least) / exact)
    above = te.bind("above", te.cast(_F64, most) / exact)
    from_low, from_high = (
        te.const(definition.LOWEST, _F64) - below,
        te.const(definition.HIGHEST, _F64) - above,
    )
    is_low_better = te.const(-definition.LOWEST, _F64) - below < above + definition.HIGHEST
    real = te.bind("real", te.select(is_low_better, from_low, from_high))
    real = te.bind("real", te.clamp(real, definition.LOWEST, definition.HIGHEST))
    zero_point = te.cast(_I32, te.select(real < 0.0, real - 0.5, real + 0.5))
    scale = te.bind("scale", te.cast(_F32, exact))
    inverse = te.bind("inverse", te.const(1.0, _F32) / scale)
    return _Scales(scale, inverse, te.bind("zero_point", zero_point))


def bounds(layer: FormulaContext) -> None:
    """Give the least and the greatest value of each part."""
    op, x = layer.node.attributes(definition.Bounds), layer.node.inputs[0]
    length = x.type.elements // op.parts
    parts = layer.whole(0, (op.parts, length))
    for pick in (te.min, te.max):
        k = te.reduce_axis(0, length, "k")
        layer.tensor(lambda part, pick=pick, k=k: pick(parts[part, k], k))


def dynamic_quantize(layer: FormulaContext) -> None:
    """Give the stored value of each element."""
    op, x = layer.node.attributes(definition.DynamicQuantize), layer.node.inputs[0]
    count = layer.node.inputs[1].shape[0]
    shape = (count, x.type.elements // count)
    parts, low, high = layer.whole(0, shape), layer.whole(1), layer.whole(2)
    lowest = definition.LOWEST if op.asymmetric else -definition.SYMMETRIC_HIGHEST

    def element(part: te.Expr, place: te.Expr) -> te.Expr:
        of = _scales(low[part], high[part], asymmetric=op.asymmetric)
        real = te.no_fp_contract(parts[part, place] * of.inverse)
        if op.asymmetric:
            real = te.cast(_F32, of.zero_point) + real
        rounded = te.clamp(te.round(real), float(lowest), float(definition.HIGHEST))
        return te.cast(DType.INT8, rounded)

    layer.tensor(element, shape)


def hybrid(layer: FormulaContext) -> None:
    """Give the outputs of a layer."""
    op = layer.node.attributes(definition.Hybrid)
    if isinstance(op.layer, FullyConnected):
        _dense(layer, op)
    else:
        _convolution(layer, op)


def _convolution(layer: FormulaContext, op: definition.Hybrid) -> None:
    node, finish = layer.node, _Finish(layer, op)
    sums = convolution_formula.TapSums(layer, definition.inner(node))
    rows_per_part = node.output.type.rows // node.inputs[2].shape[0]

    def element(row: te.Expr, column: te.Expr, channel: te.Expr) -> te.Expr:
        of = finish.scales(row // rows_per_part)
        place = (row, column, channel)
        total = sums.of(
            place, lambda x, w: (wide(x) - of.zero_point) * wide(w), init=0, weights=layer.weights
        )
        return finish.result(total, of, channel)

    layer.rows(element)


def _dense(layer: FormulaContext, op: definition.Hybrid) -> None:
    node, finish = layer.node, _Finish(layer, op)
    channels, depth = node.inputs[1].shape
    rows = node.inputs[0].type.elements // depth
    x, weights = layer.whole(0, (rows, depth)), layer.weights

    def element(row: te.Expr, channel: te.Expr) -> te.Expr:
        of = finish.scales(row)
        k = te.reduce_axis(0, depth, "k")
        total = te.sum((wide(x[row, k]) - of.zero_point) * wide(weights[channel, k]), k)
        return finish.result(total, of, channel)

    layer.tensor(element, (rows, channels))


class _Finish:
    """The finishing step of a layer: from sums to outputs."""

    def __init__(self, layer: FormulaContext, op: definition.Hybrid) -> None:
        node = layer.node
        self._op = op
        self._low, self._high = layer.whole(2), layer.whole(3)
        factors = np.array(node.inputs[1].type.quant.scales, np.float32)
        channels = node.output.shape[-1]
        self._scales = te.constant(np.broadcast_to(factors, (channels,)).copy(), "weight_scales")
        has_bias = len(node.inputs) > 4
        self._bias = te.constant(layer.data(4), "bias") if has_bias else None

    def scales(self, part: te.Expr) -> _Scales:
        """Return how a part of the input is stored."""
        return _scales(self._low[part], self._high[part], asymmetric=self._op.asymmetric)

    def result(self, total: te.Expr, of: _Scales, channel: te.Expr) -> te.Expr:
        """Return the output element of a sum."""
        real, factor = te.cast(_F32, total), self._scales[channel]
        if self._op.by_channel_first:
            scaled = real * factor * of.scale
        else:
            scaled = real * (of.scale * factor)
        # Rounded before the bias is added, as the reference does it.
        if self._bias is not None:
            scaled = te.no_fp_contract(scaled) + self._bias[channel]
        return activate(scaled, self._op.layer.activation)
