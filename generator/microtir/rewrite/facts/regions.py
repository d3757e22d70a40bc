"""Regions of a graph that compute one result of each element of one tensor of int8."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Array, Node, Tensor
from microtir.rewrite.reference import evaluate

STORED = np.arange(DType.INT8.min, DType.INT8.max + 1).astype(np.int8)
"""Every value that an element may have."""


@dataclass(frozen=True, slots=True)
class Region:
    """Operators whose only result is a function of the elements of one tensor.

    Attributes:
        x: the tensor.
        nodes: in the order in which they run; the last one gives the result, of the same shape.
    """

    x: Tensor
    nodes: tuple[Node, ...]

    def table(self) -> bytes:
        """Return the results of all values that an element of `x` may have, as int8."""
        shape = (1,) * (len(self.x.shape) - 1) + STORED.shape
        values: dict[Tensor, Array] = {self.x: STORED.reshape(shape)}
        seen = {self.x: _with_shape(self.x, shape)}
        for node in self.nodes:
            seen[node.output] = _with_shape(node.output, shape)
            inputs = tuple(seen.get(tensor, tensor) for tensor in node.inputs)
            of_all = replace(node, inputs=inputs, outputs=(seen[node.output],))
            operands = [values[t] if t.data is None else t.data for t in node.inputs]
            (values[node.output],) = evaluate(of_all, operands)
        return values[self.nodes[-1].output].astype(np.int8).tobytes()


def _with_shape(tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    return Tensor(tensor.name, replace(tensor.type, shape=shape))
