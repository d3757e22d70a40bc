"""Read ONNX's arithmetic of two and more operands."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Tensor
from microtir.graph.operator import Operator
from microtir.operators import arithmetic
from microtir.operators.arithmetic.definition import Add, Maximum, Minimum, Mul, Pow
from microtir.operators.common import onnx_rows, onnx_types
from microtir.operators.common.onnx_operands import MANY, MICROSOFT, OnnxNode, OnnxReader, plain
from microtir.operators.common.onnx_quantized import between_integers
from microtir.operators.selection.definition import Select
from microtir.operators.unary.definition import Sqrt, Square


def _in_turn(op: Operator) -> Callable[[OnnxNode], Tensor]:
    """Return what reads an operator of any number of inputs as operators of two."""

    def read(node: OnnxNode) -> Tensor:
        first, *others = node.present
        for other in others:
            first = onnx_types.emit_wide(node, op, first, other)
        return first

    return read


def mean(node: OnnxNode) -> Tensor:
    """Read Mean: the sum of the inputs divided by their number."""
    total = _in_turn(Add())(node)
    share = 1.0 / len(node.inputs)
    return node.emit(Mul(), total, node.scalar_like(share, total))


def power(node: OnnxNode) -> Tensor:
    """Read Pow; squares and roots are what they are, not powers."""
    base, exponent = node.input(0), node.input(1)
    if not base.dtype.is_float:
        return _integer_power(node, base)
    if exponent.data is not None and exponent.data.size == 1:
        value = float(exponent.data.reshape(()))
        plain_one = {2.0: Square(), 0.5: Sqrt()}.get(value)
        if plain_one is not None and len(exponent.shape) <= len(base.shape):
            return node.emit(plain_one, base)
    return node.emit(Pow(), base, onnx_types.cast(node, exponent, base.dtype))


def _integer_power(node: OnnxNode, base: Tensor) -> Tensor:
    """Return powers of integers, multiplied together; exponents must be known."""
    exponents = node.known(1, "the exponent of integers")
    if (exponents < 0).any() or (exponents != np.trunc(exponents)).any():
        raise node.unsupported(
            "integers with exponents that are negative, or not integers",
            "integer exponents of 0 or more",
            "compute it in float32",
        )
    left = exponents.astype(np.int64)
    is_long = base.dtype is DType.UINT64
    factor = onnx_types.low_bits(node, base) if is_long else onnx_types.widened(node, base)
    result = node.constant(np.ones((), factor.dtype.value))
    while True:
        odd = node.constant((left & 1).astype(np.bool_))
        one = node.scalar_like(1, factor)
        chosen = node.emit(Select(), odd, factor, one, dtype=factor.dtype)
        result = node.emit(Mul(), chosen, result)
        left = left >> 1
        if not left.any():
            return onnx_types.cast(node, result, base.dtype)
        factor = node.emit(Mul(), factor, factor)


def affine(node: OnnxNode) -> Tensor:
    """Read onnxruntime's Affine: alpha x + beta."""
    x = node.input(0)
    product = node.emit(Mul(), x, node.scalar_like(node.number("alpha"), x))
    return node.emit(Add(), product, node.scalar_like(node.number("beta"), x))


def scale(node: OnnxNode) -> Tensor:
    """Read onnxruntime's Scale: x times one number."""
    return node.emit(Mul(), node.input(0), node.scalar_like(node.number("scale"), node.input(0)))


def image_scaler(node: OnnxNode) -> Tensor:
    """Read onnxruntime's ImageScaler: one factor, and a term for each channel of (N, C, H, W)."""
    x, terms = node.input(0), node.list_of_numbers("bias")
    if len(x.shape) != 4 or len(terms) != x.shape[1]:
        raise node.malformed(f"{len(terms)} terms for the shape {x.shape}", "one for each channel")
    product = node.emit(Mul(), x, node.scalar_like(node.number("scale"), x))
    return node.emit(Add(), product, node.constant(np.array(terms, np.float32).reshape(-1, 1, 1)))


ONNX_READERS = (
    *onnx_rows.readers_of(arithmetic.RECORDS),
    OnnxReader("Pow", power, (2, 2)),
    OnnxReader("Min", _in_turn(Minimum()), (1, MANY)),
    OnnxReader("Max", _in_turn(Maximum()), (1, MANY)),
    OnnxReader("Sum", _in_turn(Add()), (1, MANY)),
    OnnxReader("Mean", mean, (1, MANY)),
    OnnxReader("Affine", affine, attributes=("alpha", "beta"), domain=MICROSOFT),
    OnnxReader("Scale", scale, attributes=("scale",), domain=MICROSOFT),
    OnnxReader("ImageScaler", image_scaler, attributes=("bias", "scale"), domain=MICROSOFT),
    OnnxReader("QLinearAdd", between_integers(plain(Add()), 2), (7, 8), domain=MICROSOFT),
    OnnxReader("QLinearMul", between_integers(plain(Mul()), 2), (7, 8), domain=MICROSOFT),
)
