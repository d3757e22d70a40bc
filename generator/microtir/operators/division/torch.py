"""Read PyTorch's divisions: true ones, rounded ones, and what they leave."""

from __future__ import annotations

from microtir.dtype import DType
from microtir.graph.ir import Tensor
from microtir.operators.arithmetic.torch import pair
from microtir.operators.common.torch_operands import TorchNode, TorchReader
from microtir.operators.common.torch_rows import readers


def divide(node: TorchNode) -> Tensor:
    """Read div: of integers a float, unless a mode rounds it."""
    a, b = pair(node)
    mode = node.text("rounding_mode", "")
    if mode == "floor":
        return _floored(node, a, b)
    quotient = node.onnx("Div", a, b)
    if mode == "trunc" and a.dtype.is_float:
        return truncated(node, quotient)
    if mode not in ("", "trunc"):
        raise node.malformed(f"the rounding mode {mode!r}", "floor or trunc")
    return quotient


def _floored(node: TorchNode, a: Tensor, b: Tensor) -> Tensor:
    """Return the whole quotient below: that of a without its remainder, which divides evenly."""
    rest = node.onnx("Mod", a, b)
    quotient = node.onnx("Div", node.onnx("Sub", a, rest), b)
    return node.onnx("Round", quotient) if a.dtype.is_float else quotient


def floor_divide(node: TorchNode) -> Tensor:
    """Read floor_divide."""
    return _floored(node, *pair(node))


def truncated(node: TorchNode, x: Tensor) -> Tensor:
    """Return floats without what is behind the point."""
    is_below = node.onnx("Less", x, node.scalar(0.0))
    return node.onnx("Where", is_below, node.onnx("Ceil", x), node.onnx("Floor", x))


def remainder(node: TorchNode) -> Tensor:
    """Read remainder, which has the sign of the divisor."""
    return node.onnx("Mod", *pair(node))


def c_remainder(node: TorchNode) -> Tensor:
    """Read fmod, which has the sign of the dividend."""
    return node.onnx("Mod", *pair(node), fmod=1)


def reciprocal(node: TorchNode) -> Tensor:
    """Read reciprocal."""
    x = node.cast(node.tensor("self"), DType.FLOAT32)
    return node.onnx("Reciprocal", x)


_OPERANDS = "self other"

TORCH_READERS: tuple[TorchReader, ...] = (
    *readers(
        divide, "self other rounding_mode",
        "div.Tensor", "div.Scalar", "div.Tensor_mode", "div.Scalar_mode",
        "true_divide.Tensor", "true_divide.Scalar",
    ),
    *readers(floor_divide, _OPERANDS, "floor_divide", "floor_divide.Scalar"),
    *readers(
        remainder, _OPERANDS, "remainder.Tensor", "remainder.Scalar", "remainder.Scalar_Tensor"
    ),
    *readers(c_remainder, _OPERANDS, "fmod.Tensor", "fmod.Scalar"),
    *readers(reciprocal, "self", "reciprocal"),
)  # fmt: skip
