"""Operators of the user mean what their own function in numpy computes."""

from __future__ import annotations

import numpy as np

from microtir.errors import GraphError
from microtir.graph.ir import Array, Node
from microtir.graph.ops import Custom


def custom(op: Custom, node: Node, *inputs: Array) -> tuple[Array, ...]:
    """The outputs that the user's function gives.

    Raises:
        GraphError: they are not of the types that the node declares.
    """
    result = op.function.reference(node, *inputs)
    outputs = tuple(map(np.asarray, result if isinstance(result, tuple) else (result,)))
    declared = [(tensor.dtype.value, tensor.shape) for tensor in node.outputs]
    if [(array.dtype.name, array.shape) for array in outputs] != declared:
        given = ", ".join(f"{array.dtype} {array.shape}" for array in outputs)
        raise GraphError(
            f"the numpy function of '{op.function.name}' gave {given}",
            where=f"{node.source} ('{node.name}')",
            legal=", ".join(f"{dtype} {shape}" for dtype, shape in declared),
            fix="correct the function, or the types of the node's outputs",
        )
    return outputs
