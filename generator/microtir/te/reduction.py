"""Reductions, and named common subexpressions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from microtir.dtype import DType
from microtir.errors import TirError
from microtir.support.arguments import checked_arguments
from microtir.te.expr import (
    Bind,
    Expr,
    ExprLike,
    Needs,
    Reduce,
    ReduceAxis,
    Reduction,
    as_expr,
    describe,
    merged,
)
from microtir.tir import ir


@checked_arguments
def reduce_axis(start: ExprLike, stop: ExprLike, name: str) -> ReduceAxis:
    """Make the index of a reduction over [start, stop), an INT32.

    The bounds may depend on the axes of the computation and on reduction axes that are further
    out: a window that is clipped at a border has a shorter range there.  An empty range is legal.
    """
    bounds = (as_expr(start, DType.INT32), as_expr(stop, DType.INT32))
    for bound in bounds:
        if bound.dtype is not DType.INT32:
            raise TirError(
                f"the range of axis '{name}' is given in {bound.dtype.value}: {describe(bound)}",
                where="te.reduce_axis",
                legal="INT32",
            )
    return ReduceAxis(ir.Var(name), start=bounds[0], stop=bounds[1])


@checked_arguments
def sum(  # noqa: A001  # numpy's name
    value: ExprLike,
    axis: ReduceAxis | Sequence[ReduceAxis],
    init: ExprLike | None = None,
    where: ExprLike | None = None,
) -> Expr:
    """Return the sum of `value` over the axes, the first one outermost, beginning with `init` (0).

    The terms are added one by one in the type of `value`: cast int8 products to INT32 first.
    Where the condition `where` does not hold, nothing is added and `value` is not evaluated.
    """
    return _reduce(Reduction.SUM, value, axis, init, where)


@checked_arguments
def max(  # noqa: A001  # numpy's name
    value: ExprLike, axis: ReduceAxis | Sequence[ReduceAxis], init: ExprLike | None = None
) -> Expr:
    """Return the largest `value` over the axes, beginning with `init` (the lowest finite one)."""
    return _reduce(Reduction.MAX, value, axis, init)


@checked_arguments
def min(  # noqa: A001  # numpy's name
    value: ExprLike, axis: ReduceAxis | Sequence[ReduceAxis], init: ExprLike | None = None
) -> Expr:
    """Return the smallest `value` over the axes, beginning with `init` (the highest finite one)."""
    return _reduce(Reduction.MIN, value, axis, init)


@checked_arguments
def bind(name: str, value: ExprLike) -> Expr:
    """Name a value: a variable in the C code, evaluated once however often it is read.

    It is evaluated in the outermost loop that defines everything it reads, so a value that does
    not depend on the inner axes is not computed again for each of them.
    """
    handle = as_expr(value)
    prelude = Bind(ir.Var(name, handle.dtype), handle)
    return Expr(prelude.var, Needs((prelude,), handle.needs.tensors))


def _reduce(
    kind: Reduction,
    value: ExprLike,
    axis: ReduceAxis | Sequence[ReduceAxis],
    init: ExprLike | None,
    where: ExprLike | None = None,
) -> Expr:
    handle = as_expr(value)
    axes = (axis,) if isinstance(axis, ReduceAxis) else tuple(axis)
    place = f"te.{kind.value}"
    if not axes:
        raise TirError("a reduction needs at least one axis", where=place)
    if len({a.var for a in axes}) != len(axes):
        raise TirError("a reduction names an axis twice", where=place)
    if handle.dtype is DType.BOOL:
        raise TirError(f"{describe(handle)} is bool", where=place, fix="cast it to an integer type")
    condition = None if where is None else as_expr(where)
    if condition is not None and condition.dtype is not DType.BOOL:
        raise TirError(
            f"the condition {describe(condition)} is {condition.dtype.value}, not bool",
            where=place,
            fix="compare it with a number",
        )
    first = _identity(kind, handle.dtype) if init is None else as_expr(init, handle.dtype)
    if first.dtype is not handle.dtype:
        raise TirError(
            f"init {describe(first)} is {first.dtype.value}, the reduced value "
            f"{describe(handle)} is {handle.dtype.value}",
            where=place,
            fix="convert one of them with te.cast(dtype, value)",
        )
    prelude = Reduce(ir.Var(kind.value, handle.dtype), kind, axes, handle, first, condition)
    operands = merged(*(operand.needs for operand in prelude.operands))
    return Expr(prelude.var, Needs((prelude,), operands.tensors))


def _identity(kind: Reduction, dtype: DType) -> Expr:
    """Return the value that an empty reduction gives."""
    if kind is Reduction.SUM:
        return as_expr(0, dtype)
    if dtype.is_float:
        # TFLite starts at numeric_limits::lowest(), not at minus infinity; C99 has a constant
        # expression for it without math.h.
        highest = float(np.finfo(dtype.value).max)
        return as_expr(-highest if kind is Reduction.MAX else highest, dtype)
    return as_expr(dtype.min if kind is Reduction.MAX else dtype.max, dtype)
