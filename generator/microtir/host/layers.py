"""Compares the compiled C, layer by layer, with the numpy meaning of its graph."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace

from microtir.graph.ir import Array, Graph, Node, Tensor
from microtir.host.compare import Difference, compare
from microtir.host.model import LayerResult, Model
from microtir.host.samples import SampleBatch
from microtir.host.tolerance import Tolerance, Values
from microtir.operators.control.definition import Control
from microtir.rewrite import reference


@dataclass(frozen=True, slots=True)
class WrongLayer:
    """The first layer, in the order of execution, that computes something else.

    `index` is the operator's position in the model file, `function` the C function;
    `difference.index` counts in the tensor's own shape.
    """

    name: str
    operator: str
    index: int
    function: str
    difference: Difference


def first_wrong_layer(
    model: Model, graph: Graph, samples: SampleBatch, suspects: Container[int], tolerance: Tolerance
) -> WrongLayer | None:
    """Run the C, and have every layer's meaning computed from what the C's layer has read.

    So a layer is wrong by itself: what came in wrong, or differently rounded, is no fault of it.

    Args:
        model: loaded with ``debug=True``.
        graph: what was planned: the graph after its passes, whose nodes are the layers.
        samples: inputs of each run.
        suspects: numbers of the runs that are looked at, in order until one shows a difference;
            those that come before one in a sequence are run for the state that they leave.
        tolerance: of the outputs; a layer has its own by the same rule.

    Returns:
        The layer, None if all of them agree on all suspects, or if some run in loops.
    """
    if any(isinstance(node.op, Control) for node in graph.nodes):
        return None  # a layer of a loop runs in every turn
    steps = samples.steps or 1
    for number, runs in enumerate(samples.samples()):
        model.reset()
        looked_at = [step for step in range(len(runs)) if number * steps + step in suspects]
        for step in range(max(looked_at, default=-1) + 1):
            if step not in looked_at:
                model.run(runs[step])
                continue
            wrong = _wrong_layer(model, graph, runs[step], tolerance)
            if wrong is not None:
                is_step = samples.steps is not None
                where = replace(wrong.difference, sample=number, step=step if is_step else None)
                return replace(wrong, difference=where)
    return None


def _initial_states(graph: Graph, model: Model) -> dict[str, Array]:
    """Return the states that the C begins a run with, which may be wrong already."""
    values = list(model.state_values().values())
    turn = int(values.pop()[0]) if len(values) > len(graph.states) else 0
    return {
        state.before.name: value.reshape(state.turns, -1)[turn % state.turns][
            : state.type.elements
        ].reshape(state.type.shape)
        for state, value in zip(graph.states, values, strict=True)
    }


def _wrong_layer(
    model: Model, graph: Graph, inputs: Values, tolerance: Tolerance
) -> WrongLayer | None:
    """Run the model once, and return the first layer that computes something else."""
    states_before = _initial_states(graph, model)
    for image, layers in _image_by_image(model, graph, inputs):
        wrong = _wrong_of_image(graph, {**image, **states_before}, layers, tolerance)
        if wrong is not None:
            return wrong
    return None


def _wrong_of_image(
    graph: Graph, inputs: Values, layers: Sequence[LayerResult], tolerance: Tolerance
) -> WrongLayer | None:
    """Return the first layer that has computed something else for an image."""
    values: dict[Tensor, Array] = {tensor: inputs[tensor.name] for tensor in graph.inputs}
    computed = {layer.name: layer for layer in layers if layer.outputs}
    order = {layer.name: number for number, layer in enumerate(layers)}
    wrong = []
    for node in graph.nodes:
        operands = [reference.value_of(tensor, values) for tensor in node.inputs]
        expected = reference.evaluate(node, operands)
        values.update(zip(node.outputs, expected, strict=True))
        # A function that leaves sums for another one computes no tensor.
        layer = computed.get(node.name)
        if layer is None:
            continue
        own = tolerance.for_node(node, operands)
        difference = _layer_difference(layer, node, expected, own)
        if difference is not None:
            wrong.append((order[layer.name], layer, difference))
        for tensor, array, actual in zip(node.outputs, expected, layer.outputs, strict=True):
            values[tensor] = _completed(array, actual)
    if not wrong:
        return None
    _, layer, difference = min(wrong, key=lambda item: item[0])
    return WrongLayer(layer.name, layer.operator, layer.index, layer.function, difference)


def _image_by_image(
    model: Model, graph: Graph, inputs: Values
) -> Iterator[tuple[Values, tuple[LayerResult, ...]]]:
    """Yield the inputs of each image and what layers have computed for it."""
    layers = model.run_layers(inputs)[1]
    if graph.images == 1:
        yield inputs, layers
        return
    for number, image in enumerate(reference.one_by_one(graph, inputs)):
        yield (
            image,
            tuple(
                replace(layer, outputs=tuple(_part(a, number, graph.images) for a in layer.outputs))
                for layer in layers
            ),
        )


def _part(rows: Array, number: int, images: int) -> Array:
    """Return the rows of one image."""
    count = len(rows) // images
    return rows[number * count : (number + 1) * count]


def _completed(expected: Array, actual: Array) -> Array:
    """Return a layer's output, completed by the reference's last rows where nobody reads them."""
    whole: Array = expected.copy()
    whole.reshape(-1)[: actual.size] = actual.reshape(-1)
    return whole


def _layer_difference(
    layer: LayerResult, node: Node, expected: tuple[Array, ...], tolerance: Tolerance
) -> Difference | None:
    """Return how a layer's outputs differ from those of its node; None if they are equal.

    Row by row execution leaves out the last rows of a tensor if nobody reads them.
    """
    names = [tensor.name for tensor in node.outputs]
    wanted = dict(zip(names, expected, strict=True))
    got = {
        name: _completed(wanted[name], array)
        for name, array in zip(names, layer.outputs, strict=True)
    }
    differences = compare([wanted], [got], tolerance).differences
    return differences[0] if differences else None
