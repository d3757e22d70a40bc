"""Evaluate one node, or a whole graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from microtir.errors import GraphError, UsageError
from microtir.graph.ir import Array, Graph, Node, Tensor
from microtir.operators import UserOperator, record_of

Observer: TypeAlias = Callable[[Node, tuple[Array, ...]], None]
"""Called with each node and its outputs, in the order of execution."""


def evaluate(node: Node, inputs: Sequence[Array]) -> tuple[Array, ...]:
    """Return outputs of a node of a verified graph.

    Args:
        node: the operator with the types of its tensors.
        inputs: one array per input of the node, constants included, of its shape and type.

    Raises:
        GraphError: an operator of the user gives other types than the node declares.
    """
    result = record_of(node.op).meaning(node.op, node, *inputs)
    outputs = tuple(map(np.asarray, result if isinstance(result, tuple) else (result,)))
    if isinstance(node.op, UserOperator):
        _check_declared(node, outputs)
    for tensor, array in zip(node.outputs, outputs, strict=True):
        assert array.shape == tensor.shape, f"{node.name}: {array.shape} for {tensor.shape}"
        assert array.dtype == tensor.dtype.value, f"{node.name}: {array.dtype}"
    return outputs


def _check_declared(node: Node, outputs: tuple[Array, ...]) -> None:
    """Check what the numpy function of a user gave."""
    declared = [(tensor.dtype.value, tensor.shape) for tensor in node.outputs]
    if [(array.dtype.name, array.shape) for array in outputs] != declared:
        given = ", ".join(f"{array.dtype} {array.shape}" for array in outputs)
        raise GraphError(
            f"the numpy function of '{record_of(node.op).name}' gave {given}",
            where=f"{node.source} ('{node.name}')",
            legal=", ".join(f"{dtype} {shape}" for dtype, shape in declared),
            fix="correct the function, or the types of the node's outputs",
        )


def execute(
    graph: Graph, inputs: Mapping[str, Array], observe: Observer | None = None
) -> dict[str, Array]:
    """Run a verified graph.

    Args:
        graph: the graph.
        inputs: an array for each input of the graph, by name, of exactly its shape and type.
        observe: is shown each node with its outputs as soon as they are computed.

    Returns:
        The outputs of the graph by name.

    Raises:
        UsageError: an input is missing, unknown, or of another shape or type.
    """
    values: dict[Tensor, Array] = _checked_inputs(graph, inputs)
    for node in graph.nodes:
        operands = [value_of(tensor, values) for tensor in node.inputs]
        outputs = evaluate(node, operands)
        values.update(zip(node.outputs, outputs, strict=True))
        if observe is not None:
            observe(node, outputs)
    return {tensor.name: value_of(tensor, values) for tensor in graph.outputs}


def value_of(tensor: Tensor, values: Mapping[Tensor, Array]) -> Array:
    """Return the array of a tensor: what was computed, or a constant."""
    return values[tensor] if tensor.data is None else tensor.data


def _checked_inputs(graph: Graph, inputs: Mapping[str, Array]) -> dict[Tensor, Array]:
    expected = [tensor.name for tensor in graph.inputs]
    if sorted(expected) != sorted(inputs):
        raise UsageError(
            f"got inputs {sorted(inputs)}",
            where=f"inputs of {graph.name}",
            legal=f"exactly {sorted(expected)}",
        )
    values = {}
    for tensor in graph.inputs:
        array = np.asarray(inputs[tensor.name])
        if array.shape != tensor.shape or array.dtype != tensor.dtype.value:
            raise UsageError(
                f"got an array of {array.dtype} {array.shape}",
                where=f"input '{tensor.name}' of {graph.name}",
                legal=f"{tensor.dtype.value} {tensor.shape}",
            )
        values[tensor] = array
    return values
