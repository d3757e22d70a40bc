"""Round weights to the integers with which the sums of a layer are nearest, not to the nearest.

The error of a channel's sums is a quadratic form of the errors of its weights, with the moments of
the layer's inputs. It is lessened weight by weight: one that is rounded up is tried rounded down,
and the other way round, as long as that helps. That is the objective of AdaRound (Nagel et al.,
2020); it is not relaxed, since a layer of a small network has few enough weights.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from microtir.graph.ir import Array, Node
from microtir.operators.common.arrays import taps
from microtir.operators.convolution.definition import Conv2D, DepthwiseConv2D, groups_of
from microtir.operators.dense.definition import FullyConnected
from microtir.quantise.constants import Doubles
from microtir.quantise.layerwise import WeightedLayer

_MOST_SWEEPS = 8
_MOST_ROWS = 4096  # of inputs of each run
_MOST_TERMS = 2500  # of a sum
_UNKNOWN = 4  # every fourth run decides whether it was worth it
_SLOPE_WORK = 8  # operations that one of a slope counts as: memory bounds it, not arithmetic
_DAMPING = 0.01  # of the mean moment: what the samples do not show is near the nearest integer


@dataclass(slots=True)
class AdaptiveRounding:
    """Rounds the weights of layers, in their order, as long as there is work left for it.

    Work is counted from the sizes of a layer and not timed, so that results are those of any
    machine.  A layer that takes more than is left is passed over.

    Args:
        left: billions of operations.
    """

    left: float

    def __call__(self, layer: WeightedLayer) -> WeightedLayer:
        """Return a layer with other weights; itself where it has no form that is known here."""
        node = layer.node
        if len(layer.inputs) < 2 or not isinstance(
            node.op, Conv2D | DepthwiseConv2D | FullyConnected
        ):
            return layer
        groups, channels, terms = _to_groups(node.inputs[1].values, node).shape
        rows = sum(min(e.size // e.shape[-1], _MOST_ROWS) for e in layer.expected)
        work = groups * terms**2 * (rows + _SLOPE_WORK * _MOST_SWEEPS * channels) / 1e9
        if terms > _MOST_TERMS or work > self.left:
            return layer
        self.left -= work
        problem = _problem(layer)
        rounded = layer.with_constants(_from_groups(_solved(problem), layer.node), None)
        return rounded if _error(rounded) < _error(layer) else layer


def _error(layer: WeightedLayer) -> float:
    """Return the variance of the error of sums in the runs that the problem does not know."""
    sums = zip(layer.expected[::_UNKNOWN], layer.sums()[::_UNKNOWN], strict=True)
    errors = [(e.astype(np.float64) - a).reshape(-1, e.shape[-1]) for e, a in sums]
    return float(np.concatenate(errors).var(axis=0).sum())


@dataclass(frozen=True, slots=True, eq=False)
class _Problem:
    """The quadratic form of a layer, by groups of channels that see the same inputs.

    Attributes:
        moments: of the inputs, (groups, terms, terms).
        wanted: of the inputs with the sums that are expected, (groups, channels, terms).
        scales: of the weights, (groups, channels, 1).
        real: weights of the float graph, (groups, channels, terms).
        stored: integers to begin with, of that shape.
        most: the largest stored weight.
    """

    moments: Doubles
    wanted: Doubles
    scales: Doubles
    real: Doubles
    stored: Doubles
    most: int


def _problem(layer: WeightedLayer) -> _Problem:
    """Return the problem of a layer."""
    node, weights = layer.node, layer.stored.inputs[1]
    reals, integers = (_to_groups(t.values, node) for t in (node.inputs[1], weights))
    groups, channels, terms = reals.shape
    scales = np.broadcast_to(np.array(weights.type.quant.scales), groups * channels)
    rows, sums = _rows_and_sums(layer, groups)
    rows, sums = (x - x.mean(axis=1, keepdims=True) for x in (rows, sums))
    moments = np.einsum("grk,grl->gkl", rows, rows, optimize=True) / rows.shape[1]
    wanted = np.einsum("gro,grk->gok", sums, rows, optimize=True) / rows.shape[1]
    damping = _DAMPING * np.einsum("gkk->g", moments)[:, np.newaxis, np.newaxis] / terms
    moments = moments + damping * np.eye(terms)
    wanted = wanted + damping * reals
    most = int(np.abs(integers).max(initial=1))
    shape = groups, channels, 1
    return _Problem(moments, wanted, scales.reshape(shape), reals, integers, most)


def _solved(problem: _Problem) -> Doubles:
    """Return the integers, each of the two around its real weight, that lessen the error."""
    ends = np.floor(problem.real / problem.scales), np.ceil(problem.real / problem.scales)
    low, high = (np.clip(end, -problem.most, problem.most) for end in ends)
    integers = np.clip(problem.stored, low, high)
    slope = (integers * problem.scales) @ problem.moments - problem.wanted
    for _ in range(_MOST_SWEEPS):
        flips = 0
        for term in range(integers.shape[-1]):
            step = np.where(integers[..., term] == low[..., term], 1.0, -1.0)
            step = np.where(low[..., term] == high[..., term], 0.0, step)
            change = step * problem.scales[..., 0]
            curve = problem.moments[:, term, term][:, np.newaxis]
            gain = change * slope[..., term] + change * change * curve / 2
            change = np.where(gain < 0, change, 0.0)
            if change.any():
                flips += int(np.count_nonzero(change))
                integers[..., term] += np.where(gain < 0, step, 0.0)
                slope += change[..., np.newaxis] * problem.moments[:, np.newaxis, term, :]
        if flips == 0:
            break
    return integers


def _rows_and_sums(layer: WeightedLayer, groups: int) -> tuple[Doubles, Doubles]:
    """Return what sums are of, (groups, rows, terms), and the sums, (groups, rows, channels)."""
    rows, sums = [], []
    for run, (x, expected) in enumerate(zip(layer.inputs, layer.expected, strict=True)):
        if run % _UNKNOWN == 0:
            continue
        terms = _terms(layer.node, x.astype(np.float64), groups)
        results = expected.reshape(-1, groups, expected.shape[-1] // groups).astype(np.float64)
        step = -(-terms.shape[1] // _MOST_ROWS)
        rows.append(terms[:, ::step])
        sums.append(results.transpose(1, 0, 2)[:, ::step])
    return np.concatenate(rows, axis=1), np.concatenate(sums, axis=1)


def _terms(node: Node, x: Doubles, groups: int) -> Doubles:
    weights = node.inputs[1]
    if isinstance(node.op, FullyConnected):
        return x.reshape(1, -1, weights.shape[1])
    op = node.attributes(Conv2D, DepthwiseConv2D)
    window = (weights.shape[1], weights.shape[2])
    under = taps(x, node, window, op.strides, op.dilations, op.padding, 0.0)
    split = under.reshape(-1, under.shape[3], groups, under.shape[4] // groups)
    return np.ascontiguousarray(split.transpose(2, 0, 1, 3)).reshape(groups, len(split), -1)


def _to_groups(weights: Array, node: Node) -> Doubles:
    """Return weights as (groups, channels, terms)."""
    values = weights.astype(np.float64)
    if isinstance(node.op, DepthwiseConv2D):
        by_term = values.reshape(-1, node.inputs[0].shape[3], node.op.depth_multiplier)
        return np.ascontiguousarray(by_term.transpose(1, 2, 0))
    groups = groups_of(node) if isinstance(node.op, Conv2D) else 1
    return values.reshape(groups, len(values) // groups, -1)


def _from_groups(values: Doubles, node: Node) -> Array:
    """Return weights in the shape of the layer."""
    shape = node.inputs[1].shape
    if isinstance(node.op, DepthwiseConv2D):
        return np.asarray(values.transpose(2, 0, 1).reshape(shape))
    return np.asarray(values.reshape(shape))
