"""Layer by layer: the compiled C against the numpy meaning of the graph that it came from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from microtir.graph import reference
from microtir.graph.ir import Array, Graph, Node
from microtir.host.compare import Difference, Values, compare
from microtir.host.model import LayerResult, Model


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
    model: Model, graph: Graph, samples: Iterable[tuple[int, Values]], rtol: float
) -> WrongLayer | None:
    """Run the C and the reference side by side and find where they part.

    Every layer of the C reads what the C computed before it, so the layers after the first wrong
    one say nothing.

    Args:
        model: loaded with ``debug=True``.
        graph: what was planned: the graph after its passes, whose nodes are the layers.
        samples: number and inputs of each; they are tried in order until one shows a difference.
        rtol: for floats, see `compare`.

    Returns:
        The layer, None if all of them agree on all samples.
    """
    for sample, inputs in samples:
        nodes: dict[str, tuple[Node, tuple[Array, ...]]] = {}

        def keep(
            node: Node,
            outputs: tuple[Array, ...],
            nodes: dict[str, tuple[Node, tuple[Array, ...]]] = nodes,
        ) -> None:
            nodes[node.name] = (node, outputs)

        reference.execute(graph, inputs, keep)
        for layer in model.run_layers(inputs)[1]:
            # A function that leaves sums for another one computes no tensor.
            if not layer.outputs:
                continue
            difference = _layer_difference(sample, layer, *nodes[layer.name], rtol)
            if difference is not None:
                return WrongLayer(
                    layer.name, layer.operator, layer.index, layer.function, difference
                )
    return None


def _layer_difference(
    sample: int, layer: LayerResult, node: Node, expected: tuple[Array, ...], rtol: float
) -> Difference | None:
    """How a layer's outputs differ from those of its node; None if they are equal.

    Row by row execution leaves out the last rows of a tensor if nobody reads them.
    """
    tensors = [tensor.name for tensor in node.outputs]
    wanted: Values = {
        name: value if value.size == array.size else value.reshape(-1)[: array.size]
        for name, value, array in zip(tensors, expected, layer.outputs, strict=True)
    }
    got: Mapping[str, Array] = {
        name: array.reshape(wanted[name].shape)
        for name, array in zip(tensors, layer.outputs, strict=True)
    }
    differences = compare([wanted], [got], rtol).differences
    return replace(differences[0], sample=sample) if differences else None
