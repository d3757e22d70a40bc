"""What is computed in double and what in float32, decided by tflite-micro.

The two differ by 2^-25 of their value, which random data does not show.  So each test searches for
scales and inputs for which the other precision would give another result, and compares there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from microtir.dtype import DType
from microtir.operators.activations.tflite import LeakyReluOptions
from microtir.operators.arithmetic.definition import ADD_LEFT_SHIFTS
from microtir.operators.common.fixed_point import (
    Ints,
    inverse_square_root,
    multiply_by_quantized_multiplier,
)
from microtir.operators.common.multiplier import QuantizedMultiplier, quantize_multiplier
from microtir.operators.common.tflite_schema import TfliteActivation
from microtir.operators.convolution.tflite import Conv2DOptions
from microtir.operators.pooling.tflite import Pool2DOptions
from microtir.operators.unary.definition import RSQRT_SHIFT
from microtir.rewrite.reference import execute
from tests.support.sketch import Array, Case, Quant, Sketch
from tests.support.tflm import run_tflm

F32 = np.float32
ATTEMPTS = 20_000
EVERY_VALUE = np.arange(-128, 128)


def _sketch(operator: str) -> Sketch:
    return Sketch(operator.lower(), operator, np.dtype(np.int8), np.random.default_rng(11))


def _scales(s: Sketch, count: int) -> Iterator[list[float]]:
    """Candidate scales, as float32 values."""
    for _ in range(ATTEMPTS):
        yield [float(F32(s.rng.uniform(0.01, 0.1))) for _ in range(count)]


def _differs(values: Ints, used: float, other: float) -> Array:
    """Where two factors requantise values differently, within int8."""
    first = multiply_by_quantized_multiplier(values, *quantize_multiplier(used))
    second = multiply_by_quantized_multiplier(values, *quantize_multiplier(other))
    return np.asarray((first != second) & (np.abs(first) < 127))


def _find(
    s: Sketch, count: int, values: Ints, factors: Callable[..., tuple[float, float]]
) -> tuple[list[float], Ints]:
    """Scales, and the values for which `factors` (the right one, the other) disagree."""
    for scales in _scales(s, count):
        where = _differs(values, *factors(*scales))
        if where.any():
            return scales, values[where]
    raise AssertionError("no scales found that tell the precisions apart")


def _check(case: Case) -> None:
    """The reference and tflite-micro agree on the case."""
    (actual,) = execute(case.graph(), case.named_inputs()).values()
    (expected,) = run_tflm(case.model, *case.inputs)
    assert np.array_equal(actual, expected)


def _unary(s: Sketch, scales: list[float], options: LeakyReluOptions | None = None) -> Case:
    shape = (1, 256)
    x = s.input(shape, Quant(scales[0], 0), EVERY_VALUE.astype(np.int8).reshape(shape))
    return s.finish([x], s.output(shape, Quant(scales[1], 0)), options)


@pytest.mark.tools
def test_relu_divides_scales_in_double() -> None:
    """RELU: the quotient of the scales is a double."""
    s = _sketch("RELU")
    scales, _ = _find(s, 2, np.arange(128), lambda a, b: (a / b, float(F32(a / b))))
    _check(_unary(s, scales))


@pytest.mark.tools
def test_abs_divides_scales_in_double() -> None:
    """ABS: the quotient of the scales is a double."""
    s = _sketch("ABS")
    scales, _ = _find(s, 2, np.arange(128), lambda a, b: (a / b, float(F32(F32(a) / F32(b)))))
    _check(_unary(s, scales))


@pytest.mark.tools
def test_rsqrt_takes_roots_of_scales_in_double() -> None:
    """RSQRT: root and product of the scales are doubles."""
    s = _sketch("RSQRT")
    multiplier, shift = inverse_square_root(np.arange(1, 128))
    roots = multiply_by_quantized_multiplier(1, multiplier, shift + RSQRT_SHIFT)

    def factors(a: float, b: float) -> tuple[float, float]:
        single = float(F32(np.sqrt(F32(a)) * F32(b)))
        return 2.0**-RSQRT_SHIFT / (math.sqrt(a) * b), 2.0**-RSQRT_SHIFT / single

    scales, _ = _find(s, 2, roots, factors)
    x = s.input((1, 127), Quant(scales[0], 0), np.arange(1, 128).astype(np.int8).reshape(1, 127))
    _check(s.finish([x], s.output((1, 127), Quant(scales[1], 0))))


@pytest.mark.tools
def test_leaky_relu_multiplies_and_divides_in_double() -> None:
    """LEAKY_RELU: scale * alpha / scale is a double throughout."""
    s, alpha = _sketch("LEAKY_RELU"), float(F32(0.3))

    def factors(a: float, b: float) -> tuple[float, float]:
        return a * alpha / b, float(F32(F32(a * alpha) / F32(b)))

    scales, _ = _find(s, 2, np.arange(-128, 0), factors)
    _check(_unary(s, scales, LeakyReluOptions(alpha)))


@pytest.mark.tools
def test_hard_swish_divides_scales_in_double() -> None:
    """HARD_SWISH: its 16-bit multiplier is rounded from the quotient of the scales as a double."""
    s = _sketch("HARD_SWISH")
    for a, b in _scales(s, 2):
        mantissas = [_int16_mantissa(real) for real in (a / 128 / b, float(F32(a / 128 / b)))]
        if mantissas[0] != mantissas[1]:
            break
    else:
        raise AssertionError("no scales found that tell the precisions apart")
    _check(_unary(s, [a, b]))


def _int16_mantissa(real: float) -> int:
    return (quantize_multiplier(real).multiplier + (1 << 15)) >> 16


@pytest.mark.tools
def test_requantisation_divides_in_double() -> None:
    """QUANTIZE between integer types: the quotient of the scales is a double."""
    s = _sketch("QUANTIZE")
    scales, _ = _find(s, 2, EVERY_VALUE, lambda a, b: (a / b, float(F32(a / b))))
    _check(_unary(s, scales))


@pytest.mark.tools
def test_mul_computes_in_double() -> None:
    """MUL: product and quotient of the scales are doubles."""
    s = _sketch("MUL")
    first, second = (grid.reshape(1, -1) for grid in np.meshgrid(EVERY_VALUE, EVERY_VALUE))
    products = np.unique(first * second)
    scales, _ = _find(s, 3, products, lambda a, b, c: (a * b / c, float(F32(F32(a * b) / F32(c)))))
    _check(_binary(s, scales, first, second))


def _binary(s: Sketch, scales: list[float], first: Ints, second: Ints) -> Case:
    operands = [
        s.input(values.shape, Quant(scale, 0), values.astype(np.int8))
        for values, scale in zip((first, second), scales, strict=False)
    ]
    return s.finish(operands, s.output(first.shape, Quant(scales[2], 0)))


def _accumulators() -> Ints:
    """Sums that a layer may reach; only the last bits of the multiplier matter for large ones."""
    return np.arange(1, 1 << 18)


def _layer_factors(a: float, b: float, c: float) -> tuple[float, float]:
    """Input, weight and output scales to the factor of a layer: in double, and in float32."""
    return a * b / (c * 32), float(F32(a * b)) / (c * 32)


@pytest.mark.tools
def test_fully_connected_computes_in_double() -> None:
    """FULLY_CONNECTED: product and quotient are doubles, also for weights with one scale."""
    s = _sketch("FULLY_CONNECTED")
    scales, sums = _find(s, 3, _accumulators(), _layer_factors)
    x = s.input((1, 1), Quant(scales[0], 0), np.zeros((1, 1), np.int8))
    weights = s.weights(np.zeros((len(sums), 1), np.int8), scales[1:2], 0)
    bias = s.bias(sums.astype(np.int32), [float(F32(scales[0] * scales[1]))])
    output = s.output((1, len(sums)), Quant(scales[2] * 32, 0))
    _check(s.finish([x, weights, bias], output))


@pytest.mark.tools
@pytest.mark.parametrize("per_channel", [False, True])
def test_convolution_computes_in_double(per_channel: bool) -> None:
    """CONV_2D: product and quotient are doubles, for weights with one scale and with several."""
    s = _sketch("CONV_2D")
    scales, sums = _find(s, 3, _accumulators(), _layer_factors)
    channels = max(2, len(sums))
    sums = np.resize(sums, channels)
    weight_scales = scales[1:2] * (channels if per_channel else 1)
    x = s.input((1, 1, 1, 1), Quant(scales[0], 0), np.zeros((1, 1, 1, 1), np.int8))
    weights = s.weights(np.zeros((channels, 1, 1, 1), np.int8), weight_scales, 0)
    bias = s.bias(sums.astype(np.int32), [float(F32(scales[0] * w)) for w in weight_scales])
    output = s.output((1, 1, 1, channels), Quant(scales[2] * 32, 0))
    _check(s.finish([x, weights, bias], output, Conv2DOptions()))


def _multipliers(
    first: float, second: float, output: float, narrow: Callable[[float], float]
) -> list[QuantizedMultiplier]:
    """The three multipliers of ADD and SUB, each step rounded by `narrow`."""
    twice_max = 2 * max(first, second)
    widened = narrow(output * (1 << ADD_LEFT_SHIFTS[DType.INT8]))
    factors = (first / twice_max, second / twice_max, twice_max / widened)
    return [quantize_multiplier(narrow(factor)) for factor in factors]


def _sum(multipliers: list[QuantizedMultiplier], first: Ints, second: Ints, sign: int) -> Ints:
    one = 1 << ADD_LEFT_SHIFTS[DType.INT8]
    total = multiply_by_quantized_multiplier(first * one, *multipliers[0])
    total = total + sign * multiply_by_quantized_multiplier(second * one, *multipliers[1])
    return np.clip(multiply_by_quantized_multiplier(total, *multipliers[2]), -128, 127)


@pytest.mark.tools
@pytest.mark.parametrize(("operator", "sign"), [("ADD", 1), ("SUB", -1)])
def test_add_and_sub_compute_in_double(operator: str, sign: int) -> None:
    """The three multipliers of ADD and SUB come from doubles."""
    s = _sketch(operator)
    first, second = (grid.reshape(1, -1) for grid in np.meshgrid(EVERY_VALUE, EVERY_VALUE))
    for scales in _scales(s, 3):
        in_double, in_float = (
            _sum(_multipliers(scales[0], scales[1], scales[2], narrow), first, second, sign)
            for narrow in (float, lambda value: float(F32(value)))
        )
        if not np.array_equal(in_double, in_float):
            break
    else:
        raise AssertionError("no scales found that tell the precisions apart")
    _check(_binary(s, scales, first, second))


@pytest.mark.tools
@pytest.mark.parametrize("operator", ["RELU6", "MAX_POOL_2D"])
def test_clamps_divide_in_float32(operator: str) -> None:
    """The stored value of 6 is a float32 quotient: on a tie that a double does not see."""
    s = _sketch(operator)
    # The double quotient lies just below half a step; as a float32 it is half a step.
    scale = next(
        scale
        for half in np.arange(20.5, 120, 1.0)
        for scale in [float(np.nextafter(F32(6 / half), F32(1))), float(F32(6 / half))]
        if 6 / scale < half == float(F32(6 / scale))
    )
    shape = (1, 1, 256, 1)
    x = s.input(shape, Quant(scale, 0), EVERY_VALUE.astype(np.int8).reshape(shape))
    options = (
        Pool2DOptions(activation=TfliteActivation.RELU6) if operator == "MAX_POOL_2D" else None
    )
    _check(s.finish([x], s.output(shape, Quant(scale, 0)), options))


@pytest.mark.tools
def test_quantize_divides_in_float32() -> None:
    """QUANTIZE of floats: the quotient is a float32, which may be a tie where a double is not."""
    s = Sketch("quantize", "QUANTIZE", np.dtype(np.float32), np.random.default_rng(3))
    scale = s.scale(0.01, 0.1)
    halves = np.arange(-100.5, 100, 1.0)
    near = (halves * scale).astype(F32)
    values = np.concatenate([near, np.nextafter(near, F32(0))])
    exact = np.concatenate([halves, halves])
    in_double = values.astype(np.float64) / scale
    tells = (values / F32(scale) == exact) & (np.abs(in_double) < np.abs(exact))
    assert tells.any()
    x = s.input(values.shape, values=values)
    _check(s.finish([x], s.output(values.shape, Quant(scale, 0), np.int8)))
