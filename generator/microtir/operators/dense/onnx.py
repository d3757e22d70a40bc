"""Read ONNX's products of matrices: those with constant weights are layers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Array, Tensor
from microtir.operators.arithmetic.definition import Add, Mul
from microtir.operators.common import onnx_functions, onnx_integer_sums, onnx_parts, onnx_types
from microtir.operators.common.onnx_arithmetic import add, mul
from microtir.operators.common.onnx_operands import MICROSOFT, OnnxNode, OnnxReader
from microtir.operators.common.onnx_quantized import Scaling, dynamically_quantised, requantised
from microtir.operators.dense.definition import FullyConnected
from microtir.operators.matmul.definition import BatchMatmul
from microtir.operators.movement.definition import Reshape, Transpose


def gemm(node: OnnxNode) -> Tensor:
    """Read Gemm: alpha A B + beta C, each matrix transposed if an attribute says so."""
    a, b, c = node.input(0), node.input(1), node.optional(2)
    if len(a.shape) != 2 or len(b.shape) != 2:
        raise node.malformed(f"shapes {a.shape} and {b.shape}", "two matrices")
    alpha, beta = node.number("alpha", 1.0), node.number("beta", 1.0)
    is_transposed = bool(node.integer("transB", 0))
    if node.integer("transA", 0):
        a = node.emit(Transpose((1, 0)), a)
    columns = b.shape[0] if is_transposed else b.shape[1]
    bias = None if c is None else _bias(c.data, beta, columns)
    if b.data is None or (c is not None and bias is None):
        return _general(node, a, b, is_transposed=is_transposed)
    weights = b if is_transposed else node.emit(Transpose((1, 0)), b)
    if alpha != 1.0:
        weights = node.emit(Mul(), weights, node.scalar_like(alpha, weights))
    operands = [a, weights]
    if bias is not None:
        operands.append(node.constant(bias))
    return node.emit(FullyConnected(), *operands, shape=(a.shape[0], columns))


def _bias(data: Array | None, beta: float, columns: int) -> Array | None:
    """Return C as a vector of the columns; None if it is computed, or not the same in all rows."""
    if data is None or data.shape[:-1] not in ((), (1,)) or data.size not in (1, columns):
        return None
    vector = np.broadcast_to(data.reshape(-1), (columns,))
    return vector if beta == 1.0 else vector * data.dtype.type(beta)


def _general(node: OnnxNode, a: Tensor, b: Tensor, *, is_transposed: bool) -> Tensor:
    """Emit the product of two matrices that are computed, scaled and added to."""
    alpha, beta, c = node.number("alpha", 1.0), node.number("beta", 1.0), node.optional(2)
    product = node.emit(BatchMatmul(adj_y=is_transposed), a, b)
    if alpha != 1.0:
        product = node.emit(Mul(), product, node.scalar_like(alpha, product))
    if c is None:
        return product
    if beta != 1.0:
        c = node.emit(Mul(), c, node.scalar_like(beta, c))
    return node.emit(Add(), product, c)


def matmul(node: OnnxNode) -> Tensor:
    """Read MatMul, as numpy's: a vector is a row on the left and a column on the right."""
    a, b = node.input(0), node.input(1)
    if not a.shape or not b.shape:
        raise node.malformed(
            f"shapes {a.shape} and {b.shape}", "vectors, matrices, or stacks of them"
        )
    left = a if len(a.shape) > 1 else node.emit(Reshape(), a, shape=(1, *a.shape))
    right = b if len(b.shape) > 1 else node.emit(Reshape(), b, shape=(*b.shape, 1))
    product = _product(node, left, right)
    shape = product.shape
    if len(a.shape) == 1:
        shape = (*shape[:-2], shape[-1])
    if len(b.shape) == 1:
        shape = shape[:-1]
    return product if shape == product.shape else node.emit(Reshape(), product, shape=shape)


def _product(node: OnnxNode, a: Tensor, b: Tensor) -> Tensor:
    is_layer = b.data is not None and len(b.shape) == 2 and a.data is None
    if not is_layer:
        return node.emit(BatchMatmul(), a, b)
    weights = node.emit(Transpose((1, 0)), b)
    return node.emit(FullyConnected(), a, weights, shape=(*a.shape[:-1], b.shape[1]))


def fused_gemm(node: OnnxNode) -> Tensor:
    """Read com.microsoft's FusedGemm: a Gemm, and a function of its result."""
    names = ("activation_alpha", "activation_beta", "activation_gamma")
    numbers = [node.number(name) for name in names if node.has(name)]
    return onnx_functions.fused_function(node, gemm(node), numbers)


def fused_matmul(node: OnnxNode) -> Tensor:
    """Read com.microsoft's FusedMatMul: alpha A B, with axes of each exchanged before."""
    a, b = (
        _turned(node, node.input(index), bool(node.integer(f"trans{name}", 0)),
                bool(node.integer(f"transBatch{name}", 0)))
        for index, name in enumerate("AB")
    )  # fmt: skip
    product, alpha = matmul(node.with_inputs(a, b)), node.number("alpha", 1.0)
    if alpha == 1.0:
        return product
    return node.emit(Mul(), product, node.scalar_like(alpha, product))


