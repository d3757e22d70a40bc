"""Writes the turns of loops out, for executors whose tables of calls run each operator once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from microtir.graph.ir import Graph, Node, Tensor
from microtir.graph.rewriting import Rewrite, named_apart, substitute, with_nodes
from microtir.operators.control.definition import PutItem
from microtir.operators.movement.definition import Reshape
from microtir.rewrite.optimise.fold_constants import FoldConstants
from microtir.rewrite.optimise.loops import Carried, Loop, loops_of

_MOST_NODES = 1 << 13  # of one loop; longer tables than that are of no use


class UnrollTurns(Rewrite):
    """Puts the nodes of all turns one behind the other.

    Counters become constants, and so do the places of items in lists, which stay one memory.  Loops
    that a condition may end stay, and so do those of very many nodes.
    """

    def __call__(self, graph: Graph) -> Graph:
        while True:
            loop = next((loop for loop in loops_of(graph) if _size(loop) <= _MOST_NODES), None)
            if loop is None:
                return graph
            before = [node for node in graph.nodes[: loop.start] if node not in loop.begins]
            nodes = [*before, *_turns(graph, loop), *graph.nodes[loop.stop + 1 :]]
            graph = FoldConstants()(named_apart(with_nodes(graph, nodes)))


def _size(loop: Loop) -> int:
    return loop.turns * (loop.stop - loop.start)


def _turns(graph: Graph, loop: Loop) -> Iterator[Node]:
    """Yield the nodes of all turns, and what gives the results of the loop."""
    repeat, *body = graph.nodes[loop.start : loop.stop]
    begins = {begin.output: begin for begin in loop.begins}
    now: dict[Tensor, Tensor] = {}  # what a value is at the beginning of a turn
    for value, begun in zip(loop.carried, repeat.inputs, strict=True):
        now[value.turn] = value.first
        if isinstance(value.new.op, PutItem):  # a list needs a memory of its own
            now[value.turn] = begun
            yield begins[begun]
    assigns = {value.new for value in loop.carried if not isinstance(value.new.op, PutItem)}
    for _ in range(loop.turns):
        values = dict(now)
        for node in body:
            if node not in assigns:
                values.update((tensor, Tensor(tensor.name, tensor.type)) for tensor in node.outputs)
                yield substitute(node, values)
        now = {value.turn: _behind(value, values) for value in loop.carried}
    end = graph.nodes[loop.stop]
    for value in loop.carried:
        source, name = now[value.turn], f"{value.last.name}_of"
        yield replace(end, op=Reshape(), inputs=(source,), outputs=(value.last,), name=name)


def _behind(value: Carried, values: Mapping[Tensor, Tensor]) -> Tensor:
    is_list = isinstance(value.new.op, PutItem)
    tensor = value.new.output if is_list else value.new.inputs[0]
    return values.get(tensor, tensor)
