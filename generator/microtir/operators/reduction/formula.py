"""Compute reductions over any axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from microtir import te
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.graph.operator import Operator
from microtir.operators.common import float_sums
from microtir.operators.common.arithmetic import (
    Accumulator,
    long,
    requantise,
    stored,
    summand,
    wrapped_int32,
)
from microtir.operators.common.formula import FormulaContext
from microtir.operators.reduction import definition as reduction

Combine: TypeAlias = Callable[[te.Expr, te.Expr], te.Expr]


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps by which a reduction combines its elements, in whatever order and parts.

    Args:
        start: what it begins with.
        term: what an element adds, in the type of the accumulator.
        result: the output element, once all elements have been added.
        combine: what the accumulator and a term make; None: their sum.
    """

    start: int | float
    term: Callable[[te.Expr], te.Expr]
    result: Callable[[te.Expr], te.Expr]
    combine: Combine | None = None

    def over(
        self, value: te.Expr, axes: Sequence[te.ReduceAxis], init: te.ExprLike | None = None
    ) -> te.Expr:
        """Return the accumulator after the values over axes; it begins with `init`."""
        term, first = self.term(value), self.start if init is None else init
        if self.combine is None:
            return te.sum(term, axes, init=first)
        return te.fold("reduced", self.combine, term, axes, first)


def reduce(layer: FormulaContext) -> None:
    """Emit a reduction over any axes."""
    node, op = layer.node, layer.node.attributes(reduction.Reduction)
    x, shape = layer.whole(0), node.inputs[0].shape
    outer_axes = [axis for axis in range(len(shape)) if axis not in op.axes]
    names = {axis: f"k{axis}" for axis in op.axes}
    steps = steps_of(layer)

    def element(*position: te.Expr) -> te.Expr:
        reduced = {axis: te.reduce_axis(0, shape[axis], names[axis]) for axis in op.axes}
        outer = dict(zip(outer_axes, position, strict=True))
        value = x[tuple(reduced[a] if a in reduced else outer[a] for a in range(len(shape)))]
        axes = tuple(reduced.values()) or (te.reduce_axis(0, 1, "k"),)
        return steps.result(steps.over(value, axes))

    layer.tensor(element, tuple(shape[axis] for axis in outer_axes))


def accumulator_type(node: Node) -> DType:
    """Return the type of the accumulators of a reduction whose sums, if it has some, fit INT32."""
    dtype = node.inputs[0].dtype
    if isinstance(node.op, reduction.ReduceProd) and reduction.is_rescaled(node):
        return DType.INT64
    return (
        DType.INT32
        if isinstance(node.op, reduction.Mean | reduction.Sum) and dtype.is_int
        else dtype
    )


def steps_of(layer: FormulaContext) -> Steps:
    """Return how a reduction goes through its elements."""
    dtype = layer.node.inputs[0].dtype
    op = layer.node.op
    if isinstance(op, reduction.ReduceMax | reduction.ReduceMin) and op.infinite and dtype.is_float:
        start = -math.inf if isinstance(op, reduction.ReduceMax) else math.inf
        return replace(_STEPS[type(op)](dtype), start=start)
    if isinstance(op, reduction.ReduceProd) and reduction.is_rescaled(layer.node):
        return _quantized_product(layer.node)
    if not isinstance(op, reduction.Mean | reduction.Sum):
        return _STEPS[type(op)](dtype)
    if reduction.is_rescaled(layer.node):
        return _quantized_sum(layer)
    count = float(reduction.reduced_elements(layer.node))
    if isinstance(layer.node.op, reduction.Mean):
        return Steps(0.0, _same, lambda total: total / count)
    if dtype is DType.INT64:
        return Steps(0, _same, _same, te.wrapping_add)
    return Steps(0, lambda x: summand(layer, x), lambda total: _total(layer, total))


def _total(layer: FormulaContext, total: te.Expr) -> te.Expr:
    return total if total.dtype.is_float else Accumulator.of(layer).total(total)


