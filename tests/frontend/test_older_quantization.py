"""Models of the older quantisation, in uint8: the same bits as LiteRT, with operators of int8."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import microtir
from microtir import CompilationConfig, Target
from microtir.dtype import DType
from microtir.graph.ir import Graph
from microtir.operators.common.tflite_schema import BuiltinOperator as Code
from microtir.operators.common.tflite_schema import Padding
from microtir.operators.convolution.tflite import Conv2DOptions
from microtir.operators.dense.tflite import FullyConnectedOptions
from microtir.operators.movement.definition import Relabel
from microtir.operators.movement.tflite import ConcatenationOptions
from microtir.operators.pooling.tflite import Pool2DOptions
from microtir.rewrite.imports.older_quantization import EXACT
from microtir.rewrite.reference import execute
from microtir.rewrite.verify import verify
from microtir.writers.tflite import TfliteBuilder
from tests.execute.cases import compare
from tests.support.c_compilers import STRICT
from tests.support.litert import run_litert
from tests.support.older_sketch import older_case
from tests.support.seeds import is_soak, seeds
from tests.support.sketch import Array
from tests.support.tflm import run_tflm

WEIGHTED = ("CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV", "FULLY_CONNECTED")
OPERATORS = (
    *WEIGHTED,
    *("ADD", "SUB", "MUL", "DIV", "MINIMUM", "MAXIMUM", "SELECT_V2", "PRELU"),
    *("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL"),
    *("RELU", "RELU6", "LEAKY_RELU", "HARD_SWISH", "LOGISTIC", "TANH", "SOFTMAX", "LOG_SOFTMAX"),
    *("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "ARG_MAX", "ARG_MIN"),
    *("AVERAGE_POOL_2D", "MAX_POOL_2D", "RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"),
    *("L2_NORMALIZATION", "PAD", "PADV2", "CONCATENATION", "RESHAPE", "TRANSPOSE"),
    *("PACK", "UNPACK", "SPLIT", "STRIDED_SLICE", "QUANTIZE", "DEQUANTIZE"),
)

REWRITTEN = (
    *WEIGHTED,
    *("AVERAGE_POOL_2D", "RESIZE_BILINEAR", "L2_NORMALIZATION", "TANH", "PAD"),
)
"""Those that are not simply operators of int8."""


@pytest.mark.tools
def test_a_sigmoid_next_to_a_half() -> None:
    """One result was one more: in double it was a half in the end, and in float32 steps less."""
    case = older_case("LOGISTIC", 98589400003)
    [result] = execute(case.graph(), case.named_inputs()).values()
    np.testing.assert_array_equal(result, run_litert(case.model, *case.inputs)[0])


@pytest.mark.tools
@pytest.mark.soak
@pytest.mark.parametrize("operator", OPERATORS)
def test_results_are_those_of_litert(operator: str) -> None:
    """Operators of uint8 give the bits of LiteRT's reference kernels.

    LiteRT refuses more than half of all transposed convolutions, those whose output has not the
    size that it computes, so that three seeds in a row may compare nothing: cases are drawn until
    three of them were compared.
    """
    compared = 0
    for seed in seeds(3, 60):
        case = older_case(operator, seed)
        graph = case.graph()
        verify(graph)
        results = execute(graph, case.named_inputs()).values()
        try:
            expected = run_litert(case.model, *case.inputs)
        except RuntimeError:
            continue  # some attributes are refused there
        for result, want in zip(results, expected, strict=True):
            np.testing.assert_array_equal(result, want, err_msg=case.name)
        compared += 1
        if compared == 3:
            return
    pytest.fail(f"{compared} of 60 cases were taken by LiteRT")


def dense(seed: int, zero_point: int) -> tuple[bytes, Array]:
    """A fully connected layer with many outputs, whose weights have a zero point, and an input."""
    rng, builder = np.random.default_rng(seed), TfliteBuilder()

    def tensor(name: str, shape: tuple[int, int], low: float, high: float, zero: int) -> int:
        scale = float(np.float32(rng.uniform(low, high)))
        data = rng.integers(0, 256, shape).astype(np.uint8) if name == "weights" else None
        return builder.tensor(name, shape, np.uint8, data, [scale], [zero])

    x = tensor("x", (64, 64), 0.01, 0.1, int(rng.integers(0, 256)))
    weights = tensor("weights", (256, 64), 0.001, 0.02, zero_point)
    y = tensor("y", (64, 256), 0.1, 0.6, int(rng.integers(100, 156)))
    builder.operator(Code.FULLY_CONNECTED, [x, weights], [y], FullyConnectedOptions())
    return builder.build([x], [y]), rng.integers(0, 256, (64, 64)).astype(np.uint8)


@pytest.mark.tools
@pytest.mark.parametrize(("zero_point", "is_block"), [(128, True), (77, False)])
def test_fully_connected_multiplies_in_double_as_litert(zero_point: int, is_block: bool) -> None:
    """There all other kernels round twice: one in 4,000 results would be another.

    Blocks have integers that give the same for every sum, a plain loop has doubles.
    """
    for seed in range(3):
        data, x = dense(seed, zero_point)
        (expected,) = run_litert(data, x)
        for target in ("c", "c -mcpu=cortex-m4"):
            config = CompilationConfig.from_target(Target(target))
            artifact = microtir.build(microtir.frontend.from_tflite(data), config)
            names = [
                op.candidate.kernel for op in artifact.module.require_program("x").plan.operators
            ]
            assert any(name.startswith("dense_s8") for name in names) is is_block
            np.testing.assert_array_equal(microtir.host.load(artifact).run({"x": x})["y"], expected)
            (source,) = (file.text for file in artifact.sources if file.path == "model.c")
            assert ("double_has_64_bits" in source) is not is_block


@pytest.mark.tools
@pytest.mark.soak
def test_c_equals_reference(tmp_path: Path) -> None:
    """Integers equal to the bit; compiled without a warning."""
    operators = OPERATORS if is_soak() else REWRITTEN
    compare([older_case(o, seed) for o in operators for seed in seeds(50, 1)], tmp_path, STRICT)


def test_exact_operators_are_compared() -> None:
    """Every operator of which kernels are said to be equal has cases here."""
    made = {type(node.op) for o in OPERATORS for node in older_case(o, 0).graph().nodes}
    assert made >= EXACT - {Relabel}  # which unlike scales make


def network(zero_point: int) -> bytes:
    """A convolution, pooling, two reshaped and joined halves, a dense layer, a softmax: uint8."""
    builder, rng = TfliteBuilder(), np.random.default_rng(5)

    def tensor(
        name: str, shape: tuple[int, ...], scale: float, zero: int, data: Array | None = None
    ) -> int:
        return builder.tensor(name, shape, np.uint8, data, [scale], [zero])

    def weights(name: str, *shape: int) -> int:
        values = rng.integers(0, 256, shape).astype(np.uint8)
        return tensor(name, shape, 0.01, zero_point, values)

    def bias(name: str, count: int, scale: float) -> int:
        values = rng.integers(-500, 500, count).astype(np.int32)
        return builder.tensor(name, (count,), np.int32, values, [scale], [0])

    x = tensor("x", (1, 8, 8, 3), 0.02, 120)
    convolved = tensor("convolved", (1, 8, 8, 4), 0.05, 100)
    builder.operator(
        Code.CONV_2D,
        [x, weights("w1", 4, 3, 3, 3), bias("b1", 4, 0.0002)],
        [convolved],
        Conv2DOptions(Padding.SAME, 1, 1),
    )
    maximum = tensor("maximum", (1, 4, 4, 4), 0.05, 100)
    average = tensor("average", (1, 4, 4, 4), 0.05, 100)
    for code, pooled in ((Code.MAX_POOL_2D, maximum), (Code.AVERAGE_POOL_2D, average)):
        builder.operator(code, [convolved], [pooled], Pool2DOptions(Padding.VALID, 2, 2, 2, 2))
    joined = tensor("joined", (1, 4, 4, 8), 0.06, 90)
    builder.operator(Code.CONCATENATION, [maximum, average], [joined], ConcatenationOptions(3))
    flat = tensor("flat", (1, 128), 0.06, 90)
    builder.operator(Code.RESHAPE, [joined, builder.tensor("s", (2,), np.int32, [1, 128])], [flat])
    dense = tensor("dense", (1, 5), 0.3, 128)
    builder.operator(
        Code.FULLY_CONNECTED,
        [flat, weights("w2", 5, 128), bias("b2", 5, 0.0006)],
        [dense],
        FullyConnectedOptions(),
    )
    y = tensor("y", (1, 5), 1 / 256, 0)
    builder.operator(Code.SOFTMAX, [dense], [y])
    return builder.build([x], [y, convolved])


def read(data: bytes) -> Graph:
    """Return the graph of a model."""
    graph = microtir.frontend.from_tflite(data).graph
    assert graph is not None
    return graph


@pytest.mark.tools
@pytest.mark.parametrize("zero_point", [3, 128])
def test_a_network_stays_in_int8(zero_point: int, tmp_path: Path) -> None:
    """Bits are flipped where the model begins and ends, and around what is done in uint8."""
    data = network(zero_point)
    graph = read(data)
    assert [node.op.name for node in graph.nodes] == [
        *("quantize", "conv_2d", "max_pool_2d", "quantize", "average_pool_2d"),
        *("quantize", "tabulated", "tabulated", "concatenation", "reshape", "fully_connected"),
        *("softmax", "quantize"),
    ]
    kind = DType.INT16 if zero_point == 3 else DType.INT8
    weighted = [node for node in graph.nodes if node.op.name in ("conv_2d", "fully_connected")]
    assert {node.inputs[1].dtype for node in weighted} == {kind}
    compiled = microtir.host.load(microtir.build(microtir.frontend.from_tflite(data)))
    for seed in range(3):
        x = np.random.default_rng(seed).integers(0, 256, (1, 8, 8, 3)).astype(np.uint8)
        results = compiled.run({"x": x})
        for result, expected in zip(results.values(), run_litert(data, x), strict=True):
            np.testing.assert_array_equal(result, expected)


@pytest.mark.tools
def test_weights_of_int8_with_a_zero_point() -> None:
    """FULLY_CONNECTED of int8 takes a zero point of its weights into account, as tflite-micro."""
    builder, rng = TfliteBuilder(), np.random.default_rng(7)
    values = rng.integers(-128, 128, (5, 16)).astype(np.int8)
    x = builder.tensor("x", (4, 16), np.int8, None, [0.1], [3])
    weights = builder.tensor("weights", (5, 16), np.int8, values, [0.02], [-50])
    y = builder.tensor("y", (4, 5), np.int8, None, [0.4], [-7])
    builder.operator(Code.FULLY_CONNECTED, [x, weights], [y], FullyConnectedOptions())
    data = builder.build([x], [y])
    given = rng.integers(-128, 128, (4, 16)).astype(np.int8)
    (expected,) = run_tflm(data, given)
    np.testing.assert_array_equal(execute(read(data), {"x": given})["y"], expected)
    compiled = microtir.host.load(microtir.build(microtir.frontend.from_tflite(data)))
    np.testing.assert_array_equal(compiled.run({"x": given})["y"], expected)
