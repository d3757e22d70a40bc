"""Compute products of matrices, each element as the product of a row and a column."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from microtir import te
from microtir.operators.common import arithmetic, linear, shapes
from microtir.operators.common.formula import FormulaContext
from microtir.operators.common.weighted import WeightedArithmetic
from microtir.operators.matmul.definition import BatchMatmul, matrices


def batch_matmul(layer: FormulaContext) -> None:
    """Emit BATCH_MATMUL for integer or float32 operands."""
    if layer.node.output.dtype.is_float:
        layer.tensor(lambda *at: _product(layer, at, lambda a, b: a * b, 0.0))
    else:
        _emit_integers(layer)


def _emit_integers(layer: FormulaContext) -> None:
    node = layer.node
    x, y = (tensor.type for tensor in node.inputs)
    params = linear.params_of(node)
    accumulator = arithmetic.Accumulator.of(layer, wraps=not linear.has_long_sums(node))

    bias = np.zeros(1, np.int64)  # none
    sums = WeightedArithmetic.with_bias(params, bias, None, accumulator, node.output.dtype)

    def term(a: te.Expr, b: te.Expr) -> te.Expr:
        product = arithmetic.centred(a, x.quant.zero_point) * arithmetic.centred(
            b, y.quant.zero_point
        )
        return accumulator.term(product)

    def element(*at: te.Expr) -> te.Expr:
        zero = te.const(0, accumulator.dtype)
        return sums.stored(_product(layer, at, term, zero), at[-1])

    layer.tensor(element)


def _product(
    layer: FormulaContext,
    at: tuple[te.Expr, ...],
    term: Callable[[te.Expr, te.Expr], te.Expr],
    init: te.ExprLike,
) -> te.Expr:
    """Sum `term(element of x, element of y)` for a place of the output."""
    node, op = layer.node, layer.node.attributes(BatchMatmul)
    (_, depth), _ = matrices(node)
    *outer, row, column = at
    k = te.reduce_axis(0, depth, "k")
    x, y = layer.whole(0), layer.whole(1)
    before, behind = (_outer(tensor.shape[:-2], outer) for tensor in node.inputs)
    first = x[tuple([*before, k, row] if op.adj_x else [*before, row, k])]
    second = y[tuple([*behind, column, k] if op.adj_y else [*behind, k, column])]
    return te.sum(term(first, second), k, init)


def _outer(extents: shapes.Shape, at: list[te.Expr]) -> list[te.ExprLike]:
    """Return the place of a matrix among those of an input, which may be broadcast."""
    inner = at[len(at) - len(extents) :]
    return [0 if extent == 1 else index for extent, index in zip(extents, inner, strict=True)]
