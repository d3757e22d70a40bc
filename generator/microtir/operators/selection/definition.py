"""Define operators that pick elements, or name their places, by a condition."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from microtir.graph.ir import Node
from microtir.graph.operator import Operator
from microtir.operators.common.shapes import Shape, broadcast_of, require


@dataclass(frozen=True, slots=True)
class Select(Operator):
    """Picks between two inputs by a condition, input 0; all three broadcast as numpy's arrays.

    Where `by_rows` is set, the condition has one axis, which is the first one of the others.
    """

    by_rows: bool = False


@dataclass(frozen=True, slots=True)
class Where(Operator):
    """Gives the places at which a constant is true or not zero, a row of coordinates for each."""


def condition_shape(node: Node) -> Shape:
    """Return the shape that the condition of a Select broadcasts with."""
    condition, chosen = node.inputs[0].shape, node.inputs[1].shape
    return (*condition, *(1,) * (len(chosen) - 1)) if node.attributes(Select).by_rows else condition


def select_shape(node: Node) -> tuple[Shape, ...]:
    """Return the shape of what a Select picks."""
    condition, first, second = (tensor.shape for tensor in node.inputs)
    if node.attributes(Select).by_rows:
        require(
            first == second and len(condition) == 1 and condition == first[:1],
            f"a condition of shape {condition} for {first} and {second}",
            "two equal shapes, and a condition for each index of their first axis",
        )
    return (broadcast_of(condition_shape(node), first, second),)


def where_shape(node: Node) -> tuple[Shape, ...]:
    """Return the shape of the places of a constant condition."""
    require(node.inputs[0].is_constant, "the condition is computed", "a constant")
    data = node.inputs[0].values
    require(data.ndim > 0, "the condition is a scalar", "at least one dimension")
    return ((int(np.count_nonzero(data)), data.ndim),)
