"""Derive shapes of outputs from those of inputs, as the rules of several families do."""

from __future__ import annotations

import functools
from typing import TypeAlias

from microtir.errors import GraphError
from microtir.graph.ir import Node
from microtir.operators.common.attributes import SlidingWindow

Shape: TypeAlias = tuple[int, ...]


def require(condition: bool, what: str, legal: str | None = None) -> None:
    """Raise a GraphError unless a condition holds."""
    if not condition:
        raise GraphError(what, legal=legal)


def input_shape(node: Node, index: int, rank: int) -> Shape:
    """Return the shape of an input, which has so many dimensions."""
    shape = node.inputs[index].shape
    require(len(shape) == rank, f"input {index} has the shape {shape}", f"{rank} dimensions")
    return shape


def positions(size: int, window: int, stride: int, dilation: int, before: int, after: int) -> int:
    """Count the positions of a window along an axis with padding."""
    legal = "window, stride and dilation from 1, padding from 0"
    require(min(window, stride, dilation) >= 1 and min(before, after) >= 0, "attributes", legal)
    reach = (window - 1) * dilation + 1
    padded = before + size + after
    require(padded >= reach, f"a window that spans {reach} does not fit into {padded}")
    return (padded - reach) // stride + 1


def windowed_shape(image: Shape, window: SlidingWindow, channels: int) -> Shape:
    """Return the shape of what a window gives that slides over an image."""
    p, (taps_h, taps_w) = window.padding, window.taps
    (stride_h, stride_w), (dilation_h, dilation_w) = window.strides, window.dilations
    rows = positions(image[1], taps_h, stride_h, dilation_h, p.top, p.bottom)
    columns = positions(image[2], taps_w, stride_w, dilation_w, p.left, p.right)
    return image[0], rows, columns, channels


def check_bias(node: Node, channels: int) -> None:
    """Check that a bias, if there is one, has an element for each channel."""
    if len(node.inputs) == 3:
        shape = node.inputs[2].shape
        require(shape == (channels,), f"the bias has the shape {shape}", f"({channels},)")


def same_shape(node: Node) -> tuple[Shape, ...]:
    """Give the output the shape of the first input."""
    return (node.inputs[0].shape,)


def same_rows(node: Node) -> tuple[Shape, ...]:
    """Give the output the shape of the first input, which has a last axis."""
    require(len(node.inputs[0].shape) >= 1, "the input is a scalar", "at least one dimension")
    return same_shape(node)


def broadcast_shape(node: Node) -> tuple[Shape, ...]:
    """Give the output the shape that all inputs have after numpy's broadcasting."""
    return (broadcast_of(*(tensor.shape for tensor in node.inputs)),)


def broadcast_of(*shapes: Shape) -> Shape:
    """Return the shape that arrays of these shapes have after numpy's broadcasting."""
    return functools.reduce(_broadcast, shapes)


def _broadcast(first: Shape, second: Shape) -> Shape:
    if first == second:
        return first
    rank = max(len(first), len(second))
    pairs = list(
        zip((1,) * (rank - len(first)) + first, (1,) * (rank - len(second)) + second, strict=True)
    )
    require(
        all(a == b or 1 in (a, b) for a, b in pairs),
        f"shapes {first} and {second}",
        "equal extents, or 1, counted from the last dimension",
    )
    return tuple(a if b == 1 else b for a, b in pairs)


def declared_shapes(node: Node) -> tuple[Shape, ...]:
    """Take the shapes that the outputs are declared with."""
    return tuple(tensor.shape for tensor in node.outputs)
