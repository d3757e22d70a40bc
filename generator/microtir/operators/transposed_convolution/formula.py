"""Compute transposed convolutions: each output element gathers the pixels that reach it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from microtir import te
from microtir.graph.ir import Node
from microtir.operators.common import linear
from microtir.operators.common.arithmetic import activate
from microtir.operators.common.formula import Elements, FormulaContext
from microtir.operators.common.weighted import WeightedArithmetic, stored_weights
from microtir.operators.transposed_convolution import definition as transposed_convolution

_Position = tuple[te.Expr, te.Expr, te.Expr, te.Expr]


@dataclass(frozen=True, slots=True)
class _Axis:
    """Rows or columns: position p of the input reaches p*stride - before + tap of the output."""

    stride: int
    before: int
    taps: int
    size: int  # extent of the input

    def reaching(self, position: te.Expr, name: str) -> te.ReduceAxis:
        """Return the input positions that reach a position of the output."""
        origin = position + self.before
        start = te.maximum((origin - self.taps + self.stride) // self.stride, 0)
        stop = te.minimum(origin // self.stride + 1, self.size)
        return te.reduce_axis(te.bind(f"{name}_begin", start), te.bind(f"{name}_end", stop), name)

    def tap(self, position: te.Expr, source: te.Expr) -> te.Expr:
        """Return by which tap an input position reaches a position of the output."""
        return position + self.before - source * self.stride


def _axes(node: Node) -> tuple[_Axis, _Axis]:
    op = node.attributes(transposed_convolution.TransposeConv)
    image, weights = node.inputs[0].shape, node.inputs[1].shape
    rows, columns = (
        _Axis(op.strides[axis], op.before[axis], weights[axis + 1], image[axis + 1])
        for axis in (0, 1)
    )
    return rows, columns


def _sum(
    layer: FormulaContext,
    position: _Position,
    product: Callable[[te.Expr, te.Expr], te.Expr],
    init: te.ExprLike,
    weights: Elements,
) -> te.Expr:
    """Sum `product(input element, weight)` over what reaches an element of the output."""
    n, row, column, channel = position
    rows, columns = _axes(layer.node)
    x = layer.whole(0)
    iy, ix = rows.reaching(row, "iy"), columns.reaching(column, "ix")
    ic = te.reduce_axis(0, layer.node.inputs[0].shape[3], "ic")
    weight = weights[channel, rows.tap(row, iy), columns.tap(column, ix), ic]
    return te.sum(product(x[n, iy, ix, ic], weight), (iy, ix, ic), init)


def transpose_conv(layer: FormulaContext) -> None:
    """Emit TRANSPOSE_CONV for integer or float32 operands."""
    if layer.node.inputs[0].dtype.is_float:
        _emit_float(layer)
    else:
        _emit_integers(layer)


def _emit_integers(layer: FormulaContext) -> None:
    arithmetic = WeightedArithmetic.of(layer, linear.params_of(layer.node), None)
    packed_weights = stored_weights(layer)

    def element(n: te.Expr, row: te.Expr, col: te.Expr, ch: te.Expr) -> te.Expr:
        start = arithmetic.start(ch)
        total = _sum(layer, (n, row, col, ch), arithmetic.product, start, packed_weights)
        return arithmetic.stored(total, ch)

    layer.tensor(element)


def _emit_float(layer: FormulaContext) -> None:
    op, bias = layer.node.attributes(transposed_convolution.TransposeConv), layer.bias

    def element(n: te.Expr, row: te.Expr, col: te.Expr, ch: te.Expr) -> te.Expr:
        total = _sum(layer, (n, row, col, ch), lambda x, w: x * w, 0.0, layer.weights)
        return activate(total if bias is None else total + bias[ch], op.activation)

    layer.tensor(element)