def _quantized_sum(layer: FormulaContext) -> Steps:
    node, op = layer.node, layer.node.attributes(reduction.Mean, reduction.Sum)
    if op.rescaling.in_float:
        sums = reduction.float_sum(node)
        zero_points = reduction.reduced_elements(node) * node.inputs[0].type.quant.zero_point
        return Steps(
            -zero_points,
            lambda x: summand(layer, x),
            lambda total: float_sums.stored_sum(te.bind("total", total), sums, node.output.dtype),
        )
    params, output = (
        reduction.sum_params(op, node.inputs[0].type, node.output.type),
        node.output.dtype,
    )

    def result(total: te.Expr) -> te.Expr:
        scaled = requantise(_total(layer, total), params.multiplier)
        return stored(scaled, params.output_zero_point, params.minimum, params.maximum, output)

    # The zero points' share is what the sum begins with.
    start = -params.count * params.input_zero_point
    return Steps(start, lambda x: summand(layer, x), result)


_NO_PRODUCT = DType.INT64.min
"""The number before the first factor, which is not rescaled; no product is as low."""


def _quantized_product(node: Node) -> Steps:
    """Return how centred values are multiplied; each product is rescaled, the last one twice."""
    output, factor = node.output.type, reduction.product_factor(node)
    input_zero, output_zero = node.inputs[0].type.quant.zero_point, output.quant.zero_point
    right = 15 - factor.shift

    def rescaled(product: te.Expr) -> te.Expr:
        raised = te.wrapping_mul(product, te.const(factor.multiplier, DType.INT64))
        half = te.const(1 << (right - 1), DType.INT64)
        return wrapped_int32(te.wrapping_add(raised, half) >> right)

    def combine(so_far: te.Expr, x: te.Expr) -> te.Expr:
        start = te.const(_NO_PRODUCT, DType.INT64)
        return te.select(so_far == start, x, long(rescaled(te.wrapping_mul(so_far, x))))

    def result(product: te.Expr) -> te.Expr:
        low, high = (end - output_zero for end in (output.dtype.min, output.dtype.max))
        return te.cast(output.dtype, te.clamp(rescaled(product), low, high) + output_zero)

    return Steps(_NO_PRODUCT, lambda x: long(x) - input_zero, result, combine)


def _same(value: te.Expr) -> te.Expr:
    return value


def _lowest(dtype: DType) -> int | float:
    return float(np.finfo(dtype.value).min) if dtype.is_float else dtype.min


def _highest(dtype: DType) -> int | float:
    return float(np.finfo(dtype.value).max) if dtype.is_float else dtype.max


def _product(dtype: DType) -> Steps:
    combine: Combine = te.wrapping_mul
    if dtype.is_float:
        combine = lambda so_far, x: so_far * x  # noqa: E731  # as short as its neighbours
    elif dtype is DType.INT32:
        combine = lambda so_far, x: wrapped_int32(long(so_far) * long(x))  # noqa: E731
    return Steps(1, _same, _same, combine)


# A maximum whose second operand is the accumulator keeps that where an element is NaN.
_STEPS: Mapping[type[Operator], Callable[[DType], Steps]] = MappingProxyType(
    {
        reduction.ReduceMax: lambda t: Steps(
            _lowest(t), _same, _same, lambda a, x: te.maximum(x, a)
        ),
        reduction.ReduceMin: lambda t: Steps(
            _highest(t), _same, _same, lambda a, x: te.minimum(x, a)
        ),
        reduction.ReduceProd: _product,
        reduction.ReduceAll: lambda _: Steps(True, _same, _same, lambda a, x: a & x),
        reduction.ReduceAny: lambda _: Steps(False, _same, _same, lambda a, x: a | x),
    }
)


def position(layer: FormulaContext) -> None:
    """Emit ARG_MAX and ARG_MIN: the extreme element, then the first one that is equal to it."""
    node, op = layer.node, layer.node.attributes(reduction.ArgExtremum)
    x, size = layer.whole(0), node.inputs[0].shape[op.axis]
    choose = te.maximum if isinstance(op, reduction.ArgMax) else te.minimum

    def element(*at: te.Expr) -> te.Expr:
        def element_of(index: te.ExprLike) -> te.Expr:
            where = (*at[: op.axis], index, *at[op.axis :])
            return x[where]

        rest, k = te.reduce_axis(1, size, "rest"), te.reduce_axis(0, size, "k")
        # What comes later replaces the best so far where it is better, and a NaN never is.
        best = te.fold("best", lambda a, b: choose(b, a), element_of(rest), rest, element_of(0))
        if not x.dtype.is_float:
            first = te.min(te.select(element_of(k) == best, k, size - 1), k, init=size - 1)
            return te.cast(node.output.dtype, first)
        first = te.min(te.select(element_of(k) == best, k, size), k, init=size)
        return te.cast(node.output.dtype, te.select(first == size, 0, first))

    layer.tensor(element)
