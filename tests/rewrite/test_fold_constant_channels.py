"""Channels proven constant disappear, and no output changes by a bit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microtir.dtype import DType
from microtir.graph.ir import Array, Graph, Node, Tensor
from microtir.graph.operator import Operator
from microtir.operators.activations.definition import Relu
from microtir.operators.arithmetic.definition import Add
from microtir.operators.common.attributes import Activation, Padding2D, Rescaling
from microtir.operators.conversion.definition import Dequantize
from microtir.operators.convolution.definition import Conv2D, DepthwiseConv2D
from microtir.operators.dense.definition import FullyConnected
from microtir.operators.movement.definition import Reshape
from microtir.operators.pooling.definition import AveragePool2D, MaxPool2D
from microtir.operators.reduction.definition import Mean
from microtir.rewrite.facts.channel_ranges import channel_ranges
from microtir.rewrite.facts.macs import macs
from microtir.rewrite.optimise import FoldConstantChannels
from microtir.rewrite.reference import execute
from microtir.rewrite.verify import verify
from tests.support.graphs import constant, graph, node, per_channel, quant, tensor

I8 = DType.INT8
SAME = Padding2D(1, 1, 1, 1)


class Net:
    """Builds a chain of int8 layers whose channels in `dead` have a bias that keeps them shut."""

    def __init__(self, seed: int, channels: int = 4, size: int = 5) -> None:
        self.rng = np.random.default_rng(seed)
        self.input = tensor("x", (1, size, size, channels), I8, quant(0.05, 3))
        self.last = self.input
        self.nodes: list[Node] = []

    def _append(
        self, op: Operator, inputs: Sequence[Tensor], shape: Sequence[int], zero: int,
        scale: float = 0.05,
    ) -> None:  # fmt: skip
        y = tensor(f"t{len(self.nodes)}", shape, I8, quant(scale, zero))
        self.nodes.append(node(op, inputs, y))
        self.last = y

    def _constants(
        self, shape: tuple[int, ...], axis: int, dead: Sequence[int], shut: int
    ) -> list[Tensor]:
        outputs = shape[axis]
        weights = self.rng.integers(-20, 21, shape).astype(np.int8)
        bias = self.rng.integers(-500, 500, outputs).astype(np.int32)
        bias[list(dead)] = shut
        scales = per_channel([0.01] * outputs, axis)
        number = len(self.nodes)
        return [constant(f"w{number}", weights, scales), constant(f"b{number}", bias)]

    def conv(self, outputs: int, taps: int, dead: Sequence[int] = (), *, zero: int = -128,
             padding: Padding2D | None = None, shut: int = -1_000_000) -> Net:  # fmt: skip
        _, h, w, c = self.last.shape
        pad = Padding2D() if padding is None else padding
        constants = self._constants((outputs, taps, taps, c), 0, dead, shut)
        shape = (
            1,
            h + pad.top + pad.bottom - taps + 1,
            w + pad.left + pad.right - taps + 1,
            outputs,
        )
        op = Conv2D(padding=pad, activation=Activation.RELU)
        self._append(op, (self.last, *constants), shape, zero)
        return self

    def depthwise(self, multiplier: int = 1, dead: Sequence[int] = ()) -> Net:
        _, h, w, c = self.last.shape
        constants = self._constants((1, 3, 3, c * multiplier), 3, dead, -1_000_000)
        op = DepthwiseConv2D(padding=SAME, depth_multiplier=multiplier, activation=Activation.RELU)
        self._append(op, (self.last, *constants), (1, h, w, c * multiplier), -128)
        return self

    def pool(self, op: type[AveragePool2D | MaxPool2D]) -> Net:
        _, h, w, c = self.last.shape
        quantization = self.last.type.quant.zero_point
        self._append(op((2, 2), (2, 2)), (self.last,), (1, h // 2, w // 2, c), quantization)
        return self

    def mean(self, op: AveragePool2D | Mean, scale: float) -> Net:
        """Append the mean of all pixels at a scale of its own."""
        c = self.last.shape[-1]
        shape = (1, 1, 1, c) if isinstance(op, AveragePool2D) or op.keep_dims else (1, c)
        self._append(op, (self.last,), shape, -128, scale)
        return self

    def dense(self, outputs: int) -> Net:
        flat = (1, math.prod(self.last.shape))
        kept = self.last.type.quant
        self._append(Reshape(), (self.last,), flat, kept.zero_point, kept.scale)
        constants = self._constants((outputs, flat[1]), 0, (), 0)
        self._append(FullyConnected(), (self.last, *constants), (1, outputs), 0)
        return self

    def graph(self) -> Graph:
        return graph(self.nodes, [self.input], [self.last])


def work(g: Graph) -> int:
    """Multiply-accumulates of a graph."""
    return sum(macs(n) for n in g.nodes)


def check(before: Graph, samples: int = 4) -> Graph:
    """Fold; both graphs are well formed and agree on random inputs and on the extremes."""
    verify(before)
    after = FoldConstantChannels()(before)
    verify(after)
    rng = np.random.default_rng(0)
    (x,) = before.inputs
    data: list[Array] = [np.full(x.shape, v, np.int8) for v in (-128, 127)]
    data += [rng.integers(-128, 128, x.shape).astype(np.int8) for _ in range(samples)]
    for value in data:
        want, got = execute(before, {"x": value}), execute(after, {"x": value})
        for name, array in want.items():
            np.testing.assert_array_equal(got[name], array)
    return after


def test_a_dead_channel_leaves_both_sides() -> None:
    """Producer and consumer lose the channel, and the work shrinks in both."""
    before = Net(1).conv(6, 3, dead=(1, 4), padding=SAME).conv(3, 1).graph()
    after = check(before)
    assert after.nodes[0].output.shape[-1] == 4
    assert after.nodes[1].inputs[1].shape == (3, 1, 1, 4)
    assert work(after) == work(before) * 4 // 6
    assert [n.source.macs for n in after.nodes] == [macs(n) for n in before.nodes]


def test_a_chain_of_depthwise_and_pools_loses_it_as_well() -> None:
    """A constant channel stays constant through channel-wise operators."""
    net = Net(2, size=8).conv(6, 3, dead=(0, 3, 5), padding=SAME).depthwise(dead=(0, 3, 5))
    after = check(net.pool(MaxPool2D).pool(AveragePool2D).conv(2, 1).graph())
    assert [n.output.shape[-1] for n in after.nodes] == [3, 3, 3, 3, 2]


@pytest.mark.parametrize("rescaling", [Rescaling.FIXED_POINT, Rescaling.FLOAT32])
@pytest.mark.parametrize("keep_dims", [False, True])
def test_the_mean_of_an_image_loses_it_as_well(rescaling: Rescaling, keep_dims: bool) -> None:
    """A mean of another scale is constant where its channel is, however it is rescaled."""
    op = Mean(axes=(1, 2), keep_dims=keep_dims, rescaling=rescaling)
    net = Net(3).conv(6, 3, dead=(0, 3), padding=SAME).mean(op, 0.011)
    assert check(net.dense(2).graph()).nodes[0].output.shape[-1] == 4


def test_an_average_pool_of_another_scale_loses_it_as_well() -> None:
    """Rescaled in float32, the mean of one value depends on how many there are."""
    op = AveragePool2D((5, 5), (1, 1), rescaling=Rescaling.FLOAT32)
    net = Net(4).conv(6, 3, dead=(1,), padding=SAME).mean(op, 0.013)
    assert check(net.dense(2).graph()).nodes[0].output.shape[-1] == 5


def test_a_mean_of_channels_keeps_all_of_them() -> None:
    """What is made of all channels needs each."""
    net = Net(5).conv(6, 3, dead=(1,), padding=SAME)
    y = tensor("y", (1, 5, 5), I8, quant(0.05, -128))
    net.nodes.append(node(Mean(axes=(3,)), (net.last,), y))
    net.last = y
    assert check(net.graph()).nodes[0].output.shape[-1] == 6


def test_another_value_than_the_padding_folds_where_no_window_leaves_the_image() -> None:
    """The constant goes into the bias: 7 above the zero point is no zero, yet always the same."""
    before = Net(3).conv(5, 3, dead=(2,), zero=-100, shut=1_000_000).conv(4, 3).graph()
    after = check(before)
    assert after.nodes[0].output.shape[-1] == 4


def test_another_value_than_the_padding_stays_under_padding() -> None:
    """At a clipped border the share of the channel differs, so one bias cannot hold it."""
    before = (
        Net(4).conv(5, 3, dead=(2,), zero=-100, shut=1_000_000).conv(4, 3, padding=SAME).graph()
    )
    assert check(before) is before


def test_a_depth_multiplier_keeps_the_input_that_any_output_needs() -> None:
    """Output channels 2 and 3 read input channel 1: it goes only if both do."""
    both = check(Net(5).conv(3, 1).depthwise(2, dead=(2, 3)).conv(2, 1).graph())
    assert both.nodes[1].output.shape[-1] == 4
    one = check(Net(5).conv(3, 1).depthwise(2, dead=(2,)).conv(2, 1).graph())
    assert one.nodes[1].output.shape[-1] == 6


def test_flattened_pixels_lose_their_columns() -> None:
    """Through a reshape to (1, H*W*C), each pixel's column of the channel goes."""
    after = check(Net(6, size=4).conv(4, 3, dead=(1,)).dense(5).graph())
    assert after.nodes[-1].inputs[1].shape == (5, 2 * 2 * 3)


