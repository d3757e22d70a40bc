"""Move factors between a layer and a depthwise one, so that channels use the same range.

What a channel is multiplied by before an activation that keeps factors, the weights behind it may
be divided by. A channel of small values, which one scale for all would store in a few steps, gets
more of them; the weights of a depthwise layer have a scale for each channel anyway. Layers whose
weights mix channels under one scale lose there what they gain here, so that they are left alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Array, Graph, Node, Tensor, TensorType
from microtir.graph.rewriting import constant, with_nodes
from microtir.operators.common.attributes import Activation
from microtir.operators.convolution.definition import Conv2D, DepthwiseConv2D
from microtir.operators.dense.definition import FullyConnected
from microtir.quantise.constants import Doubles, by_channel, real_values
from microtir.quantise.layerwise import activation_of
from microtir.quantise.options import QuantiseOptions, Width
from microtir.quantise.ranges import affine
from microtir.quantise.runs import real, stored
from microtir.rewrite.reference import evaluate

_LARGEST_FACTOR = 64.0
_WORTH = 0.8  # of the error
_LAYERS = (Conv2D, DepthwiseConv2D, FullyConnected)
_KEEPS_FACTORS = (Activation.NONE, Activation.RELU)
_NARROW = (Width.INT8, Width.WEIGHTS4)


def equalised(
    graph: Graph, recorded: Sequence[Mapping[str, Array]], options: QuantiseOptions
) -> Graph:
    """Return a float graph of the same results whose channels have ranges of more equal size.

    Factors move where that lessens the error that int8 inputs make in the depthwise layer by a
    fifth or more. Activations of 16 bits have steps enough for all channels.

    Args:
        graph: of floats, prepared.
        recorded: the values of some runs, by name.
        options: which say how wide layers are.
    """
    nodes = list(graph.nodes)
    places = {node.output: n for n, node in enumerate(nodes) if len(node.outputs) == 1}
    numbers = {node: number for number, node in enumerate(graph.nodes)}
    for tensor, readers in graph.consumers().items():
        if tensor not in places or tensor in graph.outputs or len(readers) != 1:
            continue
        first, second = places[tensor], numbers[readers[0]]
        before, behind = nodes[first], nodes[second]
        if not _can_give(before) or not _can_take(behind, tensor):
            continue
        if any(options.width_of(node.name) not in _NARROW for node in (before, behind)):
            continue
        values = [run[tensor.name].astype(np.float64) for run in recorded]
        factors = _factors(values)
        moved = _divided(behind, factors)
        if _error(moved, [x * factors for x in values]) < _WORTH * _error(behind, values):
            nodes[first], nodes[second] = _multiplied(before, factors), moved
    return with_nodes(graph, nodes)


def _can_give(node: Node) -> bool:
    """Return whether a factor of a channel may go into the weights of a layer."""
    return (
        isinstance(node.op, _LAYERS)
        and activation_of(node) in _KEEPS_FACTORS
        and node.output.dtype is DType.FLOAT32
        and all(_is_real_constant(tensor) for tensor in node.inputs[1:])
    )


def _can_take(node: Node, tensor: Tensor) -> bool:
    """Return whether each weight of a layer belongs to one channel of a tensor, its input."""
    is_depthwise = isinstance(node.op, DepthwiseConv2D) and node.inputs[0] is tensor
    return is_depthwise and all(_is_real_constant(other) for other in node.inputs[1:])


def _is_real_constant(tensor: Tensor) -> bool:
    return tensor.is_constant and tensor.dtype is DType.FLOAT32


def _factors(values: Sequence[Array]) -> Doubles:
    """Return the factors that give all channels the largest range, as far as they go."""
    rows = np.concatenate([np.abs(x).reshape(-1, x.shape[-1]) for x in values])
    largest = rows.max(axis=0).astype(np.float64)
    whole = np.full_like(largest, largest.max(initial=0.0))
    factors = np.divide(whole, largest, out=np.ones_like(largest), where=largest > 0)
    return np.asarray(np.minimum(factors, _LARGEST_FACTOR), np.float64)


def _multiplied(node: Node, factors: Doubles) -> Node:
    """Return a layer whose results are multiplied, channel by channel."""
    axis = 3 if isinstance(node.op, DepthwiseConv2D) else 0
    weights = real_values(node.inputs[1])
    changed = [weights * by_channel(weights, axis, factors)]
    changed += [real_values(bias) * factors for bias in node.inputs[2:]]
    pairs = zip(node.inputs[1:], changed, strict=True)
    constants = (constant(tensor.name, tensor.type, values) for tensor, values in pairs)
    return replace(node, inputs=(node.inputs[0], *constants))


def _divided(node: Node, factors: Doubles) -> Node:
    """Return a depthwise layer whose weights are divided by the factors of its inputs."""
    of_outputs = np.repeat(factors, node.attributes(DepthwiseConv2D).depth_multiplier)
    weights = node.inputs[1]
    divided = constant(weights.name, weights.type, real_values(weights) / of_outputs)
    return replace(node, inputs=(node.inputs[0], divided, *node.inputs[2:]))


def _error(node: Node, values: Sequence[Doubles]) -> float:
    """Return the squared error that inputs in int8 make in the results of a layer."""
    quant = affine(min(x.min() for x in values), max(x.max() for x in values), DType.INT8)
    type_ = TensorType(node.inputs[0].shape, DType.INT8, quant)
    constants = [tensor.values for tensor in node.inputs[1:]]
    error = 0.0
    for x in values:
        expected = evaluate(node, [x, *constants])[0].astype(np.float64)
        actual = evaluate(node, [real(stored(x, type_), type_), *constants])[0]
        error += float(np.square(expected - actual).sum())
    return error
