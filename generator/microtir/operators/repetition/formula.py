"""Compute operators that repeat elements."""

from __future__ import annotations

from microtir import te
from microtir.operators.common.formula import FormulaContext
from microtir.operators.repetition.definition import MirrorPad, Tile


def tile(layer: FormulaContext) -> None:
    """Emit TILE, BROADCAST_TO and FILL."""
    op, shape = layer.node.attributes(Tile), layer.node.inputs[0].shape
    x, new = layer.whole(0), len(op.multiples) - len(shape)

    def element(*at: te.Expr) -> te.Expr:
        axes = zip(at[new:], shape, op.multiples[new:], strict=True)
        return x[tuple(i if copies == 1 else i % extent for i, extent, copies in axes)]

    layer.tensor(element)


def mirror_pad(layer: FormulaContext) -> None:
    """Emit MIRROR_PAD."""
    op, x, shape = layer.node.attributes(MirrorPad), layer.whole(0), layer.node.inputs[0].shape
    axes = list(zip(op.before, shape, op.after, strict=True))

    def element(*at: te.Expr) -> te.Expr:
        pairs = zip(at, axes, strict=True)
        return x[tuple(_mirrored(i - axis[0], axis, op.edge) for i, axis in pairs)]

    layer.tensor(element)


def _mirrored(i: te.Expr, axis: tuple[int, int, int], edge: bool) -> te.Expr:
    """Return the element that stands for element i of an axis, counted from the first inside."""
    before, extent, after = axis
    if before:
        i = te.maximum(i, -i - int(edge))
    if after:
        i = te.minimum(i, 2 * extent - 2 + int(edge) - i)
    return i
