"""Define operators that move blocks of an image into its channels or its batch, or back."""

from __future__ import annotations

import math
from dataclasses import dataclass

from microtir.graph.ir import Node
from microtir.graph.operator import Operator
from microtir.operators.common.images import by_first_axis
from microtir.operators.common.shapes import Shape, require
from microtir.operators.definition import moving


@dataclass(frozen=True, slots=True)
class DepthToSpace(Operator):
    """DEPTH_TO_SPACE: the channels of a pixel become a block of `block` by `block` pixels."""

    block: int = 1


@dataclass(frozen=True, slots=True)
class SpaceToDepth(Operator):
    """SPACE_TO_DEPTH: a block of `block` by `block` pixels becomes the channels of one."""

    block: int = 1


@dataclass(frozen=True, slots=True)
class SpaceToBatch(Operator):
    """SPACE_TO_BATCH_ND: each element of a block goes to an image of its own.

    Axes 1, 2, ... are cut into blocks of `block` elements, once they are padded with `value`, as
    stored.
    """

    block: tuple[int, ...] = ()
    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()
    value: float = 0.0


@dataclass(frozen=True, slots=True)
class BatchToSpace(Operator):
    """BATCH_TO_SPACE_ND: images become the elements of blocks of one image, which is cropped.

    `before` and `after` are what is left out along axes 1, 2, ....
    """

    block: tuple[int, ...] = ()
    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()


def _image(node: Node) -> tuple[int, int, int, int]:
    shape = node.inputs[0].shape
    require(len(shape) == 4, f"the shape {shape}", "four dimensions")
    first, second, third, fourth = shape
    return first, second, third, fourth


def _depth_to_space_shape(node: Node) -> tuple[Shape, ...]:
    block, (images, height, width, channels) = node.attributes(DepthToSpace).block, _image(node)
    require(
        block >= 1 and channels % (block * block) == 0,
        f"blocks of {block} by {block} from {channels} channels",
        "a number of channels that such blocks divide",
    )
    return ((images, height * block, width * block, channels // (block * block)),)


def _space_to_depth_shape(node: Node) -> tuple[Shape, ...]:
    block, (images, height, width, channels) = node.attributes(SpaceToDepth).block, _image(node)
    require(
        block >= 1 and height % block == width % block == 0,
        f"blocks of {block} by {block} in an image of {height} by {width}",
        "blocks that fill the image",
    )
    return ((images, height // block, width // block, channels * block * block),)


def _spatial(node: Node, op: SpaceToBatch | BatchToSpace) -> list[tuple[int, int, int, int]]:
    """Return extent, block and the elements before and after for each axis that has blocks."""
    shape, rank = node.inputs[0].shape, len(op.block)
    require(
        1 <= rank <= 2
        and len(op.before) == len(op.after) == rank < len(shape)
        and min(op.block) >= 1
        and min((*op.before, *op.after)) >= 0,
        f"blocks {op.block}, before {op.before} and after {op.after} for the shape {shape}",
        "one or two numbers of at least 1, and the same number of at least 0",
    )
    return list(zip(shape[1 : rank + 1], op.block, op.before, op.after, strict=True))


def _space_to_batch_shape(node: Node) -> tuple[Shape, ...]:
    op = node.attributes(SpaceToBatch)
    shape, axes = node.inputs[0].shape, _spatial(node, op)
    padded = [extent + before + after for extent, _, before, after in axes]
    require(
        all(size % axis[1] == 0 for size, axis in zip(padded, axes, strict=True)),
        f"blocks {op.block} in padded extents of {padded}",
        "blocks that fill them",
    )
    sizes = tuple(size // axis[1] for size, axis in zip(padded, axes, strict=True))
    return ((shape[0] * math.prod(op.block), *sizes, *shape[len(axes) + 1 :]),)


def _batch_to_space_shape(node: Node) -> tuple[Shape, ...]:
    op = node.attributes(BatchToSpace)
    shape, axes = node.inputs[0].shape, _spatial(node, op)
    images, blocks = shape[0], math.prod(op.block)
    require(images % blocks == 0, f"blocks {op.block} of {images} images")
    sizes = tuple(extent * block - before - after for extent, block, before, after in axes)
    require(min(sizes) >= 1, f"crops {op.before} and {op.after} leave nothing")
    return ((images // blocks, *sizes, *shape[len(axes) + 1 :]),)


DEFINITIONS = (
    moving(DepthToSpace, _depth_to_space_shape, one_image=by_first_axis),
    moving(SpaceToDepth, _space_to_depth_shape, one_image=by_first_axis),
    moving(SpaceToBatch, _space_to_batch_shape, "constant blocks and paddings"),
    moving(BatchToSpace, _batch_to_space_shape, "constant blocks and crops"),
)
