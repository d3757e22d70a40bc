"""Makes one table of neighbouring elementwise operators that depend on one int8 element."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from microtir.dtype import DType
from microtir.graph.ir import Graph, Node
from microtir.graph.rewriting import Rewrite, with_nodes
from microtir.operators import UserOperator, record_of
from microtir.operators.conversion.definition import Tabulated
from microtir.operators.definition import Trait
from microtir.operators.indexing.definition import Gather
from microtir.operators.movement.definition import Relabel
from microtir.operators.tables import has_table
from microtir.rewrite.facts.regions import STORED, Neighbours, Region

_CODE = 96  # about the bytes of a function that computes an element
_SAVED = 8  # instructions of an element, for each operator less
_MOST = 64  # operators of a region: keeps the pass linear in those of the graph


@dataclass(frozen=True, slots=True)
class Tabulate(Rewrite):
    """Looks up what several elementwise operators, or one with a constant, make of an element.

    Args:
        byte_price: instructions that a byte of flash is worth; None: more than all of a model.
    """

    byte_price: int | None = 0

    def __call__(self, graph: Graph) -> Graph:
        return tabulated(graph, self._pays)

    def _pays(self, region: Region) -> bool:
        """Return whether a table is worth its bytes, less those of what it stands for."""
        tables = [_has_table(node) for node in region.nodes if not isinstance(node.op, Relabel)]
        if not tables or tables == [True]:
            return False  # it is a view, or looked up anyway
        more = STORED.size - sum(STORED.size if is_table else _CODE for is_table in tables)
        saved = _SAVED * region.x.type.elements * max(len(tables) - 1, 1)
        return more <= 0 or (self.byte_price is not None and more * self.byte_price <= saved)


def tabulated(graph: Graph, is_wanted: Callable[[Region], bool]) -> Graph:
    """Return a graph with a table for each of the largest regions of one element that is wanted."""
    regions = {region.nodes[-1]: region for region in regions_of_one_element(graph, is_wanted)}
    inside = {node for region in regions.values() for node in region.nodes}
    nodes = []
    for node in graph.nodes:
        if node in regions:
            region = regions[node]
            nodes.append(replace(node, op=Tabulated(region.table()), inputs=(region.x,)))
        elif node not in inside:
            nodes.append(node)
    return with_nodes(graph, nodes)


def regions_of_one_element(graph: Graph, is_wanted: Callable[[Region], bool]) -> Iterator[Region]:
    """Yield the largest regions from an int8 element to one that are wanted, the last one first."""
    neighbours = Neighbours.of(graph, _is_of_one_element)
    inside: set[Node] = set()
    for last in reversed(graph.nodes):
        region = None if last in inside else _behind(neighbours, last)
        if region is not None and is_wanted(region):
            inside.update(region.nodes)
            yield region


def computes_floats(region: Region) -> bool:
    """Return whether an operator of a region computes real numbers of real numbers."""
    return any(
        node.output.dtype is DType.FLOAT32
        and any(tensor.dtype is DType.FLOAT32 for tensor in node.inputs)
        for node in region.nodes
    )


def _behind(neighbours: Neighbours, last: Node) -> Region | None:
    """Return the largest region that ends with a node, if there is one."""
    if not _is_of_one_element(last) or last.output.dtype is not DType.INT8:
        return None
    largest = None
    for nodes, read in neighbours.grown(last, _MOST):
        x, *others = read
        if not others and x.dtype is DType.INT8:
            largest = Region(x, nodes)
    return largest


def _is_of_one_element(node: Node) -> bool:
    """Return whether an element of the output depends on one of each activation, and no place."""
    record, shape = record_of(node.op), node.outputs[0].shape
    if isinstance(node.op, Gather):
        return _is_look_up(node)
    return (
        record.has(Trait.ELEMENTWISE)
        and not record.has(Trait.OPAQUE)
        and not isinstance(node.op, UserOperator)
        and len(node.outputs) == 1
        and bool(shape)
        and all(t.type.elements == 1 if t.is_constant else t.shape == shape for t in node.inputs)
        and not any(t.type.is_per_channel for t in (*node.activations, node.outputs[0]))
    )


def _is_look_up(node: Node) -> bool:
    """Return whether a GATHER looks each element up in a constant table."""
    table, places = node.inputs
    is_vector = table.is_constant and len(table.shape) == 1 and not table.type.is_per_channel
    return is_vector and not places.is_constant and places.shape == node.output.shape != ()


def _has_table(node: Node) -> bool:
    return has_table(node.op, node.inputs[0].type, node.output.type)
