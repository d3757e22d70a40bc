"""Read PyTorch's layers of sums over all inputs."""

from __future__ import annotations

import math

from microtir.graph.ir import Tensor
from microtir.operators.common.torch_operands import TorchNode, TorchReader


def linear(node: TorchNode) -> Tensor:
    """Read linear: input (..., I), weights (O, I), optional bias (O,)."""
    x, weights = node.tensor("input"), node.tensor("weight")
    if len(weights.shape) != 2 or not x.shape:
        raise node.malformed(f"an input of shape {x.shape}, weights of {weights.shape}")
    rows = node.reshaped(x, (math.prod(x.shape[:-1]), x.shape[-1]))
    result = node.onnx("Gemm", rows, weights, node.optional_tensor("bias"), transB=1)
    return node.reshaped(result, (*x.shape[:-1], weights.shape[0]))


TORCH_READERS = (TorchReader("aten.linear.default", linear, ("input", "weight", "bias")),)