def test_a_bias_at_the_end_of_int32_takes_a_share() -> None:
    """The sums wrap with the share in their bias as they did without."""
    net = Net(12).conv(4, 1, dead=(1,), zero=-100, shut=1_000_000).conv(3, 1)
    weights, bias = net.nodes[1].inputs[1:]
    huge = constant("huge", np.array([2**31 - 1, -(2**31), 2**31 - 9000], np.int32))
    net.nodes[1] = replace(net.nodes[1], inputs=(net.nodes[1].inputs[0], weights, huge))
    assert bias.shape == huge.shape
    assert check(net.graph()).nodes[1].inputs[1].shape == (3, 1, 1, 3)


def test_a_tensor_keeps_one_channel() -> None:
    """Where everything is constant, one channel stays, so that every shape is legal."""
    after = check(Net(7).conv(3, 3, dead=(0, 1, 2)).conv(2, 1).graph())
    assert after.nodes[0].output.shape[-1] == 1


def test_outputs_of_the_model_keep_their_channels() -> None:
    """What the caller sees does not change shape."""
    before = Net(8).conv(4, 3, dead=(1,)).graph()
    assert check(before) is before


def test_a_branch_in_floats_that_nobody_reads_stays_whole() -> None:
    """Nobody needs its channels, and they have no zero point that could move into a bias."""
    net = Net(10).conv(4, 3, dead=(1,), padding=SAME)
    x, y = tensor("floats", net.last.shape), tensor("unread", net.last.shape)
    filters = constant("filters", np.ones((4, 1, 1, 4), np.float32))
    nodes = [*net.nodes, node(Dequantize(), (net.last,), x), node(Conv2D(), (x, filters), y)]
    before = graph(nodes, [net.input], [net.last])
    assert check(before) is before


