"""Compute operators that move elements: an output element is an input element or a constant."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from microtir import te
from microtir.graph.ir import Node
from microtir.graph.operator import Operator
from microtir.operators.common.formula import Formula, FormulaContext, same_row_if, whole
from microtir.operators.movement.definition import (
    Concatenation,
    Pad,
    Reshape,
    Split,
    StridedSlice,
    Transpose,
)


def copy(layer: FormulaContext) -> None:
    """Emit RESHAPE where the output cannot share its input's memory."""
    x = layer.whole(0, (layer.node.output.type.elements,))
    layer.tensor(lambda i: x[i], (layer.node.output.type.elements,))


def pad(layer: FormulaContext) -> None:
    """Emit PAD and PADV2."""
    op, x = layer.node.op, layer.whole(0)
    assert isinstance(op, Pad)
    shape, dtype = layer.node.inputs[0].shape, layer.node.output.dtype
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


def concatenation(layer: FormulaContext) -> None:
    """Emit CONCATENATION; a chain of selects finds the input that holds an element."""
    op, node = layer.node.op, layer.node
    assert isinstance(op, Concatenation)
    parts = [layer.whole(position) for position in range(len(node.inputs))]
    ends = np.cumsum([t.shape[op.axis] for t in node.inputs]).tolist()
    starts = [0, *ends[:-1]]

    def element(*at: te.Expr) -> te.Expr:
        along = at[op.axis]

        def read(part: int) -> te.Expr:
            index = tuple(i - starts[part] if a == op.axis else i for a, i in enumerate(at))
            return parts[part][index]

        value = read(len(parts) - 1)
        for part in reversed(range(len(parts) - 1)):
            value = te.select(along < ends[part], read(part), value)
        return value

    layer.tensor(element)


def transpose(layer: FormulaContext) -> None:
    """Emit TRANSPOSE."""
    op, x = layer.node.op, layer.whole(0)
    assert isinstance(op, Transpose)
    source = [op.permutation.index(axis) for axis in range(len(op.permutation))]
    layer.tensor(lambda *at: x[tuple(at[axis] for axis in source)])


def split(layer: FormulaContext) -> None:
    """Emit SPLIT: one nest per output."""
    op, x = layer.node.op, layer.whole(0)
    assert isinstance(op, Split)
    extent = layer.node.outputs[0].shape[op.axis]
    for part in range(len(layer.node.outputs)):
        offset = part * extent
        layer.tensor(lambda *at, o=offset: x[_shifted(at, op.axis, o)])


def _shifted(at: tuple[te.Expr, ...], axis: int, offset: int) -> tuple[te.Expr, ...]:
    return tuple(i + offset if a == axis else i for a, i in enumerate(at))


def slices_within_rows(node: Node) -> bool:
    """Return whether a slice takes some of the elements of every row of images."""
    op, shape = node.op, node.inputs[0].shape
    assert isinstance(op, StridedSlice)
    return (
        len(shape) == 4
        and node.output.shape == op.extent
        and op.begin[:2] == (0, 0)
        and op.strides[:2] == (1, 1)
        and op.extent[:2] == shape[:2]
    )


def strided_slice(layer: FormulaContext) -> None:
    """Emit SLICE and STRIDED_SLICE over the extents taken, dropped axes being of extent 1."""
    op = layer.node.op
    assert isinstance(op, StridedSlice)
    if layer.takes_row_range:
        image = layer.image(0)
        (column, channel), (by_column, by_channel) = op.begin[2:], op.strides[2:]
        layer.rows(
            lambda row, x, ch: image.at(row, column + x * by_column, channel + ch * by_channel)
        )
        return
    x = layer.whole(0)
    layer.tensor(
        lambda *at: x[tuple(b + i * s for b, i, s in zip(op.begin, at, op.strides, strict=True))],
        op.extent,
    )


FORMULAS: Mapping[type[Operator], Formula] = MappingProxyType(
    {
        Pad: Formula(pad, 8, whole),
        Concatenation: Formula(concatenation, 6, whole),
        Reshape: Formula(copy, 4, whole),
        Transpose: Formula(transpose, 6, whole),
        Split: Formula(split, 6, whole),
        StridedSlice: Formula(strided_slice, 6, same_row_if(slices_within_rows)),
    }
)
