"""The stacks of matrices that a product of two inputs consists of."""

from __future__ import annotations

import math

from microtir import te
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.kernels.common.layer import Layer
from microtir.operators.matmul.definition import BatchMatmul, matrices
from microtir.tir import ir


def stacks_of(node: Node) -> tuple[int, int]:
    """Return how many products there are, and of how many rows each.

    Where all stacks meet one second matrix, their rows are those of one.
    """
    op, (x, y) = node.attributes(BatchMatmul), node.inputs
    stacks, rows = math.prod(node.output.shape[:-2]), matrices(node)[0][0]
    if math.prod(y.shape[:-2]) == 1 and x is not y and not op.adj_x:
        return 1, stacks * rows
    return stacks, rows


def stacked(layer: Layer) -> list[ir.Buffer]:
    """Return the inputs as stacks of matrices."""
    buffers = []
    for n, x in enumerate(layer.node.inputs):
        size, (lines, width) = x.type.elements, x.shape[-2:]
        lines = size // width if stacks_of(layer.node)[0] == 1 else lines
        buffers.append(layer.whole(n, (size // lines // width, lines, width)).buffer)
    return buffers


def place_of(node: Node, number: int, stack: te.Expr) -> te.Expr:
    """Return which matrix of an input a stack reads; outer axes of an input may be broadcast."""
    outer, stacks = (t.shape[:-2] for t in (node.inputs[number], node.output))
    if outer == stacks or stacks_of(node)[0] == 1:
        return stack
    place, size, behind = te.as_expr(0, DType.INT32), 1, 1
    for extent, count in zip(reversed(outer), reversed(stacks), strict=False):
        if extent > 1:
            place = place + stack // behind % count * size
        size, behind = size * extent, behind * count
    return place
