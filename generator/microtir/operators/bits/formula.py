"""Compute operators on bits, with numpy broadcasting."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from microtir import te
from microtir.dtype import DType
from microtir.graph.operator import Operator
from microtir.operators.bits.definition import (
    BitCast,
    BitwiseAnd,
    BitwiseOr,
    BitwiseXor,
    OrderedBits,
)
from microtir.operators.common.broadcast import ROWS, elementwise
from microtir.operators.common.formula import Formula, FormulaContext


def _binary(combine: Callable[[te.Expr, te.Expr], te.Expr]) -> Formula:
    def compute(layer: FormulaContext) -> None:
        elementwise(layer, combine)

    return Formula(compute, 6, ROWS)


def bit_cast(layer: FormulaContext) -> None:
    """Emit the same bits as another type."""
    is_float = layer.node.output.dtype.is_float
    elementwise(layer, te.float_of_bits if is_float else te.bits_of_float)


def ordered_bits(layer: FormulaContext) -> None:
    """Emit bits that are compared as integers: below 0 they are turned around."""

    def one(value: te.Expr) -> te.Expr:
        bits, most = te.bind("bits", te.bits_of_float(value)), DType.INT32.max
        turned = bits ^ ((bits >> 31) & most)
        return te.select((bits & most) <= _INFINITY, turned, most)

    elementwise(layer, one)


_INFINITY = 0x7F800000
"""Bits of infinity as an integer; those of a NaN make a larger one."""


FORMULAS: Mapping[type[Operator], Formula] = MappingProxyType(
    {
        BitwiseAnd: _binary(lambda a, b: a & b),
        BitwiseOr: _binary(lambda a, b: a | b),
        BitwiseXor: _binary(lambda a, b: a ^ b),
        BitCast: Formula(bit_cast, 4, ROWS),
        OrderedBits: Formula(ordered_bits, 9, ROWS),
    }
)
