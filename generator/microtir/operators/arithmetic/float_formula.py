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
from microtir.graph.ir import Node, TensorType
from microtir.graph.operator import Operator
from microtir.operators.arithmetic.definition import Add, BinaryArithmetic, Mul, Sub
from microtir.operators.arithmetic.form_formula import Scalars, of_form
from microtir.operators.arithmetic.integer_form import IntegerForm, Table
from microtir.operators.common.arithmetic import activate, centred
from microtir.operators.common.attributes import Activation

Floats = npt.NDArray[np.float32]
_EXACT: Mapping[type[Operator], Callable[..., te.Expr]] = MappingProxyType(
    {Add: operator.add, Sub: operator.sub, Mul: operator.mul}
)
_ON_ARRAYS: Mapping[str, Callable[[Floats, Floats], Floats]] = MappingProxyType(
    {Add.name: np.add, Sub.name: np.subtract, Mul.name: np.multiply}
)


def in_float(node: Node) -> Scalars:
    """Return the function of two elements of a node that is rescaled in float32."""
    form = form_of(node)
    if form is None:
        return _steps(node)
    return of_form(form, node, *ends_of(node.op, node.output.type))


def _steps(node: Node) -> Scalars:
    """Return the function as its definition has it: both real numbers, the operator, a quotient."""
    op, output = node.op, node.output.type
    assert isinstance(op, BinaryArithmetic)
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


def ends_of(op: Operator, output: TensorType) -> tuple[int, int]:
    """Return the least and the largest stored result: an activation clamps real numbers."""
    assert isinstance(op, BinaryArithmetic)
    quant = output.quant
    ends = np.array(op.activation.real_range, np.float32) / np.float32(quant.scale)
    stored = np.clip(np.rint(ends) + quant.zero_point, output.dtype.min, output.dtype.max)
    low, high = stored.tolist()
    return int(low), int(high)


def form_of(node: Node) -> IntegerForm | None:
    """Return integers that give every result; None where there are none, or data are not int8."""
    op, types = node.op, (*(t.type for t in node.inputs), node.output.type)
    assert isinstance(op, BinaryArithmetic)
    if any(type_.dtype is not DType.INT8 for type_ in types):
        return None
    scaling = tuple((t.quant.scale, t.quant.zero_point) for t in types)
    return _form(op.name, op.activation, scaling, ends_of(op, types[2]))


@lru_cache(maxsize=512)
def _form(
    name: str,
    activation: Activation,
    scaling: tuple[tuple[float, int], ...],
    ends: tuple[int, int],
) -> IntegerForm | None:
    (scale1, zero1), (scale2, zero2), (scale, zero) = scaling
    stored = np.arange(-128, 128)
    x, y = (
        (stored - z).astype(np.float32) * np.float32(s)
        for s, z in ((scale1, zero1), (scale2, zero2))
    )
    low, high = activation.real_range
    real = np.clip(_ON_ARRAYS[name](x[:, np.newaxis], y[np.newaxis]), low, high)
    results = np.clip(np.rint(real / np.float32(scale)) + zero, -128, 127).astype(np.int64)
    if name == Mul.name:
        factors = (0.0, 0.0, scale1 * scale2 / scale)
    else:
        factors = (
            scale1 / scale,
            math.copysign(scale2 / scale, 1 if name == Add.name else -1),
            0.0,
        )
    return Table((zero1, zero2), factors, results, *ends).form()
