"""Evaluates nodes whose inputs are all constant."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from microtir.dtype import DType
from microtir.graph.ir import Array, Graph, Node, Tensor
from microtir.graph.passes.rewrite import substitute, with_nodes
from microtir.graph.reference import evaluate
from microtir.operators import record_of
from microtir.operators.conversion.definition import Dequantize


@dataclass(frozen=True, slots=True)
class FoldConstants:
    """Replaces what is known at compile time by constants.

    Dequantised weights stay int8: a float operator that reads them gets the int8 constant itself
    and dequantises on the fly, at a quarter of the flash. A graph output stays the result of a
    node, even if that node's inputs are constant.
    """

    name: ClassVar[str] = "fold_constants"

    def __call__(self, graph: Graph) -> Graph:
        folded: dict[Tensor, Tensor] = {}
        quantized: dict[Tensor, Tensor] = {}
        nodes = []
        for original in graph.nodes:
            node = substitute(_with_int8_weights(original, quantized), folded)
            values = _constants(node)
            if values is None or not set(node.outputs).isdisjoint(graph.outputs):
                nodes.append(node)
                continue
            for tensor, value in zip(node.outputs, evaluate(node, values), strict=True):
                folded[tensor] = replace(tensor, data=value)
                if isinstance(node.op, Dequantize):
                    quantized[tensor] = node.inputs[0]
        return with_nodes(graph, nodes)


def _constants(node: Node) -> list[Array] | None:
    """Return the values of all inputs, None if one of them is not constant."""
    values = [tensor.data for tensor in node.inputs if tensor.data is not None]
    return values if len(values) == len(node.inputs) else None


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
