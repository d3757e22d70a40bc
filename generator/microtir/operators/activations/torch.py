"""Read PyTorch's activations."""

from __future__ import annotations

from microtir.graph.ir import Tensor
from microtir.operators.common.torch_operands import TorchNode, TorchReader


def relu(node: TorchNode) -> Tensor:
    """Read relu."""
    return node.onnx("Relu", node.tensor("self"))


def hardtanh(node: TorchNode) -> Tensor:
    """Read hardtanh: a clamp."""
    x = node.tensor("self")
    low, high = node.number("min_val", -1.0), node.number("max_val", 1.0)
    return node.onnx("Clip", x, node.scalar(low, x.dtype), node.scalar(high, x.dtype))


def clamp(node: TorchNode) -> Tensor:
    """Read clamp: bounds are numbers, of which one may be left out."""
    x = node.cast(node.tensor("self"), node.result_dtype)
    bounds = (node.optional_number(name) for name in ("min", "max"))
    return node.onnx("Clip", x, *(None if b is None else node.scalar(b, x.dtype) for b in bounds))


TORCH_READERS = (
    TorchReader("aten.relu.default", relu, ("self",)),
    TorchReader("aten.hardtanh.default", hardtanh, ("self", "min_val", "max_val")),
    TorchReader("aten.clamp.default", clamp, ("self", "min", "max")),
)
