"""Read what PyTorch writes to memory."""

from __future__ import annotations

from microtir.graph.ir import Tensor
from microtir.operators.common.torch_operands import TorchNode, TorchReader


def copy(node: TorchNode) -> Tensor:
    """Read copy: the source in the shape and type of what it is written to."""
    target, source = node.tensor("self"), node.cast(node.tensor("src"), node.tensor("self").dtype)
    if source.shape == target.shape:
        return source
    return node.onnx("Expand", source, node.ints(*target.shape))


TORCH_READERS = (TorchReader("aten.copy.default", copy, ("self", "src", "non_blocking")),)
