"""Move the axes of an input before its elements are converted.

An image comes as (N, C, H, W), and the layers take (N, H, W, C).  Transposed behind QuantizeLinear
it would be there as a whole, in integers; transposed first, what a caller holds anyway is read,
and both run row by row.
"""

from __future__ import annotations

from dataclasses import replace

from microtir.graph.ir import Graph, Node, Tensor
from microtir.graph.rewriting import Rewrite
from microtir.operators.conversion.definition import Quantize
from microtir.operators.movement.definition import Transpose


class TransposeInputsFirst(Rewrite):
    """Moves the axes of inputs before their elements are converted."""

    def __call__(self, graph: Graph) -> Graph:
        producers = {node.output: node for node in graph.nodes if len(node.outputs) == 1}
        behind = {
            producers[node.inputs[0]].name: node
            for node in graph.nodes
            if isinstance(node.op, Transpose)
            and _is_converted_input(graph, producers, node.inputs[0])
        }
        moved = {node.name for node in behind.values()}
        nodes: list[Node] = []
        for node in graph.nodes:
            if node.name in behind:
                nodes += _turned(node, behind[node.name])
            elif node.name not in moved:
                nodes.append(node)
        return replace(graph, nodes=tuple(nodes))


def _is_converted_input(graph: Graph, producers: dict[Tensor, Node], tensor: Tensor) -> bool:
    """Return whether integers of one reader are made of an input of the graph."""
    node = producers.get(tensor)
    if node is None or not isinstance(node.op, Quantize) or tensor in graph.outputs:
        return False
    return node.inputs[0] in graph.inputs and len(graph.consumers()[tensor]) == 1


def _turned(conversion: Node, transpose: Node) -> tuple[Node, Node]:
    source = conversion.inputs[0]
    type_ = replace(source.type, shape=transpose.output.shape)
    between = Tensor(f"{transpose.output.name}_given", type_)
    return (
        replace(transpose, inputs=(source,), outputs=(between,)),
        replace(conversion, inputs=(between,), outputs=transpose.outputs),
    )
