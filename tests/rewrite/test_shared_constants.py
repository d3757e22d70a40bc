"""Layers that share weights or a bias: passes change constants of one, and names stay apart."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import microtir
from microtir import CompilationConfig, frontend
from microtir.graph.ir import Array, Graph
from microtir.graph.rewriting import named_apart
from microtir.operators.arithmetic.definition import Add
from microtir.operators.arithmetic.tflite import AddOptions
from microtir.operators.common.tflite_schema import BuiltinOperator, Padding, TfliteActivation
from microtir.operators.convolution.tflite import Conv2DOptions, DepthwiseConv2DOptions
from microtir.operators.dense.tflite import FullyConnectedOptions
from microtir.operators.pooling.definition import MaxPool2D
from microtir.rewrite.checked import rewritten
from microtir.rewrite.facts.columns import Cut
from microtir.rewrite.optimise import GRAPH_PASSES
from microtir.rewrite.variants import CutColumns
from microtir.rewrite.verify import verify
from microtir.writers.tflite import OPTIONAL_INPUT, TfliteBuilder
from tests.support.graphs import constant, graph, node, tensor

Code = BuiltinOperator
CHANNELS, SIDE = 4, 5
SCALE, ZERO = 0.05, -7


class SharedLayers:
    """Grows a network whose layers take their constants from a small pool, some channels dead."""

    def __init__(self, draw: st.DataObject) -> None:
        self._draw = draw
        self._builder = TfliteBuilder()
        self._pool: dict[str, list[int]] = {}
        self._count = 0
        self.input = self.image()
        self.images = [self.input]

    def pick(self, *choices: int) -> int:
        """One of some numbers."""
        return self._draw.draw(st.sampled_from(choices))

    def image(self) -> int:
        """An activation; all are alike, so that layers may share what they read."""
        self._count += 1
        shape = (1, SIDE, SIDE, CHANNELS)
        return self._builder.tensor(f"t{self._count}", shape, np.int8, None, [SCALE], [ZERO])

    def constant(self, kind: str, shape: tuple[int, ...], dtype: type, limit: int) -> int:
        """A constant of a kind, perhaps one that another layer has; its first channel is dead."""
        known = self._pool.setdefault(kind, [])
        choice = self.pick(*range(len(known) + (len(known) < 2)))
        if choice == len(known):
            rng = np.random.default_rng(self.pick(*range(8)))
            data: Array = rng.integers(-limit, limit, shape).astype(dtype)
            axis = 0 if kind in ("conv", "dense", "bias") else 3
            np.moveaxis(data, axis, 0)[0] = -9_000 if kind == "bias" else 0
            scale = SCALE * 0.02 if kind == "bias" else 0.02
            known.append(
                self._builder.tensor(f"{kind}{len(known)}", shape, dtype, data, [scale], [0])
            )
        return known[choice]

    def bias(self) -> int:
        """A bias, or none."""
        if self.pick(0, 1, 2) == 0:
            return OPTIONAL_INPUT
        return self.constant("bias", (CHANNELS,), np.int32, 300)

    def grow(self) -> None:
        """One more layer, which reads one of the last images."""
        x, y = self.images[-self.pick(1, 1, min(2, len(self.images)))], self.image()
        match self.pick(0, 1, 2, 3, 4):
            case 0 | 1:
                weights = self.constant("conv", (CHANNELS, 3, 3, CHANNELS), np.int8, 40)
                options = Conv2DOptions(Padding.SAME, activation=TfliteActivation.RELU)
                self._builder.operator(Code.CONV_2D, [x, weights, self.bias()], [y], options)
            case 2:
                weights = self.constant("depthwise", (1, 3, 3, CHANNELS), np.int8, 40)
                depthwise = DepthwiseConv2DOptions(Padding.SAME, activation=TfliteActivation.RELU)
                inputs = [x, weights, self.bias()]
                self._builder.operator(Code.DEPTHWISE_CONV_2D, inputs, [y], depthwise)
            case 3:
                weights = self.constant("dense", (CHANNELS, CHANNELS), np.int8, 90)
                dense = FullyConnectedOptions(TfliteActivation.RELU, keep_num_dims=True)
                inputs = [x, weights, self.bias()]
                self._builder.operator(Code.FULLY_CONNECTED, inputs, [y], dense)
            case _:
                self._builder.operator(Code.ADD, [x, self.images[-1]], [y], AddOptions())
        self.images.append(y)

    def graph(self) -> Graph:
        """The network, as the frontend reads it."""
        for _ in range(self.pick(3, 4, 5, 6)):
            self.grow()
        model = self._builder.build([self.input], [self.images[-1]])
        found = frontend.from_tflite(model).graph
        assert found is not None
        return found


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_random_networks_that_share_constants(draw: st.DataObject) -> None:
    """Every pass keeps every bit and the rules; "two tensors are called" ended 40 of 160."""
    shared = SharedLayers(draw).graph()
    config = CompilationConfig(targets="c", pass_config={"tir.replay_each_pass": True})
    rewritten(shared, GRAPH_PASSES, config.pass_config)


def test_the_smallest_network_that_shares_a_bias() -> None:
    """Two convolutions with one bias, one of them behind a dead channel, were no graph any more."""
    builder = TfliteBuilder()
    shape, one = (1, 2, 2, 2), np.ones((2, 1, 1, 2), np.int8)
    x, a, y, z = (
        builder.tensor(n, shape, np.int8, None, [SCALE], [ZERO]) for n in ("x", "a", "y", "z")
    )
    weights = builder.tensor("w", one.shape, np.int8, one, [0.02], [0])
    bias = builder.tensor("b", (2,), np.int32, np.array([-9_000, 5]), [SCALE * 0.02], [0])
    options = Conv2DOptions(activation=TfliteActivation.RELU)
    for source, target in ((x, a), (a, y), (x, z)):
        builder.operator(Code.CONV_2D, [source, weights, bias], [target], options)
    module = frontend.from_tflite(builder.build([x], [y, z]))
    lowered = microtir.lower(module.with_configuration(CompilationConfig(targets="c")))
    assert lowered.model is not None and [p.name for p in lowered.model.outputs] == ["y", "z"]


def test_names_come_apart() -> None:
    """Equal constants become one, other tensors and nodes of one name get a number."""
    x, y, z, last = (tensor(name, (3,)) for name in ("x", "c_2", "z", "y"))
    same, other = ([constant("c", np.full(3, v, np.float32)) for v in (1, n)] for n in (1, 2))
    first, again = node(Add(), [x, same[0]], y), node(Add(), [y, same[1]], z)
    third = replace(node(Add(), [z, other[1]], last), name=first.name)
    named = named_apart(graph([first, again, third], [x], [last]))
    assert [n.inputs[1].name for n in named.nodes] == ["c", "c", "c_3"]
    assert named.nodes[0].inputs[1] is named.nodes[1].inputs[1]
    assert [n.name for n in named.nodes] == ["c_2_node", "z_node", "c_2_node_2"]
    assert named_apart(named) is named


def test_two_cuts_of_one_image() -> None:
    """Bands of two branches that read the same columns of one image have names of their own."""
    x = tensor("x", (1, 4, 8, 1))
    branches = [[tensor(f"{n}{i}", x.shape) for i in range(2)] for n in "ab"]
    nodes = [
        node(MaxPool2D((1, 1)), [source], target)
        for middle, end in branches
        for source, target in ((x, middle), (middle, end))
    ]
    made = CutColumns((Cut(0, 2, 2), Cut(2, 4, 2)))(graph(nodes, [x], [b[1] for b in branches]))
    verify(made)
