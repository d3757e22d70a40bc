"""Recognises rings of rows among states: the oldest rows go, and new ones are appended."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from microtir.graph.ir import Graph, Node, State, Tensor
from microtir.graph.rewriting import Rewrite, substitute
from microtir.operators.control.definition import has_control
from microtir.operators.movement.definition import Concatenation, StridedSlice
from microtir.operators.state.definition import Assign, JoinRows, KeepRows


class PushRows(Rewrite):
    """Moves the rows of a ring that stay within its memory, and appends the new ones there.

    Models keep a ring as the rows before the new ones: they append these to compute with, and drop
    the oldest rows of that, or the other way round.  Here the state is all rows that are computed
    with, so that these are read where they lie, and no copy of them is made.
    """

    def __call__(self, graph: Graph) -> Graph:
        for state in () if has_control(graph.nodes) else graph.states:
            ring = _ring(graph, state)
            if ring is not None:
                graph = _pushed(graph, ring)
        return graph


@dataclass(frozen=True, slots=True)
class _Ring:
    """A state whose rows move.

    Args:
        state: as the model has it.
        join: gives the rows that are computed with: those that stay, then new ones.
        first: of the rows of the last run's join, the first that stays.
        gone: nodes that take part in the update alone.
    """

    state: State
    join: Node
    first: int
    gone: frozenset[Node]

    @property
    def axis(self) -> int:
        """Return the axis along which they are rows."""
        return self.join.attributes(Concatenation).axis


def _ring(graph: Graph, state: State) -> _Ring | None:
    """Return the ring that a state is, if it is one."""
    producers, consumers = graph.producers(), graph.consumers()
    assign, readers = producers[state.after], consumers.get(state.before, ())
    value = assign.inputs[0]
    maker = producers.get(value)
    if not isinstance(assign.op, Assign) or len(readers) != 1 or maker is None:
        return None
    if isinstance(maker.op, StridedSlice):
        drop, join = maker, readers[0]
        is_closed = drop.inputs[0] in join.outputs and join.inputs[0] is state.before
        is_used = any(node is not assign for node in consumers[value]) or value in graph.outputs
        gone = {assign, join} if is_used else {assign, join, drop}
    else:
        drop, join = readers[0], maker
        is_closed = join.inputs[0] in drop.outputs and consumers[drop.outputs[0]] == (join,)
        is_closed &= drop.outputs[0] not in graph.outputs
        gone = {assign, join, drop}
    if not is_closed or not _joins_rows(graph, join):
        return None
    first = _first_row(drop, join.attributes(Concatenation).axis)
    return None if first is None else _Ring(state, join, first, frozenset(gone))


def _joins_rows(graph: Graph, node: Node) -> bool:
    """Return whether a node appends rows that lie one after the other to what it is given first."""
    op = node.op
    return (
        isinstance(op, Concatenation)
        and math.prod(node.output.shape[: op.axis]) == 1
        and node.inputs[0] not in node.inputs[1:]
        and node.output not in graph.outputs
    )


def _first_row(node: Node, axis: int) -> int | None:
    """Return the first of the rows that a slice takes, if it is whole rows, and not row 0."""
    op, shape = node.op, node.inputs[0].shape
    if not isinstance(op, StridedSlice) or node.output.shape != op.extent or not op.begin[axis]:
        return None
    others = (n for n in range(len(shape)) if n != axis)
    whole = all(op.extent[n] == shape[n] for n in others)
    forward = all(s == 1 or e == 1 for s, e in zip(op.strides, op.extent, strict=True))
    return op.begin[axis] if whole and forward else None


def _pushed(graph: Graph, ring: _Ring) -> Graph:
    """Return the graph with a ring as a state of all rows that are computed with."""
    state, axis, joined = ring.state, ring.axis, ring.join.output
    before, after = Tensor(state.name, joined.type), Tensor(state.after.name, joined.type)
    remembered = Tensor(f"{state.name}_kept", replace(joined.type, shape=_kept_shape(ring)))
    source = ring.join.source
    keep = Node(
        KeepRows(axis, ring.first, ring.first), (before,), (remembered,), remembered.name, source
    )
    nodes: list[Node] = [keep]
    for node in graph.nodes:
        if node is ring.join:
            parts = (remembered, *ring.join.inputs[1:])
            nodes.append(Node(JoinRows(axis), parts, (after,), after.name, source))
        elif node not in ring.gone:
            nodes.append(substitute(node, {joined: after}))
    old = state.initial
    missing = joined.shape[axis] - old.shape[axis]
    # The rows that go first are never read: any will do.
    initial = np.concatenate([*[old.take([0], axis)] * missing, old], axis)
    ports = {state.before: before, state.after: after}
    return replace(
        graph,
        inputs=tuple(ports.get(t, t) for t in graph.inputs),
        outputs=tuple(ports.get(t, t) for t in graph.outputs),
        nodes=tuple(nodes),
        states=tuple(State(before, after, initial) if s is state else s for s in graph.states),
    )


def _kept_shape(ring: _Ring) -> tuple[int, ...]:
    axis, shape = ring.axis, ring.join.output.shape
    rows = shape[axis] - sum(t.shape[axis] for t in ring.join.inputs[1:])
    return (*shape[:axis], rows, *shape[axis + 1 :])
