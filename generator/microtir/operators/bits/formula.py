"""Compute operators on the bits of integers, with numpy broadcasting."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from microtir import te
from microtir.graph.operator import Operator
from microtir.operators.bits.definition import BitwiseAnd, BitwiseOr, BitwiseXor
from microtir.operators.common.broadcast import ROWS, elementwise
from microtir.operators.common.formula import Formula, FormulaContext


def _binary(combine: Callable[[te.Expr, te.Expr], te.Expr]) -> Formula:
    def compute(layer: FormulaContext) -> None:
        elementwise(layer, combine)

    return Formula(compute, 6, ROWS)


FORMULAS: Mapping[type[Operator], Formula] = MappingProxyType(
    {
        BitwiseAnd: _binary(lambda a, b: a & b),
        BitwiseOr: _binary(lambda a, b: a | b),
        BitwiseXor: _binary(lambda a, b: a ^ b),
    }
)
