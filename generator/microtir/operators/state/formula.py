"""Compute the operators that keep something from one run to the next."""

from __future__ import annotations

import math

import numpy as np

from microtir import te
from microtir.graph.ir import Array, Node
from microtir.operators.common.formula import FormulaContext
from microtir.operators.movement.formula import concatenation_along
from microtir.operators.state.definition import JoinRows, KeepRows, TakeRows


def assign(layer: FormulaContext) -> None:
    """Emit ASSIGN: a copy, all of it at once, since who still reads the old value runs before.

    One value for all elements, the zeros that a list begins with, say, takes no flash.
    """
    (source,), elements = layer.node.inputs, (layer.node.output.type.elements,)
    if source.data is not None and _is_uniform(source.data):
        value = te.const(source.data.flat[0].item(), source.dtype)
        layer.tensor(lambda _i: value, elements)
        return
    x = layer.whole(0, elements)
    layer.tensor(lambda i: x[i], elements)


def _is_uniform(data: Array) -> bool:
    """Return whether all elements have the same bits, and are a number."""
    rows = np.ascontiguousarray(data).reshape(-1, 1).view(np.uint8)
    return bool((rows == rows[0]).all() and np.isfinite(data.flat[0]))


def rows_from(layer: FormulaContext) -> None:
    """Emit KEEP_ROWS and TAKE_ROWS: a run of elements, in ascending order."""
    node = layer.node
    first = first_element(node)
    x = layer.whole(0, (node.inputs[0].type.elements,))
    layer.tensor(lambda i: x[i + first], (node.output.type.elements,))


def first_element(node: Node) -> int:
    """Return the element of its input that the output of an operator of states begins with."""
    op, shape = node.op, node.inputs[0].shape
    if not isinstance(op, KeepRows | TakeRows):
        return 0
    return op.first * math.prod(shape[op.axis + 1 :])


def join_rows(layer: FormulaContext) -> None:
    """Emit JOIN_ROWS where an input lies elsewhere, such as the caller's memory: as copies."""
    op = layer.node.attributes(JoinRows)
    concatenation_along(layer, op.axis)
