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


TORCH_READERS = (
    TorchReader(
        "aten.flatten.using_ints", flatten, ("self", "start_dim", "end_dim"), Alias.MAYBE
    ),
)
