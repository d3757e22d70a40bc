"""Evaluates nodes whose inputs are all constant."""

from __future__ import annotations

from dataclasses import replace

from microtir.dtype import DType
from microtir.graph.ir import Array, Graph, Node, Tensor
from microtir.graph.rewriting import Rewrite, substitute, with_nodes
from microtir.operators import record_of
from microtir.operators.conversion.definition import Dequantize
from microtir.operators.definition import Trait
from microtir.operators.movement.definition import Reshape
from microtir.operators.state.definition import Assign
from microtir.rewrite.reference import evaluate, known_inputs


class FoldConstants(Rewrite):
    """Replaces what is known at compile time by constants.

    Dequantised weights stay int8: a float operator that reads them gets the int8 constant itself
    and dequantises on the fly, at a quarter of the flash. A graph output stays the result of a
    node, which copies what is known.
    """

    def __call__(self, graph: Graph) -> Graph:
        folded: dict[Tensor, Tensor] = {}
        quantized: dict[Tensor, Tensor] = {}
        nodes: list[Node] = []
        for original in graph.nodes:
            node = substitute(_with_int8_weights(original, quantized), folded)
            values = known_inputs(node, {})
            is_kept = record_of(node.op).has(Trait.CONTROL)
            if values is None or is_kept or _is_copied(node, graph):
                nodes.append(node)
                continue
            for tensor, value in zip(node.outputs, evaluate(node, values), strict=True):
                if tensor in graph.outputs:
                    nodes.append(_copy(node, tensor, value))
                else:
                    folded[tensor] = replace(tensor, data=value)
                if isinstance(node.op, Dequantize):
                    quantized[tensor] = node.inputs[0]
        return with_nodes(graph, nodes)


def _is_copied(node: Node, graph: Graph) -> bool:
    """Return whether a node does no more than copy what is known to an output of the graph."""
    return isinstance(node.op, Reshape | Assign) and node.output in graph.outputs


def _copy(node: Node, output: Tensor, value: Array) -> Node:
    """Return what stands for a node in the computation of an output that is known."""
    known = Tensor(f"{output.name}_known", output.type, value)
    number = node.outputs.index(output)
    name = node.name if number == 0 else f"{node.name}_{number}"
    return replace(node, op=Reshape(), inputs=(known,), outputs=(output,), name=name, sums=None)


def _with_int8_weights(node: Node, quantized: dict[Tensor, Tensor]) -> Node:
    """Let a float node read the int8 constant behind its dequantised weights."""
    axis = record_of(node.op).definition.quantization.weight_axis
    source = quantized.get(node.inputs[1]) if axis is not None else None
    if source is None or source.dtype is not DType.INT8:
        return node
    quant = source.type.quant
    if any(quant.zero_points) or quant.axis not in (None, axis):
        return node
    return replace(node, inputs=(node.inputs[0], source, *node.inputs[2:]))
