"""The order in which the nodes of a graph run: loops repeat some of them."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping

from microtir.graph.ir import Array, Graph, Node, Tensor
from microtir.operators.control.definition import EndRepeat, Repeat, turns_of


def in_order(graph: Graph, values: MutableMapping[Tensor, Array]) -> Iterator[Node]:
    """Yield each node when it is its turn.

    The operators of both branches run, since what they compute does no harm; EndIf chooses.

    Args:
        graph: a verified graph.
        values: what tensors hold; the caller adds the outputs of a node before he asks for the
            next, and loops give what was left in a turn to the one after it.
    """
    position = 0
    loops: list[tuple[int, int]] = []  # position and turns left of each loop around
    while position < len(graph.nodes):
        node = graph.nodes[position]
        yield node
        if isinstance(node.op, Repeat):
            loops.append((position, node.op.turns))
        elif isinstance(node.op, EndRepeat):
            start, left = loops.pop()
            if left > 1 and (not node.op.is_guarded or values[node.inputs[0]].all()):
                pairs = [(value, values[new]) for value, new in turns_of(node) if new in values]
                values.update(pairs)
                loops.append((start, left - 1))
                position = start
        position += 1
