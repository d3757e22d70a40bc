"""Compute operators that compute shapes."""

from __future__ import annotations

import numpy as np

from microtir import te
from microtir.dtype import DType
from microtir.operators.common.arithmetic import long, wrapped_int32
from microtir.operators.common.formula import FormulaContext


def shape_of(layer: FormulaContext) -> None:
    """Emit SHAPE, of which nothing is left where constants are folded."""
    layer.whole(0)
    dtype = layer.node.output.dtype
    extents = te.constant(np.array(layer.node.inputs[0].shape, dtype.value), "extents")
    layer.tensor(lambda i: extents[i])


def rank_of(layer: FormulaContext) -> None:
    """Emit RANK, of which nothing is left where constants are folded."""
    layer.whole(0)
    layer.tensor(lambda: te.const(len(layer.node.inputs[0].shape), DType.INT32))


def broadcast_args(layer: FormulaContext) -> None:
    """Emit BROADCAST_ARGS."""
    (rank,), dtype = layer.node.output.shape, layer.node.output.dtype
    shapes = [(layer.whole(n), rank - layer.node.inputs[n].shape[0]) for n in range(2)]

    def element(i: te.Expr) -> te.Expr:
        one = te.const(1, dtype)
        a, b = (te.select(i >= new, x[i - new], one) if new else x[i] for x, new in shapes)
        return te.select(a == 1, b, a)

    layer.tensor(element)


def range_(layer: FormulaContext) -> None:
    """Emit RANGE."""
    dtype = layer.node.output.dtype
    start, delta = layer.whole(0, (1,))[0], layer.whole(1, (1,))[0]

    def element(i: te.Expr) -> te.Expr:
        if dtype.is_float:
            return te.sum(delta, te.reduce_axis(0, i, "step"), start)
        number = te.wrapping_add(long(start), te.wrapping_mul(long(i), long(delta)))
        return number if dtype is DType.INT64 else wrapped_int32(number)

    layer.tensor(element)
