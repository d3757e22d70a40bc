"""Models with int16 activations and int8 weights: which width their sums have, what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from microtir.operators.common.linear import has_long_sums
from microtir.operators.common.tflite_schema import BuiltinOperator, Options, Padding, TfliteType
from microtir.operators.convolution.tflite import Conv2DOptions, DepthwiseConv2DOptions
from microtir.operators.dense.tflite import FullyConnectedOptions
from tests.frontend.models import Value, model, read_node, refusal, zeros

CONV, DENSE = BuiltinOperator.CONV_2D, BuiltinOperator.FULLY_CONNECTED
DEPTHWISE = BuiltinOperator.DEPTHWISE_CONV_2D
X = Value((1, 4, 4, 2), np.int16, None, (0.5,), (0,))
W = zeros(2, 1, 1, 2, dtype=np.int8, scales=(0.5,))
ROWS = Value((3, 2), np.int16, None, (0.5,), (0,))
MATRIX = zeros(2, 2, dtype=np.int8, scales=(0.5,))
B32, B64 = zeros(2, dtype=np.int32), zeros(2, dtype=np.int64)


@pytest.mark.parametrize(
    ("bias", "option", "is_long"),
    [
        (B32, TfliteType.FLOAT32, False),
        (B64, TfliteType.INT32, True),
        (None, TfliteType.INT32, False),
        (None, TfliteType.INT64, True),
        (None, TfliteType.FLOAT32, True),
    ],
)
def test_the_bias_decides_and_without_one_the_option(
    bias: Value | None, option: TfliteType, is_long: bool
) -> None:
    """Sums have 32 bits with a bias of int32, or if the option says that it would be one."""
    options = Conv2DOptions(Padding.SAME, 1, 1, quantized_bias_type=option)
    assert has_long_sums(read_node(CONV, [X, W, bias], X, options)) is is_long
    dense = FullyConnectedOptions(quantized_bias_type=option)
    assert has_long_sums(read_node(DENSE, [ROWS, MATRIX, bias], ROWS, dense)) is is_long


def test_option_says_nothing_of_int8() -> None:
    """Sums of int8 have 32 bits whatever stands there, and no bias is made."""
    x = Value((1, 4, 4, 2), np.int8, None, (0.5,), (0,))
    options = Conv2DOptions(Padding.SAME, 1, 1, quantized_bias_type=TfliteType.INT32)
    node = read_node(CONV, [x, W], x, options)
    assert len(node.inputs) == 2 and not has_long_sums(node)


@pytest.mark.parametrize(
    ("code", "inputs", "output", "options", "text"),
    [
        (
            DEPTHWISE,
            [X, zeros(1, 1, 1, 2, dtype=np.int8, scales=(0.5,)), B32],
            X,
            DepthwiseConv2DOptions(Padding.SAME, 1, 1, 1),
            "outputs) are int16, int8, int32 -> int16\n  expected: int8, int8, int32 -> int8;",
        ),
        (
            CONV,
            [Value((1, 4, 4, 2), np.int16, None, (0.5,), (3,)), W, B64],
            X,
            Conv2DOptions(Padding.SAME, 1, 1),
            "it has a zero point that is not 0\n  expected: 0 for int16",
        ),
        (
            DENSE,
            [ROWS, MATRIX, Value((2,), np.int64, np.array([1 << 47, 0]))],
            ROWS,
            FullyConnectedOptions(),
            "its sums may take more than 48 bits",
        ),
        (
            DENSE,
            [ROWS, MATRIX, B64],
            Value((3, 2), np.int16, None, (0.5 / 2**9,), (0,)),
            FullyConnectedOptions(),
            "the ratio of its scales is 2^8 or more\n  expected: below 2^7",
        ),
    ],
)
def test_refusals(
    code: BuiltinOperator, inputs: list[Value], output: Value, options: Options, text: str
) -> None:
    """What tflite-micro misreads, or has no exact result for, is refused."""
    assert text in refusal(model(code, inputs, output, options))
