"""Compute an output element by element from inputs that broadcast as numpy's arrays do."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
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
        readers = [_rows_reader(layer, i, shape) for i, shape in enumerate(seen)]
        layer.rows(lambda *at: function(*(read(at) for read in readers)))
    else:
        readers = [_reader(layer, i, shape) for i, shape in enumerate(seen)]
        layer.tensor(lambda *at: function(*(read(at) for read in readers)))


def _rows_reader(layer: FormulaContext, position: int, shape: Shape) -> _Reader:
    result = layer.node.output.shape
    if layer.node.inputs[position].shape == result:
        edge = layer.image(position)
        return lambda at: edge.at(*at)
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
    rank = len(layer.node.output.shape)
    tensor = layer.whole(position, shape)

    def read(at: _Place) -> te.Expr:
        own = at[rank - len(shape) :]
        zero = te.as_expr(0)
        return tensor[tuple(zero if n == 1 else i for n, i in zip(shape, own, strict=True))]

    return read
