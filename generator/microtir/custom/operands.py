"""The tensors of a node as a function sees them."""

from __future__ import annotations

import numpy as np

from microtir.graph.ir import Node, Tensor
from microtir.tir.ir import Buffer, Scope


def activations(node: Node) -> tuple[Tensor, ...]:
    """Return inputs that are not constant, each once, which is what main passes."""
    return tuple(dict.fromkeys(node.activations))


def constant(tensor: Tensor, name: str, shape: tuple[int, ...]) -> Buffer:
    """Store a constant input in the program as a buffer of some shape."""
    data = np.ascontiguousarray(tensor.values).reshape(shape)
    return Buffer(name, shape, tensor.dtype, Scope.CONSTANT, data)
