from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microtir.operators.common.attributes import Activation, Padding2D
from microtir.operators.common.tflite_schema import BuiltinOperator, Options, Padding
from microtir.operators.common.tflite_schema import TfliteActivation as FileActivation
from microtir.operators.convolution.definition import Conv2D, DepthwiseConv2D
from microtir.operators.convolution.tflite import Conv2DOptions, DepthwiseConv2DOptions
from microtir.operators.pooling.definition import AveragePool2D, MaxPool2D
from microtir.operators.pooling.tflite import Pool2DOptions
from microtir.operators.resize.definition import ResizeBilinear, ResizeNearestNeighbor
from microtir.operators.resize.tflite import ResizeBilinearOptions, ResizeNearestNeighborOptions
from microtir.writers.tflite import TfliteBuilder
from tests.frontend.models import Value, add, ints, model, read, read_node, refusal, zeros

CONV = BuiltinOperator.CONV_2D
DEPTHWISE = BuiltinOperator.DEPTHWISE_CONV_2D


def test_conv_attributes() -> None:
    """Strides, dilations and the activation are rows first; VALID has no padding."""
    node = read_node(
        CONV,
        [Value((1, 20, 20, 3)), zeros(8, 3, 5, 3), zeros(8)],
        Value((1, 7, 6, 8)),
        Conv2DOptions(Padding.VALID, 2, 2, FileActivation.RELU6, 2, 3),
    )
    assert node.op == Conv2D((2, 2), (3, 2), Padding2D(), Activation.RELU6)
    assert [tensor.shape for tensor in node.inputs] == [(1, 20, 20, 3), (8, 3, 5, 3), (8,)]
    assert node.output.shape == (1, 7, 6, 8)


def test_strides_are_not_exchanged() -> None:
    """stride_h is the first stride and filter_h the first extent of a window."""
    node = read_node(
        BuiltinOperator.AVERAGE_POOL_2D,
        [Value((1, 12, 12, 1))],
        Value((1, 3, 6, 1)),
        Pool2DOptions(Padding.SAME, stride_w=2, stride_h=4, filter_w=3, filter_h=5),
    )
    assert node.op == AveragePool2D((5, 3), (4, 2), Padding2D(0, 1, 0, 1))


def test_same_padding_puts_the_odd_element_at_the_end() -> None:
    """An even image with stride 2 and a 3 by 3 kernel is padded at the bottom and right only."""
    node = read_node(
        CONV,
        [Value((1, 96, 96, 3)), zeros(8, 3, 3, 3), zeros(8)],
        Value((1, 48, 48, 8)),
        Conv2DOptions(Padding.SAME, 2, 2),
    )
    assert node.op == Conv2D((2, 2), (1, 1), Padding2D(0, 1, 0, 1))


