"""Pool along one axis after the other: volumes, windows with gaps, and powers of sums."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from microtir.graph.ir import Array, Tensor
from microtir.operators.common.onnx_arithmetic import add, choose, div, greater, most
from microtir.operators.common.onnx_operands import OnnxNode
from microtir.operators.common.onnx_parts import along, padded
from microtir.operators.common.onnx_windows import OnnxWindow

_LEAST = float("-inf")


def rounded_up(size: int, window: OnnxWindow, axis: int, *, is_up: bool) -> int:
    """Return what is added behind an axis so that its last window, cut off or not, is whole."""
    before, after = window.before[axis], window.after[axis]
    reach = (window.taps[axis] - 1) * window.dilations[axis] + 1
    stride = window.strides[axis]
    steps = size + before + after - reach
    count = (-(-steps // stride) if is_up else steps // stride) + 1
    if is_up and (count - 1) * stride >= size + before:
        count -= 1  # it would begin behind the image and its padding
    return max((count - 1) * stride + reach - (size + before), after)


def _pooled(
    node: OnnxNode,
    x: Tensor,
    window: OnnxWindow,
    nothing: float,
    combine: Callable[[OnnxNode, Tensor, Tensor], Tensor],
) -> Tensor:
    """Return windows of (N, C, ...) as one element each; what is outside is `nothing`."""
    is_up = bool(node.integer("ceil_mode", 0))
    rank = len(x.shape)
    for axis in range(2, rank):
        number = axis - 2
        behind = rounded_up(x.shape[axis], window, number, is_up=is_up)
        whole = padded(node, x, axis, window.before[number], behind, nothing)
        reach = (window.taps[number] - 1) * window.dilations[number]
        stride = window.strides[number]
        count = (whole.shape[axis] - reach - 1) // stride + 1
        firsts = range(0, reach + 1, window.dilations[number])
        parts = [along(node, whole, axis, first, count, stride) for first in firsts]
        x = parts[0]
        for part in parts[1:]:
            x = combine(node, x, part)
    return x


def largest(node: OnnxNode, x: Tensor, window: OnnxWindow) -> Tensor:
    """Return the largest element of each window."""
    nothing = _LEAST if x.dtype.is_float else float(x.dtype.min)
    return _pooled(node, x, window, nothing, most)


def sums(node: OnnxNode, x: Tensor, window: OnnxWindow) -> Tensor:
    """Return the sum of each window."""
    return _pooled(node, x, window, 0.0, add)


def means(node: OnnxNode, x: Tensor, window: OnnxWindow) -> Tensor:
    """Return the mean of each window, of the elements inside or of the padding, too."""
    node.check_room(*map(sum, zip(x.shape[2:], window.before, window.after, strict=True)))
    ones: Array = np.ones((1, 1, *x.shape[2:]), np.float32)
    if node.integer("count_include_pad", 0):
        sides = ((0, 0), (0, 0), *zip(window.before, window.after, strict=True))
        inner = OnnxWindow(window.taps, window.strides, window.dilations,
                           (0,) * len(window.taps), (0,) * len(window.taps))  # fmt: skip
        counted = sums(node, node.constant(np.pad(ones, sides, constant_values=1)), inner)
        return div(node, sums(node, x, window), counted)
    return div(node, sums(node, x, window), sums(node, node.constant(ones), window))


def with_places(node: OnnxNode, x: Tensor, window: OnnxWindow) -> tuple[Tensor, Tensor]:
    """Return the largest element of each window, and its place in the whole tensor."""
    by_column = bool(node.integer("storage_order", 0))
    node.check_room(*x.shape)
    numbers, step = np.zeros(x.shape, np.int64), 1
    at = np.indices(x.shape)
    axes = (*range(2, len(x.shape)), 1, 0) if by_column else tuple(reversed(range(len(x.shape))))
    for axis in axes:
        numbers, step = numbers + at[axis] * step, step * x.shape[axis]
    is_up = bool(node.integer("ceil_mode", 0))
    values, places = x, node.constant(numbers)
    # Of equal elements the first one counts, row by row: the last axis is the first to be reduced.
    for axis in reversed(range(2, len(x.shape))):
        values, places = _larger_of_axis(node, values, places, window, axis, is_up=is_up)
    return values, places


def _larger_of_axis(
    node: OnnxNode, x: Tensor, places: Tensor, window: OnnxWindow, axis: int, *, is_up: bool
) -> tuple[Tensor, Tensor]:
    number = axis - 2
    behind = rounded_up(x.shape[axis], window, number, is_up=is_up)
    before = window.before[number]
    x = padded(node, x, axis, before, behind, _LEAST)
    places = padded(node, places, axis, before, behind)
    stride = window.strides[number]
    reach = (window.taps[number] - 1) * window.dilations[number]
    count = (x.shape[axis] - reach - 1) // stride + 1
    best, where = (along(node, t, axis, 0, count, stride) for t in (x, places))
    for first in range(window.dilations[number], reach + 1, window.dilations[number]):
        value, place = (along(node, t, axis, first, count, stride) for t in (x, places))
        is_larger = greater(node, value, best)
        best = choose(node, is_larger, value, best)
        where = choose(node, is_larger, place, where)
    return best, where
