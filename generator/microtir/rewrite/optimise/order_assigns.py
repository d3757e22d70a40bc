"""Orders the operators that give memories new values: each old value is read before it is gone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from microtir.graph.ir import Graph, Node, Tensor
from microtir.graph.rewriting import Rewrite, with_nodes
from microtir.operators.control.definition import PutItem
from microtir.operators.state.definition import Assign
from microtir.rewrite.facts.memories import Memories

_WRITES = Assign | PutItem


class OrderAssigns(Rewrite):
    """Sorts the Assigns at the end of a turn, of a branch or of the graph.

    They mean all of them at once: where one copies what another overwrites, it goes first, and
    where two exchange their values, one is kept beside.
    """

    def __call__(self, graph: Graph) -> Graph:
        memories = Memories(graph)
        nodes: list[Node] = []
        for run in _runs(graph.nodes):
            nodes += _ordered(run, memories) if isinstance(run[0].op, _WRITES) else run
        return with_nodes(graph, nodes)


def _runs(nodes: Sequence[Node]) -> Iterator[list[Node]]:
    """Yield nodes in order; Assigns that follow each other together."""
    run: list[Node] = []
    for node in nodes:
        if run and not (isinstance(node.op, _WRITES) and isinstance(run[-1].op, _WRITES)):
            yield run
            run = []
        run.append(node)
    if run:
        yield run


def _ordered(assigns: Sequence[Node], memories: Memories) -> list[Node]:
    """Return Assigns in an order in which each reads what it means."""
    left = list(assigns)
    held: list[Node] = []
    done: list[Node] = []
    while left:
        ready = next((node for node in left if not _is_read(node, left, memories)), None)
        if ready is None:
            # Some exchange their values: what the first overwrites is kept beside.
            target = memories.of(left[0].output)
            for number, node in enumerate(left):
                for tensor in node.inputs if number else ():
                    if memories.of(tensor) is target:
                        copy, left[number] = _beside(left[number], tensor)
                        held.append(copy)
            continue
        left.remove(ready)
        done.append(ready)
    return [*held, *done]


def _is_read(node: Node, others: Sequence[Node], memories: Memories) -> bool:
    """Return whether another Assign reads what one overwrites."""
    target = memories.of(node.output)
    read = (tensor for other in others if other is not node for tensor in other.inputs)
    return any(memories.of(tensor) is target for tensor in read)


def _beside(node: Node, tensor: Tensor) -> tuple[Node, Node]:
    """Return a copy of what an operator reads, and the operator that reads the copy."""
    copy = Tensor(f"{tensor.name}_held", tensor.type)
    held = replace(node, op=Assign(), inputs=(tensor,), outputs=(copy,), name=f"{node.name}_held")
    return held, replace(node, inputs=tuple(copy if t is tensor else t for t in node.inputs))
