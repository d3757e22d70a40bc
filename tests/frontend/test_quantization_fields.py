"""Quantisation that the reference never reads is no reason to refuse a model."""

from __future__ import annotations

import numpy as np
import pytest

from microtir.graph.ir import Array
from microtir.operators.common.tflite_schema import BuiltinOperator, Padding
from microtir.operators.convolution.tflite import DepthwiseConv2DOptions
from microtir.rewrite.reference import execute
from tests.frontend.binary import Patched
from tests.frontend.models import Value, int8, model, read, refusal
from tests.support.tflm import run_tflm

Code = BuiltinOperator
RNG = np.random.default_rng(9)


SCALES = (0.01, 0.02, 0.03, 0.04)


def depthwise(weights: Array, scales: tuple[float, ...] = SCALES) -> Patched:
    """A depthwise convolution of int8 over four channels, quantised per channel."""
    filters = Value(weights.shape, np.int8, weights, scales, (0,) * 4, 3)
    bias = Value((4,), np.int32, np.array([500, -300, 0, 77]), SCALES, (0,) * 4, 0)
    options = DepthwiseConv2DOptions(Padding.SAME)
    inputs = [int8(1, 4, 4, 4), filters, bias]
    output = int8(1, 4, 4, 4, scale=0.9)
    return Patched(model(Code.DEPTHWISE_CONV_2D, inputs, output, options))


def random_weights() -> Array:
    """Weights of four channels."""
    return RNG.integers(-127, 128, (1, 3, 3, 4)).astype(np.int8)


def of_bias(patched: Patched, slot: int) -> int:
    """Position of a field of the quantisation of the bias, or of what it refers to."""
    table = patched.target(patched.tensor(2), 4)
    return patched.field(table, slot) if slot == 6 else patched.target(table, slot)


def equals_tflm(data: bytes) -> None:
    """The reference computes what tflite-micro does."""
    graph = read(data)
    x = RNG.integers(-128, 128, graph.inputs[0].shape).astype(np.int8)
    (got,) = execute(graph, {graph.inputs[0].name: x}).values()
    np.testing.assert_array_equal(got, run_tflm(data, x)[0])


@pytest.mark.tools
@pytest.mark.parametrize(
    ("slot", "offset", "value", "form"),
    [(6, 0, 3, "<i"), (6, 0, -1, "<i"), (2, 0, 2, "<I"), (2, 4, 0.0, "<f"), (3, 4, 9, "<q")],
    ids=["axis of the weights", "negative axis", "too few", "a scale of 0", "a zero point"],
)
def test_scales_of_a_bias_are_never_read(slot: int, offset: int, value: float, form: str) -> None:
    """person_detect of tflite-micro was refused as damaged: "scales run along axis 3"."""
    patched = depthwise(random_weights())
    equals_tflm(patched.put(of_bias(patched, slot) + offset, value, form).bytes)


@pytest.mark.tools
def test_a_scale_of_zero_on_a_constant_zero() -> None:
    """A channel without weights may have the scale 0: what it adds is 0 by any."""
    weights = random_weights()
    weights[..., 1] = 0
    equals_tflm(depthwise(weights, (0.01, 0.0, 0.03, 0.04)).bytes)


def test_a_shape_with_scales() -> None:
    """Integers that are a shape keep whatever a converter left there."""
    shape = Value((2,), np.int32, np.array([2, 8], np.int32), (0.0,), (300,))
    node = read(model(Code.RESHAPE, [int8(1, 4, 4), shape], int8(2, 8))).nodes[0]
    assert node.output.shape == (2, 8)


def test_counts_with_different_scales_are_moved() -> None:
    """Nothing reads the scales of wide integers, so that they need not be equal."""
    x = Value((1, 4), np.int32, None, (0.5,), (0,))
    y = Value((4,), np.int32, None, (0.25,), (0,))
    shape = Value((1,), np.int32, np.array([4], np.int32))
    assert read(model(Code.RESHAPE, [x, shape], y)).nodes[0].op.name == "reshape"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (depthwise(random_weights(), (0.01, 0.0, 0.03, 0.04)).bytes, "scale 1 is 0.0"),
        (model(Code.RELU, [int8(4, scale=0.0)], int8(4)), "scale 0 is 0.0"),
    ],
    ids=["weights", "activation"],
)
def test_scales_that_are_read_are_still_checked(data: bytes, text: str) -> None:
    """A scale of 0 on weights that are not 0, or on an activation, is damage."""
    assert text in refusal(data)
