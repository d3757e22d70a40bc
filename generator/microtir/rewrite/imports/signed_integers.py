"""Store unsigned integers, less half of their range, as signed ones, which kernels have."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from microtir.dtype import DType
from microtir.graph.ir import Graph, Node, Quantization, Tensor, TensorType
from microtir.graph.rewriting import Rewrite, substitute
from microtir.operators.conversion.definition import Dequantize, Quantize
from microtir.rewrite.imports.movements import has_one_scale, moves

# Unsigned integers are stored as these, less half of their range.
_SIGNED = MappingProxyType({DType.UINT8: DType.INT8, DType.UINT16: DType.INT16})


class SignedIntegers(Rewrite):
    """Has signed integers for unsigned ones that only conversions and moves see.

    What a caller gives or takes is converted where it enters or leaves.
    """

    def __call__(self, graph: Graph) -> Graph:
        consumers = graph.consumers()
        tensors = (*graph.inputs, *(tensor for node in graph.nodes for tensor in node.outputs))
        candidates = {t for t in tensors if t.dtype in _SIGNED and has_one_scale(t)}
        before = -1
        while before != len(candidates):
            before = len(candidates)
            for node in graph.nodes:
                seen = {t for t in (*node.inputs, *node.outputs) if t.dtype in _SIGNED}
                if not _takes_either(node) or not seen <= candidates:
                    candidates -= seen
        ports = {*graph.inputs, *graph.outputs}
        typed = {
            tensor: Tensor(f"{tensor.name}_signed" * (tensor in ports) or tensor.name, signed)
            for tensor in dict.fromkeys(tensors)
            if tensor in candidates
            and (consumers.get(tensor) or (tensor in graph.outputs and tensor not in graph.inputs))
            for signed in (_less_half(tensor.type),)
        }
        inside = [substitute(node, typed) for node in graph.nodes]
        entering = [_converted(t, typed[t], consumers[t][0]) for t in graph.inputs if t in typed]
        makers = {tensor: node for node in graph.nodes for tensor in node.outputs}
        leaving = [
            _converted(typed[t], t, makers[t])
            for t in dict.fromkeys(graph.outputs)
            if t in typed and t not in graph.inputs
        ]
        return replace(graph, nodes=(*entering, *inside, *leaving))


def _converted(source: Tensor, result: Tensor, near: Node) -> Node:
    """Return what makes signed integers of a caller's, or the reverse; `near` is its node."""
    name = f"{result.name}_unsigned" if result.dtype in _SIGNED else result.name
    return replace(near, op=Quantize(), inputs=(source,), outputs=(result,), name=name)


def _takes_either(node: Node) -> bool:
    """Return whether a node does the same with either sort of integers of equal real values."""
    return isinstance(node.op, Quantize | Dequantize) or moves(node)


def _less_half(type_: TensorType) -> TensorType:
    quant, signed = type_.quant, _SIGNED[type_.dtype]
    shifted = Quantization(quant.scales, (quant.zero_point + signed.min,))
    return TensorType(type_.shape, signed, shifted)
