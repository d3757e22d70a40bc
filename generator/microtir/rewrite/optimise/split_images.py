"""Makes of a graph on a batch the graph on one image."""

from __future__ import annotations

from dataclasses import dataclass, replace

from microtir.graph.ir import Graph, Node, Tensor
from microtir.graph.rewriting import Rewrite, substitute
from microtir.operators import record_of
from microtir.operators.common.images import by_element
from microtir.operators.definition import Trait
from microtir.rewrite.facts.macs import macs
from microtir.rewrite.facts.rules import inferred_shapes


@dataclass(frozen=True, slots=True)
class SplitImages(Rewrite):
    """Lets a graph whose operators keep images apart compute one image at a time.

    Activations take the memory of one image, and kernels and streams for one image do the work. A
    graph without windows is left alone: its rows are no images, and are computed together faster.

    Args:
        counted: whether a run is told how many images there are: then they are whatever lies along
            the outermost axis of several elements, and a graph without windows has them, too.
    """

    counted: bool = False

    def __call__(self, graph: Graph) -> Graph:
        images = _images_of(graph, counted=self.counted)
        has_windows = any(record_of(node.op).definition.window for node in graph.nodes)
        if images == 1 or not (self.counted or has_windows):
            return graph
        parts = {tensor: _one_of(tensor, images) for tensor in _varying(graph)}
        if any(part is None for part in parts.values()):
            return graph
        one = {tensor: part for tensor, part in parts.items() if part is not None}
        nodes = [_node_of_one(node, one, images) for node in graph.nodes]
        remaining = tuple(node for node in nodes if node is not None)
        if len(remaining) < len(nodes):
            return graph
        return replace(
            graph,
            inputs=tuple(one[tensor] for tensor in graph.inputs),
            outputs=tuple(one[tensor] for tensor in graph.outputs),
            nodes=remaining,
            input_ranges=tuple((one[tensor], bounds) for tensor, bounds in graph.input_ranges),
            images=images,
            image_axes=tuple(
                (tensor.name, axis)
                for tensor in (*graph.inputs, *graph.outputs)
                if (axis := tensor.type.outermost)
            ),
        )


def node_that_mixes(graph: Graph) -> Node | None:
    """Return the first node that keeps counted images from being computed one by one.

    None if that is not for a node.
    """
    images = _images_of(graph, counted=True)
    one = {t: part for t in _varying(graph) if (part := _one_of(t, images)) is not None}
    if images == 1 or not one.keys() >= set(graph.inputs):
        return None
    for node in graph.nodes:
        if not one.keys() >= set(node.outputs) or _node_of_one(node, one, images) is None:
            return node
    return None


def _images_of(graph: Graph, *, counted: bool) -> int:
    """Return how many images all inputs have; 1 also where they cannot be taken apart."""
    extents = {
        tensor.shape[tensor.type.outermost if counted else 0] if tensor.shape else 1
        for tensor in graph.inputs
    }
    return 1 if graph.images > 1 or graph.states or len(extents) != 1 else extents.pop()


def _varying(graph: Graph) -> tuple[Tensor, ...]:
    computed = (tensor for node in graph.nodes for tensor in node.outputs)
    return (*graph.inputs, *computed)


def _one_of(tensor: Tensor, images: int) -> Tensor | None:
    """Return the part of a tensor that belongs to one image; None if it cannot be cut."""
    quant = tensor.type.quantization
    axis = tensor.type.outermost
    if not tensor.shape or tensor.shape[axis] % images:
        return None
    if quant is not None and quant.axis == axis:
        return None
    shape = (*tensor.shape[:axis], tensor.shape[axis] // images, *tensor.shape[axis + 1 :])
    return replace(tensor, type=replace(tensor.type, shape=shape))


def _node_of_one(node: Node, one: dict[Tensor, Tensor], images: int) -> Node | None:
    """Return what a node does with one image; None if it mixes them."""
    definition = record_of(node.op).definition
    rule = definition.one_image
    if rule is None and Trait.ELEMENTWISE in definition.traits:
        rule = by_element
    op = rule(node, images) if rule is not None and node.activations else None
    if op is None:
        return None
    source = replace(node.source, macs=node.source.macs or macs(node), images=images)
    new_node = replace(substitute(node, one), op=op, source=source)
    return (
        new_node if inferred_shapes(new_node) == tuple(t.shape for t in new_node.outputs) else None
    )
