"""Compute sums and products of stored elements as float32 does, by integers where those exist."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from microtir import te
from microtir.dtype import DType
from microtir.graph.ir import Node, Quantization, TensorType
from microtir.graph.operator import Operator
from microtir.operators.arithmetic.definition import Add, BinaryArithmetic, Mul, Sub, exact_factor
from microtir.operators.arithmetic.form_formula import Scalars, of_form
from microtir.operators.arithmetic.integer_form import IntegerForm, Table
from microtir.operators.common.arithmetic import activate, centred
from microtir.operators.common.attributes import Activation, Rescaling
from microtir.operators.common.linear import float_range, reciprocal
from microtir.operators.common.weighted import StoredRange, stored_in_double

Floats = npt.NDArray[np.floating]
_EXACT: Mapping[type[Operator], Callable[..., te.Expr]] = MappingProxyType(
    {Add: operator.add, Sub: operator.sub, Mul: operator.mul}
)
_ON_ARRAYS: Mapping[str, Callable[[Floats, Floats], Floats]] = MappingProxyType(
    {Add.name: np.add, Sub.name: np.subtract, Mul.name: np.multiply}
)


def in_float(node: Node) -> Scalars:
    """Return the function of two elements of a node that is rescaled by real numbers."""
    form = form_of(node)
    if form is None:
        assert isinstance(node.op, BinaryArithmetic)
        return _exact(node) if node.op.rescaling is Rescaling.EXACT else _steps(node)
    return of_form(form, node, *ends_of(node.op, node.output.type))


def _steps(node: Node) -> Scalars:
    """Return the function as its definition has it: both real numbers, the operator, a quotient."""
    op, output = node.attributes(BinaryArithmetic), node.output.type
    first, second = (tensor.type.quant for tensor in node.inputs)
    quant = output.quant
    low, high = output.dtype.min - quant.zero_point, output.dtype.max - quant.zero_point

    def real(x: te.Expr, zero_point: int, scale: float) -> te.Expr:
        return te.no_fp_contract(te.cast(DType.FLOAT32, centred(x, zero_point)) * scale)

    def combine(a: te.Expr, b: te.Expr) -> te.Expr:
        left = real(a, first.zero_point, first.scale)
        right = real(b, second.zero_point, second.scale)
        result = te.no_fp_contract(activate(_EXACT[type(op)](left, right), op.activation))
        clamped = te.bind("clamped", te.clamp(result / quant.scale, float(low), float(high)))
        rounded = te.cast(DType.INT32, te.round_small(clamped))
        return te.cast(output.dtype, rounded + quant.zero_point)

    return combine


def _exact(node: Node) -> Scalars:
    """Return the function in doubles, which hold what float32 scales give."""
    op, output, types = node.op, node.output.type, _types(node)
    first, second, _ = (t.quant for t in types)
    limits = StoredRange(output.quant.zero_point, *ends_of(op, output))

    def combine(a: te.Expr, b: te.Expr) -> te.Expr:
        left = te.cast(DType.FLOAT64, centred(a, first.zero_point))
        right = te.cast(DType.FLOAT64, centred(b, second.zero_point))
        if isinstance(op, Mul):
            real = left * right * te.const(exact_factor(*types), DType.FLOAT64)
        else:
            left, right = left * _single(first.scale), right * _single(second.scale)
            real = _EXACT[type(op)](left, right) * _single(reciprocal(output))
        return stored_in_double(real, limits, output.dtype, ties_to_even=True)

    return combine


def _types(node: Node) -> tuple[TensorType, TensorType, TensorType]:
    first, second = (tensor.type for tensor in node.inputs)
    return first, second, node.output.type


def _single(number: float) -> te.Expr:
    return te.const(float(np.float32(number)), DType.FLOAT64)


def ends_of(op: Operator, output: TensorType) -> tuple[int, int]:
    """Return the least and the largest stored result: an activation clamps real numbers."""
    assert isinstance(op, BinaryArithmetic)
    return float_range(op.activation, output, op.rescaling)


def form_of(node: Node) -> IntegerForm | None:
    """Return integers that give every result; None where there are none, or data are not int8."""
    op, types = node.attributes(BinaryArithmetic), _types(node)
    if any(type_.dtype is not DType.INT8 for type_ in types):
        return None
    scaling = tuple((t.quant.scale, t.quant.zero_point) for t in types)
    return _form(op.name, op.activation, scaling, ends_of(op, types[2]), op.rescaling)


def _float32_quotients(
    name: str, activation: Activation, scaling: tuple[tuple[float, int], ...]
) -> Floats:
    """Return the quotients of all pairs of int8, every step rounded to float32."""
    x, y = ((_STORED - zero).astype(np.float32) * np.float32(scale) for scale, zero in scaling[:2])
    real = _ON_ARRAYS[name](x[:, np.newaxis], y[np.newaxis])
    quotients: Floats = np.clip(real, *activation.real_range) / np.float32(scaling[2][0])
    return quotients


def _exact_quotients(name: str, scaling: tuple[tuple[float, int], ...]) -> Floats:
    """Return the quotients of all pairs of int8 in doubles, as `_exact` computes them."""
    first, second, output = (
        TensorType((), DType.INT8, Quantization((scale,), (zero,))) for scale, zero in scaling
    )
    x = (_STORED[:, np.newaxis] - first.quant.zero_point).astype(np.float64)
    y = (_STORED - second.quant.zero_point).astype(np.float64)
    if name == Mul.name:
        products: Floats = x * y * exact_factor(first, second, output)
        return products
    left, right = (
        v * float(np.float32(scale)) for v, (scale, _) in zip((x, y), scaling, strict=False)
    )
    sums: Floats = _ON_ARRAYS[name](left, right) * reciprocal(output)
    return sums


_STORED = np.arange(DType.INT8.min, DType.INT8.max + 1)


@lru_cache(maxsize=512)
def _form(
    name: str,
    activation: Activation,
    scaling: tuple[tuple[float, int], ...],
    ends: tuple[int, int],
    rescaling: Rescaling,
) -> IntegerForm | None:
    (scale1, zero1), (scale2, zero2), (scale, zero) = scaling
    if rescaling is Rescaling.EXACT:
        quotients = _exact_quotients(name, scaling)
    else:
        quotients = _float32_quotients(name, activation, scaling)
    results = np.clip(np.rint(quotients) + zero, *ends).astype(np.int64)
    if name == Mul.name:
        factors = (0.0, 0.0, scale1 * scale2 / scale)
    else:
        factors = (
            scale1 / scale,
            math.copysign(scale2 / scale, 1 if name == Add.name else -1),
            0.0,
        )
    return Table((zero1, zero2), factors, results, *ends).form()
