"""Weights of four bits lie two in a byte of flash where that counts, and give the same bits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import microtir
from microtir import CompilationConfig, Target
from microtir.config import Optimize
from microtir.graph.ir import Array, Graph
from microtir.graph.rewriting import substitute
from microtir.kernels import candidates, refusals
from microtir.kernels.common.packed_weights import PackedWeights
from microtir.kernels.common.weights import pack_nibbles
from microtir.module.ir_module import IRModule
from microtir.operators.common.tflite_schema import BuiltinOperator
from microtir.operators.convolution.tflite import DepthwiseConv2DOptions
from microtir.plan.ir import Refusal
from microtir.rewrite.reference import execute
from tests.frontend.models import Value, model, read
from tests.support.batch import load_batch
from tests.support.c_compilers import STRICT
from tests.support.dsp_cases import fully_connected, in_four_bits
from tests.support.operator_cases import generate
from tests.support.seeds import seeds

WEIGHTED = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")
NAME = "direct_s4"
M4 = Target("c -mcpu=cortex-m4")


def narrow(graph: Graph) -> Graph:
    """Return a graph whose weights fit four bits."""
    nodes = []
    for node in graph.nodes:
        weights = node.inputs[1]
        assert weights.data is not None
        small = replace(weights, data=weights.data >> 4)
        nodes.append(substitute(node, {weights: small}))
    return replace(graph, nodes=tuple(nodes))


def drawn(operator: str, seed: int, dtype: str) -> tuple[Graph, dict[str, Array]]:
    """A layer with weights of four bits, and inputs."""
    case = generate(operator, seed, dtype)
    return narrow(case.graph()), case.named_inputs()


def depthwise(channels: int) -> tuple[Graph, dict[str, Array]]:
    """A depthwise layer with so many channels, that packing them pays, and an input."""
    rng, shape = np.random.default_rng(channels), (1, 5, 4, channels)
    weights = rng.integers(-8, 8, (1, 3, 3, channels)).astype(np.int8)
    small = Value(weights.shape, "int4", weights, (0.25,) * channels, (0,) * channels, 3)
    x, y = (Value(shape, np.int8, None, (scale,), (3,)) for scale in (0.5, 4.0))
    options = DepthwiseConv2DOptions(stride_w=1, stride_h=1, depth_multiplier=1)
    graph = read(model(BuiltinOperator.DEPTHWISE_CONV_2D, [x, small], y, options))
    values = rng.integers(-128, 128, shape).astype(np.int8)
    return graph, {graph.arguments[0].name: values}


def config(goal: Optimize, name: str = "net") -> CompilationConfig:
    """The options of a build for this machine."""
    return CompilationConfig(targets="c", optimize=goal, module_name=name)


@pytest.mark.tools
@pytest.mark.parametrize("dtype", ["int8", "int16"])
def test_results_are_those_of_whole_bytes(tmp_path: Path, dtype: str) -> None:
    """C equals the meaning for windows, groups, odd numbers of weights, and rows of any length."""
    cases = [drawn(operator, seed, dtype) for operator in WEIGHTED for seed in seeds(2, 10)]
    cases += [depthwise(channels) for channels in (23, 24)]
    artifacts = [
        microtir.build(IRModule(graph=graph), config(Optimize.FLASH, f"net{number}"))
        for number, (graph, _) in enumerate(cases)
    ]
    layers = [layer for artifact in artifacts for layer in artifact.metadata.layers]
    chosen = [layer.choice is not None and layer.choice.kernel == NAME for layer in layers]
    assert sum(chosen) >= 8
    assert chosen[-2:] == [True, True]
    models = load_batch(artifacts, tmp_path, flags=STRICT)
    for (graph, inputs), loaded in zip(cases, models, strict=True):
        expected = execute(graph, inputs)
        for name, got in loaded.run(inputs).items():
            np.testing.assert_array_equal(got, expected[name])


@pytest.mark.parametrize("operator", WEIGHTED)
def test_they_are_offered_for_small_weights_alone(operator: str) -> None:
    """They take half of the flash and more instructions; other weights do not fit the form."""
    asked = CompilationConfig.from_target(M4)
    for seed in range(6):
        (wide,) = generate(operator, seed, "int8").graph().nodes
        (node,) = narrow(generate(operator, seed, "int8").graph()).nodes
        offered = {c.kernel: c for c in candidates(node, asked)}
        packed, plain = offered[NAME], offered["direct"]
        assert plain.weight_bytes - packed.weight_bytes == node.inputs[1].type.elements // 2
        assert packed.costs[0].instructions > plain.costs[0].instructions
        weights = wide.inputs[1].data
        assert weights is not None
        if np.abs(weights.astype(int)).max() > 8:
            assert (NAME, Refusal.FORM) in refusals(wide, asked)


def test_only_flash_asks_for_them() -> None:
    """Speed, RAM and their balance keep to whole bytes, but for a layer of one pixel."""
    taken: dict[Optimize, int] = dict.fromkeys(Optimize, 0)
    for seed in range(6):
        graph = drawn("CONV_2D", seed, "int8")[0]
        for goal in Optimize:
            lowered = microtir.lower(IRModule(graph=graph, config=config(goal)))
            (layer,) = lowered.require_program("test").plan.operators
            is_one = layer.node.output.type.elements == layer.node.output.type.channels
            taken[goal] += layer.candidate.kernel == NAME and not is_one
    assert taken.pop(Optimize.FLASH) >= 2
    assert set(taken.values()) == {0}


def test_a_lane_holds_four_channels() -> None:
    """The first three are 8 more than they are; the fourth one has a sign."""
    lanes = pack_nibbles(np.array([[-8, 7], [0, 7], [7, 7], [-8, 7]], np.int8))
    assert lanes is not None
    assert lanes.view(np.uint16).tolist() == [[0x8F80, 0x7FFF]]


@pytest.mark.parametrize(("channel", "longest"), [(0, 1 << 20), (2, 8191), (3, 511)])
def test_sums_of_a_lane_fit(channel: int, longest: int) -> None:
    """The sums of a channel are so many times as large as its place says, and may not wrap."""
    weights = np.zeros((4, longest + 1), np.int8)
    weights[channel] = -8
    assert pack_nibbles(weights[:, :longest]) is not None
    assert (pack_nibbles(weights) is None) is (channel > 0)


def test_half_of_the_words_are_taken() -> None:
    """A kernel of the DSP extension takes half of the constants of that for bytes."""
    case = in_four_bits(fully_connected(89))
    asked = CompilationConfig.from_target(M4).with_(optimize=Optimize.BALANCED)
    lowered = microtir.lower(IRModule(graph=case.graph, config=asked))
    (operator,) = lowered.require_program("test").plan.operators
    assert operator.candidate.kernel == "dense_s4_1x8_dsp"
    (node,) = case.graph.nodes
    offered = {c.kernel: c for c in candidates(node, asked)}
    packed, plain = offered["dense_s4_1x8_dsp"], offered["dense_s8_1x8_dsp"]
    assert plain.weight_bytes - packed.weight_bytes == node.inputs[1].type.elements // 2


def test_the_first_weight_is_the_low_half() -> None:
    """As a file of int4 has them; an odd number leaves the last half empty."""
    packed = PackedWeights.of(np.array([[-8, 7, 1], [-1, 0, 5], [3, 2, -2]], np.int8))
    data = packed.pairs.buffer.data
    assert data is not None and bytes(data) == b"\x78\xf1\x50\x23\x0e"
