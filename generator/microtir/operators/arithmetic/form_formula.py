"""Write integer forms of two stored elements as expressions."""

from __future__ import annotations

from collections.abc import Callable

from microtir import te
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.operators.arithmetic.integer_form import IntegerForm
from microtir.operators.common.arithmetic import RAISED, centred, long, stored_raised, wide

Scalars = Callable[[te.Expr, te.Expr], te.Expr]


def of_form(form: IntegerForm, node: Node, low: int, high: int) -> Scalars:
    """Return the function of two elements that a form describes, clamped to [low, high]."""
    total = _product(form, node) if form.product else _sum(form, node)

    def combine(a: te.Expr, b: te.Expr) -> te.Expr:
        return stored_raised(te.cast(DType.INT32, total(a, b) >> form.bits), low, high)

    return combine


def _product(form: IntegerForm, node: Node) -> Scalars:
    first, second = (tensor.type.quant.zero_point for tensor in node.inputs)

    def total(a: te.Expr, b: te.Expr) -> te.Expr:
        x, y = centred(a, first), centred(b, second)
        if form.is_wide:
            x, y = long(x), long(y)
        result = form.product * (x * y) + _start(form, _raised(form))
        for factor, term in ((form.first, x), (form.second, y)):
            result = factor * term + result if factor else result
        return result

    return total


def _raised(form: IntegerForm) -> int:
    return form.offset + (RAISED << form.bits)


def _start(form: IntegerForm, offset: int) -> te.Expr:
    return te.as_expr(offset, DType.INT64 if form.is_wide else DType.INT32)


def _sum(form: IntegerForm, node: Node) -> Scalars:
    """Return a sum of two products.

    That of the input with fewer elements is computed, with the offset, outside loops in which it
    does not change.  What the offset takes of zero points leaves no partial sum larger than the
    whole ones, because a zero point is a stored value, too.
    """
    quants = [tensor.type.quant for tensor in node.inputs]
    factors = form.first, form.second
    zeros = sum(f * quant.zero_point for f, quant in zip(factors, quants, strict=True))
    first, second = (tensor.type.elements for tensor in node.inputs)
    inner = 0 if first >= second else 1
    stored = long if form.is_wide else wide

    def total(a: te.Expr, b: te.Expr) -> te.Expr:
        start = _start(form, _raised(form) - zeros)
        values = a, b
        base = te.bind("base", stored(values[1 - inner]) * factors[1 - inner] + start)
        return stored(values[inner]) * factors[inner] + base

    return total
