"""Read PyTorch's layers of sums over all inputs, and products of matrices."""

from __future__ import annotations

import math

from microtir.graph.ir import Tensor
from microtir.operators.common.torch_operands import TorchNode, TorchReader
from microtir.operators.common.torch_rows import readers


def linear(node: TorchNode) -> Tensor:
    """Read linear: input (..., I), weights (O, I) or (I,), optional bias (O,)."""
    x, weights = node.tensor("input"), node.tensor("weight")
    if len(weights.shape) == 1:
        product, bias = node.onnx("MatMul", x, weights), node.optional_tensor("bias")
        return product if bias is None else node.onnx("Add", product, bias)
    if len(weights.shape) != 2 or not x.shape:
        raise node.malformed(f"an input of shape {x.shape}, weights of {weights.shape}")
    rows = node.reshaped(x, (math.prod(x.shape[:-1]), x.shape[-1]))
    result = node.onnx("Gemm", rows, weights, node.optional_tensor("bias"), transB=1)
    return node.reshaped(result, (*x.shape[:-1], weights.shape[0]))


def addmm(node: TorchNode) -> Tensor:
    """Read addmm: beta self + alpha mat1 mat2."""
    first, second = node.tensor("mat1"), node.tensor("mat2")
    return node.onnx(
        "Gemm", first, second, node.tensor("self"),
        alpha=float(node.number("alpha", 1)), beta=float(node.number("beta", 1)),
    )  # fmt: skip


def product(node: TorchNode) -> Tensor:
    """Read mm, bmm, mv, dot, vdot and matmul."""
    names = ("mat2", "vec", "tensor", "other")
    second = next((name for name in names if node.has(name)), "other")
    return node.onnx("MatMul", node.tensor("self"), node.tensor(second))


def added_product(node: TorchNode) -> Tensor:
    """Read baddbmm and addmv: beta self + alpha times a product."""
    names = ("batch1", "batch2") if "bmm" in node.target else ("mat", "vec")
    total = node.onnx("MatMul", *(node.tensor(name) for name in names))
    alpha, beta, x = node.number("alpha", 1), node.number("beta", 1), node.tensor("self")
    if alpha != 1:
        total = node.onnx("Mul", total, node.scalar(float(alpha)))
    if beta == 0:
        return total
    x = x if beta == 1 else node.onnx("Mul", x, node.scalar(float(beta)))
    return node.onnx("Add", total, x)


def outer(node: TorchNode) -> Tensor:
    """Read outer: all products of the elements of two vectors."""
    a, b = node.tensor("self"), node.tensor("vec2")
    return node.onnx("Mul", node.reshaped(a, (a.type.elements, 1)), b)


def einsum(node: TorchNode) -> Tensor:
    """Read einsum."""
    return node.onnx("Einsum", *node.tensors("tensors"), equation=node.text("equation"))


def bilinear(node: TorchNode) -> Tensor:
    """Read bilinear: inputs (..., A) and (..., B), weights (O, A, B), optional bias (O,)."""
    a, b, weights = node.tensor("input1"), node.tensor("input2"), node.tensor("weight")
    outputs, left, right = weights.shape
    rows = math.prod(a.shape[:-1])
    matrix = node.onnx("Transpose", node.reshaped(weights, (outputs * left, right)), perm=(1, 0))
    half = node.onnx("MatMul", node.reshaped(b, (rows, right)), matrix)
    half = node.reshaped(half, (rows, outputs, left))
    total = node.onnx("MatMul", half, node.reshaped(a, (rows, left, 1)))
    result = node.reshaped(total, (*a.shape[:-1], outputs))
    bias = node.optional_tensor("bias")
    return result if bias is None else node.onnx("Add", result, bias)


def trilinear(node: TorchNode) -> Tensor:
    """Read _trilinear: a product of three tensors with new axes, summed along some."""
    total: Tensor | None = None
    for name, axes in (("i1", "expand1"), ("i2", "expand2"), ("i3", "expand3")):
        x = node.tensor(name)
        for axis in node.integers(axes, ()):
            x = node.reshaped(x, (*x.shape[:axis], 1, *x.shape[axis:]))
        total = x if total is None else node.onnx("Mul", total, x)
    assert total is not None
    return node.onnx("ReduceSum", total, node.ints(*node.integers("sumdim")), keepdims=0)


TORCH_READERS: tuple[TorchReader, ...] = (
    *readers(linear, "input weight bias", "linear"),
    *readers(addmm, "self mat1 mat2 beta alpha", "addmm"),
    *readers(product, "self mat2 vec tensor other", "mm", "bmm", "mv", "dot", "vdot", "matmul"),
    *readers(added_product, "self batch1 batch2 mat vec beta alpha", "baddbmm", "addmv"),
    *readers(outer, "self vec2", "outer", "ger"),
    *readers(einsum, "equation tensors path", "einsum"),
    *readers(trilinear, "i1 i2 i3 expand1 expand2 expand3 sumdim unroll_dim", "_trilinear"),
    *readers(bilinear, "input1 input2 weight bias", "bilinear"),
)
