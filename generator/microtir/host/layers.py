"""Compares the compiled C, layer by layer, with the numpy meaning of its graph."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from microtir.graph import reference
from microtir.graph.ir import Array, Graph, Node, Tensor
from microtir.host.compare import Difference, compare
from microtir.host.model import LayerResult, Model
from microtir.host.tolerance import Tolerance, Values


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
    model: Model, graph: Graph, samples: Iterable[tuple[int, Values]], tolerance: Tolerance
) -> WrongLayer | None:
    """Run the C, and have every layer's meaning computed from what the C's layer has read.

    So a layer is wrong by itself: what came in wrong, or differently rounded, is no fault of it.

    Args:
        model: loaded with ``debug=True``.
        graph: what was planned: the graph after its passes, whose nodes are the layers.
        samples: number and inputs of each; they are tried in order until one shows a difference.
        tolerance: of the outputs; a layer has its own by the same rule.

    Returns:
        The layer, None if all of them agree on all samples.
    """
    for sample, inputs in samples:
        layers = model.run_layers(inputs)[1]
        computed = {layer.name: layer for layer in layers if layer.outputs}
        values: dict[Tensor, Array] = {tensor: inputs[tensor.name] for tensor in graph.inputs}
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
            difference = _layer_difference(sample, layer, node, expected, own)
            if difference is not None:
                wrong.append((order[layer.name], layer, difference))
            for tensor, array, actual in zip(node.outputs, expected, layer.outputs, strict=True):
                values[tensor] = _completed(array, actual)
        if wrong:
            _, layer, difference = min(wrong, key=lambda item: item[0])
            return WrongLayer(layer.name, layer.operator, layer.index, layer.function, difference)
    return None


def _completed(expected: Array, actual: Array) -> Array:
    """Return a layer's output, completed by the reference's last rows where nobody reads them."""
    whole: Array = expected.copy()
    whole.reshape(-1)[: actual.size] = actual.reshape(-1)
    return whole


def _layer_difference(
    sample: int,
    layer: LayerResult,
    node: Node,
    expected: tuple[Array, ...],
    tolerance: Tolerance,
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
    return replace(differences[0], sample=sample) if differences else None