@given(
    size=st.integers(1, 40),
    window=st.integers(1, 12),
    stride=st.integers(1, 9),
    dilation=st.integers(1, 3),
)
@settings(max_examples=60)
def test_same_padding_is_the_least_that_covers(
    size: int, window: int, stride: int, dilation: int
) -> None:
    """SAME gives ceil(size / stride) positions, no more padding than they need, evenly spread."""
    positions = -(-size // stride)
    node = read_node(
        CONV,
        [Value((1, size, 1, 1)), zeros(1, window, 1, 1)],
        Value((1, positions, 1, 1)),
        Conv2DOptions(Padding.SAME, 1, stride, FileActivation.NONE, 1, dilation),
    )
    assert isinstance(node.op, Conv2D)
    padding = node.op.padding
    last = (positions - 1) * stride + (window - 1) * dilation
    assert padding.top + padding.bottom == max(0, last + 1 - size)
    assert padding.bottom - padding.top in (0, 1)
    assert (padding.left, padding.right) == (0, 0)


@given(size=st.integers(1, 40), window=st.integers(1, 12), stride=st.integers(1, 9))
@settings(max_examples=40)
def test_valid_takes_whole_windows_only(size: int, window: int, stride: int) -> None:
    """VALID has as many positions as windows fit, and is refused where none fits."""
    starts = range(0, size - window + 1, stride)
    data = model(
        BuiltinOperator.MAX_POOL_2D,
        [Value((1, size, 1, 1))],
        Value((1, max(1, len(starts)), 1, 1)),
        Pool2DOptions(Padding.VALID, 1, stride, 1, window),
    )
    if starts:
        node = read_node(
            BuiltinOperator.MAX_POOL_2D,
            [Value((1, size, 1, 1))],
            Value((1, len(starts), 1, 1)),
            Pool2DOptions(Padding.VALID, 1, stride, 1, window),
        )
        assert node.op == MaxPool2D((window, 1), (stride, 1))
    else:
        assert f"spans {window} does not fit into {size}" in refusal(data)


@pytest.mark.parametrize("bias", [None, "absent"])
def test_bias_may_be_left_out(bias: str | None) -> None:
    """An index of -1 and a missing third input both mean no bias, and leave no input behind."""
    inputs: list[Value | None] = [Value((1, 4, 4, 1)), zeros(2, 1, 1, 1)]
    node = read_node(
        CONV, inputs if bias else [*inputs, None], Value((1, 4, 4, 2)), Conv2DOptions()
    )
    assert len(node.inputs) == 2


def test_depthwise_attributes() -> None:
    """The multiplier is that of the shapes, whether the file states it or leaves it at 0."""
    for stated in (0, 2):
        node = read_node(
            DEPTHWISE,
            [Value((1, 8, 8, 3)), zeros(1, 3, 3, 6), zeros(6)],
            Value((1, 8, 4, 6)),
            DepthwiseConv2DOptions(Padding.SAME, 2, 1, stated, FileActivation.RELU),
        )
        expected = DepthwiseConv2D((1, 2), (1, 1), Padding2D(1, 1, 0, 1), 2, Activation.RELU)
        assert node.op == expected


@pytest.mark.parametrize(
    ("code", "options", "expected"),
    [
        (
            BuiltinOperator.RESIZE_BILINEAR,
            ResizeBilinearOptions(align_corners=True),
            ResizeBilinear(align_corners=True),
        ),
        (
            BuiltinOperator.RESIZE_NEAREST_NEIGHBOR,
            ResizeNearestNeighborOptions(half_pixel_centers=True),
            ResizeNearestNeighbor(half_pixel_centers=True),
        ),
    ],
)
def test_resize(code: BuiltinOperator, options: Options, expected: object) -> None:
    """The new size becomes the shape of the output and is no input any more."""
    node = read_node(code, [Value((1, 4, 5, 2)), ints(8, 3)], Value((1, 8, 3, 2)), options)
    assert node.op == expected
    assert [tensor.name for tensor in node.inputs] == ["x0"]


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (
            model(
                CONV,
                [Value((1, 4, 4, 4)), zeros(3, 1, 1, 2)],
                Value((1, 4, 4, 3)),
                Conv2DOptions(),
            ),
            "weights (3, 1, 1, 2) for an image of 4 channels\n  expected: (O, KH, KW, 4), or O",
        ),
        (
            model(
                CONV,
                [Value((1, 4, 4, 4)), zeros(2, 1, 1, 3)],
                Value((1, 4, 4, 2)),
                Conv2DOptions(),
            ),
            "weights (2, 1, 1, 3) for an image of 4 channels\n  expected: (O, KH, KW, 4)",
        ),
        (
            model(
                CONV,
                [Value((1, 4, 4, 4)), Value((2, 1, 1, 4))],
                Value((1, 4, 4, 2)),
                Conv2DOptions(),
            ),
            "the model computes the weights (input 1 'x1')\n  expected: a constant",
        ),
        (
            model(
                CONV,
                [Value((1, 4, 4, 4)), zeros(2, 1, 1, 4), zeros(3)],
                Value((1, 4, 4, 2)),
                Conv2DOptions(),
            ),
            "the bias has the shape (3,)\n  expected: (2,)",
        ),
        (
            model(CONV, [Value((4, 4)), zeros(2, 1, 1, 4)], Value((1, 4)), Conv2DOptions()),
            "input 0 'x0' has the shape (4, 4)\n  expected: four dimensions",
        ),
        (
            model(
                CONV,
                [Value((1, 4, 4, 4)), zeros(2, 1, 1, 4)],
                Value((1, 4, 4, 2)),
                Conv2DOptions(stride_w=0),
            ),
            "strides: 1 by 0\n  expected: 1 to 65535 each",
        ),
        (
            model(
                CONV,
                [Value((1, 4, 4, 4)), zeros(2, 1, 1, 4)],
                Value((1, 4, 4, 2)),
                Conv2DOptions(activation=FileActivation.TANH),
            ),
            "its fused activation is TANH\n  expected: NONE, RELU, RELU6, RELU_N1_TO_1",
        ),
        (
            model(
                CONV,
                [Value((1, 4, 4, 4)), zeros(2, 1, 1, 4)],
                Value((1, 4, 5, 2)),
                Conv2DOptions(),
            ),
            "tensor 'y0': its shape is (1, 4, 5, 2)\n  expected: (1, 4, 4, 2)",
        ),
        (
            model(
                DEPTHWISE,
                [Value((1, 4, 4, 2)), zeros(1, 1, 1, 4)],
                Value((1, 4, 4, 4)),
                DepthwiseConv2DOptions(depth_multiplier=1),
            ),
            "weights (1, 1, 1, 4) for 2 channels times 1\n  expected: (1, KH, KW, 2)",
        ),
        (
            model(
                DEPTHWISE,
                [Value((1, 4, 4, 2)), zeros(1, 1, 1, 3)],
                Value((1, 4, 4, 3)),
                DepthwiseConv2DOptions(),
            ),
            "weights (1, 1, 1, 3) for 2 channels times 1",
        ),
        (
            model(
                BuiltinOperator.RESIZE_BILINEAR,
                [Value((1, 4, 4, 2)), ints(8, 0)],
                Value((1, 8, 1, 2)),
                ResizeBilinearOptions(),
            ),
            "the new size is (8, 0)\n  expected: height and width, both above 0",
        ),
        (
            model(
                BuiltinOperator.RESIZE_BILINEAR,
                [Value((1, 4, 4, 2)), ints(8, 8)],
                Value((1, 8, 8, 2)),
                ResizeBilinearOptions(True, True),
            ),
            "align_corners and half_pixel_centers are both set",
        ),
    ],
)
def test_refusals(data: bytes, text: str) -> None:
    """Each contradiction is named, with what would be legal."""
    assert text in refusal(data)


@pytest.mark.parametrize(("height", "names"), [(1, ["conv_2d"]), (30, ["dequantize", "conv_2d"])])
def test_weights_may_be_computed_from_constants(height: int, names: list[str]) -> None:
    """Weights that a node makes from constants are accepted: few are known at once, many folded."""
    builder = TfliteBuilder()
    image = add(builder, Value((1, height, 4, 2)), "image")
    shape = (3, height, 1, 2)
    stored = builder.tensor("stored", shape, np.int8, np.ones(shape), [0.5])
    weights = add(builder, Value(shape), "weights")
    result = add(builder, Value((1, 1, 4, 3)), "result")
    builder.operator(BuiltinOperator.DEQUANTIZE, [stored], [weights])
    builder.operator(CONV, [image, weights], [result], Conv2DOptions(padding=Padding.VALID))
    assert [node.op.name for node in read(builder.build([image], [result])).nodes] == names
