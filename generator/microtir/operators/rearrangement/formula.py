"""Compute operators that move blocks of an image into its channels or its batch, or back."""

from __future__ import annotations

from microtir import te
from microtir.operators.common.formula import FormulaContext
from microtir.operators.rearrangement import definition as rearrangement


def depth_to_space(layer: FormulaContext) -> None:
    """Emit DEPTH_TO_SPACE: loops over pixels of the input, then over those of its block."""
    op = layer.node.attributes(rearrangement.DepthToSpace)
    images, height, width, channels = layer.node.inputs[0].shape
    block, depth = op.block, channels // op.block**2
    x = layer.whole(0, (images, height, width, block, block, depth))
    layer.tensor(
        lambda n, row, y, col, x_, ch: x[n, row, col, y, x_, ch],
        (images, height, block, width, block, depth),
    )


def space_to_depth(layer: FormulaContext) -> None:
    """Emit SPACE_TO_DEPTH: loops over pixels of the output, then over those of its block."""
    op = layer.node.attributes(rearrangement.SpaceToDepth)
    images, height, width, _ = layer.node.output.shape
    block, depth = op.block, layer.node.inputs[0].shape[-1]
    x = layer.whole(0, (images, height, block, width, block, depth))
    layer.tensor(
        lambda n, row, col, y, x_, ch: x[n, row, y, col, x_, ch],
        (images, height, width, block, block, depth),
    )


def space_to_batch(layer: FormulaContext) -> None:
    """Emit SPACE_TO_BATCH_ND: image i of the output has the elements i // N of all blocks."""
    op = layer.node.attributes(rearrangement.SpaceToBatch)
    source, dtype = layer.node.inputs[0].shape, layer.node.output.dtype
    x, images = layer.whole(0), source[0]
    fill = te.const(op.value if dtype.is_float else int(op.value), dtype)

    def element(*at: te.Expr) -> te.Expr:
        inside, place = te.as_expr(True), []
        offsets = _offsets(at[0] // images, op.block)
        axes = zip(at[1:], offsets, op.block, op.before, op.after, source[1:], strict=False)
        for i, offset, block, before, after, extent in axes:
            place.append(i * block + offset - before)
            if before:
                inside = inside & (place[-1] >= 0)
            if after:
                inside = inside & (place[-1] < extent)
        index = (at[0] % images, *place, *at[len(op.block) + 1 :])
        return te.select(inside, x[index], fill)

    layer.tensor(element)


def _offsets(number: te.Expr, block: tuple[int, ...]) -> tuple[te.Expr, ...]:
    """Return the place in a block of one or two axes of its element of some number."""
    return (number,) if len(block) == 1 else (number // block[1], number % block[1])


def batch_to_space(layer: FormulaContext) -> None:
    """Emit BATCH_TO_SPACE_ND."""
    op, shape = layer.node.attributes(rearrangement.BatchToSpace), layer.node.output.shape
    x, images = layer.whole(0), shape[0]

    def element(*at: te.Expr) -> te.Expr:
        number, place = te.as_expr(0), []
        for i, block, before in zip(at[1:], op.block, op.before, strict=False):
            number = number * block + (i + before) % block
            place.append((i + before) // block)
        index = (number * images + at[0], *place, *at[len(op.block) + 1 :])
        return x[index]

    layer.tensor(element)
