"""Compute operators that move elements: an output element is an input element or a constant."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from microtir import te
from microtir.graph.ir import Node
from microtir.operators.common.formula import FormulaContext
from microtir.operators.common.indices import nearest_begins
from microtir.operators.movement import definition as movement


def copy(layer: FormulaContext) -> None:
    """Emit RESHAPE where the output cannot share its input's memory."""
    x = layer.whole(0, (layer.node.output.type.elements,))
    layer.tensor(lambda i: x[i], (layer.node.output.type.elements,))


def pad(layer: FormulaContext) -> None:
    """Emit PAD and PADV2."""
    op, x = layer.node.attributes(movement.Pad), layer.whole(0)
    shape, dtype = layer.node.inputs[0].shape, layer.node.output.dtype
    if len(layer.node.inputs) == 2:
        fill = layer.whole(1, (1,))[0]
    else:
        fill = te.const(op.value if dtype.is_float else int(op.value), dtype)

    def element(*at: te.Expr) -> te.Expr:
        source = tuple(i - before for i, before in zip(at, op.before, strict=True))
        inside = te.as_expr(True)
        for i, extent, before, after in zip(source, shape, op.before, op.after, strict=True):
            if before:
                inside = inside & (i >= 0)
            if after:
                inside = inside & (i < extent)
        return te.select(inside, x[source], fill)

    layer.tensor(element)


_CHAIN = 16
"""Most parts that are searched one after the other for an element."""


def concatenation(layer: FormulaContext) -> None:
    """Emit CONCATENATION."""
    op = layer.node.attributes(movement.Concatenation)
    concatenation_along(layer, op.axis)


def concatenation_along(layer: FormulaContext, axis: int) -> None:
    """Emit the inputs one after the other; selects find what holds an element."""
    inputs = layer.node.inputs
    parts = [layer.whole(position) for position in range(len(inputs))]
    ends = np.cumsum([t.shape[axis] for t in inputs]).tolist()
    starts = [0, *ends[:-1]]

    def element(*at: te.Expr) -> te.Expr:
        along = at[axis]

        def read(part: int) -> te.Expr:
            index = tuple(i - starts[part] if a == axis else i for a, i in enumerate(at))
            return parts[part][index]

        return _part_of(along, ends, read)

    layer.tensor(element)


def _part_of(place: te.Expr, ends: Sequence[int], read: Callable[[int], te.Expr]) -> te.Expr:
    """Return what is read of the part that holds a place, parts ending where `ends` says.

    Few are tried one after the other, of many each time the half.
    """

    def among(first: int, last: int) -> te.Expr:
        if first == last:
            return read(first)
        middle = first if last - first < _CHAIN else (first + last) // 2
        return te.select(place < ends[middle], among(first, middle), among(middle + 1, last))

    return among(0, len(ends) - 1)


def pack(layer: FormulaContext) -> None:
    """Emit PACK, as CONCATENATION of parts of one element along the new axis."""
    op = layer.node.attributes(movement.Pack)
    parts = [layer.whole(position) for position in range(len(layer.node.inputs))]

    def element(*at: te.Expr) -> te.Expr:
        index = (*at[: op.axis], *at[op.axis + 1 :])
        ends = range(1, len(parts) + 1)
        return _part_of(at[op.axis], ends, lambda number: parts[number][index])

    layer.tensor(element)


def transpose(layer: FormulaContext) -> None:
    """Emit TRANSPOSE."""
    op, x = layer.node.attributes(movement.Transpose), layer.whole(0)
    source = [op.permutation.index(axis) for axis in range(len(op.permutation))]
    layer.tensor(lambda *at: x[tuple(at[axis] for axis in source)])


def split(layer: FormulaContext) -> None:
    """Emit SPLIT and SPLIT_V: one nest per output."""
    op, x = layer.node.attributes(movement.Split), layer.whole(0)
    offset = 0
    for part in layer.node.outputs:
        layer.tensor(lambda *at, o=offset: x[_shifted(at, op.axis, o)])
        offset += part.shape[op.axis]


def _shifted(at: tuple[te.Expr, ...], axis: int, offset: int) -> tuple[te.Expr, ...]:
    return tuple(i + offset if a == axis else i for a, i in enumerate(at))


def unpack(layer: FormulaContext) -> None:
    """Emit UNPACK: one nest per output."""
    op, x = layer.node.attributes(movement.Unpack), layer.whole(0)
    for number in range(len(layer.node.outputs)):
        layer.tensor(lambda *at, n=number: x[_inserted(at, op.axis, n)])


def _inserted(at: tuple[te.Expr, ...], axis: int, index: int) -> tuple[te.ExprLike, ...]:
    return (*at[:axis], index, *at[axis:])


def slices_within_rows(node: Node) -> bool:
    """Return whether a slice takes some of the elements of every row of images."""
    op, shape = node.attributes(movement.StridedSlice), node.inputs[0].shape
    return (
        len(shape) == 4
        and len(node.inputs) == 1
        and node.output.shape == op.extent
        and op.begin[:2] == (0, 0)
        and op.strides[:2] == (1, 1)
        and op.extent[:2] == shape[:2]
    )


def strided_slice(layer: FormulaContext) -> None:
    """Emit SLICE, STRIDED_SLICE and REVERSE_V2 over the extents taken, dropped axes of one."""
    op = layer.node.attributes(movement.StridedSlice)
    if layer.takes_row_range:
        image = layer.image(0)
        (column, channel), (by_column, by_channel) = op.begin[2:], op.strides[2:]
        layer.rows(
            lambda row, x, ch: image.at(row, column + x * by_column, channel + ch * by_channel)
        )
        return
    x = layer.whole(0)
    if len(layer.node.inputs) == 2:
        begins = nearest_begins(layer, 1, op.extent, from_end=op.from_end)
        layer.tensor(
            lambda *at: x[tuple(b + i for b, i in zip(begins, at, strict=True))], op.extent
        )
        return
    layer.tensor(
        lambda *at: x[tuple(b + i * s for b, i, s in zip(op.begin, at, op.strides, strict=True))],
        op.extent,
    )
