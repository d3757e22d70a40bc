"""Columns of tensors that columns of another one depend on, as needed to cut images.

An image that is computed in bands of columns takes buffers of a band's width.  Windows of
neighbouring bands reach over the same columns of their inputs; those are computed in both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from microtir.graph.ir import Node, Tensor
from microtir.operators import record_of
from microtir.operators.definition import Trait


@dataclass(frozen=True, slots=True)
class Columns:
    """Columns [first, stop) of an image."""

    first: int
    stop: int

    @property
    def width(self) -> int:
        return self.stop - self.first

    def joined(self, other: Columns) -> Columns:
        """Return the least columns that hold both."""
        return Columns(min(self.first, other.first), max(self.stop, other.stop))

    def __str__(self) -> str:
        return f"{self.first} to {self.stop - 1}"


@dataclass(frozen=True, slots=True)
class ColumnWindow:
    """Output column x needs input columns [x*stride + offset, x*stride + offset + extent).

    Those outside the image are padding.
    """

    stride: int = 1
    offset: int = 0
    extent: int = 1

    def needed(self, output: Columns, width: int) -> Columns:
        """Return the columns of an input of `width` that columns of the output need."""
        first = output.first * self.stride + self.offset
        stop = (output.stop - 1) * self.stride + self.offset + self.extent
        return Columns(min(max(first, 0), width), min(max(stop, 0), width))

    def padding(self, output: Columns, available: Columns) -> tuple[int, int]:
        """Return the columns of padding that output columns need beside `given` ones."""
        first = output.first * self.stride + self.offset
        stop = (output.stop - 1) * self.stride + self.offset + self.extent
        return available.first - first, stop - available.stop


@dataclass(frozen=True, slots=True)
class Cut:
    """Operators [start, stop) of a graph, by position, in so many bands of their last output.

    Only the last one's output may be seen by others, and all must feed it.
    """

    start: int
    stop: int
    bands: int


def width_of(tensor: Tensor) -> int:
    """Return columns of an image."""
    return tensor.shape[2]


def column_window(node: Node) -> ColumnWindow | None:
    """Return the columns of its inputs that a column of the output needs; None if it cannot be cut.

    What can be cut has one image of (1, H, W, C) as its output, and such of the same columns or
    constants without columns as its inputs.
    """
    images = (*node.activations, *node.outputs)
    if len(node.outputs) != 1 or not node.activations or not all(map(_is_image, images)):
        return None
    record = record_of(node.op)
    if record.definition.window is not None:
        if any(not t.is_constant for t in node.inputs[1:]):
            return None
        window = record.definition.window(node)
        extent = (window.taps[1] - 1) * window.dilations[1] + 1
        return ColumnWindow(window.strides[1], -window.padding.left, extent)
    if not record.has(Trait.ELEMENTWISE):
        return None
    # What is broadcast along the columns is the same in every band if it is constant.
    spread = [t for t in node.inputs if t.is_constant and _columns(t) != 1]
    if spread or any(t.shape != node.output.shape for t in node.activations):
        return None
    return ColumnWindow()


def _is_image(tensor: Tensor) -> bool:
    return len(tensor.shape) == 4 and tensor.shape[0] == 1


def _columns(constant: Tensor) -> int:
    return constant.shape[-2] if len(constant.shape) > 1 else 1


def ask_inputs(node: Node, needed: dict[Tensor, Columns]) -> bool:
    """Add the columns of a node's inputs behind those of its output; False if it cannot be cut.

    Args:
        node: one that somebody asks for the columns of, or it cannot be cut with the others.
        needed: the columns of each tensor that are known to be needed; those of inputs are added.
    """
    window = column_window(node)
    if window is None or node.output not in needed:
        return False
    for tensor in node.inputs:
        if not tensor.is_constant:
            read = window.needed(needed[node.output], width_of(tensor))
            if not read.width:
                return False  # nothing but padding
            needed[tensor] = needed[tensor].joined(read) if tensor in needed else read
    return True


def demanded(nodes: Sequence[Node], output: Columns) -> Mapping[Tensor, Columns] | None:
    """Return the columns of each tensor that columns of the last node's output need.

    Args:
        nodes: in graph order; each feeds the last one.
        output: columns of the output of the last one.

    Returns:
        Those of outputs of the nodes and of inputs from elsewhere; None if a node cannot be cut.
    """
    needed = {nodes[-1].outputs[0]: output}
    return needed if all(ask_inputs(node, needed) for node in reversed(nodes)) else None


def bands_of(width: int, count: int) -> tuple[Columns, ...]:
    """Return so many bands of as many columns as possible each, the wider ones last."""
    edges = [width * band // count for band in range(count + 1)]
    return tuple(Columns(a, b) for a, b in pairwise(edges))
