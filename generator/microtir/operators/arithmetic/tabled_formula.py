"""Compute sums and squared differences of int8 with a table of one operand, widened and rescaled.

The operand of the larger scale is only shifted; what TFLite rounds of the other one is one of 256
numbers.  Where many sums end half way between two integers, as of scales with few digits, it is
these roundings that decide, and no factor has them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from microtir import te
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.operators.arithmetic import fixed_form, formula
from microtir.operators.arithmetic.definition import (
    Add,
    AddParams,
    SquaredDifference,
    Sub,
    add_params,
    difference_params,
)
from microtir.operators.arithmetic.form_formula import Scalars
from microtir.operators.common.arithmetic import RAISED, centred, int32, stored_raised, wide
from microtir.operators.common.elementwise_formula import Scalar, by_node
from microtir.operators.common.fixed_point import multiply_by_quantized_multiplier
from microtir.operators.common.linear import rescales_in_float
from microtir.tir.ir import Array

BITS = 20  # of the fraction of a sum
_MOVES = (0, 1, -1, 2, -2, 4, -4, 8, -8, 16, -16)  # of factors, until ties go away from zero


@dataclass(frozen=True, slots=True, eq=False)
class OperandTable:
    """A table, in the order of bytes without a sign.

    Attributes:
        position: of the operand, 0 or 1.
        factor: of the other operand.
        entries: 256 numbers to add to its product, or to subtract.
    """

    position: int
    factor: int
    entries: Array


def table_of(node: Node) -> OperandTable | None:
    """Return the table of a node, where it has one and the formula takes all steps."""
    types = (*(tensor.type for tensor in node.inputs), node.output.type)
    if any(type_.dtype is not DType.INT8 for type_ in types) or rescales_in_float(node):
        return None
    position = 0 if types[0].quant.scale < types[1].quant.scale else 1
    if isinstance(node.op, SquaredDifference):
        params = difference_params(*types)
        return None if formula.finish_of_squares(params) is None else _operand(params, position)
    return sum_table(node) if fixed_form.sum_form(node) is None else None


def sum_table(node: Node) -> OperandTable | None:
    """Return the table of ADD or SUB of int8 in fixed point, whether or not it has a form."""
    types = (*(tensor.type for tensor in node.inputs), node.output.type)
    position = 0 if types[0].quant.scale < types[1].quant.scale else 1
    op = node.attributes(Add, Sub)
    ratio = types[1 - position].quant.scale / types[2].quant.scale
    return _addend(add_params(op, *types), position, ratio, isinstance(op, Sub))


def _operand(params: AddParams, position: int) -> OperandTable | None:
    """Return the table of an operand, if no line has it; the other one is a shift."""
    zero, own = params.operand(position)
    if fixed_form.operand_line(params.left_shift, zero, own) is not None:
        return None
    widened = (fixed_form.STORED - zero) << params.left_shift
    return OperandTable(position, 0, _by_bytes(multiply_by_quantized_multiplier(widened, *own)))


@lru_cache(maxsize=256)
def _addend(params: AddParams, position: int, ratio: float, subtracts: bool) -> OperandTable | None:
    """Return a table of sums, found for each of its elements by itself."""
    low, high = params.activation_min, params.activation_max
    results = fixed_form.sums(params, subtracts=subtracts)
    if position == 0:
        results = results.T
    nearest = round(ratio * (1 << BITS))
    for move in _MOVES:
        factor = (-1 if subtracts and position == 0 else 1) * (nearest + move)
        products = factor * fixed_form.STORED[:, np.newaxis]
        none = np.int64(1) << 62
        least = np.where(results > low, (results << BITS) - products, -none).max(axis=0)
        end = np.where(results < high, (results + 1 << BITS) - products, none).min(axis=0)
        # Where one end alone is clamped to, any number far enough away does.
        least, end = np.maximum(least, end - (1 << BITS)), np.minimum(end, least + (1 << BITS))
        if (least < end).all():
            entries = (least + end - 1) // 2 + (RAISED << BITS)
            if np.abs(products).max() + np.abs(entries).max() < 1 << 31:
                return OperandTable(position, factor, _by_bytes(entries))
    return None


def _by_bytes(values: Array) -> Array:
    return int32(np.roll(values, DType.INT8.min))


def _function(node: Node) -> Scalars:
    tabled = table_of(node)
    assert tabled is not None, "the kernel refuses others"
    table = te.constant(tabled.entries, "scaled")

    def entry(x: te.Expr) -> te.Expr:
        return te.bind("entry", table[wide(x) & DType.UINT8.max])

    types = (*(tensor.type for tensor in node.inputs), node.output.type)
    if isinstance(node.op, SquaredDifference):
        return _difference(difference_params(*types), tabled.position, entry)
    params = add_params(node.attributes(Add, Sub), *types)

    def combine(a: te.Expr, b: te.Expr) -> te.Expr:
        own, other = (a, b) if tabled.position == 0 else (b, a)
        total = wide(other) * tabled.factor + entry(own)
        return stored_raised(total >> BITS, params.activation_min, params.activation_max)

    return combine


def _difference(params: AddParams, position: int, entry: Scalar) -> Scalars:
    """Return SQUARED_DIFFERENCE; the operand without a table is shifted."""
    zero, _ = params.operand(1 - position)  # whose factor is one half
    finish = formula.finish_of_squares(params)
    assert finish is not None, "the kernel refuses others"

    def operand(x: te.Expr, number: int) -> te.Expr:
        if number == position:
            return entry(x)
        return centred(x, zero) * (1 << (params.left_shift - 1))

    return formula.short_difference(params, finish, operand)


FORMULA = by_node(_function)
