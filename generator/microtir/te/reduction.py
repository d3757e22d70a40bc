"""Reductions, scans, and named common subexpressions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from microtir.dtype import DType
from microtir.errors import TirError
from microtir.support.arguments import checked_arguments
from microtir.te.expr import (
    NOTHING,
    Bind,
    Combine,
    Expr,
    ExprLike,
    Needs,
    Reduce,
    ReduceAxis,
    Scan,
    Term,
    as_expr,
    describe,
    merged,
)
from microtir.tir import build, ir


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
                f"a bound of axis '{name}' is {bound.dtype.value}: {describe(bound)}",
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
    number = _arithmetic(value, "te.sum")
    return _reduce("sum", build.add, number, axis, 0 if init is None else init, where)


@checked_arguments
def max(  # noqa: A001  # numpy's name
    value: ExprLike, axis: ReduceAxis | Sequence[ReduceAxis], init: ExprLike | None = None
) -> Expr:
    """Return the largest `value` over the axes, beginning with `init` (the lowest finite one)."""
    number = _arithmetic(value, "te.max")
    first = _extreme(number.dtype, largest=False) if init is None else init
    return _reduce("max", build.maximum, number, axis, first)


@checked_arguments
def min(  # noqa: A001  # numpy's name
    value: ExprLike, axis: ReduceAxis | Sequence[ReduceAxis], init: ExprLike | None = None
) -> Expr:
    """Return the smallest `value` over the axes, beginning with `init` (the highest finite one)."""
    number = _arithmetic(value, "te.min")
    first = _extreme(number.dtype, largest=True) if init is None else init
    return _reduce("min", build.minimum, number, axis, first)


@checked_arguments
def fold(
    name: str,
    combine: Callable[[Expr, Expr], ExprLike],
    value: ExprLike,
    axis: ReduceAxis | Sequence[ReduceAxis],
    init: ExprLike,
) -> Expr:
    """Return what `combine(so far, value)` makes of the values over the axes, from `init` on.

    `combine` gives what both have: its own type, and nothing but arithmetic.
    """
    return _reduce(name, _built(combine, f"te.fold '{name}'"), value, axis, init)


@checked_arguments
def scan(
    name: str,
    combine: Callable[[Expr, Expr], ExprLike],
    value: ExprLike,
    along: Expr,
    init: ExprLike,
) -> Expr:
    """Return what `combine(so far, value)` makes of the values up to this step of a loop.

    `along` is an axis of the computation that reads the result; before its first step there is
    `init`. The value depends on no axis inside that one.
    """
    where = f"te.scan '{name}'"
    handle = as_expr(value)
    first = _of_type(handle, init, where)
    if not isinstance(along.node, ir.Var):
        raise TirError(f"{describe(along)} is not an axis", where=where, legal="a te.compute axis")
    prelude = Scan(ir.Var(name, handle.dtype), _built(combine, where), along.node, handle, first)
    return Expr(prelude.var, Needs((prelude,), merged(first.needs, handle.needs).tensors))


@checked_arguments
def term(result: Expr, along: Expr) -> Expr:
    """Return the value that a reduction has read at an axis of the computation, the last one.

    Each is computed once: it is stored where the result goes, and read before that is stored.
    """
    reductions = [
        p for p in result.needs.preludes if isinstance(p, Reduce) and p.var is result.node
    ]
    if not reductions or not isinstance(along.node, ir.Var):
        what = f"{describe(result)} is not a reduction, or {describe(along)} is not an axis"
        raise TirError(what, where="te.term", legal="te.sum(...) and an axis of te.compute")
    var = ir.Var("term", result.dtype)
    return Expr(var, Needs((Term(var, reductions[0], along.node, result),), result.needs.tensors))


def _built(combine: Callable[[Expr, Expr], ExprLike], where: str) -> Combine:
    """Return a function of handles as one of expressions."""

    def apply(so_far: ir.Expr, value: ir.Expr) -> ir.Expr:
        result = as_expr(combine(Expr(so_far), Expr(value)), so_far.dtype)
        if result.needs is not NOTHING:
            raise TirError("combine may not use a reduction, a bind or a load", where=where)
        if result.dtype is not so_far.dtype:
            what = f"combining two values of {so_far.dtype.value} gives {result.dtype.value}"
            raise TirError(what, where=where, fix="convert it with te.cast(dtype, value)")
        return result.node

    return apply


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
    name: str,
    combine: Combine,
    value: ExprLike,
    axis: ReduceAxis | Sequence[ReduceAxis],
    init: ExprLike,
    where: ExprLike | None = None,
) -> Expr:
    handle = as_expr(value)
    axes = (axis,) if isinstance(axis, ReduceAxis) else tuple(axis)
    place = f"te.{name}"
    if not axes:
        raise TirError("the reduction needs at least one axis", where=place)
    if len({a.var for a in axes}) != len(axes):
        raise TirError("the reduction lists an axis twice", where=place)
    condition = None if where is None else as_expr(where)
    if condition is not None and condition.dtype is not DType.BOOL:
        raise TirError(
            f"the condition {describe(condition)} is {condition.dtype.value}, not bool",
            where=place,
            fix="compare it with a number",
        )
    first = _of_type(handle, init, place)
    prelude = Reduce(ir.Var(name, handle.dtype), combine, axes, handle, first, condition)
    operands = merged(*(operand.needs for operand in prelude.operands))
    return Expr(prelude.var, Needs((prelude,), operands.tensors))


def _of_type(value: Expr, init: ExprLike, where: str) -> Expr:
    """Return what a reduction of a value begins with, in the type of the value."""
    first = as_expr(init, value.dtype)
    if first.dtype is not value.dtype:
        raise TirError(
            f"the initial value {describe(first)} is {first.dtype.value}, but the reduced value "
            f"{describe(value)} is {value.dtype.value}",
            where=where,
            fix="convert one of them with te.cast(dtype, value)",
        )
    return first


def _arithmetic(value: ExprLike, where: str) -> Expr:
    handle = as_expr(value)
    if handle.dtype is DType.BOOL:
        raise TirError(f"{describe(handle)} is bool", where=where, fix="cast it to an integer")
    return handle


def _extreme(dtype: DType, *, largest: bool) -> float:
    """Return the end of a type that every value of it is compared with."""
    if dtype.is_float:
        # TFLite starts at numeric_limits::lowest(), not at minus infinity; C99 has a constant
        # expression for it without math.h.
        highest = float(np.finfo(dtype.value).max)
        return highest if largest else -highest
    return dtype.max if largest else dtype.min
