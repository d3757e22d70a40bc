"""Operators that work element by element: look-ups, conversions, arithmetic with broadcasting."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType

from microtir import te
from microtir.graph.ir import Node
from microtir.graph.operator import Operator
from microtir.kernels.common.layer import Layer
from microtir.kernels.portable.arithmetic import activate, centred, requantise, stored, wide
from microtir.operators.activations.definition import HardSwish, LeakyRelu, Logistic, Relu, Tanh
from microtir.operators.arithmetic.definition import (
    Add,
    BinaryArithmetic,
    Maximum,
    Minimum,
    Mul,
    Sub,
    add_params,
    mul_params,
)
from microtir.operators.common.attributes import Activation
from microtir.operators.conversion.definition import quantize_params, requantize_params
from microtir.operators.tables import lookup_table
from microtir.tir.dtype import DType

Scalars = Callable[[te.Expr, te.Expr], te.Expr]


def binary_cost(node: Node) -> int:
    """Instructions, from counts of emulated Cortex-M3 and M4: int8 is rescaled three times."""
    return node.output.type.elements * (12 if node.output.dtype.is_float else 45)


def keeps_rows(node: Node) -> bool:
    """Whether element i of the output depends on element i of each input that is not constant."""
    shape = node.output.shape
    return all(t.is_constant or t.shape == shape for t in node.inputs)


# --- one input ----------------------------------------------------------------------------------


def table(layer: Layer) -> None:
    """Emit any int8 to int8 function as a look-up of its 256 results."""
    node = layer.node
    values = lookup_table(node.op, node.inputs[0].type, node.output.type)
    entries, x = te.constant(values, "table"), layer.image(0)
    layer.rows(lambda *at: entries[wide(x.at(*at)) - DType.INT8.min])


def float_function(layer: Layer) -> None:
    """Emit an activation on float32."""
    function, x = _FLOAT_FUNCTIONS[type(layer.node.op)], layer.image(0)
    layer.rows(lambda *at: function(layer.node.op, te.bind("value", x.at(*at))))


def _relu(op: Operator, x: te.Expr) -> te.Expr:
    assert isinstance(op, Relu)
    return activate(x, op.kind)


def _leaky_relu(op: Operator, x: te.Expr) -> te.Expr:
    assert isinstance(op, LeakyRelu)
    return te.select(x > 0.0, x, x * op.alpha)


def _hard_swish(_op: Operator, x: te.Expr) -> te.Expr:
    return x * activate(x + 3.0, Activation.RELU6) / 6.0


def _logistic(_op: Operator, x: te.Expr) -> te.Expr:
    return te.const(1.0, DType.FLOAT32) / (te.exp(-x) + 1.0)


def _tanh(_op: Operator, x: te.Expr) -> te.Expr:
    return te.tanh(x)


_FLOAT_FUNCTIONS: Mapping[type[Operator], Callable[[Operator, te.Expr], te.Expr]] = (
    MappingProxyType(
        {
            Relu: _relu,
            LeakyRelu: _leaky_relu,
            HardSwish: _hard_swish,
            Logistic: _logistic,
            Tanh: _tanh,
        }
    )
)


def quantize(layer: Layer) -> None:
    """Emit QUANTIZE from float32, or between integer types that are no look-up."""
    node, x = layer.node, layer.image(0)
    source, target = node.inputs[0].type, node.output.type
    if source.dtype is DType.FLOAT32:
        real = quantize_params(target)

        def from_float(*at: te.Expr) -> te.Expr:
            # Clamped before the conversion: C leaves a float outside the integer undefined.
            low, high = real.minimum - real.zero_point, real.maximum - real.zero_point
            rounded = te.clamp(te.round(x.at(*at) / real.scale), float(low), float(high))
            return te.cast(target.dtype, te.cast(DType.INT32, rounded) + real.zero_point)

        layer.rows(from_float)
        return
    params = requantize_params(source, target)

    def from_integer(*at: te.Expr) -> te.Expr:
        scaled = requantise(centred(x.at(*at), params.input_zero_point), params.multiplier)
        return stored(
            scaled, params.output_zero_point, params.minimum, params.maximum, target.dtype
        )

    layer.rows(from_integer)


def dequantize(layer: Layer) -> None:
    """Emit DEQUANTIZE to float32."""
    quant, x = layer.node.inputs[0].type.quant, layer.image(0)
    layer.rows(
        lambda *at: te.cast(DType.FLOAT32, centred(x.at(*at), quant.zero_point)) * quant.scale
    )


def cast(layer: Layer) -> None:
    """Emit CAST: integers keep their low bits, floats are truncated."""
    x, dtype = layer.image(0), layer.node.output.dtype
    layer.rows(lambda *at: _convert(x.at(*at), dtype))


def _convert(value: te.Expr, dtype: DType) -> te.Expr:
    source = value.dtype
    if dtype is DType.BOOL:
        return value != te.const(0, source)
    if source is DType.BOOL:
        return te.select(value, te.const(1, dtype), te.const(0, dtype))
    if dtype.is_float or source is dtype:
        return te.cast(dtype, value)
    if source.is_float:
        return te.cast(dtype, te.clamp(value, float(dtype.min), _largest_float(dtype)))
    if source.min >= dtype.min and source.max <= dtype.max:
        return te.cast(dtype, value)
    # TIR casts keep values; two's complement keeps the low bits, so take them by a remainder.
    big = DType.INT64
    low_bits = (te.cast(big, value) - dtype.min) % (1 << dtype.bits) + dtype.min
    return te.cast(dtype, low_bits)


def _largest_float(dtype: DType) -> float:
    """Largest float32 that the integer type holds: 2^31 - 1 is not a float32."""
    return float(dtype.max) if dtype.bits <= 24 else math.ldexp(1.0 - 2.0**-24, dtype.bits - 1)


# --- two inputs ---------------------------------------------------------------------------------


def binary(layer: Layer) -> None:
    """Emit ADD, SUB, MUL, MINIMUM or MAXIMUM with numpy broadcasting."""
    combine = _combiner(layer.node)
    if layer.takes_row_range:
        a, b = _rows_reader(layer, 0), _rows_reader(layer, 1)
        layer.rows(lambda *at: combine(a(at), b(at)))
    else:
        left, right = _reader(layer, 0), _reader(layer, 1)
        layer.tensor(lambda *at: combine(left(at), right(at)))


Reader = Callable[[tuple[te.Expr, ...]], te.Expr]


def _rows_reader(layer: Layer, position: int) -> Reader:
    tensor = layer.node.inputs[position]
    if tensor.shape == layer.node.output.shape:
        edge = layer.image(position)
        return lambda at: edge.at(*at)
    # A constant that is broadcast: address it by the coordinates behind (row, column, channel).
    read, shape = _reader(layer, position), layer.node.output.shape
    return lambda at: read(_coordinates(at, shape))


def _coordinates(at: tuple[te.Expr, ...], shape: tuple[int, ...]) -> tuple[te.Expr, ...]:
    row, column, channel = at
    match len(shape):
        case 4:
            if shape[0] == 1:
                return (te.as_expr(0), row, column, channel)
            return (row // shape[1], row % shape[1], column, channel)
        case 3:
            return (row // shape[1], row % shape[1], channel)
        case 2:
            return (row, channel)
        case _:
            return (channel,)[: len(shape)]


def _reader(layer: Layer, position: int) -> Reader:
    """Reads an input at an output position: axes of extent 1 repeat, leading ones are absent."""
    shape, rank = layer.node.inputs[position].shape, len(layer.node.output.shape)
    tensor = layer.whole(position)

    def read(at: tuple[te.Expr, ...]) -> te.Expr:
        own = at[rank - len(shape) :]
        zero = te.as_expr(0)
        return tensor[tuple(zero if n == 1 else i for n, i in zip(shape, own, strict=True))]

    return read


def _combiner(node: Node) -> Scalars:
    op = node.op
    if isinstance(op, Minimum):
        return te.minimum
    if isinstance(op, Maximum):
        return te.maximum
    assert isinstance(op, BinaryArithmetic)
    if node.output.dtype is not DType.INT8:
        return _plain(op)
    if isinstance(op, Mul):
        return _mul_int8(node, op)
    assert isinstance(op, Add | Sub)
    return _add_int8(node, op)


_SYMBOLS: Mapping[type[Operator], Scalars] = MappingProxyType(
    {Add: lambda a, b: a + b, Sub: lambda a, b: a - b, Mul: lambda a, b: a * b}
)


def _plain(op: BinaryArithmetic) -> Scalars:
    function = _SYMBOLS[type(op)]
    if op.activation is Activation.NONE:
        return function
    return lambda a, b: activate(function(a, b), op.activation)


def _add_int8(node: Node, op: Add | Sub) -> Scalars:
    a_type, b_type = (t.type for t in node.inputs)
    params = add_params(op, a_type, b_type, node.output.type)
    function = _SYMBOLS[type(op)]
    factor = 1 << params.left_shift

    def combine(a: te.Expr, b: te.Expr) -> te.Expr:
        left = requantise(centred(a, params.input1_zero_point) * factor, params.input1)
        right = requantise(centred(b, params.input2_zero_point) * factor, params.input2)
        total = requantise(function(left, right), params.output)
        low, high = params.activation_min, params.activation_max
        return stored(total, params.output_zero_point, low, high, DType.INT8)

    return combine


def _mul_int8(node: Node, op: Mul) -> Scalars:
    a_type, b_type = (t.type for t in node.inputs)
    params = mul_params(op, a_type, b_type, node.output.type)

    def combine(a: te.Expr, b: te.Expr) -> te.Expr:
        product = centred(a, params.input1_zero_point) * centred(b, params.input2_zero_point)
        total = requantise(product, params.multiplier)
        low, high = params.activation_min, params.activation_max
        return stored(total, params.output_zero_point, low, high, DType.INT8)

    return combine
