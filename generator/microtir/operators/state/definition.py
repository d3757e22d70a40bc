"""Define operators that keep something from one run to the next.

Rows here are those along an axis of time: all axes before it have the extent 1, so that rows lie
one after the other in memory and some of them are a run of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from microtir.graph.ir import Node
from microtir.graph.operator import Operator
from microtir.operators.common.shapes import Shape, require, same_shape
from microtir.operators.common.tflite_operands import MANY
from microtir.operators.definition import Trait, moving


@dataclass(frozen=True, slots=True)
class Assign(Operator):
    """Gives a memory a value: that of a state after a run, or of a loop before a turn.

    It comes once nothing needs the old one any more.
    """


@dataclass(frozen=True, slots=True)
class KeepRows(Operator):
    """Takes rows of a state that stay when newer ones come, for the state's next value.

    In the memory of the state they move towards its start; each row is read before another one
    takes its place.
    """

    axis: int = 0
    first: int = 0  # row of the old value
    by: int = 1  # rows, by which they move


@dataclass(frozen=True, slots=True)
class TakeRows(Operator):
    """Rows of a tensor along an axis, from `first` on. No code: they lie in its memory."""

    axis: int = 0
    first: int = 0


@dataclass(frozen=True, slots=True)
class JoinRows(Operator):
    """The tensor whose rows along an axis are those of the inputs in turn.

    No code where every input can lie where it has to.
    """

    axis: int = 0


def _taken_shape(node: Node) -> tuple[Shape, ...]:
    op, shape = node.attributes(KeepRows, TakeRows), node.inputs[0].shape
    _require_rows(shape, op.axis)
    count = node.output.shape[op.axis] if len(node.output.shape) == len(shape) else 0
    require(
        0 <= op.first <= shape[op.axis] - count,
        f"{count} rows from {op.first} of {shape[op.axis]}",
        "rows of the input",
    )
    if isinstance(op, KeepRows):
        require(0 < op.by <= op.first, f"rows from {op.first} move by {op.by}", "1 to the first")
    return ((*shape[: op.axis], count, *shape[op.axis + 1 :]),)


def _joined_shape(node: Node) -> tuple[Shape, ...]:
    op, parts = node.attributes(JoinRows), [tensor.shape for tensor in node.inputs]
    _require_rows(parts[0], op.axis)
    rest = {(shape[: op.axis], shape[op.axis + 1 :]) for shape in parts}
    require(len(rest) == 1, f"shapes {parts}", "shapes that differ in their rows only")
    rows = sum(shape[op.axis] for shape in parts)
    return ((*parts[0][: op.axis], rows, *parts[0][op.axis + 1 :]),)


def _require_rows(shape: Shape, axis: int) -> None:
    require(
        0 <= axis < len(shape) and math.prod(shape[:axis]) == 1,
        f"rows along axis {axis} of the shape {shape}",
        "an axis with extents of 1 before it",
    )


DEFINITIONS = (
    moving(Assign, same_shape, traits=frozenset({Trait.CONTROL, Trait.IN_PLACE})),
    moving(KeepRows, _taken_shape, traits=frozenset({Trait.IN_PLACE})),
    moving(TakeRows, _taken_shape),
    moving(JoinRows, _joined_shape, inputs=(1, MANY)),
)
