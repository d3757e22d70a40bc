"""Constant channels under padding of another value are joined, and no output changes by a bit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import microtir
from microtir import CompilationConfig, Target
from microtir.dtype import DType
from microtir.graph.ir import Array, Graph
from microtir.module.ir_module import IRModule
from microtir.operators.common.attributes import Padding2D
from microtir.operators.convolution.definition import Conv2D
from microtir.rewrite.facts.channel_ranges import channel_ranges
from microtir.rewrite.optimise import FoldConstantChannels, GatherConstantChannels
from microtir.rewrite.reference import execute
from microtir.rewrite.verify import verify
from tests.rewrite.test_fold_constant_channels import SAME, Net
from tests.support.batch import load_batch
from tests.support.graphs import constant, node, quant, tensor
from tests.support.sanitizers import FLAGS

OPEN = 1_000_000  # a bias that takes an output to its largest value


def folded(before: Graph) -> Graph:
    """After both passes, which agree with the graph on random inputs and on the extremes."""
    verify(before)
    after = FoldConstantChannels()(GatherConstantChannels()(before))
    verify(after)
    rng = np.random.default_rng(0)
    (x,) = before.inputs
    data: list[Array] = [np.full(x.shape, v, np.int8) for v in (-128, 127)]
    data += [rng.integers(-128, 128, x.shape).astype(np.int8) for _ in range(3)]
    for value in data:
        want, got = execute(before, {"x": value}), execute(after, {"x": value})
        for name, array in want.items():
            np.testing.assert_array_equal(got[name], array)
    return after


def channels(g: Graph) -> list[int]:
    """Of every node's output."""
    return [n.output.shape[-1] for n in g.nodes]


def bordered(seed: int, dead: tuple[int, ...], *, taps: int = 3, zero: int = -100) -> Net:
    """A convolution with channels that are constant, read by one with padding of another value."""
    return Net(seed).conv(7, 3, dead=dead, zero=zero, shut=OPEN).conv(4, taps, padding=SAME)


def with_weights(net: Net, number: int, data: Array) -> None:
    """Give a layer other weights."""
    x, weights, bias = net.nodes[number].inputs
    changed = constant("w", data.astype(np.int8), weights.type.quantization)
    net.nodes[number] = replace(net.nodes[number], inputs=(x, changed, bias))


def weights_of(net: Net, number: int) -> Array:
    """A copy of a layer's weights."""
    data = net.nodes[number].inputs[1].data
    assert data is not None
    return np.array(data)


def test_several_become_one() -> None:
    """Five of the largest value: their weights add up."""
    net = bordered(1, (0, 2, 3, 4, 6))
    after = folded(net.graph())
    assert channels(after) == [2 + 1, 4]
    data, kept = weights_of(net, 1), after.nodes[1].inputs[1].data
    assert kept is not None
    joined = data[..., [0, 2, 3, 4, 6]].astype(np.int64).sum(axis=-1)
    np.testing.assert_array_equal(kept[..., 0], joined)


def test_sums_beyond_a_weight_stay() -> None:
    """Five weights of 100 are more than a weight and a digit hold."""
    net = bordered(2, (0, 2, 3, 4, 6))
    data = weights_of(net, 1)
    data[1, 1, 1, :] = 100
    with_weights(net, 1, data)
    before = net.graph()
    assert folded(before) is before


def test_different_values_become_two_digits() -> None:
    """One channel of the largest value, one of 1."""
    net = bordered(2, ())
    made, bias = weights_of(net, 0), np.array([9000, 0, 3500, 1100, 0, 0, 700], np.int32)
    made[[0, 2, 3, 6]] = 0
    with_weights(net, 0, made)
    first = net.nodes[0]
    inputs = (*first.inputs[:2], constant("b", bias))
    net.nodes[0] = replace(first, inputs=inputs)
    after = folded(net.graph())
    assert channels(after) == [3 + 2, 4]
    ranges = channel_ranges(after)[after.nodes[0].output]
    assert sorted(ranges.low[ranges.is_constant].tolist()) == [-100 + 1, 127]


