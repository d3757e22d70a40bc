"""Make formulas of elementwise operators from functions of scalar expressions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from microtir import te
from microtir.graph.ir import Node
from microtir.operators.common.broadcast import ROWS, ScalarFunction, elementwise
from microtir.operators.common.formula import Formula, FormulaContext

Scalar: TypeAlias = Callable[[te.Expr], te.Expr]


def scalar(
    real: Scalar, of_stored: Callable[[Node], Scalar] | None = None, cost: int = 20
) -> Formula:
    """Compute a function of one element, which is evaluated once.

    Args:
        real: the function of a FLOAT32.
        of_stored: gives the function of a node's integers.
        cost: of an element.
    """

    def compute(layer: FormulaContext) -> None:
        node, x = layer.node, layer.image(0)
        dtype = node.output.dtype
        function = real
        if not dtype.is_float:
            assert of_stored is not None
            function = of_stored(node)
        layer.rows(lambda *at: te.cast(dtype, function(te.bind("value", x.at(*at)))))

    return Formula(compute, cost)


def broadcast(function: ScalarFunction, cost: int | Callable[[Node], int]) -> Formula:
    """Compute a function of an element of each input, which broadcast as numpy's arrays."""
    return Formula(lambda layer: elementwise(layer, function), cost, ROWS)
