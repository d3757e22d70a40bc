"""Define operators that passes make and no model file has: image bands, rows of tensors."""

from __future__ import annotations

from dataclasses import dataclass

from microtir.graph.ir import Node
from microtir.graph.operator import Operator
from microtir.operators.common.shapes import Shape, input_shape, require, same_shape
from microtir.operators.common.tflite_operands import MANY
from microtir.operators.definition import moving


@dataclass(frozen=True, slots=True)
class PlaceColumns(Operator):
    """Puts an image at columns of a wider one that JoinColumns makes; of no model file.

    The elements stay as they are; where they lie is the joined image's memory.
    """

    column: int = 0  # of the joined image, where the first of the input goes
    width: int = 0  # of the joined image


@dataclass(frozen=True, slots=True)
class JoinColumns(Operator):
    """The image whose columns are those of the inputs in turn, each made by a PlaceColumns.

    No code: every input lies where it has to.
    """


@dataclass(frozen=True, slots=True)
class ReadRows(Operator):
    """Takes the rows of an input from the application one by one; of no model file."""


@dataclass(frozen=True, slots=True)
class WriteRows(Operator):
    """Gives the rows of an output to the application one by one; of no model file."""


def _placed_shape(node: Node) -> tuple[Shape, ...]:
    op, image = node.attributes(PlaceColumns), input_shape(node, 0, 4)
    require(
        0 <= op.column <= op.width - image[2],
        f"{image[2]} columns from {op.column} of {op.width}",
        "columns inside the joined image",
    )
    return (image,)


def _joined_shape(node: Node) -> tuple[Shape, ...]:
    parts = [input_shape(node, position, 4) for position in range(len(node.inputs))]
    rest = {(*shape[:2], shape[3]) for shape in parts}
    require(len(rest) == 1, f"shapes {parts}", "shapes that differ in their columns only")
    return ((*parts[0][:2], sum(shape[2] for shape in parts), parts[0][3]),)


DEFINITIONS = (
    moving(PlaceColumns, _placed_shape),
    moving(JoinColumns, _joined_shape, inputs=(1, MANY)),
    moving(ReadRows, same_shape),
    moving(WriteRows, same_shape),
)
