"""Says why elementwise operators with one reader have loops of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from microtir.graph.ir import Graph, Node, Tensor
from microtir.operators import record_of
from microtir.operators.definition import Trait
from microtir.plan.ir import Plan, PlannedOperator
from microtir.report.calls import number_of
from microtir.rewrite.optimise.chains import may_be_part


def own_loops(plan: Plan) -> Mapping[Node, str]:
    """Return the elementwise operators with one reader that no other loop computes, and why.

    What runs row by row with others shares their loop over rows.
    """
    loops = _Loops.of(plan)
    alone = (group.operators[0] for group in plan.groups if len(group.operators) == 1)
    return {
        op.node: "; ".join(loops.reasons(op))
        for op in alone
        if _is_elementwise(op.node) and not op.candidate.is_view and loops.has_one_reader(op.node)
    }


@dataclass(frozen=True, slots=True)
class _Loops:
    graph: Graph
    kernels: Mapping[Node, str]
    producers: Mapping[Tensor, Node]
    consumers: Mapping[Tensor, tuple[Node, ...]]

    @staticmethod
    def of(plan: Plan) -> _Loops:
        kernels = {op.node: op.candidate.kernel for op in plan.operators}
        return _Loops(plan.graph, kernels, plan.graph.producers(), plan.graph.consumers())

    def has_one_reader(self, node: Node) -> bool:
        """Return whether one operator reads what a node gives, and no caller."""
        return node.output not in self.graph.outputs and len(self.consumers[node.output]) == 1

    def reasons(self, op: PlannedOperator) -> Iterator[str]:
        """Yield what keeps an operator out of the loops before it, for each operand."""
        shape, repeated = (
            op.node.output.shape,
            [t for t in op.inputs if t.shape != op.node.output.shape],
        )
        whole = [tensor for tensor in op.inputs if tensor.shape == shape]
        if not whole:
            yield "no operand has the shape of its output"
        for tensor in whole:
            yield self._reason(op, tensor, repeated)

    def _reason(self, op: PlannedOperator, tensor: Tensor, repeated: list[Tensor]) -> str:
        producer = self.producers.get(tensor)
        if producer is None:
            return f"'{tensor.name}' is an input of the model, and no loop computes it"
        layer = f"layer {number_of(producer)}"
        if any(self._follows(other, producer) for other in repeated):
            return f"values that are broadcast over it depend on all results of {layer}"
        if tensor in self.graph.outputs or len(self.consumers[tensor]) > 1:
            return f"other operators read the result of {layer}, too"
        kernel = self.kernels[producer]
        if record_of(producer.op).has(Trait.MOVES_DATA):
            return f"'{kernel}' of {layer} moves elements as they are"
        kernels = {kernel, op.candidate.kernel}
        if kernels != {"direct"} and may_be_part(op.node) and may_be_part(producer):
            return (
                f"'{kernel}' of {layer} and '{op.candidate.kernel}' take less than one loop would"
            )
        what = "a second operand" if len(op.inputs) > 1 else "a function"
        return f"'{kernel}' of {layer} has no place for {what} where it stores its results"

    def _follows(self, tensor: Tensor, node: Node) -> bool:
        """Return whether a tensor is computed from what a node gives."""
        waiting, seen = [tensor], set[Tensor]()
        while waiting:
            producer = self.producers.get(waiting.pop())
            if producer is node:
                return True
            new = [t for t in producer.inputs if t not in seen] if producer is not None else []
            seen.update(new)
            waiting += new
        return False


def _is_elementwise(node: Node) -> bool:
    return record_of(node.op).has(Trait.ELEMENTWISE) and len(node.outputs) == 1
