"""Check that no call reads a memory after it was given a new value.

States, values that loops hand on and results of branches have one memory for their values in turn.
A placement cannot show whether a call means the old value or the new one, since both lie there; the
order of the calls does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from microtir.errors import MemoryPlanError
from microtir.graph.ir import Node, Tensor
from microtir.operators.control.definition import Control, PutItem
from microtir.operators.state.definition import Assign
from microtir.plan.ir import Plan

_Parts: TypeAlias = "tuple[tuple[int, int, Tensor], ...]"
"""Bytes [start, stop) of a memory, in ascending order, and which tensor was written there."""


def check_versions(plan: Plan) -> None:
    """Check every operator of a plan, in the order of execution.

    Raises:
        MemoryPlanError: one reads what was overwritten.
    """
    graph, storage = plan.graph, plan.storage
    assigned = (node.output for node in graph.nodes if isinstance(node.op, Assign | PutItem))
    states = [tensor for state in graph.states for tensor in (state.before, state.after)]
    memories = _Memories(plan, frozenset(storage[tensor] for tensor in (*assigned, *states)))
    for state in graph.states:
        memories.write(state.before)
    for operator in plan.operators:
        node = operator.node
        if isinstance(node.op, Control):
            for tensor in node.outputs:
                memories.write(tensor)
        elif operator.candidate.is_view:
            memories.view(node)
        else:
            for tensor in node.activations:
                if not memories.has(tensor):
                    raise _overwritten(node, tensor)
            for tensor in node.outputs:
                memories.write(tensor)


@dataclass(slots=True)
class _Memories:
    """Memories that are written more than once: the tensors in them, and each tensor's meaning."""

    plan: Plan
    shared: frozenset[Tensor]
    holds: dict[Tensor, _Parts] = field(default_factory=dict)
    meant: dict[Tensor, _Parts] = field(default_factory=dict)

    def write(self, tensor: Tensor) -> None:
        """Note that a tensor takes the place of what its memory held."""
        memory = self.plan.storage[tensor]
        if memory in self.shared:
            start, stop = self._span(tensor)
            held = self.holds.get(memory, ())
            behind = _within(held, stop, max((end for _, end, _ in held), default=stop))
            self.meant[tensor] = ((start, stop, tensor),)
            self.holds[memory] = (*_within(held, 0, start), *self.meant[tensor], *behind)

    def view(self, node: Node) -> None:
        """Note that the output of a view means what its inputs do."""
        parts = [part for tensor in node.inputs for part in self.meant.get(tensor, ())]
        for tensor in node.outputs:
            if self.plan.storage[tensor] in self.shared:
                self.meant[tensor] = _within(parts, *self._span(tensor))

    def has(self, tensor: Tensor) -> bool:
        """Return whether the memory of a tensor still holds it."""
        memory = self.plan.storage[tensor]
        if memory not in self.shared:
            return True
        held = _within(self.holds.get(memory, ()), *self._span(tensor))
        return held == self.meant.get(tensor)

    def _span(self, tensor: Tensor) -> tuple[int, int]:
        start = self.plan.offsets.get(tensor, 0)
        return start, start + self.plan.layouts[tensor].bytes(tensor.type)


def _within(parts: Sequence[tuple[int, int, Tensor]], start: int, stop: int) -> _Parts:
    """Return what lies in bytes [start, stop)."""
    cut = ((max(low, start), min(high, stop), tensor) for low, high, tensor in parts)
    return tuple(part for part in cut if part[0] < part[1])


def _overwritten(node: Node, tensor: Tensor) -> MemoryPlanError:
    return MemoryPlanError(
        f"the operator reads '{tensor.name}' after that memory was overwritten",
        where=f"{node.source} ('{node.name}')",
        fix="report this as a bug: microtir put the operators in a wrong order",
    )
