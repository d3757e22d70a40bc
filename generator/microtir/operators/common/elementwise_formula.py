"""Make formulas of elementwise operators from functions of scalar expressions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from microtir import te
from microtir.graph.ir import Node
from microtir.operators.common.broadcast import ROWS, ScalarFunction, elementwise
from microtir.operators.common.formula import Formula, FormulaContext

Scalar: TypeAlias = Callable[[te.Expr], te.Expr]


def scalar(real: Scalar, of_stored: Callable[[Node], Scalar] | None = None) -> Formula:
    """Compute a function of one element, which is evaluated once.

    Args:
        real: the function of a FLOAT32.
        of_stored: gives the function of a node's integers.
    """
    return scalar_by_node(lambda _node: real, of_stored)


def scalar_by_node(
    real: Callable[[Node], Scalar], of_stored: Callable[[Node], Scalar] | None = None
) -> Formula:
    """Compute a function as `scalar` does, which depends on the node."""

    def compute(layer: FormulaContext) -> None:
        node, x = layer.node, layer.image(0)
        dtype = node.output.dtype
        chosen = real if dtype.is_float else of_stored
        assert chosen is not None
        function = chosen(node)
        layer.rows(lambda *at: te.cast(dtype, function(te.bind("value", x.at(*at)))))

    return Formula(compute)


def broadcast(function: ScalarFunction) -> Formula:
    """Compute a function of an element of each input, which broadcast as numpy's arrays."""
    return Formula(lambda layer: elementwise(layer, function), ROWS)


def by_node(functions: Callable[[Node], ScalarFunction]) -> Formula:
    """Compute the function that a node has, of an element of each input, as `broadcast`."""
    return Formula(lambda layer: elementwise(layer, functions(layer.node)), ROWS)
