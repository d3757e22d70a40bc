"""Compute operators on bits, with numpy broadcasting."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from microtir import te
from microtir.graph.operator import Operator
from microtir.operators.bits.definition import BitCast, BitwiseAnd, BitwiseOr, BitwiseXor
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


FORMULAS: Mapping[type[Operator], Formula] = MappingProxyType(
    {
        BitwiseAnd: _binary(lambda a, b: a & b),
        BitwiseOr: _binary(lambda a, b: a | b),
        BitwiseXor: _binary(lambda a, b: a ^ b),
        BitCast: Formula(bit_cast, 4, ROWS),
    }
)
