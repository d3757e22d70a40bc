"""Bounds of sums hold for every input and every order of the terms."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microtir.dtype import DType
from microtir.graph.ir import Node, SumRange
from microtir.graph.operator import Operator
from microtir.operators.activations.definition import Relu
from microtir.operators.arithmetic.definition import Add, Mul, Sub
from microtir.operators.common.attributes import Padding2D
from microtir.operators.common.fixed_point import INT32_MAX, INT32_MIN, Ints
from microtir.operators.convolution.definition import Conv2D, DepthwiseConv2D
from microtir.operators.dense.definition import FullyConnected
from microtir.operators.pooling.definition import AveragePool2D
from microtir.operators.reduction.definition import Mean
from microtir.operators.softmax.definition import Softmax
from microtir.rewrite.facts.channel_ranges import channel_ranges
from microtir.rewrite.facts.sums import fits, sums_of
from microtir.rewrite.optimise import BoundSums
from tests.support.graphs import constant, graph, node, per_channel, quant, tensor

I8 = DType.INT8


def dense(weights: Ints, bias: Ints, zero_point: int = 0) -> Node:
    """A fully connected layer; weights (O, I)."""
    outputs, inputs = weights.shape
    x = tensor("x", (1, inputs), I8, quant(0.5, zero_point))
    w = constant("w", weights.astype(np.int8), per_channel([0.01] * outputs, 0))
    b = constant("b", bias.astype(np.int32))
    return node(FullyConnected(), (x, w, b), tensor("y", (1, outputs), I8, quant(1.0)))


def within(values: Ints, sums: SumRange) -> bool:
    """Whether all values lie within the bounds."""
    return sums.low <= int(values.min()) and int(values.max()) <= sums.high


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**31), st.integers(-128, 127), st.integers(1, 20))
def test_partial_sums_stay_within(seed: int, zero_point: int, inputs: int) -> None:
    """Terms in random order, inputs at random or extreme, either form of the zero point."""
    rng = np.random.default_rng(seed)
    weights = rng.integers(-128, 128, (3, inputs))
    bias = rng.integers(-(10**6), 10**6, 3)
    sums = sums_of(dense(weights, bias, zero_point))
    assert sums is not None
    for pick in (rng.integers(-128, 128, inputs), rng.choice([-128, 127], inputs)):
        order = rng.permutation(inputs)
        centred = np.cumsum((weights * (pick - zero_point))[:, order], axis=1)
        stored = np.cumsum((weights * pick)[:, order], axis=1)
        folded = bias - zero_point * weights.sum(axis=1)
        assert within(centred + bias[:, None], sums)
        assert within(centred, sums)
        assert within(stored + folded[:, None], sums)
        assert within(stored, sums)


def test_bounds_are_reached() -> None:
    """Some input and order of the terms meets both ends, so the proof gives nothing away."""
    weights, bias = np.array([[3, -5, 7]]), np.array([11])
    sums = sums_of(dense(weights, bias))
    assert sums == SumRange((3 + 7) * -128 + -5 * 127, 11 + (3 + 7) * 127 + 5 * 128)


@pytest.mark.parametrize(("room", "expected"), [(0, True), (-1, False)])
def test_the_last_sum_that_fits(room: int, expected: bool) -> None:
    """A bias that takes the largest sum to the last value of int32, and one beyond."""
    largest = 2 * 128 * 128
    weights = np.full((1, 2), -128)
    assert fits(dense(weights, np.array([INT32_MAX - largest - room]))) is expected
    smallest = 2 * 128 * 127
    assert fits(dense(weights, np.array([INT32_MIN + smallest + room]))) is expected


def convolution(op: Operator, weights: Ints, channels: int, outputs: int, size: int = 4) -> Node:
    """Of either kind, with padding that keeps the size."""
    x = tensor("x", (1, size, size, channels), I8, quant(0.5, 7))
    axis = 3 if isinstance(op, DepthwiseConv2D) else 0
    w = constant("w", weights.astype(np.int8), per_channel([0.01] * outputs, axis))
    b = constant("b", np.arange(outputs, dtype=np.int32) * 1000)
    return node(op, (x, w, b), tensor("y", (1, size, size, outputs), I8, quant(1.0, -128)))


@pytest.mark.parametrize("multiplier", [1, 2])
def test_depthwise_counts_the_taps_of_one_channel(multiplier: int) -> None:
    """Its sums are as small as they are: other channels add nothing."""
    weights = np.random.default_rng(0).integers(-128, 128, (1, 3, 3, 4 * multiplier))
    op = DepthwiseConv2D(padding=Padding2D(1, 1, 1, 1), depth_multiplier=multiplier)
    sums = sums_of(convolution(op, weights, 4, 4 * multiplier))
    assert sums is not None
    most = 9 * 255 * 128 + 7000
    assert -most <= sums.low < 0 < sums.high <= most


def test_what_the_inputs_hold_narrows_the_bounds() -> None:
    """Behind a ReLU half of the values is missing; analysis of the graph knows."""
    weights = np.random.default_rng(0).integers(-128, 128, (3, 3, 3, 4))
    conv = convolution(Conv2D(padding=Padding2D(1, 1, 1, 1)), weights, 4, 3)
    x = tensor("i", conv.inputs[0].shape, I8, conv.inputs[0].type.quant)
    relu = node(Relu(), (x,), conv.inputs[0])
    g = BoundSums()(graph([relu, conv], [x], [conv.output]))
    assert channel_ranges(g)[conv.inputs[0]].low.min() == 7
    alone, known = sums_of(conv), g.nodes[1].sums
    assert alone is not None and known is not None
    assert alone.low < known.low and known.high < alone.high
    assert g.nodes[0].sums is None


def test_sums_of_other_operators() -> None:
    """Widened operands of additions, products, counts of averages, powers of a softmax."""
    x = tensor("x", (1, 8, 8, 3), I8, quant(0.5, -128))
    z = tensor("z", (1, 8, 8, 3), I8, quant(0.25, 127))
    y = tensor("y", (1, 8, 8, 3), I8, quant(1.0))
    for op in (Add(), Sub()):
        sums = sums_of(node(op, (x, z), y))
        assert sums is not None and sums.fits
        assert sums.high >= 255 << 20 and sums.low <= -(255 << 20)
    assert sums_of(node(Mul(), (x, z), y)) == SumRange(-255 * 255, 0)
    pool = tensor("p", (1, 1, 1, 3), I8, quant(0.5, -128))
    assert sums_of(node(AveragePool2D((8, 8), (8, 8)), (x,), pool)) == SumRange(
        -64 * 128 - 32, 64 * 127 + 32
    )
    mean = sums_of(node(Mean(axes=(1, 2)), (x,), tensor("m", (1, 3), I8, quant(0.5))))
    assert mean == SumRange(-64 * 128 - 32, 64 * 255 + 32)


@pytest.mark.parametrize(("classes", "expected"), [(4095, True), (4096, False)])
def test_a_softmax_of_4096_equal_classes_is_too_large(classes: int, expected: bool) -> None:
    """Each adds 2^19."""
    x, y = (tensor(n, (1, classes), I8, quant(1 / 256, -128)) for n in "xy")
    assert fits(node(Softmax(), (x,), y)) is expected


def test_floats_have_no_bounds() -> None:
    """They cannot overflow into nonsense."""
    x, y = (tensor(n, (1, 4)) for n in "xy")
    assert sums_of(node(Add(), (x, x), y)) is None
    assert fits(node(Add(), (x, x), y))


def test_ranges_of_sums_that_wrap_are_full() -> None:
    """Where order is lost nothing is known about the output."""
    layer = dense(np.full((1, 2), -128), np.array([INT32_MAX]))
    ranges = channel_ranges(graph([layer], [layer.inputs[0]], [layer.output]))
    found = ranges[layer.output]
    assert (found.low.tolist(), found.high.tolist()) == ([-128], [127])
