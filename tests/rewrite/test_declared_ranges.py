"""Inputs whose values the user declares: more is proven, and results stay where they hold."""

from __future__ import annotations

import numpy as np
import pytest

import microtir
from microtir import CompilationConfig, Target
from microtir.config.input_ranges import InputRange, input_ranges
from microtir.errors import ConfigError
from microtir.module.ir_module import IRModule
from microtir.rewrite.facts.channel_ranges import channel_ranges
from microtir.rewrite.facts.declared_ranges import DeclareRanges
from microtir.rewrite.optimise import BoundSums, FoldConstantChannels
from microtir.rewrite.reference import execute
from tests.rewrite.test_fold_constant_channels import Net


def test_texts() -> None:
    """One range for all, or some by name; names may hold what names of tensors hold."""
    assert input_ranges("") == ()
    assert input_ranges("0..127") == (InputRange("", 0, 127),)
    assert input_ranges("a/b:0=-5..5, state=1..2") == (
        InputRange("a/b:0", -5, 5), InputRange("state", 1, 2),
    )  # fmt: skip


@pytest.mark.parametrize("text", ["1..", "5..4", "-129..0", "0..1,0..2", "x=0..1,x=0..1"])
def test_wrong_texts(text: str) -> None:
    """The configuration refuses them, by the name of the option."""
    config = CompilationConfig.from_target(Target("c"))
    with pytest.raises(ConfigError, match="input_ranges"):
        config.with_(pass_config={"graph.input_ranges": text})


def test_what_is_declared_is_used() -> None:
    """Sums are smaller, and a channel that only larger values would open is dead."""
    net = Net(1, channels=2).conv(4, 1, zero=-128)
    weights, bias = (t.data for t in net.nodes[0].inputs[1:])
    assert weights is not None and bias is not None
    weights[0], bias[0] = 20, -1500  # opens where 20 * (a + b - 6) exceeds that
    net.conv(2, 1)
    g = net.graph()
    declared = DeclareRanges(input_ranges("x=0..30"))(g)
    assert not channel_ranges(g)[net.nodes[0].output].is_constant[0]
    assert channel_ranges(declared)[net.nodes[0].output].is_constant[0]
    full, narrow = BoundSums()(g).nodes[0].sums, BoundSums()(declared).nodes[0].sums
    assert full is not None and narrow is not None
    assert full.low <= narrow.low and narrow.high < full.high
    folded = FoldConstantChannels()(declared)
    assert folded.nodes[0].output.shape[-1] == 3
    value = np.random.default_rng(0).integers(0, 31, net.input.shape).astype(np.int8)
    for name, want in execute(g, {"x": value}).items():
        np.testing.assert_array_equal(execute(folded, {"x": value})[name], want)


def test_it_reaches_the_compiler() -> None:
    """Through the option; a name that the model does not have is refused with the nearest."""
    g = Net(2).conv(3, 1).graph()
    plain = CompilationConfig.from_target(Target("c"))

    def largest(text: str) -> int:
        config = plain.with_(pass_config={"graph.input_ranges": text})
        layer = microtir.build(IRModule(graph=g), config).metadata.layers[0]
        assert layer.accumulator is not None
        return layer.accumulator.high

    assert largest("0..10") == largest("x=0..10") == largest("-1..1,x=0..10") < largest("")
    with pytest.raises(ConfigError, match="no int8 input 'xx'"):
        largest("xx=0..1")
