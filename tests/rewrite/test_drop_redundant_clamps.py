"""Clamps that cannot bind are dropped, and no output changes by a bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microtir.dtype import DType
from microtir.graph.ir import Graph
from microtir.graph.operator import Operator
from microtir.kernels.common.requantise import Rescaling
from microtir.operators.arithmetic.definition import Add
from microtir.operators.common.attributes import Activation
from microtir.operators.common.multiplier import activation_range
from microtir.operators.convolution.definition import Conv2D, DepthwiseConv2D
from microtir.operators.pooling.definition import AveragePool2D
from microtir.rewrite.optimise import DropRedundantClamps
from microtir.rewrite.reference import execute
from tests.support.graphs import constant, graph, node, per_channel, quant, tensor

I8 = DType.INT8


def layer(op: Operator, magnitude: int, scale: float, seed: int = 0) -> Graph:
    """One linear layer of 3 channels whose weights are at most `magnitude`."""
    rng = np.random.default_rng(seed)
    depthwise = isinstance(op, DepthwiseConv2D)
    shape = (1, 1, 1, 3) if depthwise else (3, 1, 1, 3)
    weights = rng.integers(-magnitude, magnitude + 1, shape).astype(np.int8)
    weights[..., 0] = magnitude
    x = tensor("x", (1, 4, 4, 3), I8, quant(0.05, 3))
    y = tensor("y", (1, 4, 4, 3), I8, quant(scale, -100))
    scales = per_channel([0.01] * 3, 3 if depthwise else 0)
    bias = rng.integers(-magnitude, magnitude + 1, 3).astype(np.int32)
    return graph([node(op, [x, constant("w", weights, scales), constant("b", bias)], y)], [x], [y])


def activation_of(given: Graph) -> Activation:
    """Of the only node."""
    (only,) = given.nodes
    activation = getattr(only.op, "activation", None)
    assert isinstance(activation, Activation)
    return activation


@pytest.mark.parametrize("op", [Conv2D, DepthwiseConv2D])
@pytest.mark.parametrize(
    ("activation", "looser"),
    [(Activation.RELU6, Activation.RELU), (Activation.RELU_N1_TO_1, Activation.NONE)],
)
def test_a_clamp_beyond_all_sums_is_dropped(
    op: type[Conv2D | DepthwiseConv2D], activation: Activation, looser: Activation
) -> None:
    """Weights decide how large a sum may be."""
    quiet = layer(op(activation=activation), 2, 0.05)
    loud = layer(op(activation=activation), 127, 0.05)
    assert activation_of(DropRedundantClamps()(quiet)) is looser
    assert DropRedundantClamps()(loud) is loud


def test_a_clamp_at_the_zero_point_stays() -> None:
    """It saves the correction of ties, which costs more."""
    relu = layer(Conv2D(activation=Activation.RELU), 1, 0.05)
    assert DropRedundantClamps()(relu) is relu


def test_a_declared_range_decides() -> None:
    """What the user says of an input bounds the sums, too."""
    model = layer(Conv2D(activation=Activation.RELU6), 40, 0.05, seed=1)
    assert DropRedundantClamps()(model) is model
    (x,) = model.inputs
    narrow = Graph(
        model.name, model.inputs, model.outputs, model.nodes, input_ranges=((x, (0, 6)),)
    )
    assert activation_of(DropRedundantClamps()(narrow)) is Activation.RELU


def test_pools_and_sums() -> None:
    """A pool's results lie between its inputs, a sum's between those of the ends."""
    x = tensor("x", (1, 4, 4, 3), I8, quant(0.02, 0))
    pooled = tensor("p", (1, 2, 2, 3), I8, quant(0.02, 0))
    pool = AveragePool2D((2, 2), strides=(2, 2), activation=Activation.RELU6)
    whole = graph([node(pool, [x], pooled)], [x], [pooled])
    # 6 / 0.02 is beyond int8.
    assert activation_of(DropRedundantClamps()(whole)) is Activation.RELU
    total = tensor("s", (1, 4, 4, 3), I8, quant(0.06, 0))
    both = graph([node(Add(activation=Activation.RELU6), [x, x], total)], [x], [total])
    assert activation_range(Activation.RELU6, total.type) == (0, 100)
    assert activation_of(DropRedundantClamps()(both)) is Activation.RELU
    dense = tensor("s", (1, 4, 4, 3), I8, quant(0.05, -128))
    louder = tensor("x", (1, 4, 4, 3), I8, quant(0.05, -128))
    bound = graph(
        [node(Add(activation=Activation.RELU6), [louder, louder], dense)], [louder], [dense]
    )
    assert DropRedundantClamps()(bound) is bound


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 1 << 16),
    magnitude=st.integers(1, 60),
    scale=st.sampled_from([0.03, 0.05, 0.1, 0.3]),
    activation=st.sampled_from([Activation.RELU6, Activation.RELU_N1_TO_1]),
)
def test_no_output_changes(seed: int, magnitude: int, scale: float, activation: Activation) -> None:
    """Whatever is dropped, the reference gives the same."""
    model = layer(Conv2D(activation=activation), magnitude, scale, seed)
    values = np.random.default_rng(seed).integers(-128, 128, (1, 4, 4, 3)).astype(np.int8)
    values[0, 0] = np.array([[-128] * 3, [127] * 3, [-128, 127, -128], [127, -128, 127]], np.int8)
    before = execute(model, {"x": values})
    after = execute(DropRedundantClamps()(model), {"x": values})
    assert all(np.array_equal(before[name], after[name]) for name in before)


def test_a_dropped_clamp_costs_no_instruction() -> None:
    """The sequence of a Cortex-M4 is shorter without it."""
    clamped, loose = Rescaling(False, None, -100, 20), Rescaling(False, None, -100, 127)
    assert loose.instructions < clamped.instructions
