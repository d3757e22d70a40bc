"""Biases and roundings that make up for the errors of integers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microtir.graph.ir import Array, Node
from microtir.operators.common.attributes import Activation, Padding2D
from microtir.operators.convolution.definition import Conv2D, DepthwiseConv2D
from microtir.operators.dense.definition import FullyConnected
from microtir.quantise import Calibration, Quantised, QuantiseOptions, Width, quantise
from microtir.rewrite.reference import execute
from tests.support.float_networks import floats, image_samples, residual
from tests.support.graphs import constant, graph, node, tensor

NEAREST = QuantiseOptions(
    Width.WEIGHTS4, calibration=Calibration.MINMAX, correct_bias=False, rounding_work=0.0
)
KINDS = ("dense", "convolution", "groups", "depthwise", "two of a channel")


def _layer(kind: str, seed: int, activation: Activation) -> tuple[Node, dict[str, Array]]:
    """Return a layer of a random kind, and samples whose elements depend on each other."""
    op: FullyConnected | Conv2D | DepthwiseConv2D
    if kind == "dense":
        x, y = tensor("x", (1, 9)), tensor("y", (1, 5))
        weights = floats(seed, 5, 9)
        op = FullyConnected(activation=activation)
    else:
        x = tensor("x", (1, 5, 5, 4))
        same = Padding2D(1, 1, 1, 1)
        if kind in KINDS[3:]:
            multiplier = KINDS.index(kind) - 2
            shape = (1, 3, 3, 4 * multiplier)
            op = DepthwiseConv2D((1, 1), (1, 1), same, multiplier, activation)
        else:
            shape = (6, 3, 3, 2 if kind == "groups" else 4)
            op = Conv2D((1, 1), (1, 1), same, activation)
        weights = floats(seed, *shape)
        channels = shape[3] if kind in KINDS[3:] else shape[0]
        y = tensor("y", (1, 5, 5, channels))
    bias = constant("bias", floats(seed + 1, y.type.channels))
    layer = node(op, (x, constant("weights", weights), bias), y)
    # Neighbours are near each other, and channels follow two numbers.
    hidden = floats(seed + 3, 120, *x.shape[:-1], 2)
    for axis in range(2, hidden.ndim - 1):
        hidden = hidden.cumsum(axis=axis, dtype=np.float32)
    mixed = hidden @ floats(seed + 2, 2, x.type.channels)
    return layer, {"x": mixed + floats(seed + 4, *mixed.shape, spread=0.2)}


def _quantised(layer: Node, samples: dict[str, Array], **changes: object) -> Quantised:
    model = graph([layer], [layer.inputs[0]], list(layer.outputs))
    return quantise(model, samples, replace(NEAREST, **changes))  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=5, deadline=None)
@given(st.integers(0, 1000), st.sampled_from([Activation.NONE, Activation.RELU]))
def test_rounding_goes_one_way_or_the_other(kind: str, seed: int, act: Activation) -> None:
    """Each weight is one of the two integers beside the real one, which need not be the nearest."""
    layer, samples = _layer(kind, seed, act)
    result = _quantised(layer, samples, rounding_work=90.0)
    real, stored = layer.inputs[1], result.graph.nodes[0].inputs[1]
    assert stored.data is not None
    assert real.data is not None
    scales = np.array(stored.type.quant.scales)
    shape = [1] * real.data.ndim
    shape[3 if kind in KINDS[3:] else 0] = -1
    steps = np.abs(stored.data - real.data / scales.reshape(shape))
    assert steps.max() <= 1.0 + 1e-5
    assert np.abs(stored.data).max() <= 7


@pytest.mark.parametrize("kind", KINDS)
def test_rounding_lessens_the_error(kind: str) -> None:
    """On samples that nothing was fitted to, as a mean of several layers."""
    gains = []
    for seed in range(4):
        layer, samples = _layer(kind, 10 * seed, Activation.NONE)
        before = _quantised(layer, samples, correct_bias=True)
        after = _quantised(layer, samples, correct_bias=True, rounding_work=90.0)
        gains.append(after.layers[0].sqnr - before.layers[0].sqnr)
    assert np.mean(gains) > 1.0, gains


def test_rounding_is_bounded_by_work_that_sizes_tell() -> None:
    """Terms, channels and samples say what a layer takes; with less it is left alone."""
    layer, samples = _layer("dense", 3, Activation.NONE)
    nearest = _quantised(layer, samples)
    channels, terms = layer.inputs[1].shape
    runs = 32  # that are held
    work = terms**2 * (runs + 8 * 8 * channels) / 1e9
    for share, is_rounded in ((0.999, False), (1.001, True)):
        result = _quantised(layer, samples, rounding_work=work * share)
        weights = (r.graph.nodes[0].inputs[1].data for r in (nearest, result))
        assert np.array_equal(*weights) is not is_rounded  # type: ignore[arg-type]


def test_bias_takes_up_the_mean() -> None:
    """Inputs that have a mean make one of the errors of rounded weights."""
    layer, samples = _layer("convolution", 3, Activation.NONE)
    samples = {"x": samples["x"] + 5}
    before = _quantised(layer, samples)
    after = _quantised(layer, samples, correct_bias=True)
    assert after.layers[0].sqnr > before.layers[0].sqnr + 0.5


def test_a_layer_without_a_bias_gets_one() -> None:
    """The depthwise layer of the network has none in floats."""
    layer = residual().nodes[1]
    model = graph([layer], [layer.inputs[0]], [layer.output])
    assert len(layer.inputs) == 2
    for correct_bias, inputs in ((True, 3), (False, 2)):
        options = replace(NEAREST, width=Width.INT8, correct_bias=correct_bias)
        result = quantise(model, {"a": floats(0, 8, 1, 8, 8, 6)}, options)
        assert len(result.graph.nodes[0].inputs) == inputs


def test_networks_gain_from_both() -> None:
    """Four bits of weights come near to eight."""
    samples = image_samples(60)
    nearest = quantise(residual(), samples, NEAREST)
    improved = quantise(
        residual(), samples, replace(NEAREST, correct_bias=True, rounding_work=90.0)
    )
    gain = [b.sqnr - a.sqnr for a, b in zip(nearest.layers, improved.layers, strict=True)]
    assert np.mean(gain) > 3.0


def test_channels_of_unlike_size_are_equalised() -> None:
    """A channel of a hundredth of the others is stored in as many steps, and results are real.

    The layer before a depthwise one takes the factors, and has another output than in the file.
    """
    x, hidden, y = (tensor(name, (1, 6, 6, 4)) for name in ("x", "hidden", "y"))
    sizes = np.array([1.0, 0.01, 0.3, 0.02], np.float32)
    weights = constant("w", floats(1, 4, 1, 1, 4) * sizes[:, None, None, None])
    depthwise = constant("d", floats(2, 1, 3, 3, 4) / sizes)
    model = graph(
        [
            node(Conv2D(activation=Activation.RELU), (x, weights), hidden),
            node(DepthwiseConv2D(padding=Padding2D(1, 1, 1, 1)), (hidden, depthwise), y),
        ],
        [x],
        [y],
    )
    options = replace(NEAREST, width=Width.INT8, equalise=False)
    samples = {"x": floats(3, 20, 1, 6, 6, 4)}
    before, after = (
        quantise(model, samples, replace(options, equalise=equalise)) for equalise in (False, True)
    )
    assert after.layers[1].sqnr > before.layers[1].sqnr + 10.0
    one = {"x": samples["x"][0]}
    expected, actual = (execute(g, one)["y"] for g in (model, after.floats_graph))
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)
