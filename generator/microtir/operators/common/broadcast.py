"""Compute an output element by element from inputs that broadcast as numpy's arrays do."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

from microtir import te
from microtir.graph.ir import Node
from microtir.operators.common.formula import FormulaContext, Windows, same_row_if
from microtir.operators.common.shapes import Shape

ScalarFunction: TypeAlias = Callable[..., te.Expr]
"""Function from an element of each input to the element of the output."""

_Place: TypeAlias = tuple[te.Expr, ...]
_Reader: TypeAlias = Callable[[_Place], te.Expr]


def keeps_rows(node: Node) -> bool:
    """Return whether output element i depends on element i of each activation only."""
    shape = node.output.shape
    return all(t.is_constant or t.shape == shape for t in node.inputs)


ROWS: Windows = same_row_if(keeps_rows)
"""The input rows behind an output row of such an operator."""


def elementwise(
    layer: FormulaContext,
    function: ScalarFunction,
    shapes: Mapping[int, Shape] = MappingProxyType({}),
) -> None:
    """Give the output: a function of the elements that the inputs have at its place.

    Args:
        layer: the operator.
        function: given an element of each input.
        shapes: of inputs, by position, that broadcast in another shape than their own.
    """
    seen = [shapes.get(i, tensor.shape) for i, tensor in enumerate(layer.node.inputs)]
    if layer.takes_row_range:
        result = layer.node.output.shape
        own = [tensor.shape for tensor in layer.node.inputs]
        flat = own == seen and all(math.prod(shape) == 1 or shape == result for shape in own)
        readers = [_rows_reader(layer, i, shape, flat) for i, shape in enumerate(seen)]
        layer.rows(lambda *at: function(*(read(at) for read in readers)), flat=flat)
    else:
        joined, result = merged(seen, layer.node.output.shape)
        readers = [_reader(layer, i, shape) for i, shape in enumerate(joined)]
        layer.tensor(lambda *at: function(*(read(at) for read in readers)), result)


def merged(shapes: Sequence[Shape], result: Shape) -> tuple[list[Shape], Shape]:
    """Return shapes and their result with neighbouring axes as one where all inputs repeat alike.

    The shapes that are returned have as many axes as the result.
    """
    rank = len(result)
    columns = zip(*((1,) * (rank - len(shape)) + shape for shape in shapes), strict=True)
    axes: list[tuple[tuple[int, ...], int]] = []
    for column, extent in zip(columns, result, strict=True):
        if extent == 1 and axes:
            continue
        if axes and _repeating(*axes[-1]) in (_repeating(column, extent), None):
            before, outer = axes.pop()
            column = tuple(a * b for a, b in zip(before, column, strict=True))
            extent *= outer
        axes.append((column, extent))
    merged = [tuple(column[n] for column, _ in axes) for n in range(len(shapes))]
    return merged, tuple(extent for _, extent in axes)


def _repeating(column: tuple[int, ...], extent: int) -> tuple[bool, ...] | None:
    """Return which inputs repeat along an axis; None if it is none."""
    return None if extent == 1 else tuple(own == 1 for own in column)


def _rows_reader(layer: FormulaContext, position: int, shape: Shape, flat: bool) -> _Reader:
    result = layer.node.output.shape
    if layer.node.inputs[position].shape == result:
        edge = layer.image(position, flat=flat)
        return lambda at: edge.at(*at)
    if flat:
        element = layer.whole(position, (1,))
        return lambda _at: element[0]
    # A constant that is broadcast: address it by the coordinates behind (row, column, channel).
    read = _reader(layer, position, shape)
    return lambda at: read(_coordinates(at, result))


def _coordinates(at: _Place, shape: Shape) -> _Place:
    """Return the place in a tensor of a place in its rows: see `TensorType.rows`."""
    row, column, channel = at
    if not shape:
        return ()
    outer = min(2, len(shape) - 1)
    rows, columns = shape[:outer], shape[outer:-1]
    return (*_unflattened(row, rows), *_unflattened(column, columns), channel)


def _unflattened(index: te.Expr, extents: Shape) -> _Place:
    """Return the coordinates of the element at a flat index."""
    if not extents:
        return ()
    first, rest = extents[0], extents[1:]
    if first == 1 and len(rest) == 1:
        return (te.as_expr(0), index)
    if not rest:
        return (index,)
    inner = math.prod(rest)
    return (index // inner, *_unflattened(index % inner, rest))


def _reader(layer: FormulaContext, position: int, shape: Shape) -> _Reader:
    """Read an input at an output position: axes of extent 1 repeat, leading ones are absent."""
    tensor = layer.whole(position, shape)

    def read(at: _Place) -> te.Expr:
        own = at[len(at) - len(shape) :]
        zero = te.as_expr(0)
        return tensor[tuple(zero if n == 1 else i for n, i in zip(shape, own, strict=True))]

    return read
