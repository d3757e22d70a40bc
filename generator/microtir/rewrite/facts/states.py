"""The nodes that read a state's value before a run, and those that write its value after it.

Both values have the same memory, so that the first run before the second.  A view of a value is
taken to lie in its memory; whether it does is decided later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from microtir.graph.ir import Graph, Node, State, Tensor
from microtir.operators.movement.definition import SAME_BYTES
from microtir.operators.state.definition import JoinRows, TakeRows

VIEWS = (*SAME_BYTES, TakeRows, JoinRows)


@dataclass(frozen=True, slots=True)
class StateUse:
    """The nodes that read the old value of a state, and those that write parts of the new one."""

    state: State
    readers: frozenset[Node]
    writers: frozenset[Node]


def uses_of(graph: Graph) -> tuple[StateUse, ...]:
    """Return who uses each state; views that stay in its memory are not among them."""
    producers = graph.producers()
    return tuple(
        StateUse(
            state,
            _readers(graph, state.before),
            _writers(producers, state.after),
        )
        for state in graph.states
    )


def _readers(graph: Graph, before: Tensor) -> frozenset[Node]:
    seen = {before}
    readers: set[Node] = set()
    for node in graph.nodes:
        if seen.isdisjoint(node.inputs):
            continue
        # What is an output lies in the caller's memory, to which it is copied.
        if isinstance(node.op, VIEWS) and set(node.outputs).isdisjoint(graph.outputs):
            seen.update(node.outputs)
        else:
            readers.add(node)
    return frozenset(readers)


def _writers(producers: Mapping[Tensor, Node], after: Tensor) -> frozenset[Node]:
    writers: set[Node] = set()
    waiting = [after]
    while waiting:
        node = producers.get(waiting.pop())
        if node is None:
            continue
        if isinstance(node.op, VIEWS):
            waiting += node.inputs
        else:
            writers.add(node)
    return frozenset(writers)


def has_own_memory(graph: Graph, tensor: Tensor, joins: Node) -> bool:
    """Return whether a tensor is computed in memory that can be part of what a node joins.

    It cannot if it is the caller's, a constant, or part of another tensor already.
    """
    producers, consumers = graph.producers(), graph.consumers()
    while True:
        users = consumers.get(tensor, ())
        elsewhere = any(isinstance(node.op, JoinRows) and node is not joins for node in users)
        if tensor in graph.outputs or elsewhere:
            return False
        node = producers.get(tensor)
        if node is None or not isinstance(node.op, SAME_BYTES):
            return node is not None and not isinstance(node.op, VIEWS)
        (tensor,) = node.inputs


def in_order(graph: Graph) -> tuple[Node, ...] | None:
    """Return the nodes so that states are read before they are written; None if there is no order.

    Nodes keep their places as far as they can.
    """
    first: dict[Node, list[Node]] = {node: [] for node in graph.nodes}
    producers = graph.producers()
    for node in graph.nodes:
        first[node] += [producers[t] for t in node.inputs if t in producers]
    for use in uses_of(graph):
        for writer in use.writers:
            first[writer] += [node for node in use.readers if node is not writer]
    return _sorted(graph.nodes, first)


def _sorted(nodes: Sequence[Node], first: Mapping[Node, Sequence[Node]]) -> tuple[Node, ...] | None:
    """Return nodes behind those that come first; None where nodes wait for each other."""
    done: dict[Node, None] = {}
    open_: set[Node] = set()
    waiting = list(reversed(nodes))
    while waiting:
        node = waiting[-1]
        missing = [other for other in first[node] if other not in done]
        if node in done or not missing:
            waiting.pop()
            open_.discard(node)
            done.setdefault(node)
        elif node in open_:
            return None
        else:
            open_.add(node)
            waiting += reversed(missing)
    return tuple(done)
