"""Compute element-wise operators of two inputs, with numpy broadcasting."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from microtir import te
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.graph.operator import Operator
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
from microtir.operators.common.arithmetic import activate, centred, requantise, stored
from microtir.operators.common.attributes import Activation
from microtir.operators.common.formula import Formula, FormulaContext, same_row_if

Scalars = Callable[[te.Expr, te.Expr], te.Expr]


def cost(node: Node) -> int:
    """Estimate instructions, from emulated Cortex-M3 and M4: int8 is rescaled three times."""
    return node.output.type.elements * (12 if node.output.dtype.is_float else 45)


def keeps_rows(node: Node) -> bool:
    """Return whether output element i depends on element i of each activation only."""
    shape = node.output.shape
    return all(t.is_constant or t.shape == shape for t in node.inputs)


def binary(layer: FormulaContext) -> None:
    """Emit ADD, SUB, MUL, MINIMUM or MAXIMUM with numpy broadcasting."""
    combine = _combiner(layer.node)
    if layer.takes_row_range:
        a, b = _rows_reader(layer, 0), _rows_reader(layer, 1)
        layer.rows(lambda *at: combine(a(at), b(at)))
    else:
        left, right = _reader(layer, 0), _reader(layer, 1)
        layer.tensor(lambda *at: combine(left(at), right(at)))


Reader = Callable[[tuple[te.Expr, ...]], te.Expr]


def _rows_reader(layer: FormulaContext, position: int) -> Reader:
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


def _reader(layer: FormulaContext, position: int) -> Reader:
    """Read an input at an output position: axes of extent 1 repeat, leading ones are absent."""
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


_BINARY = Formula(binary, cost, same_row_if(keeps_rows))

FORMULAS: Mapping[type[Operator], Formula] = MappingProxyType(
    {
        Add: _BINARY,
        Sub: _BINARY,
        Mul: _BINARY,
        Minimum: _BINARY,
        Maximum: _BINARY,
    }
)
