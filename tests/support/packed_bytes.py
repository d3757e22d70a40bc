"""Bytes of the constants of a layer, as its functions have them."""

from __future__ import annotations

from microtir.graph.ir import Node
from microtir.kernels import emit, emit_finish
from microtir.operators.common.rows import Extents
from microtir.plan.ir import Candidate, Layout, LayoutKind, Planes, PlannedOperator
from microtir.tir.function import LayerName
from microtir.tir.ir import Scope
from microtir.tir.visitor import buffers_read


def emitted_bytes(node: Node, candidate: Candidate) -> int:
    """Return the bytes of the constants that the functions of a candidate read."""
    operator = PlannedOperator(node, candidate)
    kinds = (*candidate.input_layouts, *candidate.output_layouts)
    layouts = {}
    for tensor, kind in zip((*node.activations, *node.outputs), kinds, strict=True):
        width = Extents.of(tensor.type).width
        planes = candidate.planes or Planes(0, width + width % 2)
        is_plain = kind is LayoutKind.NHWC
        layouts[tensor] = Layout(kind, tensor.type.rows, None if is_plain else planes)
    name = LayerName("layer")
    functions = [emit(operator, layouts, name)]
    if candidate.accumulates:
        functions.append(emit_finish(operator, layouts, name.with_work("finish")))
    read = dict.fromkeys(b for f in functions for b in buffers_read(f))
    return sum(b.data.nbytes for b in read if b.scope is Scope.CONSTANT and b.data is not None)
