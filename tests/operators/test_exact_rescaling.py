"""Integers of PT2E: the exact value of its formula, to the nearest, of two the even one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microtir import CompilationConfig, build, host
from microtir.dtype import DType
from microtir.graph.ir import Array, Graph, Node, Quantization, SourceLocation, Tensor, TensorType
from microtir.graph.operator import Operator
from microtir.kernels.common.requantise import requantisation
from microtir.module.ir_module import IRModule
from microtir.operators.arithmetic.definition import Add, Mul, Sub
from microtir.operators.common.attributes import Activation, Padding2D, Rescaling
from microtir.operators.common.linear import (
    LinearParams,
    exact_factors,
    rescaled_in_float,
)
from microtir.operators.common.multiplier import QuantizedMultiplier
from microtir.operators.conversion.definition import Quantize
from microtir.operators.matmul.definition import BatchMatmul
from microtir.operators.pooling.definition import AveragePool2D
from microtir.operators.reduction.definition import Mean
from microtir.operators.transposed_convolution.definition import TransposeConv
from microtir.rewrite.imports.exact_layers import is_exact
from microtir.rewrite.reference import execute

Ints = npt.NDArray[np.int64]
STORED = np.arange(-128, 128, dtype=np.int8)
FIRST, SECOND = (np.ascontiguousarray(x) for x in np.meshgrid(STORED, STORED, indexing="ij"))
SCALES = st.floats(np.log(1e-3), np.log(0.2)).map(lambda log: float(np.float32(np.exp(log))))
ROUND_SCALES = st.integers(4, 9).map(lambda bits: 2.0**-bits)
ANY_SCALES = st.lists(SCALES | ROUND_SCALES, min_size=3, max_size=3)
ZEROS = st.lists(st.integers(-128, 127), min_size=3, max_size=3)


def of_int8(name: str, shape: tuple[int, ...], scale: float, zero: int = 0) -> Tensor:
    """Return a tensor with one scale."""
    return Tensor(name, TensorType(shape, DType.INT8, Quantization((scale,), (zero,))))


def graph_of(op: Operator, inputs: Sequence[Tensor], output: Tensor) -> Graph:
    """Return a graph of one operator."""
    node = Node(op, tuple(inputs), (output,), "layer", SourceLocation("made", 0, "OP"))
    return Graph("exact", tuple(inputs), (output,), (node,))


def stored(real: Fraction, zero: int, low: int = -128) -> int:
    """Return what an exact quotient is stored as: Python rounds fractions to even."""
    return min(max(round(real) + zero, low), 127)


def inverse(scale: float) -> Fraction:
    """Return the float32 reciprocal of a scale."""
    return Fraction(float(np.float32(1.0 / scale)))


def near_halves(graph: Graph, real: Callable[[int, int], Fraction]) -> None:
    """Compare what a graph of pairs gives with exact fractions, where doubles are near a half."""
    output = graph.outputs[0]
    (got,) = execute(graph, {"x": FIRST, "y": SECOND}).values()
    x, y = (t.type.quant.zero_point for t in graph.inputs)
    one, two = float(real(1, 0)), float(real(0, 1))
    a, b = FIRST.astype(np.int64) - x, SECOND.astype(np.int64) - y
    about = a * b * float(real(1, 1)) if not one else a * one + b * two
    places = np.argsort(np.abs(about - np.floor(about) - 0.5), axis=None)[:300]
    for at in zip(*np.unravel_index(places, got.shape), strict=True):
        wanted = stored(real(int(a[at]), int(b[at])), output.type.quant.zero_point)
        assert got[at] == wanted, at


@settings(max_examples=40, deadline=None)
@given(st.sampled_from([Add, Sub, Mul]), ANY_SCALES, ZEROS)
def test_pairs(op: type[Add | Sub | Mul], scales: list[float], zeros: list[int]) -> None:
    """Sums and products of two tensors, those nearest to the middle of two integers."""
    inputs = [of_int8(name, FIRST.shape, scales[n], zeros[n]) for n, name in enumerate("xy")]
    output = of_int8("z", FIRST.shape, scales[2], zeros[2])
    graph = graph_of(op(rescaling=Rescaling.EXACT), inputs, output)
    assert is_exact(graph.nodes[0])
    s, t = map(Fraction, scales[:2])
    if op is Mul:
        near_halves(graph, lambda a, b: a * b * s * t * inverse(scales[2]))
    else:
        sign = 1 if op is Add else -1
        near_halves(graph, lambda a, b: (a * s + sign * b * t) * inverse(scales[2]))


@settings(max_examples=150, deadline=None)
@given(ANY_SCALES, st.integers(-128, 127), st.booleans(), st.integers(0, 1 << 32))
def test_sums_of_layers(scales: list[float], zero: int, relu: bool, seed: int) -> None:
    """At ties, beside them and anywhere; and integers of kernels give the same."""
    data, weights, output = (
        TensorType((1,), DType.INT8, Quantization((scale,), (0,))) for scale in scales
    )
    factors, low = exact_factors(data, weights, output), zero if relu else -128
    unused = (QuantizedMultiplier(1 << 30, 0),)
    params = LinearParams(0, zero, unused, low, 127, factors, Rescaling.EXACT)
    exact = Fraction(scales[0]) * Fraction(scales[1]) * inverse(scales[2])
    middles = np.rint((np.arange(-256, 257) + 0.5) / factors[0]).astype(np.int64)
    drawn = np.random.default_rng(seed).integers(-(1 << 20), 1 << 20, 99)
    sums = np.concatenate([middles - 1, middles, middles + 1, drawn])
    sums = sums[np.abs(sums) < 1 << 22]
    wanted = np.array([stored(int(n) * exact, zero, low) for n in sums])
    assert np.array_equal(rescaled_in_float(sums[:, np.newaxis], params)[:, 0], wanted)
    made = requantisation(params, np.zeros(1, np.int64), np.array([1 << 22], np.int64))
    if made is None:  # several exact ties
        return
    assert not made.rescaling.in_float
    bias, multiplier, rounding, shift = made.constants[0].tolist()
    high = ((2 * sums + bias) * multiplier + (1 << 31)) >> 32
    assert np.array_equal(np.clip((high + rounding) >> shift, low, 127), wanted)


def test_most_factors_have_integers() -> None:
    """Of random factors as layers have them nearly all do: no core is to multiply doubles."""
    rng = np.random.default_rng(0)
    factors = np.exp(rng.uniform(np.log(1e-3), np.log(0.05), 200))
    unused = (QuantizedMultiplier(1 << 30, 0),)
    one, largest = np.array([500], np.int64), np.array([300_000], np.int64)
    params = [LinearParams(0, -128, unused, -128, 127, (f,), Rescaling.EXACT) for f in factors]
    made = [requantisation(p, one, largest) for p in params]
    assert sum(m is not None for m in made) > 190


CASES = {
    "pool_clipped": AveragePool2D(
        window=(3, 3), strides=(1, 1), padding=Padding2D(1, 1, 1, 1), activation=Activation.RELU,
        rescaling=Rescaling.EXACT,
    ),
    "pool_inside": AveragePool2D(
        window=(2, 2), strides=(2, 2), padding=Padding2D(), activation=Activation.NONE,
        rescaling=Rescaling.EXACT,
    ),
    "mean": Mean(axes=(1, 2), keep_dims=True, rescaling=Rescaling.EXACT),
    "quantize": Quantize(ties_to_even=True, by_reciprocal=True, rescaling=Rescaling.EXACT),
}  # fmt: skip
SHAPES = {"pool_clipped": (1, 4, 6, 3), "pool_inside": (1, 2, 3, 3), "mean": (1, 1, 1, 3)}


@pytest.mark.parametrize("ratio", [1.0, 0.5, 0.7312])
@pytest.mark.parametrize("name", CASES)
def test_code_gives_exact_means(name: str, ratio: float) -> None:
    """Generated C equals fractions, also where all are ties and no integers give them."""
    shape = (1, 4, 6, 3)
    x = of_int8("x", shape, 2.0**-4, 3)
    y = of_int8("y", SHAPES.get(name, shape), float(np.float32(2.0**-4 / ratio)), -2)
    graph = graph_of(CASES[name], [x], y)
    assert is_exact(graph.nodes[0])
    data = np.random.default_rng(5).integers(-128, 128, shape).astype(np.int8)
    (made,) = execute(graph, {"x": data}).values()
    wanted = exact_means(
        name, data.astype(np.int64) - 3, Fraction(2.0**-4) * inverse(y.type.quant.scale)
    )
    assert np.array_equal(made, wanted)
    artifact = build(IRModule(graph=graph), CompilationConfig(targets="c"))
    (got,) = host.load(artifact).run({"x": data}).values()
    assert np.array_equal(got, made)


def exact_means(name: str, centred: Ints, factor: Fraction) -> Ints:
    """Return what the means of windows are stored as, by fractions."""
    op = CASES[name]
    if isinstance(op, Quantize):
        flat = [stored(int(n) * factor, -2) for n in centred.reshape(-1)]
        return np.array(flat).reshape(centred.shape)
    window, stride, pad, low = (4, 6), (1, 1), 0, -128
    if isinstance(op, AveragePool2D):
        window, stride, pad = op.window, op.strides, op.padding.top
        low = -2 if op.activation is Activation.RELU else -128
    shape = SHAPES[name]
    result = np.zeros(shape, np.int64)
    for _, row, column, channel in np.ndindex(*shape):
        top, left = row * stride[0] - pad, column * stride[1] - pad
        part = centred[0, max(top, 0) : top + window[0], max(left, 0) : left + window[1], channel]
        result[0, row, column, channel] = stored(int(part.sum()) * factor / part.size, -2, low)
    return result


def checked(graph: Graph, data: dict[str, Array], sums: Ints, factors: Sequence[Fraction]) -> None:
    """Compare the numpy reference with fractions of sums, channels last, and C with both."""
    (node,), output = graph.nodes, graph.outputs[0]
    assert is_exact(node)
    zero, low = output.type.quant.zero_point, -128
    if getattr(node.op, "activation", Activation.NONE) is Activation.RELU:
        low = zero
    by_channel = [factors[n % len(factors)] for n in range(sums.shape[-1])]
    flat = [stored(int(n) * by_channel[at % len(by_channel)], zero, low)
            for at, n in enumerate(sums.reshape(-1))]  # fmt: skip
    (made,) = execute(graph, data).values()
    assert np.array_equal(made, np.array(flat).reshape(sums.shape))
    for goal in ("balanced", "flash"):
        artifact = build(IRModule(graph=graph), CompilationConfig(targets="c", optimize=goal))
        (got,) = host.load(artifact).run(data).values()
        assert np.array_equal(got, made), goal


@pytest.mark.parametrize("ratio", [0.5, 0.0713])
@pytest.mark.parametrize("turns", [(False, False), (False, True), (True, False)])
def test_products_of_matrices(turns: tuple[bool, bool], ratio: float) -> None:
    """With zero points on both sides, at ties and elsewhere, whichever way the matrices lie."""
    adj_x, adj_y = turns
    x = of_int8("x", (2, 5, 3) if adj_x else (2, 3, 5), 2.0**-5, 7)
    y = of_int8("y", (2, 4, 5) if adj_y else (2, 5, 4), 2.0**-4, -9)
    z = of_int8("z", (2, 3, 4), float(np.float32(2.0**-9 / ratio)), 5)
    graph = graph_of(BatchMatmul(adj_x, adj_y, rescaling=Rescaling.EXACT), [x, y], z)
    rng = np.random.default_rng(8)
    data = {t.name: rng.integers(-128, 128, t.shape).astype(np.int8) for t in (x, y)}
    first, second = data["x"].astype(np.int64) - 7, data["y"].astype(np.int64) + 9
    sums = np.zeros(z.shape, np.int64)
    for n, row, column, k in np.ndindex(2, 3, 4, 5):
        a = first[n, k, row] if adj_x else first[n, row, k]
        sums[n, row, column] += a * (second[n, column, k] if adj_y else second[n, k, column])
    checked(graph, data, sums, [Fraction(2.0**-9) * inverse(z.type.quant.scale)])


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("activation", [Activation.NONE, Activation.RELU])
def test_transposed_convolutions(activation: Activation, stride: int) -> None:
    """With a scale for each channel, a bias, and windows that overlap or leave gaps."""
    rng = np.random.default_rng(9)
    x, taps, size = of_int8("x", (1, 3, 4, 2), 2.0**-4, -3), 3, (2 * stride + 3, 3 * stride + 3)
    scales = (2.0**-6, 0.0123, 0.031)
    quant = Quantization(tuple(float(np.float32(s)) for s in scales), (0,) * 3, axis=0)
    weights = rng.integers(-127, 128, (3, taps, taps, 2)).astype(np.int8)
    bias = rng.integers(-900, 900, 3).astype(np.int32)
    steps = Quantization(tuple(2.0**-4 * s for s in quant.scales), (0,) * 3, axis=0)
    y = of_int8("y", (1, *size, 3), 0.03, 11)
    graph = graph_of(
        TransposeConv((stride, stride), activation=activation, rescaling=Rescaling.EXACT),
        [x, Tensor("w", TensorType(weights.shape, DType.INT8, quant), weights),
         Tensor("b", TensorType((3,), DType.INT32, steps), bias)], y,
    )  # fmt: skip
    graph = replace(graph, inputs=(x,))
    data = rng.integers(-128, 128, x.shape).astype(np.int8)
    sums = np.zeros(y.shape, np.int64) + bias
    for row, column, down, right in np.ndindex(3, 4, taps, taps):
        pixel = data[0, row, column].astype(np.int64) + 3
        sums[0, row * stride + down, column * stride + right] += weights[:, down, right] @ pixel
    of_output = Fraction(2.0**-4) * inverse(y.type.quant.scale)
    checked(graph, {"x": data}, sums, [Fraction(s) * of_output for s in quant.scales])
