from __future__ import annotations

import numpy as np
import pytest

from microtir.graph.operator import Operator
from microtir.operators.activations.definition import HardSwish, LeakyRelu, Logistic, Relu, Tanh
from microtir.operators.activations.tflite import LeakyReluOptions
from microtir.operators.arithmetic.definition import Add, Maximum, Minimum, Mul, Sub
from microtir.operators.arithmetic.tflite import AddOptions, SubOptions
from microtir.operators.common.attributes import Activation
from microtir.operators.common.tflite_schema import (
    BuiltinOperator,
    FusedOptions,
    Options,
    WeightsFormat,
)
from microtir.operators.common.tflite_schema import TfliteActivation as FileActivation
from microtir.operators.conversion.definition import CastTo, Dequantize, Quantize
from microtir.operators.dense.definition import FullyConnected
from microtir.operators.dense.tflite import FullyConnectedOptions
from microtir.operators.reduction.definition import Mean
from microtir.operators.reduction.tflite import ReducerOptions
from microtir.operators.softmax.definition import LogSoftmax, Softmax
from microtir.operators.softmax.tflite import SoftmaxOptions
from microtir.rewrite.reference import execute
from tests.frontend.models import Value, int8, ints, model, read, read_node, refusal, scalar, zeros
from tests.support.tflm import run_tflm

Code = BuiltinOperator


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (Code.RELU, Relu(Activation.RELU)),
        (Code.RELU6, Relu(Activation.RELU6)),
        (Code.RELU_N1_TO_1, Relu(Activation.RELU_N1_TO_1)),
        (Code.HARD_SWISH, HardSwish()),
        (Code.LOGISTIC, Logistic()),
        (Code.TANH, Tanh()),
    ],
)
def test_unary(code: BuiltinOperator, expected: Operator) -> None:
    """Activations without attributes become operators of their own."""
    assert read_node(code, [Value((1, 8))], Value((1, 8))).op == expected


def test_conversions() -> None:
    """QUANTIZE, DEQUANTIZE and CAST take their types from the tensors."""
    assert read_node(Code.QUANTIZE, [Value((1, 8))], int8(1, 8)).op == Quantize()
    assert read_node(Code.DEQUANTIZE, [int8(1, 8)], Value((1, 8))).op == Dequantize()
    assert read_node(Code.CAST, [Value((1, 8), np.int64)], Value((1, 8), np.uint8)).op == CastTo()


def test_leaky_relu() -> None:
    """The slope is the float32 value that the file stores."""
    node = read_node(Code.LEAKY_RELU, [Value((2, 3))], Value((2, 3)), LeakyReluOptions(0.1))
    assert node.op == LeakyRelu(float(np.float32(0.1)))


@pytest.mark.parametrize(
    ("code", "options", "expected"),
    [
        (Code.ADD, AddOptions(FileActivation.RELU), Add(Activation.RELU)),
        (Code.SUB, SubOptions(FileActivation.RELU6), Sub(Activation.RELU6)),
        (Code.MUL, FusedOptions(FileActivation.RELU_N1_TO_1), Mul(Activation.RELU_N1_TO_1)),
        (Code.MINIMUM, Options(), Minimum()),
        (Code.MAXIMUM, Options(), Maximum()),
    ],
)
def test_two_inputs_broadcast(code: BuiltinOperator, options: Options, expected: Operator) -> None:
    """Shapes stretch as in numpy; a constant input stays an input."""
    node = read_node(code, [Value((1, 4, 1, 3)), zeros(5, 1)], Value((1, 4, 5, 3)), options)
    assert node.op == expected
    assert [tensor.is_constant for tensor in node.inputs] == [False, True]


def test_softmax() -> None:
    """Beta is kept."""
    node = read_node(Code.SOFTMAX, [Value((1, 8))], Value((1, 8)), SoftmaxOptions(0.5))
    assert node.op == Softmax(0.5)
    node = read_node(Code.LOG_SOFTMAX, [Value((1, 8))], Value((1, 8)))
    assert node.op == LogSoftmax()


@pytest.mark.parametrize(
    ("axes", "keep", "shape", "expected"),
    [
        (ints(2, 1), False, (2, 5), Mean((1, 2), False)),
        (ints(-3, 2), True, (2, 1, 1, 5), Mean((1, 2), True)),
        (scalar(-1), False, (2, 3, 4), Mean((3,), False)),
        (ints(1, -3), False, (2, 4, 5), Mean((1,), False)),
        (ints(0, 1, 2, 3), False, (), Mean((0, 1, 2, 3), False)),
        (ints(), False, (2, 3, 4, 5), Mean((), False)),
    ],
)
def test_mean_axes(axes: Value, keep: bool, shape: tuple[int, ...], expected: Mean) -> None:
    """Axes are sorted, non-negative and once each, and no input any more."""
    node = read_node(Code.MEAN, [Value((2, 3, 4, 5)), axes], Value(shape), ReducerOptions(keep))
    assert node.op == expected
    assert len(node.inputs) == 1


