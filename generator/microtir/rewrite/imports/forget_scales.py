"""Forget what float constants were stored as, once every layer has been looked at."""

from __future__ import annotations

from dataclasses import replace

from microtir.graph.ir import Graph
from microtir.graph.rewriting import Rewrite, substitute, with_nodes


class ForgetScales(Rewrite):
    """Lets float constants no longer remember what they were stored as."""

    def __call__(self, graph: Graph) -> Graph:
        plain = {
            tensor: replace(tensor, type=replace(tensor.type, quantization=None))
            for node in graph.nodes
            for tensor in node.inputs
            if tensor.dtype.is_float and tensor.type.quantization is not None
        }
        return with_nodes(graph, [substitute(node, plain) for node in graph.nodes])
