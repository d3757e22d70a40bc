"""Read PyTorch's comparisons and logic."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from microtir.dtype import DType
from microtir.graph.ir import Tensor
from microtir.operators.common.torch_operands import TorchNode, TorchReader
from microtir.operators.common.torch_rows import readers
from microtir.operators.common.torch_types import as_type, operand, promoted, truth

_COMPARISONS: Mapping[str, str] = MappingProxyType(
    {
        "eq": "Equal", "ne": "Equal", "lt": "Less", "le": "LessOrEqual", "gt": "Greater",
        "ge": "GreaterOrEqual",
    }
)  # fmt: skip

_LOGIC: Mapping[str, str] = MappingProxyType(
    {"logical_and": "And", "logical_or": "Or", "logical_xor": "Xor"}
)


def _comparison(operator: str, *, is_not: bool = False) -> Callable[[TorchNode], Tensor]:
    """Return what compares two operands, in the type of both."""

    def read(node: TorchNode) -> Tensor:
        operands = tuple(operand(node, name) for name in ("self", "other"))
        dtype = promoted(node, *operands)
        # Of booleans the order is that of 0 and 1.
        is_order = dtype is DType.BOOL and operator != "Equal"
        a, b = (as_type(node, x, dtype) for x in operands)
        if is_order:
            a, b = node.cast(a, DType.INT32), node.cast(b, DType.INT32)
        result = node.onnx(operator, a, b)
        return node.onnx("Not", result) if is_not else result

    return read


def _logical(operator: str) -> Callable[[TorchNode], Tensor]:
    def read(node: TorchNode) -> Tensor:
        return node.onnx(operator, *(truth(node, node.tensor(name)) for name in ("self", "other")))

    return read


def logical_not(node: TorchNode) -> Tensor:
    """Read logical_not."""
    return node.onnx("Not", truth(node, node.tensor("self")))


def is_nan(node: TorchNode) -> Tensor:
    """Read isnan."""
    return node.onnx("IsNaN", node.cast(node.tensor("self"), DType.FLOAT32))


def is_infinite(node: TorchNode) -> Tensor:
    """Read isinf; isposinf and isneginf look at one of both."""
    x = node.cast(node.tensor("self"), DType.FLOAT32)
    return node.onnx(
        "IsInf", x, detect_negative=int("pos" not in node.target),
        detect_positive=int("neg" not in node.target),
    )  # fmt: skip


def is_finite(node: TorchNode) -> Tensor:
    """Read isfinite: neither NaN nor an infinity, of which no multiple of 0 is 0."""
    x = node.cast(node.tensor("self"), DType.FLOAT32)
    zero = node.scalar(0.0)
    return node.onnx("Equal", node.onnx("Mul", x, zero), zero)


TORCH_READERS: tuple[TorchReader, ...] = (
    *(
        row
        for name, to in _COMPARISONS.items()
        for row in readers(
            _comparison(to, is_not=name == "ne"), "self other", f"{name}.Tensor", f"{name}.Scalar"
        )
    ),
    *(row for name, to in _LOGIC.items() for row in readers(_logical(to), "self other", name)),
    *readers(logical_not, "self", "logical_not"),
    *readers(is_nan, "self", "isnan"),
    *readers(is_infinite, "self", "isinf", "isposinf", "isneginf"),
    *readers(is_finite, "self", "isfinite"),
)
