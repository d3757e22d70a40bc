from __future__ import annotations

import numpy as np
import pytest

from microtir.dtype import DType
from microtir.errors import UsageError
from microtir.graph.ir import Array, Graph
from microtir.operators.activations.definition import Logistic, Relu
from microtir.operators.arithmetic.definition import Add, Mul
from microtir.operators.common.attributes import Activation
from microtir.operators.conversion.definition import CastTo, Dequantize, Quantize
from microtir.operators.convolution.definition import Conv2D
from microtir.operators.dense.definition import FullyConnected
from microtir.rewrite.reference import evaluate, execute
from tests.support.graphs import constant, graph, node, per_channel, quant, tensor

F32, I8 = DType.FLOAT32, DType.INT8


def _two_steps() -> Graph:
    x, middle, y = tensor("x", (2, 3)), tensor("middle", (2, 3)), tensor("y", (2, 3))
    two = constant("two", np.full((1,), 2, np.float32))
    return graph([node(Mul(), [x, two], middle), node(Add(), [middle, x], y)], [x], [y])


def test_execute_runs_nodes_in_order_and_shows_them() -> None:
    """Outputs come by name; the observer sees every node with its result."""
    seen: list[tuple[str, float]] = []
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    result = execute(
        _two_steps(), {"x": x}, lambda n, out: seen.append((n.name, float(out[0].sum())))
    )
    assert np.array_equal(result["y"], 3 * x)
    assert seen == [("middle_node", 30.0), ("y_node", 45.0)]


@pytest.mark.parametrize(
    ("inputs", "text"),
    [
        ({}, "got inputs []"),
        ({"x": np.zeros((2, 3), np.float32), "z": np.zeros(1)}, "got inputs ['x', 'z']"),
        ({"x": np.zeros((3, 2), np.float32)}, "got an array of float32 (3, 2)"),
        ({"x": np.zeros((2, 3), np.int8)}, "got an array of int8 (2, 3)"),
    ],
)
def test_execute_refuses_other_inputs(inputs: dict[str, Array], text: str) -> None:
    """Missing, unknown and ill-typed inputs are named."""
    with pytest.raises(UsageError) as error:
        execute(_two_steps(), inputs)
    assert text in str(error.value)


def test_hybrid_weights_are_dequantised_per_channel() -> None:
    """Float activations with int8 weights: the weight of channel c is w * scale[c]."""
    scales = per_channel([0.5, 0.25], 0)
    weights = constant("w", np.array([[2, -4], [127, -128]], np.int8), scales)
    bias = constant("b", np.array([0.5, -1.0], np.float32))
    x, y = tensor("x", (1, 2)), tensor("y", (1, 2))
    dense = node(FullyConnected(Activation.RELU), [x, weights, bias], y)
    assert weights.data is not None and bias.data is not None
    features = np.array([[3.0, 1.0]], np.float32)
    (result,) = evaluate(dense, [features, weights.data, bias.data])
    expected = [3 * 1.0 - 1 * 2.0 + 0.5, max(0.0, 3 * 31.75 - 32.0 - 1.0)]
    assert result.tolist() == [expected]


def test_hybrid_equals_convolution_with_dequantised_weights() -> None:
    """A hybrid convolution and one that reads dequantised weights give the same bits."""
    rng = np.random.default_rng(5)
    data = rng.integers(-127, 128, (4, 3, 3, 2)).astype(np.int8)
    stored = constant("w", data, per_channel(rng.uniform(0.01, 0.1, 4).tolist(), 0))
    real = tensor("real", data.shape)
    (dequantized,) = evaluate(node(Dequantize(), [stored], real), [data])
    x, y = tensor("x", (1, 6, 6, 2)), tensor("y", (1, 4, 4, 4))
    image = rng.standard_normal(x.shape).astype(np.float32)
    (hybrid,) = evaluate(node(Conv2D(), [x, stored], y), [image, data])
    (plain,) = evaluate(node(Conv2D(), [x, real], y), [image, dequantized])
    assert np.array_equal(hybrid, plain)


def test_quantize_saturates_beyond_int32() -> None:
    """Infinities saturate and NaN gives the least value, where C leaves the result undefined."""
    x, y = tensor("x", (5,)), tensor("y", (5,), I8, quant(0.5, 7))
    values = np.array([np.inf, -np.inf, np.nan, 1e30, 0.25], np.float32)
    (result,) = evaluate(node(Quantize(), [x], y), [values])
    assert result.tolist() == [127, -128, -128, 127, 8]


def test_cast_truncates_saturates_and_wraps() -> None:
    """Float to int truncates and saturates at int32; narrower integers keep the low bits."""
    x, y = tensor("x", (4,)), tensor("y", (4,), DType.INT32)
    values = np.array([-1.9, 1.9, 3e9, -3e9], np.float32)
    (wide,) = evaluate(node(CastTo(), [x], y), [values])
    assert wide.tolist() == [-1, 1, 2**31 - 1, -(2**31)]
    narrow, flag = tensor("narrow", (4,), I8), tensor("flag", (4,), DType.BOOL)
    source = tensor("source", (4,), DType.INT32)
    numbers = np.array([300, -129, 0, -1], np.int32)
    assert evaluate(node(CastTo(), [source], narrow), [numbers])[0].tolist() == [44, 127, 0, -1]
    truth = evaluate(node(CastTo(), [source], flag), [numbers])[0]
    assert truth.tolist() == [True, True, False, True]


def test_float_logistic_is_the_function_itself() -> None:
    """Far from zero the result is exact to one rounding, without overflow."""
    x, y = tensor("x", (4,)), tensor("y", (4,))
    values = np.array([-200.0, -20.0, 0.0, 90.0], np.float32)
    (result,) = evaluate(node(Logistic(), [x], y), [values])
    assert result.tolist() == [0.0, np.float32(1 / (1 + np.exp(20.0))), 0.5, 1.0]


def test_relu_n1_to_1_clamps_the_rescaled_value() -> None:
    """RELU_N1_TO_1, which tflite-micro lacks, is RELU with both bounds."""
    x, y = tensor("x", (3,), I8, quant(0.25)), tensor("y", (3,), I8, quant(0.125, 3))
    relu = node(Relu(Activation.RELU_N1_TO_1), [x], y)
    (result,) = evaluate(relu, [np.array([-100, 2, 100], np.int8)])
    assert result.tolist() == [-5, 7, 11]
