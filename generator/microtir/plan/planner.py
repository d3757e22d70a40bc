"""Chooses a kernel for every operator and a layout for every edge.

The best-ranked candidate wins.  Where RAM is the goal, consecutive operators stream together
(`plan.grouping`) and what stays inside a group is a ring; otherwise every operator is a group of
its own and every edge a whole NHWC tensor.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import MappingProxyType

from microtir.config.enums import Optimize
from microtir.errors import UnsupportedModelError
from microtir.graph.ir import Graph, Node, Tensor
from microtir.plan.grouping import Storage, rings, stream
from microtir.plan.ir import Candidate, Group, Kernel, Layout, Plan, PlannedOperator

CandidatesOf = Callable[[Node], tuple[Candidate, ...]]


def plan(
    graph: Graph, candidates_of: CandidatesOf, goal: Optimize, *, workspace_io: bool = False
) -> Plan:
    """Return the plan of a graph.

    Args:
        graph: legalised graph; every output is produced by a node.
        candidates_of: gives the legal kernels of a node, never empty.
        goal: what to rank candidates by.
        workspace_io: inputs and outputs share the workspace with everything else.

    Raises:
        UnsupportedModelError: a node has no candidate.
    """
    storage = _Storage(graph)
    operators: list[PlannedOperator] = []
    accumulators: dict[PlannedOperator, PlannedOperator] = {}
    for node in graph.nodes:
        offered = [
            c for c in candidates_of(node) if c.kernel is not Kernel.VIEW or storage.merge(node)
        ]
        candidates = sorted(offered, key=_rank(goal))
        chosen = next((c for c in candidates if not c.accumulates), None)
        if chosen is None:
            raise UnsupportedModelError(
                f"no kernel can compute this operator '{node.op.name}'", where=str(node.source)
            )
        operators.append(PlannedOperator(node, chosen))
        for candidate in candidates:
            if candidate.accumulates:
                accumulators.setdefault(operators[-1], PlannedOperator(node, candidate))
    tensors = [t for t in graph.tensors() if not t.is_constant]
    roots = {t: storage.root(t) for t in tensors}
    groups = tuple(Group((operator,)) for operator in operators)
    layouts = {t: Layout.whole(t.type) for t in tensors}
    if goal is Optimize.RAM:
        caller = () if workspace_io else (*graph.inputs, *graph.outputs)
        lives = Storage.of(operators, roots, graph.outputs, caller)
        groups = stream(operators, accumulators, lives)
        for tensor, height in rings(groups, lives).items():
            layouts[tensor] = replace(layouts[tensor], rows=height)
    return Plan(
        graph=graph,
        groups=groups,
        layouts=MappingProxyType(layouts),
        storage=MappingProxyType(roots),
    )


# What a byte of code may cost where neither speed nor size is all that counts: unrolling a layer
# that runs half a million times pays, for one of ten thousand steps it does not.
_INSTRUCTIONS_PER_BYTE = 16


def _rank(goal: Optimize) -> Callable[[Candidate], tuple[int, ...]]:
    """Order of preference; the first entries decide, the others break ties."""
    match goal:
        case Optimize.RAM:
            return lambda c: (c.scratch_bytes, c.cost, c.weight_bytes)
        case Optimize.FLASH:
            return lambda c: (c.weight_bytes + c.code_bytes, c.cost, c.scratch_bytes)
        case Optimize.BALANCED:
            return lambda c: (
                c.cost + _INSTRUCTIONS_PER_BYTE * c.code_bytes,
                c.scratch_bytes,
                c.weight_bytes,
            )
        case Optimize.SPEED:
            return lambda c: (c.cost, c.scratch_bytes, c.weight_bytes)


class _Storage:
    """Union of tensors that share memory, built up view by view.

    The root is the tensor that the memory is known by: a graph input or output if the class
    holds one, since those lie in the caller's memory.
    """

    def __init__(self, graph: Graph) -> None:
        self._parent: dict[Tensor, Tensor] = {}
        self._fixed = frozenset((*graph.inputs, *graph.outputs))

    def root(self, tensor: Tensor) -> Tensor:
        while tensor in self._parent:
            tensor = self._parent[tensor]
        return tensor

    def merge(self, node: Node) -> bool:
        """Let the output of a view share its input's memory; False if it must be copied.

        Two tensors of the caller (input to output, or two outputs) are different memory, and a
        constant lies in flash: those are copied.
        """
        source, target = self.root(node.inputs[0]), self.root(node.output)
        if source.is_constant or (source in self._fixed and target in self._fixed):
            return False
        if target in self._fixed:
            self._parent[source] = target
        else:
            self._parent[target] = source
        return True