@pytest.mark.parametrize("result", [(6, 4), (2, 3, 4), (1, 6, 1, 4)])
def test_fully_connected_rows(result: tuple[int, ...]) -> None:
    """Data of any rank is rows of the weights' width; the file says which shape the rows keep."""
    node = read_node(
        Code.FULLY_CONNECTED,
        [Value((2, 3, 5)), zeros(4, 5), zeros(4)],
        Value(result),
        FullyConnectedOptions(FileActivation.RELU, keep_num_dims=len(result) > 2),
    )
    assert node.op == FullyConnected(Activation.RELU)
    assert node.output.shape == result


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (
            model(Code.ADD, [Value((2, 3)), Value((2, 4))], Value((2, 4)), AddOptions()),
            "shapes (2, 3) and (2, 4)\n  expected: equal extents, or 1",
        ),
        (
            model(Code.ADD, [Value((2, 3)), Value((2, 1))], Value((2, 1)), AddOptions()),
            "tensor 'y0': its shape is (2, 1)\n  expected: (2, 3)",
        ),
        (
            model(Code.ADD, [Value((2,)), None], Value((2,)), AddOptions()),
            "input 1 is left out\n  expected: only a bias may be left out",
        ),
        (
            model(Code.ADD, [Value((2,))], Value((2,)), AddOptions()),
            "it has 1 inputs\n  expected: 2",
        ),
        (
            model(Code.RELU, [Value((2,))], [Value((2,)), Value((2,))]),
            "it has 2 outputs\n  expected: 1",
        ),
        (
            model(Code.SOFTMAX, [Value((2,))], Value((2,)), SoftmaxOptions(0.0)),
            "beta is 0.0\n  expected: finite and above 0",
        ),
        (
            model(Code.SOFTMAX, [Value(())], Value(()), SoftmaxOptions()),
            "the input is a scalar\n  expected: at least one dimension",
        ),
        (
            model(Code.LEAKY_RELU, [Value((2,))], Value((2,)), LeakyReluOptions(float("inf"))),
            "alpha is inf\n  expected: a finite number",
        ),
        (
            model(Code.MEAN, [Value((2, 3)), ints(2)], Value((2,)), ReducerOptions()),
            "axis 2 of a tensor with 2 dimensions\n  expected: -2 to 1",
        ),
        (
            model(Code.MEAN, [Value((2, 3)), Value((1,), np.int32)], Value((2,)), ReducerOptions()),
            "the model computes the axes (input 1 'x1')\n  expected: a constant",
        ),
        (
            model(Code.MEAN, [Value((2, 3)), zeros(1)], Value((2,)), ReducerOptions()),
            "the axes (input 1 'x1') has the type float32\n  expected: int32 or int64",
        ),
        (
            model(
                Code.FULLY_CONNECTED,
                [Value((2, 3)), zeros(4, 5)],
                Value((2, 4)),
                FullyConnectedOptions(),
            ),
            "input of shape (2, 3) for weights (4, 5)\n  expected: rows of 5 elements",
        ),
        (
            model(
                Code.FULLY_CONNECTED,
                [Value((2, 3)), zeros(4, 3)],
                Value((4, 2)),
                FullyConnectedOptions(),
            ),
            "tensor 'y0': its shape is (4, 2)\n  expected: (2, 4)",
        ),
        (
            model(
                Code.FULLY_CONNECTED,
                [Value((2, 3)), zeros(4, 3, 1)],
                Value((2, 4)),
                FullyConnectedOptions(),
            ),
            "input 1 has the shape (4, 3, 1)\n  expected: 2 dimensions",
        ),
        (
            model(
                Code.FULLY_CONNECTED,
                [Value((2, 3)), zeros(4, 3)],
                Value((2, 4)),
                FullyConnectedOptions(weights_format=WeightsFormat.SHUFFLED_4X16_INT8),
            ),
            "its weights are stored as SHUFFLED_4X16_INT8",
        ),
    ],
)
def test_refusals(data: bytes, text: str) -> None:
    """Each contradiction is named, with what would be legal."""
    assert text in refusal(data)


@pytest.mark.tools
@pytest.mark.parametrize("code", [BuiltinOperator.ADD, BuiltinOperator.SUB])
def test_sums_of_a_scale_at_which_references_end_are_refused(code: BuiltinOperator) -> None:
    """The finest scale of an output that tflite-micro runs is read, and equals its results."""
    x = np.arange(-128, 128).astype(np.int8)
    z = x[::-1].copy()
    finest = float(np.nextafter(np.float32(2.0**-20), np.float32(1)))
    operands = [int8(256, scale=0.05, zero_point=3), int8(256, scale=0.5, zero_point=3)]
    data = model(code, operands, int8(256, scale=finest, zero_point=-4))
    (want,) = run_tflm(data, x, z)
    np.testing.assert_array_equal(execute(read(data), {"x0": x, "x1": z})["y0"], want)
    text = refusal(model(code, operands, int8(256, scale=2.0**-20, zero_point=-4)))
    assert "it has the scale 9.53674316e-07, for which tflite-micro and LiteRT end" in text
    assert "expected: more than 2^-19 of 0.5, the largest scale of its inputs" in text
