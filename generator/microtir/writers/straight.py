"""Write loops out turn by turn, since a table of operators says nothing of how often they run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from microtir.graph.ir import Array, Graph, Node, Tensor
from microtir.graph.rewriting import Keeps, Rewrite, constant, named_apart, with_nodes
from microtir.operators.control.definition import PutItem, has_control
from microtir.operators.indexing.definition import Gather
from microtir.operators.movement.definition import Concatenation, Reshape, StridedSlice
from microtir.operators.state.definition import Assign
from microtir.rewrite.optimise import RemoveDeadNodes, RemoveIdentities
from microtir.rewrite.optimise.unroll_turns import UnrollTurns

_MOST_JOINED = 10  # inputs that tflite-micro's CONCATENATION takes


class Straight(Rewrite):
    """Puts the turns of loops one behind the other, and joins the items of their lists.

    Loops that a condition may end stay, and so do branches and very long loops.
    """

    keeps = Keeps.BITS

    def __call__(self, graph: Graph) -> Graph:
        if not has_control(graph.nodes):
            return graph
        graph = UnrollTurns()(graph)
        graph = named_apart(with_nodes(graph, _joined(graph)))
        return RemoveIdentities()(RemoveDeadNodes()(graph))


def _joined(graph: Graph) -> Iterator[Node]:
    """Yield the nodes, with one that joins items where a list is read as a whole."""
    lists: dict[Tensor, list[Tensor]] = {}
    readers = graph.consumers()
    for node in graph.nodes:
        source = node.inputs[0]
        if isinstance(node.op, Assign) and source.data is not None and _is_list(node, readers):
            lists[node.output] = list(_items(source, source.data))
        elif isinstance(node.op, PutItem) and source in lists and node.inputs[2].data is not None:
            items, place = list(lists[source]), int(node.inputs[2].data.reshape(()))
            if 0 <= place < len(items):
                shape = (1, *node.output.shape[1:])
                name = f"{node.inputs[1].name}/item"
                items[place] = Tensor(name, replace(node.inputs[1].type, shape=shape))
                yield replace(node, op=Reshape(), inputs=node.inputs[1:2], outputs=(items[place],))
            lists[node.output] = items
            others = [n for n in readers.get(node.output, ()) if not isinstance(n.op, PutItem)]
            if others or node.output in graph.outputs:
                yield from _concatenated(node, items, node.output)
        else:
            yield _with_a_slice(node)


def _with_a_slice(node: Node) -> Node:
    """Return a node, as a slice where it takes one item that is known: they have more types."""
    op = node.op
    if not isinstance(op, Gather) or op.batch_dims or node.inputs[1].data is None:
        return node
    data, places = node.inputs[0], node.inputs[1].data
    if places.size != 1 or places.ndim > 1:
        return node
    rank = range(len(data.shape))
    begin = tuple(int(places.reshape(())) if axis == op.axis else 0 for axis in rank)
    extent = tuple(1 if axis == op.axis else data.shape[axis] for axis in rank)
    part = StridedSlice(begin, (1,) * len(begin), extent)
    return replace(node, op=part, inputs=(data,))


def _is_list(node: Node, readers: Mapping[Tensor, tuple[Node, ...]]) -> bool:
    behind = readers.get(node.output, ())
    return bool(behind) and all(isinstance(reader.op, PutItem) for reader in behind)


def _items(source: Tensor, values: Array) -> Iterator[Tensor]:
    """Yield the items that a list begins with."""
    for number in range(len(values)):
        item = values[number : number + 1]
        yield constant(f"{source.name}/{number}", replace(source.type, shape=item.shape), item)


def _concatenated(node: Node, items: Sequence[Tensor], result: Tensor) -> Iterator[Node]:
    """Yield what joins items along the first axis, a few at a time."""
    level = 0
    while len(items) > _MOST_JOINED:
        parts = []
        for start in range(0, len(items), _MOST_JOINED):
            few = items[start : start + _MOST_JOINED]
            shape = (sum(item.shape[0] for item in few), *result.shape[1:])
            part = Tensor(f"{result.name}/{level}_{start}", replace(result.type, shape=shape))
            yield _join(node, few, part)
            parts.append(part)
        items, level = parts, level + 1
    yield _join(node, items, result)


def _join(node: Node, items: Sequence[Tensor], result: Tensor) -> Node:
    return replace(node, op=Concatenation(0), inputs=tuple(items), outputs=(result,))
