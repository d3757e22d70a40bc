"""Leave in a loop what each turn computes anew, and hand on from turn to turn what is needed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from microtir.graph.ir import Graph, Node, Tensor
from microtir.graph.rewriting import Rewrite
from microtir.operators.arithmetic.definition import Add
from microtir.operators.control.definition import Control, EndRepeat, PutItem, Repeat, turns_of
from microtir.operators.movement.definition import Reshape, StridedSlice
from microtir.operators.state.definition import Assign


class SettleLoops(Rewrite):
    """Leaves in loops what each turn computes anew, and hands on what is needed.

    Values that nothing needs do not go from turn to turn; what no turn changes is computed before
    the loop; values are given their new ones at the end of a turn.
    """

    def __call__(self, graph: Graph) -> Graph:
        if not any(isinstance(node.op, Repeat) for node in graph.nodes):
            return graph
        nodes, _ = _settled(_needed(_without_lists(graph)), 0)
        return replace(graph, nodes=tuple(nodes))


# --- lists of which the last item is taken --------------------------------------------------------


def _without_lists(graph: Graph) -> Graph:
    """Return the graph that takes the last value of a state where that is a list's last item."""
    makers = graph.producers()
    last: dict[Tensor, Tensor] = {}
    for end in graph.nodes:
        if isinstance(end.op, EndRepeat) and not end.op.is_guarded:
            last.update(_last_items(end, makers))
    nodes = []
    for node in graph.nodes:
        x = node.inputs[0]
        while x in makers and isinstance(makers[x].op, Reshape):
            (x,) = makers[x].inputs
        if x in last and _takes_last(node, x):
            node = replace(node, op=Reshape(), inputs=(last[x],))
        nodes.append(node)
    return replace(graph, nodes=tuple(nodes))


def _last_items(end: Node, makers: Mapping[Tensor, Node]) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield lists that a loop fills in order, and the states that are what was put last."""
    pairs = list(zip(turns_of(end), end.outputs, strict=True))
    states = {
        makers[new].inputs[0]: (turn, result)
        for (turn, new), result in pairs
        if isinstance(makers[new].op, Assign)
    }
    for (_, new), result in pairs:
        put = makers[new]
        if not isinstance(put.op, PutItem) or put.inputs[1] not in states:
            continue
        repeat = makers[put.inputs[0]]
        ahead = next((value for value, (turn, _) in states.items() if turn is put.inputs[2]), None)
        if ahead is not None and _counts(repeat, put.inputs[2], makers.get(ahead), makers):
            yield result, states[put.inputs[1]][1]


def _counts(repeat: Node, turn: Tensor, adder: Node | None, makers: Mapping[Tensor, Node]) -> bool:
    """Return whether a value of a loop is 0 in the first turn, and grows by 1."""
    if turn not in repeat.outputs or adder is None or not isinstance(adder.op, Add):
        return False
    first = makers[repeat.inputs[repeat.outputs.index(turn)]].inputs[0].data
    steps = [tensor.data for tensor in adder.inputs if tensor is not turn]
    is_by_one = len(steps) == 1 and steps[0] is not None and bool((steps[0] == 1).all())
    return is_by_one and first is not None and not first.any()


def _takes_last(node: Node, items: Tensor) -> bool:
    """Return whether a node takes the last item of a list, seen in some shape, and that alone."""
    op, shape = node.op, node.inputs[0].shape
    return (
        isinstance(op, StridedSlice)
        and shape[0] == items.shape[0]
        and op.begin == (shape[0] - 1, *[0] * (len(shape) - 1))
        and op.extent == (1, *shape[1:])
        and set(op.strides[1:]) <= {1}
    )


# --- what is needed -------------------------------------------------------------------------------


def _needed(graph: Graph) -> list[Node]:
    """Return the nodes on which results depend, and of loops the values that do."""
    ends = {
        turn: (node, number)
        for node in graph.nodes
        if isinstance(node.op, EndRepeat)
        for number, (turn, _) in enumerate(turns_of(node))
    }
    live, open_, makers = set[Tensor](), list(graph.outputs), graph.producers()
    while open_:
        tensor = open_.pop()
        if tensor in live:
            continue
        live.add(tensor)
        if tensor in ends:  # a value at the beginning of a turn: what gives it its next one counts
            end, number = ends[tensor]
            open_ += (end.outputs[number], turns_of(end)[number][1])
        maker = makers.get(tensor)
        if maker is not None:
            open_ += _sources(maker, maker.outputs.index(tensor))
    return [_with_live(node, live) for node in graph.nodes if not live.isdisjoint(node.outputs)]


def _sources(node: Node, number: int) -> tuple[Tensor, ...]:
    """Return what an output of a node depends on."""
    if isinstance(node.op, Repeat):
        return (node.inputs[number],)
    if isinstance(node.op, EndRepeat):
        return (*node.inputs[: node.op.is_guarded], *turns_of(node)[number])
    return node.inputs


def _with_live(node: Node, live: set[Tensor]) -> Node:
    """Return the end of a loop with the values that are needed; any other node as it is."""
    live_outputs = [number for number, tensor in enumerate(node.outputs) if tensor in live]
    outputs = tuple(node.outputs[number] for number in live_outputs)
    if isinstance(node.op, Repeat):
        return replace(node, inputs=tuple(node.inputs[n] for n in live_outputs), outputs=outputs)
    if isinstance(node.op, EndRepeat):
        pairs = [turns_of(node)[number] for number in live_outputs]
        flag = node.inputs[: node.op.is_guarded]
        inputs = (*flag, *(turn for turn, _ in pairs), *(new for _, new in pairs))
        return replace(node, inputs=inputs, outputs=outputs)
    return node


# --- where it is computed -------------------------------------------------------------------------


def _settled(nodes: Sequence[Node], start: int) -> tuple[list[Node], int]:
    """Return nodes from one on, up to the end of the loop that they stand in; and where that is."""
    done: list[Node] = []
    while start < len(nodes) and not isinstance(nodes[start].op, EndRepeat):
        node, start = nodes[start], start + 1
        if not isinstance(node.op, Repeat):
            done.append(node)
            continue
        body, start = _settled(nodes, start)
        end, start = nodes[start], start + 1
        before, inside, last = _parted(node, body, end)
        done += (*before, node, *inside, *last, end)
    return done, start


def _parted(
    repeat: Node, body: Sequence[Node], end: Node
) -> tuple[list[Node], list[Node], list[Node]]:
    """Return what no turn changes, what each computes, and what gives values their new ones."""
    changing = set(repeat.outputs)
    news = {new for _, new in turns_of(end)}
    before: list[Node] = []
    inside: list[Node] = []
    last: list[Node] = []
    depth = 0
    for node in body:
        if isinstance(node.op, Assign | PutItem) and not news.isdisjoint(node.outputs):
            last.append(node)
            continue
        is_fixed = changing.isdisjoint(node.inputs) and not isinstance(node.op, Control | Assign)
        depth += isinstance(node.op, Repeat)
        if is_fixed and not depth:
            before.append(node)
            continue
        depth -= isinstance(node.op, EndRepeat)
        changing.update(node.outputs)
        inside.append(node)
    return before, inside, last
