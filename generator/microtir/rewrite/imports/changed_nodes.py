"""Change nodes of a graph that is being read: other tensors, and only what is needed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from microtir.graph.ir import Array, Node, Tensor, TensorType


def with_tensors(node: Node, renamed: Mapping[Tensor, Tensor]) -> Node:
    """Return the node with other operands and results, itself where none is another one."""
    if renamed.keys().isdisjoint(node.inputs) and renamed.keys().isdisjoint(node.outputs):
        return node
    return replace(
        node,
        inputs=tuple(renamed.get(tensor, tensor) for tensor in node.inputs),
        outputs=tuple(renamed.get(tensor, tensor) for tensor in node.outputs),
    )


def needed(nodes: Iterable[Node], outputs: Iterable[Tensor]) -> list[Node]:
    """Return the nodes that outputs depend on, in their order."""
    wanted, kept = set(outputs), []
    for node in reversed(list(nodes)):
        if not wanted.isdisjoint(node.outputs):
            kept.append(node)
            wanted.update(node.inputs)
    return kept[::-1]


def constant(name: str, type_: TensorType, values: Array) -> Tensor:
    """Return a constant of a type, whose values nobody changes."""
    data = np.ascontiguousarray(values, type_.dtype.value)
    data.flags.writeable = False
    return Tensor(name, type_, data)
