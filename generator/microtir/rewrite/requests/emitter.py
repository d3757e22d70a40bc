"""Make the nodes that replace a node of a graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from microtir.dtype import DType
from microtir.graph.ir import Array, Node, Tensor, TensorType
from microtir.graph.operator import Operator
from microtir.operators.common.shapes import Shape


@dataclass(slots=True)
class Emitter:
    """Makes the nodes that stand for one; their names begin with its name."""

    node: Node
    nodes: list[Node] = field(default_factory=list)

    def tensor(self, what: str, shape: Shape, dtype: DType = DType.FLOAT32) -> Tensor:
        return Tensor(f"{self.node.name}_{what}", TensorType(shape, dtype))

    def constant(self, what: str, data: Array) -> Tensor:
        type_ = TensorType(data.shape, DType(data.dtype.name))
        return Tensor(f"{self.node.name}_{what}", type_, data)

    def add(self, op: Operator, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> None:
        label = f"{self.node.name}_{op.name}"
        self.nodes.append(Node(op, tuple(inputs), tuple(outputs), label, self.node.source))

    def of(self, what: str, op: Operator, *inputs: Tensor, shape: Shape | None = None) -> Tensor:
        """Add an operator with one output, of the type of its first input unless it has a shape."""
        x = inputs[0]
        output = self.tensor(what, x.shape if shape is None else shape, x.dtype)
        self.add(op, inputs, (output,))
        return output
