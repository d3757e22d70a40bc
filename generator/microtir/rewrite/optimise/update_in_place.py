"""Lets operators write what states hold after a run right where it stays."""

from __future__ import annotations

from dataclasses import replace

from microtir.graph.ir import Graph, Node, State, Tensor
from microtir.graph.rewriting import Rewrite, substitute, with_nodes
from microtir.operators import record_of
from microtir.operators.control.definition import has_control
from microtir.operators.definition import Trait
from microtir.operators.indexing.definition import DynamicUpdateSlice, PutSlice
from microtir.operators.movement.definition import SAME_BYTES
from microtir.operators.state.definition import Assign
from microtir.rewrite.facts.states import in_order, uses_of


class UpdateInPlace(Rewrite):
    """Drops copies into states where who computes a new value can write it there.

    He can if all that read the old value can run before; he may read it himself if his operator
    is one that works in place.  Afterwards nodes are in an order in which old values are read
    before they are overwritten.  Graphs with loops or branches keep theirs.
    """

    def __call__(self, graph: Graph) -> Graph:
        if not graph.states or has_control(graph.nodes):
            return graph
        nodes = in_order(graph)
        if nodes is None:
            return graph
        graph = with_nodes(graph, nodes)
        for state in graph.states:
            graph = _without_copy(graph, state) or graph
        return graph


def _without_copy(graph: Graph, state: State) -> Graph | None:
    """Return the graph whose new value of a state is not copied there; None if it has to be."""
    producers = graph.producers()
    assign = producers[state.after]
    if not isinstance(assign.op, Assign):
        return None
    (value,) = assign.inputs
    maker = _maker(graph, value)
    if maker is None:
        return None
    is_put = _is_put(graph, maker, state)
    if not (is_put or _is_in_time(graph, maker, state) or _keeps(graph, value, state)):
        return None
    others = [node for node in graph.nodes if node is not assign]
    if is_put:
        others = [replace(node, op=PutSlice()) if node is maker else node for node in others]
    changed = replace(graph, nodes=tuple(substitute(node, {value: state.after}) for node in others))
    nodes = in_order(changed)
    return None if nodes is None else with_nodes(changed, nodes)


def _is_put(graph: Graph, maker: Node, state: State) -> bool:
    """Return whether a node changes a part of a state, and nothing of the part that stays."""
    if not isinstance(maker.op, DynamicUpdateSlice) or maker.inputs[0] is not state.before:
        return False
    (value,) = graph.producers()[state.after].inputs
    return maker.output is value and state.before not in maker.inputs[1:]


def _maker(graph: Graph, value: Tensor) -> Node | None:
    """Return the node that computes a value that lies in the workspace; None if it does not."""
    producers = graph.producers()
    while value in producers and value not in graph.outputs:
        node = producers[value]
        if not isinstance(node.op, SAME_BYTES):
            return node
        (value,) = node.inputs
    return None


def _is_in_time(graph: Graph, maker: Node, state: State) -> bool:
    """Return whether a node reads what a state holds before it writes there."""
    use = next(use for use in uses_of(graph) if use.state is state)
    if maker not in use.readers:
        return True
    old = [t for t in maker.inputs if _is_all_of(graph, t, state.before)]
    same = all((t.dtype, t.shape) == (maker.outputs[0].dtype, maker.outputs[0].shape) for t in old)
    return bool(old) and same and len(maker.outputs) == 1 and record_of(maker.op).is_in_place


def _keeps(graph: Graph, value: Tensor, state: State) -> bool:
    """Return whether a node makes a state's new value in the place of the old one, and no other."""
    maker = graph.producers()[value]
    number = maker.outputs.index(value)
    if record_of(maker.op).has(Trait.KEEPS_LAST):
        old = len(maker.inputs) - len(maker.outputs) + number
    elif record_of(maker.op).has(Trait.KEEPS):
        old = number
    else:
        return False
    return (
        number > 0
        and old >= 0
        and maker.inputs.count(state.before) == 1
        and maker.inputs[old] is state.before
    )


def _is_all_of(graph: Graph, tensor: Tensor, before: Tensor) -> bool:
    """Return whether a tensor is a state's old value, in whatever shape."""
    producers = graph.producers()
    while tensor is not before and tensor in producers:
        node = producers[tensor]
        if not isinstance(node.op, SAME_BYTES):
            return False
        (tensor,) = node.inputs
    return tensor is before
