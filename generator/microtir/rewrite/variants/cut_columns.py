"""Cuts consecutive operators into bands of columns that are computed one after another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from microtir.graph.ir import Graph, Node, SourceLocation, Tensor
from microtir.graph.operator import Operator
from microtir.graph.rewriting import Rewrite, named_apart
from microtir.operators.convolution.definition import Conv2D, DepthwiseConv2D
from microtir.operators.movement.definition import StridedSlice
from microtir.operators.pooling.definition import Pool2D
from microtir.operators.streaming.definition import JoinColumns, PlaceColumns
from microtir.rewrite.facts.columns import Columns, Cut, bands_of, column_window, demanded, width_of
from microtir.rewrite.facts.macs import macs


@dataclass(frozen=True, slots=True)
class CutColumns(Rewrite):
    """Computes operators band by band, with columns at the edges of bands computed in both.

    What lies between the operators of a band is as wide as the band, so that rings take a part of
    the bytes.  The columns of inputs that a band needs are copied into a ring; the band's last
    operator writes its columns into the image that all bands share.
    """

    cuts: tuple[Cut, ...] = ()

    def __call__(self, graph: Graph) -> Graph:
        nodes: list[Node] = []
        done = 0
        for cut in sorted(self.cuts, key=lambda cut: cut.start):
            nodes += graph.nodes[done : cut.start]
            nodes += _cut(graph.nodes[cut.start : cut.stop], cut.bands)
            done = cut.stop
        # Two cuts may begin with the same columns of the same image.
        return (
            named_apart(replace(graph, nodes=(*nodes, *graph.nodes[done:]))) if self.cuts else graph
        )


def _cut(nodes: Sequence[Node], count: int) -> list[Node]:
    image = nodes[-1].output
    band_nodes: list[Node] = []
    placed: list[Tensor] = []
    before: Mapping[Tensor, Columns] = {}
    for number, columns in enumerate(bands_of(width_of(image), count)):
        ranges = demanded(nodes, columns)
        assert ranges is not None, "the caller has checked that the cut is possible"
        band = _Band(f"band {number + 1} of {count}", ranges, before)
        band_nodes += band.nodes_of(nodes)
        source = band.sources[image, columns]
        part = Tensor(f"{image.name}, {band.label}", source.type)
        op = PlaceColumns(column=columns.first, width=width_of(image))
        band_nodes.append(_moved(op, (source,), part, nodes[-1]))
        placed.append(part)
        before = ranges
    band_nodes.append(_moved(JoinColumns(), placed, image, nodes[-1]))
    return band_nodes


@dataclass(slots=True)
class _Band:
    """A band while its nodes are made.

    Args:
        label: what names it.
        ranges: the columns of each tensor that it needs.
        before: those that the band before it has computed, too.
    """

    label: str
    ranges: Mapping[Tensor, Columns]
    before: Mapping[Tensor, Columns]
    sources: dict[tuple[Tensor, Columns], Tensor] = field(default_factory=dict)

    def nodes_of(self, nodes: Sequence[Node]) -> list[Node]:
        """Return the nodes on the band's columns, with the slices that they need."""
        band_nodes: list[Node] = []
        inside = {node.output for node in nodes}
        for node in nodes:
            window = column_window(node)
            assert window is not None, "only layers that can be cut are cut"
            columns = self.ranges[node.output]
            inputs: list[Tensor] = []
            for tensor in node.inputs:
                if not tensor.is_constant:
                    needed = window.needed(columns, width_of(tensor))
                    band_nodes += self.slice(tensor, needed, node, is_inside=tensor in inside)
                    tensor = self.sources[tensor, needed]
                inputs.append(tensor)
            input_columns = window.needed(columns, width_of(node.inputs[0]))
            op = _padded(node.op, window.padding(columns, input_columns))
            band_nodes.append(self.banded(node, op, tuple(inputs), columns))
        return band_nodes

    def banded(
        self, node: Node, op: Operator, inputs: tuple[Tensor, ...], columns: Columns
    ) -> Node:
        width, before = width_of(node.output), self.before.get(node.output, Columns(0, 0))
        new = columns.stop - max(columns.first, before.stop)
        per_column = macs(node) // width
        in_file = node.source.macs or macs(node)
        share = in_file * columns.stop // width - in_file * (columns.stop - new) // width
        again = per_column * (columns.width - new)
        output = self.tensor(node.output, columns)
        source = replace(node.source, macs=share, macs_recomputed=again)
        return replace(
            node,
            op=op,
            inputs=inputs,
            outputs=(output,),
            source=source,
            name=f"{node.name}, {self.label}",
        )

    def slice(
        self, tensor: Tensor, columns: Columns, reader: Node, *, is_inside: bool
    ) -> list[Node]:
        """Return what makes columns of a tensor a tensor, if nothing has done so yet."""
        if (tensor, columns) in self.sources:
            return []
        whole = Columns(0, width_of(tensor))
        there = self.ranges[tensor] if is_inside else whole
        source = self.sources[tensor, there] if is_inside else tensor
        if columns == there:
            self.sources[tensor, columns] = source
            return []
        _, height, _, channels = tensor.shape
        op = StridedSlice(
            (0, 0, columns.first - there.first, 0),
            (1, 1, 1, 1),
            (1, height, columns.width, channels),
        )
        return [_moved(op, (source,), self.tensor(tensor, columns), reader)]

    def tensor(self, tensor: Tensor, columns: Columns) -> Tensor:
        """Return columns of a tensor, made here."""
        height, channels = tensor.shape[1], tensor.shape[3]
        type_ = replace(tensor.type, shape=(1, height, columns.width, channels))
        cut = Tensor(f"{tensor.name}, {self.label}, columns {columns}", type_)
        self.sources[tensor, columns] = cut
        return cut


def _moved(op: Operator, inputs: Sequence[Tensor], output: Tensor, node: Node) -> Node:
    """Return a node that moves columns for another one; its name is the output's."""
    name = "slice_columns" if isinstance(op, StridedSlice) else op.name
    source = SourceLocation(node.source.file, node.source.index, name.upper())
    return Node(op, tuple(inputs), (output,), output.name, source)


def _padded(op: Operator, sides: tuple[int, int]) -> Operator:
    """Return the operator with so many columns of padding left and right."""
    if not isinstance(op, Conv2D | DepthwiseConv2D | Pool2D):
        return op
    left, right = sides
    return replace(op, padding=replace(op.padding, left=left, right=right))