def test_a_scalar_is_one_channel() -> None:
    """A reshape and a dense layer that read a scalar were an IndexError."""
    x, row = tensor("x", (), I8, quant(0.05, 3)), tensor("row", (1, 1), I8, quant(0.05, 3))
    y = tensor("y", (1, 2), I8, quant(0.05))
    weights = constant("w", np.array([[3], [-4]], np.int8), quant(0.5))
    net = graph([node(Reshape(), [x], row), node(FullyConnected(), [x, weights], y)], [x], [row, y])
    assert FoldConstantChannels()(net) is net


def test_other_readers_keep_a_channel() -> None:
    """ADD and RELU are not rewritten, so what they read keeps all its channels."""
    net = Net(9).conv(4, 3, dead=(1,), padding=SAME)
    first = net.last
    net.conv(4, 1)
    y = tensor("sum", first.shape, I8, quant(0.05, -128))
    nodes = [*net.nodes, node(Add(), (first, net.last), y)]
    z = tensor("relu", first.shape, I8, quant(0.05, -128))
    nodes.append(node(Relu(), (y,), z))
    before = graph(nodes, [net.input], [z])
    assert check(before) is before


@settings(max_examples=60)
@given(st.data())
def test_random_chains_keep_every_bit(data: st.DataObject) -> None:
    """Random nets with random dead channels, pools, multipliers and paddings."""
    net = Net(data.draw(st.integers(0, 2**16)), channels=data.draw(st.integers(1, 3)), size=8)
    for _ in range(data.draw(st.integers(1, 4))):
        channels = data.draw(st.integers(1, 5))
        dead = data.draw(st.lists(st.integers(0, channels - 1), unique=True))
        shut = data.draw(st.sampled_from([-1_000_000, 1_000_000]))
        padding = data.draw(st.sampled_from([SAME, None]))
        taps = 3 if min(net.last.shape[1:3]) >= 3 else 1
        net.conv(channels, taps, dead, padding=padding if taps == 3 else None, shut=shut)
        step = data.draw(st.sampled_from(["none", "depthwise", "multiplier", "max", "average"]))
        if step in ("depthwise", "multiplier"):
            net.depthwise(2 if step == "multiplier" else 1, dead=dead)
        elif step in ("max", "average") and min(net.last.shape[1:3]) >= 2:
            net.pool(MaxPool2D if step == "max" else AveragePool2D)
    net.conv(3, 1)
    if data.draw(st.booleans()):
        net.dense(2)
    check(net.graph(), samples=2)


