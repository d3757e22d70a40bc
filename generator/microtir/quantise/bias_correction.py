"""Let biases take up the mean errors of their layers.

Weights and activations are rounded to nearest, but what that comes to in the sums of a channel has
a mean, which all pixels share; the layers behind would add it up.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from microtir.graph.ir import Array
from microtir.quantise.layerwise import WeightedLayer

_LARGEST = float(2**31 - 1)  # bias


def with_corrected_bias(layer: WeightedLayer) -> WeightedLayer:
    """Return a layer whose bias makes up for the mean error of each channel.

    Only where half of the runs gives a mean that makes the squared error of the other half smaller,
    after the activation: a mean of few pixels is one of noise.
    """
    if len(layer.inputs) < 2:
        return layer
    bias = layer.stored.inputs[2]
    scales = np.array(bias.type.quant.scales, np.float64)
    before = layer.sums()
    errors = [e.astype(np.float64) - a for e, a in zip(layer.expected, before, strict=True)]
    tried = np.rint(_by_channel(errors[::2]) / scales) * scales
    other = range(1, len(errors), 2)
    after = [before[run] + tried for run in other]
    is_better = _squared(layer, other, after) < _squared(layer, other, [before[r] for r in other])
    steps = np.where(is_better, np.rint(_by_channel(errors) / scales), 0.0)
    moved = bias.values.astype(np.float64) + steps
    return layer.with_constants(None, np.clip(moved, -_LARGEST, _LARGEST))


def _squared(layer: WeightedLayer, runs: Sequence[int], sums: Sequence[Array]) -> Array:
    """Return the mean squared error of each channel in some runs, after the activation."""
    clamped = ((layer.clamped(layer.expected[run]), layer.clamped(s)) for run, s in
               zip(runs, sums, strict=True))  # fmt: skip
    return _by_channel([np.square(expected - actual) for expected, actual in clamped])


def _by_channel(runs: Sequence[Array]) -> Array:
    """Return the mean of each channel over all runs."""
    rows = [run.reshape(-1, run.shape[-1]).astype(np.float64) for run in runs]
    return np.asarray(np.concatenate(rows).mean(axis=0))
