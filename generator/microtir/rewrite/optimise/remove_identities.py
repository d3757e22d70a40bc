"""Removes operators that change nothing, and turns moves that keep the order into reshapes."""

from __future__ import annotations

from dataclasses import replace

from microtir.graph.ir import Graph, Node, Tensor
from microtir.graph.rewriting import Rewrite, substitute, with_nodes
from microtir.operators.conversion.definition import CastTo, Quantize
from microtir.operators.movement import definition as movement


class RemoveIdentities(Rewrite):
    """Drops nodes whose output is their input: same type, same elements.

    Transposes that only move axes of one element, and slices and pads that keep everything,
    become reshapes, which are views. A node stays if it connects a graph input or a constant to
    a graph output: every output is computed by a node.
    """

    def __call__(self, graph: Graph) -> Graph:
        nodes = [_as_reshape(node) for node in graph.nodes]
        outputs = set(graph.outputs)
        computed = {tensor for node in nodes for tensor in node.outputs}
        renamed: dict[Tensor, Tensor] = {}
        remaining: list[Node] = []
        for node in nodes:
            source, result = _root(node.inputs[0], renamed), node.outputs[0]
            if not _is_identity(node):
                remaining.append(node)
            elif result not in outputs:
                renamed[result] = source
            elif source in computed and source not in outputs:
                # The output keeps its name: whoever computed the input now computes the output.
                renamed[source] = result
            else:
                remaining.append(node)
        final = {tensor: _root(tensor, renamed) for tensor in renamed}
        return with_nodes(graph, [substitute(node, final) for node in remaining])


def _root(tensor: Tensor, renamed: dict[Tensor, Tensor]) -> Tensor:
    while tensor in renamed:
        tensor = renamed[tensor]
    return tensor


def _is_identity(node: Node) -> bool:
    """Return whether the only output equals the first input, type and all."""
    if len(node.outputs) != 1 or node.inputs[0].type != node.outputs[0].type:
        return False
    # Requantising between equal quantisations is exact: the multiplier is 1.
    is_copy = isinstance(
        node.op, movement.Reshape | movement.Relabel | CastTo | Quantize | movement.Split
    )
    return is_copy or (isinstance(node.op, movement.Concatenation) and len(node.inputs) == 1)


def _as_reshape(node: Node) -> Node:
    if not _keeps_all_in_order(node):
        return node
    return replace(node, op=movement.Reshape(), inputs=node.inputs[:1])


def _keeps_all_in_order(node: Node) -> bool:
    """Return whether a transpose, slice or pad gives all elements in their order."""
    op, shape = node.op, node.inputs[0].shape
    match op:
        case movement.Transpose():
            moved = [axis for axis in op.permutation if shape[axis] != 1]
            return moved == sorted(moved)
        case movement.StridedSlice():
            steps = zip(op.strides, op.extent, strict=True)
            forward = all(stride == 1 or extent == 1 for stride, extent in steps)
            return op.extent == shape and forward
        case movement.Pad():
            return not any((*op.before, *op.after))
        case _:
            return False
