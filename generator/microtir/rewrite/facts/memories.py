"""Tensors of a graph that share one memory whatever is planned, and hold its value in turn."""

from __future__ import annotations

from microtir.graph.ir import Graph, Tensor
from microtir.operators.control.definition import Control, PutItem, aliases
from microtir.operators.movement.definition import SAME_BYTES


class Memories:
    """The memories of states, of values that loops hand on, and of the results of branches.

    A reshape or a relabel may be a view, so that it has the memory of its input.
    """

    def __init__(self, graph: Graph) -> None:
        self._parent: dict[Tensor, Tensor] = {}
        for state in graph.states:
            self._join(state.before, state.after)
        for node in graph.nodes:
            if isinstance(node.op, PutItem):
                self._join(node.inputs[0], node.output)
            elif isinstance(node.op, Control):
                for first, *others in aliases(node):
                    for other in others:
                        self._join(first, other)
            elif isinstance(node.op, SAME_BYTES):
                self._join(node.inputs[0], node.output)

    def of(self, tensor: Tensor) -> Tensor:
        while tensor in self._parent:
            tensor = self._parent[tensor]
        return tensor

    def _join(self, first: Tensor, second: Tensor) -> None:
        root, other = self.of(first), self.of(second)
        if root is not other:
            self._parent[other] = root
