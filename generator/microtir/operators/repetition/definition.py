"""Define operators that repeat elements."""

from __future__ import annotations

from dataclasses import dataclass

from microtir.graph.ir import Node
from microtir.graph.operator import Operator
from microtir.operators.common.images import by_memory_if
from microtir.operators.common.shapes import Shape, require
from microtir.operators.definition import moving


@dataclass(frozen=True, slots=True)
class Tile(Operator):
    """TILE, BROADCAST_TO and FILL: `multiples` copies beside each other along each output axis.

    Axes are counted from the last; an input of fewer axes has one element along the others.
    """

    multiples: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class MirrorPad(Operator):
    """MIRROR_PAD: the new elements mirror those inside.

    With `edge` the element at the edge is mirrored, too (SYMMETRIC), else it is not (REFLECT).
    """

    before: tuple[int, ...] = ()  # per axis
    after: tuple[int, ...] = ()
    edge: bool = False


def aligned(shape: Shape, rank: int) -> Shape:
    """Return a shape with axes of one element in front, so that it has `rank` of them."""
    return (1,) * (rank - len(shape)) + shape


def _tile_shape(node: Node) -> tuple[Shape, ...]:
    op, shape = node.attributes(Tile), node.inputs[0].shape
    require(
        len(op.multiples) >= len(shape) and min(op.multiples, default=1) >= 1,
        f"multiples {op.multiples} of the shape {shape}",
        "a number from 1 for each dimension",
    )
    pairs = zip(aligned(shape, len(op.multiples)), op.multiples, strict=True)
    return (tuple(extent * copies for extent, copies in pairs),)


def _mirror_pad_shape(node: Node) -> tuple[Shape, ...]:
    op, shape = node.attributes(MirrorPad), node.inputs[0].shape
    what = f"paddings {op.before} and {op.after} for the shape {shape}"
    require(len(op.before) == len(op.after) == len(shape), what, "a number for each side")
    axes = list(zip(op.before, shape, op.after, strict=True))
    fits = all(0 <= n <= size - (not op.edge) for b, size, a in axes for n in (b, a))
    require(fits, what, "at most the extent" if op.edge else "less than the extent")
    return (tuple(before + extent + after for before, extent, after in axes),)


def _repeats_no_image(node: Node) -> bool:
    multiples = node.attributes(Tile).multiples
    axis = node.output.type.outermost
    new = len(multiples) - len(node.inputs[0].shape)
    return set(multiples[: axis + 1]) == {1} and axis == new + node.inputs[0].type.outermost


def _mirrors_no_image(node: Node) -> bool:
    op = node.attributes(MirrorPad)
    axis = node.inputs[0].type.outermost
    return not any((*op.before[: axis + 1], *op.after[: axis + 1]))


DEFINITIONS = (
    moving(Tile, _tile_shape, "constant shape", one_image=by_memory_if(_repeats_no_image)),
    moving(
        MirrorPad,
        _mirror_pad_shape,
        "constant paddings",
        one_image=by_memory_if(_mirrors_no_image),
    ),
)
