"""Random elementwise layers: extremes of two, clamps, tables, and arithmetic of two inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Quantization, Tensor
from microtir.graph.operator import Operator
from microtir.operators.activations import definition as activations
from microtir.operators.arithmetic.definition import (
    Add,
    Maximum,
    Minimum,
    Mul,
    SquaredDifference,
    Sub,
)
from microtir.operators.common.attributes import Activation, Rescaling
from microtir.operators.conversion.definition import Quantize, Tabulated
from microtir.operators.unary import definition as unary
from microtir.tir.ir import Array
from tests.support import graphs
from tests.support.dsp_cases import DspCase

_EXTENTS = (1, 2, 3, 4, 5, 7, 8, 12, 15, 16, 17, 30, 33, 130)
_DTYPES = (DType.INT8, DType.INT8, DType.INT8, DType.INT16)
_UNARY: tuple[Operator, ...] = (
    *map(activations.Relu, (Activation.RELU, Activation.RELU6, Activation.RELU_N1_TO_1)),
    activations.LeakyRelu(0.2), activations.Elu(), activations.HardSwish(), activations.Logistic(),
    activations.Tanh(), activations.Gelu(), unary.Abs(), unary.Neg(), unary.Sqrt(), unary.Rsqrt(),
    unary.Exp(), unary.Log(), unary.ZerosLike(), Quantize(),
)  # fmt: skip
_POSITIVE = unary.Sqrt | unary.Rsqrt | unary.Log
# Results of these lie in 0 to 1 and -1 to 1, whose scales are the only legal ones.
_FIXED: Mapping[type[Operator], Quantization] = {
    activations.Logistic: graphs.quant(1 / 256, -128), activations.Tanh: graphs.quant(1 / 128, 0),
}  # fmt: skip


def of_floats(seed: int) -> DspCase:
    """Draw a layer of float32: a clamp, or an operator of two operands that repeat or not."""
    rng = np.random.default_rng([seed, 34])
    kind = list(Activation)[seed // 6 % 4]
    if seed % 6 == 5:
        x, y = (graphs.tensor(n, shape, DType.FLOAT32) for shape in [_shape(rng)] for n in "xy")
        kind = Activation.RELU if kind is Activation.NONE else kind
        return _case(f"f32_clamp_{seed}", activations.Relu(kind), (x,), y, rng)
    op = (Minimum(), Maximum(), Add(kind), Sub(kind), Mul(kind))[seed % 6]
    return _with_other(f"f32_{op.name.lower()}", seed, op, DType.FLOAT32, seed // 6, rng)


def sigmoid(seed: int) -> DspCase:
    """Draw LOGISTIC or TANH of int16, with the scales of an exact form or any other one."""
    rng = np.random.default_rng([seed, 37])
    op = activations.Tanh() if seed % 2 else activations.Logistic()
    exponent = rng.choice([-12, -11, rng.uniform(-24, 0)])
    shape = _shape(rng)
    x = graphs.tensor("x", shape, DType.INT16, graphs.quant(float(np.float32(2.0**exponent)), 0))
    y = graphs.tensor("y", shape, DType.INT16, graphs.quant(2**-15, 0))
    return _case(f"{op.name.lower()}_int16_{seed}", op, (x,), y, rng)


def elementwise(seed: int) -> DspCase:
    """Draw a layer: one half extremes, of operands that repeat or not, the other one of a byte."""
    return (_of_two if seed % 2 else _of_one)(seed // 2, np.random.default_rng([seed, 33]))


def _shape(rng: np.random.Generator) -> tuple[int, ...]:
    height, width = (int(n) for n in rng.integers(1, 6, 2))
    return 1, height, width, int(rng.choice(_EXTENTS))


def _of_one(seed: int, rng: np.random.Generator) -> DspCase:
    """Draw a table or a clamp; every other scale stays."""
    number = seed % (len(_UNARY) + 1)
    table = Tabulated(rng.integers(-128, 128, 256).astype(np.int8).tobytes())
    op = _UNARY[number] if number < len(_UNARY) else table
    zero = -128 if isinstance(op, _POSITIVE) else int(rng.integers(-100, 100))
    stored = graphs.quant(0.05, zero)
    x = graphs.tensor("x", _shape(rng), DType.INT8, stored)
    result = stored if rng.random() < 0.5 else graphs.quant(0.03, int(rng.integers(-100, 100)))
    y = graphs.tensor("y", x.shape, DType.INT8, _FIXED.get(type(op), result))
    name = "clamped" if isinstance(op, activations.Relu) and result is stored else "looked_up"
    return _case(f"{name}_{seed}", op, (x,), y, rng)


def _of_two(seed: int, rng: np.random.Generator) -> DspCase:
    """Draw an extreme of an input and another one: as large, or one that repeats."""
    op, dtype = (Minimum, Maximum)[seed % 2](), _DTYPES[seed // 2 % len(_DTYPES)]
    stored = [graphs.quant(0.05, 0 if dtype is DType.INT16 else 3)] * 3
    name = f"{op.name.lower()}_{dtype.value}"
    return _with_other(name, seed, op, dtype, seed // 8, rng, stored)


def rescaled(seed: int) -> DspCase:
    """Draw QUANTIZE of int8, int16 and uint8, RELU or LEAKY_RELU of int16, or PRELU of int8."""
    rng = np.random.default_rng([seed, 35])
    if seed % 7 > 4:
        return (_prelu if seed % 7 == 5 else _uint8)(seed, rng)
    relu = activations.Relu(list(Activation)[1 + seed // 5 % 3])
    op = (Quantize(), Quantize(), Quantize(), relu, activations.LeakyRelu(0.2))[seed % 7]
    source, target = ((DType.INT8, DType.INT16), (DType.INT16, DType.INT8))[seed % 2]
    if seed % 7 > 1:
        source = target = DType.INT16
    factor = float(np.exp(rng.uniform(-0.6, 0.6))) if seed % 4 else 1.0
    x, y = (
        graphs.tensor(name, shape, dtype, graphs.quant(scale / 256, 0)
                      if dtype is DType.INT16 else graphs.quant(scale, int(rng.integers(-99, 99))))
        for shape in [_shape(rng)]
        for name, dtype, scale in (("x", source, 0.05), ("y", target, 0.05 * factor))
    )  # fmt: skip
    return _case(f"rescaled_{op.name.lower()}_{seed}", op, (x,), y, rng)


def _prelu(seed: int, rng: np.random.Generator) -> DspCase:
    """Draw a PRELU of constants: one, one for each channel or column, or as many as elements."""
    shape = _shape(rng)
    of_alpha = ((1,), shape[3:], (*shape[2:3], 1), shape[1:])[seed // 7 % 4]
    scale = float(np.exp(rng.uniform(-5, -1)))
    x, y = (
        graphs.tensor(name, shape, DType.INT8, graphs.quant(scale * times, int(zero)))
        for name, times, zero in zip("xy", (1, rng.uniform(0.5, 2)), rng.integers(-128, 128, 2),
                                     strict=True)
    )  # fmt: skip
    quant = graphs.quant(
        float(rng.choice((1 / 128, rng.uniform(0.001, 0.02)))), int(rng.integers(9))
    )
    alpha = graphs.constant("alpha", _drawn(rng, of_alpha, DType.INT8), quant)
    return _case(f"rescaled_prelu_{seed}", activations.Prelu(), (x, alpha), y, rng)


def _uint8(seed: int, rng: np.random.Generator) -> DspCase:
    """Draw a QUANTIZE from or to uint8; between types, half of them change the sign bit alone."""
    shape, number = _shape(rng), seed // 7 % 5
    dtypes = ((DType.UINT8, DType.UINT8), (DType.UINT8, DType.INT8), (DType.INT8, DType.UINT8))[
        (number + 1) // 2
    ]
    scales = [0.05, float(rng.uniform(0.02, 0.1))]
    zeros = [int(rng.integers(dtype.min, dtype.max + 1)) for dtype in dtypes]
    if number in (1, 3):
        scales[1], zeros[1] = scales[0], zeros[0] + dtypes[1].min - dtypes[0].min
    x, y = (
        graphs.tensor(name, shape, dtype, graphs.quant(scale, zero))
        for name, dtype, scale, zero in zip("xy", dtypes, scales, zeros, strict=True)
    )
    name = "flipped" if number in (1, 3) else "rescaled_uint8"
    return _case(f"{name}_{seed}", Quantize(), (x,), y, rng)


def arithmetic(seed: int) -> DspCase:
    """Draw ADD, SUB, MUL or SQUARED_DIFFERENCE of unlike scales, as `_of_two` draws operands.

    Every third one is of int16.
    """
    rng = np.random.default_rng([seed, 34])
    activation = Activation(rng.choice(np.array([a.value for a in Activation])))
    dtype = DType.INT16 if seed % 3 == 2 else DType.INT8
    in_float = rng.random() < 0.2 and dtype is DType.INT8
    rescaling = Rescaling.FLOAT32 if in_float else Rescaling.FIXED_POINT
    first, second = (float(np.exp(rng.uniform(-5, -1))) for _ in range(2))
    if rng.random() < 0.4:  # few digits: sums end half way between integers
        first, second = (round(scale, 2) for scale in (first, second))
    ops: tuple[tuple[Operator, float], ...] = (
        (Add(activation, rescaling=rescaling), first + second),
        (Sub(activation, rescaling=rescaling), first + second),
        (Mul(activation), 128 * first * second),
        (SquaredDifference(), 128 * max(first, second) ** 2),
    )
    op, largest = ops[seed % len(ops)]
    result = largest * float(np.exp(rng.uniform(-2, 0.5)))
    scales = first, second, max(round(result, 2), 0.01) if first == round(first, 2) else result
    types = [graphs.quant(scale, int(rng.integers(-128, 128))) for scale in scales]
    if dtype is DType.INT16:  # of scales that are equal, a power of two or any other ratio
        second = (second, first, first / 4, second)[seed // 12 % 4]
        types = [graphs.quant(scale / 256, 0) for scale in (first, second, scales[2])]
    name = f"{op.name.lower()}_{dtype.value}"
    return _with_other(name, seed, op, dtype, seed // 4, rng, types)


def _with_other(
    name: str,
    seed: int,
    op: Operator,
    dtype: DType,
    number: int,
    rng: np.random.Generator,
    stored: Sequence[Quantization | None] = (None, None, None),
) -> DspCase:
    """Return an operator of an input and the other operand that has a number."""
    shape = _shape(rng)
    _, height, width, channels = shape
    others: tuple[tuple[tuple[int, ...], bool], ...] = (
        (shape, False), (shape, True), ((channels,), True), ((1,), True), ((channels,), False),
        ((1,), False), ((width, 1), True), ((height, 1, channels), True), ((height, 1, 1), False),
    )  # fmt: skip
    other, is_constant = others[number % len(others)]
    a, b = (
        graphs.tensor(*of)
        for of in zip("ab", (shape, other), (dtype,) * 2, stored[:2], strict=True)
    )
    if is_constant:
        b = graphs.constant("b", _drawn(rng, other, dtype), stored[1])
    operands = (b, a) if rng.random() < 0.5 else (a, b)
    y = graphs.tensor("y", shape, dtype, stored[2])
    row = "_row" if is_constant and other == (channels,) and stored[0] else ""
    return _case(f"{name}{row}_{seed}", op, operands, y, rng)


def _drawn(rng: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    if dtype.is_float:
        return (rng.integers(-64, 65, shape) / 8).astype(np.float32)  # some are equal
    return rng.integers(dtype.min, dtype.max + 1, shape).astype(dtype.value)


def _case(
    name: str, op: Operator, inputs: tuple[Tensor, ...], y: Tensor, rng: np.random.Generator
) -> DspCase:
    read = tuple(t for t in inputs if not t.is_constant)
    data = tuple(_drawn(rng, t.shape, t.dtype) for t in read)
    return DspCase(name, graphs.graph([graphs.node(op, inputs, y)], read, [y]), data)
