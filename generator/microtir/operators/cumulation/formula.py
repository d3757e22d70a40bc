"""Compute CUMSUM by a running sum along its axis."""

from __future__ import annotations

from collections.abc import Callable

from microtir import te
from microtir.dtype import DType
from microtir.operators.common import arithmetic, types
from microtir.operators.common.formula import FormulaContext
from microtir.operators.cumulation.definition import LEFT_SHIFT, Cumsum, cumsum_params

Scalar = Callable[[te.Expr], te.Expr]


def cumsum(layer: FormulaContext) -> None:
    """Emit CUMSUM: the loop along the axis is the inner one, where a sum can go on."""
    node, op = layer.node, layer.node.attributes(Cumsum)
    x, shape, axis = layer.whole(0), node.output.shape, op.axis
    start, term, result = _steps(layer)
    add = te.wrapping_add if node.output.dtype is DType.INT64 else lambda a, b: a + b

    def place(*at: te.Expr, before: int = 0) -> tuple[te.Expr, ...]:
        step = at[axis] - before
        return (*at[:axis], shape[axis] - 1 - step if op.reverse else step, *at[axis + 1 :])

    def element(*at: te.Expr) -> te.Expr:
        value = term(x[place(*at, before=int(op.exclusive))])
        if op.exclusive:
            value = te.select(at[axis] == 0, 0, value)
        return result(te.scan("total", add, value, at[axis], start))

    others = (other for other in range(len(shape)) if other != axis)
    layer.tensor(element, order=(*others, axis), place=place)


def _steps(layer: FormulaContext) -> tuple[int, Scalar, Scalar]:
    """Return what a sum begins with, what an element adds, and the output of a sum."""
    node = layer.node
    if node.output.dtype in types.QUANTISED:
        return _quantized_steps(layer)
    if node.output.dtype is DType.INT32:
        return 0, lambda x: arithmetic.summand(layer, x), arithmetic.Accumulator.of(layer).total
    return 0, lambda x: x, lambda total: total


def _quantized_steps(layer: FormulaContext) -> tuple[int, Scalar, Scalar]:
    output = layer.node.output
    params = cumsum_params(layer.node.inputs[0].type, output.type)

    def term(x: te.Expr) -> te.Expr:
        widened = arithmetic.centred(x, params.input_zero_point) * (1 << LEFT_SHIFT)
        return arithmetic.summand(layer, arithmetic.requantise(widened, params.input))

    def result(total: te.Expr) -> te.Expr:
        scaled = arithmetic.requantise(arithmetic.Accumulator.of(layer).total(total), params.output)
        low, high = params.minimum, params.maximum
        return arithmetic.stored(scaled, params.output_zero_point, low, high, output.dtype)

    return params.start, term, result
