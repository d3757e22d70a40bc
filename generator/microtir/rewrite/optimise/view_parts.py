"""Lets parts of a tensor lie where the tensor lies, instead of copying them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from microtir.graph.ir import Graph, Node, Tensor
from microtir.graph.rewriting import Rewrite, with_nodes
from microtir.operators.control.definition import has_control
from microtir.operators.movement import definition as movement
from microtir.operators.state.definition import JoinRows, TakeRows
from microtir.rewrite.facts.states import has_own_memory


class ViewParts(Rewrite):
    """Makes views of what is cut from a tensor or joined along its outermost axis.

    Axes of one element may come before that axis: then the parts are runs of memory.  What a
    caller gets or gives is left alone, since it is in a memory of its own, and so are loops, whose
    values take each other's places.  What cannot lie where it is joined is copied by PlaceRows.
    """

    def __call__(self, graph: Graph) -> Graph:
        if has_control(graph.nodes):
            return graph
        return with_nodes(graph, (new for node in graph.nodes for new in _viewed(graph, node)))


def _viewed(graph: Graph, node: Node) -> Sequence[Node]:
    """Return the views that stand for a node; the node itself if there are none."""
    is_known = any(tensor.is_constant for tensor in node.inputs)
    if is_known or not set(node.outputs).isdisjoint(graph.outputs):
        return (node,)
    match node.op:
        case movement.Split(axis):
            firsts = [0]
            for part in node.outputs:
                firsts.append(firsts[-1] + part.shape[axis])
            taken = tuple(_taken(node, axis, firsts[:-1])) if _is_run(node.inputs[0], axis) else ()
        case movement.Unpack(axis):
            firsts = list(range(len(node.outputs)))
            taken = tuple(_taken(node, axis, firsts)) if _is_run(node.inputs[0], axis) else ()
        case movement.StridedSlice():
            cut = _cut_axis(node) if _is_worth_keeping(graph, node) else None
            taken = () if cut is None else tuple(_taken(node, cut, [node.op.begin[cut]]))
        case movement.Concatenation(axis) | movement.Pack(axis):
            taken = tuple(_joined(node, axis)) if _can_join(graph, node, axis) else ()
        case _:
            taken = ()
    return taken or (node,)


def _is_run(tensor: Tensor, axis: int) -> bool:
    """Return whether rows along an axis lie one after the other in memory."""
    return math.prod(tensor.shape[:axis]) == 1


def _is_worth_keeping(graph: Graph, node: Node) -> bool:
    """Return whether a slice may keep all of its input: a few rows of a large tensor are copied."""
    (source,) = node.inputs[:1]
    is_large_part = 2 * node.output.type.elements >= source.type.elements
    return source in graph.inputs or is_large_part


def _cut_axis(node: Node) -> int | None:
    """Return the axis along which a slice takes rows of a run; None if it takes anything else."""
    op, shape = node.attributes(movement.StridedSlice), node.inputs[0].shape
    cut = next((n for n, extent in enumerate(op.extent) if extent != shape[n]), None)
    forward = all(s == 1 or e == 1 for s, e in zip(op.strides, op.extent, strict=True))
    if cut is None or len(node.inputs) > 1 or not forward:
        return None
    is_whole = op.extent[cut + 1 :] == shape[cut + 1 :]
    return cut if is_whole and _is_run(node.inputs[0], cut) else None


def _taken(node: Node, axis: int, firsts: Sequence[int]) -> Iterator[Node]:
    """Yield a view of the input for each output, of rows along an axis from the given ones on."""
    (source,) = node.inputs
    for number, (output, first) in enumerate(zip(node.outputs, firsts, strict=True)):
        rest = math.prod(source.shape[axis + 1 :])
        rows = output.type.elements // rest
        shape = (*source.shape[:axis], rows, *source.shape[axis + 1 :])
        name = node.name if number == 0 else f"{node.name}_{number}"
        if output.shape == shape:
            yield replace(node, op=TakeRows(axis, first), outputs=(output,), name=name)
            continue
        part = Tensor(f"{output.name}_rows", replace(output.type, shape=shape))
        yield replace(node, op=TakeRows(axis, first), outputs=(part,), name=name)
        yield _reshaped(node, part, output, f"{name}_reshaped")


def _can_join(graph: Graph, node: Node, axis: int) -> bool:
    """Return whether all inputs can be computed where they lie one after the other."""
    is_run, inputs = _is_run(node.output, axis), node.inputs
    is_each = len(set(inputs)) == len(inputs)
    return is_run and is_each and all(has_own_memory(graph, tensor, node) for tensor in inputs)


def _joined(node: Node, axis: int) -> Iterator[Node]:
    """Yield the view that the inputs make; those of PACK first get the axis that they lack."""
    parts = list(node.inputs)
    if isinstance(node.op, movement.Pack):
        shape = node.output.shape
        type_ = replace(node.output.type, shape=(*shape[:axis], 1, *shape[axis + 1 :]))
        for number, tensor in enumerate(node.inputs):
            parts[number] = Tensor(f"{tensor.name}_row", type_)
            yield _reshaped(node, tensor, parts[number], f"{node.name}_{number}")
    yield replace(node, op=JoinRows(axis), inputs=tuple(parts))


def _reshaped(node: Node, source: Tensor, output: Tensor, name: str) -> Node:
    return replace(node, op=movement.Reshape(), inputs=(source,), outputs=(output,), name=name)