def _turned(node: OnnxNode, x: Tensor, is_transposed: bool, has_batch_inside: bool) -> Tensor:
    """Return a stack of matrices with rows and columns exchanged, or taken from around its batch.

    A batch inside stands behind the first axis of the matrices: (M, batch, K).
    """
    order = list(range(len(x.shape)))
    if has_batch_inside and len(order) > 2:
        order = [*order[1:-1], order[0], order[-1]]
    if is_transposed and len(order) > 1:
        order[-2:] = order[:-3:-1]
    return onnx_parts.transposed(node, x, order)


def dynamic_matmul(node: OnnxNode) -> Tensor:
    """Read com.microsoft's DynamicQuantizeMatMul: A is quantised by its own extremes."""
    stored, scale, zero_point = dynamically_quantised(node, node.input(0))
    product = matmul_integer(node.with_inputs(stored, node.input(1), zero_point, node.optional(3)))
    return _rescaled(node, product, scale, node.input(2), node.optional(4))


def matmul_to_float(node: OnnxNode) -> Tensor:
    """Read com.microsoft's MatMulIntegerToFloat: sums of int32 times both scales."""
    zeros = node.optional(4), node.optional(5)
    product = matmul_integer(node.with_inputs(node.input(0), node.input(1), *zeros))
    return _rescaled(node, product, node.input(2), node.input(3), node.optional(6))


def _rescaled(
    node: OnnxNode, sums: Tensor, first: Tensor, second: Tensor, bias: Tensor | None
) -> Tensor:
    real = mul(node, onnx_types.cast(node, sums, DType.FLOAT32), mul(node, first, second))
    return real if bias is None else add(node, real, bias)


def qlinear_matmul(node: OnnxNode) -> Tensor:
    """Read QLinearMatMul: both operands with scale and zero point, and those of the output."""
    a, b = Scaling(*node.inputs_at(1, 2), axis=-2), Scaling(*node.inputs_at(4, 5), axis=-1)
    return requantised(node, ((0, a), (3, b)), matmul, Scaling(*node.inputs_at(6, 7)))


def qgemm(node: OnnxNode) -> Tensor:
    """Read com.microsoft's QGemm; without a scale of its output that is float32."""
    is_transposed = bool(node.integer("transB", 0))
    a = Scaling(*node.inputs_at(1, 2))
    b = Scaling(*node.inputs_at(4, 5), axis=0 if is_transposed else 1)
    output = None if node.optional(7) is None else Scaling(*node.inputs_at(7, 8))
    return requantised(node, ((0, a), (3, b)), gemm, output, bias=6)


def matmul_integer(node: OnnxNode) -> Tensor:
    """Read MatMulInteger: sums of int32, exact because floats add few products at a time."""
    a = onnx_integer_sums.centred(node, node.input(0), node.optional(2), axis=-2)
    b = onnx_integer_sums.centred(node, node.input(1), node.optional(3), axis=-1)
    axis = max(len(b.shape) - 2, 0)

    def part(first: int, count: int) -> Tensor:
        left = onnx_parts.along(node, a, len(a.shape) - 1, first, count)
        right = onnx_parts.along(node, b, axis, first, count)
        return matmul(replace(node, inputs=(left, right)))

    return onnx_integer_sums.exact_sum(node, a.shape[-1], onnx_integer_sums.EXACT_PRODUCTS, part)


ONNX_READERS = (
    OnnxReader("Gemm", gemm, (2, 3), ("alpha", "beta", "transA", "transB")),
    OnnxReader("MatMul", matmul, (2, 2)),
    OnnxReader("QLinearMatMul", qlinear_matmul, (8, 8)),
    OnnxReader("QLinearMatMul", qlinear_matmul, (8, 8), domain=MICROSOFT),
    OnnxReader("MatMulInteger", matmul_integer, (2, 4), ranks=(1, 1)),
    OnnxReader(
        "FusedGemm",
        fused_gemm,
        (2, 3),
        (
            "alpha",
            "beta",
            "transA",
            "transB",
            "activation",
            "activation_alpha",
            "activation_beta",
            "activation_gamma",
        ),
        domain=MICROSOFT,
    ),
    OnnxReader(
        "FusedMatMul",
        fused_matmul,
        (2, 2),
        ("alpha", "transA", "transB", "transBatchA", "transBatchB"),
        domain=MICROSOFT,
    ),
    OnnxReader(
        "TransposeMatMul", fused_matmul, (2, 2), ("alpha", "transA", "transB"), domain=MICROSOFT
    ),
    OnnxReader("DynamicQuantizeMatMul", dynamic_matmul, (3, 5), domain=MICROSOFT, ranks=(1, 1)),
    OnnxReader("MatMulIntegerToFloat", matmul_to_float, (4, 7), domain=MICROSOFT, ranks=(1, 1)),
    OnnxReader("QGemm", qgemm, (6, 9), ("alpha", "transA", "transB"), domain=MICROSOFT),
)
