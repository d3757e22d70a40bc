"""Read PyTorch's arithmetic of two and three operands, in the type that the result has."""

from __future__ import annotations

from collections.abc import Callable

from microtir.dtype import DType
from microtir.graph.ir import Tensor
from microtir.operators.common.torch_operands import TorchNode, TorchReader
from microtir.operators.common.torch_rows import readers
from microtir.operators.common.torch_types import as_type, operand

_LOGICAL = {"Add": "Or", "Mul": "And", "Max": "Or", "Min": "And"}
"""ONNX's names of arithmetic of booleans."""


def pair(node: TorchNode, first: str = "self", second: str = "other") -> tuple[Tensor, Tensor]:
    """Return two operands in the type of the result."""
    dtype = node.result_dtype
    return as_type(node, operand(node, first), dtype), as_type(node, operand(node, second), dtype)


def plain(operator: str) -> Callable[[TorchNode], Tensor]:
    """Return what reads an operator of two operands that ONNX has, too."""

    def read(node: TorchNode) -> Tensor:
        a, b = pair(node)
        return _emitted(node, operator, a, b)

    return read


def _emitted(node: TorchNode, operator: str, a: Tensor, b: Tensor) -> Tensor:
    is_logical = a.dtype is DType.BOOL
    return node.onnx(_LOGICAL.get(operator, operator) if is_logical else operator, a, b)


def _sum(operator: str, *, is_swapped: bool = False) -> Callable[[TorchNode], Tensor]:
    """Return what reads self + alpha other, or a difference."""

    def read(node: TorchNode) -> Tensor:
        a, b = pair(node)
        a, b = (b, a) if is_swapped else (a, b)
        alpha = node.number("alpha", 1)
        if alpha != 1:
            factor = as_type(node, alpha, a.dtype)
            b = node.onnx("Mul", b, factor)
        return _emitted(node, operator, a, b)

    return read


def lerp(node: TorchNode) -> Tensor:
    """Read lerp: start + weight (end - start), counted from the nearer end."""
    a, b = pair(node, "self", "end")
    weight = as_type(node, operand(node, "weight"), a.dtype)
    way = node.onnx("Sub", b, a)
    from_start = node.onnx("Add", a, node.onnx("Mul", weight, way))
    rest = node.onnx("Sub", node.scalar(1.0), weight)
    from_end = node.onnx("Sub", b, node.onnx("Mul", rest, way))
    is_near = node.onnx("Less", node.onnx("Abs", weight), node.scalar(0.5))
    return node.onnx("Where", is_near, from_start, from_end)


def _with_product(operator: str) -> Callable[[TorchNode], Tensor]:
    """Return what reads self + value times a product or quotient."""

    def read(node: TorchNode) -> Tensor:
        dtype = node.result_dtype
        x, a, b = (node.cast(node.tensor(name), dtype) for name in ("self", "tensor1", "tensor2"))
        inner, value = node.onnx(operator, a, b), node.number("value", 1)
        if value != 1:
            inner = node.onnx("Mul", inner, as_type(node, value, dtype))
        return node.onnx("Add", x, inner)

    return read


def power(node: TorchNode) -> Tensor:
    """Read pow."""
    return node.onnx("Pow", *pair(node, "self", "exponent"))


def log_add_exp(node: TorchNode) -> Tensor:
    """Read logaddexp: the larger one plus log(1 + exp(-distance))."""
    a, b = pair(node)
    distance = node.onnx("Neg", node.onnx("Abs", node.onnx("Sub", a, b)))
    rest = node.onnx("Log", node.onnx("Add", node.onnx("Exp", distance), node.scalar(1.0)))
    return node.onnx("Add", node.onnx("Max", a, b), rest)


def arc_tangent(node: TorchNode) -> Tensor:
    """Read atan2: the angle of a point, from the quotient and the half that it lies in."""
    y, x = pair(node)
    zero = node.scalar(0.0)
    angle = node.onnx("Atan", node.onnx("Div", y, x))
    half_turn = node.onnx("Where", node.onnx("Less", y, zero), node.scalar(-_PI), node.scalar(_PI))
    turned = node.onnx(
        "Where", node.onnx("Less", x, zero), node.onnx("Add", angle, half_turn), angle
    )
    is_origin = node.onnx("And", node.onnx("Equal", x, zero), node.onnx("Equal", y, zero))
    return node.onnx("Where", is_origin, node.onnx("Mul", zero, y), turned)


_PI = 3.141592653589793

TORCH_READERS: tuple[TorchReader, ...] = (
    *readers(_sum("Add"), "self other alpha", "add.Tensor", "add.Scalar"),
    *readers(_sum("Sub"), "self other alpha", "sub.Tensor", "sub.Scalar"),
    *readers(_sum("Sub", is_swapped=True), "self other alpha", "rsub.Tensor", "rsub.Scalar"),
    *readers(plain("Mul"), "self other", "mul.Tensor", "mul.Scalar"),
    *readers(plain("Max"), "self other", "maximum", "max.other", "fmax"),
    *readers(plain("Min"), "self other", "minimum", "min.other", "fmin"),
    *readers(power, "self exponent", "pow.Tensor_Scalar", "pow.Tensor_Tensor", "pow.Scalar"),
    *readers(lerp, "self end weight", "lerp.Scalar", "lerp.Tensor"),
    *readers(_with_product("Mul"), "self tensor1 tensor2 value", "addcmul"),
    *readers(_with_product("Div"), "self tensor1 tensor2 value", "addcdiv"),
    *readers(log_add_exp, "self other", "logaddexp"),
    *readers(arc_tangent, "self other", "atan2"),
)