def test_one_stays() -> None:
    """There is nothing to join it with, and a bias alone cannot hold what it adds."""
    before = bordered(3, (2,)).graph()
    assert GatherConstantChannels()(before) is before
    assert folded(before) is before


def test_channels_without_weights_disappear() -> None:
    """Even where they are not constant; and constants whose shares cancel each other."""
    net = Net(4).conv(5, 3, zero=-100).conv(4, 3, padding=SAME)
    data = weights_of(net, 1)
    data[..., 3] = 0
    with_weights(net, 1, data)
    assert channels(folded(net.graph())) == [4, 4]
    net = bordered(5, (1, 4))
    data = weights_of(net, 1)
    data[..., 4] = -data[..., 1]
    with_weights(net, 1, data)
    assert channels(folded(net.graph())) == [5, 4]


def test_other_readers_and_outputs_keep_their_values() -> None:
    """A channel that somebody else reads is not given another value."""
    net = bordered(6, (0, 1, 2, 3))
    middle = net.nodes[0].output
    g = net.graph()
    seen = replace(g, outputs=(*g.outputs, middle))
    assert GatherConstantChannels()(seen) is seen
    y = tensor("other", net.last.shape, DType.INT8, quant(0.05, 0))
    other = node(Conv2D(padding=SAME), net.nodes[1].inputs, y)
    twice = replace(g, nodes=(*g.nodes, other), outputs=(*g.outputs, y))
    assert GatherConstantChannels()(twice) is twice


def test_a_depthwise_convolution_makes_the_values_as_well() -> None:
    """Its outputs have biases of their own."""
    net = Net(7, size=6).conv(6, 1, zero=-128).depthwise(dead=())
    (x, weights, bias) = net.nodes[1].inputs
    assert bias.data is not None
    shut = bias.data.copy()
    shut[[0, 2, 3, 5]] = OPEN
    net.nodes[1] = replace(net.nodes[1], inputs=(x, weights, constant("b", shut)))
    net.conv(3, 3, padding=SAME)
    before = net.graph()
    assert channels(folded(before))[1] < 6


def test_windows_that_all_leave_the_image_alike_have_a_border() -> None:
    """A single class of windows, some taps of which are always outside: they add nothing."""
    net = Net(8, size=5).conv(3, 3, dead=(1,), zero=-100, shut=OPEN)
    net.conv(2, 5, padding=Padding2D(0, 2, 0, 2))
    assert channels(folded(net.graph())) == [3, 2]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_random_nets_keep_every_bit(data: st.DataObject) -> None:
    """Random constants of both signs, weights, paddings, and chains of such layers."""
    net = Net(data.draw(st.integers(0, 2**16)), channels=2, size=6)
    for _ in range(data.draw(st.integers(2, 4))):
        outputs = data.draw(st.integers(2, 7))
        dead = data.draw(st.lists(st.integers(0, outputs - 1), unique=True))
        shut = data.draw(st.sampled_from([-OPEN, OPEN, 900]))
        zero = data.draw(st.sampled_from([-128, -100, 0, 120]))
        net.conv(outputs, 3, dead, zero=zero, shut=shut, padding=SAME)
    folded(net.graph())


@pytest.mark.tools
@pytest.mark.parametrize("target", ["c", "c -mcpu=cortex-m4"])
def test_compiled(target: str, tmp_path: Path) -> None:
    """Constants that are not the zero point, SAME padding: C equals the graph as it was."""
    config = CompilationConfig.from_target(Target(target))
    graphs = [bordered(20 + n, (0, 2, 3, 6)[: n + 1]).graph() for n in range(4)]
    artifacts = [
        microtir.build(IRModule(graph=g), config.with_(module_name=f"net{n}"))
        for n, g in enumerate(graphs)
    ]
    models = load_batch(artifacts, tmp_path, flags=FLAGS[1:2])
    for g, model in zip(graphs, models, strict=True):
        x = np.random.default_rng(1).integers(-128, 128, g.inputs[0].shape).astype(np.int8)
        want = execute(g, {"x": x})
        for name, got in model.run({"x": x}).items():
            np.testing.assert_array_equal(got, want[name])