@settings(max_examples=60)
@given(st.integers(0, 2**16), st.sampled_from([SAME, None]), st.sampled_from([1, 2]))
def test_ranges_hold_on_random_inputs(
    seed: int, padding: Padding2D | None, multiplier: int
) -> None:
    """No activation ever leaves the interval of its channel."""
    net = Net(seed, size=6).conv(4, 3, dead=(1,), padding=padding).depthwise(multiplier)
    g = net.pool(AveragePool2D).dense(3).graph()
    ranges = channel_ranges(g)
    seen: dict[Tensor, Array] = {}
    rng = np.random.default_rng(seed)
    value = rng.integers(-128, 128, g.inputs[0].shape).astype(np.int8)
    execute(g, {"x": value}, lambda n, outs: seen.update(zip(n.outputs, outs, strict=True)))
    for t, array in seen.items():
        flat = array.reshape(-1, t.shape[-1]).astype(np.int64)
        assert (flat >= ranges[t].low).all() and (flat <= ranges[t].high).all()


@pytest.mark.parametrize("padding", [SAME, None])
def test_ranges_are_reached(padding: Padding2D | None) -> None:
    """For one convolution the bounds are exact: some input reaches each of them."""
    net = Net(11, channels=1, size=3).conv(1, 3, padding=padding, zero=0)
    g = net.graph()
    ranges = channel_ranges(g)
    weights = g.nodes[0].inputs[1].data
    assert weights is not None
    taps = weights[0, :, :, 0]
    best = np.where(taps > 0, 127, -128).astype(np.int8).reshape(1, 3, 3, 1)
    got = execute(g, {"x": best})["t0"]
    assert got.max() == ranges[g.outputs[0]].high[0]
