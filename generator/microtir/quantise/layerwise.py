"""Walk through the graph of integers layer by layer, with the values of several runs at once.

What a layer is given are the integers that the layers before it gave, with whatever errors these
have, so that it may make up for them.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from microtir.graph.ir import Array, Node, Tensor
from microtir.graph.rewriting import constant
from microtir.operators import record_of
from microtir.operators.common.attributes import Activation
from microtir.operators.control.definition import EndRepeat, nodes_in_loops
from microtir.quantise.build import Built, Plan
from microtir.quantise.runs import real, stored
from microtir.rewrite.reference import evaluate

Runs: TypeAlias = "list[Array]"
"""The values of a tensor, of one run after the other."""


@dataclass(frozen=True, slots=True, eq=False)
class WeightedLayer:
    """A layer of integers with weights and a bias, and what it is given in several runs.

    Args:
        node: of the float graph.
        stored: of the graph of integers.
        inputs: real numbers that its integers of activations stand for, of each run.
        expected: sums of the float graph with the bias, before the activation, of each run.
    """

    node: Node
    stored: Node
    inputs: Runs
    expected: Runs

    def sums(self) -> Runs:
        """Return what integers give for `expected`, but for the rounding of results."""
        weights, bias = (real(t.values, t.type) for t in self.stored.inputs[1:3])
        return [evaluate(linear(self.node), [x, weights, bias])[0] for x in self.inputs]

    def clamped(self, sums: Array) -> Array:
        """Return sums after the activation of the layer."""
        low, high = activation_of(self.node).real_range
        return np.clip(sums, low, high)

    def with_constants(self, weights: Array | None, bias: Array | None) -> WeightedLayer:
        """Return the layer with other stored weights or another stored bias."""
        inputs = list(self.stored.inputs)
        for place, values in ((1, weights), (2, bias)):
            if values is not None:
                inputs[place] = constant(inputs[place].name, inputs[place].type, values)
        return replace(self, stored=replace(self.stored, inputs=tuple(inputs)))


Improvement: TypeAlias = "Callable[[WeightedLayer], WeightedLayer]"
"""Function that gives a layer of integers other weights or another bias."""


def activation_of(node: Node) -> Activation:
    """Return the activation that is fused into a layer."""
    activation = getattr(node.op, "activation", Activation.NONE)
    assert isinstance(activation, Activation)
    return activation


def linear(node: Node) -> Node:
    """Return a layer of floats without its activation."""
    op: Any = node.op
    has_some = activation_of(node) is not Activation.NONE
    return replace(node, op=replace(op, activation=Activation.NONE)) if has_some else node


def improved(
    plan: Plan,
    built: Built,
    recorded: Sequence[Mapping[str, Array]],
    turns: Sequence[Mapping[str, Array]],
    improvements: Sequence[Improvement],
) -> Built:
    """Return the graph of integers with improved constants, its layers one after the other.

    Args:
        plan: of the graph.
        built: by the plan.
        recorded: the values of the float graph in some runs, by name.
        turns: those at the end of some turns of loops; layers of loops are given these, as integers
            have them.
        improvements: in the order in which they are tried on each layer.
    """
    if not improvements:
        return built
    floats = {one: node for node, one in built.nodes.items()}
    values: dict[Tensor, Runs] = {
        tensor: [stored(run[tensor.name], tensor.type) for run in recorded]
        for tensor in built.graph.inputs
    }
    last = {t: number for number, n in enumerate(built.graph.nodes) for t in n.inputs}
    shared = {t for t, readers in built.graph.consumers().items() if len(readers) > 1}
    in_loops = set(nodes_in_loops(built.graph.nodes))
    nodes: list[Node] = []
    changed: dict[Node, Node] = {}
    for number, one in enumerate(built.graph.nodes):
        node = floats.get(one)
        if node is not None and node in plan.forms and _has_weights(one):
            if one in in_loops:
                seen = [turn for turn in turns if node.inputs[0].name in turn]
                layer = _layer(node, one, _stored(node.inputs[0], one.inputs[0], seen), seen)
            else:
                layer = _layer(node, one, values[one.inputs[0]], recorded)
            for improvement in improvements:
                layer = improvement(layer)
            changed[node] = _with_own_constants(one, layer.stored, shared)
        nodes.append(one if node is None else changed.get(node, one))
        if isinstance(one.op, EndRepeat) and node is not None:
            pairs = zip(node.outputs, one.outputs, strict=True)
            values.update((after, _stored(before, after, recorded)) for before, after in pairs)
        elif one not in in_loops:
            values.update(_results(nodes[-1], one, values, len(recorded)))
        for tensor in one.inputs:
            if last[tensor] == number:
                values.pop(tensor, None)
    graph = replace(built.graph, nodes=tuple(nodes))
    return replace(built, graph=graph, nodes={**built.nodes, **changed})


def _stored(tensor: Tensor, one: Tensor, known: Sequence[Mapping[str, Array]]) -> Runs:
    """Return the values of a float tensor as integers have them."""
    return [stored(values[tensor.name], one.type) for values in known]


def _results(
    node: Node, one: Node, values: Mapping[Tensor, Runs], runs: int
) -> Iterator[tuple[Tensor, Runs]]:
    """Yield the outputs of a node, as it was before, with what it computes in each run."""
    results = [
        evaluate(node, [_of_run(tensor, values, run) for tensor in node.inputs])
        for run in range(runs)
    ]
    for place, tensor in enumerate(one.outputs):
        yield tensor, [result[place] for result in results]


def _with_own_constants(before: Node, after: Node, shared: Container[Tensor]) -> Node:
    """Return a changed node whose new constants have names of their own, where others read them."""
    inputs = [
        replace(new, name=f"{new.name}/{after.name}") if new is not old and old in shared else new
        for old, new in zip(before.inputs, after.inputs, strict=True)
    ]
    return replace(after, inputs=tuple(inputs))


def _of_run(tensor: Tensor, values: Mapping[Tensor, Runs], run: int) -> Array:
    return values[tensor][run] if tensor.data is None else tensor.data


def _has_weights(node: Node) -> bool:
    """Return whether weights and bias of a layer are constants."""
    has_axis = record_of(node.op).definition.quantization.weight_axis is not None
    return has_axis and len(node.inputs) == 3 and all(t.is_constant for t in node.inputs[1:])


def _layer(
    node: Node, one: Node, features: Runs, recorded: Sequence[Mapping[str, Array]]
) -> WeightedLayer:
    inputs = [real(x, one.inputs[0].type) for x in features]
    constants = [tensor.values for tensor in node.inputs[1:]]
    expected = [
        evaluate(linear(node), [run[node.inputs[0].name], *constants])[0] for run in recorded
    ]
    return WeightedLayer(node, one, inputs, expected)
