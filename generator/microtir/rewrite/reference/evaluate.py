"""Evaluate one node, or a whole graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from microtir.errors import GraphError, UsageError
from microtir.graph.ir import Array, Graph, Node, Tensor
from microtir.operators import UserOperator, record_of
from microtir.operators.definition import Trait
from microtir.rewrite.reference.images import image_by_image
from microtir.rewrite.reference.order import in_order

Observer: TypeAlias = Callable[[Node, tuple[Array, ...]], None]
"""Function called with each node and its outputs, in the order of execution."""


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
        computed = ", ".join(f"{array.dtype} {array.shape}" for array in outputs)
        raise GraphError(
            f"the numpy function of '{record_of(node.op).name}' returned {computed}",
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
        inputs: an array for each input of the graph, by name, of exactly its shape and type; states
            that are left out have their initial values.
        observe: is shown each node with its outputs as soon as they are computed, for each image.

    Returns:
        The outputs of the graph by name, new values of states among them.

    Raises:
        UsageError: an input is missing, unknown, or of another shape or type.
    """
    checked = _checked_inputs(graph, inputs)
    if graph.images > 1:
        return image_by_image(graph, checked, lambda one, image: execute(one, image, observe))
    values: dict[Tensor, Array] = {tensor: checked[tensor.name] for tensor in graph.inputs}
    for node in in_order(graph, values):
        operands = [value_of(tensor, values) for tensor in node.inputs]
        outputs = evaluate(node, operands)
        values.update(zip(node.outputs, outputs, strict=True))
        if observe is not None:
            observe(node, outputs)
    return {tensor.name: value_of(tensor, values) for tensor in graph.outputs}


def execute_steps(graph: Graph, steps: Iterable[Mapping[str, Array]]) -> Iterator[dict[str, Array]]:
    """Run a verified graph again and again; states go from one run to the next.

    Args:
        graph: the graph.
        steps: for each run an array for each of the graph's arguments, by name.

    Yields:
        The results of each run by name.

    Raises:
        UsageError: an input is missing, unknown, or of another shape or type.
    """
    stored = {state: [state.initial] * state.turns for state in graph.states}
    for number, inputs in enumerate(steps):
        before = {s.before.name: values[number % s.turns] for s, values in stored.items()}
        outputs = execute(graph, {**inputs, **before})
        for state, values in stored.items():
            values[number % state.turns] = outputs[state.after.name]
        yield {tensor.name: outputs[tensor.name] for tensor in graph.results}


def known_inputs(node: Node, known: Mapping[Tensor, Array]) -> list[Array] | None:
    """Return arrays to evaluate a node on; None if its outputs depend on what is not known.

    What a node makes of the types of its inputs alone is the same for any values.
    """
    if record_of(node.op).has(Trait.OPAQUE):
        return None
    if record_of(node.op).has(Trait.STATIC):
        zeros = (np.zeros((), tensor.dtype.value) for tensor in node.inputs)
        return [np.broadcast_to(z, t.shape) for z, t in zip(zeros, node.inputs, strict=True)]
    values = [known.get(tensor, tensor.data) for tensor in node.inputs]
    known_values = [value for value in values if value is not None]
    return known_values if len(known_values) == len(values) else None


def known_values(graph: Graph) -> dict[Tensor, Array]:
    """Return the value of each tensor that follows from constants alone."""
    known = {tensor: tensor.data for tensor in graph.tensors() if tensor.data is not None}
    for node in graph.nodes:
        if record_of(node.op).has(Trait.CONTROL):
            continue
        inputs = known_inputs(node, known)
        if inputs is not None:
            known.update(zip(node.outputs, evaluate(node, inputs), strict=True))
    return known


def initial_states(graph: Graph) -> dict[str, Array]:
    """Return the values that a first run begins with, by the name of the state's input."""
    return {state.before.name: state.initial for state in graph.states}


def value_of(tensor: Tensor, values: Mapping[Tensor, Array]) -> Array:
    """Return the array of a tensor: what was computed, or a constant."""
    return values[tensor] if tensor.data is None else tensor.data


def _checked_inputs(graph: Graph, inputs: Mapping[str, Array]) -> dict[str, Array]:
    inputs = {**initial_states(graph), **inputs}
    expected = [tensor.name for tensor in graph.inputs]
    if sorted(expected) != sorted(inputs):
        raise UsageError(
            f"got inputs {sorted(inputs)}",
            where=f"inputs of {graph.name}",
            legal=f"exactly {sorted(expected)}",
        )
    values = {}
    for tensor in graph.inputs:
        array, shape = np.asarray(inputs[tensor.name]), graph.type_of_all(tensor).shape
        if array.shape != shape or array.dtype != tensor.dtype.value:
            raise UsageError(
                f"got an array of {array.dtype} {array.shape}",
                where=f"input '{tensor.name}' of {graph.name}",
                legal=f"{tensor.dtype.value} {shape}",
            )
        values[tensor.name] = array
    return values
