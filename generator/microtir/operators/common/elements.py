"""Say where the axes of operands are in the result of an operator of single elements."""

from __future__ import annotations

from collections.abc import Mapping

from microtir.graph.ir import Node, Tensor


def axis_of_elements(node: Node, axes: Mapping[Tensor, int]) -> int | None:
    """Return where an axis of some operands is in the result; None if these do not line up.

    Args:
        node: an operator of single elements, whose operands broadcast.
        axes: an axis of each operand that has it, of one at least; the others are the same all
            along it.
    """
    source = next(tensor for tensor in node.inputs if tensor in axes)
    from_end, extent = len(source.shape) - axes[source], source.shape[axes[source]]
    for tensor in node.inputs:
        rank = len(tensor.shape)
        if tensor in axes:
            same = rank - axes[tensor] == from_end and tensor.shape[-from_end] == extent
        else:
            same = rank < from_end or tensor.shape[-from_end] == 1
        if not same:
            return None
    return len(node.output.shape) - from_end
