"""Give integers of a caller the scale that their reader says they have."""

from __future__ import annotations

from dataclasses import replace

from microtir.graph.ir import Graph, Tensor
from microtir.graph.rewriting import Rewrite, substitute
from microtir.operators.conversion.definition import CastTo


class CallerScales(Rewrite):
    """Gives integers of a caller the scale that their one reader says they have."""

    def __call__(self, graph: Graph) -> Graph:
        typed: dict[Tensor, Tensor] = {}
        consumers = graph.consumers()
        for node in graph.nodes:
            if not isinstance(node.op, CastTo) or node.output in graph.outputs:
                continue
            source, wanted = node.inputs[0], node.output.type
            is_free = source in graph.inputs and source.type == replace(wanted, quantization=None)
            if is_free and consumers[source] == (node,) and source not in graph.outputs:
                typed[source] = Tensor(source.name, wanted)
                typed[node.output] = typed[source]
        nodes = [
            node for node in (substitute(node, typed) for node in graph.nodes)
            if not (isinstance(node.op, CastTo) and node.inputs[0] is node.output)
        ]  # fmt: skip
        inputs = tuple(typed.get(tensor, tensor) for tensor in graph.inputs)
        return replace(graph, inputs=inputs, nodes=tuple(nodes))
