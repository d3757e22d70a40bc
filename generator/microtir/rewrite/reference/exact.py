"""Evaluates a graph in real numbers, as far as float64 has them.

The same kernels on wider types: nothing is rounded to float32 between layers. Integer operators
keep their bits. It is the middle from which float32 computations are measured, since no order of
summation, and so no CPU, has part in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Array, Graph, Node, Tensor
from microtir.operators import UserOperator
from microtir.rewrite.reference.evaluate import evaluate, initial_states, value_of
from microtir.rewrite.reference.images import image_by_image
from microtir.rewrite.reference.order import in_order


def execute_exactly(graph: Graph, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Run a verified graph; outputs by name, float64 where they are float32.

    Args:
        graph: the graph.
        inputs: an array for each input, by name, of its shape and type; states that are left out
            have their initial values.
    """
    if graph.images > 1:
        return image_by_image(graph, inputs, execute_exactly)
    all_inputs = {**initial_states(graph), **inputs}
    values: dict[Tensor, Array] = {tensor: all_inputs[tensor.name] for tensor in graph.inputs}
    for node in in_order(graph, values):
        operands = [value_of(tensor, values) for tensor in node.inputs]
        values.update(zip(node.outputs, evaluate_exactly(node, operands), strict=True))
    return {tensor.name: value_of(tensor, values) for tensor in graph.outputs}


def evaluate_exactly(node: Node, inputs: Sequence[Array]) -> tuple[Array, ...]:
    """Return outputs of a node of a verified graph.

    An operator of the user computes with its own types.

    Args:
        node: the operator.
        inputs: one array per input, float32 or float64 where the tensor is float32.
    """
    if isinstance(node.op, UserOperator):
        pairs = zip(node.inputs, inputs, strict=True)
        own = [np.asarray(array, tensor.dtype.value) for tensor, array in pairs]
        return tuple(map(_wide_array, evaluate(node, own)))
    wide = replace(
        node,
        inputs=tuple(map(_wide_tensor, node.inputs)),
        outputs=tuple(map(_wide_tensor, node.outputs)),
    )
    return evaluate(wide, [_wide_array(array) for array in inputs])


def _wide_tensor(tensor: Tensor) -> Tensor:
    if tensor.dtype is not DType.FLOAT32:
        return tensor
    return Tensor(tensor.name, replace(tensor.type, dtype=DType.FLOAT64), tensor.data)


def _wide_array(array: Array) -> Array:
    return array.astype(np.float64) if array.dtype == np.float32 else array
