"""Define operators that compute shapes, mostly of tensors whose shapes are known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.graph.operator import Operator
from microtir.operators.common.quantization import UNUSED
from microtir.operators.common.shapes import Shape, require
from microtir.operators.common.types import ALL_TYPES, converting, equal_types
from microtir.operators.definition import Definition, Trait


@dataclass(frozen=True, slots=True)
class ShapeOf(Operator):
    """SHAPE: the extents of the input."""

    name: ClassVar[str] = "shape"


@dataclass(frozen=True, slots=True)
class RankOf(Operator):
    """RANK: the number of dimensions of the input."""

    name: ClassVar[str] = "rank"


@dataclass(frozen=True, slots=True)
class BroadcastArgs(Operator):
    """BROADCAST_ARGS: the shape that two shapes become; of extents that differ, the first's."""


@dataclass(frozen=True, slots=True)
class Range(Operator):
    """RANGE: `count` numbers; inputs are the first one, and what is added for each further one."""

    count: int = 1


def _shape_of(node: Node) -> tuple[Shape, ...]:
    return ((len(node.inputs[0].shape),),)


def _scalar(_node: Node) -> tuple[Shape, ...]:
    return ((),)


def _broadcast_args_shape(node: Node) -> tuple[Shape, ...]:
    first, second = (tensor.shape for tensor in node.inputs)
    require(len(first) == len(second) == 1, f"shapes {first} and {second}", "two lists")
    return ((max(first[0], second[0]),),)


def _range_shape(node: Node) -> tuple[Shape, ...]:
    elements = [tensor.type.elements for tensor in node.inputs]
    require(elements == [1, 1], f"inputs of {elements} numbers", "a number each")
    return ((node.attributes(Range).count,),)


def _static(
    op: type[Operator], shapes: Callable[[Node], tuple[Shape, ...]], *results: DType
) -> Definition:
    """Define an operator whose result follows from the type of its input."""
    return Definition(
        op,
        types=converting(*((dtype, result) for result in results for dtype in ALL_TYPES)),
        quantization=UNUSED,
        shapes=shapes,
        traits=frozenset({Trait.STATIC}),
    )


_INTEGERS = equal_types(DType.INT32, DType.INT64)

DEFINITIONS = (
    _static(ShapeOf, _shape_of, DType.INT32, DType.INT64),
    _static(RankOf, _scalar, DType.INT32),
    Definition(BroadcastArgs, _INTEGERS, UNUSED, shapes=_broadcast_args_shape, inputs=(2, 2)),
    Definition(
        Range,
        equal_types(DType.FLOAT32, DType.INT32, DType.INT64),
        UNUSED,
        shapes=_range_shape,
        inputs=(2, 2),
        limits="constants",
    ),
)
