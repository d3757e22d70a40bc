"""Read PyTorch's movements of elements."""

from __future__ import annotations

import math

from microtir.graph.ir import Tensor
from microtir.operators.common.torch_operands import Alias, TorchNode, TorchReader


def flatten(node: TorchNode) -> Tensor:
    """Read flatten: some neighbouring axes become one."""
    x = node.tensor("self")
    rank = len(x.shape)
    if not rank:
        return node.reshaped(x, (1,))
    first = node.axis(node.integer("start_dim", 0), rank)
    last = node.axis(node.integer("end_dim", -1), rank)
    if last < first:
        raise node.malformed(f"axes {first} to {last}", "the first one first")
    inner = math.prod(x.shape[first : last + 1])
    return node.reshaped(x, (*x.shape[:first], inner, *x.shape[last + 1 :]))


def slice_(node: TorchNode) -> Tensor:
    """Read slice: places of one axis from a start to an end, which may lie outside of it."""
    x = node.tensor("self")
    axis = node.axis(node.integer("dim", 0), len(x.shape))
    size, step = x.shape[axis], node.integer("step", 1)
    start, end = node.optional_integer("start"), node.optional_integer("end")
    if step < 1:
        raise node.malformed(f"a step of {step}", "from 1 on")
    first, last, _ = slice(start, end).indices(size)
    ends = (node.ints(number) for number in (first, max(last, first), axis, step))
    return node.onnx("Slice", x, *ends)


TORCH_READERS = (
    TorchReader("aten.slice.Tensor", slice_, ("self", "dim", "start", "end", "step"), Alias.VIEW),
    TorchReader("aten.flatten.using_ints", flatten, ("self", "start_dim", "end_dim"), Alias.MAYBE),
)
