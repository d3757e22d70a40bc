"""Follows rows along time through operators: which input rows are behind an output row.

An operator is followed if each row of its output is the same function of some rows of its inputs,
padding aside.  Any other needs all rows, and what it computes has no rows along time any more.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from microtir.graph.ir import Node, Tensor
from microtir.graph.operator import Operator
from microtir.operators import record_of
from microtir.operators.common.elements import axis_of_elements
from microtir.operators.common.rows import RowWindow
from microtir.operators.convolution.definition import Conv2D, DepthwiseConv2D
from microtir.operators.definition import Trait
from microtir.operators.dense.definition import FullyConnected
from microtir.operators.movement import definition as movement
from microtir.operators.normalization.definition import L2Normalize
from microtir.operators.pooling.definition import Pool2D
from microtir.operators.reduction.definition import Reduction
from microtir.operators.softmax.definition import LogSoftmax, Softmax
from microtir.rewrite.requests.streaming.rows import Rows, reach

_ROWS, _COLUMNS = 1, 2
"""Axes of the rows and the columns of images."""


@dataclass(frozen=True, slots=True)
class Follow:
    """The relation of an operator's output rows to its input rows along time.

    Args:
        axis: of time, in each output.
        window: the rows of each input that has rows along time behind a row of the outputs.
        is_view: whether rows are only seen in another shape, or some of them taken.
    """

    axis: int
    window: RowWindow = RowWindow()
    is_view: bool = False


def follow(node: Node, axes: Mapping[Tensor, int]) -> Follow | None:
    """Return how a node carries rows; None if it does not.

    Args:
        node: the operator.
        axes: of time, in each tensor that has rows along it.
    """
    first = node.inputs[0]
    if any(t not in axes for t in node.activations) or first not in axes:
        return None
    follows = _found(node, axes)
    if follows is None:
        return None
    outer = {math.prod(t.shape[: follows.axis]) for t in node.outputs}
    return follows if outer == {1} else None


def _found(node: Node, axes: Mapping[Tensor, int]) -> Follow | None:
    axis, record = axes[node.inputs[0]], record_of(node.op)
    if record.definition.window is not None:
        return _image(node, axis)
    if record.has(Trait.ELEMENTWISE):
        elements_axis = axis_of_elements(node, axes)
        return None if elements_axis is None else Follow(elements_axis)
    match node.op:
        case movement.Reshape() | FullyConnected():
            return _reshaped(node, axis)
        case movement.Transpose(permutation):
            return Follow(permutation.index(axis))
        case movement.Pad(before):
            return Follow(axis, RowWindow(offset=-before[axis])) if len(node.inputs) == 1 else None
        case movement.StridedSlice():
            return _slice(node, axis)
        case movement.Concatenation(along):
            same = all(axes.get(t) == axis for t in node.inputs)
            return Follow(axis) if same and along != axis else None
        case movement.Split(along):
            return Follow(axis) if along != axis else None
        case Reduction(along, keep_dims):
            gone = 0 if keep_dims else sum(a < axis for a in along)
            return Follow(axis - gone) if axis not in along else None
        case Softmax() | LogSoftmax() | L2Normalize():
            return Follow(axis) if axis < len(node.output.shape) - 1 else None
        case _:
            return None


def _image(node: Node, axis: int) -> Follow | None:
    """Return how a sliding window over an image carries its rows, or the columns of its one row."""
    window_of = record_of(node.op).definition.window
    assert window_of is not None, "asked for before"
    window = window_of(node)
    if axis not in (_ROWS, _COLUMNS) or not isinstance(node.op, Conv2D | DepthwiseConv2D | Pool2D):
        return None
    number = axis - _ROWS
    before = window.padding.top if axis == _ROWS else window.padding.left
    extent = (window.taps[number] - 1) * window.dilations[number] + 1
    return Follow(axis, RowWindow(window.strides[number], -before, extent))


def _reshaped(node: Node, axis: int) -> Follow | None:
    """Return where rows lie in another shape that has as many of them."""
    rows, shape = node.inputs[0].shape[axis], node.output.shape
    outer = next((n for n, extent in enumerate(shape) if extent != 1), None)
    if outer is None or shape[outer] != rows:
        return None
    return Follow(outer, is_view=isinstance(node.op, movement.Reshape))


def _slice(node: Node, axis: int) -> Follow | None:
    """Return which rows a slice takes; nothing is known of one that drops axes."""
    op = node.attributes(movement.StridedSlice)
    if node.output.shape != op.extent or op.strides[axis] < 1:
        return None
    if len(node.inputs) > 1 and op.extent[axis] != node.inputs[0].shape[axis]:
        return None  # the model computes where it begins
    others = (n for n in range(len(op.extent)) if n != axis)
    whole = all(op.extent[n] == node.inputs[0].shape[n] and op.strides[n] == 1 for n in others)
    window = RowWindow(op.strides[axis], op.begin[axis])
    return Follow(axis, window, is_view=whole and op.strides[axis] == 1)


def cut(node: Node, follow: Follow, output: Rows, available: Rows) -> Operator:
    """Return the operator for some rows of the output.

    Args:
        node: that computes all of them.
        follow: how it carries rows.
        output: the rows that are computed.
        available: the rows of the inputs that it reads.
    """
    op, read = node.op, reach(follow.window, output)
    before, after = available.first - read.first, read.stop - available.stop
    match op:
        case Conv2D() | DepthwiseConv2D() | Pool2D():
            names = ("top", "bottom") if follow.axis == _ROWS else ("left", "right")
            sides = dict(zip(names, (before, after), strict=True))
            return replace(op, padding=replace(op.padding, **sides))
        case movement.Pad():
            return replace(
                op,
                before=_with(op.before, follow.axis, before),
                after=_with(op.after, follow.axis, after),
            )
        case movement.StridedSlice():
            return replace(
                op,
                begin=_with(op.begin, follow.axis, 0),
                extent=_with(op.extent, follow.axis, output.count),
            )
        case _:
            return op


def _with(items: tuple[int, ...], axis: int, item: int) -> tuple[int, ...]:
    return (*items[:axis], item, *items[axis + 1 :])


def pads(node: Node, follow: Follow) -> bool:
    """Return whether an operator meets padding along time."""
    rows = node.output.shape[follow.axis]
    read = reach(follow.window, Rows(0, rows))
    return read.first < 0 or read.stop > node.inputs[0].shape[follow.axis]
